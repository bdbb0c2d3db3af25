// SPDX-License-Identifier: LGPL-2.1-or-later
/* Remembers the sources of existing events. See crowd.h. */
#include "daemon/engine/sources/crowd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/recorders/syscall.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "proto/macro.h"

#define PLACE_SIZE (PP_TP_NAME_SIZE + PP_PATH_SIZE + 32)

/* A term of an event, by its place: a glob counts at all that match. */
struct member {
	uint64_t id;
	uint32_t creator, weight;
	bool is_glob;
	bool is_once;	 /* a tracepoint: its event has it once, however many terms match */
	bool is_carrier; /* of system calls: counts in addition to the event's others */
	char *place;
};

static struct member *members;
static size_t n_members, room;
static bool counted; /* members has all events */

/* ── places ─────────────────────────────────────────────────────────────────────────────── */

/* "sched:sched_switch", or the place of a probe or counter, which no tracepoint's name resembles. A
 * breakpoint's place is its address. What counts in tasks is at one place, whichever they are: whatever a task
 * starts inherits all its counters, also those from its parents. */
static void name_place(const struct pp_spec *spec, const struct pp_source *term,
		       const struct tracepoint *tp, char ret[PLACE_SIZE])
{
	ret[0] = '\0';
	if (spec->flags & PP_EVENT_BOUND)
		snprintf(ret, PLACE_SIZE, "tasks and cgroups");
	else if (term->kind == PP_SOURCE_TRACEPOINT)
		snprintf(ret, PLACE_SIZE, "%s:%s", tp ? tp->system : term->system,
			 tp ? tp->name : term->name);
	else if (term->kind == PP_SOURCE_KPROBE)
		snprintf(ret, PLACE_SIZE, "%s+%" PRIu64, term->name, term->offset);
	else if (term->kind == PP_SOURCE_UPROBE)
		snprintf(ret, PLACE_SIZE, "%s+%" PRIu64, term->path, term->offset);
	else if (pp_source_counts(term))
		snprintf(ret, PLACE_SIZE, "%u+%" PRIu64 "+%" PRIu64, term->type, term->config,
			 term->type == PERF_TYPE_BREAKPOINT ? term->config1 : 0);
}

/* The place that carries the system call's tracepoint. */
static void name_carrier(const struct tracepoint *tp, char place[PLACE_SIZE])
{
	snprintf(place, PLACE_SIZE, "raw_syscalls:%s", syscall_carrier_name(tp));
}

/* Whether it counts beside the last one of its kind: a tracepoint's event counts once, and its
 * members are adjacent. */
static bool is_another(const struct member *m, uint64_t last[2])
{
	bool is = !m->is_once || m->id != last[m->is_carrier];

	last[m->is_carrier] = m->id;
	return is;
}

static bool is_there(const struct member *m, const char *place)
{
	return m->is_glob ? pp_glob_match(m->place, place) : strcmp(m->place, place) == 0;
}

/* ── existing events ────────────────────────────────────────────────────────────────────── */

static int add_member(const struct pp_event *event, const struct pp_source *term, bool is_carrier,
		      const char *place)
{
	char *copy;

	if (n_members == room) {
		size_t more = MAX(room * 2, (size_t)64);
		struct member *p = reallocarray(members, more, sizeof(*p));

		if (!p)
			return -ENOMEM;
		members = p;
		room = more;
	}
	copy = strdup(place);
	if (!copy)
		return -ENOMEM;
	members[n_members++] = (struct member){
		.id = event->id,
		.creator = event->spec.creator,
		.weight = MAX(event->weight, 1U),
		.is_glob = source_term_is_glob(term) && !is_carrier,
		.is_once = term->kind == PP_SOURCE_TRACEPOINT,
		.is_carrier = is_carrier,
		.place = copy,
	};
	return 0;
}

/* Globs are not resolved here: one is assumed to match unless it begins differently. */
static bool may_match(const struct pp_source *term, const char *begin)
{
	size_t n = MIN(strcspn(term->name, "*?[\\"), strlen(begin));

	return term->kind == PP_SOURCE_TRACEPOINT && pp_glob_match(term->system, "syscalls") &&
	       strncmp(term->name, begin, n) == 0;
}

