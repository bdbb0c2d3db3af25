/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sideband: while there are events, ensures that the keeper has everything it needs to record the
 * names and maps of processes: perf events of all online CPUs, the list of running processes, and
 * its limit. The broker orders missing parts from the engine and passes them on in small pieces, so
 * that nothing else waits for sideband, and nothing else fails with it. Keeper, engine and broker
 * may each die at any moment: the broker asks for the state after each connect, and remembers none.
 *
 * Clients' sideband requests wait here for the keeper's answer, one at a time, users in turn.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"
#include "daemon/broker/link/keeper.h"

/* A sideband request. The caller owns it and embeds it in a larger struct. */
struct taking {
	struct taking *next;
	uint32_t uid;
	bool numbers; /* numbers only: no descriptor */
	uint64_t since, until;

	/* Called exactly once, at the end. answer: the keeper's; NULL: no sideband is recorded. fd:
	 * on loan, or negative. error: 0; -EAGAIN (the keeper died during it); -ECANCELED (the
	 * daemon ends); or the keeper's error. */
	void (*done)(struct taking *taking, int error, const struct pp_keep_answer *answer, int fd);
};

struct sideband {
	struct waiter waiter; /* first: our waiter is this sideband */

	/* The caller sets these; borrowed. */
	struct lifecycle *lifecycle;
	const struct pp_cpumask *online; /* always up to date */
	const char *registry;
	/* May be NULL. No sideband is wanted, and none is recorded or no keeper exists. */
	void (*gone)(void *userdata);
	void *userdata;

	bool enabled; /* see sideband_configure */
	uint64_t max_memory;

	struct keeper keeper;
	struct pp_keep_status status; /* from the last answer on this connection */
	uint32_t pid;		      /* of the keeper; 0: not connected */
	uint64_t limit;		      /* the last one set on this connection */
	bool dropping;		      /* DROP was sent and is not answered */
	bool left;		      /* nothing is wanted or recorded: the keeper is left alone */
	bool stepping;

	/* Reconnecting to a keeper that is unreachable. */
	sd_event_source *retry;
	bool waiting; /* for the retry */
	unsigned attempts;
	uint64_t backoff;
	enum pp_sideband_why replaced; /* GONE, STUCK: the fate of the previous keeper */
	bool told;		       /* the log has the message that there is none */

	/* CPUs: the generation of each CPU whose ring the keeper has, plus 1; 0: no ring. */
	uint64_t held[PP_CPUS_MAX];
	uint32_t first; /* CPUS_HELD: first CPU of the next page */
	bool known;	/* all pages have arrived */
	bool look;	/* CPUs may have come since */
	struct pp_cpumask missing;

	/* The order to the engine on the keeper's behalf. */
	bool ordering, refused;
	uint64_t connection,
		ordered_on; /* number of the connection; and at the time of the order */
	uint32_t what;	    /* the order's */
	struct pp_keep_cpu page[PP_KEEP_CPUS];
	uint32_t n_page;
	struct pp_fds fds; /* received, to be passed to the keeper */

	struct taking *first_taking, **last_taking;
	struct taking *current; /* the request at the keeper */
	uint32_t last_uid;	/* user of the last request */
};

/* s is all zeroes except the fields that the caller sets. path: the keeper's socket; connects on
 * demand. 0; -errno. */
int sideband_init(struct sideband *s, sd_event *loop, const char *path);
/* Cancels waiting requests (-ECANCELED). The keeper keeps its sideband. Accepts an empty struct. */
void sideband_done(struct sideband *s);

/* Whether to record sideband, and the limit in bytes. */
void sideband_configure(struct sideband *s, bool enabled, uint64_t max_memory);

/* Call this when events or the link to the engine come or go, or an order has completed. */
void sideband_continue(struct sideband *s);

/* CPUs came or went. */
void sideband_came(struct sideband *s);
void sideband_went(struct sideband *s, unsigned cpu);

/* Retries failed steps. */
void sideband_retry(struct sideband *s);

/* No sideband is wanted, and the keeper has not yet confirmed that none is recorded: see `gone`. */
bool sideband_is_leaving(const struct sideband *s);

/* The reason for the start of the recorded sideband, or for its absence. */
enum pp_sideband_why sideband_why(const struct sideband *s, bool keeping);

/* Calls done later, or from within. */
void sideband_take(struct sideband *s, struct taking *taking);
