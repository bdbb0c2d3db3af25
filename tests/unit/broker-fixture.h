/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A broker in the test's process: the real peers, requests, life of events and link, with a fake
 * engine on the same event loop that a test can make wait, die and lie.
 */
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/broker/config/limits.h"
#include "daemon/broker/hotplug/missing-rings.h"
#include "daemon/broker/request/request.h"
#include "daemon/broker/triggers/triggers.h"
#include "proto/macro.h"
#include "proto/packet.h"
#include "tests/unit/needs.h"

#define MEMBER 61997U /* a uid in no group but its own */
#define TEAM 61998U
#define FAKE_EVENTS 256
#define FAKE_TRIGGERS 16
#define FAKE_TAPES 160

enum fake_mood {
	FAKE_CALM,
	FAKE_DIES_BEFORE, /* it carries out an order */
	FAKE_DIES_AFTER,  /* … and before it answers */
	FAKE_DIES_PAUSED, /* … and the next one cannot start the events again */
	FAKE_FAILS,
	FAKE_FAILS_LATE, /* having carried out most of the order */
	FAKE_LIES_SIZE,
	FAKE_LIES_SERIAL,
	FAKE_LIES_ABI,
	FAKE_LIES_NAME,
};

struct fake_trigger {
	uint64_t id;
	struct pp_trigger_spec spec;
	uint64_t targets[PP_TARGETS_MAX]; /* what it is aimed at */
	size_t n_targets;
	struct pp_fired fired; /* last */
};

struct fake_tape {
	struct pp_orphans orphans; /* id: the tape's */
	struct pp_event event;
	struct pp_fired by;
};

struct fake_adoption {
	struct pp_event event;
	unsigned links;
};

struct fake_engine {
	sd_event *loop;
	sd_event_source *listen_io, *io;
	char path[128];
	int listen, fd;
	struct pp_event events[FAKE_EVENTS];
	size_t n;
	struct pp_orphans held[FAKE_EVENTS]; /* orphan rings of events while `hold` is set */
	size_t n_held;
	bool holds;
	uint64_t last_id;
	enum fake_mood mood;
	unsigned moods;		   /* how many more orders the mood applies to */
	uint32_t moody;		   /* only to those of this type; 0: of any */
	int error;		   /* of FAKE_FAILS; 0: E2BIG */
	unsigned holds_after;	   /* does not read orders after so many; 0: reads all */
	bool hold;		   /* does not read orders */
	uint32_t sources;	   /* sources of each event */
	struct pp_cpumask offline; /* AUX: it opens nothing there */
	struct fake_trigger triggers[FAKE_TRIGGERS]; /* deleted ones, too */
	size_t n_triggers;
	struct fake_tape tapes[FAKE_TAPES];
	size_t n_tapes;
	struct pp_msg_target targets[FAKE_EVENTS]; /* by the event's id, as far as it fits */
	struct pp_fired turned_by[FAKE_EVENTS];	   /* likewise */
	bool single[FAKE_EVENTS];		   /* likewise: armed without a second set */
	char did[4096];	  /* the orders about triggers: "arm1 aim2:1 turn1 off1 fire2 give3" */
	uint64_t listing; /* serial of the current enumeration, or 0 */
	bool reticent;	  /* does not say that it has listed all */
	size_t listed;
	struct fake_adoption adoptions[FAKE_TRIGGERS]; /* that are under way */
	size_t n_adoptions;
	uint32_t parts; /* descriptors that keep an event alive */
	unsigned given_up, given_back;
	struct pp_order last; /* without its parsed event */
	uint32_t last_sources, last_nodes;
	unsigned enumerated, created, deleted, changed, paused, aliased, given_rights, cpus,
		sideband, aux;
};

struct broker {
	sd_event *loop;
	char dir[64], registry[96], dumper[96], keeper[96];
	struct config config;
	struct quota quota;
	struct lifecycle lifecycle;
	struct peers peers;
	struct watchers watchers;
	struct hotplug hotplug; /* only its online set: CPUs 0 to 3 */
	struct missing_rings missing_rings;
	struct triggers triggers;
	struct sideband sideband; /* for all four; a test that wants it configures it */
	struct auxtrace auxtrace; /* a test that wants it begins it */
	struct service service;
	struct fake_engine engine;
	unsigned changes;
	unsigned notices[PP_NOTICE_FIRED + 1]; /* of each kind */
	unsigned paused_by;		       /* pauses by triggers, */
	unsigned known;			       /* and by those that were known */
	unsigned ready;			       /* tapes that can be saved */
	size_t tapes_at_ready; /* how many there were when the last of them was told */
};

/* A client's end; a test takes one reply at a time. */
struct client {
	struct broker *broker;
	int fd;
	uint32_t serial;
	struct pp_header header;
	union pp_body body;
	struct pp_fds fds;
};

/* ── the fake engine ────────────────────────────────────────────────────────────────────── */

static struct pp_answer fake_answer;

static void fake_hang_up(struct fake_engine *f)
{
	f->io = sd_event_source_disable_unref(f->io);
	f->fd = close_fd(f->fd);
	f->listing = 0;
	f->n_adoptions = 0;
}

static _unused_ struct fake_trigger *fake_trigger(struct fake_engine *f, uint64_t id)
{
	for (size_t i = 0; i < f->n_triggers; i++)
		if (f->triggers[i].id == id)
			return &f->triggers[i];
	return NULL;
}

