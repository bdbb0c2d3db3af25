// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes an event while it records. The new parts are made beside the old ones, complete and in a
 * draft, with their programs loaded. Then the directories change places, and the slots are filled
 * one after the other: each record goes by the old program or by the new one. Entries and links
 * stay as they are.
 *
 * A period is part of a counter, and only its link holds that. So the draft has other counters, which
 * run from then on, with slots of their own; they find these empty until they are filled, and then
 * those of the former counters do nothing. In between, for some microseconds, both record.
 *
 * An engine that dies between these two steps leaves `pending` in the new meta
 * (event_recover_one()).
 */
#include "daemon/engine/event/event.h"

#include <string.h>

#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/armed.h"
#include "daemon/engine/event/earlier.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/parts.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/tapes.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/engine/sources/links.h"
#include "daemon/log.h"
#include "proto/macro.h"

struct change {
	char path[PINS_PATH_SIZE];
	uint32_t what;
	const struct pp_allowance *allowance; /* NULL: no limits */
	struct parts new;		      /* with the old rings, if those stay */
	struct rings old;		      /* the replaced rings; else none */
	int before;	      /* the counts of the rings before those; -EBADF: there were none */
	struct former former; /* of the replaced counters; else none */
	struct failure *f;
};

static void change_done(struct change *c)
{
	parts_done(&c->new);
	rings_done(&c->old);
	close_fd(c->before);
	former_done(&c->former);
}

/* ── the new parts ──────────────────────────────────────────────────────────────────────── */

/* One filter for all sources replaces those that they had. */
static void change_filter(struct parts *p, const struct pp_spec *spec,
			  const struct pp_parsed *parsed)
{
	memcpy(p->event.spec.filter, spec->filter, sizeof(spec->filter));
	memset(p->parsed->nodes, 0, sizeof(p->parsed->nodes));
	memcpy(p->parsed->nodes, parsed->nodes, parsed->n_nodes * sizeof(parsed->nodes[0]));
	p->parsed->n_nodes = parsed->n_nodes;
	for (uint32_t i = 0; i < p->parsed->n_sources; i++) {
		p->parsed->sources[i].filter = 0;
		p->parsed->sources[i].n_filter = parsed->n_nodes;
	}
}

static void change_period(struct pp_spec *into, const struct pp_spec *spec)
{
	into->period = spec->period;
	into->samples = spec->samples;
	into->flags = (into->flags & ~PP_EVENT_FREQ) | (spec->flags & PP_EVENT_FREQ);
}

static bool has_period(const struct pp_spec *is, const struct pp_spec *spec)
{
	return spec->period == is->period && !((spec->flags ^ is->flags) & PP_EVENT_FREQ);
}

/* Updates the parts, except the rings, which the sources are still to be read from. */
static void change_spec(struct change *c, const struct pp_spec *spec,
			const struct pp_parsed *parsed)
{
	struct parts *p = &c->new;

	if (spec->data_size == p->event.spec.data_size)
		c->what &= ~PP_CHANGE_BUFFER;
	if (has_period(&p->event.spec, spec))
		c->what &= ~PP_CHANGE_PERIOD;
	if (c->what & PP_CHANGE_FILTER)
		change_filter(p, spec, parsed);
	if (c->what & PP_CHANGE_MAX_RATE)
		p->event.spec.max_rate = spec->max_rate;
	if (c->what & PP_CHANGE_CHECKPOINT)
		p->event.spec.flags = (p->event.spec.flags & ~PP_EVENT_CHECKPOINT) |
				      (spec->flags & PP_EVENT_CHECKPOINT);
	if (c->what & PP_CHANGE_PERIOD)
		change_period(&p->event.spec, spec);
}

/* The counts from before stay, whether or not they had all that was missed. */
static int change_counters(struct change *c)
{
	struct parts *p = &c->new;
	int r = programs_renew(&p->programs, &p->sources, &c->former);

	if (r == -ENOENT)
		return fail(c->f, EINVAL, "'%s' has no sampling event, and so no period.", p->name);
	if (r < 0)
		return fail(c->f, -r, "Cannot make the slots for other counters of '%s': %s.",
			    p->name, strerror(-r));
	if (sources_missed(&p->sources) != p->event.missed_unknown)
		p->event.missed_unknown = PP_MISSED_AT_LEAST;
	return 0;
}

