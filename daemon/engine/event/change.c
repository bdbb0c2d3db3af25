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
#include "daemon/engine/event/change-internal.h"

#include <string.h>

#include "daemon/engine/event/earlier.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/kernel/target.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/engine/sources/links.h"
#include "daemon/log.h"
#include "proto/macro.h"

void change_done(struct change *c)
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
	int r;

	if (p->event.spec.flags & PP_EVENT_ADOPTED)
		return fail(c->f, EOPNOTSUPP, "The perf events of '%s' are their opener's.",
			    p->name);
	if (target_is_task(&p->binding.target))
		return fail(
			c->f, EOPNOTSUPP,
			"What the task of '%s' has created has inherited its counters, and would "
			"not have others.",
			p->name);
	r = programs_renew(&p->programs, &p->sources, &c->former);
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

int change_make_draft(struct change *c)
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

int change_load(struct change *c)
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
		r = change_load(c);
	if (r >= 0)
		r = change_make_draft(c);
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

int change_exchange(struct change *c, uint64_t *ret_orphans)
{
	int r = carry_counts(c);

	if (r >= 0)
		r = pins_next_id(ret_orphans);
	if (r >= 0)
		r = pins_replace(&c->new.draft, c->path, *ret_orphans);
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

int change_flip(struct change *c)
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

void change_let_go(struct change *c, uint64_t orphans, struct pp_orphans *ret)
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
		r = change_exchange(c, &orphans);
	if (r < 0)
		return r;
	r = change_flip(c);
	change_let_go(c, orphans, ret);
	return r;
}

int event_change(uint64_t id, uint32_t what, const struct pp_spec *spec,
		 const struct pp_parsed *parsed, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_orphans *ret_orphans, struct failure *f)
{
	_cleanup_(change_done) struct change c = CHANGE_NONE;

	c.what = what;
	c.allowance = allowance;
	c.f = f;
	return change(&c, id, spec, parsed, broker, ret_orphans);
}
