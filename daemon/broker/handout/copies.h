/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies of rings: asks the dumper for them, one job at a time, charges them to who wants them,
 * and knows when nobody has them any more. Must not know events or requests.
 *
 * The charges are the broker's own: the dumper may die without anybody's copies being forgotten.
 * Copies that are held across the broker's restart are not charged any more.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/state/quota.h"
#include "daemon/copy.h"
#include "proto/packet.h"

struct copies;

/* A job that waits, or is under way: the caller's, who makes it part of something larger. */
struct copying {
	struct copying *next;
	uint32_t uid; /* who is charged */

	/*
	 * Its turn has come: fills in count, catalog and sizes of the job (which is otherwise
	 * ready), and the descriptors. < 0: it wants nothing any more; done gets that error.
	 */
	int (*prepare)(struct copying *copying, struct pp_copy_job *job, struct pp_fds *fds);

	/*
	 * It is over, exactly once: `copies` are as many as were asked for, on loan, or error is
	 * -EDQUOT (see quota_sentence), -EAGAIN (the dumper is stuck, died or cannot be had),
	 * -ENOSPC (no watch on another copy can be had), -ECANCELED (the daemon ends), what the
	 * dumper told, or what prepare returned.
	 */
	void (*done)(struct copying *copying, int error, const struct pp_fds *copies);
};

/* path: the dumper's socket, which is connected to when it is needed. 0; -errno. */
int copies_new(sd_event *loop, struct quota *quota, const char *path, struct copies **ret);

/* Ends what waits (-ECANCELED) and releases every charge. NULL is fine. */
void copies_free(struct copies *c);

/* done will be called, also from within. */
void copies_submit(struct copies *c, struct copying *copying);

/* A file in memory that somebody else has made is charged as a copy of so many bytes, until nobody
 * has it any more. 0; -EDQUOT; -ENOMEM; -ENOSPC (as above); another -errno. */
int copies_hold(struct copies *c, int file, uint32_t uid, uint64_t size);
