// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Findings: who is behind a sleep. A record of a wakeup names whoever the CPU ran, also where an interrupt
 * woke: a timer, a disk, a network device. And the waker may have had to wait for another one itself.
 */
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

/* An interrupt is as likely at any moment: it hardly comes upon what took less than one of so many parts of a time. */
#define CHANCE 100

/* ── Did the waker do it ── */

struct of_name {
	const struct findings *f;
	uint32_t name;
	uint64_t ns;
	struct finding_party *party; /* NULL: does not matter */
};

static int add_named(void *arg, uint32_t thread, uint64_t ns)
{
	struct of_name *o = arg;

	if (o->f->threads[thread].name != o->name)
		return 0;
	o->ns += ns;
	if (o->party)
		findings_take(o->f, o->party, thread);
	return 0;
}

/* How long threads with the waker's name ran during the sleep, on all CPUs: in a loop that begins many, an
 * interrupt meets another one each time. UINT64_MAX: there have been too many looks. */
static uint64_t named_ran(struct findings *f, const struct stretch *s)
{
	struct of_name o = { .f = f, .name = f->threads[s->waker].name };

	for (uint32_t cpu = 0; cpu < f->n_cpus && f->looks; cpu++) {
		f->looks--;
		findings_who_ran(f, cpu, s->begin, s->end, add_named, &o);
	}
	return f->looks ? o.ns : UINT64_MAX;
}

uint64_t findings_named_on(struct findings *f, const struct stretch *s, uint32_t cpu,
			   uint32_t thread, struct finding_party *party)
{
	struct of_name o = { .f = f, .name = f->threads[thread].name, .party = party };

	findings_who_ran(f, cpu, s->begin, s->end, add_named, &o);
	return o.ns;
}

/* Sleeps that are at least half as long: so many are looked at. */
#define ALIKE 64

/* Of a hundred threads that hardly run, an interrupt comes upon one now and then, and mostly upon nobody: so this one
 * has to have ended most of the like sleeps. */
static bool is_by_others(const struct findings *f, const struct stretch *s)
{
	const struct stretch *all;
	size_t known = 0, looked = 0, n;
	uint64_t begin;

	n = findings_group(f, s->thread, s->kind, &all, &begin);
	while (n-- > 0 && looked < ALIKE && all[n].ns >= s->ns / 2) {
		looked++;
		known += all[n].waker != FINDINGS_NONE &&
			 f->threads[all[n].waker].name == f->threads[s->waker].name;
	}
	return 2 * known < looked;
}

/* It hardly ran meanwhile, so that hardly any interrupt can have met it; or it slept just afterwards, as one
 * that lets go a lock, or has answered. */
bool findings_is_deliberate(struct findings *f, const struct stretch *s)
{
	uint64_t little = s->ns / CHANCE;
	const struct stretch *burst;

	if (findings_serves_others(f->threads[s->waker].comm) || is_by_others(f, s))
		return false;
	if (f->names[f->threads[s->waker].name].ran < little)
		return true;
	burst = findings_at(f, s->waker, STRETCH_BURST, s->end);
	return (burst && !burst->is_open &&
		burst->end - s->end < (burst->end - burst->begin) / CHANCE) ||
	       named_ran(f, s) < little;
}

/* A shell waits for what it has begun, and sshd for the shell. The record of an end comes before its wakeups. */
bool findings_awaits_end(const struct findings *f, const struct stretch *s)
{
	uint64_t exited = f->threads[s->waker].exited;

	return exited && exited < s->end + FINDINGS_OUTLIER;
}

/* ── For whom did the waker wait ── */

#define STEPS 16

