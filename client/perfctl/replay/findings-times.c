// SPDX-License-Identifier: LGPL-2.1-or-later
/* What threads did in a time: who ran on a CPU, and in which function; who slept; and whether disks were busy. */
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

/* The first run that ends behind `time`. */
static size_t first_run(const struct finding_cpu *c, uint64_t time)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->runs[middle].end > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

int findings_who_ran(struct findings *f, uint32_t cpu, uint64_t begin, uint64_t end,
		     int (*each)(void *arg, uint32_t thread, uint64_t ns), void *arg)
{
	const struct finding_cpu *c = cpu < f->n_cpus ? &f->cpus[cpu] : NULL;
	int r = 0;

	for (size_t i = c ? first_run(c, begin) : 0; c && r >= 0 && i < c->n; i++) {
		const struct finding_run *run = &c->runs[i];

		if (run->begin >= end || !f->looks)
			break;
		f->looks--;
		r = each(arg, run->thread, MIN(run->end, end) - MAX(run->begin, begin));
	}
	return r;
}

struct one_thread {
	uint32_t thread;
	uint64_t ns;
};

static int add_own(void *arg, uint32_t thread, uint64_t ns)
{
	struct one_thread *one = arg;

	if (thread == one->thread)
		one->ns += ns;
	return 0;
}

uint64_t findings_ran_for(struct findings *f, uint32_t thread, uint64_t begin, uint64_t end)
{
	struct one_thread one = { .thread = thread };

	for (uint32_t cpu = 0; cpu < f->n_cpus && f->looks; cpu++) {
		f->looks--;
		findings_who_ran(f, cpu, begin, end, add_own, &one);
	}
	return one.ns;
}

