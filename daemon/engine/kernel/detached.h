/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mounts without a mount point: other processes do not see them. */
#pragma once

/* A new mount of that file system, which ends with the last descriptor into it. Returns an fd of
 * its root, the caller's; or -errno. */
int detached_mount(const char *type);
