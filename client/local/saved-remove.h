/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Removes saves, complete or unfinished. Follows no links. */
#pragma once

/* Removes a directory and all below it, to the depth of a save. 0; -ENOENT: it does not exist;
 * -errno. */
int saved_remove(int at, const char *name);

/* Likewise, but first renames it to "+del-NAME": a half-removed one has no name that means anything. */
int saved_discard(int at, const char *name);

/* Removes leftovers of killed processes in a directory of saves: "+new-…" without a lock, and
 * "+del-…". Leaves what cannot be removed. */
void saved_sweep(int at);

/* Removes the oldest saves beyond `keep`, but never the save `newest`; returns how many. */
unsigned saved_prune(int at, unsigned keep, const char *newest);