/* Returns false if there is no room now. */
static bool fake_send(struct fake_engine *f, uint32_t type, uint64_t serial,
		      const struct pp_event *event, const struct pp_orphans *orphans)
{
	size_t size = sizeof(fake_answer);

	fake_answer.abi = PP_ORDER_ABI;
	fake_answer.type = type;
	fake_answer.serial = serial;
	memset(&fake_answer.event, 0, sizeof(fake_answer.event));
	memset(&fake_answer.orphans, 0, sizeof(fake_answer.orphans));
	memset(&fake_answer.trigger, 0, sizeof(fake_answer.trigger));
	if (event)
		fake_answer.event = *event;
	if (event && event->paused && event->now & PP_NOW_STOPPED)
		fake_answer.by = f->turned_by[event->origin];
	if (event && event->spec.flags & PP_EVENT_TRIGGER)
		fake_answer.trigger = fake_trigger(f, event->id)->spec;
	memset(&fake_answer.target, 0, sizeof(fake_answer.target));
	if (event && event->spec.flags & PP_EVENT_BOUND)
		fake_answer.target = f->targets[event->id % FAKE_EVENTS];
	if (orphans)
		fake_answer.orphans = *orphans;
	if (type == PP_ANSWER_DONE && f->moods > 0 && event) {
		f->moods--;
		if (f->mood == FAKE_LIES_SIZE)
			size--;
		else if (f->mood == FAKE_LIES_SERIAL)
			fake_answer.serial++;
		else if (f->mood == FAKE_LIES_ABI)
			fake_answer.abi++;
		else if (f->mood == FAKE_LIES_NAME)
			fake_answer.event.spec.name[0]++;
		else
			f->moods++;
	}
	/* If the broker has hung up, the next receive notices. */
	if (send(f->fd, &fake_answer, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
		return true;
	ck_assert(errno == EPIPE || errno == EAGAIN);
	return errno == EPIPE;
}

static bool fake_send_tape(struct fake_engine *f, uint64_t serial, const struct fake_tape *tape,
			   bool is_new)
{
	struct pp_orphans orphans = tape->orphans;
	bool sent;

	if (!is_new) /* HELD has it */
		orphans.bytes = 0;
	fake_answer.by = tape->by;
	sent = fake_send(f, PP_ANSWER_TAPE, serial, &tape->event, &orphans);
	memset(&fake_answer.by, 0, sizeof(fake_answer.by));
	return sent;
}

/* Bytes of a ring. */
static uint64_t fake_ring(const struct pp_event *e)
{
	return PP_RING_PAGE + e->spec.data_size + 4096;
}

static void fake_fill(struct pp_event *e)
{
	e->memory = 2 * fake_ring(e);
	e->rings = (struct pp_cpumask){ 0 };
	pp_cpumask_set(&e->rings, 0);
	pp_cpumask_set(&e->rings, 3);
}

static struct pp_event *fake_make(struct fake_engine *f, const struct pp_spec *spec)
{
	struct pp_event *e = &f->events[f->n++];

	ck_assert_uint_le(f->n, FAKE_EVENTS);
	*e = (struct pp_event){
		.id = ++f->last_id,
		.created = 1,
		.recorder = PP_RECORDER_GENERIC,
		.sample_type = 1,
		.header_size = PP_RING_PAGE,
		.spill_size = 4096,
		.n_sources = f->sources,
		.set = 1,
		.spec = *spec,
	};
	e->origin = e->id;
	fake_fill(e);
	return e;
}

static struct pp_event *fake_find(struct fake_engine *f, uint64_t id)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->events[i].id == id)
			return &f->events[i];
	return NULL;
}

/* In the slots of triggers are tapes, whichever name has them. */
static void fake_retarget(struct fake_engine *f, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->triggers); i++)
		for (size_t k = 0; k < f->triggers[i].n_targets; k++)
			if (f->triggers[i].targets[k] == from)
				f->triggers[i].targets[k] = to;
}

/* The event's oldest alias inherits its rings, if that is allowed. Returns its id, or 0 if there is
 * none. */
static uint64_t fake_bequeath(struct fake_engine *f, const struct pp_event *e, bool allowed)
{
	struct pp_event *successor = NULL;

	for (size_t i = 0; i < f->n; i++) {
		struct pp_event *other = &f->events[i];

		if (other->shares != e->id)
			continue;
		if (!allowed) {
			f->events[i--] = f->events[--f->n];
		} else if (!successor) {
			successor = other;
			successor->shares = 0;
			successor->memory = e->memory;
			successor->now = e->now;
			fake_retarget(f, e->id, successor->id);
		} else {
			other->shares = successor->id;
		}
	}
	return successor ? successor->id : 0;
}

static struct pp_orphans *fake_hold(struct fake_engine *f, const struct pp_event *e)
{
	struct pp_orphans *r = &f->held[f->n_held++];

	ck_assert_uint_le(f->n_held, FAKE_EVENTS);
	*r = (struct pp_orphans){
		.id = ++f->last_id,
		.bytes = e->memory,
		.creator = e->spec.creator,
	};
	memcpy(r->ns, e->spec.ns, sizeof(r->ns));
	return r;
}

static _unused_ bool fake_unmake(struct fake_engine *f, uint64_t id)
{
	struct pp_event *e = fake_find(f, id);

	if (!e)
		return false;
	memmove(e, e + 1, (&f->events[f->n] - (e + 1)) * sizeof(*e));
	f->n--;
	return true;
}

static bool fake_feels(struct fake_engine *f, enum fake_mood mood)
{
	return f->mood == mood && f->moods > 0 && (!f->moody || f->moody == f->last.type);
}

static bool fake_dies(struct fake_engine *f, enum fake_mood mood)
{
	if (!fake_feels(f, mood))
		return false;
	f->moods--;
	fake_hang_up(f);
	return true;
}

/* Sends as much of the enumeration as there is room for: broker and engine share a thread here. */
static void fake_list(struct fake_engine *f)
{
	bool room = true;
	size_t i;

	while (room && f->listed < f->n) {
		room = fake_send(f, PP_ANSWER_FOUND, f->listing, &f->events[f->listed], NULL);
		f->listed += room;
	}
	while (room && f->listed < f->n + f->n_held) {
		room = fake_send(f, PP_ANSWER_HELD, f->listing, NULL, &f->held[f->listed - f->n]);
		f->listed += room;
	}
	while (room && (i = f->listed - f->n - f->n_held) < f->n_tapes) {
		room = fake_send(f, PP_ANSWER_HELD, f->listing, NULL, &f->tapes[i].orphans) &&
		       fake_send_tape(f, f->listing, &f->tapes[i], false);
		f->listed += room;
	}
	if (room && !f->reticent && fake_send(f, PP_ANSWER_DONE, f->listing, NULL, NULL))
		f->listing = 0;
	sd_event_source_set_io_events(f->io, f->listing && !f->reticent ? EPOLLOUT : EPOLLIN);
}