/* What the thread waited in for most of the time of s; NULL: for nothing. It is around the middle, then. */
static const struct stretch *waited_in(const struct findings *f, uint32_t thread,
				       const struct stretch *s)
{
	static const enum stretch_kind kinds[] = { STRETCH_SLEEP, STRETCH_BLOCKED, STRETCH_WAIT,
						   STRETCH_PREEMPTED, STRETCH_STOPPED };
	uint64_t middle = s->begin + (s->end - s->begin) / 2;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct stretch *w = findings_at(f, thread, kinds[i], middle);

		if (w && MIN(w->end, s->end) - MAX(w->begin, s->begin) > (s->end - s->begin) / 2)
			return w;
	}
	return NULL;
}

struct longest {
	const struct stretch *s;
	struct {
		uint32_t thread;
		uint64_t ns;
	} parts[16];
	size_t n;
	uint64_t all;
};

static int add_part(void *arg, uint32_t thread, uint64_t ns)
{
	struct longest *l = arg;
	size_t i = 0;

	if (thread == l->s->thread)
		return 0;
	l->all += ns;
	while (i < l->n && l->parts[i].thread != thread)
		i++;
	if (i == ARRAY_SIZE(l->parts))
		return 0;
	if (i == l->n) {
		l->parts[l->n].thread = thread;
		l->parts[l->n++].ns = 0;
	}
	l->parts[i].ns += ns;
	return 0;
}

uint32_t findings_longest_on(struct findings *f, const struct stretch *s, uint32_t cpu,
			     uint64_t *ret_ns, uint64_t *ret_all)
{
	struct longest l = { .s = s };
	uint32_t thread = FINDINGS_NONE;

	*ret_ns = 0;
	findings_who_ran(f, cpu, s->begin, s->end, add_part, &l);
	for (size_t i = 0; i < l.n; i++)
		if (l.parts[i].ns > *ret_ns) {
			*ret_ns = l.parts[i].ns;
			thread = l.parts[i].thread;
		}
	*ret_all = l.all;
	return thread;
}

/* An interrupt may have come upon it: surely where the disk was awaited. */
static bool is_by_another_process(struct findings *f, const struct stretch *w)
{
	f->looks -= MIN(f->looks, (uint64_t)ALIKE);
	if (w->kind == STRETCH_BLOCKED &&
	    ((!w->knows_disks && f->n_requests > 0) ||
	     findings_on_disk(f, w->begin, w->end) > (w->end - w->begin) / 2))
		return false;
	return !findings_awaits_end(f, w) && findings_is_deliberate(f, w);
}

/* Who had the CPU for which `root` waited again and again, for most of the time of s. */
static uint32_t had_its_cpu(struct findings *f, const struct stretch *s, uint32_t root)
{
	struct stretch of_root = *s;
	uint64_t ns, all;
	uint32_t cpu;

	of_root.thread = root;
	if (2 * findings_waited(f, root, s->begin, s->end, &cpu) <= s->end - s->begin)
		return FINDINGS_NONE;
	return findings_longest_on(f, &of_root, cpu, &ns, &all);
}

/* Each step's waker was woken before it woke, so no step comes back, unless in a file that somebody made up. */
uint32_t findings_root(struct findings *f, const struct stretch *s)
{
	uint32_t root = s->waker, other;
	uint64_t ns, all;

	for (int step = 0; step < STEPS && f->looks; step++) {
		const struct stretch *w = waited_in(f, root, s);

		f->looks -= MIN(f->looks, 16U);
		if (!w) {
			other = had_its_cpu(f, s, root);
			return other == FINDINGS_NONE || other == s->thread ? root : other;
		}
		if (w->kind == STRETCH_WAIT || w->kind == STRETCH_PREEMPTED) {
			other = findings_longest_on(f, w, w->cpu, &ns, &all);
			return other == FINDINGS_NONE || other == s->thread ? root : other;
		}
		other = w->waker;
		if (w->kind == STRETCH_STOPPED)
			other = w->stopper;
		if (other == FINDINGS_NONE || other == root || other == s->thread)
			break;
		if (w->kind != STRETCH_STOPPED && !findings_same_process(f, root, other) &&
		    !is_by_another_process(f, w))
			break;
		root = other;
	}
	return root;
}
