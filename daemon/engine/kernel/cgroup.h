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