static void fake_fail(struct fake_engine *f, uint64_t serial, int error, const char *sentence,
		      const struct pp_event *event)
{
	fake_answer.error = error;
	snprintf(fake_answer.sentence, sizeof(fake_answer.sentence), "%s", sentence);
	fake_send(f, PP_ANSWER_FAILED, serial, event, NULL);
	fake_answer.error = 0;
	fake_answer.sentence[0] = '\0';
}

/* Reports orphan rings that have been freed, without an order. */
static _unused_ void fake_release(struct fake_engine *f, uint64_t left)
{
	struct pp_orphans *r = &f->held[f->n_held - 1];

	r->bytes = left;
	ck_assert(fake_send(f, PP_ANSWER_RELEASED, 0, NULL, r));
	if (!left)
		f->n_held--;
}

/* ── what the fake engine does about triggers ───────────────────────────────────────────── */

static _printf_(2, 3) void fake_log(struct fake_engine *f, const char *fmt, ...)
{
	size_t n = strlen(f->did);
	va_list args;

	va_start(args, fmt);
	n += (size_t)vsnprintf(f->did + n, sizeof(f->did) - n, fmt, args);
	va_end(args);
	ck_assert_uint_lt(n, sizeof(f->did));
}

static void fake_log_order(struct fake_engine *f, const char *what, uint64_t id)
{
	fake_log(f, "%s%s%llu", *f->did ? " " : "", what, (unsigned long long)id);
}

/* Bytes of a set of rings. */
static uint64_t fake_set(const struct pp_event *e)
{
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(e->rings.bits); i++)
		n += (uint64_t)__builtin_popcountll(e->rings.bits[i]);
	return n * fake_ring(e);
}

static void fake_arm(struct fake_engine *f, struct pp_event *e, bool swap)
{
	if (e->now & (PP_NOW_ARMED | PP_NOW_TURNED | PP_NOW_CLOSING))
		return;
	e->now |= PP_NOW_ARMED;
	e->memory += swap ? fake_set(e) : 0;
	e->now |= swap ? PP_NOW_SWAP : PP_NOW_STOPS;
	f->single[e->id] = !swap;
}

/* The tape, or NULL: nothing has turned it. */
static const struct fake_tape *fake_turn(struct fake_engine *f, struct pp_event *e, uint32_t what)
{
	struct fake_tape *tape = &f->tapes[f->n_tapes];

	if (!(e->now & PP_NOW_TURNED)) /* or its window is open */
		return NULL;
	if (e->now & PP_NOW_STOPPED) {
		e->memory -= e->now & PP_NOW_SWAP ? fake_set(e) : 0;
		e->now = PP_NOW_STOPPED;
		e->paused = 1;
		return NULL;
	}
	if (what & PP_TURN_STOPPED)
		return NULL;
	ck_assert_uint_lt(f->n_tapes, FAKE_TAPES);
	if (f->single[e->id]) { /* the event itself; not in the list */
		*tape = (struct fake_tape){
			.orphans.id = e->id,
			.event = *e,
			.by = f->turned_by[e->id],
		};
		memcpy(tape->orphans.ns, e->spec.ns, sizeof(tape->orphans.ns));
		return tape;
	}
	*tape = (struct fake_tape){
		.orphans.id = ++f->last_id,
		.orphans.bytes = fake_set(e),
		.orphans.creator = e->spec.creator,
		.event = *e,
		.by = f->turned_by[e->id],
	};
	memcpy(tape->orphans.ns, e->spec.ns, sizeof(tape->orphans.ns));
	tape->event.now = 0;
	tape->event.memory = tape->orphans.bytes;
	f->n_tapes++;
	e->now &= ~(PP_NOW_TURNED | PP_NOW_SWAP);
	e->memory -= fake_set(e);
	e->set++;
	if (what & PP_TURN_AGAIN)
		fake_arm(f, e, true);
	return tape;
}

static const struct fake_tape *fake_disarm(struct fake_engine *f, struct pp_event *e)
{
	const struct fake_tape *tape = fake_turn(f, e, 0);

	if (e->now & PP_NOW_ARMED && !f->single[e->id])
		e->memory -= fake_set(e);
	e->now &= ~(PP_NOW_ARMED | PP_NOW_WINDOWS | PP_NOW_STOPS | PP_NOW_SWAP);
	return tape;
}

static void fake_aim(struct fake_engine *f, const struct pp_order *o)
{
	struct fake_trigger *t = fake_trigger(f, o->id);

	ck_assert_ptr_nonnull(t);
	fake_log_order(f, "aim", o->id);
	t->n_targets = 0;
	for (uint32_t i = 0; i < o->what; i++) {
		struct pp_event *e = fake_find(f, o->targets[i]);

		fake_log(f, "%c%llu", i ? ',' : ':', (unsigned long long)o->targets[i]);
		if (e && e->now & (PP_NOW_ARMED | PP_NOW_TURNED | PP_NOW_CLOSING))
			t->targets[t->n_targets++] = e->id;
	}
}

/* A trigger fires: in the kernel, so the broker learns nothing of it here. */
static _unused_ void fake_fire(struct fake_engine *f, uint64_t id, bool by_hand)
{
	struct fake_trigger *t = fake_trigger(f, id);

	ck_assert_ptr_nonnull(t);
	t->fired = (struct pp_fired){
		.trigger = id,
		.number = t->fired.number + 1,
		.time = 1000 * (t->fired.number + 1),
		.cpu = 3,
		.pid = 4711,
		.tid = 4712,
		.by_hand = by_hand,
		.comm = "sh",
		.action = t->spec.action,
	};
	for (size_t i = 0; i < t->n_targets; i++) {
		struct pp_event *e = fake_find(f, t->targets[i]);
		bool stop = t->spec.action == PP_ACTION_PAUSE;

		if (!e || !(e->now & PP_NOW_ARMED) || (stop && !(e->now & PP_NOW_STOPS)))
			continue;
		ck_assert_uint_lt(e->id, FAKE_EVENTS);
		e->now |= stop ? PP_NOW_STOPPED : 0;
		e->now ^= PP_NOW_ARMED | (t->spec.after && e->now & PP_NOW_WINDOWS ? PP_NOW_CLOSING
										   : PP_NOW_TURNED);
		f->turned_by[e->id] = t->fired;
	}
}

