/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Removes saves, whole or half-made. Follows no links. */
#pragma once

/* A directory, with all below it, as deep as saves are. 0; -ENOENT: it is not there; -errno. */
int saved_remove(int at, const char *name);

/*
 * What killed processes left in a directory of saves: "+new-…" that nobody holds a lock on, and
 * "+del-…". What cannot be removed stays.
 */
void saved_sweep(int at);

/* Removes the oldest saves beyond `keep`, but not the one of that name; returns how many. */
unsigned saved_prune(int at, unsigned keep, const char *newest);
