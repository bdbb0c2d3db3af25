// SPDX-License-Identifier: LGPL-2.1-or-later
/* Entries and links. See links.h. */
#include "daemon/engine/sources/links.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/kernel/cgroup.h"
#include "daemon/engine/kernel/pmu.h"
#include "daemon/engine/kernel/target.h"
#include "daemon/engine/sources/attach.h"
#include "daemon/engine/sources/bound.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

#define TEXT_SIZE (PP_TP_NAME_SIZE * 2)

/* ── CPUs ───────────────────────────────────────────────────────────────────────────────── */

/* The CPUs of `cpus` on which the term counts. */
static int term_cpus(const struct pp_source *term, const struct pp_cpumask *cpus,
		     struct pp_cpumask *ret)
{
	struct pp_cpumask of_pmu;
	int r;

	*ret = *cpus;
	if (!pp_source_counts(term) || !term->any_cpu)
		return 0;
	r = pmu_cpus(term->type, &of_pmu);
	if (r == -ENOENT)
		return 0;
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(ret->bits); i++)
		ret->bits[i] &= of_pmu.bits[i];
	return r;
}

/* All of a group are where its first event, with the AUX area, is. */
static const struct pp_source *placing_term(const struct source *source)
{
	return source->spec->flags & PP_EVENT_AUX_GROUP ? source->parsed - source->term
							: source->parsed;
}

static int source_cpus(const struct source *source, const struct pp_cpumask *cpus,
		       struct pp_cpumask *ret, struct failure *f)
{
	int r = term_cpus(placing_term(source), cpus, ret);

	return r < 0 ? fail(f, -r, "Cannot read on which CPUs the PMU of '%s' counts: %s.",
			    source->parsed->text, strerror(-r))
		     : 0;
}

int links_parsed_cpus(const struct pp_parsed *parsed, struct pp_cpumask *cpus)
{
	uint32_t n = parsed->sources[0].kind == PP_SOURCE_AUX ? 1 : parsed->n_sources;
	struct pp_cpumask all = {}, one;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < n; i++) {
		r = term_cpus(&parsed->sources[i], cpus, &one);
		for (size_t w = 0; r >= 0 && w < ARRAY_SIZE(all.bits); w++)
			all.bits[w] |= one.bits[w];
	}
	if (r >= 0)
		*cpus = all;
	return r;
}

int links_cpus(const struct sources *s, struct pp_cpumask *cpus, struct failure *f)
{
	struct pp_cpumask all = {}, one;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < s->n; i++) {
		r = source_cpus(&s->v[i], cpus, &one, f);
		for (size_t w = 0; r >= 0 && w < ARRAY_SIZE(all.bits); w++)
			all.bits[w] |= one.bits[w];
	}
	if (r >= 0)
		*cpus = all;
	return r;
}

static bool is_empty(const struct pp_cpumask *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->bits); i++)
		if (m->bits[i])
			return false;
	return true;
}

static int no_cpu(const struct source *source, struct failure *f)
{
	struct pp_cpumask of_pmu;
	char list[256];

	if (pmu_cpus(source->parsed->type, &of_pmu) < 0 ||
	    pp_format_cpus(&of_pmu, list, sizeof(list)) < 0)
		strcpy(list, "others");
	return fail(f, ENODEV,
		    "'%s' counts for whole packages, and on CPUs %s only; name one of those, or "
		    "none.",
		    source->parsed->text, list);
}

/* ── linking ────────────────────────────────────────────────────────────────────────────── */

/* Failures that concern one source and not all. */
static bool is_its_own_fault(int r)
{
	return r == -EOPNOTSUPP || r == -EPERM || r == -EACCES || r == -ENOENT;
}

static int pin(struct pins_draft *draft, int fd, const char *leaf, struct failure *f)
{
	int r = pins_add(draft, fd, leaf, 0, 0, 0600);

	if (r < 0)
		return fail(f, -r, "Cannot pin %s in the registry: %s.", leaf, strerror(-r));
	return 0;
}

static struct perf_place place_on(unsigned cpu, int cgroup)
{
	return (struct perf_place){ .cpu = (int)cpu, .tid = -1, .cgroup = cgroup };
}

