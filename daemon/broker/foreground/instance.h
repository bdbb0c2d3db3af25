/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The place of an instance where there is no systemd: its folder below /run, and the lock in it.
 * Must be called by root.
 */
#pragma once

#include <stdbool.h>

/*
 * Makes the folder and takes the lock, which is held while anything of the instance runs: two
 * engines must never work on one registry. Waits some seconds for what is left of a daemon that was
 * killed. 0 with a descriptor to be closed; -errno (logged, with what to do).
 */
int instance_take(const char *instance, int *ret_lock);

/* Whether its registry has neither an event nor what readers have of one; also if there is none. */
bool instance_is_empty(const char *instance);

/*
 * Removes what an empty instance would leave behind: the mount of its registry, its
 * sockets, lock and folder. Whoever calls has the lock, and has seen engine, dumper and keeper end.
 * What somebody else still uses stays, as does what is none of ours.
 */
void instance_remove(const char *instance);
