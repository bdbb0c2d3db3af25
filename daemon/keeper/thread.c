// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads: lookup by number, names, and ends. */
#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"

#define CHANGES_MAX 256 /* kept for one thread; the oldest go */
#define GONE_MAX 4096	/* ended threads kept for one live process */

static struct thread **bucket(const struct table *t, uint32_t tid)
{
	return &t->buckets[tid * 0x9e3779b9U & (t->n_buckets - 1)];
}

struct thread *thread_find(const struct table *t, uint32_t tid)
{
	struct thread *i = *bucket(t, tid);

	while (i && i->tid != tid)
		i = i->hash_next;
	return i;
}

/* The order within a chain stays: for one number, the newest first. */
static void grow(struct table *t)
{
	size_t old_n = t->n_buckets;
	struct thread **old = t->buckets;
	struct thread **new = memory_get(&t->memory, 2 * old_n * sizeof(struct thread *));

	if (!new)
		return;
	t->buckets = new;
	t->n_buckets = 2 * old_n;
	for (size_t i = 0; i < old_n; i++) {
		struct thread *reversed = NULL, *next;

		for (struct thread *j = old[i]; j; j = next) {
			next = j->hash_next;
			j->hash_next = reversed;
			reversed = j;
		}
		for (struct thread *j = reversed; j; j = next) {
			struct thread **to = bucket(t, j->tid);

			next = j->hash_next;
			j->hash_next = *to;
			*to = j;
		}
	}
	memory_put(&t->memory, old);
}

static void hash_in(struct table *t, struct thread *thread)
{
	struct thread **to;

	if (t->n_threads++ >= t->n_buckets)
		grow(t);
	to = bucket(t, thread->tid);
	thread->hash_next = *to;
	*to = thread;
}

static void hash_out(struct table *t, struct thread *thread)
{
	struct thread **at = bucket(t, thread->tid);

	while (*at != thread)
		at = &(*at)->hash_next;
	*at = thread->hash_next;
	t->n_threads--;
}

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

const char *thread_comm(const struct thread *thread)
{
	const char *comm = thread->comm;

	for (const struct change *c = thread->changes; c; c = c->next)
		if (c->kind != CHANGE_NAMESPACES)
			comm = c->comm;
	return comm;
}

void thread_set_comm(struct thread *thread, const char *comm, size_t size)
{
	memset(thread->comm, 0, COMM_SIZE);
	memcpy(thread->comm, comm, MIN(size, COMM_SIZE - 1U));
}

/* The process's present mappings must stay. */
static void drop_change(struct table *t, struct thread *thread)
{
	struct change *c = thread->changes;

	thread->changes = c->next;
	if (!thread->changes)
		thread->last = NULL;
	thread->n_changes--;
	if (c->kind == CHANGE_NAMESPACES)
		blobs_put(&t->blobs, c->namespaces);
	map_put(t, c->maps);
	memory_put(&t->memory, c);
}

static uint64_t last_exec(const struct thread *thread)
{
	uint64_t time = 0;

	for (const struct change *c = thread->changes; c; c = c->next)
		if (c->kind == CHANGE_EXEC)
			time = c->time;
	return time;
}

/* Its present name stays, as if it had always had it; so does its present list of maps. */
void thread_drop_changes(struct table *t, struct thread *thread)
{
	struct process *p = thread->process;
	char comm[COMM_SIZE];

	memcpy(comm, thread_comm(thread), COMM_SIZE);
	memcpy(thread->comm, comm, COMM_SIZE);
	if (thread == &p->main && p->maps != &p->first) {
		struct map *maps = *p->maps;

		process_lessen_maps(t, p, last_exec(thread));
		*p->maps = NULL;
		map_put(t, p->first);
		map_put(t, p->inherited);
		p->inherited = NULL;
		p->first = maps;
		p->maps = &p->first;
		p->past_maps = 0;
		for (struct former *f = p->formers; f; f = f->next)
			f->list = p->maps;
	}
	while (thread->changes)
		drop_change(t, thread);
}

struct change *thread_change(struct table *t, struct thread *thread, enum change_kind kind,
			     uint64_t time)
{
	struct change *c = memory_get(&t->memory, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = kind;
	c->time = time;
	if (thread->n_changes >= CHANGES_MAX) {
		process_lessen_names(t, thread->process, thread->last->time);
		thread_drop_changes(t, thread);
	}
	if (thread->last)
		thread->last->next = c;
	else
		thread->changes = c;
	thread->last = c;
	thread->n_changes++;
	return c;
}

/* ── beginning and end ──────────────────────────────────────────────────────────────────── */

static void thread_begin(struct table *t, struct thread *thread, struct process *p, uint32_t tid,
			 uint64_t started)
{
	thread->process = p;
	thread->tid = tid;
	thread->started = started;
	p->live++;
	hash_in(t, thread);
}

struct thread *thread_new(struct table *t, struct process *p, uint32_t tid, uint64_t started)
{
	struct thread *thread;

	if (tid == p->main.tid) {
		thread_begin(t, &p->main, p, tid, started);
		return &p->main;
	}
	thread = memory_get(&t->memory, sizeof(*thread));
	if (!thread)
		return NULL;
	thread_begin(t, thread, p, tid, started);
	TAILQ_INSERT_TAIL(&p->threads, thread, link);
	return thread;
}

void thread_end(struct table *t, struct thread *thread, uint64_t time)
{
	struct process *p = thread->process;

	if (thread->ended)
		return;
	thread->ended = MAX(time, 1U);
	if (thread != &p->main) {
		TAILQ_REMOVE(&p->threads, thread, link);
		TAILQ_INSERT_TAIL(&p->gone, thread, link);
		TAILQ_INSERT_TAIL(&t->gone, thread, fading);
		p->n_gone++;
	}
	if (--p->live == 0)
		process_end(t, p, time);
	if (p->n_gone > GONE_MAX) {
		struct thread *oldest = TAILQ_FIRST(&p->gone);

		/* A thread with its process's name has nothing to tell. */
		if (strncmp(thread_comm(oldest), thread_comm(&p->main), COMM_SIZE) != 0)
			process_lessen_names(t, p, oldest->ended);
		thread_forget(t, oldest);
	}
}

void thread_forget(struct table *t, struct thread *thread)
{
	struct process *p = thread->process;

	hash_out(t, thread);
	while (thread->changes)
		drop_change(t, thread);
	if (thread == &p->main)
		return;
	if (thread->ended) {
		TAILQ_REMOVE(&p->gone, thread, link);
		TAILQ_REMOVE(&t->gone, thread, fading);
		p->n_gone--;
	} else {
		TAILQ_REMOVE(&p->threads, thread, link);
		p->live--;
	}
	memory_put(&t->memory, thread);
}