/* A record, or the time, ends the window of an event. */
static _unused_ void fake_close(struct fake_engine *f, uint64_t id)
{
	struct pp_event *e = fake_find(f, id);

	ck_assert(e && e->now & PP_NOW_CLOSING);
	e->now ^= PP_NOW_CLOSING | PP_NOW_TURNED;
}

/* The memory is given back later: fake_give_back(). */
static bool fake_drop_tape(struct fake_engine *f, uint64_t id)
{
	for (size_t i = 0; i < f->n_tapes; i++) {
		struct fake_tape *tape = &f->tapes[i];

		if (tape->orphans.id != id)
			continue;
		ck_assert_uint_lt(f->n_held, FAKE_EVENTS);
		f->held[f->n_held++] = tape->orphans;
		memmove(tape, tape + 1,
			(size_t)(&f->tapes[f->n_tapes] - (tape + 1)) * sizeof(*tape));
		f->n_tapes--;
		return true;
	}
	return false;
}

/* Carries an order about triggers out. Returns whether there is such an event or tape; the tape of
 * a TURN or DISARM in *ret. */
static bool fake_act_aside(struct fake_engine *f, const struct pp_order *o,
			   const struct fake_tape **ret)
{
	struct pp_event *e = fake_find(f, o->id);

	if (o->type == PP_ORDER_RELEASE) {
		fake_log_order(f, "give", o->id);
		if (e && e->now & PP_NOW_TURNED) {
			e->now ^= PP_NOW_ARMED | PP_NOW_TURNED;
			return true;
		}
		return fake_drop_tape(f, o->id);
	}
	if (!e)
		return false;
	switch (o->type) {
	case PP_ORDER_ARM:
		fake_log_order(f, "arm", o->id);
		fake_log(f, "%s%s%s", o->what & PP_ARM_SWAP ? "" : "-",
			 o->what & PP_ARM_WINDOWS ? "w" : "", o->what & PP_ARM_STOPS ? "s" : "");
		ck_assert_uint_eq(e->shares, 0);
		fake_arm(f, e, o->what & PP_ARM_SWAP);
		e->now |= o->what & PP_ARM_WINDOWS ? PP_NOW_WINDOWS : 0;
		e->now |= o->what & PP_ARM_STOPS ? PP_NOW_STOPS : 0;
		break;
	case PP_ORDER_DISARM:
		fake_log_order(f, "off", o->id);
		*ret = fake_disarm(f, e);
		break;
	case PP_ORDER_AIM:
		fake_aim(f, o);
		break;
	case PP_ORDER_TURN:
		fake_log_order(f, "turn", o->id);
		fake_log(f, "%s", o->what & PP_TURN_STOPPED ? "!" : o->what ? "" : "-");
		*ret = fake_turn(f, e, o->what);
		break;
	default:
		fake_log_order(f, "fire", o->id);
		fake_fire(f, o->id, true);
	}
	return true;
}

/* ── orders ─────────────────────────────────────────────────────────────────────────────── */

/* Adds rings on the wanted CPUs that have none. */
static void fake_add_cpus(struct fake_engine *f, struct pp_event *e, const struct pp_cpumask *cpus)
{
	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		if (pp_cpumask_test(&e->rings, cpu) ||
		    (!(e->spec.flags & PP_EVENT_ALL_CPUS) && !pp_cpumask_test(&e->spec.cpus, cpu)))
			continue;
		pp_cpumask_set(&e->rings, cpu);
		e->memory += fake_ring(e);
	}
	e->now = 0;
	for (size_t i = 0; i < f->n; i++)
		if (f->events[i].shares == e->id)
			f->events[i].rings = e->rings;
}

/* Carries out the order and returns the event afterwards. false: there is no such event. */
static bool fake_act(struct fake_engine *f, const struct pp_order *o, struct pp_event *ret,
		     struct pp_orphans *ret_orphans, const struct fake_tape **ret_tape)
{
	struct pp_event *e = fake_find(f, o->id);

	*ret_orphans = (struct pp_orphans){ 0 };
	*ret_tape = NULL;
	if (o->type >= PP_ORDER_ARM && o->type <= PP_ORDER_RELEASE) {
		bool there = fake_act_aside(f, o, ret_tape);

		if (*ret_tape && o->type == PP_ORDER_TURN && (*ret_tape)->orphans.bytes)
			*ret_orphans = (*ret_tape)->orphans;
		*ret = e ? *e : (struct pp_event){};
		return there;
	}
	if (o->id && !e)
		return false;
	if (o->type == PP_ORDER_CHANGE || o->type == PP_ORDER_CPUS || o->type == PP_ORDER_PAUSE)
		*ret_tape = fake_disarm(f, e);
	switch (o->type) {
	case PP_ORDER_CREATE:
		f->created++;
		e = fake_make(f, &o->spec);
		f->targets[e->id % FAKE_EVENTS] = o->target;
		if (!(o->spec.flags & PP_EVENT_TRIGGER))
			break;
		ck_assert_uint_lt(f->n_triggers, FAKE_TRIGGERS);
		f->triggers[f->n_triggers++] =
			(struct fake_trigger){ .id = e->id, .spec = o->trigger };
		break;
	case PP_ORDER_ALIAS:
		f->aliased++;
		ck_assert_uint_eq(e->shares, 0);
		ret->spec = o->spec;
		e = fake_make(f, &ret->spec);
		e->origin = fake_find(f, o->id)->origin;
		e->now = fake_find(f, o->id)->now;
		e->shares = o->id;
		e->memory = 0;
		break;
	case PP_ORDER_CHANGE:
		f->changed++;
		if (o->what & PP_CHANGE_FILTER)
			memcpy(e->spec.filter, o->spec.filter, sizeof(e->spec.filter));
		if (o->what & PP_CHANGE_MAX_RATE)
			e->spec.max_rate = o->spec.max_rate;
		if (o->what & (PP_CHANGE_CHECKPOINT | PP_CHANGE_PERIOD))
			e->spec.flags = o->spec.flags;
		if (o->what & PP_CHANGE_PERIOD) {
			e->spec.period = o->spec.period;
			e->spec.samples = o->spec.samples;
		}
		if (o->what & PP_CHANGE_BUFFER) {
			*ret_orphans = *fake_hold(f, e);
			e->spec.data_size = o->spec.data_size;
			e->set++;
			fake_fill(e);
		}
		break;
	case PP_ORDER_CPUS:
		f->cpus++;
		fake_add_cpus(f, e, &o->spec.cpus);
		break;
	case PP_ORDER_PAUSE:
		f->paused++;
		for (size_t i = 0; i < f->n; i++)
			if (f->events[i].id == o->id || f->events[i].shares == o->id)
				f->events[i].paused = o->what;
		e->now &= o->what ? ~0U : ~PP_NOW_STOPPED;
		break;
	case PP_ORDER_RIGHTS:
		f->given_rights++;
		for (size_t i = 0; i < f->n; i++)
			if (strcmp(f->events[i].spec.ns, o->spec.ns) == 0) {
				f->events[i].spec.owner = o->spec.owner;
				f->events[i].spec.group = o->spec.group;
				f->events[i].spec.mode = o->spec.mode;
			}
		return true;
	default:
		f->deleted++;
		f->given_back += o->what & PP_DELETE_CLAIMED;
		*ret = *e;
		if (!ret->shares)
			ret->shares = fake_bequeath(f, ret, o->allowance.sources > 0);
		if (!ret->shares && f->holds)
			*ret_orphans = *fake_hold(f, ret);
		fake_unmake(f, o->id);
		return true;
	}
	*ret = *e;
	return true;
}