static int link_on(const struct source *source, int entry, const struct perf_place *at,
		   const char *leaf, struct pins_draft *draft, struct failure *f)
{
	_cleanup_close_ int link = -EBADF;
	int r = attach_source(source, entry, at, &link);

	return r < 0 ? attach_failure(source, r, at, f) : pin(draft, link, leaf, f);
}

static int link_everywhere(const struct source *source, size_t i, int entry, int cgroup,
			   const struct pp_cpumask *cpus, struct pins_draft *draft,
			   struct failure *f)
{
	char leaf[32];
	int r = 0;

	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		const struct perf_place at = place_on(cpu, cgroup);

		if (!source->recorder->per_cpu) {
			snprintf(leaf, sizeof(leaf), "link%zu", i);
			return link_on(source, entry, &at, leaf, draft, f);
		}
		snprintf(leaf, sizeof(leaf), "link%zu-%u", i, cpu);
		r = link_on(source, entry, &at, leaf, draft, f);
		if (r < 0)
			break;
	}
	return r;
}

static int load_entry(const struct source *source, size_t i, const struct programs *p, int *ret,
		      struct failure *f)
{
	struct recorder_slot slot = programs_slot(p, i);
	int r = source->recorder->entry(source, &slot, ret);
	char text[TEXT_SIZE];

	if (r >= 0)
		return 0;
	source_text(source, text, sizeof(text));
	return fail(f, -r, "The kernel refuses the entry of the program for '%s': %s.", text,
		    strerror(-r));
}

int links_entry(const struct sources *s, const struct programs *p, int *ret, struct failure *f)
{
	return load_entry(&s->v[0], 0, p, ret, f);
}

static int link_source(const struct source *source, size_t i, const struct programs *p, int cgroup,
		       const struct pp_cpumask *cpus, struct pins_draft *draft, struct failure *f)
{
	_cleanup_close_ int entry = -EBADF;
	struct pp_cpumask mine;
	int r;

	r = source_cpus(source, cpus, &mine, f);
	if (r < 0)
		return r;
	if (is_empty(&mine))
		return no_cpu(source, f);
	r = load_entry(source, i, p, &entry, f);
	return r < 0 ? r : link_everywhere(source, i, entry, cgroup, &mine, draft, f);
}

/* The first source of those that share an entry links it, and the first of a group stands for all. */
static bool has_link(const struct sources *s, size_t i)
{
	const struct source *source = &s->v[i], *other;

	if (source->spec->flags & PP_EVENT_AUX_GROUP)
		return i == 0;
	for (other = s->v; source_shares_entry(source) && other < source; other++)
		if (source_shares_entry(other) && !strcmp(other->recorder->entry_class(other),
							  source->recorder->entry_class(source)))
			return false;
	return true;
}

/* The sources to link, and how many of them are left. */
struct linking {
	const struct sources *s;
	const struct programs *p;
	const struct pp_cpumask *cpus;
	struct pins_draft *draft;
	bool *out;
	size_t left;
	int cgroup; /* the directory of that in which alone they count; -EBADF */
};

static int link_or_leave_out(struct linking *l, size_t i, struct failure *f)
{
	const struct source *source = &l->s->v[i];
	struct failure mine = {};
	int r = has_link(l->s, i)
			? link_source(source, i, l->p, l->cgroup, l->cpus, l->draft, &mine)
			: 0;

	if (r >= 0)
		return 0;
	if (!source_is_optional(source) || source_shares_entry(source) || !is_its_own_fault(r) ||
	    --l->left == 0) {
		*f = mine;
		return r;
	}
	log_notice("Event %s/%s leaves out tracepoint %s:%s of '%s': %s", source->spec->ns,
		   source->spec->name, source->tp->system, source->tp->name, source->parsed->text,
		   mine.sentence);
	l->out[i] = true;
	return 0;
}

/* ── bound events ───────────────────────────────────────────────────────────────────────── */

static bool has_cgroup(const struct sources *s)
{
	return s->binding && !target_is_task(&s->binding->target);
}

/* -ENOENT: it is removed. */
static int open_cgroup(const struct sources *s, int *ret)
{
	*ret = has_cgroup(s) ? cgroup_open(s->binding->target.cgroup, s->binding->target.start)
			     : -EBADF;
	return has_cgroup(s) ? MIN(*ret, 0) : 0;
}

