// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts intervals: every duration by thread and label, the longest ones whole. */
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"

/* ── The longest ── */

static bool is_shorter(const struct latency_interval *a, const struct latency_interval *b)
{
	return a->end - a->begin < b->end - b->begin;
}

static void swap(struct latency_interval *a, struct latency_interval *b)
{
	struct latency_interval c = *a;

	*a = *b;
	*b = c;
}

/* A heap with the shortest on top, which is the first to go. */
static void sift_down(struct latency_list *list)
{
	for (size_t i = 0, child; (child = 2 * i + 1) < list->n; i = child) {
		if (child + 1 < list->n && is_shorter(&list->all[child + 1], &list->all[child]))
			child++;
		if (!is_shorter(&list->all[child], &list->all[i]))
			return;
		swap(&list->all[child], &list->all[i]);
	}
}

static int list_add(struct latency_list *list, size_t top, const struct latency_interval *one)
{
	size_t i = list->n;

	if (i == top) {
		if (top && is_shorter(&list->all[0], one)) {
			list->all[0] = *one;
			sift_down(list);
		}
		return 0;
	}
	if (!GROW(list->all, list->n))
		return -ENOMEM;
	list->all[list->n++] = *one;
	for (; i && is_shorter(&list->all[i], &list->all[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&list->all[i], &list->all[(i - 1) / 2]);
	return 0;
}

static int longest_first(const void *left, const void *right)
{
	const struct latency_interval *l = left, *r = right;

	if (l->end - l->begin != r->end - r->begin)
		return is_shorter(r, l) ? -1 : 1;
	return l->begin < r->begin ? -1 : l->begin > r->begin;
}

/* The process that a record's thread belongs to, as far as it is known. */
static uint32_t process_of(const struct latency *l, const struct latency_about *about)
{
	int64_t i = about->thread == LATENCY_NOBODY ? keytable_get(&l->by_tid, about->who->tid)
						    : (int64_t)about->thread;

	return i < 0 ? about->who->tid : latency_process(l, (uint32_t)i);
}

static struct latency_interval describe(const struct latency *l, const struct begin *b,
					uint64_t end, const struct latency_about *about)
{
	struct latency_interval one = {
		.begin = b->time,
		.end = end,
		.who = *about->who,
		.pid = process_of(l, about),
		.label = l->labels[b->label],
		.was_woken = about->waker,
		.woken = about->woken,
		.chain = b->chain,
		.knows_disks = latency_has(l, LATENCY_BLOCK) && !l->counts[LATENCY_BLOCK].lost &&
			       b->time >= l->o.complete[LATENCY_BLOCK],
	};

	if (about->waker)
		one.waker = *about->waker;
	return one;
}

/* ── Sums ── */

static int group_of(struct latency_counts *c, uint32_t thread, uint32_t label, struct group **ret)
{
	uint64_t key = (uint64_t)thread << 32 | label;
	int64_t i = keytable_get(&c->by_key, key);

	if (i < 0) {
		i = (int64_t)c->n_groups;
		if (!GROW(c->groups, c->n_groups) || keytable_set(&c->by_key, key, (uint32_t)i) < 0)
			return -ENOMEM;
		c->groups[c->n_groups++] = (struct group){ .thread = thread, .label = label };
	}
	*ret = &c->groups[i];
	return 0;
}

static int add_place(struct latency_counts *c, const struct flame_node *chain, uint64_t ns)
{
	struct latency_sums *s = &c->sums;
	int64_t i = keytable_get(&c->by_chain, chain->index);

	if (i < 0) {
		i = (int64_t)s->n_places;
		if (!GROW(s->places, s->n_places) ||
		    keytable_set(&c->by_chain, chain->index, (uint32_t)i) < 0)
			return -ENOMEM;
		s->places[s->n_places++] = (struct latency_place){ .chain = chain };
	}
	s->places[i].n++;
	s->places[i].sum += ns;
	s->places[i].max = MAX(s->places[i].max, ns);
	return 0;
}

static bool is_wanted(const struct latency *l, uint32_t thread, uint32_t tid, uint32_t cpu)
{
	uint32_t pid = thread == LATENCY_NOBODY ? UINT32_MAX : l->threads[thread].pid;

	return !l->o.wants || l->o.wants(l->o.arg, pid, tid, cpu);
}

static int tell(const struct latency *l, enum latency_kind kind, const struct latency_interval *one)
{
	/* Who woke it is not known then. */
	bool is_old = kind == LATENCY_OFF_CPU && one->begin < l->o.complete[LATENCY_WAKEUPS];

	return l->o.watcher && !is_old ? l->o.watcher->ended(l->o.watcher->arg, kind, one) : 0;
}

static int add(struct latency *l, enum latency_kind kind, const struct latency_interval *one,
	       uint32_t thread, uint32_t label)
{
	struct latency_counts *c = &l->counts[kind];
	uint64_t ns = one->end - one->begin;
	struct group *g;

	if (tell(l, kind, one) < 0)
		return -ENOMEM;
	if (l->o.take)
		return l->o.take(l->o.to, kind, one);
	if (group_of(c, thread, label, &g) < 0 || !GROW(g->all, g->n))
		return -ENOMEM;
	g->all[g->n++] = ns;
	c->sums.n++;
	c->sums.sum += ns;
	if (one->chain && add_place(c, one->chain, ns) < 0)
		return -ENOMEM;
	return list_add(&c->sums.worst, l->o.top, one);
}

static bool is_incomplete(const struct latency *l, enum latency_kind kind, const struct begin *b)
{
	return b->time < l->o.complete[kind];
}

struct begin latency_begin(const struct latency *l, enum latency_kind kind,
			   const struct latency_now *now, uint32_t label)
{
	return (struct begin){
		.open = true,
		.time = now->time,
		.lost = l->counts[kind].lost,
		.label = label,
		.chain = now->chain,
	};
}

int latency_end(struct latency *l, enum latency_kind kind, struct begin *b,
		const struct latency_now *now, const struct latency_about *about)
{
	struct latency_interval one = describe(l, b, now->time, about);
	bool is_old = is_incomplete(l, kind, b), is_lost = b->lost != l->counts[kind].lost;

	b->open = false;
	if (is_old || is_lost) {
		latency_count(l, kind, about->thread, now, is_lost);
		return 0;
	}
	if (!is_wanted(l, about->thread, about->who->tid, now->cpu))
		return 0;
	one.cpu = now->cpu;
	return add(l, kind, &one, about->thread, b->label);
}

void latency_count(struct latency *l, enum latency_kind kind, uint32_t thread,
		   const struct latency_now *now, bool missing)
{
	struct latency_sums *s = &l->counts[kind].sums;
	uint32_t tid = thread == LATENCY_NOBODY ? UINT32_MAX : l->threads[thread].who.tid;

	if (!is_wanted(l, thread, tid, now->cpu))
		return;
	/* Of events that were not all recorded yet something is always missing. */
	missing &= now->time >= l->o.complete[kind];
	s->missing += missing;
	s->begun_before += !missing;
}

uint64_t latency_until(const struct latency *l, enum latency_kind kind, uint64_t end)
{
	return l->o.until[kind] ? MIN(l->o.until[kind], end) : end;
}

int latency_still_open(struct latency *l, enum latency_kind kind, const struct begin *b,
		       uint64_t end, const struct latency_about *about)
{
	struct latency_sums *s = &l->counts[kind].sums;
	struct latency_interval one;

	end = latency_until(l, kind, end);
	if (!b->open || !latency_has(l, kind) || end < b->time ||
	    !is_wanted(l, about->thread, about->who->tid, UINT32_MAX))
		return 0;
	if (b->lost != l->counts[kind].lost || is_incomplete(l, kind, b)) {
		latency_count(l, kind, about->thread,
			      &(struct latency_now){ .time = end, .cpu = UINT32_MAX },
			      b->lost != l->counts[kind].lost);
		return 0;
	}
	one = describe(l, b, end, about);
	one.is_open = true;
	one.cpu = UINT32_MAX;
	if (tell(l, kind, &one) < 0)
		return -ENOMEM;
	if (l->o.take)
		return l->o.take(l->o.to, kind, &one);
	s->n_open++;
	return list_add(&s->open, l->o.top, &one);
}

/* ── Rows ── */

static int by_owner(const void *left, const void *right)
{
	const struct latency_row *l = left, *r = right;
	int order = l->pid < r->pid ? -1 : l->pid > r->pid;

	order = order ?: strcmp(l->comm, r->comm);
	return order ?: strcmp(l->label, r->label);
}

/* Run-queue delay is judged by its longest, as `perf sched latency` does; everything else by what it
 * took in all. */
static int by_max(const void *left, const void *right)
{
	const struct latency_row *l = left, *r = right;
	uint64_t a = l->all[l->n - 1], b = r->all[r->n - 1];

	return a != b ? (a > b ? -1 : 1) : by_owner(l, r);
}

static int by_sum(const void *left, const void *right)
{
	const struct latency_row *l = left, *r = right;

	return l->sum != r->sum ? (l->sum > r->sum ? -1 : 1) : by_owner(l, r);
}

static int place_by_sum(const void *left, const void *right)
{
	const struct latency_place *l = left, *r = right;

	if (l->sum != r->sum)
		return l->sum > r->sum ? -1 : 1;
	return l->chain->index < r->chain->index ? -1 : 1;
}

static int by_duration(const void *left, const void *right)
{
	uint64_t l = *(const uint64_t *)left, r = *(const uint64_t *)right;

	return l < r ? -1 : l > r;
}

/* A process has the name of its first thread. */
static const char *comm_of(const struct latency *l, uint32_t thread)
{
	const struct latency_thread *t = &l->threads[thread];
	bool alone = t->pid == t->who.tid || t->pid == UINT32_MAX;
	int64_t leader = alone ? -1 : keytable_get(&l->by_tid, t->pid);

	if (leader >= 0 && *l->threads[leader].who.comm)
		return l->threads[leader].who.comm;
	return *t->who.comm ? t->who.comm : "?";
}

/* Takes over a group's durations. */
static struct latency_row make_row(const struct latency *l, struct group *g)
{
	bool nobody = g->thread == LATENCY_NOBODY;

	return (struct latency_row){
		.pid = nobody ? 0 : latency_process(l, g->thread),
		.comm = nobody ? "" : comm_of(l, g->thread),
		.label = l->labels[g->label],
		.all = TAKE_PTR(g->all),
		.n = g->n,
	};
}

/* Puts the durations of a process's threads together. */
static int merge(struct latency_sums *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_rows; i++) {
		struct latency_row *row = &s->rows[i], *last = n ? &s->rows[n - 1] : NULL;
		uint64_t *all;

		if (!last || by_owner(last, row)) {
			s->rows[n++] = *row;
			if (i >= n)
				row->all = NULL;
			continue;
		}
		all = reallocarray(last->all, last->n + row->n, sizeof(*all));
		if (!all)
			return -ENOMEM;
		memcpy(all + last->n, row->all, row->n * sizeof(*all));
		last->all = all;
		last->n += row->n;
		free(row->all);
		row->all = NULL;
	}
	s->n_rows = n;
	return 0;
}

static void sum_up(struct latency_row *row)
{
	qsort(row->all, row->n, sizeof(*row->all), by_duration);
	for (size_t i = 0; i < row->n; i++)
		row->sum += row->all[i];
}

int latency_sort(struct latency *l, enum latency_kind kind)
{
	struct latency_counts *c = &l->counts[kind];
	struct latency_sums *s = &c->sums;

	s->rows = calloc(c->n_groups + 1, sizeof(*s->rows));
	if (!s->rows)
		return -ENOMEM;
	for (; s->n_rows < c->n_groups; s->n_rows++)
		s->rows[s->n_rows] = make_row(l, &c->groups[s->n_rows]);
	qsort(s->rows, s->n_rows, sizeof(*s->rows), by_owner);
	if (merge(s) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_rows; i++)
		sum_up(&s->rows[i]);
	qsort(s->rows, s->n_rows, sizeof(*s->rows), kind == LATENCY_WAKEUPS ? by_max : by_sum);
	if (s->n_places)
		qsort(s->places, s->n_places, sizeof(*s->places), place_by_sum);
	if (s->worst.n)
		qsort(s->worst.all, s->worst.n, sizeof(*s->worst.all), longest_first);
	if (s->open.n)
		qsort(s->open.all, s->open.n, sizeof(*s->open.all), longest_first);
	return 0;
}

void latency_counts_done(struct latency_counts *c)
{
	for (size_t i = 0; i < c->n_groups; i++)
		free(c->groups[i].all);
	for (size_t i = 0; i < c->sums.n_rows; i++)
		free(c->sums.rows[i].all);
	free(c->groups);
	free(c->sums.rows);
	free(c->sums.places);
	free(c->sums.worst.all);
	free(c->sums.open.all);
	keytable_done(&c->by_key);
	keytable_done(&c->by_chain);
}
