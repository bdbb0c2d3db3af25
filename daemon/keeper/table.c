// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table as a whole: creation, destruction, and the effect of each type of record. */
#include "daemon/keeper/table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/sideband.h"

#define BUCKETS_MIN 1024

int table_init(struct table *t, uint64_t max_memory)
{
	*t = (struct table){
		.memory.max = max_memory,
		.n_buckets = BUCKETS_MIN,
		.first = 1,
		.last = UINT64_MAX,
	};
	TAILQ_INIT(&t->alive);
	TAILQ_INIT(&t->ended);
	TAILQ_INIT(&t->gone);
	TAILQ_INIT(&t->notices);
	TAILQ_INIT(&t->over);
	t->buckets = memory_get(&t->memory, BUCKETS_MIN * sizeof(*t->buckets));
	t->notice_buckets = memory_get(&t->memory, NOTICE_BUCKETS * sizeof(*t->notice_buckets));
	if (!t->buckets || !t->notice_buckets || blobs_init(&t->blobs, &t->memory) < 0) {
		memory_put(&t->memory, t->buckets);
		memory_put(&t->memory, t->notice_buckets);
		t->buckets = NULL;
		t->notice_buckets = NULL;
		return -ENOMEM;
	}
	return 0;
}

void table_clear(struct table *t)
{
	struct process *p;
	struct notice *n;

	while ((p = TAILQ_FIRST(&t->alive)) || (p = TAILQ_FIRST(&t->ended)))
		process_forget(t, p);
	while ((n = TAILQ_FIRST(&t->notices)) || (n = TAILQ_FIRST(&t->over)))
		notice_forget(t, n);
	blobs_done(&t->blobs);
	memory_put(&t->memory, t->buckets);
	memory_put(&t->memory, t->notice_buckets);
	assert(t->memory.used == 0 && t->n_processes == 0 && t->n_ended == 0);
}

/* In a pid namespace other than the events' a process has no number. */
static bool has_number(uint32_t pid)
{
	return pid != 0 && pid != UINT32_MAX;
}

/* ── a record's process and thread ──────────────────────────────────────────────────────── */

/* The old process's EXIT was lost: another one has its number now. */
static void end_old(struct table *t, uint32_t tid, uint64_t time)
{
	struct thread *old = thread_find(t, tid);

	if (old && old == &old->process->main)
		process_end(t, old->process, time);
	else if (old)
		thread_end(t, old, time);
}

struct process *process_found(struct table *t, uint32_t pid, uint64_t time)
{
	uint64_t started = t->told ? time : t->began;
	struct map root = { .time = started };
	struct process *p;

	end_old(t, pid, time);
	p = process_new(t, pid, started, NULL);
	if (!p || t->told)
		return p;
	if (process_map(t, p, &root, NULL) == 0) {
		p->root = map_ref(p->first);
		p->n_maps = 0;
	}
	return p;
}

static bool is_told_later(const struct table *t, const struct process *p)
{
	return !t->told && !p->main.forked;
}

/* The process that has this number now. */
static struct process *process_of(struct table *t, uint32_t pid, uint64_t time)
{
	struct thread *thread = thread_find(t, pid);

	if (!thread || thread != &thread->process->main)
		return process_found(t, pid, time);
	if (!thread->process->ended)
		return thread->process;
	/* Its main thread has ended, and the other threads are not yet known. */
	if (is_told_later(t, thread->process)) {
		process_revive(t, thread->process);
		return thread->process;
	}
	return process_found(t, pid, time);
}

static struct thread *thread_of(struct table *t, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct thread *thread = thread_find(t, tid);
	struct process *p;

	if (thread && !thread->ended && thread->process->main.tid == pid)
		return thread;
	p = process_of(t, pid, time);
	if (!p)
		return NULL;
	if (tid == pid)
		return &p->main;
	end_old(t, tid, time);
	return thread_new(t, p, tid, t->told ? time : p->main.started);
}

/* ── the effect of each record ──────────────────────────────────────────────────────────── */