/* Nothing is counted for a source on which CPUs it counts: this is an upper bound. */
static int count_in_cgroup(const struct sources *s, const struct pp_cpumask *cpus,
			   struct failure *f)
{
	struct binding *b = s->binding;
	size_t n = s->n * pp_cpumask_count(cpus);

	b->n = (uint32_t)n;
	if (n <= b->max)
		return 0;
	return fail(
		f, E2BIG,
		"A cgroup takes a perf event for each event on each CPU, which are %zu here; there "
		"is room for %u, by what the limits of its creator leave (%u KiB each) and the %u "
		"that one event can have. Name fewer CPUs (-C) or events.",
		n, b->max, PP_PERF_EVENT_MEMORY / 1024, PP_BOUND_MAX);
}

static int link_threads(const struct sources *s, const struct programs *p, struct pins_draft *draft,
			struct failure *f)
{
	int entries[PP_TERMS_MAX], r = 0;
	size_t n = 0;

	/* (Only tracepoints have globs.) */
	if (s->n > ARRAY_SIZE(entries))
		return fail(f, E2BIG, "%zu events are too many to be bound to a task.", s->n);
	for (; r >= 0 && n < s->n; n++) {
		entries[n] = -EBADF;
		r = load_entry(&s->v[n], n, p, &entries[n], f);
	}
	if (r >= 0)
		r = bound_link_threads(s, entries, draft, f);
	while (n > 0)
		close_fd(entries[--n]);
	return r;
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static int begin_in_cgroup(const struct sources *s, const struct pp_cpumask *cpus, int *ret,
			   struct failure *f)
{
	int r = open_cgroup(s, ret);

	if (r < 0)
		return fail(f, -r, "The cgroup '%s' cannot be opened: %s.",
			    s->binding->target.cgroup, strerror(-r));
	return has_cgroup(s) ? count_in_cgroup(s, cpus, f) : 0;
}

/* Required sources come first: if no register were free for the last of them, the kernel would take
 * long to take back hundreds of links, and other orders would wait. */
int links_create(const struct sources *s, const struct programs *p, const struct pp_cpumask *cpus,
		 struct pins_draft *draft, bool *out, struct failure *f)
{
	_cleanup_close_ int cgroup = -EBADF;
	struct linking l = { s, p, cpus, draft, out, s->n, -EBADF };
	int r = 0;

	if (s->binding && !has_cgroup(s))
		return link_threads(s, p, draft, f);
	r = begin_in_cgroup(s, cpus, &cgroup, f);
	l.cgroup = cgroup;
	for (size_t i = 0; r >= 0 && i < s->n; i++)
		if (!source_is_optional(&s->v[i]))
			r = link_or_leave_out(&l, i, f);
	for (size_t i = 0; r >= 0 && i < s->n; i++)
		if (source_is_optional(&s->v[i]))
			r = link_or_leave_out(&l, i, f);
	return r;
}

/* ── attaching again ────────────────────────────────────────────────────────────────────── */

/* A link that died with its CPU still holds its register: it goes first if no other is free. */
static int renew_on(const struct source *source, int entry, const struct perf_place *at,
		    const char *path, const char *leaf, struct failure *f)
{
	_cleanup_close_ int link = -EBADF;
	int r = source->recorder->attach(source, entry, at, &link);

	if (attach_is_used_up(r)) {
		pins_drop(path, leaf);
		r = attach_source(source, entry, at, &link);
	}
	if (r == -ENODEV)
		return r;
	if (r < 0)
		return attach_failure(source, r, at, f);
	r = pins_put(path, link, leaf, 0, 0, 0600);
	return r < 0 ? fail(f, -r, "Cannot pin %s in the registry: %s.", leaf, strerror(-r)) : 0;
}

/* -errno: the first of those that failed. The CPUs where it did are taken out of cpus. */
static int renew_source(const struct source *source, size_t i, const struct programs *p, int cgroup,
			const char *path, struct pp_cpumask *cpus, struct failure *f)
{
	_cleanup_close_ int entry = -EBADF;
	struct pp_cpumask mine;
	char leaf[32];
	int r = source_cpus(source, cpus, &mine, f), failed = 0;

	if (r >= 0 && !is_empty(&mine))
		r = load_entry(source, i, p, &entry, f);
	if (r < 0) {
		*cpus = (struct pp_cpumask){};
		return r;
	}
	PP_CPUMASK_FOREACH(cpu, &mine)
	{
		const struct perf_place at = place_on(cpu, cgroup);

		snprintf(leaf, sizeof(leaf), "link%zu-%u", i, cpu);
		r = renew_on(source, entry, &at, path, leaf, f);
		if (r < 0)
			pp_cpumask_clear(cpus, cpu);
		if (r < 0 && r != -ENODEV && failed == 0)
			failed = r;
	}
	return failed;
}

int links_renew(const struct sources *s, const struct programs *p, const char *path,
		struct pp_cpumask *cpus, struct failure *f)
{
	_cleanup_close_ int cgroup = -EBADF;
	int r = open_cgroup(s, &cgroup), failed = 0;

