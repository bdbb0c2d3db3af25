// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the iterators' entries, and applies them to the table. */
#include <stdlib.h>
#include <string.h>

#include "daemon/keeper/table.h"
#include "daemon/keeper/tasks.h"
#include "daemon/tasks.h"
#include "proto/macro.h"

/* ── applying entries ───────────────────────────────────────────────────────────────────── */

struct place {
	uint64_t start, size, offset;
};

/*
 * One process's mappings when its first entry came, in order of address. An iterator reports one
 * process after another, so each list is walked once: a search for each entry would be quadratic,
 * and a process may have 65,000 mappings.
 */
struct known {
	struct process *process; /* a reference: its address is not reused meanwhile */
	struct place *place;
	size_t n;
};

struct telling {
	struct table *table;
	struct known *known;
	uint64_t time;
	bool mending; /* records were lost or data dropped: the table may be wrong */
};

static bool is_later(const struct telling *s, const struct pp_task *task)
{
	return task->started >= s->table->since_rings && !s->mending;
}

static void describe(const struct telling *s, struct thread *thread, const struct pp_task *task)
{
	struct change *c;

	thread->seen = true;
	if (!thread->forked) {
		thread->started = task->started;
		if (!thread->comm[0] && !thread->changes)
			thread_set_comm(thread, task->comm, sizeof(task->comm));
	}
	if (!s->mending || thread->ended ||
	    strncmp(thread_comm(thread), task->comm, COMM_SIZE - 1) == 0)
		return;
	c = thread_change(s->table, thread, CHANGE_COMM, s->time);
	if (c)
		memcpy(c->comm, task->comm, COMM_SIZE - 1);
}

/* The entry's process, or NULL if it must not be brought back. */
static struct process *process_told(const struct telling *s, const struct pp_task *task)
{
	struct thread *thread = thread_find(s->table, task->pid);
	struct process *p;

	if (thread && thread == &thread->process->main &&
	    (!thread->process->ended || task->started <= thread->process->ended))
		return thread->process;
	if (is_later(s, task))
		return NULL;
	p = process_found(s->table, task->pid, task->started);
	if (p)
		p->ppid = task->ppid;
	return p;
}

