/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holdings: files in memory that others hold, charged until the last of them has let go.
 *
 * An inotify watch on a file that has no name keeps its inode, and nothing of its contents; the
 * kernel tells IN_DELETE_SELF when the last descriptor (O_PATH ones too), mapping and message in
 * flight is gone. So nothing is polled, and nobody can keep a file without its charge.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/state/quota.h"

struct holding {
	int watch;
	uint32_t uid;
	uint64_t bytes;
};

struct holdings {
	struct quota *quota;
	int fd; /* inotify */
	sd_event_source *io;
	struct holding *all; /* sorted by watch */
	size_t n, room;
};

/* 0; -errno. Accepts an empty one: fd -EBADF. */
int holdings_init(struct holdings *h, sd_event *loop, struct quota *quota);
/* Releases all charges. */
void holdings_done(struct holdings *h);

/*
 * From now on bytes of QUOTA_COPIES, which are charged to uid already, are released when file
 * is gone. The caller closes its own descriptor. 0; -ENOSPC (fs.inotify.max_user_watches); -ENOMEM;
 * another -errno.
 */
int holdings_add(struct holdings *h, int file, uint32_t uid, uint64_t bytes);

/* Releases at once what is gone by now, before anything is refused for want of it. */
void holdings_catch_up(struct holdings *h);

/* Looks which files are there still, as is done when the kernel had to drop notices. */
void holdings_review(struct holdings *h);
