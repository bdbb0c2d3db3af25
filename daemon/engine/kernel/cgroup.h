/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds cgroups of version 2, as BPF programs know them. */
#pragma once

#include <stdint.h>

#include "daemon/engine/failure.h"

/*
 * text: a path from the hierarchy's root, wherever that is mounted; or, without a slash, the name of
 * a unit of systemd, which runs in any slice. *ret_id is the kernel's id of the cgroup; *ret_level
 * the number of its ancestors. With a message in *f: -ENOENT (no such cgroup, or no hierarchy),
 * -EINVAL (no path), -EOPNOTSUPP (only a part of the hierarchy is visible).
 */
int cgroup_find(const char *text, uint64_t *ret_id, unsigned *ret_level, struct failure *f);

/* The same for a bound event: writes the path into text, which has room for `size` bytes. Also -ENAMETOOLONG. */
int cgroup_take(char *text, size_t size, uint64_t *ret_id, struct failure *f);

/* Its directory, the caller's, if the cgroup with that path has this id. -ENOENT: it is removed, and another may
 * have its path; -errno. */
int cgroup_open(const char *path, uint64_t id);
