// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes room when the memory's limit is reached. In this order it drops: whatever ended longest
 * ago; mappings of live processes, of those with most mappings first, and of each those before its
 * last EXEC first; earlier names; and last, if live processes alone are too many, the oldest
 * processes. Everything dropped is counted.
 */
#include "daemon/keeper/table.h"
#include "proto/macro.h"

/* A scan of all processes frees down to so far below the limit, so that scans are rare. */
#define ROOM(t) ((t)->memory.max / 16)

static bool is_over(const struct table *t, uint64_t room)
{
	return t->memory.used > t->memory.max - room;
}

static bool has_own_name(const struct thread *thread)
{
	const char *a = thread_comm(thread), *b = thread_comm(&thread->process->main);

	for (size_t i = 0; i < COMM_SIZE && (a[i] || b[i]); i++)
		if (a[i] != b[i])
			return true;
	return false;
}

static void forget_process(struct table *t, struct process *p)
{
	if (!p->lessened)
		t->forgotten++;
	t->complete = MAX(t->complete, p->ended);
	process_forget(t, p);
}

static void forget_thread(struct table *t, struct thread *thread)
{
	if (has_own_name(thread))
		process_lessen_names(t, thread->process, thread->ended);
	else
		t->complete = MAX(t->complete, thread->ended);
	thread_forget(t, thread);
}

static void forget_notice(struct table *t, struct notice *n)
{
	if (n->ended)
		t->complete = MAX(t->complete, n->ended);
	else
		t->forgotten++;
	notice_forget(t, n);
}

/* Drops the process, thread or notice that ended first. */
static bool forget_ended(struct table *t)
{
	struct process *p = TAILQ_FIRST(&t->ended);
	struct thread *thread = TAILQ_FIRST(&t->gone);
	struct notice *n = TAILQ_FIRST(&t->over);
	uint64_t of_p = p ? p->ended : UINT64_MAX, of_n = n ? n->ended : UINT64_MAX;
	uint64_t of_thread = thread ? thread->ended : UINT64_MAX;

	if (thread && of_thread <= of_p && of_thread <= of_n)
		forget_thread(t, thread);
	else if (p && of_p <= of_n)
		forget_process(t, p);
	else if (n)
		forget_notice(t, n);
	else
		return false;
	return true;
}

static uint64_t newest_map(const struct process *p)
{
	return *p->maps ? (*p->maps)->time : 0;
}

/* Lists are shared: only dropping one shows how much it frees. */
static void drop_maps(struct table *t)
{
	for (uint32_t most = 1U << 16; most > 0 && is_over(t, ROOM(t)); most /= 4) {
		struct process *p;

		TAILQ_FOREACH(p, &t->alive, link)
		{
			if (p->past_maps >= most) {
				process_drop_past_maps(t, p);
				if (!is_over(t, ROOM(t)))
					return;
			}
			if (p->n_maps < most)
				continue;
			process_lessen(t, p, newest_map(p));
			process_drop_maps(t, p);
			if (!is_over(t, ROOM(t)))
				return;
		}
	}
}

static void drop_changes(struct table *t)
{
	struct process *p;
	struct thread *i;

	TAILQ_FOREACH(p, &t->alive, link)
	{
		if (!is_over(t, ROOM(t)))
			return;
		if (p->main.last)
			process_lessen_names(t, p, p->main.last->time);
		thread_drop_changes(t, &p->main);
		TAILQ_FOREACH(i, &p->threads, link)
		{
			if (i->last)
				process_lessen_names(t, p, i->last->time);
			thread_drop_changes(t, i);
		}
	}
}

/* Threads with their process's name need no entry of their own. */
static void drop_threads(struct table *t)
{
	struct process *p;

	TAILQ_FOREACH(p, &t->alive, link)
	{
		struct thread *i, *next;

		for (i = TAILQ_FIRST(&p->threads); i && is_over(t, ROOM(t)); i = next) {
			next = TAILQ_NEXT(i, link);
			/* A live process needs a thread whose end can end it. */
			if (p->main.ended || has_own_name(i))
				continue;
			process_lessen_names(t, p, i->started);
			thread_forget(t, i);
		}
	}
}

static void drop_alive(struct table *t)
{
	struct notice *n;
	struct process *p;

	while (is_over(t, ROOM(t)) && (n = TAILQ_FIRST(&t->notices)))
		forget_notice(t, n);
	while (is_over(t, ROOM(t)) && (p = TAILQ_FIRST(&t->alive))) {
		t->lacking = true;
		forget_process(t, p);
	}
}

static void bound_notices(struct table *t)
{
	struct notice *n;

	while (t->notice_bytes > NOTICE_BYTES_MAX(t) &&
	       ((n = TAILQ_FIRST(&t->over)) || (n = TAILQ_FIRST(&t->notices))))
		forget_notice(t, n);
}

void table_make_room(struct table *t)
{
	bound_notices(t);
	while (is_over(t, 0) && forget_ended(t))
		;
	if (!is_over(t, 0))
		return;
	/* Each of these scans all live processes. After it, much must arrive before the next
	 * scan. */
	drop_maps(t);
	drop_changes(t);
	drop_threads(t);
	drop_alive(t);
}