static int apply_fork_process(struct table *t, const struct pp_record *r)
{
	struct process *parent = has_number(r->ppid) ? process_of(t, r->ppid, r->time) : NULL, *p;
	struct thread *creator;

	end_old(t, r->tid, r->time);
	p = process_new(t, r->pid, r->time, parent);
	if (!p)
		return -ENOMEM;
	creator = thread_find(t, r->ptid); /* not before: both may forget one that has ended */
	p->main.forked = true;
	p->main.ptid = r->ptid;
	p->ppid = r->ppid;
	if (!parent)
		return 0;
	if (!creator || creator->process != parent)
		creator = &parent->main;
	memcpy(p->main.comm, thread_comm(creator), COMM_SIZE);
	return 0;
}

static int apply_fork_thread(struct table *t, const struct pp_record *r)
{
	struct process *p = process_of(t, r->pid, r->time);
	struct thread *creator, *thread;

	end_old(t, r->tid, r->time);
	/* This thread would have been the process. */
	if (!p || p->ended)
		return -ENOMEM;
	thread = thread_new(t, p, r->tid, r->time);
	if (!thread)
		return -ENOMEM;
	thread->forked = true;
	thread->ptid = r->ptid;
	creator = thread_find(t, r->ptid);
	if (!creator || creator->process != p)
		creator = &p->main;
	memcpy(thread->comm, thread_comm(creator), COMM_SIZE);
	return 0;
}

static int apply_fork(struct table *t, const struct pp_record *r)
{
	if (r->pid == r->tid && r->ppid != r->pid)
		return apply_fork_process(t, r);
	if (r->pid == r->tid)
		return -EBADMSG;
	return apply_fork_thread(t, r);
}

static int apply_exit(struct table *t, const struct pp_record *r)
{
	struct thread *thread = thread_find(t, r->tid);

	if (!thread || thread->ended || thread->process->main.tid != r->pid) {
		/* Later reports will not bring it back. */
		if (t->told)
			return 0;
		thread = thread_of(t, r->pid, r->tid, r->time);
	}
	if (!thread)
		return -ENOMEM;
	thread_end(t, thread, r->time);
	return 0;
}

/* All other threads have ended, and the one that called exec() is the main thread now. */
static int apply_exec(struct table *t, struct process *p, const struct pp_record *r)
{
	struct change *c = thread_change(t, &p->main, CHANGE_EXEC, r->time);
	struct thread *i;

	if (!c)
		return -ENOMEM;
	memcpy(c->comm, r->text, MIN(r->text_size, COMM_SIZE - 1U));
	p->maps = &c->maps;
	p->past_maps += p->n_maps;
	p->n_maps = 0;
	p->compact_at = COMPACT_FIRST;
	if (p->main.ended) {
		p->main.ended = 0;
		p->live++;
	}
	while ((i = TAILQ_FIRST(&p->threads)))
		thread_end(t, i, r->time);
	return 0;
}

static int apply_comm(struct table *t, const struct pp_record *r)
{
	struct thread *thread;
	struct change *c;

	if (r->misc & PERF_RECORD_MISC_COMM_EXEC) {
		struct process *p = process_of(t, r->pid, r->time);

		return p ? apply_exec(t, p, r) : -ENOMEM;
	}
	thread = thread_of(t, r->pid, r->tid, r->time);
	if (!thread)
		return -ENOMEM;
	if (strncmp(thread_comm(thread), r->text, COMM_SIZE - 1) == 0)
		return 0;
	c = thread_change(t, thread, CHANGE_COMM, r->time);
	if (!c)
		return -ENOMEM;
	memcpy(c->comm, r->text, MIN(r->text_size, COMM_SIZE - 1U));
	return 0;
}

/* PERF_RECORD_MISC_MMAP_BUILD_ID may be set here without meaning: we do not ask for build ids, and
 * the kernel leaves the bit set when another user's event did (daemon/engine/sideband.c). */