/* A filter that costs no more than the one before is accepted however many programs are there. */
static int change_weight(struct change *c)
{
	struct parts *p = &c->new;
	uint32_t weight = sources_weight(&p->sources);
	int r = 0;

	if (weight > p->event.weight)
		r = crowd_check_places(&p->event, &p->sources, c->allowance, c->f);
	p->event.weight = weight;
	return r;
}

/* Makes empty rings beside the old ones, which are put aside. */
static int change_rings(struct change *c, uint64_t data_size)
{
	struct parts *p = &c->new;
	struct rings old;
	int r;

	p->event.spec.data_size = data_size;
	p->event.set++;
	r = parts_plan(p, c->f);
	if (r < 0)
		return r;
	old = p->rings;
	p->rings = (struct rings){ .outer = -EBADF };
	c->old = old;
	c->before = p->earlier;
	p->earlier = earlier_create();
	if (p->earlier < 0)
		return fail(c->f, -p->earlier, "Cannot make a map for the counts of '%s': %s.",
			    c->new.name, strerror(-p->earlier));
	r = parts_make_rings(p, c->f);
	/* The CPUs and the attached counters stay the same. */
	if (r >= 0)
		memcpy(p->rings.generation, old.generation, old.n * sizeof(*old.generation));
	return r;
}

/* A CPU that goes offline meanwhile, or is, keeps the generation of its dead counter, and gets
 * another one when it comes online. */
static int renew_links(struct change *c)
{
	struct parts *p = &c->new;
	struct rings *rings = &p->rings;
	_cleanup_free_ uint64_t *generations = calloc(rings->n, sizeof(*generations));
	struct pp_cpumask cpus = p->event.rings;
	int r;

	if (!generations)
		return fail(c->f, ENOMEM, "No memory for the CPUs of '%s'.", p->name);
	for (unsigned i = 0; i < rings->n; i++)
		generations[i] = cpu_states_generation(rings->cpu[i]);
	r = links_renew(&p->sources, &p->programs, p->draft.path, &cpus, c->f);
	for (unsigned i = 0; r >= 0 && i < rings->n; i++)
		if (pp_cpumask_test(&cpus, rings->cpu[i]))
			rings->generation[i] = generations[i];
	return r;
}

/* The former counters record until the others do, also if the engine dies before that. */
static int carry_former(struct change *c)
{
	int r = pins_add(&c->new.draft, c->former.fd, PINS_FORMER "progs", 0, 0, 0600);

	return r < 0 ? r : links_carry_former(c->path, &c->new.draft);
}

/* ── making it ──────────────────────────────────────────────────────────────────────────── */

static int make_draft(struct change *c)
{
	struct parts *p = &c->new;
	int r;

	r = pins_begin(&p->event.spec, &p->draft);
	if (r < 0)
		return fail(c->f, -r, "Cannot write to the registry: %s.", strerror(-r));
	r = parts_pin_rings(p, c->f);
	if (r < 0)
		return r;
	r = programs_carry(&p->programs, &p->draft);
	if (r >= 0)
		r = user_program_carry_maps(c->path, &p->draft);
	if (r >= 0)
		r = links_carry(c->path, &p->draft);
	if (r >= 0 && c->former.fd >= 0)
		r = carry_former(c);
	if (r < 0)
		return fail(c->f, -r, "Cannot pin the programs of '%s' again: %s.", c->new.name,
			    strerror(-r));
	if (c->former.fd >= 0)
		r = renew_links(c);
	if (r < 0)
		return r;
	p->meta = close_fd(p->meta); /* the old one */
	return parts_make_files(p, true, c->f);
}

static int load(struct change *c)
{
	struct recorder_target target;
	int r = parts_target(&c->new, &target, c->f);

	return r < 0 ? r : programs_load(&c->new.programs, &c->new.sources, &target, c->f);
}