/* Any descriptors will do. */
static void fake_sideband(struct fake_engine *f, const struct pp_order *o)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };

	f->sideband++;
	fake_answer = (struct pp_answer){
		.abi = PP_ORDER_ABI,
		.type = PP_ANSWER_DONE,
		.serial = o->serial,
		.event.rings = o->spec.cpus,
	};
	PP_CPUMASK_FOREACH(cpu, &o->spec.cpus)
	fds.fd[fds.n++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < (o->what & PP_SIDEBAND_TASKS ? PP_KEEP_ITERATORS : 0); i++)
		fds.fd[fds.n++] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (f->mood == FAKE_LIES_SIZE && f->moods > 0 && f->moods--)
		close_fd(fds.fd[--fds.n]);
	ck_assert_int_eq(pp_packet_send(f->fd, &fake_answer, sizeof(fake_answer), fds.fd, fds.n),
			 0);
}

/* A file in the place of a perf event: its size tells whose it is. */
static off_t fake_aux_size(uint64_t origin, unsigned cpu)
{
	return (off_t)(origin * PP_CPUS_MAX + cpu);
}

static void fake_aux(struct fake_engine *f, const struct pp_order *o)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	const struct pp_event *e = fake_find(f, o->id);

	f->aux++;
	ck_assert(!e || o->what == e->n_sources);
	if (!e) {
		fake_fail(f, o->serial, ENOENT, "The fake has no such event.", NULL);
		return;
	}
	fake_answer = (struct pp_answer){
		.abi = PP_ORDER_ABI,
		.type = PP_ANSWER_DONE,
		.serial = o->serial,
	};
	PP_CPUMASK_FOREACH(cpu, &o->spec.cpus)
	{
		if (pp_cpumask_test(&f->offline, cpu))
			continue;
		pp_cpumask_set(&fake_answer.event.rings, cpu);
		for (uint32_t i = 0; i < o->what; i++) {
			off_t size = i ? 1 : fake_aux_size(e->origin, cpu);

			fds.fd[fds.n] = memfd_create("perf event", MFD_CLOEXEC);
			ck_assert_int_eq(ftruncate(fds.fd[fds.n++], size), 0);
		}
	}
	ck_assert_int_eq(pp_packet_send(f->fd, &fake_answer, sizeof(fake_answer), fds.fd, fds.n),
			 0);
}

/* ── adoptions ──────────────────────────────────────────────────────────────────────────── */

static struct fake_adoption *fake_adoption(struct fake_engine *f, uint64_t id)
{
	for (size_t i = 0; i < f->n_adoptions; i++)
		if (f->adoptions[i].event.id == id)
			return &f->adoptions[i];
	return NULL;
}

static void fake_forget(struct fake_engine *f, struct fake_adoption *a)
{
	*a = f->adoptions[--f->n_adoptions];
}

static void fake_send_fds(struct fake_engine *f, const struct pp_order *o,
			  const struct pp_event *event, uint32_t n, uint32_t total)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };

	/* Files of their own, as copies are. */
	while (fds.n < n)
		fds.fd[fds.n++] = memfd_create("fake", MFD_CLOEXEC);
	fake_answer = (struct pp_answer){
		.abi = PP_ORDER_ABI,
		.type = PP_ANSWER_DONE,
		.serial = o->serial,
		.event = *event,
		.total = total,
	};
	if (f->mood == FAKE_LIES_SIZE && f->moods > 0 && f->moods--)
		close_fd(fds.fd[--fds.n]);
	ck_assert_int_eq(pp_packet_send(f->fd, &fake_answer, sizeof(fake_answer), fds.fd, fds.n),
			 0);
	fake_answer.total = 0;
}

static void fake_adopt(struct fake_engine *f, const struct pp_order *o)
{
	struct fake_adoption *a = &f->adoptions[f->n_adoptions++];

	ck_assert_uint_le(f->n_adoptions, FAKE_TRIGGERS);
	*a = (struct fake_adoption){ .event = *fake_make(f, &o->spec) };
	fake_unmake(f, a->event.id);
	fake_send_fds(f, o, &a->event, 1, 0);
}

/* Without a grain of the event if others follow. */
static void fake_attach(struct fake_engine *f, const struct pp_order *o)
{
	static struct pp_event event;
	struct fake_adoption *a = fake_adoption(f, o->id);

	if (!a) {
		fake_fail(f, o->serial, ENOENT, "The fake has no such adoption.", NULL);
		return;
	}
	a->links += o->what & ~PP_ATTACH_MORE;
	if (o->what & PP_ATTACH_MORE) {
		fake_send(f, PP_ANSWER_DONE, o->serial, NULL, NULL);
		return;
	}
	event = f->events[f->n++] = a->event;
	fake_forget(f, a);
	if (!fake_dies(f, FAKE_DIES_AFTER))
		fake_send(f, PP_ANSWER_DONE, o->serial, &event, NULL);
}

