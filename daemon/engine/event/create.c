// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates an event. Every step happens inside a draft that nobody sees; then a rename makes it an
 * event, and a symlink shows it.
 */
#include "daemon/engine/event/create.h"

#include <string.h>
#include <time.h>

#include "daemon/cpus.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/trigger.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/kernel/target.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/name.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/engine/sources/links.h"
#include "daemon/engine/sources/user-program.h"
#include "daemon/text.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define CPUS_GONE_MAX 4		     /* while an event is made */
#define THREADS_COME_MAX 8	     /* likewise: tries, */
#define TRIED_MAX (PP_BOUND_MAX / 4) /* unless these were so many perf events: others wait */

static int name_is_taken(const struct pp_spec *spec, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	struct pp_event event;
	int r;

	snprintf(path, sizeof(path), "%s/%s", spec->ns, spec->name);
	r = event_read(path, &event);
	if (r == -EPROTONOSUPPORT)
		return fail(f, EEXIST,
			    "'%s' is already there, made by a newer perfpersist; delete it with "
			    "that one, or choose another name.",
			    path);
	if (r == -ESTALE)
		return fail(f, EEXIST,
			    "'%s' is already there, made by an older perfpersist; remove its "
			    "directory from the registry, or choose another name.",
			    path);
	return fail(f, EEXIST, "'%s' is already there; delete it first, or choose another name.",
		    path);
}

int create_check_name(const struct pp_spec *spec, struct failure *f)
{
	return pins_exists(spec->ns, spec->name) ? name_is_taken(spec, f) : 0;
}

/* ── checks and choices ─────────────────────────────────────────────────────────────────── */

static int choose_cpus(struct parts *p, struct failure *f)
{
	const struct pp_spec *spec = &p->event.spec;
	struct pp_cpumask online;
	char list[256];
	int r;

	r = pp_cpus_read("online", &online);
	if (r < 0)
		return fail(f, -r, "Cannot read which CPUs are online: %s.", strerror(-r));
	p->event.rings = spec->flags & PP_EVENT_ALL_CPUS ? online : spec->cpus;
	PP_CPUMASK_FOREACH(cpu, &spec->cpus)
	if (!pp_cpumask_test(&online, cpu)) {
		if (pp_format_cpus(&online, list, sizeof(list)) < 0)
			strcpy(list, "many others");
		return fail(f, ENODEV, "CPU %u is not online; choose among %s.", cpu, list);
	}
	return links_cpus(&p->sources, &p->event.rings, f);
}

static int give_id(struct pp_event *event, struct failure *f)
{
	int r = pins_next_id(&event->id);

	if (r == -ENOSYS || r == -EPERM)
		return fail(f, -r,
			    "This kernel does not let BPF maps be created (%s); perfpersist needs "
			    "CONFIG_BPF_SYSCALL=y and the right to use it.",
			    strerror(-r));
	if (r < 0)
		return fail(f, -r, "Cannot give the event an id: %s.", strerror(-r));
	event->origin = event->id;
	return 0;
}

/* The program's type says which recorder it goes on to. */
static int take_program(struct parts *p, uint32_t id, const struct pp_parsed *parsed,
			struct failure *f)
{
	struct pp_spec *spec = &p->event.spec;
	int r;

	if (!(spec->flags & PP_EVENT_PROGRAM))
		return 0;
	r = user_program_open(id, spec->creator, &p->user, f);
	if (r >= 0 && parsed->sources[0].kind == PP_SOURCE_TRACEPOINT &&
	    user_program_wants_generic(&p->user))
		spec->flags |= PP_EVENT_GENERIC;
	p->user_memory = p->user.memory;
	return r;
}

static int resolve(struct parts *p, const struct pp_parsed *parsed,
		   const struct pp_allowance *allowance, struct failure *f)
{
	const struct pp_spec *spec = &p->event.spec;
	int r = sources_resolve(spec, parsed, allowance, &p->sources, f);

	if (r >= 0 && spec->flags & PP_EVENT_PROGRAM && p->sources.n > 1)
		return fail(f, EINVAL,
			    "'%.100s' stands for %zu events, and a BPF program decides on the "
			    "records of one; name one.",
			    spec->event, p->sources.n);
	return r < 0 ? r : crowd_check_places(&p->event, &p->sources, allowance, f);
}

