/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fair queue: members have work, and users take turns. A member waits for at most one piece of
 * work of each other user, however much that user has waiting. A user whose work is costly is in
 * debt for a while and gets no turn. If it is the calls that are costly, which answer its work, it is
 * silenced as well: nothing is sent to it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/*
 * Of the event sources that others make ready as often as they like: connections, those that come, the queue,
 * wakeups, copies that are closed. Signals, timers, the engine's answers and the other programs' go first, else they would wait for
 * a request of each user. These do not make each other wait: sd-event takes sources of one priority in turn.
 */
#define FAIR_QUEUE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 1)

struct fair_queue;
struct fair_queue_user;

/* A member of the queue; embedded in the object with the work. */
struct fair_queue_member {
	struct fair_queue_user *user;
	struct fair_queue_member *next;
	bool waiting;
};

struct fair_queue_hooks {
	/* The member's turn. It does not leave the queue in it: who called fair_queue_ready() goes on with it. */
	void (*take)(struct fair_queue_member *turn);
	/* A user is no longer in debt, or no longer silenced. */
	void (*relieved)(void *userdata);
	void *userdata;
};

/* 0; -errno. */
int fair_queue_new(sd_event *loop, const struct fair_queue_hooks *hooks, struct fair_queue **ret);
/* All members must have left. NULL is accepted. */
void fair_queue_free(struct fair_queue *t);

/* Adds a member for this user. 0; -ENOMEM. */
int fair_queue_join(struct fair_queue *t, struct fair_queue_member *turn, uint32_t uid);
void fair_queue_leave(struct fair_queue *t, struct fair_queue_member *turn);

/*
 * The member has work. Its event source calls this, so that the loop gives all members theirs. If
 * nobody waits and its user has no other member, this is its turn; else it waits for it. No effect if it waits
 * already.
 */
void fair_queue_ready(struct fair_queue *t, struct fair_queue_member *turn);

/*
 * A call on this member took so much of the daemon's time that nobody else could have. Its user is in
 * debt and silenced until FAIR_QUEUE_SHARE times as long has passed, a minute at most. The debt
 * outlives the member. Returns whether this began the debt, or the silence. Root is never in debt.
 */
#define FAIR_QUEUE_SHARE 32
bool fair_queue_owe(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec);

/*
 * The same for calls that are cheap alone and costly in sum. Nothing is owed while the sum stays
 * below 1 in FAIR_QUEUE_SHARE of the time. An excess of FAIR_QUEUE_CREDIT_NSEC is owed as a whole.
 */
#define FAIR_QUEUE_CREDIT_NSEC (1000 * 1000ULL)
bool fair_queue_spend(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec);

/*
 * The same for requests, which are what the daemon is there for: nothing is owed below 1 in
 * FAIR_QUEUE_ASK_SHARE of the time, and so many times an excess of FAIR_QUEUE_ASK_CREDIT_NSEC is waited.
 * A debt of these takes turns only: what has been asked for before is answered, and that costs little.
 */
#define FAIR_QUEUE_ASK_SHARE 8
#define FAIR_QUEUE_ASK_CREDIT_NSEC (50 * 1000 * 1000ULL)
bool fair_queue_ask(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec);

/* Likewise turns only: a request made everybody wait for a disk. Shares and credit are those of calls. */
bool fair_queue_delay(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec);

bool fair_queue_in_debt(const struct fair_queue_member *turn);
bool fair_queue_is_silenced(const struct fair_queue_member *turn);