static size_t first_sample(const struct findings *f, uint64_t time)
{
	size_t low = 0, high = f->n_samples;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->samples[middle].time >= time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* So many samples, and of each so many functions, tell where a thread was. */
#define SAMPLES 128
#define DEPTH 32

/* A function in the chain of one sample. */
struct place {
	const struct flame_node *node;
	uint32_t sample, position; /* 0: innermost */
};

static int by_function(const void *left, const void *right)
{
	const struct place *l = left, *r = right;
	uint32_t a = l->node->frame->index, b = r->node->frame->index;

	if (a != b)
		return a < b ? -1 : 1;
	if (l->sample != r->sample)
		return l->sample < r->sample ? -1 : 1;
	return l->position < r->position ? -1 : l->position > r->position;
}

/* The named functions of the thread's samples, of evenly chosen ones if there are many. Returns how many
 * samples these are. */
static uint32_t collect(const struct findings *f, uint32_t thread, uint64_t begin, uint64_t end,
			struct place *ret, size_t *ret_n)
{
	size_t from = first_sample(f, begin), all = 0, seen = 0;
	uint32_t n = 0;

	for (size_t i = from; i < f->n_samples && f->samples[i].time < end; i++)
		all += f->samples[i].thread == thread;
	for (size_t i = from; i < f->n_samples && f->samples[i].time < end; i++) {
		const struct flame_node *node = f->samples[i].leaf;

		if (f->samples[i].thread != thread || seen++ * SAMPLES / MAX(all, SAMPLES) < n ||
		    n == SAMPLES)
			continue;
		for (uint32_t at = 0; node && node->frame && at < DEPTH; node = node->parent, at++)
			if (strcmp(node->frame->symbol, "[unknown]") != 0)
				ret[(*ret_n)++] = (struct place){ node, n, at };
		n++;
	}
	return n;
}

/* The function that is innermost on average, among those that more than half of the samples are in.
 * Chains without frame pointers begin anywhere, so it is not looked for from their beginning. */
const struct flame_node *findings_where(const struct findings *f, uint32_t thread, uint64_t begin,
					uint64_t end)
{
	_cleanup_free_ struct place *places = calloc(SAMPLES * DEPTH, sizeof(*places));
	const struct flame_node *best = NULL;
	size_t n = 0, next;
	uint64_t nearest = 0;
	uint32_t samples;

	if (!places)
		return NULL;
	samples = collect(f, thread, begin, end, places, &n);
	qsort(places, n, sizeof(*places), by_function);
	for (size_t i = 0; i < n; i = next) {
		uint64_t in = 0, positions = 0;

		for (next = i; next < n && places[next].node->frame == places[i].node->frame;
		     next++) {
			if (next > i && places[next].sample == places[next - 1].sample)
				continue; /* it called itself */
			in++;
			positions += places[next].position;
		}
		if (2 * in <= samples || (best && positions * 1000 / in >= nearest))
			continue;
		nearest = positions * 1000 / in;
		best = places[i].node;
	}
	return best;
}

/* ── Stretches ── */

static int in_time(const void *left, const void *right, void *arg)
{
	const struct stretch *all = arg, *l = &all[*(const uint32_t *)left],
			     *r = &all[*(const uint32_t *)right];

	if (l->thread != r->thread)
		return l->thread < r->thread ? -1 : 1;
	if (l->kind != r->kind)
		return l->kind < r->kind ? -1 : 1;
	return l->begin < r->begin ? -1 : l->begin > r->begin;
}

/* Whether it comes behind the time of that thread and kind. */
static bool is_behind(const struct stretch *s, uint32_t thread, enum stretch_kind kind,
		      uint64_t time)
{
	if (s->thread != thread)
		return s->thread > thread;
	return s->kind != kind ? s->kind > kind : s->begin > time;
}

/* The first one that is behind, in `in_time`. */
static size_t first_behind(const struct findings *f, uint32_t thread, enum stretch_kind kind,
			   uint64_t time)
{
	size_t low = 0, high = f->n_stretches;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_behind(&f->stretches[f->in_time[middle]], thread, kind, time))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct stretch *findings_at(const struct findings *f, uint32_t thread, enum stretch_kind kind,
				  uint64_t time)
{
	size_t i = first_behind(f, thread, kind, time);
	const struct stretch *s = i ? &f->stretches[f->in_time[i - 1]] : NULL;

	return s && s->thread == thread && s->kind == kind && s->end >= time ? s : NULL;
}

/* Both orders have them at the same places. */
size_t findings_group(const struct findings *f, uint32_t thread, enum stretch_kind kind,
		      const struct stretch **ret, uint64_t *ret_begin)
{
	size_t end = first_behind(f, thread, kind, UINT64_MAX);
	size_t begin = first_behind(f, thread, kind - 1, UINT64_MAX);

	*ret = &f->stretches[begin];
	if (begin < end)
		*ret_begin = f->stretches[f->in_time[begin]].begin;
	return end - begin;
}

/* Of one kind. */
static uint64_t waited(struct findings *f, uint32_t thread, enum stretch_kind kind, uint64_t begin,
		       uint64_t end, uint64_t *longest, uint32_t *ret_cpu)
{
	size_t i = first_behind(f, thread, kind, begin);
	uint64_t sum = 0;

	for (i -= i > 0; i < f->n_stretches && f->looks; i++, f->looks--) {
		const struct stretch *s = &f->stretches[f->in_time[i]];
		uint64_t ns = MIN(s->end, end) - MIN(MAX(s->begin, begin), MIN(s->end, end));

		if (is_behind(s, thread, kind, end))
			break;
		if (s->thread != thread || s->kind != kind)
			continue; /* the one before the first */
		sum += ns;
		if (ns <= *longest)
			continue;
		*longest = ns;
		*ret_cpu = s->cpu;
	}
	return sum;
}

uint64_t findings_waited(struct findings *f, uint32_t thread, uint64_t begin, uint64_t end,
			 uint32_t *ret_cpu)
{
	uint64_t longest = 0;

	*ret_cpu = UINT32_MAX;
	return waited(f, thread, STRETCH_WAIT, begin, end, &longest, ret_cpu) +
	       waited(f, thread, STRETCH_PREEMPTED, begin, end, &longest, ret_cpu);
}

/* ── Disks ── */

static int by_begin(const void *left, const void *right)
{
	const struct disk_time *l = left, *r = right;

	return l->begin < r->begin ? -1 : l->begin > r->begin;
}

static int index_disks(struct findings *f)
{
	struct disk_time *all = calloc(f->n_requests + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_requests; i++)
		all[i] = (struct disk_time){ f->requests[i].begin, f->requests[i].end, 0 };
	if (f->n_requests)
		qsort(all, f->n_requests, sizeof(*all), by_begin);
	for (size_t i = 0; i < f->n_requests; i++) {
		struct disk_time *last = n ? &all[n - 1] : NULL, one = all[i];

		if (last && one.begin <= last->end) {
			last->end = MAX(last->end, one.end);
			continue;
		}
		one.before = last ? last->before + last->end - last->begin : 0;
		all[n++] = one;
	}
	f->disk_times = all;
	f->n_disk_times = n;
	return 0;
}

/* ns before `time` in which a disk had requests. */
static uint64_t on_disk_until(const struct findings *f, uint64_t time)
{
	size_t low = 0, high = f->n_disk_times;
	const struct disk_time *d;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->disk_times[middle].begin >= time)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return 0;
	d = &f->disk_times[low - 1];
	return d->before + MIN(d->end, time) - d->begin;
}

uint64_t findings_on_disk(const struct findings *f, uint64_t begin, uint64_t end)
{
	return on_disk_until(f, end) - on_disk_until(f, begin);
}

int findings_index(struct findings *f)
{
	f->in_time = calloc(f->n_stretches + 1, sizeof(*f->in_time));
	if (!f->in_time || index_disks(f) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_stretches; i++)
		f->in_time[i] = (uint32_t)i;
	if (f->n_stretches)
		qsort_r(f->in_time, f->n_stretches, sizeof(*f->in_time), in_time, f->stretches);
	return 0;
}
