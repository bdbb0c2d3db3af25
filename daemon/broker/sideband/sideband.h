/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sideband: that the keeper has what it needs to tell who ran, for as long as there are events:
 * perf events of all CPUs that are online, the list of what runs already, and its limit. What it
 * lacks is ordered from the engine and handed on, a little at a time, so that nothing else waits
 * for it; and nothing else fails for want of it. Keeper, engine and we may each die at any moment:
 * what is there is found out by asking, never remembered across a connection.
 *
 * Who wants sideband waits here for the keeper's answer, one at a time, users in turn.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"
#include "daemon/broker/sideband/keeper.h"

/* Somebody's wish for sideband: the caller's, who makes it part of something larger. */
struct taking {
	struct taking *next;
	uint32_t uid;
	bool numbers; /* alone: no descriptor */
	uint64_t since, until;

	/* It is over, exactly once. answer: the keeper's; NULL: nothing is kept. fd: on loan, or
	 * negative. error: 0; -EAGAIN (the keeper died over it); -ECANCELED (the daemon ends);
	 * another one, that the keeper told. */
	void (*done)(struct taking *taking, int error, const struct pp_keep_answer *answer, int fd);
};

struct sideband {
	struct waiter waiter; /* first: our waiter is this sideband */

	/* To be filled in; borrowed. */
	struct lifecycle *lifecycle;
	const struct pp_cpumask *online; /* as of now, always */
	const char *registry;
	/* May be NULL. Nothing is wanted, and nothing is kept, or nobody is there to say so. */
	void (*gone)(void *userdata);
	void *userdata;

	bool enabled; /* see sideband_configure */
	uint64_t max_memory;

	struct keeper keeper;
	struct pp_keep_status status; /* as last told on this connection */
	uint32_t pid;		      /* of the keeper; 0: none is connected */
	uint64_t limit;		      /* as last set on this connection */
	bool dropping;		      /* DROP has been sent, and not answered */
	bool left;		      /* nothing is wanted, and nothing is kept: nobody is asked */
	bool stepping;

	/* The way back to a keeper that cannot be had. */
	sd_event_source *retry;
	bool waiting; /* for it */
	unsigned attempts;
	uint64_t backoff;
	enum pp_sideband_why replaced; /* GONE, STUCK: what became of the keeper before this one */
	bool told;		       /* that there is none: once is enough */

	/* CPUs: the generation of each one whose ring the keeper has, and 1 more; 0: it has none.
	 */
	uint64_t held[PP_CPUS_MAX];
	uint32_t first; /* CPUS_HELD: of the next page */
	bool known;	/* all pages have come */
	bool look;	/* CPUs may have come since */
	struct pp_cpumask missing;

	/* What was ordered of the engine for the keeper. */
	bool ordering, refused;
	uint64_t connection, ordered_on; /* connections are counted */
	uint32_t what;			 /* of the order */
	struct pp_keep_cpu page[PP_KEEP_CPUS];
	uint32_t n_page;
	struct pp_fds fds; /* has come, and is to be handed over */

	struct taking *first_taking, **last_taking;
	struct taking *current; /* the keeper works on it */
	uint32_t last_uid;	/* whose turn was last */
};

/* s is all zeroes but for what is to be filled in. path: of the keeper's socket, which is connected
 * to when there is a reason. 0; -errno. */
int sideband_init(struct sideband *s, sd_event *loop, const char *path);
/* Ends what waits (-ECANCELED). What the keeper has it goes on keeping. Accepts an empty one. */
void sideband_done(struct sideband *s);

/* Whether it is to be kept at all, and in how many bytes. */
void sideband_configure(struct sideband *s, bool enabled, uint64_t max_memory);

/* Whenever events or the link to the engine come or go, or an order has ended. */
void sideband_continue(struct sideband *s);

/* CPUs came, or went. */
void sideband_came(struct sideband *s);
void sideband_went(struct sideband *s, unsigned cpu);

/* What could not be had is tried again. */
void sideband_retry(struct sideband *s);

/* Nothing is wanted, and the keeper has not said yet that nothing is kept: see `gone`. */
bool sideband_is_leaving(const struct sideband *s);

/* Why it is kept since when it is, or is not. */
enum pp_sideband_why sideband_why(const struct sideband *s, bool keeping);

/* done will be called, also from within. */
void sideband_take(struct sideband *s, struct taking *taking);
