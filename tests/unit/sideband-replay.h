/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applies a sideband as perf does, up to a time: FORK copies the parent, COMM names, MMAP2 replaces
 * what it overlaps, EXIT ends. It is simple, slow and small: for a sideband of the whole machine it
 * applies only one process and its children (`only`).
 */
#pragma once

#include "tests/unit/keeper-process.h"

#define REPLAY_TASKS 4096
#define REPLAY_MAPS 1024

struct replay_map {
	uint64_t start, end;
	const char *path; /* in the file, which stays mapped */
};

struct replay_task {
	uint32_t pid, tid;
	char comm[16];
	bool ended;
	size_t n;
	struct replay_map map[REPLAY_MAPS];
};

struct replay {
	uint32_t only; /* 0: all processes */
	struct replay_task task[REPLAY_TASKS];
	size_t n;
	uint64_t records, of_type[PERF_RECORD_MAX];
};

static inline struct replay_task *replay_find(struct replay *r, uint32_t tid)
{
	for (size_t i = r->n; i-- > 0;)
		if (r->task[i].tid == tid)
			return &r->task[i];
	return NULL;
}

static inline struct replay_task *replay_make(struct replay *r, uint32_t pid, uint32_t tid)
{
	struct replay_task *t = &r->task[r->n++];

	ck_assert_uint_le(r->n, REPLAY_TASKS);
	memset(t, 0, offsetof(struct replay_task, map));
	t->pid = pid;
	t->tid = tid;
	return t;
}

static inline struct replay_task *replay_get(struct replay *r, uint32_t pid, uint32_t tid)
{
	struct replay_task *t = replay_find(r, tid);

	return t && !t->ended ? t : replay_make(r, pid, tid);
}

static inline void replay_fork(struct replay *r, const struct perf_event_header *h)
{
	struct replay_task *parent = replay_find(r, record_u32(h, 20)), *t;

	t = replay_make(r, record_u32(h, 8), record_u32(h, 16));
	if (!parent)
		return;
	memcpy(t->comm, parent->comm, sizeof(t->comm));
	parent = replay_find(r, record_u32(h, 12));
	if (parent) {
		memcpy(t->map, parent->map, parent->n * sizeof(t->map[0]));
		t->n = parent->n;
	}
}

static inline void replay_mmap2(struct replay *r, const struct perf_event_header *h)
{
	struct replay_task *t = replay_get(r, record_u32(h, 8), record_u32(h, 8));
	struct replay_map m = { .start = record_u64(h, 16) };

	m.end = m.start + record_u64(h, 24);
	m.path = (const char *)h + 72;
	for (size_t i = t->n; i-- > 0;)
		if (t->map[i].start >= m.start && t->map[i].end <= m.end)
			t->map[i] = t->map[--t->n];
	ck_assert_uint_lt(t->n, REPLAY_MAPS);
	t->map[t->n++] = m;
}

static inline void replay_apply(struct replay *r, const struct perf_event_header *h)
{
	struct replay_task *t;

	r->records++;
	r->of_type[h->type]++;
	switch (h->type) {
	case PERF_RECORD_FORK:
		replay_fork(r, h);
		break;
	case PERF_RECORD_EXIT:
		t = replay_get(r, record_u32(h, 8), record_u32(h, 16));
		t->ended = true;
		break;
	case PERF_RECORD_COMM:
		t = replay_get(r, record_u32(h, 8), record_u32(h, 12));
		snprintf(t->comm, sizeof(t->comm), "%s", (const char *)h + 16);
		if (h->misc & PERF_RECORD_MISC_COMM_EXEC)
			t->n = 0;
		break;
	case PERF_RECORD_MMAP2:
		replay_mmap2(r, h);
		break;
	}
}

/* Ignores unrelated processes: their number and their mappings have no limit. */
static inline bool replay_concerns(struct replay *r, const struct perf_event_header *h)
{
	uint32_t pid = record_u32(h, 8);

	if (!r->only || pid == r->only)
		return true;
	if (h->type == PERF_RECORD_FORK && record_u32(h, 12) == r->only)
		return true;
	return replay_find(r, pid) != NULL;
}

/* Applies all records up to a time; they must be ordered. */
static inline void replay_file(struct replay *r, int fd, uint64_t until)
{
	struct sideband s = sideband_map(fd);
	const struct perf_event_header *h;
	uint64_t last = 0, n = 0;

	r->n = 0;
	r->records = 0;
	memset(r->of_type, 0, sizeof(r->of_type));
	while ((h = sideband_next(&s))) {
		ck_assert_uint_ge(record_at(h), last);
		ck_assert_uint_eq(record_u64(h, h->size - 8), PP_SIDEBAND_ID);
		last = record_at(h);
		n++;
		if (last <= until && replay_concerns(r, h))
			replay_apply(r, h);
	}
	ck_assert_uint_eq(n, s.header->records);
}

/* "": no such thread, or it has no name. */
static inline const char *replay_comm(struct replay *r, uint32_t tid)
{
	struct replay_task *t = replay_find(r, tid);

	return t ? t->comm : "";
}

static inline const char *replay_path(struct replay *r, uint32_t pid, uint64_t address)
{
	struct replay_task *t = replay_find(r, pid);

	for (size_t i = t ? t->n : 0; i-- > 0;)
		if (address >= t->map[i].start && address < t->map[i].end)
			return t->map[i].path;
	return "";
}
