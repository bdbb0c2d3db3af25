// SPDX-License-Identifier: LGPL-2.1-or-later
/* The cost of events. Must not know requests, nor the lives of events: lifecycle.c reports them. */
#include "daemon/broker/state/charges.h"

#include <assert.h>
#include <string.h>

#include "daemon/cpus.h"
#include "proto/macro.h"

/* A ring also has a header with the tracepoint's format, and room for one record at its end. */
#define HEADER_ESTIMATE (16 * 1024ULL)
#define SPILL_ESTIMATE PP_SPILL_SIZE_MAX

/* The engine takes one order at a time; 4096 programs or parts of their filters take it about three
 * seconds. */
#define WORK_MAX 4096

int charges_estimate(const struct pp_spec *spec, const struct pp_cpumask *cpus, uint64_t *ret)
{
	struct pp_cpumask online;

	if (!cpus && spec->flags & PP_EVENT_ALL_CPUS) {
		int r = pp_cpus_read("online", &online);

		if (r < 0)
			return r;
		cpus = &online;
	}
	*ret = pp_cpumask_count(cpus ? cpus : &spec->cpus) *
	       (pp_spec_ring_data(spec) + pp_spec_aux_memory(spec) + HEADER_ESTIMATE +
		SPILL_ESTIMATE);
	return 0;
}

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

int charges_begin(struct charges *c, struct event *e, uint64_t memory, uint32_t programs,
		  uint32_t samples)
{
	const struct pp_spec *spec = &e->truth.spec;
	int r = quota_charge(c->quota, QUOTA_EVENTS, spec->creator, spec->ns, 1);

	if (r < 0)
		return r;
	r = quota_charge(c->quota, QUOTA_MEMORY, spec->creator, spec->ns, memory);
	if (r < 0)
		goto release_event;
	r = quota_charge(c->quota, QUOTA_PROGRAMS, spec->creator, spec->ns, programs);
	if (r < 0)
		goto release_memory;
	r = quota_charge(c->quota, QUOTA_SAMPLES, spec->creator, spec->ns, samples);
	if (r < 0)
		goto release_programs;
	e->charged = memory;
	e->programs = programs;
	e->samples = samples;
	e->creator = spec->creator;
	e->is_charged = true;
	return 0;
release_programs:
	quota_release(c->quota, QUOTA_PROGRAMS, spec->creator, spec->ns, programs);
release_memory:
	quota_release(c->quota, QUOTA_MEMORY, spec->creator, spec->ns, memory);
release_event:
	quota_release(c->quota, QUOTA_EVENTS, spec->creator, spec->ns, 1);
	return r;
}

static uint32_t limit_of(uint64_t number)
{
	return (uint32_t)MIN(number, (uint64_t)UINT32_MAX);
}

struct pp_allowance charges_allow(const struct charges *c, uint32_t uid, uint32_t programs)
{
	const struct quota *q = c->quota;
	uint64_t left = quota_left(q, QUOTA_PROGRAMS, uid);

	return (struct pp_allowance){
		.sources = limit_of(left < UINT32_MAX ? left + programs : left),
		.creator_there = uid ? limit_of(q->on_tracepoint_of_user) : UINT32_MAX,
		.all_there = uid ? limit_of(q->on_tracepoint) : UINT32_MAX,
		.work = uid ? WORK_MAX : UINT32_MAX,
	};
}

uint32_t charges_perf_events(const struct charges *c, const struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;
	uint64_t of_user = quota_left(c->quota, QUOTA_MEMORY, spec->creator);
	uint64_t of_ns = quota_left_of_namespace(c->quota, QUOTA_MEMORY, spec->ns);

	return (uint32_t)MIN(MIN(of_user, of_ns) / PP_PERF_EVENT_MEMORY, (uint64_t)PP_BOUND_MAX);
}

