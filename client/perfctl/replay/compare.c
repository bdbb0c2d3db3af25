// SPDX-License-Identifier: LGPL-2.1-or-later
/* The items of a comparison, and what they count in each slice. */
#include "client/perfctl/replay/compare.h"

#include <string.h>

#include "client/perfctl/replay/compare-parts.h"

const struct compare_kind *compare_kind(enum compare_class class)
{
	static const struct compare_kind kinds[COMPARE_CLASSES] = {
		[COMPARE_FATAL] = { COMPARE_WORK, .worth = 1000000 },
		[COMPARE_EVENT] = { COMPARE_WORK, .falls = true, .worth = 1000 },
		[COMPARE_CPU_TIME] = { COMPARE_WORK, .is_time = true, .falls = true },
		[COMPARE_SAMPLED] = { COMPARE_SAMPLES, .is_time = true, .is_sampled = true,
				      .falls = true },
		[COMPARE_BEGUN] = { COMPARE_WORK, .falls = true, .worth = 1000000 },
		[COMPARE_RECORDS] = { COMPARE_WORK, .falls = true, .worth = 1000 },
		[COMPARE_SELF] = { COMPARE_SAMPLES, .is_time = true, .is_sampled = true,
				   .falls = true },
		[COMPARE_TOTAL] = { COMPARE_SAMPLES, .is_time = true, .is_sampled = true,
				    .falls = true },
		[COMPARE_BLOCKED] = { COMPARE_WAITING, .is_time = true },
		[COMPARE_BLOCKED_WORST] = { COMPARE_WAITING, .is_time = true, .is_longest = true },
		[COMPARE_WAITED] = { COMPARE_WAITING, .is_time = true },
		[COMPARE_WAITED_WORST] = { COMPARE_WAITING, .is_time = true, .is_longest = true },
		[COMPARE_REQUESTS] = { COMPARE_WAITING, .is_time = true },
		[COMPARE_REQUESTS_WORST] = { COMPARE_WAITING, .is_time = true, .is_longest = true },
		[COMPARE_HANDLERS] = { COMPARE_WAITING, .is_time = true },
		[COMPARE_HANDLERS_WORST] = { COMPARE_WAITING, .is_time = true, .is_longest = true },
		[COMPARE_CALLS_WORST] = { COMPARE_RESTING, .is_time = true, .is_longest = true,
					  .is_regular = true },
	};

	return &kinds[class];
}

/* ── Slices ── */

struct compare_grid compare_grid(uint64_t since, uint64_t until, uint64_t before)
{
	static const uint32_t parts[] = { COMPARE_MOMENT, 5, 2, 1 };
	struct compare_grid g = { .since = since, .until = until };
	uint64_t length = until - since;

	/* The finest that the time before has not too many of: an event whose buffer is short needs
	 * fine ones. */
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		g.n_now = parts[i];
		g.width = MAX(length / parts[i], 1);
		if (before / g.width <= COMPARE_SLICES)
			break;
	}
	g.n_before = (uint32_t)MIN(before / g.width, COMPARE_SLICES);
	return g;
}

uint64_t compare_begin(const struct compare_grid *g)
{
	return g->since - g->n_before * g->width;
}

bool compare_slice(const struct compare *c, uint64_t time, uint32_t *ret)
{
	const struct compare_grid *g = &c->grid;
	uint64_t begin = compare_begin(g);

	if (time < begin || time > g->until)
		return false;
	*ret = (uint32_t)MIN((time - begin) / g->width, (uint64_t)g->n_before + g->n_now - 1);
	return true;
}

/* Where a cell of the slice is or would be. */
static size_t place_of(const struct compare_series *s, uint32_t slice)
{
	size_t low = 0, high = s->n;

	if (s->n && s->cells[s->n - 1].slice < slice)
		return s->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->cells[middle].slice < slice)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int compare_series_add(struct compare_series *s, const struct compare_cell *one)
{
	size_t i = place_of(s, one->slice);
	struct compare_cell *cell;

	if (i == s->n || s->cells[i].slice != one->slice) {
		if (!GROW(s->cells, s->n))
			return -ENOMEM;
		memmove(s->cells + i + 1, s->cells + i, (s->n - i) * sizeof(*s->cells));
		s->cells[i] = *one;
		s->n++;
		return 0;
	}
	cell = &s->cells[i];
	cell->n += one->n;
	cell->sum += one->sum;
	cell->max = MAX(cell->max, one->max);
	return 0;
}

int compare_count(const struct compare *c, struct compare_item *item, uint64_t time, uint32_t n,
		  uint64_t sum)
{
	struct compare_cell one = { .n = n, .sum = sum, .max = sum };

	if (!compare_slice(c, time, &one.slice))
		return 0;
	return compare_series_add(&item->series, &one);
}

