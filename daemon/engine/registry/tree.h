/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry's files: two iterator links per event, pinned as `info` and `stat`. They print live
 * values without a daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/order.h"

struct tree_files {
	int info, stat; /* fds of links */
};

/*
 * Makes the files of this event, whose counts the broker may also read (daemon/totals.h). meta_fd:
 * the event's meta map; rings_fd: its ARRAY_OF_MAPS; ringless_fd: counts of events that found no
 * ring, or -EBADF; earlier_fd: counts of replaced rings (earlier.h), or -EBADF; programs: ids of
 * those whose misses the kernel counts. -EOPNOTSUPP: this kernel has no BTF; -errno.
 */
int tree_create(const struct pp_event *event, uid_t broker, int meta_fd, int rings_fd,
		int ringless_fd, int earlier_fd, const uint32_t *programs, size_t n,
		struct tree_files *ret);
void tree_files_done(struct tree_files *f);