int create_begin(struct parts *p, const struct pp_spec *spec, const struct pp_parsed *parsed,
		 uint32_t program, const struct pp_allowance *allowance, struct failure *f)
{
	int r;

	/* One clear message: else each kind of event fails with another one, as there are no
	 * tracepoints and no valid programs. */
	if (kernel_is_confidential())
		return fail(f, EPERM,
			    "Kernel lockdown (confidentiality) lets no program read what the "
			    "kernel does, so that '%s/%s' cannot be recorded; it could with "
			    "lockdown=integrity, or none, on the kernel's command line.",
			    spec->ns, spec->name);
	if (!kernel_has_btf())
		return fail(f, EOPNOTSUPP,
			    "This kernel has no BTF (/sys/kernel/btf/vmlinux is missing), which "
			    "the registry's files need; use one built with "
			    "CONFIG_DEBUG_INFO_BTF=y.");
	p->event.spec = *spec;
	r = take_program(p, program, parsed, f);
	if (r >= 0)
		r = resolve(p, parsed, allowance, f);
	if (r < 0)
		return r;
	p->event.set = 1;
	p->event.created = pp_clock_ns(CLOCK_REALTIME);
	p->event.created_mono = pp_clock_ns(CLOCK_MONOTONIC);
	return give_id(&p->event, f);
}

/* ── making it ──────────────────────────────────────────────────────────────────────────── */

static int make_memory(struct parts *p, struct failure *f)
{
	int r;

	sources_number(&p->sources, p->event.id);
	p->event.catalog_size = 0;
	r = choose_cpus(p, f);
	if (r >= 0)
		r = parts_plan(p, f);
	if (r >= 0)
		r = parts_make_rings(p, f);
	/* A CPU that goes offline from here on has a newer generation than its ring, which counts
	 * as dead. */
	for (unsigned i = 0; r >= 0 && i < p->rings.n; i++)
		p->rings.generation[i] = cpu_states_generation(p->rings.cpu[i]);
	if (r >= 0)
		r = parts_make_catalog(p, f);
	return r;
}

static int make_programs(struct parts *p, const struct pp_trigger_spec *trigger, struct failure *f)
{
	struct recorder_target target;
	int r;

	r = programs_create(&p->sources, &p->user, &p->draft, &p->programs, f);
	if (r >= 0 && p->event.spec.flags & PP_EVENT_TRIGGER)
		r = trigger_make(p, trigger, f);
	if (r >= 0)
		r = parts_target(p, &target, f);
	return r < 0 ? r : programs_start(&p->programs, &p->sources, &target, f);
}

int create_draft(struct parts *p, const struct pp_trigger_spec *trigger, struct failure *f)
{
	int r = make_memory(p, f);

	if (r < 0)
		return r;
	parts_bind(p);
	r = pins_begin(&p->event.spec, &p->draft);
	if (r < 0)
		return fail(f, -r, "Cannot write to the registry: %s.", strerror(-r));
	r = make_programs(p, trigger, f);
	return r < 0 ? r : parts_pin_rings(p, f);
}

/* When the links are there, all sources record, except those that are marked in `out`. */
static int make_all(struct parts *p, const struct pp_trigger_spec *trigger, bool *out,
		    struct failure *f)
{
	/* The slots before the entries: a jump into a full slot is compiled into them. */
	int r = create_draft(p, trigger, f);

	if (r >= 0)
		r = links_create(&p->sources, &p->programs, &p->event.rings, &p->draft, out, f);
	if (r < 0)
		return r;
	r = user_program_pin_maps(&p->user, &p->draft);
	return r < 0 ? fail(f, -r, "Cannot pin the maps of the program of '%s/%s': %s.",
			    p->event.spec.ns, p->event.spec.name, strerror(-r))
		     : 0;
}

/* Releases everything but the sources, and the program that was there before. */
static void unmake(struct parts *p)
{
	struct parts keep = { .sources = p->sources,
			      .event = p->event,
			      .broker = p->broker,
			      .user = p->user,
			      .user_memory = p->user_memory,
			      .binding = p->binding };

	programs_forget(&p->programs);
	p->sources = (struct sources){};
	p->user = (struct user_program)USER_PROGRAM_NONE;
	parts_done(p);
	p->sources = keep.sources;
	p->event = keep.event;
	p->broker = keep.broker;
	p->user = keep.user;
	p->user_memory = keep.user_memory;
	p->binding = keep.binding;
	p->binding.n = 0;
}