static int tell_task(const struct telling *s, const struct pp_task *task)
{
	struct process *p = process_told(s, task);
	struct thread *thread;

	if (!p)
		return 0;
	if (task->tid == task->pid) {
		if (!p->main.forked)
			p->ppid = task->ppid;
		describe(s, &p->main, task);
		return 0;
	}
	thread = thread_find(s->table, task->tid);
	if (!thread || thread->process != p) {
		/* The table has no room for it and forgot it already, or did not know it. */
		if ((s->table->told || p->main.forked) && !s->mending)
			return 0;
		if ((s->table->told || p->main.forked) && p->ended)
			return 0;
		if (is_later(s, task) || (thread && !thread->ended))
			return 0;
		process_revive(s->table, p);
		thread = thread_new(s->table, p, task->tid, task->started);
	}
	if (!thread)
		return -ENOMEM;
	describe(s, thread, task);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void known_done(const struct telling *s)
{
	free(s->known->place);
	process_put(s->table, s->known->process);
	*s->known = (struct known){ 0 };
}

static int known_of(const struct telling *s, struct process *p)
{
	struct known *known = s->known;
	size_t n = 0;

	known_done(s);
	for (const struct map *m = *p->maps; m; m = m->older)
		n += m->file != NULL;
	known->place = n ? calloc(n, sizeof(*known->place)) : NULL;
	if (n && !known->place)
		return -ENOMEM;
	for (const struct map *m = *p->maps; m; m = m->older)
		if (m->file)
			known->place[known->n++] = (struct place){ m->start, m->size, m->offset };
	if (n)
		qsort(known->place, n, sizeof(*known->place), by_place);
	p->refs++;
	known->process = p;
	return 0;
}

/* 1: the process has this mapping; 0: it does not; -ENOMEM. */
static int has_map(const struct telling *s, struct process *p, const struct map *what)
{
	const struct place place = { what->start, what->size, what->offset };
	const struct known *known = s->known;
	int r = known->process == p ? 0 : known_of(s, p);

	if (r < 0 || known->n == 0)
		return r;
	return bsearch(&place, known->place, known->n, sizeof(place), by_place) != NULL;
}

static bool has_execed(const struct process *p)
{
	return p->maps != &p->first;
}

/* Behind the root: before everything mapped since. */
static int put_behind(struct table *t, struct process *p, struct map *what, struct blob *file)
{
	struct map *m = memory_get(&t->memory, sizeof(*m));

	if (!m) {
		blobs_put(&t->blobs, file);
		return -ENOMEM;
	}
	*m = *what;
	m->time = p->main.started;
	m->file = file;
	m->refs = 1;
	m->older = p->root->older;
	p->root->older = m;
	p->n_maps++;
	return 0;
}

static struct blob *file_of(struct table *t, const struct pp_task_map *map)
{
	const union pp_file_id id = {
		.major = map->major,
		.minor = map->minor,
		.inode = map->inode,
	};

	return blobs_get(&t->blobs, BLOB_FILE, &id, sizeof(id), map->path, map->path_size);
}

static int tell_map(const struct telling *s, const struct pp_task_map *map)
{
	struct table *t = s->table;
	struct thread *thread = thread_find(t, map->pid);
	struct process *p = thread && thread == &thread->process->main ? thread->process : NULL;
	struct map m = {
		.time = s->time,
		.start = map->start,
		.size = map->end - map->start,
		.offset = map->offset,
		.prot = map->prot & 0xff,
		.flags = map->flags & 0xffffff,
	};
	bool behind = p && p->root && !has_execed(p);
	struct blob *file;
	int r;

	if (!p || (!behind && (!s->mending || p->ended)))
		return 0;
	r = has_map(s, p, &m);
	if (r != 0)
		return MIN(r, 0);
	file = file_of(t, map);
	if (!file)
		return -ENOMEM;
	return behind ? put_behind(t, p, &m, file) : process_map(t, p, &m, file);
}

/* The time is 0: no process that has ended is missing because of this. */
static void tell_cut(const struct telling *s, uint32_t pid)
{
	struct thread *thread = thread_find(s->table, pid);

	if (thread)
		process_lessen(s->table, thread->process, 0);
}

/* ── entries ────────────────────────────────────────────────────────────────────────────── */

static bool is_task(const struct pp_task *task, size_t size)
{
	return size == sizeof(*task) && task->type == PP_TASK && task->pid != 0 && task->tid != 0 &&
	       memchr(task->comm, 0, sizeof(task->comm));
}

static bool is_map(const struct pp_task_map *map, size_t size)
{
	return size > sizeof(*map) && map->type == PP_TASK_MAP && map->path_size > 0 &&
	       map->path_size <= PP_TASK_PATH_SIZE && map->path_size <= size - sizeof(*map) &&
	       map->start < map->end && strnlen(map->path, map->path_size) == map->path_size - 1U;
}

/* The entries stand at multiples of 8 in memory that malloc() gave. */
static int tell_entry(const struct telling *s, uint32_t type, const void *entry, size_t size)
{
	int r = 0;

	if (size == sizeof(struct tasks_cut) && *(const uint32_t *)entry == TASKS_CUT)
		tell_cut(s, ((const struct tasks_cut *)entry)->pid);
	else if (type == PP_TASK)
		r = is_task(entry, size) ? tell_task(s, entry) : -EBADMSG;
	else
		r = is_map(entry, size) ? tell_map(s, entry) : -EBADMSG;
	if (s->table->memory.used > s->table->memory.max)
		table_make_room(s->table);
	return r;
}

static int tell_all(const struct telling *s, uint32_t type, const struct tasks *tasks)
{
	size_t at = 0;

	while (at < tasks->size) {
		struct tasks_head h;
		int r = tasks_head_at(tasks, at, &h);

		if (r > 0)
			r = tell_entry(s, type, tasks->bytes + at, h.size);
		else
			r = -EBADMSG;
		if (r < 0)
			return r;
		at += h.size;
	}
	return 0;
}

/* ── the whole output ───────────────────────────────────────────────────────────────────── */

static void see_nobody(struct table *t)
{
	struct process *p;
	struct thread *i;

	TAILQ_FOREACH(p, &t->alive, link)
	{
		p->main.seen = false;
		TAILQ_FOREACH(i, &p->threads, link)
		i->seen = false;
	}
}

/* The iterator did not meet these: their EXIT was lost. */
static void end_unseen(struct table *t, uint64_t time)
{
	struct process *p, *next_p;
	struct thread *i, *next_i;

	TAILQ_FOREACH(p, &t->alive, link)
	for (i = TAILQ_FIRST(&p->threads); i; i = next_i) {
		next_i = TAILQ_NEXT(i, link);
		p->live++; /* thread_end() must not end the process: see below */
		if (!i->seen && i->started < time)
			thread_end(t, i, time);
		p->live--;
	}
	for (p = TAILQ_FIRST(&t->alive); p; p = next_p) {
		next_p = TAILQ_NEXT(p, link);
		if (TAILQ_EMPTY(&p->threads) && !p->main.seen && p->main.started < time)
			process_end(t, p, time);
	}
}

/* The list, which is in order of pids, ended before it came to these. */
static void lessen_unreached(struct table *t, const struct tasks *maps)
{
	struct tasks_head h = { 0 };
	struct process *p;

	for (size_t at = 0; tasks_head_at(maps, at, &h) > 0; at += h.size)
		;
	TAILQ_FOREACH(p, &t->alive, link)
	if (p->root && p->main.tid >= h.pid)
		process_lessen(t, p, 0);
}

static void drop_roots(struct table *t, struct processes *of)
{
	struct process *p;

	TAILQ_FOREACH(p, of, link)
	{
		map_put(t, p->root);
		p->root = NULL;
	}
}

int table_tell(struct table *t, uint64_t time, const struct tasks *tasks, const struct tasks *maps)
{
	struct known known = { 0 };
	struct telling s = { t, &known, time, t->lost > t->lost_told || t->lacking };
	int r;

	t->lacking = false;
	see_nobody(t);
	r = tell_all(&s, PP_TASK, tasks);
	if (r == 0 && s.mending && !tasks->unfinished)
		end_unseen(t, time);
	if (r == 0)
		r = tell_all(&s, PP_TASK_MAP, maps);
	if (r == 0 && maps->unfinished)
		lessen_unreached(t, maps);
	t->lost += tasks->unfinished;
	known_done(&s);
	if (r < 0)
		return r;
	drop_roots(t, &t->alive);
	drop_roots(t, &t->ended);
	t->told = true;
	t->lost_told = t->lost;
	return 0;
}
