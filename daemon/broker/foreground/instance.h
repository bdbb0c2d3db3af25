/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An instance's place without systemd: its folder below /run, and the lock in it. Must be called as
 * root.
 */
#pragma once

#include <stdbool.h>

/*
 * Makes the folder and takes the lock, which is held while anything of the instance runs: two
 * engines must never work on one registry. Waits some seconds for the processes of a killed daemon.
 * 0 with a descriptor to close; -errno (logged, with advice).
 */
int instance_take(const char *instance, int *ret_lock);

/* Whether its registry has neither events nor orphan rings; also true without a registry. */
bool instance_is_empty(const char *instance);

/*
 * Removes what an empty instance would leave behind: its registry's mount, its sockets, lock and
 * folder. The caller holds the lock; engine, dumper and keeper have ended. Files that are in use,
 * and foreign files, stay.
 */
void instance_remove(const char *instance);
