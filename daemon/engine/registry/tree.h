/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry's files: for each event two iterator links, to be pinned as `info` and
 * `stat`. They print live values without any daemon.
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
 * Of this event, whose broker may ask for its counts (daemon/totals.h). meta_fd: the event's meta
 * map; rings_fd: its ARRAY_OF_MAPS; ringless_fd: what found none, or -EBADF; earlier_fd: what rings
 * before these counted (earlier.h), or -EBADF; programs: the kernel's ids of those whose misses it
 * counts. -EOPNOTSUPP: this kernel has no BTF; -errno.
 */
int tree_create(const struct pp_event *event, uid_t broker, int meta_fd, int rings_fd,
		int ringless_fd, int earlier_fd, const uint32_t *programs, size_t n,
		struct tree_files *ret);
void tree_files_done(struct tree_files *f);
