/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies of rings: requests them from the dumper one job at a time, charges each copy to its user,
 * and notices when nobody has it open any more. Must not know events or requests.
 *
 * The broker itself holds the charges, so they survive the dumper's death. Copies that are held
 * across a broker restart are no longer charged.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/state/quota.h"
#include "daemon/copy.h"
#include "proto/packet.h"

struct copies;

/* A waiting or running job. The caller owns it and embeds it in a larger struct. */
struct copying {
	struct copying *next;
	uint32_t uid; /* the user to charge */

	/*
	 * Called when the job's turn comes: fills in count, catalog, sizes and descriptors of the
	 * job, which is otherwise ready. < 0: the job is cancelled; done gets that error.
	 */
	int (*prepare)(struct copying *copying, struct pp_copy_job *job, struct pp_fds *fds);

	/*
	 * Called exactly once, at the end. `copies` has as many descriptors as were requested, on
	 * loan. Otherwise error is -EDQUOT (see quota_sentence), -EAGAIN (the dumper hangs, died or
	 * is unreachable), -ENOSPC (no further inotify watch is available), -ECANCELED (the daemon
	 * ends), the dumper's error, or prepare's.
	 */
	void (*done)(struct copying *copying, int error, const struct pp_fds *copies);
};

/* path: the dumper's socket; connects on first use. 0; -errno. */
int copies_new(sd_event *loop, struct quota *quota, const char *path, struct copies **ret);

/* Cancels waiting jobs (-ECANCELED) and releases every charge. NULL is accepted. */
void copies_free(struct copies *c);

/* Calls done later, or from within. */
void copies_submit(struct copies *c, struct copying *copying);

/* Charges so many bytes before a copy is made of which copies_hold then is told. 0; -EDQUOT; -ENOMEM. */
int copies_reserve(struct copies *c, uint32_t uid, uint64_t bytes);
/* Ends that, before copies_hold or without. */
void copies_unreserve(struct copies *c, uint32_t uid, uint64_t bytes);

/* Charges a memfd of another process like a copy of so many bytes, until nobody has it open any
 * more. 0; -EDQUOT; -ENOMEM; -ENOSPC (as above); another -errno. */
int copies_hold(struct copies *c, int file, uint32_t uid, uint64_t size);
