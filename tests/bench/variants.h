/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures what recording adds to close(-1). Variants run back to back on one CPU, and each round
 * begins with another variant. A variant's figure is its time minus the time of the bare call in
 * the same round, so that a temporary slowdown of the machine affects all variants equally.
 *
 * A run makes CALLS calls in slices. Its result is the median slice in CPU time of the thread, so
 * that preemption does not count. Rounds whose bare call is far slower than the fastest are
 * dropped: another recorder of system calls was active, and two recorders share a cost that is paid
 * once.
 */
#pragma once

#include "tests/bench/measure.h"

#define CALLS 2000000
#define SLICES 20
#define DISTURBED 1.2
#define ROUNDS_MAX 1000

/* The first variant is the bare call. begin and end may be NULL. check dies if the run was not as
 * intended. */
struct variant {
	const char *key;
	int events; /* events per call */
	void (*begin)(void), (*check)(void), (*end)(void);
	double ns[ROUNDS_MAX]; /* per call */
};

static inline double run_slice(void)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < CALLS / SLICES; i++)
		call();
	return (double)(now(CLOCK_THREAD_CPUTIME_ID) - begin) / (CALLS / SLICES);
}

static inline double run(const struct variant *v)
{
	double slices[SLICES];

	if (v->begin)
		v->begin();
	run_slice(); /* warms the caches, and finishes work left over from the variant before */
	for (int i = 0; i < SLICES; i++)
		slices[i] = run_slice();
	if (v->check)
		v->check();
	if (v->end)
		v->end();
	return median(slices, SLICES);
}

static inline void measure(struct variant *variants, size_t n, size_t rounds)
{
	for (size_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < n; i++) {
			struct variant *v = &variants[(round + i) % n];

			v->ns[round] = run(v);
		}
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\r  round %zu of %zu%s", round + 1, rounds,
				round + 1 < rounds ? "" : "\n");
	}
}

/* Keeps only the undisturbed rounds; returns how many. */
static inline size_t drop_disturbed(struct variant *variants, size_t n_variants, size_t rounds)
{
	double lowest = variants[0].ns[0];
	size_t n = 0;

	for (size_t round = 1; round < rounds; round++)
		lowest = MIN(lowest, variants[0].ns[round]);
	for (size_t round = 0; round < rounds; round++) {
		if (variants[0].ns[round] > DISTURBED * lowest)
			continue;
		for (size_t i = 0; i < n_variants; i++)
			variants[i].ns[n] = variants[i].ns[round];
		n++;
	}
	return n;
}

/* Prints what each variant but the bare call adds per event. */
static inline void print_added(struct variant *variants, size_t n, size_t rounds)
{
	const struct variant *bare = &variants[0];

	for (size_t i = 1; i < n; i++) {
		for (size_t round = 0; round < rounds; round++)
			variants[i].ns[round] =
				(variants[i].ns[round] - bare->ns[round]) / variants[i].events;
		print_result(variants[i].key, variants[i].ns, rounds);
	}
}