/* If some sources cannot be recorded, makes the event again without them: rings and catalog must
 * not list them. */
static int make_what_can_be(struct parts *p, const struct pp_trigger_spec *trigger,
			    struct failure *f)
{
	bool all_cpus = p->event.spec.flags & PP_EVENT_ALL_CPUS;
	bool is_bound = p->event.spec.flags & PP_EVENT_BOUND;

	for (unsigned gone = 0;; gone++) {
		_cleanup_free_ bool *out = calloc(p->sources.n, sizeof(*out));
		int r = out ? make_all(p, trigger, out, f)
			    : fail(f, ENOMEM, "No memory for %zu events.", p->sources.n);

		/* A CPU went offline: starts again with the others. Or a thread began. */
		if ((r == -ENODEV && all_cpus && gone < CPUS_GONE_MAX) ||
		    (r == -EAGAIN && is_bound && gone + 1 < THREADS_COME_MAX &&
		     p->binding.tried < TRIED_MAX)) {
			unmake(p);
			continue;
		}
		if (r < 0 || !memchr(out, true, p->sources.n))
			return r;
		unmake(p);
		r = sources_drop(&p->sources, out, f);
		if (r < 0)
			return r;
	}
}

static int commit(struct parts *p, struct failure *f)
{
	const struct pp_spec *spec = &p->event.spec;
	int r = name_create(p->draft.path, p->event.id, spec);

	if (r >= 0)
		r = pins_commit(&p->draft, spec, p->event.id);
	if (r == -EEXIST)
		return name_is_taken(spec, f);
	if (r < 0)
		return fail(f, -r, "Cannot put '%s/%s' into the registry: %s.", spec->ns,
			    spec->name, strerror(-r));
	return 0;
}

int create_finish(struct parts *p, const struct pp_parsed *parsed, struct failure *f)
{
	int r = sources_parsed(&p->sources, parsed, &p->parsed);

	if (r < 0)
		return fail(f, -r, "No memory for '%s/%s'.", p->event.spec.ns, p->event.spec.name);
	r = parts_make_files(p, false, f);
	return r < 0 ? r : commit(p, f);
}

/* Before its first perf event is opened. */
static int begin_bound(struct parts *p, const struct pp_msg_target *target,
		       const struct pp_allowance *allowance, struct failure *f)
{
	if (!(p->event.spec.flags & PP_EVENT_BOUND))
		return 0;
	p->binding.target = *target;
	p->binding.broker = p->broker;
	p->binding.max = allowance ? MIN(allowance->perf_events, PP_BOUND_MAX) : PP_BOUND_MAX;
	return target_take(&p->binding.target, f);
}

/* All of its perf events are there. */
static void charge_bound(struct parts *p)
{
	if (!(p->event.spec.flags & PP_EVENT_BOUND))
		return;
	p->user_memory += (uint64_t)p->binding.n * PP_PERF_EVENT_MEMORY;
	p->event.memory = parts_memory(p);
}

int event_create(const struct pp_spec *spec, const struct pp_parsed *parsed,
		 const struct pp_trigger_spec *trigger, uint32_t program,
		 struct pp_msg_target *target, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct failure *f)
{
	_cleanup_(parts_done) struct parts p = PARTS_NONE;
	char path[PINS_PATH_SIZE];
	int r;

	p.broker = broker;
	r = create_check_name(spec, f);
	if (r >= 0)
		r = create_begin(&p, spec, parsed, program, allowance, f);
	if (r >= 0)
		r = begin_bound(&p, target, allowance, f);
	if (r >= 0)
		r = make_what_can_be(&p, trigger, f);
	charge_bound(&p);
	if (r >= 0)
		r = create_finish(&p, parsed, f);
	if (r < 0) {
		programs_forget(&p.programs);
		return r;
	}
	/* CPUs may have come online or gone offline meanwhile. */
	pins_event(p.event.id, path);
	if (event_read(path, ret) < 0)
		*ret = p.event;
	if (target)
		*target = p.binding.target;
	return 0;
}
