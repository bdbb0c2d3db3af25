// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the choice of what is told, and its order. */
#include "daemon/keeper/items.h"

#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"

#define ITEMS_MIN 1024
#define BUSY_EVERY 4096 /* processes */

struct choice {
	uint64_t since, until;
	void (*busy)(void *context);
	void *context;
	struct items items;
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

/* ── what is chosen ─────────────────────────────────────────────────────────────────────── */

static bool is_alive_since(uint64_t ended, uint64_t since)
{
	return ended == 0 || ended >= since;
}

static bool is_chosen(const struct choice *c, const struct process *p)
{
	return is_alive_since(p->ended, c->since) && p->main.started <= c->until;
}

/* Whoever reads gets from the parent's records what the process began with. */
static bool tells_for(const struct choice *c, const struct process *parent,
		      const struct process *child)
{
	return parent && !parent->forgotten && is_chosen(c, parent) &&
	       parent->main.started <= child->main.started && parent->partial < child->main.started;
}

/* Lists are newest first. `at`: not before, which 0 makes the time of each. */
static void add_maps(struct choice *c, const struct process *p, const struct map *from,
		     const struct map *to, uint64_t at)
{
	size_t begin = c->items.n, end;

	for (const struct map *m = from; m && m != to; m = m->older)
		if (m->file)
			add(c, ITEM_MAP, at ? at : MAX(m->time, p->main.started), &p->main, m);
	for (end = c->items.n; end > begin + 1; begin++) {
		struct item last = c->items.item[--end];

		c->items.item[end] = c->items.item[begin];
		c->items.item[begin] = last;
	}
}

static void add_changes(struct choice *c, const struct thread *thread)
{
	for (const struct change *i = thread->changes; i; i = i->next) {
		add(c, ITEM_CHANGE, i->time, thread, i);
		add_maps(c, thread->process, i->maps, NULL, 0);
	}
}

/* `alone`: no other thread has the name that it began with. */
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
	add_changes(c, thread);
	if (thread->ended)
		add(c, ITEM_EXIT, thread->ended, thread, NULL);
}

static void add_process(struct choice *c, const struct process *p)
{
	bool alone = p->partial || !tells_for(c, p->parent, p);
	const struct thread *i;

	add_beginning(c, &p->main, alone || p->main.ptid != p->ppid);
	if (alone)
		add_maps(c, p, p->inherited, NULL, p->main.started);
	add_maps(c, p, p->first, p->inherited, 0);
	add_changes(c, &p->main);
	TAILQ_FOREACH(i, &p->threads, link)
	add_thread(c, i);
	TAILQ_FOREACH(i, &p->gone, link)
	add_thread(c, i);
	if (p->main.ended)
		add(c, ITEM_EXIT, p->main.ended, &p->main, NULL);
}

/* From the last end backwards: of a short time not all that is kept is looked at. */
static void add_processes(struct choice *c, const struct processes *from)
{
	const struct process *p;
	unsigned n = 0;

	TAILQ_FOREACH_REVERSE(p, from, processes, link)
	{
		if (!is_alive_since(p->ended, c->since))
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

/* ── their order ────────────────────────────────────────────────────────────────────────── */

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

/* Digit by digit, from the lowest: what is of one time stays as it was, and the effort grows with
 * their number and no faster. */
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
		.since = since,
		.until = until,
		.busy = busy,
		.context = context,
	};

	add_processes(&c, &t->ended);
	add_processes(&c, &t->alive);
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