/* System calls may be carried by raw_syscalls (syscall.h), which all calls pass. */
static int add_carriers(const struct pp_event *event, const struct pp_source *term)
{
	static const char *const begin[] = { "sys_enter_", "sys_exit_" };
	bool of_many = source_term_is_glob(term) && event->n_sources > SYSCALL_MANY;
	struct tracepoint tp = { .system = "syscalls" };
	char place[PLACE_SIZE];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(begin); i++) {
		snprintf(tp.name, sizeof(tp.name), "%s", begin[i]);
		if (!may_match(term, begin[i]) || !syscall_is_carried(&tp, of_many))
			continue;
		name_carrier(&tp, place);
		r = add_member(event, term, true, place);
	}
	return r;
}

static int add_term(const struct pp_event *event, const struct pp_source *term)
{
	char place[PLACE_SIZE];
	int r = add_carriers(event, term);

	name_place(&event->spec, term, NULL, place);
	return r < 0 ? r : add_member(event, term, false, place);
}

static int add_event(const struct pp_event *event, const struct pp_parsed *parsed)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < parsed->n_sources; i++)
		r = add_term(event, &parsed->sources[i]);
	return r;
}

static int count_event(const char *path, void *userdata _unused_)
{
	_cleanup_free_ struct pp_parsed *parsed = NULL;
	_cleanup_close_ int fd = pins_get(path, "meta");
	struct pp_event event;
	int r = fd < 0 ? fd : meta_read_all(fd, &event, &parsed, NULL, NULL, NULL);

	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	return r < 0 ? 0 : add_event(&event, parsed); /* names_foreach() logs unreadable ones */
}

static void forget(void)
{
	while (n_members > 0)
		free(members[--n_members].place);
}

static int count(struct failure *f)
{
	int r;

	if (counted)
		return 0;
	forget();
	r = pins_foreach(count_event, NULL);
	if (r < 0)
		return fail(f, -r, "Cannot count the programs of existing events: %s.",
			    strerror(-r));
	counted = true;
	return 0;
}

void crowd_add(const struct pp_event *event)
{
	char path[PINS_PATH_SIZE];

	pins_event(event->origin, path);
	if (counted && count_event(path, NULL) < 0)
		counted = false;
}

void crowd_remove(uint64_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < n_members; i++) {
		if (members[i].id == id)
			free(members[i].place);
		else
			members[n++] = members[i];
	}
	n_members = n;
}

void crowd_recount(void)
{
	counted = false;
}

/* ── limits ─────────────────────────────────────────────────────────────────────────────── */

/* raw_syscalls itself and carried system calls in one event are two programs. */
static uint32_t count_raw_before(const struct sources *s, size_t n)
{
	const struct source *source = &s->v[n];
	const char *raw = source->is_carried ? syscall_carrier_name(source->tp) : source->tp->name;

	if (!source->is_carried && strcmp(source->tp->system, "raw_syscalls"))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct source *other = &s->v[i];

		if (!other->tp || other->is_carried == source->is_carried)
			continue;
		if (other->is_carried ? !strcmp(syscall_carrier_name(other->tp), raw)
				      : !strcmp(other->tp->system, "raw_syscalls") &&
						!strcmp(other->tp->name, raw))
			return 1;
	}
	return 0;
}

/* Programs of the event itself: a tracepoint has one, however many terms match, other places one
 * for each term. */
static uint32_t count_before(const struct sources *s, size_t n, const char *place)
{
	char other[PLACE_SIZE];
	uint32_t there = 0;

	if (s->v[n].parsed->kind == PP_SOURCE_TRACEPOINT)
		return count_raw_before(s, n);
	for (size_t i = 0; i < n; i++) {
		if (s->v[i].parsed->kind == PP_SOURCE_TRACEPOINT)
			continue;
		name_place(s->v[i].spec, s->v[i].parsed, NULL, other);
		there += strcmp(other, place) == 0;
	}
	return there;
}