static void fake_hand_out(struct fake_engine *f, const struct pp_order *o)
{
	const struct pp_event *e = fake_find(f, o->id);

	if (e)
		fake_send_fds(f, o, e, MIN(f->parts - o->what, (uint32_t)PP_FDS_MAX), f->parts);
	else
		fake_fail(f, o->serial, ENOENT, "The fake has no such event.", NULL);
}

/* Whether it was one of these. */
static bool fake_act_on_adoption(struct fake_engine *f, const struct pp_order *o)
{
	struct fake_adoption *a = fake_adoption(f, o->id);

	if (o->type == PP_ORDER_ADOPT)
		fake_adopt(f, o);
	else if (o->type == PP_ORDER_ATTACH)
		fake_attach(f, o);
	else if (o->type == PP_ORDER_HANDOUT)
		fake_hand_out(f, o);
	else if (o->type == PP_ORDER_DESCRIBE && fake_find(f, o->id))
		fake_send_fds(f, o, fake_find(f, o->id), 1, 0);
	else if (o->type == PP_ORDER_DESCRIBE)
		fake_fail(f, o->serial, ENOENT, "The fake has no such event.", NULL);
	else if (o->type == PP_ORDER_DELETE && a) {
		f->given_up++;
		fake_forget(f, a);
		fake_send(f, PP_ANSWER_DONE, o->serial, NULL, NULL);
	} else
		return false;
	return true;
}

static void fake_carry_out(struct fake_engine *f, const struct pp_order *o)
{
	static struct pp_event event;
	const struct fake_tape *tape;
	struct pp_orphans orphans;

	if (o->type == PP_ORDER_ENUMERATE) {
		f->enumerated++;
		f->listing = o->serial;
		f->listed = 0;
		fake_list(f);
		return;
	}
	if (fake_dies(f, FAKE_DIES_BEFORE))
		return;
	if (fake_feels(f, FAKE_FAILS)) {
		f->moods--;
		fake_fail(f, o->serial, f->error ?: E2BIG, "The fake failed.", NULL);
	} else if (o->type == PP_ORDER_SIDEBAND) {
		fake_sideband(f, o);
	} else if (o->type == PP_ORDER_AUX) {
		fake_aux(f, o);
	} else if (fake_act_on_adoption(f, o)) {
		return;
	} else if (!fake_act(f, o, &event, &orphans, &tape)) {
		fake_fail(f, o->serial, ENOENT, "The fake has no such event.", NULL);
	} else if (fake_feels(f, FAKE_FAILS_LATE)) {
		f->moods--;
		fake_fail(f, o->serial, f->error ?: E2BIG, "The fake failed late.", &event);
	} else if (fake_dies(f, FAKE_DIES_PAUSED)) {
		for (size_t i = 0; i < f->n; i++)
			f->events[i].paused = 1;
	} else if (!fake_dies(f, FAKE_DIES_AFTER)) {
		if (tape)
			fake_send_tape(f, 0, tape, true);
		fake_send(f, PP_ANSWER_DONE, o->serial, &event, &orphans);
	}
}

static void fake_wait(struct fake_engine *f, bool hold)
{
	f->hold = hold;
	if (f->io)
		sd_event_source_set_enabled(f->io, hold ? SD_EVENT_OFF : SD_EVENT_ON);
}

static int fake_on_order(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
			 void *userdata)
{
	static struct pp_order order;
	struct fake_engine *f = userdata;
	ssize_t n;

	if (f->listing) {
		fake_list(f);
		return 0;
	}
	n = recv(f->fd, &order, sizeof(order), MSG_TRUNC | MSG_DONTWAIT);
	if (n <= 0) {
		fake_hang_up(f);
		return 0;
	}
	ck_assert_int_eq(n, pp_order_size(order.type));
	ck_assert_int_eq(pp_order_check(&order), 0);
	memcpy(&f->last, &order, offsetof(struct pp_order, parsed));
	f->last_sources = f->last_nodes = 0;
	if (pp_order_size(order.type) == sizeof(order)) {
		f->last_sources = order.parsed.n_sources;
		f->last_nodes = order.parsed.n_nodes;
	}
	fake_carry_out(f, &order);
	if (f->holds_after > 0 && --f->holds_after == 0)
		fake_wait(f, true);
	return 0;
}

static int fake_on_connection(sd_event_source *s _unused_, int fd _unused_,
			      uint32_t revents _unused_, void *userdata)
{
	struct fake_engine *f = userdata;

	fake_hang_up(f);
	f->fd = accept4(f->listen, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(f->fd, 0);
	ck_assert_int_ge(sd_event_add_io(f->loop, &f->io, f->fd, EPOLLIN, fake_on_order, f), 0);
	fake_wait(f, f->hold);
	return 0;
}

static void fake_start(struct fake_engine *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, f->path, MIN(strlen(f->path), sizeof(address.sun_path) - 1));
	f->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(f->listen, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(f->listen, 8), 0);
	ck_assert_int_ge(
		sd_event_add_io(f->loop, &f->listen_io, f->listen, EPOLLIN, fake_on_connection, f),
		0);
}

/* Dies with its socket; fake_start() brings it back. */
static void fake_stop(struct fake_engine *f)
{
	fake_hang_up(f);
	f->listen_io = sd_event_source_disable_unref(f->listen_io);
	f->listen = close_fd(f->listen);
	unlink(f->path);
}

/* ── the broker ─────────────────────────────────────────────────────────────────────────── */

static void broker_on_changed(void *userdata)
{
	struct broker *b = userdata;

	b->changes++;
	missing_rings_continue(&b->missing_rings);
	triggers_continue(&b->triggers);
	if (b->service.auxtrace)
		auxtrace_continue(&b->auxtrace);
	sideband_continue(&b->sideband);
}

static void broker_on_fired(void *userdata, const struct event *e,
			    const struct pp_fired *by _unused_)
{
	struct broker *b = userdata;

	triggers_fired(&b->triggers, e->truth.id, 0);
}

static void broker_on_paused_by(void *userdata, const struct event *e, const struct pp_fired *by)
{
	struct broker *b = userdata;

	ck_assert_uint_eq(e->truth.paused, 1);
	ck_assert_uint_gt(by->number, 0);
	b->paused_by++;
	b->known += registry_by_id(&b->lifecycle.registry, by->trigger) != NULL;
}

