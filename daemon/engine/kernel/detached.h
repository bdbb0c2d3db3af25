/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mounts that are attached nowhere: what other processes see is theirs to decide. */
#pragma once

/* A new mount of that file system, which ends with the last descriptor of what is in it. An fd of
 * its root, the caller's; or -errno. */
int detached_mount(const char *type);