static int prepare(struct change *c, uint64_t data_size)
{
	struct parts *p = &c->new;
	int r;

	r = parts_restore(p, c->path, c->f);
	if (r >= 0)
		r = crowd_check_work(sources_work(&p->sources), c->allowance, c->f);
	if (r >= 0 && c->what & PP_CHANGE_FILTER)
		r = change_weight(c);
	if (r >= 0 && c->what & PP_CHANGE_BUFFER)
		r = change_rings(c, data_size);
	if (r >= 0 && c->what & PP_CHANGE_PERIOD)
		r = change_counters(c);
	if (r >= 0)
		r = load(c);
	if (r >= 0)
		r = make_draft(c);
	if (r >= 0 && p->event.paused && c->old.n)
		mark_rings(p->rings.fd, p->rings.n, PP_RING_PAUSED);
	return r;
}

/* ── and then ───────────────────────────────────────────────────────────────────────────── */

/* Saves the counts of the old rings: `stat` never shows less after the exchange. */
static int carry_counts(struct change *c)
{
	return c->old.n ? earlier_fill(c->new.earlier, &c->old, c->before) : 0;
}

static int exchange(struct change *c, uint64_t *ret_orphans)
{
	int r = carry_counts(c);

	if (r >= 0)
		r = pins_next_id(ret_orphans);
	if (r >= 0)
		r = pins_replace(&c->new.draft, c->path, *ret_orphans);
	if (r == -EINVAL)
		return fail(
			c->f, EOPNOTSUPP,
			"This kernel cannot exchange directories of BPF pins, which is how '%s' "
			"would be changed; that takes Linux 5.16.",
			c->new.name);
	if (r < 0)
		return fail(c->f, -r, "Cannot replace '%s' in the registry: %s.", c->new.name,
			    strerror(-r));
	return 0;
}

static int end_former(struct change *c)
{
	int r = programs_idle_former(&c->former);

	return r < 0 ? r : links_drop_former(c->path);
}

/* There is no way back from here: the engine's next start finishes a failed step. */
static int flip(struct change *c)
{
	struct parts *p = &c->new;
	int r = 0;

	if (!p->event.paused)
		r = programs_fill(&p->programs);
	if (r >= 0 && c->former.fd >= 0)
		r = end_former(c);
	/* The old rings are written to until then: a program from before the flip may be
	 * interrupted, a uprobe's for long. */
	if (r >= 0)
		r = rings_settle(&c->old);
	if (r >= 0)
		r = carry_counts(c);
	if (r >= 0)
		r = meta_update(p->meta, &p->event, false);
	if (r < 0)
		return fail(c->f, -r,
			    "The change of '%s' is half done (%s); the engine finishes it when it "
			    "is started again.",
			    c->new.name, strerror(-r));
	return 0;
}

/* Retires the old rings; a reader that sees "retired" and then reads the rest has all of it. */
static void let_go(struct change *c, uint64_t orphans, struct pp_orphans *ret)
{
	int r = mark_rings(c->old.fd, c->old.n, PP_RING_RETIRED);

	if (r < 0)
		log_debug("Cannot tell readers of the old rings of event %s: %s.", c->new.name,
			  strerror(-r));
	rings_done(&c->old);
	orphans_add(orphans, c->path, ret);
	reaper_kick();
}

static int change(struct change *c, uint64_t id, const struct pp_spec *spec,
		  const struct pp_parsed *parsed, uid_t broker, struct pp_orphans *ret)
{
	uint64_t orphans;
	bool pending;
	int r;

	r = names_find_or_fail(id, c->path, c->f);
	if (r < 0)
		return r;
	r = parts_open(c->path, broker, &c->new, &pending, c->f);
	if (r < 0)
		return r;
	change_spec(c, spec, parsed);
	*ret = (struct pp_orphans){};
	if (!c->what && !pending)
		return 0;
	r = pending ? parts_drop_former(c->path) : 0;
	if (r < 0)
		return fail(c->f, -r, "Cannot end the counters that '%s' had before: %s.",
			    c->new.name, strerror(-r));
	r = prepare(c, spec->data_size);
	if (r >= 0)
		r = exchange(c, &orphans);
	if (r < 0)
		return r;
	r = flip(c);
	let_go(c, orphans, ret);
	return r;
}

