/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life of events: creation, change, pause, second names, deletion, and recovery. Owns registry
 * and orders, and keeps the registry true to the engine's state; start-up, a broken link and a
 * restarted engine take the same path. Charges the cost of events. The callers have checked rights.
 */
#pragma once

#include "daemon/broker/lifecycle/orders.h"
#include "daemon/broker/state/charges.h"
#include "daemon/broker/state/registry.h"
#include "daemon/broker/state/tapes.h"

/* The result of an order. */
struct outcome {
	int error;		   /* 0, or a positive errno value */
	const char *sentence;	   /* with an error: the message */
	const struct event *event; /* that was made, changed or deleted; NULL: it is gone already */
	/* on success of an order for sideband or AUX areas: the CPUs with a descriptor */
	const struct pp_cpumask *cpus;
	uint32_t total; /* lifecycle_hand_out: descriptors there are */
};

/* The party that waits for an order; done is called exactly once, and then owns the waiter. */
struct waiter {
	void (*done)(struct waiter *waiter, const struct outcome *outcome);
	uint32_t uid; /* the user whose turn the order takes in the queue */
};

struct lifecycle {
	struct registry registry;
	struct orders *orders;
	struct charges charges;
	struct tapes tapes;
	uint64_t generation; /* of the current or last reconciliation */
	bool synced;	     /* the registry has been filled once */
	bool closed;	     /* creates nothing any more */

	/* Events or charges changed, or the link went up or down. */
	void (*changed)(void *userdata);
	void (*creating)(
		void *userdata); /* Called before an event's creation is ordered. May be NULL. */
	/* An event was created, changed, paused, resumed or deleted, by this daemon or, as a
	 * reconciliation finds, without it. e shows the new state. May be NULL. */
	void (*notice)(void *userdata, enum pp_notice_kind kind, const struct event *e);
	/* The trigger e was fired by an order; by: the firing. May be NULL. */
	void (*fired)(void *userdata, const struct event *e, const struct pp_fired *by);
	/* A trigger has paused e; told again to a daemon that starts. May be NULL. */
	void (*paused_by)(void *userdata, const struct event *e, const struct pp_fired *by);
	/* The name went because its rings did, not by a request of its own. May be NULL. */
	void (*ended)(void *userdata, const struct event *e);
	void *userdata;
};

/* l is all zeroes except the hooks, userdata and charges.quota. 0; -errno. */
int lifecycle_init(struct lifecycle *l, sd_event *loop, const char *engine_path);
/* Cancels waiting orders (ECANCELED) and frees everything. Accepts a half-made or empty struct. */
void lifecycle_done(struct lifecycle *l);

/*
 * Each of these queues an order and returns 0: waiter->done is called later, or from within.
 * An error means that nothing has happened:
 * -EAGAIN (no engine); -ENOMEM; -EDQUOT (over a limit: see quota_sentence);
 * -EBUSY (the event is being created or changed); -EALREADY (it is being deleted);
 * -ESHUTDOWN (the order would create something, and the daemon is ending).
 */

/* Reserves the name, charges spec->creator, and orders the event. trigger, target, program: as in struct
 * pp_order; NULL and 0: none. Also -EEXIST (the name exists, or is reserved); -ESTALE (the condition does
 * not fit the event); another -errno if the online CPUs cannot be read. */
int lifecycle_create(struct lifecycle *l, const struct pp_spec *spec,
		     const struct pp_parsed *parsed, const struct pp_trigger_spec *trigger,
		     const struct pp_msg_target *target, uint32_t program, struct waiter *waiter);

/* Reserves the name in spec (uses ns, name, owner, group, mode, creator and flags) for the rings of
 * the target, or of the event whose rings the target shares. Also -EEXIST. */
int lifecycle_alias(struct lifecycle *l, struct event *target, const struct pp_spec *spec,
		    struct waiter *waiter);

/* what: PP_CHANGE_* bits; uses spec's filter, data_size, max_rate, period, samples, flags; parsed: nodes of the filter,
 * or NULL. Also -EMLINK (other names of the event share its rings). */
int lifecycle_change(struct lifecycle *l, struct event *e, uint32_t what,
		     const struct pp_spec *spec, const struct pp_parsed *parsed,
		     struct waiter *waiter);

/* Succeeds at once if the event is in that state already. An event's other names are paused with
 * it. Also -EMLINK (e is a second name). */
int lifecycle_pause(struct lifecycle *l, struct event *e, bool pause, struct waiter *waiter);

int lifecycle_delete(struct lifecycle *l, struct event *e, struct waiter *waiter);

/* ── events on perf events that their creators opened ── */

/*
 * As lifecycle_create, but what is there then is a draft, which lifecycle_attach makes an event. On success
 * fds, which is empty and outlives the waiter, has the program to be attached; the waiter is told the
 * event, whose state stays CREATING. Then lifecycle_attach or lifecycle_abandon must be called.
 */
int lifecycle_adopt(struct lifecycle *l, const struct pp_spec *spec, const struct pp_parsed *parsed,
		    struct pp_fds *fds, struct waiter *waiter);
/* The event of an adoption that is under way, or NULL. */
struct event *lifecycle_adoption(const struct lifecycle *l, const char *ns, const char *name,
				 uint64_t id);
