/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fair queue: members have work to be done, and users take turns. Nobody waits for more than one
 * piece of work of each other user, however much that user has waiting. A user whose work costs much
 * is in debt for a while, and gets no turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct fair_queue;
struct fair_queue_user;

/* A member of the queue; embedded in what it stands for. */
struct fair_queue_member {
	struct fair_queue_user *user;
	struct fair_queue_member *next;
	bool waiting;
};

struct fair_queue_hooks {
	/* Called when it is the member's turn; may call fair_queue_ready again, and fair_queue_leave. */
	void (*take)(struct fair_queue_member *turn);
	/* A user that was in debt is not any more. */
	void (*relieved)(void *userdata);
	void *userdata;
};

/* 0; -errno. */
int fair_queue_new(sd_event *loop, const struct fair_queue_hooks *hooks, struct fair_queue **ret);
/* All members must have left. NULL is fine. */
void fair_queue_free(struct fair_queue *t);

/* Makes it a member, as one of this user's. 0; -ENOMEM. */
int fair_queue_join(struct fair_queue *t, struct fair_queue_member *turn, uint32_t uid);
void fair_queue_leave(struct fair_queue *t, struct fair_queue_member *turn);

/* It has work. Does nothing if it is waiting already. */
void fair_queue_ready(struct fair_queue *t, struct fair_queue_member *turn);

/*
 * So much of our time went to this one, and nobody else could have it. Its user is in debt and gets
 * no turn until FAIR_QUEUE_SHARE times as long has passed, a minute at most; that lasts longer than who
 * made it. Returns whether this began it. Root is never in debt.
 */
#define FAIR_QUEUE_SHARE 32
bool fair_queue_owe(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec);

/*
 * The same for what one call does not make dear, but many do: nothing is owed while all of it stays
 * below 1 in FAIR_QUEUE_SHARE of the time; what goes beyond that by FAIR_QUEUE_CREDIT_NSEC is owed as a whole.
 */
#define FAIR_QUEUE_CREDIT_NSEC (1000 * 1000ULL)
bool fair_queue_spend(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec);
bool fair_queue_in_debt(const struct fair_queue_member *turn);