bool charges_may_inherit(const struct charges *c, const struct event *successor,
			 const struct event *gone)
{
	const struct {
		enum quota_kind kind;
		uint64_t amount;
	} comes[] = {
		{ QUOTA_MEMORY, gone->truth.memory },
		{ QUOTA_PROGRAMS, gone->truth.n_sources },
		{ QUOTA_SAMPLES, gone->truth.spec.samples },
	};
	bool same_user = successor->creator == gone->creator;
	bool same_ns = strcmp(successor->truth.spec.ns, gone->truth.spec.ns) == 0;

	for (size_t i = 0; i < ARRAY_SIZE(comes); i++)
		if (!quota_has_room(c->quota, comes[i].kind, successor->creator,
				    successor->truth.spec.ns, same_user ? 0 : comes[i].amount,
				    same_ns ? 0 : comes[i].amount))
			return false;
	return true;
}

int charges_adopt(struct charges *c, struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;
	int r;

	if (!e->is_charged || e->creator != spec->creator) {
		charges_end(c, e);
		r = quota_take(c->quota, QUOTA_EVENTS, spec->creator, spec->ns, 1);
		if (r < 0)
			return r;
		e->creator = spec->creator;
		e->is_charged = true;
	}
	charges_settle(c, e);
	return 0;
}

bool charges_have_room(const struct charges *c, const struct event *e, uint64_t memory)
{
	return memory <= quota_left(c->quota, QUOTA_MEMORY, e->creator) &&
	       quota_has_room(c->quota, QUOTA_MEMORY, e->creator, e->truth.spec.ns, 0, memory);
}

int charges_raise(struct charges *c, struct event *e, uint64_t memory)
{
	int r = quota_charge(c->quota, QUOTA_MEMORY, e->creator, e->truth.spec.ns, memory);

	if (r < 0)
		return r;
	e->charged += memory;
	e->pending += memory;
	return 0;
}

int charges_raise_samples(struct charges *c, struct event *e, uint32_t samples)
{
	int r;

	if (samples <= e->samples)
		return 0;
	r = quota_charge(c->quota, QUOTA_SAMPLES, e->creator, e->truth.spec.ns,
			 samples - e->samples);
	if (r >= 0)
		e->samples = e->samples_due = samples;
	return r;
}

void charges_drop_samples(struct event *e)
{
	e->samples_due = 0;
}

void charges_lower(struct charges *c, struct event *e, uint64_t memory)
{
	assert(e->pending >= memory);
	e->pending -= memory;
	charges_settle(c, e);
}

/* Like the next function, cannot fail. */
static void settle_number(struct charges *c, const struct event *e, enum quota_kind kind,
			  uint32_t has, uint32_t *charged)
{
	const char *ns = e->truth.spec.ns;

	if (has > *charged && quota_take(c->quota, kind, e->creator, ns, has - *charged) < 0)
		assert(!"an event without accounts");
	if (has < *charged)
		quota_release(c->quota, kind, e->creator, ns, *charged - has);
	*charged = has;
}

/* A second name has no programs of its own. */
static void settle_programs(struct charges *c, struct event *e)
{
	const struct pp_event *t = &e->truth;

	settle_number(c, e, QUOTA_PROGRAMS, t->shares ? 0 : t->n_sources, &e->programs);
	settle_number(c, e, QUOTA_SAMPLES, t->shares ? 0 : MAX(t->spec.samples, e->samples_due),
		      &e->samples);
}

void charges_settle(struct charges *c, struct event *e)
{
	uint64_t takes = e->truth.memory + e->pending;
	const char *ns = e->truth.spec.ns;

	/* At least the event itself is charged to these accounts, so they exist: this cannot
	 * fail. */
	if (takes > e->charged &&
	    quota_take(c->quota, QUOTA_MEMORY, e->creator, ns, takes - e->charged) < 0)
		assert(!"an event without accounts");
	if (takes < e->charged)
		quota_release(c->quota, QUOTA_MEMORY, e->creator, ns, e->charged - takes);
	e->charged = takes;
	settle_programs(c, e);
}