static void broker_on_ready(void *userdata, const struct tape *tape)
{
	struct broker *b = userdata;

	b->ready++;
	b->tapes_at_ready = b->lifecycle.tapes.n;
	watchers_tell_event(&b->watchers, PP_NOTICE_TAPE, &tape->event);
}

static void broker_on_creating(void *userdata)
{
	struct broker *b = userdata;

	sideband_continue(&b->sideband);
}

static void broker_on_notice(void *userdata, enum pp_notice_kind kind, const struct event *e)
{
	struct broker *b = userdata;

	ck_assert_uint_ne(e->truth.id, 0);
	b->notices[kind]++;
	watchers_tell_event(&b->watchers, kind, e);
}

static void broker_on_drained(void *userdata _unused_, struct peer *peer)
{
	watchers_drained(peer);
}

static void broker_on_relieved(void *userdata)
{
	struct service *service = userdata;

	wakeups_relieved(service->wakeups);
}

/* Runs the loop until the condition holds. If it never does, check's own timeout fails the test. */
#define broker_until(b, condition)                                                \
	do {                                                                      \
		while (!(condition))                                              \
			ck_assert_int_ge(sd_event_run((b)->loop, UINT64_MAX), 0); \
	} while (0)

/* Runs until there is nothing to do at once. */
static void broker_settle(struct broker *b)
{
	while (sd_event_run(b->loop, 0) > 0)
		;
}

/* Applies a change of the configuration's limits. */
static void broker_limits(struct broker *b)
{
	ck_assert_int_eq(limits_apply(&b->config, &b->quota, false), 0);
}

/* Nothing costs anything: on a busy machine, or one whose CPUs its host takes away, the CPU time of
 * any call can begin a debt. */
static uint64_t standing_clock(void)
{
	return 0;
}

