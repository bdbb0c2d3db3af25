/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * References to memfds: each is charged to a user until the last process has closed it.
 *
 * An inotify watch on a file without a name keeps its inode and none of its contents. The kernel
 * sends IN_DELETE_SELF when the last descriptor (O_PATH ones too), mapping and message in flight is
 * gone. So the broker never polls, and nobody can keep a file without its charge.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/state/quota.h"

struct memfd_ref {
	int watch;
	uint32_t uid;
	uint64_t bytes;
};

struct memfd_refs {
	struct quota *quota;
	int fd; /* inotify */
	sd_event_source *io;
	struct memfd_ref *all; /* sorted by watch */
	size_t n, room;
};

/* 0; -errno. Accepts an empty struct: fd -EBADF. */
int memfd_refs_init(struct memfd_refs *h, sd_event *loop, struct quota *quota);
/* Releases all charges. */
void memfd_refs_done(struct memfd_refs *h);

/*
 * From now on these bytes of QUOTA_COPIES, already charged to uid, are released when file is gone.
 * The caller closes its own descriptor. 0; -ENOSPC (fs.inotify.max_user_watches); -ENOMEM; another
 * -errno.
 */
int memfd_refs_add(struct memfd_refs *h, int file, uint32_t uid, uint64_t bytes);

/* Releases the files that are gone by now; call this before a refusal for lack of quota. */
void memfd_refs_catch_up(struct memfd_refs *h);

/* Checks which files still exist. The code calls this after the kernel dropped notices. */
void memfd_refs_review(struct memfd_refs *h);
