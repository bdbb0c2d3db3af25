// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the programs that the iterator reports with its last report. */
#include "daemon/keeper/loaded.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/keeper/table.h"
#include "daemon/tasks.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/sideband.h"

#define PAUSE 1000000000ULL /* ns */
#define SHARE 100	    /* one part in so many of the time */

void loaded_init(struct loaded *p)
{
	*p = (struct loaded){ .file = -EBADF };
}

void loaded_done(struct loaded *p)
{
	close_fd(p->file);
	tasks_free(&p->there);
	loaded_init(p);
}

void loaded_put(struct loaded *p, int file)
{
	close_fd(p->file);
	p->file = file;
}

bool loaded_is_due(const struct loaded *p, uint64_t now)
{
	return p->file >= 0 && now - p->looked >= MAX(PAUSE, SHARE * p->cost);
}

/* ── the iterator's output ──────────────────────────────────────────────────────────────── */

/* malloc() aligns the memory, and entries are at multiples of 8. NULL: the end. */
static const struct pp_task_program *entry_at(const struct tasks *of, size_t at)
{
	return at < of->size ? (const struct pp_task_program *)(of->bytes + at) : NULL;
}

static bool is_program(const struct pp_task_program *e, size_t left)
{
	return left >= sizeof(*e) && e->type == PP_TASK_PROGRAM && e->size <= left &&
	       e->size % 8 == 0 && e->size > sizeof(*e) && e->name_size > 0 &&
	       e->name_size <= PP_TASK_PATH_SIZE && e->name_size <= e->size - sizeof(*e) &&
	       strnlen(e->name, e->name_size) == e->name_size - 1U &&
	       e->start <= UINT64_MAX - e->length;
}

static int by_id(const struct pp_task_program *a, const struct pp_task_program *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->part > b->part) - (a->part < b->part);
}

static int check(const struct tasks *there)
{
	const struct pp_task_program *e, *last = NULL;

	for (size_t at = 0; (e = entry_at(there, at)); at += e->size, last = e)
		if (!is_program(e, there->size - at) || (last && by_id(last, e) >= 0))
			return -EBADMSG;
	return 0;
}

static int read_there(int file, void (*busy)(void *context), void *context, struct tasks *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : tasks_read(fd, TASKS_SIZE_MAX, 0, busy, context, ret);
}

/* ── differences ────────────────────────────────────────────────────────────────────────── */

struct ended {
	const struct pp_task_program *entry;
	uint64_t end;
};

struct look {
	struct table *table;
	const struct pp_task_program **came;
	struct ended *went;
	size_t n_came, n_went;
	uint64_t last, now; /* start of the look before (0: none), and of this one */
};

/* An id is reused only after 2^31 programs. */
static bool is_same(const struct pp_task_program *a, const struct pp_task_program *b)
{
	return a->start == b->start && memcmp(a->tag, b->tag, sizeof(a->tag)) == 0;
}

static size_t count(const struct tasks *there)
{
	const struct pp_task_program *e;
	size_t n = 0;

	for (size_t at = 0; (e = entry_at(there, at)); at += e->size)
		n++;
	return n;
}

static void compare(struct look *l, const struct tasks *before, const struct tasks *there)
{
	size_t old = 0, new = 0;
	const struct pp_task_program *a, *b;

	while ((a = entry_at(before, old), b = entry_at(there, new), a || b)) {
		int order = !a ? 1 : !b ? -1 : by_id(a, b);
		bool stays = order == 0 && is_same(a, b);

		if (order <= 0 && !stays)
			l->went[l->n_went++].entry = a;
		if (order >= 0 && !stays)
			l->came[l->n_came++] = b;
		old += order <= 0 ? a->size : 0;
		new += order >= 0 ? b->size : 0;
	}
}

/* A program that the last look did not see cannot have run before it. */
static uint64_t begin_of(const struct look *l, const struct pp_task_program *e)
{
	return MIN(MAX(e->loaded, l->last), l->now);
}

static int by_start(const void *a, const void *b)
{
	const struct pp_task_program *x = *(const struct pp_task_program *const *)a;
	const struct pp_task_program *y = *(const struct pp_task_program *const *)b;

	return (x->start > y->start) - (x->start < y->start);
}

