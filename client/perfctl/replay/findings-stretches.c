// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Findings: what threads did for longer than they use to, and who kept them from running.
 *
 * What a thread does is judged by what the same thread does mostly: a server that answers in 50 µs and once
 * runs for 300 ms stands out, and a compiler that always runs does not.
 */
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

/* An outlier takes FINDINGS_OUTLIER at least, and so many times the median of so many at least. */
#define OUTLIER_TIMES 20
#define OUTLIER_OF 10

/* ── Waiting for a CPU ── */

/* The threads that ran while one waited: so many at most. */
struct wait {
	const struct stretch *s;
	struct part {
		uint32_t thread;
		uint64_t ns;
	} parts[16];
	size_t n;
};

static int add_part(void *arg, uint32_t thread, uint64_t ns)
{
	struct wait *w = arg;
	size_t i = 0;

	if (thread == w->s->thread)
		return 0;
	while (i < w->n && w->parts[i].thread != thread)
		i++;
	if (i == ARRAY_SIZE(w->parts))
		return 0;
	if (i == w->n)
		w->parts[w->n++] = (struct part){ .thread = thread };
	w->parts[i].ns += ns;
	return 0;
}

/* A thread that runs all the time loses nothing but throughput by a wait. */
static double how_it_hurts(const struct findings *f, const struct finding_thread *t)
{
	double idle = 1 - (double)t->ran / (double)MAX(f->end - f->begin, 1);

	if (findings_serves_others(t->comm))
		idle *= 0.3;
	return idle > 0 ? idle * idle : 0;
}

/* The one that ran longest is to blame: of each wait there is one row at most. */
static int judge_wait(struct findings *f, const struct stretch *s)
{
	const struct finding_thread *victim = &f->threads[s->thread];
	const struct part *most = NULL;
	struct wait w = { .s = s };
	struct tally *t;

	findings_who_ran(f, s->cpu, s->begin, s->end, add_part, &w);
	for (size_t i = 0; i < w.n; i++)
		if (!most || w.parts[i].ns > most->ns)
			most = &w.parts[i];
	if (!most)
		return 0;
	if (findings_tally(f, FINDING_CPU, f->threads[most->thread].name, victim->name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.culprit, most->thread);
	findings_take(f, &t->finding.victim, s->thread);
	t->overlap += most->ns;
	t->weight += how_it_hurts(f, victim) * (double)most->ns / FINDINGS_MS;
	if (s->ns > t->finding.max)
		t->thread = most->thread;
	findings_count(t, s, s->ns);
	return 0;
}

/* ── Outliers of a thread ── */

static int judge_burst(struct findings *f, const struct stretch *s, uint64_t usual)
{
	struct tally *t;

	if (findings_tally(f, FINDING_BURST, f->threads[s->thread].name, FINDINGS_NONE, &t) < 0)
		return -ENOMEM;
	findings_take_tid(f, &t->finding.culprit, s->thread);
	if (s->ns > t->finding.max) {
		t->thread = s->thread;
		t->finding.usual = usual;
	}
	findings_count(t, s, s->ns);
	/* Only a server keeps others waiting by it. */
	t->weight += 0.5 * (double)s->ns / FINDINGS_MS;
	return 0;
}

static int judge_sleep(struct findings *f, const struct stretch *s, uint64_t usual)
{
	struct tally *t;

	if (findings_tally(f, FINDING_SLEEP, f->threads[s->waker].name, f->threads[s->thread].name,
			   &t) < 0)
		return -ENOMEM;
	findings_take_tid(f, &t->finding.culprit, s->waker);
	findings_take_tid(f, &t->finding.victim, s->thread);
	t->overlap += findings_ran_for(f, s->waker, s->begin, s->end);
	if (s->ns > t->finding.max) {
		t->thread = s->waker;
		t->finding.usual = usual;
	}
	findings_count(t, s, s->ns);
	/* It may as well have had nothing to do. */
	t->weight += 0.7 * (double)s->ns / FINDINGS_MS;
	return 0;
}

/* The thread that wakes it more often than all others together, or FINDINGS_NONE: an interrupt's wakeup names
 * whoever was interrupted. */
static uint32_t usual_waker(const struct stretch *all, size_t n)
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
	return 2 * own > n ? most : FINDINGS_NONE;
}

static bool is_told(const struct findings *f, const struct stretch *s, uint32_t usual)
{
	const struct finding_thread *t = &f->threads[s->thread], *waker;

	if (s->kind == STRETCH_BURST)
		return true;
	if (s->waker == FINDINGS_NONE || s->waker == s->thread)
		return false;
	waker = &f->threads[s->waker];
	return findings_process(t) == findings_process(waker) || s->waker == usual;
}

/* all: of one thread and kind, the shortest first. */
static int judge_outliers(struct findings *f, const struct stretch *all, size_t n)
{
	uint64_t usual = all[n / 2].ns;
	uint32_t waker = usual_waker(all, n);
	int r = 0;

	if (n < OUTLIER_OF)
		return 0;
	for (size_t i = n; r >= 0 && i-- > 0;) {
		const struct stretch *s = &all[i];

		if (s->ns < FINDINGS_OUTLIER || s->ns / OUTLIER_TIMES < usual)
			break;
		if (!is_told(f, s, waker))
			continue;
		r = s->kind == STRETCH_BURST ? judge_burst(f, s, usual) : judge_sleep(f, s, usual);
	}
	return r;
}

/* ── Blocked, and freeing memory ── */

static int judge_sum(struct findings *f, enum finding_kind kind, const struct stretch *s)
{
	struct tally *t;

	if (findings_tally(f, kind, FINDINGS_NONE, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	findings_take(f, &t->finding.victim, s->thread);
	findings_count(t, s, s->ns);
	return 0;
}

static int judge_group(struct findings *f, const struct stretch *all, size_t n)
{
	int r = 0;

	switch (all->kind) {
	case STRETCH_BURST:
	case STRETCH_SLEEP:
		return judge_outliers(f, all, n);
	case STRETCH_WAIT:
		for (size_t i = 0; i < n && r >= 0; i++)
			r = judge_wait(f, &all[i]);
		return r;
	default:
		for (size_t i = 0; i < n && r >= 0; i++)
			r = judge_sum(
				f, all->kind == STRETCH_RECLAIM ? FINDING_MEMORY : FINDING_BLOCKED,
				&all[i]);
		return r;
	}
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
	int r = 0;

	if (f->n_stretches)
		qsort(f->stretches, f->n_stretches, sizeof(*f->stretches), by_thread);
	for (size_t i = 0, next; r >= 0 && i < f->n_stretches; i = next) {
		for (next = i; next < f->n_stretches; next++)
			if (f->stretches[next].thread != f->stretches[i].thread ||
			    f->stretches[next].kind != f->stretches[i].kind)
				break;
		r = judge_group(f, &f->stretches[i], next - i);
	}
	return r;
}
