// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which items have changed, and how much (compare.h has the reasons). */
#include <math.h>
#include <string.h>

#include "client/perfctl/replay/compare-parts.h"

/* With fewer slices even "beyond all before" says little. */
#define SLICES_MIN 5
/* As many are enough, so that slices may be as long as the moment. */
#define SLICES_ENOUGH 10

/* If values fall off exponentially, a slice exceeds the largest of n before with a probability of
 * 1/(n + 1), and is three times as far off with one of about 1/n³. */
#define RANGES 3
/* The longest instance: than any before. */
#define LONGER 2
/* Zero occurrences in n slices allow (with 95 %) 3/n of them in each; more than 3 in one are not
 * explained by that. */
#define SPREADS 3
/* Beyond the noise of its family. */
#define MARGIN 3
#define FURTHER 1.5
/* If the past is short, the moment has several slices, and the worst of them is compared: so many times
 * both. */
#define SHORT 2
/* An earlier incident is no noise: of n slices up to n / INCIDENTS, if each has GAP times the excess of
 * all others. */
#define INCIDENTS 10
#define GAP 8
/* The excess must matter: so much of the moment, and not less than 1 ms. */
#define MATTERS 2000
#define MATTERS_MIN 1e6

static const uint32_t sizes[] = { COMPARE_MOMENT, 5, 2, 1 };

/* Slices of the grid that are taken together as one, so that there are `n` of the time before and `m`
 * of the moment. n 0: too few. */
struct groups {
	uint32_t size, n, m;
};

static struct groups groups_of(const struct compare_grid *g, uint64_t complete)
{
	uint64_t time = complete < g->since ? g->since - complete : 0;
	uint32_t slices = (uint32_t)MIN(time / g->width, g->n_before);
	struct groups r = {};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] > g->n_now || g->n_now % sizes[i])
			continue;
		r.size = sizes[i];
		r.n = slices / r.size;
		r.m = g->n_now / r.size;
		if (r.n >= SLICES_ENOUGH)
			break;
	}
	if (r.n < SLICES_MIN)
		r.n = 0;
	return r;
}

uint32_t compare_history(const struct compare_grid *g, uint64_t complete, uint64_t *ret_width)
{
	struct groups r = groups_of(g, complete);

	*ret_width = r.size * g->width;
	return r.n;
}

/* ── The values of an item ── */

/* The values of each slice, the oldest first; then those of the moment. */
struct values {
	struct groups g;
	double of[COMPARE_SLICES + COMPARE_MOMENT];
	uint64_t n[COMPARE_SLICES + COMPARE_MOMENT];
	uint64_t n_before, n_all;
	double sum_before, sum_all;
	double median, deviation, min, max, next_min, next_max;
	bool is_regular;
};

/* The index of a cell's slice; false: it is before all of them. */
static bool place_of(const struct compare *c, const struct groups *g, uint32_t slice, uint32_t *ret)
{
	uint32_t back;

	if (slice >= c->grid.n_before) {
		*ret = g->n + (slice - c->grid.n_before) / g->size;
		return true;
	}
	back = (c->grid.n_before - 1 - slice) / g->size;
	*ret = g->n - 1 - back;
	return back < g->n;
}

static void fill(const struct compare *c, const struct compare_item *item, struct values *v)
{
	const struct compare_kind *kind = compare_kind(item->class);

	v->g = groups_of(&c->grid, item->complete);
	memset(v->of, 0, sizeof(v->of));
	memset(v->n, 0, sizeof(v->n));
	for (size_t k = 0; k < item->series.n; k++) {
		const struct compare_cell *cell = &item->series.cells[k];
		uint32_t i;

		if (!place_of(c, &v->g, cell->slice, &i))
			continue;
		v->n[i] += cell->n;
		if (kind->is_longest)
			v->of[i] = MAX(v->of[i], (double)cell->max);
		else
			v->of[i] += kind->is_time ? (double)cell->sum : (double)cell->n;
	}
}

static int ascending(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return l < r ? -1 : l > r;
}