static int apply_mmap2(struct table *t, const struct pp_record *r)
{
	struct map m = {
		.time = r->time,
		.start = r->start,
		.size = r->length,
		.offset = r->offset,
		.prot = r->prot & 0xff,
		.flags = r->flags & 0xffffff,
	};
	struct process *p;
	struct blob *file;

	if (r->misc & PERF_RECORD_MISC_MMAP_DATA)
		return 0;
	p = process_of(t, r->pid, r->time);
	if (!p)
		return -ENOMEM;
	file = blobs_get(&t->blobs, BLOB_FILE, &r->file, sizeof(r->file), r->text, r->text_size);
	return file ? process_map(t, p, &m, file) : -ENOMEM;
}

static struct blob *namespaces_now(const struct thread *thread)
{
	struct blob *b = NULL;

	for (const struct change *c = thread->changes; c; c = c->next)
		if (c->kind == CHANGE_NAMESPACES)
			b = c->namespaces;
	return b;
}

/* A thread has its process's namespaces, unless a record says otherwise. */
static int apply_namespaces(struct table *t, const struct pp_record *r)
{
	struct thread *thread = thread_of(t, r->pid, r->tid, r->time);
	struct blob *b, *now;
	struct change *c;

	if (!thread)
		return -ENOMEM;
	b = blobs_get(&t->blobs, BLOB_NAMESPACES, r->namespaces, r->namespaces_size, "", 0);
	if (!b)
		return -ENOMEM;
	now = namespaces_now(thread);
	if (!now)
		now = namespaces_now(&thread->process->main);
	c = now == b ? NULL : thread_change(t, thread, CHANGE_NAMESPACES, r->time);
	if (!c) {
		blobs_put(&t->blobs, b);
		return now == b ? 0 : -ENOMEM;
	}
	c->namespaces = b;
	return 0;
}

static int apply_to_task(struct table *t, const struct pp_record *r)
{
	if (!has_number(r->pid) || !has_number(r->tid))
		return 0;
	switch (r->type) {
	case PERF_RECORD_FORK:
		return apply_fork(t, r);
	case PERF_RECORD_EXIT:
		return apply_exit(t, r);
	case PERF_RECORD_COMM:
		return apply_comm(t, r);
	case PERF_RECORD_MMAP2:
		return apply_mmap2(t, r);
	default:
		return apply_namespaces(t, r);
	}
}

void table_apply(struct table *t, const struct pp_record *r)
{
	struct pp_record timed = *r;

	/* The record is true all the same; only its time is not, so it counts as of now. */
	if (r->time < t->first || r->time > t->last) {
		t->untimed++;
		timed.time = MAX(t->now, t->first);
		r = &timed;
	}
	t->now = MAX(t->now, r->time);
	switch (r->type) {
	case PERF_RECORD_LOST:
		t->lost += r->number;
		table_notice(t, r);
		break;
	case PERF_RECORD_CGROUP:
		table_notice(t, r);
		break;
	default:
		if (apply_to_task(t, r) < 0)
			t->lost++;
	}
	if (t->memory.used > t->memory.max || t->notice_bytes > NOTICE_BYTES_MAX(t))
		table_make_room(t);
}

/* 1: a record to apply; 0: one to ignore; -EBADMSG: damaged, or of an unrequested type. */
static int parse(const uint8_t *bytes, size_t size, struct pp_record *ret)
{
	int r = pp_record_open(bytes, size, PP_SIDEBAND_SAMPLE_TYPE, ret);

	if (r < 0)
		return r;
	switch (ret->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_LOST:
		r = pp_record_parse(ret);
		return r < 0 ? r : 1;
	/* An event that counts nothing is never throttled; if it were, nothing would be lost. */
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return 0;
	default:
		return -EBADMSG;
	}
}

void table_apply_bytes(void *table, const uint8_t *bytes, size_t size)
{
	struct table *t = table;
	struct pp_record r;
	int n = parse(bytes, size, &r);

	if (n > 0)
		table_apply(t, &r);
	else if (n < 0)
		t->lost++;
}
