/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Giving up rights, for good: the broker handles what strangers send with none at all. */
#pragma once

#include <sys/types.h>

/*
 * Becomes that user and group (if it is root; else it is what it is), with no supplementary
 * groups, no capability in any set, and no way to get one by execve(2). 0; -errno.
 */
int privileges_drop(uid_t uid, gid_t gid);