/* How many adoptions of that user there are, also those of which no end or no beginning is known yet. */
size_t lifecycle_adoptions(const struct lifecycle *l, uint32_t uid);
/* Whether it is one of which its client has to say more. */
bool lifecycle_is_waiting(const struct lifecycle *l, const struct event *e);
/* Links, by the kernel's ids, at most PP_TARGETS_MAX; unless there are more, it is an event then. After a
 * failure there is no adoption any more. */
int lifecycle_attach(struct lifecycle *l, struct event *e, const uint64_t *links, size_t n,
		     bool more, struct waiter *waiter);
/* Ends it, at the expense of its creator, who is charged until it has ended. waiter may be NULL. -EBUSY while an order
 * about it is under way, whose waiter is told the outcome. */
int lifecycle_abandon(struct lifecycle *l, struct event *e, struct waiter *waiter);

/* Descriptors that keep the event alive, from number `first` on; fds as above. */
int lifecycle_hand_out(struct lifecycle *l, struct event *e, uint32_t first, struct pp_fds *fds,
		       struct waiter *waiter);
/* A file of what the event consists of (proto/descriptor.h); fds as above. */
int lifecycle_describe(struct lifecycle *l, struct event *e, struct pp_fds *fds,
		       struct waiter *waiter);
/* The event goes, and whoever has all of its descriptors keeps it alive. Also -EMLINK. */
int lifecycle_give_back(struct lifecycle *l, struct event *e, struct waiter *waiter);

/*
 * These CPUs are online: the event gets its missing rings there, and perf events that died with a
 * CPU are attached anew. The event keeps its state, and other orders about it may be given
 * meanwhile. e is not a second name. -EBUSY only while it is being created or deleted.
 */
int lifecycle_cpus(struct lifecycle *l, struct event *e, const struct pp_cpumask *cpus,
		   struct waiter *waiter);

/* ── triggers and their targets; these orders, too, leave an event its state ── */

/* needs: PP_ARM_* bits. PP_ARM_SWAP: the event gets a second set of rings, which its creator is charged
 * for, or, if there is no room for that, none; but -EDQUOT while it has a tape, whose memory is to come
 * back. An armed event gets only the others. -EBUSY: see above. */
int lifecycle_arm(struct lifecycle *l, struct event *e, uint32_t needs, struct waiter *waiter);
/* Whether there is room for a second set of rings of an event that is armed without. If not, that is
 * logged, and final as long as it is armed and needs one; but while it has a tape it is only not yet. */
bool lifecycle_may_swap(struct lifecycle *l, struct event *e);
int lifecycle_disarm(struct lifecycle *l, struct event *e, struct waiter *waiter);

/* These are the targets of the trigger e; n is at most PP_TARGETS_MAX. */
int lifecycle_aim(struct lifecycle *l, struct event *e, const uint64_t *targets, size_t n,
		  struct waiter *waiter);

/* A trigger may have turned the event: what it had recorded becomes a tape. If there is no room for
 * another set of rings, it is not armed again. Or one may have stopped it: it is paused; nothing else
 * happens while it has a tape. */
int lifecycle_turn(struct lifecycle *l, struct event *e, struct waiter *waiter);

/* By hand; or overdue: for each pair that should have ended. waiter may be NULL. */
int lifecycle_fire(struct lifecycle *l, struct event *e, bool overdue, struct waiter *waiter);

/* The namespace whose rights a tape has: as it is now, or, if it is gone, or another user has made it anew, as
 * it was when the tape was made. (The configuration may give it to another user, with all that is in it.) Sets
 * tape->event.ns to it, which is good until the registry changes. */
const struct namespace *lifecycle_tape_ns(const struct lifecycle *l, struct tape *tape);

/* The tape with this id is saved, or not wanted: it goes when the order is done. -ENOENT. */
int lifecycle_release(struct lifecycle *l, uint64_t id, struct waiter *waiter);

/*
 * Fetches the perf events of sideband on these CPUs (at most PP_SIDEBAND_CPUS), in the order of
 * their numbers, or, with PP_SIDEBAND_TASKS and no CPUs, the iterators over running processes. The
 * descriptors go into fds, which is empty, belongs to the caller and outlives the waiter.
 */
int lifecycle_sideband(struct lifecycle *l, const struct pp_cpumask *cpus, uint32_t what,
		       struct pp_fds *fds, struct waiter *waiter);

/* The same for the perf events that trace into e's AUX areas there. e is not a second name. */
int lifecycle_aux(struct lifecycle *l, struct event *e, const struct pp_cpumask *cpus,
		  struct pp_fds *fds, struct waiter *waiter);

/* The error message for such a result, about ns/name. */
void lifecycle_explain(const struct lifecycle *l, int err, const char *ns, const char *name,
		       char *buf, size_t size);

/* Whether the event is paused, and no order under way will change that. */
bool lifecycle_is_paused(const struct event *e);

/* The event that owns e's rings: e itself, unless it is a second name. */
struct event *lifecycle_target(struct lifecycle *l, struct event *e);

/* Gives the files of all events of ns its group and mode. 0; -EAGAIN; -ENOMEM. Later failures are
 * logged. */
int lifecycle_rights(struct lifecycle *l, const struct namespace *ns);