static double median_of(double *sorted, size_t n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void sum_up(struct values *v)
{
	double sorted[COMPARE_SLICES];
	size_t n = v->g.n, present = 0;

	memcpy(sorted, v->of, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), ascending);
	v->median = median_of(sorted, n);
	v->min = sorted[0];
	v->next_min = sorted[1];
	v->max = sorted[n - 1];
	v->next_max = sorted[n - 2];
	v->sum_before = 0;
	v->n_before = 0;
	for (size_t i = 0; i < n; i++) {
		sorted[i] = fabs(v->of[i] - v->median);
		v->sum_before += v->of[i];
		v->n_before += v->n[i];
		present += v->of[i] > 0;
	}
	qsort(sorted, n, sizeof(*sorted), ascending);
	v->deviation = 1.4826 * median_of(sorted, n); /* of a normal distribution: its deviation */
	v->is_regular = 2 * present >= n;
	v->sum_all = v->sum_before;
	v->n_all = v->n_before;
	for (size_t i = n; i < n + v->g.m; i++) {
		v->sum_all += v->of[i];
		v->n_all += v->n[i];
	}
}

/* ── Judging one slice ── */

/* What one occurrence counts; 0: unknown, as it never happened. All samples are of one length. */
static double unit_of(const struct compare_item *item, const struct values *v, size_t i)
{
	const struct compare_kind *kind = compare_kind(item->class);
	double sum = v->sum_before, n = (double)v->n_before;

	if (kind->is_longest)
		return 0;
	if (!kind->is_time)
		return 1;
	if (kind->is_sampled)
		return v->sum_all / (double)MAX(v->n_all, 1);
	if (i < v->g.n) {
		sum -= v->of[i];
		n -= (double)v->n[i];
	}
	return n > 0 ? sum / n : 0;
}

static double spread_of(const struct compare_item *item, const struct values *v, size_t i)
{
	double unit = unit_of(item, v, i);
	double rare = unit > 0 ? unit * sqrt(MAX(v->median / unit, 1)) : 0;

	return MAX(v->deviation, rare);
}

/* How far a slice is from what is usual. */
struct judged {
	double excess;	 /* ns; < 0: none */
	double distance; /* from the median, in units of the range; 0: it never happened before */
};

/* Judges slice i, compared with all others before the moment. up: whether it became more. */
static struct judged judge_slice(const struct compare_item *item, const struct values *v, size_t i,
				 bool up)
{
	const struct compare_kind *kind = compare_kind(item->class);
	double by = up ? v->of[i] - v->median : v->median - v->of[i];
	double top = i < v->g.n && v->of[i] == v->max ? v->next_max : v->max;
	double low = i < v->g.n && v->of[i] == v->min ? v->next_min : v->min;
	double range = up ? top - v->median : v->median - low;
	double spread = spread_of(item, v, i), limit = MAX(RANGES * range, SPREADS * spread);

	if (by <= 0 || (!up && !kind->falls) || (kind->is_regular && !v->is_regular))
		return (struct judged){ .excess = -1 };
	if (kind->is_longest) /* durations differ by factors */
		limit = MAX(limit, LONGER * top - v->median);
	range = MAX(range, spread);
	return (struct judged){
		.excess = (by - limit) * (kind->is_time ? 1 : (double)kind->worth),
		.distance = range > 0 ? by / range : 0,
	};
}

/* ── The noise of a family ── */

/* The largest of each slice, the newest first, by family and size of slices. What is there all the time
 * does not have the noise of what comes and goes. */
struct noise {
	struct noise_of {
		double excess[COMPARE_SLICES], distance[COMPARE_SLICES];
	} of[COMPARE_FAMILIES][2][ARRAY_SIZE(sizes)];
};

static struct noise_of *noise_at(struct noise *noise, const struct compare_item *item,
				 const struct values *v)
{
	size_t i = 0;

	while (sizes[i] != v->g.size)
		i++;
	return &noise->of[compare_kind(item->class)->family][v->is_regular][i];
}

static void add_noise(struct noise *noise, const struct compare_item *item, const struct values *v)
{
	struct noise_of *of = noise_at(noise, item, v);

	for (size_t i = 0; i < v->g.n; i++)
		for (int up = 0; up < 2; up++) {
			struct judged j = judge_slice(item, v, i, up);
			size_t at = v->g.n - 1 - i;

			of->excess[at] = MAX(of->excess[at], j.excess);
			of->distance[at] = MAX(of->distance[at], j.distance);
		}
}

static double noise_level(const double *all, size_t n, double gap, double least)
{
	double sorted[COMPARE_SLICES];

	memcpy(sorted, all, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), ascending);
	for (size_t i = n / INCIDENTS; i > 0; i--)
		if (sorted[n - i] >= gap * MAX(sorted[n - i - 1], least))
			return sorted[n - i - 1];
	return sorted[n - 1];
}

/* ── The moment ── */

struct verdict {
	double most, sum; /* excess of its worst slice, and of all */
	double distance;
};

static struct verdict judge_moment(const struct compare_item *item, const struct values *v, bool up)
{
	struct verdict r = {};