void charges_end(struct charges *c, struct event *e)
{
	const char *ns = e->truth.spec.ns;

	if (!e->is_charged)
		return;
	quota_release(c->quota, QUOTA_MEMORY, e->creator, ns, e->charged);
	quota_release(c->quota, QUOTA_PROGRAMS, e->creator, ns, e->programs);
	quota_release(c->quota, QUOTA_SAMPLES, e->creator, ns, e->samples);
	quota_release(c->quota, QUOTA_EVENTS, e->creator, ns, 1);
	e->charged = e->pending = 0;
	e->programs = e->samples = e->samples_due = 0;
	e->is_charged = false;
}

/* ── orphan rings ────────────────────────────────────────────────────────────────────────────── */

/* Index of the first orphan rings that are not before this id. */
static size_t place_of(const struct charges *c, uint64_t id)
{
	size_t low = 0, high = c->n_orphans;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->orphans[middle].orphans.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void give_back(struct charges *c, const struct pp_orphans *orphans, uint64_t bytes)
{
	quota_unhold(c->quota, orphans->creator, orphans->ns, bytes);
	quota_release(c->quota, QUOTA_MEMORY, orphans->creator, orphans->ns, bytes);
}

static void drop(struct charges *c, size_t i)
{
	struct charged_orphans *orphans = &c->orphans[i];

	give_back(c, &orphans->orphans, orphans->orphans.bytes);
	c->n_orphans--;
	memmove(orphans, orphans + 1, (c->n_orphans - i) * sizeof(*orphans));
}

static int make_room(struct charges *c)
{
	size_t room = c->room ? c->room * 2 : 16;
	struct charged_orphans *p;

	if (c->n_orphans < c->room)
		return 0;
	p = reallocarray(c->orphans, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	c->orphans = p;
	c->room = room;
	return 0;
}

int charges_hold(struct charges *c, const struct pp_orphans *orphans, uint64_t seen)
{
	size_t i = place_of(c, orphans->id);
	struct charged_orphans *orp;
	int r;

	if (i < c->n_orphans && c->orphans[i].orphans.id == orphans->id)
		drop(c, i); /* and charged again with the present amount */
	if (orphans->bytes == 0)
		return 0;
	r = make_room(c);
	if (r < 0)
		return r;
	r = quota_take(c->quota, QUOTA_MEMORY, orphans->creator, orphans->ns, orphans->bytes);
	if (r < 0)
		return r;
	quota_hold(c->quota, orphans->creator, orphans->ns, orphans->bytes);
	orp = &c->orphans[i];
	memmove(orp + 1, orp, (c->n_orphans - i) * sizeof(*orp));
	c->n_orphans++;
	*orp = (struct charged_orphans){ .orphans = *orphans, .seen = seen };
	return 0;
}

void charges_released(struct charges *c, const struct pp_orphans *orphans)
{
	size_t i = place_of(c, orphans->id);
	struct charged_orphans *orp = &c->orphans[i];

	/* The enumeration reports unknown orphan rings with their present size. */
	if (i == c->n_orphans || orp->orphans.id != orphans->id ||
	    orp->orphans.bytes < orphans->bytes)
		return;
	give_back(c, &orp->orphans, orp->orphans.bytes - orphans->bytes);
	orp->orphans.bytes = orphans->bytes;
	if (orphans->bytes == 0)
		drop(c, i);
}

void charges_sweep(struct charges *c, uint64_t seen)
{
	for (size_t i = c->n_orphans; i > 0; i--)
		if (c->orphans[i - 1].seen != seen)
			drop(c, i - 1);
}

void charges_done(struct charges *c)
{
	while (c->n_orphans > 0)
		drop(c, c->n_orphans - 1);
	free(c->orphans);
	c->orphans = NULL;
	c->room = 0;
}
