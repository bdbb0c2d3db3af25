/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was different in a moment from the time before it: counts items in slices of time, and judges
 * each by its own past. Knows neither records nor output.
 *
 * The time before is cut into slices as long as the moment; if there are fewer than ten such slices,
 * the moment and the time before are cut into the same shorter ones. A bursty value has no usable
 * distribution, so nothing here assumes one:
 *
 * - An item's usual value is the median of its slices, its range what they reached. Only what goes
 *   beyond several times the range counts, as the item's excess: also beyond some spreads, by the
 *   median absolute deviation or, for what is rare, the root of what is expected (Poisson).
 * - Hundreds of items are compared, and some exceed that by chance. So each slice of the past is
 *   judged in the same way, against the others, as if it were the moment. The largest excess that is
 *   found there, among items of one family, is the noise of that family. An item is reported if it
 *   is some times as far off. This holds for any number of items, and for any distribution that does
 *   not change with time. A few slices that are far worse than all others do not count for this, so
 *   that an earlier incident does not hide a later one.
 * - An excess is a time: of a CPU, or of waiting. A record and the begin of a process are worth the
 *   time that they take the kernel, or so. Everything is sorted by its excess per second: what is
 *   reported at all is unusual, and then what cost most is first. What became less is worth half:
 *   mostly it is the consequence of what became more.
 *
 * compare-judge.c has the numbers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum compare_class {
	COMPARE_FATAL, /* signals and the like that end a process; first if they never happened */
	COMPARE_EVENT, /* records of an event */
	COMPARE_CPU_TIME, /* of a command, by context switches */
	COMPARE_SAMPLED,  /* the same by samples */
	COMPARE_BEGUN,	  /* processes of a command that began */
	COMPARE_RECORDS,  /* of an event, in one command */
	COMPARE_SELF,	  /* time in a function, by samples */
	COMPARE_TOTAL,	  /* the same with the functions that it called */
	/* For a command: the time spent so by all its threads, and the longest instance. */
	COMPARE_BLOCKED, /* off a CPU, in another state than sleep */
	COMPARE_BLOCKED_WORST,
	COMPARE_WAITED, /* for a CPU */
	COMPARE_WAITED_WORST,
	COMPARE_REQUESTS, /* to block devices */
	COMPARE_REQUESTS_WORST,
	COMPARE_HANDLERS, /* of interrupts, without a command */
	COMPARE_HANDLERS_WORST,
	COMPARE_CALLS_WORST, /* only of what calls regularly */
	COMPARE_CLASSES,
};

/* Classes whose noise is one. */
enum compare_family {
	COMPARE_WORK,
	COMPARE_SAMPLES,
	COMPARE_WAITING,
	COMPARE_RESTING,
	COMPARE_FAMILIES,
};

/* How the values of a class are to be understood. */
struct compare_kind {
	enum compare_family family;
	bool is_time;	 /* ns; otherwise a number */
	bool is_sampled; /* the time is that of samples */
	bool is_longest; /* of a slice: its longest instance; otherwise the sum of all */
	bool is_regular; /* nothing can be said of it unless half of the slices before have it */
	bool falls;	 /* becoming less is reported, too */
	uint64_t worth;	 /* of one, in ns, if it is no time */
};
const struct compare_kind *compare_kind(enum compare_class class);

#define COMPARE_SLICES 300 /* of the time before, at most */

struct compare_grid {
	uint64_t since, until; /* the moment, ns */
	uint64_t width;	       /* of a slice, ns */
	uint32_t n_before, n_now;
};

/* before: how long the time before is; until > since. n_before is 0 if there is no slice. */
struct compare_grid compare_grid(uint64_t since, uint64_t until, uint64_t before);
/* Where the first slice begins. */
uint64_t compare_begin(const struct compare_grid *g);

struct compare_cell {
	uint32_t slice, n;
	uint64_t sum, max;
};

/* Cells of slices in ascending order; slices without one are 0. */
struct compare_series {
	struct compare_cell *cells;
	size_t n;
};

int compare_series_add(struct compare_series *s, const struct compare_cell *one); /* -ENOMEM */

/* An item's times that are remembered for compare_cover(). */
#define COMPARE_COVERED 4

struct compare_item {
	enum compare_class class;
	uint32_t what, comm; /* names; COMPARE_NO_NAME: none */
	uint64_t complete;   /* before that, its records are not complete */
	struct compare_series series;
	/* By compare_cover(): times that are counted, in order, apart from each other; and all before. */
	struct compare_time {
		uint64_t begin, end;
	} covered[COMPARE_COVERED];
	size_t n_covered;
	uint64_t before;
	uint64_t depth; /* of a function: the sum of its depth in the chains of its samples */
};

#define COMPARE_NO_NAME 0xfffffff

struct compare_change {
	const struct compare_item *item;
	uint32_t slices;	 /* of the time before that it was compared with */
	uint64_t width;		 /* of each, ns */
	double median, min, max; /* of them: per second, or (is_longest) ns */
	double now;
	bool is_unusual;
	bool is_new;	 /* none of them has it */
	double distance; /* from the median, in units of the largest before; 0: is_new */
	double excess;	 /* ns per second beyond the usual; negative: it became less */
};

struct compare;

/* All return 0 or -ENOMEM. */
int compare_new(const struct compare_grid *grid, struct compare **ret);
void compare_free(struct compare *c);

/* The number of a text that is kept. */
int compare_name(struct compare *c, const char *text, uint32_t *ret);
const char *compare_text(const struct compare *c, uint32_t name);

/* The item, which is made if it is new; it is valid until the next one is made. */
int compare_find(struct compare *c, enum compare_class class, uint32_t what, uint32_t comm,
		 uint64_t complete, struct compare_item **ret);

/* n things at one time that took `sum` in all. */
int compare_count(const struct compare *c, struct compare_item *item, uint64_t time, uint32_t n,
		  uint64_t sum);
/* One thing: each slice has its part of the time, and the slice of its end has its length. */
int compare_span(const struct compare *c, struct compare_item *item, uint64_t begin, uint64_t end);
/* The same, where things of one item overlap: a time counts once. They come in the order of their
 * ends; where more than COMPARE_COVERED are apart, nothing before the end of the oldest counts any more. */
int compare_cover(const struct compare *c, struct compare_item *item, uint64_t begin, uint64_t end);
/* The slice of a time; false: none. */
bool compare_slice(const struct compare *c, uint64_t time, uint32_t *ret);

/* How many slices, and how long, an item has whose records are complete from then on; 0: too few to
 * compare. */
uint32_t compare_history(const struct compare_grid *g, uint64_t complete, uint64_t *ret_width);

/* What has changed: what is unusual first, and that with the largest excess first. */
int compare_finish(struct compare *c);
const struct compare_change *compare_changes(const struct compare *c, size_t *ret_n);
const struct compare_grid *compare_grid_of(const struct compare *c);
