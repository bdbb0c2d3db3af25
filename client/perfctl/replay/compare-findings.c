// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings of the moment, beside those of the slices before. */
#include "client/perfctl/replay/compare-findings.h"

#include <signal.h>
#include <string.h>

#include "proto/macro.h"

/* The heaviest of each slice: each is compared with each. */
#define OF_SLICE 50
/* More than any other slice has: the longest, and all together. */
#define LONGER 2
#define MORE 3
/* Than what slices have that no other has. A slice with so many times as much as all others had an
 * incident of its own, which is no noise. */
#define MARGIN 2
#define GAP 8

static int ran(void *arg, const struct latency_run *run)
{
	return findings_ran(compare_findings_at(arg, run->end), run);
}

/* What is longer than the moment tells of the time before. */
static int ended(void *arg, enum latency_kind kind, const struct latency_interval *one)
{
	const struct compare_findings *f = arg;

	if (one->end - one->begin > f->until - f->since)
		return 0;
	return findings_ended(compare_findings_at(arg, one->end), kind, one);
}

int compare_findings_new(uint64_t begin, uint64_t since, uint64_t until,
			 struct compare_findings **ret)
{
	struct compare_findings *f = calloc(1, sizeof(*f));
	int r = 0;

	if (!f)
		return -ENOMEM;
	f->watcher = (struct latency_watcher){ ran, ended, f };
	f->since = since;
	f->until = until;
	f->n_before = MIN((since - begin) / (until - since), COMPARE_FINDINGS_SLICES);
	for (size_t i = 0; i < f->n_before + 2 && r >= 0; i++)
		r = findings_new(&f->of[i]);
	if (r >= 0)
		*ret = f;
	else
		compare_findings_free(f);
	return r;
}

void compare_findings_free(struct compare_findings *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(f->of); i++)
		findings_free(f->of[i]);
	free(f->told);
	free(f);
}

struct findings *compare_findings_at(struct compare_findings *f, uint64_t time)
{
	uint64_t back;

	if (time >= f->since)
		return f->of[f->n_before + 1];
	back = (f->since - 1 - time) / (f->until - f->since);
	return f->of[back < f->n_before ? f->n_before - back : 0];
}

/* ── Which are told ── */

struct slice {
	const struct finding *all;
	size_t n;
};

struct judge {
	struct slice slices[COMPARE_FINDINGS_SLICES + 1]; /* the moment is the last */
	size_t n;
};

/* What ended a process, but for SIGKILL, which others send on purpose, and a debugger's SIGTRAP. */
static bool is_fault(const struct finding *g)
{
	return g->kind == FINDING_OOM ||
	       (g->kind == FINDING_CRASH && g->number != SIGKILL && g->number != SIGTRAP);
}

/* CPU time is told by what a comparison counts; and what hangs is known at the end alone. */
static bool is_compared(const struct finding *g)
{
	return is_fault(g) ||
	       (g->kind != FINDING_CRASH && g->kind != FINDING_USAGE && g->kind != FINDING_HANG);
}

/* Of these it matters how many there are: faults take no time, and of the processes that began one alone
 * may have run for long. */
static bool is_counted(const struct finding *g)
{
	return is_fault(g) || g->kind == FINDING_FORKS;
}

static uint64_t amount(const struct finding *g)
{
	return is_counted(g) ? g->n : g->sum;
}

static bool is_same(const struct finding_party *a, const struct finding_party *b)
{
	return !strcmp(a->comm ?: "", b->comm ?: "");
}

/* For whom that one waited in turn differs from time to time. */
static const struct finding_party *nearest(const struct finding *g)
{
	return g->through.comm ? &g->through : &g->culprit;
}

/* Whether a finding of that slice has no equal in another one before the moment. */
static bool is_alone(const struct judge *j, size_t slice, const struct finding *g)
{
	uint64_t longest = 0, sum = 0;

	for (size_t i = 0; i + 1 < j->n; i++) {
		/* Of them all: for whom the nearest one waited in turn differs. */
		uint64_t of_slice = 0;

		for (size_t k = 0; i != slice && k < j->slices[i].n; k++) {
			const struct finding *b = &j->slices[i].all[k];

			if (b->kind != g->kind || !is_same(nearest(b), nearest(g)) ||
			    !is_same(&b->victim, &g->victim))
				continue;
			longest = MAX(longest, b->max);
			of_slice += amount(b);
		}
		sum = MAX(sum, of_slice);
	}
	return (!is_counted(g) && g->max > LONGER * longest) || amount(g) > MORE * sum;
}

/* The most that is alone in a slice before the moment, but in one that had an incident. */
static double noise_of(const struct judge *j, enum finding_kind kind)
{
	double most = 0, next = 0;

	for (size_t i = 0; i + 1 < j->n; i++) {
		double of_slice = 0;

		for (size_t k = 0; k < j->slices[i].n; k++) {
			const struct finding *g = &j->slices[i].all[k];

			if (g->kind == kind && (double)g->sum > of_slice && is_alone(j, i, g))
				of_slice = (double)g->sum;
		}
		next = MAX(next, MIN(of_slice, most));
		most = MAX(most, of_slice);
	}
	return most > GAP * next ? next : most;
}

static void tell(struct compare_findings *f, const struct judge *j)
{
	const struct slice *moment = &j->slices[j->n - 1];
	double noise[FINDING_KINDS];

	for (enum finding_kind kind = 0; kind < FINDING_KINDS; kind++)
		noise[kind] = noise_of(j, kind);
	for (size_t i = 0; i < moment->n; i++) {
		const struct finding *g = &moment->all[i];

		/* A program that never died of it is news, however many others have. */
		if (is_compared(g) && is_alone(j, j->n - 1, g) &&
		    (is_fault(g) || (double)g->sum > MARGIN * noise[g->kind]))
			f->told[f->n_told++] = g;
	}
}

int compare_findings_finish(struct compare_findings *f)
{
	uint64_t width = f->until - f->since;
	struct judge j = { .n = f->n_before + 1 };

	for (size_t i = 0; i < j.n; i++) {
		struct slice *s = &j.slices[i];
		uint64_t end = f->until - (j.n - 1 - i) * width;

		if (findings_finish(f->of[i + 1], end - width, end, &s->all, &s->n) < 0)
			return -ENOMEM;
		s->n = MIN(s->n, OF_SLICE);
	}
	f->told = calloc(OF_SLICE, sizeof(*f->told));
	if (!f->told)
		return -ENOMEM;
	if (f->n_before >= COMPARE_FINDINGS_MIN)
		tell(f, &j);
	return 0;
}