/* ── after a trigger ────────────────────────────────────────────────────────────────────── */

/* A change whose new rings record already. */
struct turn {
	struct change c;
	struct armed armed;
	struct pp_tape tape; /* as the trigger left it */
	struct rings spare;  /* for the next one */
};

#define TURN_NONE                                          \
	{                                                  \
		.c = { .new = PARTS_NONE,                  \
		       .old.outer = -EBADF,                \
		       .before = -EBADF,                   \
		       .former = FORMER_NONE },            \
		.armed = ARMED_NONE, .spare.outer = -EBADF \
	}

static void turn_done(struct turn *t)
{
	change_done(&t->c);
	armed_done(&t->armed);
	rings_done(&t->spare);
}

/* The set that records already becomes the event's. */
static int take_spare(struct turn *t)
{
	struct parts *p = &t->c.new;
	int outer = pins_get(t->c.path, "spare"), r;

	if (outer < 0)
		return fail(t->c.f, -outer, "Cannot open the second set of rings of '%s': %s.",
			    p->name, strerror(-outer));
	t->c.old = p->rings;
	p->rings = (struct rings){ .outer = -EBADF };
	r = rings_open_like(outer, &t->c.old, &p->rings);
	if (r < 0)
		return fail(t->c.f, -r, "Cannot open the second set of rings of '%s': %s.", p->name,
			    strerror(-r));
	p->event.set++;
	t->c.before = p->earlier;
	p->earlier = earlier_create();
	if (p->earlier < 0)
		return fail(t->c.f, -p->earlier, "Cannot make a map for the counts of '%s': %s.",
			    p->name, strerror(-p->earlier));
	return 0;
}

/* Programs of the side that records, and another second set; or programs without a tape. */
static int load_turned(struct turn *t, bool again)
{
	struct parts *p = &t->c.new;
	int r = again ? armed_make_spare(p, &t->spare, t->c.f) : 0;

	if (r < 0)
		return r;
	return again ? armed_load(&t->armed, p, t->tape.state.side, t->c.f) : load(&t->c);
}

static int prepare_turn(struct turn *t, bool again)
{
	struct parts *p = &t->c.new;
	struct pp_fired by;
	int r = take_spare(t);

	if (r >= 0)
		r = load_turned(t, again);
	if (r >= 0)
		r = make_draft(&t->c);
	if (r >= 0 && again)
		r = armed_carry(&t->armed, &t->spare, p, t->c.f);
	if (r < 0)
		return r;
	r = armed_read_by(&t->armed, &by, t->c.f);
	if (r < 0)
		return r;
	r = by.action == PP_ACTION_FREEZE ? tapes_mark(t->c.path, PINS_KEPT, &by) : 0;
	if (r >= 0)
		r = tapes_mark(t->c.path, PINS_FIRED, &by);
	return r < 0 ? fail(t->c.f, -r, "Cannot write down what fired, for '%s': %s.", p->name,
			    strerror(-r))
		     : 0;
}

/* The slots have the new side's programs: now the other side can get other rings. */
static int arm_again(struct turn *t)
{
	uint32_t side = t->tape.state.side;
	uint32_t other = side == PP_SIDE_A ? PP_SIDE_B : PP_SIDE_A;
	int r = armed_fill(&t->armed, &t->c.new, &t->spare, other, t->c.f);

	return r < 0 ? r : armed_set(&t->armed, side, other, t->c.f);
}

/* 1: a trigger has turned it; 0: none has. */
static int open_turned(struct turn *t, const char *path, uid_t broker, struct failure *f)
{
	struct change *c = &t->c;
	bool pending;
	int r;

	c->f = f;
	snprintf(c->path, sizeof(c->path), "%s", path);
	r = parts_open(c->path, broker, &c->new, &pending, c->f);
	if (r >= 0)
		r = parts_restore(&c->new, c->path, c->f);
	if (r >= 0)
		r = armed_open(c->path, &c->new, &t->armed, &t->tape, c->f);
	return r < 0 ? r : t->tape.state.next == PP_SIDES || t->tape.state.next == PP_SIDES_STOPPED;
}

