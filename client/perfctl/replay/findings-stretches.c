// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Findings: what threads did for longer than they use to, and who kept them from running.
 *
 * What a thread does is judged by what the same thread does mostly: a server that answers in 50 µs and once
 * runs for 300 ms stands out, and a compiler that always runs does not.
 */
#include <signal.h>
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

/* An outlier takes FINDINGS_OUTLIER at least, and so many times the median of so many at least. */
#define OUTLIER_TIMES 20
#define OUTLIER_OF 10

/* ── Waiting for a CPU ── */

/* A thread that runs all the time loses nothing but throughput by a wait. */
static double how_it_hurts(const struct findings *f, const struct finding_thread *t)
{
	double idle = 1 - (double)t->ran / (double)MAX(f->end - f->begin, 1);

	if (findings_serves_others(t->comm))
		idle *= 0.3;
	return idle > 0 ? idle * idle : 0;
}

/* Nobody had the CPU for most of the time: neither that on which it ran then, nor that on which it had run. */
static int judge_held(struct findings *f, const struct stretch *s)
{
	bool is_guess = s->is_open && s->kind == STRETCH_WAIT; /* the CPU for which it waits */
	struct tally *t;

	if (s->ns < FINDINGS_OUTLIER || s->cpu_before == UINT32_MAX || is_guess || !f->looks ||
	    findings_serves_others(f->threads[s->thread].comm))
		return 0;
	if (findings_tally(f, FINDING_HELD, FINDINGS_NONE, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.victim, s->thread);
	findings_count(t, s, s->ns);
	return 0;
}

/* The one that ran longest is to blame: of each wait there is one row at most. */
static int judge_wait(struct findings *f, const struct stretch *s)
{
	const struct finding_thread *victim = &f->threads[s->thread];
	uint64_t ns, all, ns_before, all_before;
	uint32_t cpu = s->cpu, most, before;
	struct tally *t;

	if (s->kind == STRETCH_PREEMPTED && s->ns < FINDINGS_PREEMPTION)
		return 0;
	most = findings_longest_on(f, s, s->cpu, &ns, &all);
	before = findings_longest_on(f, s, s->cpu_before, &ns_before, &all_before);
	if (MAX(all, all_before) < s->ns / 2)
		return judge_held(f, s);
	/* An idle CPU may have taken it over. */
	if (ns_before > ns) {
		cpu = s->cpu_before;
		most = before;
		ns = ns_before;
	}
	if (most == FINDINGS_NONE)
		return 0;
	/* Where the wait has not ended the CPU is a guess; and who takes turns with others takes nothing away. */
	if ((s->kind == STRETCH_PREEMPTED || s->is_open) && ns < s->ns / 5 * 4)
		return 0;
	if (findings_tally(f, FINDING_CPU, f->threads[most].name, victim->name, &t) < 0)
		return -ENOMEM;
	ns = findings_named_on(f, s, cpu, most, &t->finding.culprit);
	findings_take(f, &t->finding.victim, s->thread);
	t->overlap += ns;
	t->weight += how_it_hurts(f, victim) * (double)ns / FINDINGS_MS;
	if (s->ns > t->finding.max)
		t->thread = most;
	findings_count(t, s, s->ns);
	return 0;
}

/* ── Outliers of a thread ── */

static int judge_burst(struct findings *f, const struct stretch *s, uint64_t usual)
{
	struct tally *t;

	if (findings_tally(f, FINDING_BURST, f->threads[s->thread].name, FINDINGS_NONE, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.culprit, s->thread);
	if (s->ns > t->finding.max) {
		t->thread = s->thread;
		t->finding.usual = usual;
	}
	findings_count(t, s, s->ns);
	/* Only a server keeps others waiting by it. */
	t->weight += 0.5 * (double)s->ns / FINDINGS_MS;
	return 0;
}

/* kind: FINDING_SLEEP or FINDING_PEER. share: of the time, that it spent in such sleeps. usual 0: unknown. */
static int judge_sleep(struct findings *f, enum finding_kind kind, const struct stretch *s,
		       uint64_t usual, double share)
{
	uint32_t culprit = findings_root(f, s);
	struct tally *t;

	if (findings_tally(f, kind, f->threads[culprit].name, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.culprit, culprit);
	findings_take(f, &t->finding.victim, s->thread);
	t->overlap += findings_ran_for(f, culprit, s->begin, s->end);
	if (s->ns > t->finding.max) {
		t->thread = culprit;
		t->finding.usual = usual;
		t->finding.is_blocked = s->kind == STRETCH_BLOCKED;
		t->finding.through = (struct finding_party){};
		if (culprit != s->waker)
			findings_take(f, &t->finding.through, s->waker);
	}
	findings_count(t, s, s->ns);
	/* It may as well have had nothing to do. */
	t->weight += 0.7 * (1 - share) * (1 - share) * (double)s->ns / FINDINGS_MS;
	return 0;
}

/* It can have waited for another machine, or for a timer that somebody set. */
static int judge_alone(struct findings *f, const struct stretch *s, uint64_t usual, double share)
{
	struct tally *t;

	if (findings_tally(f, FINDING_ALONE, FINDINGS_NONE, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.victim, s->thread);
	if (s->ns > t->finding.max)
		t->finding.usual = usual;
	findings_count(t, s, s->ns);
	t->weight += 0.2 * (1 - share) * (1 - share) * (double)s->ns / FINDINGS_MS;
	return 0;
}

/* The thread that wakes it more often than all others together, or FINDINGS_NONE: an interrupt's wakeup names
 * whoever was interrupted. */
static uint32_t usual_waker(const struct stretch *all, size_t n, size_t *ret_n)
{
	uint32_t most = FINDINGS_NONE;
	size_t lead = 0, own = 0;

	/* If there is one, it is left when each is set off against another. */
	for (size_t i = 0; i < n; i++) {
		if (lead == 0)
			most = all[i].waker;
		if (all[i].waker == most)
			lead++;
		else
			lead--;
	}
	for (size_t i = 0; i < n; i++)
		own += all[i].waker == most;
	*ret_n = own;
	return 2 * own > n ? most : FINDINGS_NONE;
}

static bool has_waker(const struct stretch *s)
{
	return s->waker != FINDINGS_NONE && s->waker != s->thread;
}

/* Outliers of one thread and kind. */
struct outliers {
	const struct stretch *all; /* the shortest first */
	size_t n;
	uint64_t usual;	      /* the median */
	uint32_t usual_waker; /* or FINDINGS_NONE */
	size_t n_usual;	      /* which that one has ended */
	struct outlier {
		const struct stretch *s;
		uint64_t usual; /* ns; the median that it stands out from */
		enum finding_kind kind;
	} * told;
	size_t n_told;
	uint64_t idle; /* ns, of all that no thread of its process ended */
};

/* Who answers sleeps about as often. One that always runs is met by the timers of those that sleep beside it. */
static bool answers(const struct findings *f, const struct outliers *o)
{
	const struct stretch *bursts;
	uint64_t begin;

	return 2 * findings_group(f, o->usual_waker, STRETCH_BURST, &bursts, &begin) > o->n_usual;
}

/* Of those that this name has ended: a client that sleeps between its requests waits for no answer then.
 * 0: these are too few. */
static uint64_t usual_by_waker(const struct findings *f, const struct outliers *o,
			       const struct stretch *s)
{
	uint32_t name = f->threads[s->waker].name;
	size_t n = 0, at = 0;

	for (size_t i = 0; i < o->n; i++)
		n += o->all[i].waker != FINDINGS_NONE && f->threads[o->all[i].waker].name == name;
	if (n < OUTLIER_OF)
		return 0;
	for (size_t i = 0; i < o->n; i++)
		if (o->all[i].waker != FINDINGS_NONE && f->threads[o->all[i].waker].name == name &&
		    at++ == n / 2)
			return MAX(o->all[i].ns, 1U);
	return 0;
}

/* FINDING_KINDS: it is none. */
static enum finding_kind kind_of(struct findings *f, const struct stretch *s, bool is_usual)
{
	if (s->kind == STRETCH_BURST)
		return FINDING_BURST;
	/* One that serves others sleeps because nobody wants anything. */
	if (s->waker == s->thread || findings_serves_others(f->threads[s->thread].comm))
		return FINDING_KINDS;
	if (s->waker == FINDINGS_NONE)
		return FINDING_ALONE;
	if (findings_same_process(f, s->thread, s->waker))
		return FINDING_SLEEP;
	if (findings_serves_others(f->threads[s->waker].comm))
		return FINDING_KINDS;
	return is_usual || (!findings_awaits_end(f, s) && findings_is_deliberate(f, s))
		       ? FINDING_PEER
		       : FINDING_KINDS;
}

static int tell(struct findings *f, struct outliers *o, const struct stretch *s, uint64_t usual)
{
	bool is_usual = s->waker != FINDINGS_NONE && s->waker == o->usual_waker && answers(f, o);
	enum finding_kind kind = kind_of(f, s, is_usual);

	if (kind != FINDING_BURST && kind != FINDING_SLEEP)
		o->idle += s->ns;
	if (kind == FINDING_KINDS)
		return 0;
	if (!GROW(o->told, o->n_told))
		return -ENOMEM;
	o->told[o->n_told++] = (struct outlier){ s, usual, kind };
	return 0;
}

/* So many are compared with those of their waker. */
#define LOOKED_AT 64

static int find_outliers(struct findings *f, struct outliers *o)
{
	size_t looks = LOOKED_AT;
	int r = 0;

	for (size_t i = o->n; r >= 0 && i-- > 0 && o->all[i].ns >= FINDINGS_OUTLIER;) {
		const struct stretch *s = &o->all[i];
		uint64_t least = s->ns / OUTLIER_TIMES, usual = o->usual;

		if (least < usual && s->kind == STRETCH_SLEEP && has_waker(s) && looks) {
			usual = usual_by_waker(f, o, s) ?: usual;
			looks--;
		}
		if (least >= usual)
			r = tell(f, o, s, usual);
		else if (s->kind == STRETCH_BURST || !looks)
			break;
	}
	return r;
}

/* A thread without work sleeps as one does that waits. Who does hardly anything else has none. */
#define IDLE 0.9

static int judge_outliers(struct findings *f, const struct stretch *all, size_t n)
{
	struct outliers o = { .all = all, .n = n, .usual = all[n / 2].ns };
	double idle;
	int r;

	o.usual_waker = usual_waker(all, n, &o.n_usual);
	r = n < OUTLIER_OF ? 0 : find_outliers(f, &o);

	idle = (double)o.idle / (double)MAX(f->end - f->begin, 1);
	for (size_t i = 0; r >= 0 && i < o.n_told; i++) {
		const struct outlier *one = &o.told[i];
		double share = one->kind == FINDING_PEER || one->kind == FINDING_ALONE ? idle : 0;

		if (share > IDLE)
			continue;
		if (one->kind == FINDING_BURST)
			r = judge_burst(f, one->s, one->usual);
		else if (one->kind == FINDING_ALONE)
			r = judge_alone(f, one->s, one->usual, share);
		else
			r = judge_sleep(f, one->kind, one->s, one->usual, share);
	}
	free(o.told);
	return r;
}

/* ── Blocked, stopped, and freeing memory ── */

static int judge_sum(struct findings *f, enum finding_kind kind, const struct stretch *s)
{
	struct tally *t;

	if (findings_tally(f, kind, FINDINGS_NONE, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.victim, s->thread);
	findings_count(t, s, s->ns);
	return 0;
}

#define VFORK_LONG (100 * FINDINGS_MS)

/* While a disk had requests, an interrupt ends it, as far as one can tell. */
static int judge_blocked(struct findings *f, const struct stretch *s)
{
	bool on_disk = findings_on_disk(f, s->begin, s->end) > s->ns / 2;
	bool is_own = has_waker(s) && findings_same_process(f, s->thread, s->waker);
	/* Each vfork() blocks until the child is another program, which is no finding. */
	bool is_vfork = has_waker(s) && f->threads[s->waker].parent == s->thread;

	if (s->ns < VFORK_LONG && is_vfork)
		return 0;
	if (!s->knows_disks && f->n_requests > 0)
		return 0;
	if (s->ns >= FINDINGS_OUTLIER && has_waker(s) && !on_disk) {
		if (is_own && s->knows_disks)
			return judge_sleep(f, FINDING_SLEEP, s, 0, 0);
		if (!is_own && findings_is_deliberate(f, s))
			return judge_sleep(f, FINDING_PEER, s, 0, 0);
	}
	return judge_sum(f, on_disk ? TALLY_ON_DISK : FINDING_BLOCKED, s);
}

/* Who sent SIGSTOP; where that is not recorded, who let it go on. */
static int judge_stop(struct findings *f, const struct stretch *s)
{
	const struct finding_thread *own = &f->threads[s->thread];
	uint32_t stopper = s->stopper;
	uint32_t culprit = stopper != FINDINGS_NONE ? stopper : s->waker;
	uint32_t name = culprit != FINDINGS_NONE ? f->threads[culprit].name : FINDINGS_NONE;
	struct tally *t;

	/* Its other threads stop with it; and who presses Ctrl-Z knows. */
	if (findings_process(own) != own->tid || stopper == s->thread)
		return 0;
	if (findings_tally(f, FINDING_STOPPED, name, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	if (culprit != FINDINGS_NONE)
		findings_take(f, &t->finding.culprit, culprit);
	findings_take(f, &t->finding.victim, s->thread);
	t->finding.number = stopper != FINDINGS_NONE ? SIGSTOP : 0;
	findings_count(t, s, s->ns);
	t->weight += (double)s->ns / FINDINGS_MS;
	return 0;
}

/* It sleeps for so long now, and did otherwise for as long before. */
#define HANG_MIN (1000 * FINDINGS_MS)

static int judge_asleep(struct findings *f, const struct stretch *s)
{
	const struct stretch *before;
	uint64_t begin;
	size_t n = findings_group(f, s->thread, STRETCH_SLEEP, &before, &begin);
	struct tally *t;

	if (n < OUTLIER_OF || s->ns < HANG_MIN || s->begin - begin < HANG_MIN ||
	    s->ns / OUTLIER_TIMES < before[n - 1].ns ||
	    findings_serves_others(f->threads[s->thread].comm))
		return 0;
	if (findings_tally(f, FINDING_HANG, FINDINGS_NONE, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.victim, s->thread);
	t->finding.usual = MAX(t->finding.usual, before[n - 1].ns);
	findings_count(t, s, s->ns);
	/* It may have nothing to do, at last. */
	t->weight += 0.05 * (double)s->ns / FINDINGS_MS;
	return 0;
}

static int judge_one(struct findings *f, const struct stretch *s)
{
	switch (s->kind) {
	case STRETCH_ASLEEP:
		return judge_asleep(f, s);
	case STRETCH_WAIT:
	case STRETCH_PREEMPTED:
		return judge_wait(f, s);
	case STRETCH_BLOCKED:
		return judge_blocked(f, s);
	case STRETCH_STOPPED:
		return judge_stop(f, s);
	default:
		return judge_sum(f, FINDING_MEMORY, s);
	}
}

static int judge_group(struct findings *f, const struct stretch *all, size_t n)
{
	int r = 0;

	if (all->kind == STRETCH_BURST || all->kind == STRETCH_SLEEP)
		return judge_outliers(f, all, n);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = judge_one(f, &all[i]);
	return r;
}

static int by_thread(const void *left, const void *right)
{
	const struct stretch *l = left, *r = right;

	if (l->thread != r->thread)
		return l->thread < r->thread ? -1 : 1;
	if (l->kind != r->kind)
		return l->kind < r->kind ? -1 : 1;
	return l->ns < r->ns ? -1 : l->ns > r->ns;
}

int findings_judge_stretches(struct findings *f)
{
	int r;

	if (f->n_stretches)
		qsort(f->stretches, f->n_stretches, sizeof(*f->stretches), by_thread);
	r = findings_index(f);
	for (size_t i = 0, next; r >= 0 && i < f->n_stretches; i = next) {
		for (next = i; next < f->n_stretches; next++)
			if (f->stretches[next].thread != f->stretches[i].thread ||
			    f->stretches[next].kind != f->stretches[i].kind)
				break;
		r = judge_group(f, &f->stretches[i], next - i);
	}
	return r;
}