	/* Tasks have theirs wherever they run; in a cgroup that is removed nothing will ever run. */
	if ((s->binding && !has_cgroup(s)) || r == -ENOENT)
		return 0;
	if (r < 0) {
		*cpus = (struct pp_cpumask){};
		return fail(f, -r, "The cgroup '%s' cannot be opened: %s.",
			    s->binding->target.cgroup, strerror(-r));
	}
	for (size_t i = 0; i < s->n; i++) {
		if (!s->v[i].recorder->per_cpu || !has_link(s, i))
			continue;
		r = renew_source(&s->v[i], i, p, cgroup, path, cpus, f);
		if (failed == 0)
			failed = r;
	}
	return failed;
}

/* ── pinned links ───────────────────────────────────────────────────────────────────────── */

static int carry_link(const char *path, const char *leaf, void *userdata)
{
	_cleanup_close_ int fd = -EBADF;

	if (strncmp(leaf, "link", 4) != 0)
		return 0;
	fd = pins_get(path, leaf);
	return fd < 0 ? fd : pins_add(userdata, fd, leaf, 0, 0, 0600);
}

int links_carry(const char *path, struct pins_draft *draft)
{
	return pins_foreach_leaf(path, carry_link, draft);
}

static int carry_former(const char *path, const char *leaf, void *userdata)
{
	_cleanup_close_ int fd = -EBADF;
	char former[64];

	if (strncmp(leaf, "link", 4) != 0 || !strchr(leaf, '-'))
		return 0;
	fd = pins_get(path, leaf);
	snprintf(former, sizeof(former), PINS_FORMER "%.32s", leaf);
	return fd < 0 ? fd : pins_add(userdata, fd, former, 0, 0, 0600);
}

int links_carry_former(const char *path, struct pins_draft *draft)
{
	return pins_foreach_leaf(path, carry_former, draft);
}

static int drop_former(const char *path, const char *leaf, void *userdata _unused_)
{
	if (!strncmp(leaf, PINS_FORMER, strlen(PINS_FORMER)))
		pins_drop(path, leaf);
	return 0;
}

int links_drop_former(const char *path)
{
	return pins_foreach_leaf(path, drop_former, NULL);
}

/* Earlier engines gave each a slot of its own, in order; now slots go by call numbers. */
void links_recognize(struct sources *s, const char *path)
{
	if (programs_fit(s, path))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (source_shares_entry(&s->v[i])) {
			s->v[i].is_carried = false;
			s->v[i].is_preemptible = kernel_preempts_syscalls();
		}
}

/* Overflow programs compare the counter with the samples instead; uprobes miss nothing. */
static bool is_counted(const struct source *source)
{
	return !source->recorder->per_cpu && !source->can_nest;
}

static int entry_id(const char *path, size_t i, uint32_t *ret)
{
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);
	_cleanup_close_ int fd = -EBADF;
	char leaf[32];

	snprintf(leaf, sizeof(leaf), "link%zu", i);
	fd = pins_get(path, leaf);
	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	*ret = info.prog_id;
	return 0;
}

int links_counted(const struct sources *s, const char *path, uint32_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint32_t *ids = calloc(s->n, sizeof(*ids));
	size_t n = 0;
	int r = 0;

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < s->n; i++)
		if (is_counted(&s->v[i]) && has_link(s, i))
			r = entry_id(path, i, &ids[n++]);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ids);
	*ret_n = n;
	return 0;
}