/* Where a slice ends: the last one takes what the division left over. */
static uint64_t end_of(const struct compare_grid *g, uint32_t slice)
{
	if (slice + 1 == g->n_before + g->n_now)
		return g->until;
	return compare_begin(g) + (slice + 1) * g->width;
}

/* is_all: this is one thing, or its last part; or an earlier part, which is none. */
static int add_span(const struct compare *c, struct compare_item *item, uint64_t begin,
		    uint64_t end, bool is_all)
{
	uint64_t from = MAX(begin, compare_begin(&c->grid)), to = MIN(end, c->grid.until);
	struct compare_cell one = {};
	uint32_t last;

	if (from > to || !compare_slice(c, from, &one.slice) || !compare_slice(c, to, &last))
		return 0;
	for (; one.slice <= last; one.slice++) {
		uint64_t next = MIN(end_of(&c->grid, one.slice), to);
		bool ends = is_all && one.slice == last;

		one.n = ends;
		one.sum = next - from;
		one.max = ends ? end - begin : 0;
		if (compare_series_add(&item->series, &one) < 0)
			return -ENOMEM;
		from = next;
	}
	return 0;
}

int compare_span(const struct compare *c, struct compare_item *item, uint64_t begin, uint64_t end)
{
	return add_span(c, item, begin, end, true);
}

static void remember(struct compare_item *item, struct compare_time one)
{
	struct compare_time *t = item->covered;

	if (item->n_covered == COMPARE_COVERED) {
		item->before = t->end;
		memmove(t, t + 1, --item->n_covered * sizeof(*t));
	}
	t[item->n_covered++] = one;
}

int compare_cover(const struct compare *c, struct compare_item *item, uint64_t begin, uint64_t end)
{
	uint64_t from = MIN(MAX(begin, item->before), end);
	struct compare_time all = { from, end };
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < item->n_covered && r >= 0; i++) {
		const struct compare_time *t = &item->covered[i];

		if (t->end < from) {
			n++; /* apart from this one */
			continue;
		}
		if (t->begin > from)
			r = add_span(c, item, from, t->begin, false);
		all.begin = MIN(all.begin, t->begin);
		all.end = MAX(all.end, t->end);
		from = MIN(MAX(from, t->end), end);
	}
	item->n_covered = n;
	remember(item, all);
	return r < 0 ? r : add_span(c, item, from, end, true);
}

/* ── Items ── */

int compare_new(const struct compare_grid *grid, struct compare **ret)
{
	struct compare *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->grid = *grid;
	*ret = c;
	return 0;
}

void compare_free(struct compare *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_items; i++)
		free(c->items[i].series.cells);
	for (size_t i = 0; i < c->n_names; i++)
		free(c->names[i]);
	free(c->items);
	free(c->names);
	free(c->changes);
	keytable_done(&c->by_key);
	hash_done(&c->name_hash);
	free(c);
}

int compare_name(struct compare *c, const char *text, uint32_t *ret)
{
	uint32_t hash = hash_bytes(text, strlen(text));
	char *copy;

	for (size_t pos = hash; hash_next(&c->name_hash, hash, &pos, ret);)
		if (!strcmp(c->names[*ret], text))
			return 0;
	copy = c->n_names < COMPARE_NO_NAME ? strdup(text) : NULL;
	if (!copy || !GROW(c->names, c->n_names) ||
	    hash_add(&c->name_hash, hash, (uint32_t)c->n_names) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*ret = (uint32_t)c->n_names;
	c->names[c->n_names++] = copy;
	return 0;
}

const char *compare_text(const struct compare *c, uint32_t name)
{
	return name < c->n_names ? c->names[name] : NULL;
}

static uint64_t key_of(enum compare_class class, uint32_t what, uint32_t comm)
{
	return (uint64_t) class << 56 | (uint64_t)what << 28 | comm;
}

int compare_find(struct compare *c, enum compare_class class, uint32_t what, uint32_t comm,
		 uint64_t complete, struct compare_item **ret)
{
	uint64_t key = key_of(class, what, comm);
	int64_t i = keytable_get(&c->by_key, key);

	if (i < 0) {
		i = (int64_t)c->n_items;
		if (!GROW(c->items, c->n_items) || keytable_set(&c->by_key, key, (uint32_t)i) < 0)
			return -ENOMEM;
		c->items[c->n_items++] =
			(struct compare_item){ .class = class, .what = what, .comm = comm };
	}
	*ret = &c->items[i];
	(*ret)->complete = MAX((*ret)->complete, complete);
	return 0;
}

int compare_finish(struct compare *c)
{
	return compare_judge(c);
}

const struct compare_change *compare_changes(const struct compare *c, size_t *ret_n)
{
	*ret_n = c->n_changes;
	return c->changes;
}

const struct compare_grid *compare_grid_of(const struct compare *c)
{
	return &c->grid;
}
