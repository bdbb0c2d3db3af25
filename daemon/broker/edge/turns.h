/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns: who has something to be handled is taken one at a time, users in turn, so that nobody
 * waits for more than one thing of each other user, however many things that user has waiting. A
 * user whose things cost much pays for it by waiting.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct turns;
struct turn_user;

/* One who takes turns; lies in what it is for. */
struct turn {
	struct turn_user *user;
	struct turn *next;
	bool waiting;
};

struct turns_hooks {
	/* It is its turn; this may call turns_ready again, and turns_leave. */
	void (*take)(struct turn *turn);
	/* A user that was in debt is not any more. */
	void (*relieved)(void *userdata);
	void *userdata;
};

/* 0; -errno. */
int turns_new(sd_event *loop, const struct turns_hooks *hooks, struct turns **ret);
/* Nobody may take turns any more. NULL is fine. */
void turns_free(struct turns *t);

/* Takes turns from now on, as one of this user's. 0; -ENOMEM. */
int turns_join(struct turns *t, struct turn *turn, uint32_t uid);
void turns_leave(struct turns *t, struct turn *turn);

/* It has something. Nothing happens if it is waiting already. */
void turns_ready(struct turns *t, struct turn *turn);

/*
 * So much of our time went to this one, and nobody else could have it. Its user is in debt and gets
 * no turn until TURNS_SHARE times as long has passed, a minute at most; that lasts longer than who
 * made it. Returns whether this began it. Root is never in debt.
 */
#define TURNS_SHARE 32
bool turns_owe(struct turns *t, struct turn *turn, uint64_t nsec);

/*
 * The same for what one call does not make dear, but many do: nothing is owed while all of it stays
 * below 1 in TURNS_SHARE of the time; what goes beyond that by TURNS_CREDIT_NSEC is owed as a whole.
 */
#define TURNS_CREDIT_NSEC (1000 * 1000ULL)
bool turns_spend(struct turns *t, struct turn *turn, uint64_t nsec);
bool turns_in_debt(const struct turn *turn);