/* The second set takes the place of the first, which becomes a tape. If the engine dies after the
 * exchange, the event is not armed (event_finish()). */
static int turn(struct turn *t, bool again, struct pp_orphans *ret)
{
	uint64_t id;
	int r = prepare_turn(t, again);

	if (r >= 0)
		r = exchange(&t->c, &id);
	if (r < 0)
		return r;
	if (again)
		r = armed_set(&t->armed, t->tape.state.side, PP_SIDES_TAKEN, t->c.f);
	if (r >= 0)
		r = flip(&t->c);
	if (r >= 0 && again)
		r = arm_again(t);
	let_go(&t->c, id, ret);
	return r;
}

/* Without a second set: nothing records until event_thaw(). */
static int freeze(struct turn *t)
{
	struct pp_fired by;
	int r = rings_settle(&t->c.new.rings);

	if (r < 0)
		return fail(t->c.f, -r, "Cannot wait for the last records of '%s': %s.",
			    t->c.new.name, strerror(-r));
	/* By its number the rest is there; somebody else saves what is to be frozen alone. */
	r = armed_read_by(&t->armed, &by, t->c.f);
	if (r < 0 || by.action != PP_ACTION_SNAPSHOT)
		return MIN(r, 0);
	r = pins_mark_frozen(t->c.path);
	return r < 0 ? fail(t->c.f, -r, "Cannot show in the registry that '%s' is frozen: %s.",
			    t->c.new.name, strerror(-r))
		     : 0;
}

/* Whoever dies in between, it is stopped or paused, and what did that is written down. */
static int pause_stopped(struct turn *t)
{
	struct pp_fired by;
	int r = rings_settle(&t->c.new.rings);

	if (r < 0)
		return fail(t->c.f, -r, "Cannot wait for the last records of '%s': %s.",
			    t->c.new.name, strerror(-r));
	r = armed_read_by(&t->armed, &by, t->c.f);
	if (r < 0)
		return r;
	r = tapes_mark(t->c.path, PINS_STOPPED, &by);
	if (r < 0)
		return fail(t->c.f, -r, "Cannot write down what paused '%s': %s.", t->c.new.name,
			    strerror(-r));
	r = event_stop(&t->c.new, t->c.path, t->c.f);
	if (r >= 0)
		event_forget_arming(t->c.path);
	return r;
}

int event_turn(const char *path, uid_t broker, uint32_t what, struct pp_orphans *ret,
	       struct failure *f)
{
	_cleanup_(turn_done) struct turn t = TURN_NONE;
	int r;

	*ret = (struct pp_orphans){};
	if (event_close(path, false) == 0)
		return 0;
	r = open_turned(&t, path, broker, f);
	if (r <= 0)
		return r;
	if (t.tape.state.next == PP_SIDES_STOPPED) {
		r = pause_stopped(&t);
		return r < 0 ? r : 2;
	}
	if (what & PP_TURN_STOPPED)
		return 0;
	r = t.tape.state.side == PP_SIDE_NONE ? freeze(&t) : turn(&t, what & PP_TURN_AGAIN, ret);
	return r < 0 ? r : 1;
}

/* The programs of the first set still are on their side. */
int event_thaw(const char *path, uid_t broker, struct failure *f)
{
	_cleanup_(turn_done) struct turn t = TURN_NONE;
	int r = open_turned(&t, path, broker, f);

	if (r <= 0 || t.tape.state.side != PP_SIDE_NONE || t.tape.state.next != PP_SIDES)
		return MIN(r, 0);
	r = armed_set(&t.armed, PP_SIDE_A, PP_SIDE_NONE, f);
	if (r < 0)
		return r;
	pins_unmark_frozen(path);
	return 1;
}

int event_change(uint64_t id, uint32_t what, const struct pp_spec *spec,
		 const struct pp_parsed *parsed, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_orphans *ret_orphans, struct failure *f)
{
	_cleanup_(change_done) struct change c = {
		.what = what,
		.allowance = allowance,
		.new = PARTS_NONE,
		.old.outer = -EBADF,
		.before = -EBADF,
		.former = FORMER_NONE,
		.f = f,
	};

	return change(&c, id, spec, parsed, broker, ret_orphans);
}