	for (size_t i = v->g.n; i < v->g.n + v->g.m; i++) {
		struct judged j = judge_slice(item, v, i, up);

		if (j.excess <= 0)
			continue;
		r.most = MAX(r.most, j.excess);
		r.sum += j.excess;
		r.distance = MAX(r.distance, j.distance);
	}
	if (compare_kind(item->class)->is_longest)
		r.sum = r.most;
	return r;
}

static bool is_unusual(const struct compare *c, const struct compare_item *item,
		       const struct values *v, const struct verdict *verdict, struct noise *noise)
{
	const struct noise_of *of = noise_at(noise, item, v);
	double length = (double)(c->grid.until - c->grid.since), more = v->g.m > 1 ? SHORT : 1;

	if (verdict->sum < MAX(length / MATTERS, MATTERS_MIN))
		return false;
	/* What is there all the time has a range of its own; what comes and goes has none that is
	 * worth much, and new ones come in any amount. */
	if (!v->is_regular &&
	    verdict->most < more * MARGIN * noise_level(of->excess, v->g.n, GAP, MATTERS_MIN))
		return false;
	return v->max <= 0 ||
	       verdict->distance >= more * FURTHER * noise_level(of->distance, v->g.n, GAP, RANGES);
}

static double now_of(const struct compare_item *item, const struct values *v)
{
	double now = 0;

	for (size_t i = v->g.n; i < v->g.n + v->g.m; i++)
		if (compare_kind(item->class)->is_longest)
			now = MAX(now, v->of[i]);
		else
			now += v->of[i] / v->g.m;
	return now;
}

static struct compare_change describe(const struct compare *c, const struct compare_item *item,
				      const struct values *v, const struct verdict *verdict,
				      bool up)
{
	uint64_t width = v->g.size * c->grid.width;
	double per = compare_kind(item->class)->is_longest ? 1 : 1e9 / (double)width;

	return (struct compare_change){
		.item = item,
		.slices = v->g.n,
		.width = width,
		.median = v->median * per,
		.min = v->min * per,
		.max = v->max * per,
		.now = now_of(item, v) * per,
		.is_new = v->max <= 0,
		.distance = v->max <= 0 ? 0 : verdict->distance,
		.excess = (up ? 1 : -1) * verdict->sum * 1e9 /
			  (double)(c->grid.until - c->grid.since),
	};
}

static int judge(struct compare *c, const struct compare_item *item, const struct values *v,
		 struct noise *noise)
{
	struct verdict more = judge_moment(item, v, true), less = judge_moment(item, v, false);
	bool up = more.sum >= less.sum;
	struct verdict *verdict = up ? &more : &less;
	bool is_fatal = item->class == COMPARE_FATAL && v->max <= 0 && now_of(item, v) > 0;

	if (!is_fatal && verdict->most <= 0)
		return 0;
	if (!GROW(c->changes, c->n_changes))
		return -ENOMEM;
	c->changes[c->n_changes] = describe(c, item, v, verdict, up);
	c->changes[c->n_changes++].is_unusual = is_fatal || is_unusual(c, item, v, verdict, noise);
	return 0;
}

/* ── All items ── */

static double rank(const struct compare_change *change)
{
	if (change->item->class == COMPARE_FATAL && change->is_new)
		return INFINITY;
	return change->excess < 0 ? -change->excess / 2 : change->excess;
}

static int largest_first(const void *left, const void *right)
{
	const struct compare_change *l = left, *r = right;
	double a = rank(l), b = rank(r);

	if (l->is_unusual != r->is_unusual)
		return l->is_unusual ? -1 : 1;
	if (a != b)
		return a > b ? -1 : 1;
	if (l->item->class != r->item->class)
		return l->item->class < r->item->class ? -1 : 1;
	return l->item < r->item ? -1 : l->item > r->item;
}

int compare_judge(struct compare *c)
{
	_cleanup_free_ struct noise *noise = calloc(1, sizeof(*noise));
	_cleanup_free_ struct values *v = malloc(sizeof(*v));

	if (!noise || !v)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < c->n_items; i++) {
			fill(c, &c->items[i], v);
			if (!v->g.n)
				continue;
			sum_up(v);
			if (!pass)
				add_noise(noise, &c->items[i], v);
			else if (judge(c, &c->items[i], v, noise) < 0)
				return -ENOMEM;
		}
	if (c->n_changes)
		qsort(c->changes, c->n_changes, sizeof(*c->changes), largest_first);
	return 0;
}
