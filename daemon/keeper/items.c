// SPDX-License-Identifier: LGPL-2.1-or-later
/* Selects the records for one request and puts them in order. */
#include "daemon/keeper/items.h"

#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"

#define ITEMS_MIN 1024
#define BUSY_EVERY 4096	      /* processes */
#define BUSY_EVERY_ITEM 65536 /* one process may have that many */
#define MAP_BYTES 112	      /* of a mapping's record beside its path, at most */
#define ROUNDS_MAX 8

struct choice {
	const struct table *table;
	uint64_t since, until;
	void (*busy)(void *context);
	void *context;
	struct items items;
	uint64_t bytes; /* of all mappings */
	uint64_t share; /* limit for one process */
	uint64_t left;	/* rest of the present process's share */
	bool is_cut;	/* its share was not enough */
	int err;
};

void items_done(struct items *items)
{
	free(items->item);
	*items = (struct items){ 0 };
}

static void add(struct choice *c, enum item_kind kind, uint64_t time, const struct thread *thread,
		const void *of)
{
	struct items *items = &c->items;

	if (c->err < 0)
		return;
	if (items->n % BUSY_EVERY_ITEM == BUSY_EVERY_ITEM - 1)
		c->busy(c->context);
	if (items->n == items->room) {
		size_t room = MAX(2 * items->room, (size_t)ITEMS_MIN);
		struct item *more = realloc(items->item, room * sizeof(*more));

		if (!more) {
			c->err = -ENOMEM;
			return;
		}
		items->item = more;
		items->room = room;
	}
	items->item[items->n++] = (struct item){ time, thread, of, kind };
}

/* ── selection ──────────────────────────────────────────────────────────────────────────── */

static bool is_alive_since(uint64_t ended, uint64_t since)
{
	return ended == 0 || ended >= since;
}

static bool is_chosen(const struct choice *c, const struct process *p)
{
	return is_alive_since(p->ended, c->since) && p->main.started <= c->until;
}

/* A reader gets from the parent's records what a child began with: its name, unless the parent's
 * older names were dropped (parent->partial), and its mappings, unless those were (->unmapped). */
static bool tells_for(const struct choice *c, const struct process *parent,
		      const struct process *child)
{
	return parent && !parent->forgotten && is_chosen(c, parent) &&
	       parent->main.started <= child->main.started;
}

static bool is_over(const struct choice *c)
{
	return c->bytes > TOLD_MAPS_MAX(c->table);
}

static bool fits(struct choice *c, const struct map *m)
{
	uint64_t bytes = MAP_BYTES + m->file->size - sizeof(union pp_file_id);

	if (bytes > c->left)
		return false;
	c->left -= bytes;
	c->bytes += bytes;
	return true;
}

/*
 * Lists are newest first, and times never increase along them. Entries older than `known` have been
 * added before. `at`: the time for all of them; 0: each has its own. Lists can be of any length and
 * any number of processes can share one, so the walk visits only entries that it adds.
 */
static void add_maps(struct choice *c, const struct process *p, const struct map *from,
		     const struct map *to, uint64_t known, uint64_t at)
{
	size_t begin = c->items.n, end;

	for (const struct map *m = from; m && m != to && m->time >= known && !is_over(c);
	     m = m->older) {
		if (!m->file)
			continue;
		if (!fits(c, m)) {
			c->is_cut = true;
			break;
		}
		add(c, ITEM_MAP, at ? at : MAX(m->time, p->main.started), &p->main, m);
	}
	for (end = c->items.n; end > begin + 1; begin++) {
		struct item last = c->items.item[--end];

		c->items.item[end] = c->items.item[begin];
		c->items.item[begin] = last;
	}
}

/* A list, preceded by its states before each compacting. *former: the process's next one. */
static void add_list(struct choice *c, const struct process *p, struct map *const *list,
		     const struct map *to, const struct former **former)
{
	uint64_t known = 0;

	for (; *former && (*former)->list == list; *former = (*former)->next) {
		add_maps(c, p, (*former)->maps, NULL, known, 0);
		known = (*former)->maps->time;
	}
	add_maps(c, p, *list, to, known, 0);
}

static void add_changes(struct choice *c, const struct thread *thread, const struct former *former)
{
	for (const struct change *i = thread->changes; i; i = i->next) {
		add(c, ITEM_CHANGE, i->time, thread, i);
		add_list(c, thread->process, &i->maps, NULL, &former);
	}
}

/* `alone`: no other thread has the same first name. */
static void add_beginning(struct choice *c, const struct thread *thread, bool alone)
{
	if (thread->forked)
		add(c, ITEM_FORK, thread->started, thread, NULL);
	if (thread->comm[0] && (alone || !thread->forked))
		add(c, ITEM_COMM, thread->started, thread, NULL);
}