/* weight: of the heaviest source in s. */
static int check_place(const struct pp_event *event, const struct sources *s, size_t n,
		       uint32_t weight, const struct pp_allowance *a, struct failure *f)
{
	uint32_t creator = event->spec.creator;
	const struct source *source = &s->v[n];
	bool is_bound = event->spec.flags & PP_EVENT_BOUND;
	bool has_text = pp_source_counts(source->parsed) && !is_bound;
	const char *text = has_text ? source->parsed->text : NULL;
	char place[PLACE_SIZE];
	uint64_t own, all, last[2] = {};

	name_place(&event->spec, source->parsed, source->tp, place);
	if (source->is_carried)
		name_carrier(source->tp, place);
	own = all = (uint64_t)count_before(s, n, place) * weight;
	for (size_t i = 0; i < n_members; i++) {
		if (members[i].id == event->id || !is_there(&members[i], place) ||
		    !is_another(&members[i], last))
			continue;
		all += members[i].weight;
		if (members[i].creator == creator)
			own += members[i].weight;
	}
	if (own + weight > a->creator_there && is_bound)
		return fail(
			f, EDQUOT,
			"User %u has %ju counters in tasks and cgroups, and this event has more; the "
			"limit is %u, since all that such a task starts inherits them: delete some, "
			"record everywhere with a filter, or have MaxOnTracepointPerUser= raised.",
			creator, (uintmax_t)own, a->creator_there);
	if (own + weight > a->creator_there)
		return fail(
			f, EDQUOT,
			"User %u has %ju programs on '%s', and this event counts as %u more (by "
			"its call chain or stack, or the text that its filter compares); the limit "
			"is %u, since each program delays all tasks there: share an existing event "
			"(--share), join filters with ||, record less, or have "
			"MaxOnTracepointPerUser= raised.",
			creator, (uintmax_t)own, text ? text : place, weight, a->creator_there);
	if (all + weight > a->all_there)
		return fail(
			f, EDQUOT,
			"%ju programs are on '%s' already, and this event counts as %u more; the "
			"remaining places are for root and other tools; share an existing event "
			"(--share), or have MaxOnTracepoint= raised.",
			(uintmax_t)all, text ? text : place, weight);
	return 0;
}

/* Whether both may be at one place. For two globs only the kernel's list could tell: they are
 * assumed to meet unless they begin differently. */
static bool may_meet(const struct member *a, const struct member *b)
{
	size_t n;

	if (!a->is_glob || !b->is_glob)
		return a->is_glob ? is_there(a, b->place) : is_there(b, a->place);
	n = MIN(strcspn(a->place, "*?[\\"), strcspn(b->place, "*?[\\"));
	return strncmp(a->place, b->place, n) == 0;
}

/* The weight that `creator` would have at this member's place after inheriting the event. */
static uint64_t inherited_there(const struct member *m, uint32_t creator)
{
	uint64_t sum = 0, last[2] = {};

	for (size_t i = 0; i < n_members; i++) {
		const struct member *other = &members[i];
		bool is_own = other->id == m->id, meets;

		meets = is_own ? strcmp(other->place, m->place) == 0
			       : other->creator == creator && may_meet(other, m);
		if (meets && is_another(other, last))
			sum += other->weight;
	}
	return sum;
}

/* A failure to count must not end anybody's event. */
bool crowd_may_inherit(const struct pp_event *event, uint32_t creator, const struct pp_allowance *a)
{
	struct failure f = {};

	if (!a || event->spec.creator == creator)
		return true;
	if (a->sources == 0)
		return false;
	if (a->creator_there == UINT32_MAX || count(&f) < 0)
		return true;
	for (size_t i = 0; i < n_members; i++)
		if (members[i].id == event->id &&
		    inherited_there(&members[i], creator) > a->creator_there)
			return false;
	return true;
}

int crowd_check_work(uint64_t work, const struct pp_allowance *a, struct failure *f)
{
	if (!a || work <= a->work || a->work == UINT32_MAX)
		return 0;
	return fail(f, EDQUOT,
		    "The events under one name have %" PRIu64 " programs and comparisons of "
		    "filters, whose loading delays other users; the limit is %u: name fewer "
		    "events, or write a shorter filter.",
		    work, a->work);
}

int crowd_check_size(const struct pp_spec *spec, size_t n, uint64_t work,
		     const struct pp_allowance *a, struct failure *f)
{
	if (!a)
		return 0;
	if (n > a->sources)
		return fail(f, EDQUOT,
			    "'%s' stands for %zu events or more, and user %u may have %u more; "
			    "name fewer, delete events, or have MaxProgramsPerUser= (or "
			    "MaxPrograms=) raised.",
			    spec->event, n, spec->creator, a->sources);
	return crowd_check_work(work, a, f);
}

int crowd_check_places(const struct pp_event *event, const struct sources *s,
		       const struct pp_allowance *a, struct failure *f)
{
	uint32_t weight;
	int r;

	if (!a || (a->creator_there == UINT32_MAX && a->all_there == UINT32_MAX))
		return 0;
	weight = sources_weight(s);
	r = count(f);
	for (size_t i = 0; r >= 0 && i < s->n; i++)
		r = check_place(event, s, i, weight, a, f);
	return r;
}
