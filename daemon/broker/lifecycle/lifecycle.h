/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life of events: created, changed, paused, given second names, deleted, and found again.
 * Owns registry and orders, and keeps the one true to what the engine says; start-up, a broken
 * link and a restarted engine take the same way. Charges what events cost. Rights have been
 * checked by those who call.
 */
#pragma once

#include "daemon/broker/lifecycle/orders.h"
#include "daemon/broker/state/charges.h"
#include "daemon/broker/state/registry.h"

/* How it ended. */
struct outcome {
	int error;		       /* 0, or a positive errno value */
	const char *sentence;	       /* with an error: one for people */
	const struct event *event;     /* without: what was made or changed, or what was deleted */
	const struct pp_cpumask *cpus; /* without, of sideband: that descriptors have come for */
};

/* Who waits for it; done is called exactly once, and owns the waiter from then on. */
struct waiter {
	void (*done)(struct waiter *waiter, const struct outcome *outcome);
	uint32_t uid; /* whose turn it takes in the queue of orders */
};

struct lifecycle {
	struct registry registry;
	struct orders *orders;
	struct charges charges;
	uint64_t generation; /* of the reconciliation that runs, or ran last */
	bool synced;	     /* the registry has been filled once */
	bool closed;	     /* nothing is created any more */

	void (*changed)(void *userdata);  /* events, or the link, came or went */
	void (*creating)(void *userdata); /* an event is about to be ordered. May be NULL. */
	/* An event was created, changed, paused, resumed or deleted, through this daemon or, as a
	 * reconciliation finds, without it. e is as it is then. May be NULL. */
	void (*notice)(void *userdata, enum pp_notice_kind kind, const struct event *e);
	void *userdata;
};

/* l is all zeroes but for the hooks, userdata and charges.quota. 0; -errno. */
int lifecycle_init(struct lifecycle *l, sd_event *loop, const char *engine_path);
/* Ends what waits (ECANCELED) and frees everything. Accepts a half-made or empty one. */
void lifecycle_done(struct lifecycle *l);

/*
 * Each of these orders something and returns 0: waiter->done will be called, also from within.
 * Or nothing has happened:
 * -EAGAIN (no engine); -ENOMEM; -EDQUOT (over a limit: see quota_sentence);
 * -EBUSY (the event is being created or changed); -EALREADY (it is being deleted);
 * -ESHUTDOWN (it would create something, and that is over).
 */

/* Reserves the name, charges spec->creator, and orders the event. Also -EEXIST (the name is
 * there, or reserved); another -errno of finding out which CPUs are online. */
int lifecycle_create(struct lifecycle *l, const struct pp_spec *spec,
		     const struct pp_parsed *parsed, struct waiter *waiter);

/* Reserves the name in spec (ns, name, owner, group, mode, creator and flags count) for the rings
 * of the target, or of the event whose rings those are. Also -EEXIST. */
int lifecycle_alias(struct lifecycle *l, struct event *target, const struct pp_spec *spec,
		    struct waiter *waiter);

/* what: PP_CHANGE_* bits; of spec filter, data_size and max_rate count; parsed: nodes of the
 * filter, or NULL. Also -EMLINK (the event has other names, which share its rings). */
int lifecycle_change(struct lifecycle *l, struct event *e, uint32_t what,
		     const struct pp_spec *spec, const struct pp_parsed *parsed,
		     struct waiter *waiter);

/* One that is so already is done at once. An event's other names are paused with it. Also
 * -EMLINK (it is a second name itself). */
int lifecycle_pause(struct lifecycle *l, struct event *e, bool pause, struct waiter *waiter);

int lifecycle_delete(struct lifecycle *l, struct event *e, struct waiter *waiter);

/*
 * These CPUs are online: the event gets a ring on each that it wants and has none on, and what died
 * with a CPU is attached anew. It stays in the state it is in, and other orders about it may be
 * given meanwhile. e is not a second name. -EBUSY only while it is being created or deleted.
 */
int lifecycle_cpus(struct lifecycle *l, struct event *e, const struct pp_cpumask *cpus,
		   struct waiter *waiter);

/*
 * The perf events of sideband on these CPUs (at most PP_SIDEBAND_CPUS), in the order of their
 * numbers, or, with PP_SIDEBAND_TASKS and no CPUs, the iterators of what runs. They come into fds,
 * which is empty, and the caller's for as long as the waiter's.
 */
int lifecycle_sideband(struct lifecycle *l, const struct pp_cpumask *cpus, uint32_t what,
		       struct pp_fds *fds, struct waiter *waiter);

/* The sentence on such a result, about ns/name. */
void lifecycle_explain(const struct lifecycle *l, int err, const char *ns, const char *name,
		       char *buf, size_t size);

/* Whether it is so, and whether nothing is under way that will make it otherwise. */
bool lifecycle_is_paused(const struct event *e);

/* The event that e's rings belong to: itself, unless it is a second name. */
struct event *lifecycle_target(struct lifecycle *l, struct event *e);

/* Makes the files of all events of ns belong to its group, with its mode. 0; -EAGAIN; -ENOMEM.
 * What goes wrong later is logged. */
int lifecycle_rights(struct lifecycle *l, const struct namespace *ns);
