/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Drops privileges for good: the broker handles clients' input without any. */
#pragma once

#include <sys/types.h>

/*
 * Changes to that user and group (only if it is root), with no supplementary groups, no capability
 * in any set, and no way to gain one by execve(2). 0; -errno.
 */
int privileges_drop(uid_t uid, gid_t gid);