static void add_thread(struct choice *c, const struct thread *thread)
{
	const struct process *p = thread->process;

	if (!is_alive_since(thread->ended, c->since) || thread->started > c->until)
		return;
	add_beginning(c, thread, thread->ptid != p->main.tid || p->partial);
	add_changes(c, thread, NULL);
	if (thread->ended)
		add(c, ITEM_EXIT, thread->ended, thread, NULL);
}

static void add_process(struct choice *c, const struct process *p)
{
	bool alone = !tells_for(c, p->parent, p);
	bool named = !alone && !p->partial && p->parent->partial < p->main.started;
	const struct former *former = p->formers;
	const struct thread *i;

	c->left = c->share;
	c->is_cut = false;
	add_beginning(c, &p->main, !named || p->main.ptid != p->ppid);
	if (alone || p->parent->unmapped >= p->main.started)
		add_maps(c, p, p->inherited, NULL, 0, p->main.started);
	add_list(c, p, &p->first, p->inherited, &former);
	add_changes(c, &p->main, former);
	c->items.cut += c->is_cut;
	TAILQ_FOREACH(i, &p->threads, link)
	add_thread(c, i);
	TAILQ_FOREACH(i, &p->gone, link)
	add_thread(c, i);
	if (p->main.ended)
		add(c, ITEM_EXIT, p->main.ended, &p->main, NULL);
}

/* Walks backwards from the last end, so that a request for a short time does not visit all
 * processes. */
static void add_processes(struct choice *c, const struct processes *from)
{
	const struct process *p;
	unsigned n = 0;

	TAILQ_FOREACH_REVERSE(p, from, processes, link)
	{
		if (!is_alive_since(p->ended, c->since) || is_over(c))
			return;
		if (is_chosen(c, p))
			add_process(c, p);
		if (++n % BUSY_EVERY == 0)
			c->busy(c->context);
	}
}

static void add_notices(struct choice *c, const struct notices *from)
{
	const struct notice *n;

	TAILQ_FOREACH_REVERSE(n, from, notices, link)
	{
		if (!is_alive_since(n->ended, c->since))
			return;
		if (n->time <= c->until)
			add(c, ITEM_NOTICE, n->time, NULL, n);
	}
}

/* Each process may use `share` bytes for mappings. */
static void choose(struct choice *c, uint64_t share)
{
	c->items.n = c->items.cut = c->bytes = 0;
	c->share = share;
	add_processes(c, &c->table->ended);
	add_processes(c, &c->table->alive);
}

/*
 * Selects everything, if it fits. Otherwise all processes have equal shares, and what some leave
 * unused goes to the others. Children whose parents are not selected need all of their parents'
 * mappings repeated: so even a small table can need any number of records.
 */
static void choose_bounded(struct choice *c)
{
	uint64_t share, spare;

	choose(c, UINT64_MAX);
	if (!is_over(c))
		return;
	share = TOLD_MAPS_MAX(c->table) / c->table->n_processes;
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		choose(c, share);
		spare = TOLD_MAPS_MAX(c->table) - c->bytes;
		if (c->items.cut == 0 || spare < TOLD_MAPS_MAX(c->table) / 16)
			break;
		share += spare / c->items.cut;
	}
}

/* ── order ──────────────────────────────────────────────────────────────────────────────── */

#define DIGIT_BITS 11
#define DIGITS (1U << DIGIT_BITS)

static void sort_by_digit(const struct item *from, struct item *to, size_t n, uint64_t base,
			  unsigned shift)
{
	size_t place[DIGITS] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		place[(from[i].time - base) >> shift & (DIGITS - 1)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t count = place[d];

		place[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[place[(from[i].time - base) >> shift & (DIGITS - 1)]++] = from[i];
}

/* Radix sort from the lowest digit: stable, and linear in the number of items. */
static int sort(const struct choice *c, struct items *items)
{
	struct item *other = calloc(items->n + 1, sizeof(*other));
	uint64_t least = UINT64_MAX, most = 0;

	if (!other)
		return -ENOMEM;
	for (size_t i = 0; i < items->n; i++) {
		least = MIN(least, items->item[i].time);
		most = MAX(most, items->item[i].time);
	}
	for (unsigned shift = 0; items->n > 0 && shift < 64 && (most - least) >> shift;
	     shift += DIGIT_BITS) {
		struct item *sorted = other;

		sort_by_digit(items->item, sorted, items->n, least, shift);
		other = items->item;
		items->item = sorted;
		c->busy(c->context);
	}
	free(other);
	items->room = items->n;
	return 0;
}

int items_of(const struct table *t, uint64_t since, uint64_t until, void (*busy)(void *context),
	     void *context, struct items *ret)
{
	struct choice c = {
		.table = t,
		.since = since,
		.until = until,
		.busy = busy,
		.context = context,
	};

	choose_bounded(&c);
	add_notices(&c, &t->over);
	add_notices(&c, &t->notices);
	if (c.err == 0)
		c.err = sort(&c, &c.items);
	if (c.err < 0) {
		items_done(&c.items);
		return c.err;
	}
	*ret = c.items;
	return 0;
}