static void broker_begin(struct broker *b)
{
	memset(b, 0, sizeof(*b));
	b->service.totals = -EBADF;
	snprintf(b->dir, sizeof(b->dir), "/tmp/perfpersist-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(b->dir));
	snprintf(b->registry, sizeof(b->registry), "%s/registry", b->dir);
	ck_assert_int_eq(mkdir(b->registry, 0755), 0);
	ck_assert_int_ge(sd_event_new(&b->loop), 0);

	b->config = (struct config){
		.max_connections = 8,
		.max_connections_per_user = 4,
		.max_requests = 16,
		.max_requests_per_user = 64,
		.max_events = 128,
		.max_events_per_namespace = 128,
		.max_events_per_user = 128,
		.max_programs = 256,
		.max_programs_per_user = 256,
		.max_on_tracepoint = 48,
		.max_on_tracepoint_per_user = 8,
		.max_sample_rate_per_user = 1000000,
		.max_memory = 1ULL << 30,
		.max_memory_per_namespace = 1ULL << 30,
		.max_memory_per_user = 1ULL << 30,
		.max_copies = 1 << 20,
		.max_buffer = 1 << 20,
		.ns_group = TEAM,
	};
	quota_init(&b->quota);
	broker_limits(b);
	b->lifecycle.charges.quota = &b->quota;
	b->lifecycle.notice = broker_on_notice;
	b->lifecycle.changed = broker_on_changed;
	b->lifecycle.creating = broker_on_creating;
	b->lifecycle.userdata = b;
	b->service.config = &b->config;
	b->service.instance = "test";
	b->service.registry = b->registry;
	b->service.lifecycle = &b->lifecycle;
	b->service.watchers = &b->watchers;
	b->service.hotplug = &b->hotplug;
	b->hotplug.online.bits[0] = 0xf;
	b->missing_rings.lifecycle = &b->lifecycle;
	b->missing_rings.online = &b->hotplug.online;
	b->triggers.lifecycle = &b->lifecycle;
	b->triggers.loop = b->loop;
	b->triggers.ready = broker_on_ready;
	b->triggers.userdata = b;
	b->lifecycle.fired = broker_on_fired;
	b->lifecycle.paused_by = broker_on_paused_by;
	b->sideband.lifecycle = &b->lifecycle;
	b->sideband.online = &b->hotplug.online;
	b->sideband.registry = b->registry;
	b->service.sideband = &b->sideband;
	b->auxtrace.lifecycle = &b->lifecycle;
	b->auxtrace.online = &b->hotplug.online;
	b->auxtrace.registry = b->registry;
	b->peers.loop = b->loop;
	b->peers.quota = &b->quota;
	b->peers.max_requests = b->config.max_requests;
	b->peers.max_in_flight = 1024;
	b->peers.request = request_handle;
	b->peers.drained = broker_on_drained;
	b->peers.relieved = broker_on_relieved;
	b->peers.userdata = &b->service;
	b->peers.clock = standing_clock;
	ck_assert_int_ge(peers_init(&b->peers), 0);
	/* There is no dumper, unless a test starts one. */
	snprintf(b->dumper, sizeof(b->dumper), "%s/dumper", b->dir);
	ck_assert_int_ge(copies_new(b->loop, &b->quota, b->dumper, &b->service.copies), 0);
	ck_assert_int_ge(wakeups_new(b->loop, b->registry, 256, &b->service.wakeups), 0);
	/* Nor is there a keeper. */
	snprintf(b->keeper, sizeof(b->keeper), "%s/keeper", b->dir);
	ck_assert_int_ge(sideband_init(&b->sideband, b->loop, b->keeper), 0);

	b->engine.loop = b->loop;
	b->engine.sources = 1;
	b->engine.fd = b->engine.listen = -EBADF;
	snprintf(b->engine.path, sizeof(b->engine.path), "%s/engine", b->dir);
	fake_start(&b->engine);
	ck_assert_int_ge(lifecycle_init(&b->lifecycle, b->loop, b->engine.path), 0);
}

/* Starts and connects. */
static _unused_ void broker_start(struct broker *b)
{
	broker_begin(b);
	ck_assert_int_ge(orders_start(b->lifecycle.orders), 0);
	broker_until(b, orders_is_up(b->lifecycle.orders));
}

static _unused_ void broker_end(struct broker *b)
{
	peers_done(&b->peers);
	b->service.totals = close_fd(b->service.totals);
	if (b->service.auxtrace)
		auxtrace_done(&b->auxtrace);
	sideband_done(&b->sideband);
	copies_free(b->service.copies);
	wakeups_free(b->service.wakeups);
	triggers_done(&b->triggers);
	lifecycle_done(&b->lifecycle);
	quota_done(&b->quota);
	fake_stop(&b->engine);
	sd_event_unref(b->loop);
	rmdir(b->registry);
	rmdir(b->dir);
}

/* ── clients ────────────────────────────────────────────────────────────────────────────── */

/* The credentials are those at socketpair(2), as they are those at connect(2). */
static int client_try(struct broker *b, struct client *c, uid_t uid)
{
	int pair[2], r;

	memset(c, 0, sizeof(*c));
	c->broker = b;
	ck_assert_int_eq(seteuid(uid), 0);
	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(r, 0);
	c->fd = pair[1];
	r = peer_new(&b->peers, pair[0]);
	if (r < 0)
		close(pair[0]);
	return r;
}

static _unused_ void client_begin(struct broker *b, struct client *c, uid_t uid)
{
	ck_assert_int_eq(client_try(b, c, uid), 0);
}

static _unused_ void client_end(struct client *c)
{
	pp_fds_close(&c->fds);
	c->fd = close_fd(c->fd);
	broker_settle(c->broker);
}

static _unused_ void client_send(struct client *c, enum pp_op op, const void *body)
{
	static uint8_t packet[PP_PACKET_MAX];
	struct pp_header header = { .opcode = op, .serial = ++c->serial };
	ssize_t size = pp_encode(&header, body, packet, sizeof(packet));

	ck_assert_int_gt(size, 0);
	ck_assert_int_eq(pp_packet_send(c->fd, packet, size, NULL, 0), 0);
}

/* Takes the next reply: 0; or its error, negative; 1: the broker has hung up. */
static _unused_ int client_receive(struct client *c)
{
	static uint8_t packet[PP_PACKET_MAX];
	ssize_t n;

	pp_fds_close(&c->fds);
	for (;;) {
		n = pp_packet_receive(c->fd, packet, sizeof(packet), PP_FDS_MAX, &c->fds, 0);
		if (n != -EAGAIN)
			break;
		ck_assert_int_ge(sd_event_run(c->broker->loop, UINT64_MAX), 0);
	}
	if (n <= 0)
		return 1;
	ck_assert_int_eq(pp_decode(packet, n, c->fds.n, true, &c->header, &c->body), 0);
	return c->header.opcode == PP_OP_ERROR ? -c->body.error.error : 0;
}

static _unused_ bool client_has_reply(struct client *c)
{
	uint8_t byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static _unused_ int client_call(struct client *c, enum pp_op op, const void *body)
{
	int r;

	client_send(c, op, body);
	r = client_receive(c);
	if (r <= 0)
		ck_assert_uint_eq(c->header.serial, c->serial);
	return r;
}

static _unused_ void client_send_create(struct client *c, const char *ns, const char *name)
{
	struct pp_msg_create_request request = {
		.count = 1,
		.selections[0].event = "cpu-clock",
	};

	snprintf(request.ns, sizeof(request.ns), "%s", ns);
	snprintf(request.name, sizeof(request.name), "%s", name);
	client_send(c, PP_OP_CREATE, &request);
}

static _unused_ int client_create(struct client *c, const char *ns, const char *name)
{
	client_send_create(c, ns, name);
	return client_receive(c);
}

/* Another name for an event that is there. */
static _unused_ int client_share(struct client *c, const char *ns, const char *name)
{
	struct pp_msg_create_request request = {
		.flags = PP_EVENT_SHARE,
		.count = 1,
		.selections[0].event = "cpu-clock",
	};

	snprintf(request.ns, sizeof(request.ns), "%s", ns);
	snprintf(request.name, sizeof(request.name), "%s", name);
	return client_call(c, PP_OP_CREATE, &request);
}

static _unused_ struct pp_msg_name client_name(const char *ns, const char *name)
{
	struct pp_msg_name which = { 0 };

	snprintf(which.ns, sizeof(which.ns), "%s", ns);
	snprintf(which.name, sizeof(which.name), "%s", name);
	return which;
}

static _unused_ int client_show(struct client *c, const char *ns, const char *name)
{
	struct pp_msg_name which = client_name(ns, name);

	return client_call(c, PP_OP_SHOW, &which);
}

static _unused_ int client_delete(struct client *c, const char *ns, const char *name)
{
	struct pp_msg_name which = client_name(ns, name);

	return client_call(c, PP_OP_DELETE, &which);
}

static _unused_ int client_pause(struct client *c, const char *ns, const char *name, bool pause)
{
	struct pp_msg_pause_request request = {
		.which = client_name(ns, name),
		.pause = pause,
	};

	return client_call(c, PP_OP_PAUSE, &request);
}

static _unused_ int client_list(struct client *c, const char *ns, uint64_t after)
{
	struct pp_msg_list_request request = { .after = after };

	snprintf(request.ns, sizeof(request.ns), "%s", ns);
	return client_call(c, PP_OP_LIST, &request);
}

static _unused_ struct pp_msg_trigger_request
client_trigger_request(const char *ns, const char *name, const char *targets)
{
	struct pp_msg_trigger_request request = {
		.hold_off = PP_HOLD_OFF_MIN,
		.event.count = 1,
		.event.selections[0].event = "cpu-clock",
	};

	snprintf(request.event.ns, sizeof(request.event.ns), "%s", ns);
	snprintf(request.event.name, sizeof(request.event.name), "%s", name);
	snprintf(request.targets, sizeof(request.targets), "%s", targets);
	return request;
}

static _unused_ int client_trigger(struct client *c, const char *ns, const char *name,
				   const char *targets)
{
	struct pp_msg_trigger_request request = client_trigger_request(ns, name, targets);

	return client_call(c, PP_OP_TRIGGER, &request);
}

static _unused_ int client_fire(struct client *c, const char *ns, const char *name)
{
	struct pp_msg_name which = client_name(ns, name);

	return client_call(c, PP_OP_FIRE, &which);
}

static _unused_ int client_by_id(struct client *c, enum pp_op op, uint64_t id)
{
	struct pp_msg_name which = { .id = id };

	return client_call(c, op, &which);
}
