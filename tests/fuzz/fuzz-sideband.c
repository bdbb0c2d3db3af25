// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the input as the kernel's records of processes and as the iterators' entries, for a table
 * with little room. The first bytes choose whether each record is made valid, how much room there
 * is, and which part is requested in the end. The result must be a valid sideband, word for word.
 */
#include <string.h>

#include "daemon/keeper/emit.h"
#include "daemon/keeper/loaded.h"
#include "daemon/keeper/table.h"
#include "daemon/keeper/tasks.h"
#include "daemon/tasks.h"
#include "proto/macro.h"
#include "proto/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MODE_RAW (1U << 0)     /* records are unchanged */
#define MODE_TOLD (1U << 1)    /* the iterators came before the records */
#define MODE_SMALL (1U << 2)   /* of memory */
#define MODE_WINDOW (1U << 3)  /* the request is for a part of the time */
#define MODE_ENTRIES (1U << 4) /* entries of the iterators are made valid */

/* The rest of the input. */
struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static void idle(void *context)
{
	(void)context;
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static void apply(struct table *t, const uint8_t *bytes, size_t n)
{
	/* Exactly as large as the input, so that ASan sees an overrun. */
	uint8_t *record = malloc(n);

	if (!record)
		abort();
	memcpy(record, bytes, n);
	table_apply_bytes(t, record, n);
	free(record);
}

static void apply_raw(struct table *t, struct input *in)
{
	size_t n;

	while ((n = pp_record_extent(in->at, in->left, PP_SIDEBAND_SAMPLE_TYPE)) > 0) {
		apply(t, in->at, n);
		in->at += n;
		in->left -= n;
	}
}

/* Few processes, so that records meet the same one, and increasing times. */
static void apply_made(struct table *t, struct input *in)
{
	static const uint8_t types[] = { 2, 3, 4, 7, 7, 10, 10, 16, 19, 19, 3, 5, 21 };
	uint64_t time = 1000;

	while (in->left > 4) {
		struct perf_event_header h = { 0 };
		uint8_t record[256] = { 0 };
		uint32_t id[4] = { 0 };
		size_t n = 8 + 8 * (next(in) % 24), body;

		h.type = types[next(in) % ARRAY_SIZE(types)];
		h.misc = (uint16_t)(next(in) << 8);
		h.size = (uint16_t)(n + PP_SIDEBAND_ID_SIZE);
		memcpy(record, &h, sizeof(h));
		for (size_t i = 0; i < ARRAY_SIZE(id); i++)
			id[i] = next(in) % 8;
		memcpy(record + sizeof(h), id, MIN(sizeof(id), n - sizeof(h)));
		body = n > 24 ? MIN(in->left, (size_t)next(in) % (n - 23)) : 0;
		memcpy(record + 24, in->at, MIN(body, in->left));
		in->at += MIN(body, in->left);
		in->left -= MIN(body, in->left);
		time += next(in) % 4;
		memcpy(record + n + 8, &time, sizeof(time));
		apply(t, record, h.size);
	}
}

/* ── iterators ──────────────────────────────────────────────────────────────────────────── */

static struct tasks copy_of(const void *bytes, size_t n)
{
	struct tasks tasks = { .bytes = malloc(n + 1), .size = n };

	if (!tasks.bytes)
		abort();
	memcpy(tasks.bytes, bytes, n);
	return tasks;
}

static struct tasks made_tasks(struct input *in)
{
	struct pp_task task[16] = { 0 };
	size_t n = next(in) % ARRAY_SIZE(task);

	for (size_t i = 0; i < n; i++) {
		task[i] = (struct pp_task){ .type = PP_TASK, .size = sizeof(task[i]) };
		task[i].pid = next(in) % 8;
		task[i].tid = next(in) % 8;
		task[i].started = 4 * next(in);
		task[i].comm[0] = (char)next(in);
	}
	return copy_of(task, n * sizeof(task[0]));
}

static struct tasks made_maps(struct input *in)
{
	uint8_t entries[16][sizeof(struct pp_task_map) + 8] = { 0 };
	size_t n = next(in) % ARRAY_SIZE(entries);

	for (size_t i = 0; i < n; i++) {
		struct pp_task_map map = { .type = PP_TASK_MAP, .size = sizeof(entries[i]) };

		map.pid = next(in) % 8;
		map.start = next(in);
		map.end = map.start + 1 + next(in);
		map.path_size = 2;
		memcpy(entries[i], &map, sizeof(map));
		entries[i][sizeof(map)] = next(in) | 1;
	}
	return copy_of(entries, n * sizeof(entries[0]));
}

static void tell(struct table *t, struct input *in, unsigned mode)
{
	size_t half = MIN(in->left / 2, 512U) / 2;
	_cleanup_(tasks_free) struct tasks tasks = { 0 }, maps = { 0 };

	if (mode & MODE_ENTRIES) {
		tasks = made_tasks(in);
		maps = made_maps(in);
	} else {
		tasks = copy_of(in->at, half);
		maps = copy_of(in->at + half, half);
		in->at += 2 * half;
		in->left -= 2 * half;
	}
	table_tell(t, 1100, &tasks, &maps);
}

/* Twice: some processes stay, some exit, some start. */
static struct tasks made_programs(struct input *in)
{
	uint8_t entries[16][sizeof(struct pp_task_program) + 8] = { 0 };
	size_t n = next(in) % ARRAY_SIZE(entries);
	uint32_t id = 0;

	for (size_t i = 0; i < n; i++) {
		struct pp_task_program p = { .type = PP_TASK_PROGRAM, .size = sizeof(entries[i]) };

		p.id = id += next(in) % 4;
		p.part = (uint32_t)i;
		p.start = next(in);
		p.length = next(in) % 8;
		p.loaded = 1000 + next(in);
		p.name_size = 2;
		memcpy(entries[i], &p, sizeof(p));
		entries[i][sizeof(p)] = next(in) | 1;
	}
	return copy_of(entries, n * sizeof(entries[0]));
}

static void tell_programs(struct table *t, struct input *in, unsigned mode)
{
	struct loaded p;

	loaded_init(&p);
	for (uint64_t time = 1020; time < 1100; time += 40) {
		size_t n = MIN(in->left / 2, 512U);
		_cleanup_(tasks_free) struct tasks there =
			mode & MODE_ENTRIES ? made_programs(in) : copy_of(in->at, n);

		loaded_told(&p, t, &there, time);
		in->at += mode & MODE_ENTRIES ? 0 : n;
		in->left -= mode & MODE_ENTRIES ? 0 : n;
	}
	loaded_done(&p);
}

/* ── what comes out ─────────────────────────────────────────────────────────────────────── */

/* Written anew it is the same. Behind the text of what is told as it came there may be anything. */
static void check_record(const uint8_t *bytes, size_t size, struct pp_record *ret)
{
	uint8_t again[PP_RECORD_SIZE_MAX];

	if (pp_record_open(bytes, size, PP_SIDEBAND_SAMPLE_TYPE, ret) < 0 ||
	    pp_record_parse(ret) < 0 || ret->id != PP_SIDEBAND_ID)
		abort();
	if (ret->type == PERF_RECORD_CGROUP || ret->type == PERF_RECORD_LOST)
		return;
	if (pp_record_write(ret, PP_SIDEBAND_SAMPLE_TYPE, again, sizeof(again)) != size ||
	    memcmp(again, bytes, size))
		abort();
}

static void check_records(const uint8_t *file, const struct pp_sideband_header *h)
{
	uint64_t at = h->header_size, n = 0, last = 0;
	struct pp_record r;

	for (; at < h->size; at += r.size, n++) {
		size_t left = h->size - at;

		check_record(file + at, pp_record_extent(file + at, left, PP_SIDEBAND_SAMPLE_TYPE),
			     &r);
		if (r.time < last)
			abort();
		last = r.time;
	}
	if (n != h->records)
		abort();
}

static void check_emitted(const struct table *t, uint64_t since, uint64_t until)
{
	_cleanup_close_ int fd = -EBADF;
	struct pp_sideband_header h;
	_cleanup_free_ uint8_t *file = NULL;
	uint64_t size;

	if (table_emit(t, since, until, idle, NULL, &fd, &size) < 0)
		abort();
	file = malloc(size);
	if (!file || pread(fd, file, size, 0) != (ssize_t)size)
		abort();
	memcpy(&h, file, sizeof(h));
	if (h.magic != PP_SIDEBAND_MAGIC || h.size != size)
		abort();
	check_records(file, &h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned mode = next(&in);
	struct table t;

	if (table_init(&t, mode & MODE_SMALL ? 42000 + 64 * next(&in) : 1U << 20) < 0)
		abort();
	t.began = t.since_rings = 1000;
	if (mode & MODE_TOLD)
		tell(&t, &in, mode);
	(mode & MODE_RAW ? apply_raw : apply_made)(&t, &in);
	tell(&t, &in, mode);
	tell_programs(&t, &in, mode);
	check_emitted(&t, mode & MODE_WINDOW ? 1004 : 0, mode & MODE_WINDOW ? 1100 : 0);
	table_clear(&t);
	return 0;
}
