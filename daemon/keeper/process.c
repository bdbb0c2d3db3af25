// SPDX-License-Identifier: LGPL-2.1-or-later
/* Processes: their creation, their ends, and how they are forgotten. */
#include "daemon/keeper/table.h"
#include "proto/macro.h"

struct process *process_new(struct table *t, uint32_t pid, uint64_t started, struct process *parent)
{
	struct process *p = memory_get(&t->memory, sizeof(*p));

	if (!p)
		return NULL;
	TAILQ_INIT(&p->threads);
	TAILQ_INIT(&p->gone);
	p->refs = 1;
	p->maps = &p->first;
	p->compact_at = COMPACT_FIRST;
	p->main.tid = pid;
	if (parent) {
		p->parent = parent;
		p->ppid = parent->main.tid;
		parent->refs++;
		/* Without a mapping there is no place in the list. */
		if (*parent->maps) {
			p->inherited = map_ref(*parent->maps);
			p->first = map_ref(p->inherited);
		}
		p->n_maps = parent->n_maps;
		/* Compacting also walks the parent's mappings. A child must first have mapped as
		 * many itself; otherwise each of many children would cost a walk. */
		p->compact_at = MAX(p->compact_at, 2 * parent->n_maps + COMPACT_MORE);
	}
	thread_new(t, p, pid, started);
	TAILQ_INSERT_TAIL(&t->alive, p, link);
	t->n_processes++;
	return p;
}

/* Threads whose EXIT is missing ended with the process at the latest. */
static void end_threads(struct table *t, struct process *p, uint64_t time)
{
	struct thread *i;

	p->live++; /* so that the last thread's end does not end the process again */
	thread_end(t, &p->main, time);
	while ((i = TAILQ_FIRST(&p->threads)))
		thread_end(t, i, time);
	p->live--;
}

/* Sorted by end. Records come nearly in order, so the place is the last one or next to it. */
static void insert_ended(struct table *t, struct process *p)
{
	struct process *before = TAILQ_LAST(&t->ended, processes);

	for (unsigned n = 0; before && before->ended > p->ended; n++) {
		if (n == PLACES_BACK_MAX) {
			p->ended = before->ended;
			t->untimed++;
			break;
		}
		before = TAILQ_PREV(before, processes, link);
	}
	if (before)
		TAILQ_INSERT_AFTER(&t->ended, before, p, link);
	else
		TAILQ_INSERT_HEAD(&t->ended, p, link);
}

void process_end(struct table *t, struct process *p, uint64_t time)
{
	if (p->ended)
		return;
	end_threads(t, p, time);
	p->ended = MAX(time, 1U);
	TAILQ_REMOVE(&t->alive, p, link);
	insert_ended(t, p);
	t->n_ended++;
}

void process_revive(struct table *t, struct process *p)
{
	if (!p->ended)
		return;
	p->ended = 0;
	TAILQ_REMOVE(&t->ended, p, link);
	TAILQ_INSERT_TAIL(&t->alive, p, link);
	t->n_ended--;
}

void process_put(struct table *t, struct process *p)
{
	/* A line of ancestors may be freed at once. */
	while (p && --p->refs == 0) {
		struct process *parent = p->parent;

		memory_put(&t->memory, p);
		p = parent;
	}
}

void process_forget(struct table *t, struct process *p)
{
	struct thread *i;

	while ((i = TAILQ_FIRST(&p->threads)) || (i = TAILQ_FIRST(&p->gone)))
		thread_forget(t, i);
	thread_forget(t, &p->main);
	process_drop_formers(t, p);
	map_put(t, p->first);
	map_put(t, p->inherited);
	map_put(t, p->root);
	p->first = p->inherited = p->root = NULL;
	p->maps = &p->first;
	if (p->ended)
		t->n_ended--;
	TAILQ_REMOVE(p->ended ? &t->ended : &t->alive, p, link);
	t->n_processes--;
	p->forgotten = true;
	/* Children need only this process's data, and it is no longer told itself, so it does not
	 * need its parent. Its ancestors must not stay for it: there may be any number. */
	process_put(t, p->parent);
	p->parent = NULL;
	process_put(t, p);
}

void process_lessen(struct table *t, struct process *p, uint64_t time)
{
	if (!p->lessened)
		t->forgotten++;
	p->lessened = true;
	t->complete = MAX(t->complete, time);
}

void process_lessen_names(struct table *t, struct process *p, uint64_t time)
{
	process_lessen(t, p, time);
	/* Children forked before then began with the dropped data, and have no other source
	 * for it. */
	p->partial = MAX(p->partial, MAX(t->now, time));
}
