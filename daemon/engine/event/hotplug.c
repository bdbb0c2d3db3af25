// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Adapts an event to CPUs that come online: adds rings for new ones, and attaches counters anew
 * where they have died. The event is changed in place: the rings and links of all other CPUs, and
 * the maps that readers have, stay.
 *
 * New parts are made and loaded first, then pinned, then written into meta, and only then put into
 * the slots: so recovery knows every ring that has records (parts_mend()). An engine that dies
 * earlier leaves pins that meta does not list, and recovery removes them. The next order attaches
 * the links, because meta lists only the living ones.
 */
#include "daemon/engine/event/event.h"

#include <string.h>

#include "daemon/engine/budget.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/parts.h"
#include "daemon/engine/event/missing.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/sources/links.h"
#include "daemon/log.h"
#include "proto/macro.h"

struct renewal {
	char path[PINS_PATH_SIZE];
	uid_t broker;
	struct parts p;
	struct missing missing;
	struct pp_event before; /* and its maps, as meta has them */
	struct meta_map *maps;
	size_t n_maps;
	bool pending; /* an earlier change of it is half done */
	struct failure *f;
};

static void renewal_done(struct renewal *a)
{
	parts_done(&a->p);
	free(a->maps);
}

static void keep_only(struct pp_cpumask *m, const struct pp_cpumask *of)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->bits); i++)
		m->bits[i] &= of->bits[i];
}

static void join(struct pp_cpumask *m, const struct pp_cpumask *with)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->bits); i++)
		m->bits[i] |= with->bits[i];
}

static bool is_empty(const struct pp_cpumask *m)
{
	return missing_nothing(&(struct missing){ .counters = *m });
}

/* ── what to do ─────────────────────────────────────────────────────────────────────────── */

static int find_missing(struct renewal *a, const struct pp_cpumask *come)
{
	_cleanup_free_ struct pp_parsed *parsed = NULL;
	int r = meta_read_all(a->p.meta, &a->before, &parsed, &a->maps, &a->n_maps, &a->pending);

	if (r >= 0)
		r = missing_find(&a->before, parsed, &a->p.binding.target, a->maps, a->n_maps, come,
				 &a->missing);
	if (r < 0)
		return fail(a->f, -r, "Cannot find out which CPUs '%s' wants: %s.", a->p.name,
			    strerror(-r));
	keep_only(&a->missing.rings, come);
	keep_only(&a->missing.counters, come);
	return 0;
}

/* An interrupted earlier change is finished first. */
static int open_event(struct renewal *a, uint64_t id)
{
	bool pending;
	int r = names_find_or_fail(id, a->path, a->f);

	if (r < 0)
		return r;
	r = event_finish(a->path, a->broker, a->f);
	return r < 0 ? r : parts_open(a->path, a->broker, &a->p, &pending, a->f);
}

static int check_budget(struct renewal *a)
{
	struct pp_spec spec = a->p.event.spec;

	spec.cpus = a->missing.rings;
	spec.flags &= ~PP_EVENT_ALL_CPUS;
	return is_empty(&spec.cpus) ? 0 : budget_check(&spec, a->f);
}

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

static int mark_new(struct renewal *a)
{
	const struct rings *rings = &a->p.rings;
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < rings->n; i++)
		if (pp_cpumask_test(&a->missing.rings, rings->cpu[i]))
			r = mark_rings(&rings->fd[i], 1, PP_RING_PAUSED);
	return r < 0 ? fail(a->f, -r, "Cannot mark the new rings of '%s' as paused: %s.", a->p.name,
			    strerror(-r))
		     : 0;
}

/* Makes and loads them; nothing of it is visible yet. */
static int make_rings(struct renewal *a)
{
	struct recorder_target target;
	struct parts *p = &a->p;
	int r;

	if (is_empty(&a->missing.rings))
		return 0;
	r = parts_add_rings(p, &a->missing.rings, a->f);
	if (r < 0)
		return r;
	join(&p->event.rings, &a->missing.rings);
	p->event.memory = parts_memory(p);
	if (p->event.paused)
		return mark_new(a);
	r = parts_target(p, &target, a->f);
	return r < 0 ? r : programs_load_direct(&p->programs, &p->sources, &target, a->f);
}

static int pin_rings(struct renewal *a)
{
	const struct rings *rings = &a->p.rings;
	char leaf[32];
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < rings->n; i++) {
		if (!pp_cpumask_test(&a->missing.rings, rings->cpu[i]))
			continue;
		snprintf(leaf, sizeof(leaf), "cpu%u", rings->cpu[i]);
		r = pins_put(a->path, rings->fd[i], leaf, a->broker, 0, 0600);
	}
	return r < 0 ? fail(a->f, -r, "Cannot pin the new rings of '%s': %s.", a->p.name,
			    strerror(-r))
		     : 0;
}

