/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event that is followed for as long as it is there: through the replacement of its rings (a
 * resize), onto CPUs that come, to its deletion. What is done with its records others know.
 */
#pragma once

#include "client/perfctl/perfctl.h"

struct follow_options {
	bool on;
	bool wakeup; /* be woken, instead of looking */
	bool copies; /* of the rings, also where the rings themselves could be had */
};

struct follower;

/* Takes over e, also when it fails. newest: how many records to begin with. name stays the caller's
 * for as long. -errno; perfpersist_error(p) says why. */
int follower_new(struct perfpersist *p, struct perfpersist_event *e, const struct event_name *name,
		 const struct follow_options *options, uint64_t newest, struct follower **ret);
void follower_free(struct follower *f);

/* As perfpersist_follow_next(): 1, 0, -EBADMSG (a ring is damaged), -ENOMEM. */
int follower_next(struct follower *f, struct perfpersist_sample *ret);

/* What has become of it. After all but SAME: read what is left (follower_next() until it returns
 * 0), and then, of REPLACED, follower_open_again(). */
enum follower_state {
	FOLLOWER_SAME = 0,
	FOLLOWER_REPLACED = 1, /* by other rings */
	FOLLOWER_ENDED = 2,    /* the event is gone, or the daemon that made the copies */
};
int follower_look_around(struct follower *f);

/* FOLLOWER_REPLACED: from here on it is the new rings, from their beginning, with another
 * follower_event(); *ret_gap: others were there in between, which nobody has read. FOLLOWER_ENDED:
 * the event is gone meanwhile. -errno. */
int follower_open_again(struct follower *f, bool *ret_gap);

/* The event whose rings are followed just now. */
struct perfpersist_event *follower_event(struct follower *f);
const struct event_name *follower_name(const struct follower *f);

/* Records given out, and records overwritten before that, from the beginning. */
void follower_counts(struct follower *f, uint64_t *ret_read, uint64_t *ret_overwritten);

/* How long it need not be looked at again, ns; earlier if follower_wakeup() (or -1) can be read, or
 * the daemon tells something and follower_listens(). */
uint64_t follower_delay(struct follower *f);
int follower_wakeup(const struct follower *f);
bool follower_listens(const struct follower *f);

/* The wakeup has been waited for. */
void follower_woken(struct follower *f);

/* The daemon is gone: nobody tells or wakes any more. Returns whether it was to be woken. */
bool follower_deserted(struct follower *f);