static int by_end(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

/* `came` is sorted by address, and two pieces of code never overlap. */
static uint64_t end_of(const struct look *l, const struct pp_task_program *e)
{
	uint64_t end = l->now;
	size_t first = 0, n = l->n_came;

	while (n > 0) {
		const struct pp_task_program *middle = l->came[first + n / 2];
		bool before = middle->start + middle->length <= e->start;

		first += before ? n / 2 + 1 : 0;
		n = before ? n - n / 2 - 1 : n / 2;
	}
	for (; first < l->n_came && l->came[first]->start < e->start + e->length; first++)
		end = MIN(end, MAX(begin_of(l, l->came[first]), 1U) - 1);
	return end;
}

/* ── reporting ──────────────────────────────────────────────────────────────────────────── */

static void tell(const struct look *l, struct pp_record *r, uint64_t key, uint64_t time, bool ends)
{
	uint8_t bytes[PP_TASK_PATH_SIZE + 128];

	r->time = time;
	r->size = (uint16_t)pp_record_write(r, PP_SIDEBAND_SAMPLE_TYPE, bytes, sizeof(bytes));
	r->bytes = bytes;
	table_tell_program(l->table, r, key, ends);
}

static void tell_symbol(const struct look *l, const struct pp_task_program *e, uint64_t time,
			bool ends)
{
	struct pp_record r = {
		.type = PERF_RECORD_KSYMBOL,
		.start = e->start,
		.length = e->length,
		.kind = PERF_RECORD_KSYMBOL_TYPE_BPF,
		.kind_flags = ends ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0,
		.text = e->name,
		.text_size = e->name_size,
	};

	tell(l, &r, e->start, time, ends);
}

static void tell_program(const struct look *l, const struct pp_task_program *e, uint64_t time,
			 bool ends)
{
	struct pp_record r = {
		.type = PERF_RECORD_BPF_EVENT,
		.kind = ends ? PERF_BPF_EVENT_PROG_UNLOAD : PERF_BPF_EVENT_PROG_LOAD,
		.program = e->id,
	};

	memcpy(r.tag, e->tag, sizeof(r.tag));
	if (e->part == 0)
		tell(l, &r, e->id, time, ends);
	if (e->start)
		tell_symbol(l, e, time, ends);
}

/* Ended programs first: a new one may be at the same address. In order of their ends, as the table
 * requires. */
static void tell_all(struct look *l)
{
	if (l->n_came > 0)
		qsort(l->came, l->n_came, sizeof(*l->came), by_start);
	for (size_t i = 0; i < l->n_went; i++)
		l->went[i].end = end_of(l, l->went[i].entry);
	if (l->n_went > 0)
		qsort(l->went, l->n_went, sizeof(*l->went), by_end);
	for (size_t i = 0; i < l->n_went; i++)
		tell_program(l, l->went[i].entry, l->went[i].end, true);
	for (size_t i = 0; i < l->n_came; i++)
		tell_program(l, l->came[i], begin_of(l, l->came[i]), false);
}

/* New programs use up ids in sequence; missing ids are programs that have gone again. */
static void count_unseen(struct loaded *p, struct look *l)
{
	uint32_t newest = p->newest, n = 0;

	for (size_t i = 0; i < l->n_came; i++) {
		newest = MAX(newest, l->came[i]->id);
		n += l->came[i]->part == 0 && l->came[i]->id > p->newest;
	}
	if (l->last)
		l->table->unseen += newest - p->newest - n;
	p->newest = newest;
}

int loaded_told(struct loaded *p, struct table *t, struct tasks *there, uint64_t now)
{
	_cleanup_free_ const struct pp_task_program **came = NULL;
	_cleanup_free_ struct ended *went = NULL;
	struct look l = { .table = t, .last = p->told, .now = now };
	int r = check(there);

	if (r < 0)
		return r;
	came = l.came = calloc(count(there) + 1, sizeof(*l.came));
	went = l.went = calloc(count(&p->there) + 1, sizeof(*l.went));
	if (!came || !went)
		return -ENOMEM;
	compare(&l, &p->there, there);
	tell_all(&l);
	count_unseen(p, &l);
	tasks_free(&p->there);
	p->there = *there;
	*there = (struct tasks){ 0 };
	p->told = now;
	return 0;
}

int loaded_look(struct loaded *p, struct table *t, void (*busy)(void *context), void *context)
{
	_cleanup_(tasks_free) struct tasks there = { 0 };
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	int r;

	if (p->file < 0)
		return 0;
	r = read_there(p->file, busy, context, &there);
	if (r == 0)
		r = loaded_told(p, t, &there, now);
	p->looked = now; /* also after a failure: no retry at once */
	p->cost = pp_clock_ns(CLOCK_MONOTONIC) - now;
	return r;
}