/* In this order: meta lists every ring that has records. */
static int place_rings(struct renewal *a)
{
	int r;

	if (is_empty(&a->missing.rings))
		return 0;
	r = pin_rings(a);
	if (r >= 0)
		r = parts_write_down(&a->p, true, a->f);
	if (r < 0)
		return r;
	r = rings_fill(&a->p.rings);
	return r < 0 ? fail(a->f, -r, "Cannot put the new rings of '%s' into their slots: %s.",
			    a->p.name, strerror(-r))
		     : 0;
}

/* ── links ──────────────────────────────────────────────────────────────────────────────── */

static void take_generations(const struct renewal *a, uint64_t *ret)
{
	for (unsigned i = 0; i < a->p.rings.n; i++)
		ret[i] = cpu_states_generation(a->p.rings.cpu[i]);
}

/* A CPU that is offline again stays as it is, and is tried when it comes online again. */
static int renew_links(struct renewal *a)
{
	_cleanup_free_ uint64_t *generations = calloc(a->p.rings.n, sizeof(*generations));
	struct rings *rings = &a->p.rings;
	struct pp_cpumask cpus = a->missing.counters;
	int r;

	if (!generations)
		return fail(a->f, ENOMEM, "No memory for the CPUs of '%s'.", a->p.name);
	join(&cpus, &a->missing.rings);
	take_generations(a, generations);
	if (a->p.event.spec.flags & PP_EVENT_ADOPTED)
		return 0;
	r = links_renew(&a->p.sources, &a->p.programs, a->path, &cpus, a->f);
	for (unsigned i = 0; i < rings->n; i++)
		if (pp_cpumask_test(&cpus, rings->cpu[i]))
			rings->generation[i] = generations[i];
	return r;
}

/* ── all steps ──────────────────────────────────────────────────────────────────────────── */

/* The slots first, and the pins last: everything that meta lists exists. */
static void undo(struct renewal *a)
{
	int r;

	rings_empty(&a->p.rings, &a->missing.rings);
	r = meta_update_maps(a->p.meta, &a->before, a->maps, a->n_maps, true);
	if (r >= 0)
		r = pins_keep_cpus(a->path, &a->before.rings);
	if (r >= 0)
		r = meta_update(a->p.meta, &a->before, false);
	if (r < 0)
		log_error("Cannot remove the new CPUs of event %s completely: %s; the engine's "
			  "next start does that.",
			  a->p.name, strerror(-r));
}

/* As with every change: there is no way back from here, and recovery finishes it. */
static int flip(struct renewal *a)
{
	int r = a->p.event.paused ? 0 : programs_fill(&a->p.programs);

	if (r < 0)
		return fail(a->f, -r,
			    "The new CPUs of '%s' are half added (%s); the engine finishes it when "
			    "it is started again.",
			    a->p.name, strerror(-r));
	return parts_write_down(&a->p, false, a->f);
}

static int renew(struct renewal *a)
{
	int r = parts_restore(&a->p, a->path, a->f);

	if (r >= 0)
		r = make_rings(a);
	if (r < 0)
		return r;
	r = meta_update(a->p.meta, &a->before, true);
	if (r < 0)
		return fail(a->f, -r, "Cannot write down the state of '%s': %s.", a->p.name,
			    strerror(-r));
	r = place_rings(a);
	if (r >= 0)
		r = renew_links(a);
	if (r < 0 && !is_empty(&a->missing.rings)) {
		undo(a);
		return r;
	}
	/* Counters that were attached anew stay, also if others could not be. */
	return flip(a) ?: r;
}

bool event_lacks_cpus(uint64_t id, const struct pp_cpumask *come)
{
	struct failure ignored = {};
	_cleanup_(renewal_done) struct renewal a = { .p = PARTS_NONE, .f = &ignored };

	if (names_find(id, a.path) < 0)
		return true;
	a.p.meta = pins_get(a.path, "meta");
	return a.p.meta < 0 || meta_read_target(a.p.meta, &a.p.binding.target) < 0 ||
	       find_missing(&a, come) < 0 || a.pending || !missing_nothing(&a.missing);
}

/* Rings of new CPUs, with their counters; or counters of those that have rings. */
static int renew_part(uint64_t id, const struct pp_cpumask *come, uid_t broker, bool rings,
		      struct failure *f)
{
	_cleanup_(renewal_done) struct renewal a = { .broker = broker, .p = PARTS_NONE, .f = f };
	int r = open_event(&a, id);

	if (r >= 0)
		r = find_missing(&a, come);
	if (rings)
		a.missing.counters = (struct pp_cpumask){};
	else
		a.missing.rings = (struct pp_cpumask){};
	if (r < 0 || missing_nothing(&a.missing))
		return r;
	r = check_budget(&a);
	return r < 0 ? r : renew(&a);
}

/* Where there is no room for a ring, counters still go on where they have one. */
int event_cpus(uint64_t id, const struct pp_cpumask *come, uid_t broker, struct failure *f)
{
	int counters = renew_part(id, come, broker, false, f);
	int rings = renew_part(id, come, broker, true, f);

	return counters < 0 ? counters : rings;
}
