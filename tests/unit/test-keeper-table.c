// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The keeper's table: applies handmade records of the kernel; the output must give the right names
 * and mappings at every time.
 */
#include "tests/unit/keeper-table.h"

#include "daemon/keeper/emit.h"
#include "daemon/keeper/pump.h"
#include "daemon/keeper/tasks.h"
#include "daemon/tasks.h"
#include "proto/clock.h"
#include "tests/unit/sideband-replay.h"

#include <fcntl.h>
#include "tests/unit/needs.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static struct replay replay;

/* ── what comes out ─────────────────────────────────────────────────────────────────────── */

static void idle(void *context)
{
	(void)context;
}

/* For a window, applied up to a time (0: all of it). */
static struct pp_sideband_header look(uint64_t since, uint64_t until, uint64_t at)
{
	_cleanup_close_ int fd = -EBADF;
	struct pp_sideband_header h;
	uint64_t size;

	ck_assert_int_eq(table_emit(&table, since, until, idle, NULL, &fd, &size), 0);
	ck_assert_int_eq(pread(fd, &h, sizeof(h), 0), sizeof(h));
	ck_assert_uint_eq(h.size, size);
	ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
	replay_file(&replay, fd, at ? at : UINT64_MAX);
	return h;
}

/* Applies nothing: there may be more than a replay has room for. Returns the number of mappings in
 * the file, of one process or (0) of all. */
static uint64_t count_maps(uint64_t since, uint32_t pid, struct pp_sideband_header *ret)
{
	_cleanup_close_ int fd = -EBADF;
	const struct perf_event_header *h;
	uint64_t size, n = 0;
	struct sideband s;

	ck_assert_int_eq(table_emit(&table, since, 0, idle, NULL, &fd, &size), 0);
	s = sideband_map(fd);
	*ret = *s.header;
	while ((h = sideband_next(&s)))
		n += h->type == PERF_RECORD_MMAP2 && (!pid || record_u32(h, 8) == pid);
	sideband_unmap(&s);
	return n;
}

static void check_name(uint32_t tid, const char *name)
{
	ck_assert_str_eq(replay_comm(&replay, tid), name);
}

static void check_path(uint32_t pid, uint64_t address, const char *path)
{
	ck_assert_str_eq(replay_path(&replay, pid, address), path);
}

/* ── processes ──────────────────────────────────────────────────────────────────────────── */

START_TEST(a_life)
{
	uint64_t forked, execed;

	begin_shell();
	forks(100, 200);
	forked = now;
	maps(200, 0x9000, "/lib/plugin.so");
	execs(200, "true");
	execed = now;
	maps(200, 0x2000, "/bin/true");
	exits(200, 200);
	look(0, 0, forked);
	check_name(200, "sh");
	check_path(200, 0x1000, "/bin/sh");
	look(0, 0, execed - 1);
	check_path(200, 0x9000, "/lib/plugin.so");
	check_path(100, 0x9000, "");
	look(0, 0, 0);
	check_name(200, "true");
	check_path(200, 0x2fff, "/bin/true");
	check_path(200, 0x1000, "");
	ck_assert(replay_find(&replay, 200)->ended);
	ck_assert(!replay_find(&replay, 100)->ended);
	/* The parent's FORK gives the child its mappings; no record repeats them. */
	ck_assert_uint_eq(replay.of_type[PERF_RECORD_MMAP2], 4);
	ck_assert_uint_eq(replay.of_type[PERF_RECORD_FORK], 2);
}
END_TEST

/* The parent is not in the file: the child's own records have the mappings. */
START_TEST(parent_has_ended)
{
	struct pp_sideband_header h;
	uint64_t since;

	begin_shell();
	forks(100, 200);
	maps(200, 0x9000, "/lib/plugin.so");
	maps(100, 0x9000, "/lib/other.so");
	exits(100, 100);
	since = now + 1;
	h = look(since, 0, 0);
	ck_assert_uint_eq(h.processes, 3); /* with the shell's parent, which is unknown */
	ck_assert_uint_eq(h.ended, 1);
	check_name(100, "");
	check_name(200, "sh");
	check_path(200, 0x1000, "/bin/sh");
	check_path(200, 0x5000, "/lib/libc.so");
	check_path(200, 0x9000, "/lib/plugin.so");
}
END_TEST

START_TEST(windows)
{
	uint64_t a_ended, b_began;

	begin_shell();
	forks(100, 200);
	execs(200, "a");
	exits(200, 200);
	a_ended = now;
	forks(100, 300);
	b_began = now;
	execs(300, "b");
	look(a_ended, a_ended, 0);
	check_name(200, "a");
	check_name(300, "");
	look(a_ended + 1, b_began - 1, 0);
	check_name(200, "");
	check_name(300, "");
	look(a_ended + 1, b_began, 0);
	check_name(200, "");
	check_name(300, "b");
	look(0, 0, 0);
	check_name(200, "a");
	check_name(300, "b");
}
END_TEST

/* A reused number, with and without the EXIT of its previous owner. */
START_TEST(numbers_again)
{
	uint64_t first, second;

	begin_shell();
	for (int lost = 0; lost < 2; lost++) {
		forks(100, 200);
		execs(200, "one");
		first = now;
		if (!lost)
			exits(200, 200);
		forks(100, 200);
		execs(200, "two");
		second = now;
		exits(200, 200);
		look(0, 0, first);
		check_name(200, "one");
		look(0, 0, second);
		check_name(200, "two");
		ck_assert_uint_eq(table.n_processes - table.n_ended, 2); /* 1 and the shell */
	}
}
END_TEST

START_TEST(threads)
{
	uint64_t before;

	begin_shell();
	starts_thread(100, 101);
	starts_thread(100, 102);
	comm(101, 101, "wrong", 0); /* of another, unknown process */
	comm(100, 102, "worker", 0);
	before = now;
	exits(100, 102);
	look(0, 0, before);
	check_name(102, "worker");
	ck_assert(!replay_find(&replay, 102)->ended);
	look(0, 0, 0);
	ck_assert(replay_find(&replay, 102)->ended);
	look(now + 1, 0, 0);
	ck_assert_ptr_null(replay_find(&replay, 102));
	/* The main thread exits before the others: the process lives on. */
	starts_thread(100, 103);
	exits(100, 100);
	ck_assert_uint_eq(table.n_ended, 0);
	maps(100, 0x7000, "/lib/late.so");
	look(0, 0, 0);
	check_path(100, 0x7000, "/lib/late.so");
	exits(100, 103);
	exits(100, 101);
	ck_assert_uint_eq(table.n_ended, 1);
}
END_TEST

/* Any thread may exec: all others end, and it takes the process's number. */
START_TEST(thread_execs)
{
	begin_shell();
	starts_thread(100, 101);
	starts_thread(100, 102);
	exits(100, 100);
	exits(100, 102);
	execs(100, "new");
	maps(100, 0x3000, "/bin/new");
	look(0, 0, 0);
	check_name(100, "new");
	check_path(100, 0x3000, "/bin/new");
	ck_assert(replay_find(&replay, 101)->ended);
	ck_assert(replay_find(&replay, 102)->ended);
	exits(100, 100);
	ck_assert_uint_eq(table.n_ended, 1);
}
END_TEST

/* More threads than the keeper should keep: it limits them, and the process keeps its own. */
START_TEST(many_threads)
{
	uint64_t used = 0;

	begin_shell();
	for (uint32_t i = 0; i < 100000; i++) {
		starts_thread(100, 1000 + i % 30000);
		exits(100, 1000 + i % 30000);
		if (i == 50000)
			used = table.memory.used;
	}
	ck_assert_uint_eq(table.memory.used, used);
	ck_assert_uint_eq(table.forgotten, 0); /* they had the process's name */
	ck_assert_uint_lt(used, 1 << 20);
	exits(100, 100);
	ck_assert_uint_eq(table.n_ended, 1);
}
END_TEST

/* ── what was there before ──────────────────────────────────────────────────────────────── */

static struct pp_task told_task(uint32_t pid, uint32_t tid, uint64_t started, const char *name)
{
	struct pp_task t = { PP_TASK, sizeof(t), pid, tid, 1, 0, started, "" };

	snprintf(t.comm, sizeof(t.comm), "%s", name);
	return t;
}

/* The path follows the entry. */
struct told_map {
	uint8_t bytes[sizeof(struct pp_task_map) + 32];
};

#define TOLD_PATH_SIZE (sizeof(struct told_map) - sizeof(struct pp_task_map))

/* Adds to one of its words. */
static void add_to(struct told_map *m, size_t member, int64_t more)
{
	uint32_t word;

	memcpy(&word, m->bytes + member, sizeof(word));
	word += (uint32_t)more;
	memcpy(m->bytes + member, &word, sizeof(word));
}

static struct told_map told_map(uint32_t pid, uint64_t start, const char *path)
{
	struct pp_task_map map = { .type = PP_TASK_MAP,
				   .size = sizeof(struct told_map),
				   .pid = pid };
	struct told_map m = {};

	map.start = start;
	map.end = start + 0x1000;
	map.path_size = (uint32_t)strlen(path) + 1;
	memcpy(m.bytes, &map, sizeof(map));
	memcpy(m.bytes + sizeof(map), path, strlen(path) + 1);
	return m;
}

static int tell(const struct pp_task *tasks, size_t n, const struct told_map *map, size_t n_maps)
{
	struct tasks of_tasks = { .bytes = (uint8_t *)tasks, .size = n * sizeof(*tasks) };
	struct tasks of_maps = { .bytes = (uint8_t *)map, .size = n_maps * sizeof(*map) };

	return table_tell(&table, now, &of_tasks, &of_maps);
}

START_TEST(told)
{
	const struct pp_task tasks[] = {
		told_task(100, 100, 50, "sh"),	  told_task(100, 101, 60, "helper"),
		told_task(200, 200, 70, "child"), told_task(300, 300, 80, "old"),
		told_task(400, 400, 90, "gone"),  told_task(500, 500, 1035, "late"),
	};
	const struct told_map map[] = {
		told_map(100, 0x1000, "/bin/sh"),   told_map(200, 0x1000, "/bin/sh"),
		told_map(300, 0x1000, "/bin/old"),  told_map(400, 0x1000, "/bin/gone"),
		told_map(500, 0x1000, "/bin/late"),
	};

	/* Between the beginning and the iterator's output: */
	forks(100, 200);	     /* 100 is not known yet */
	maps(100, 0x8000, "/lib/x"); /* may be in the iterator's output as well */
	execs(300, "new");
	maps(300, 0x2000, "/bin/new");
	exits(400, 400);
	forks(100, 500);
	exits(500, 500);
	ck_assert_int_eq(tell(tasks, ARRAY_SIZE(tasks), map, ARRAY_SIZE(map)), 0);
	ck_assert_uint_eq(table.n_ended, 2);
	look(0, 0, 1001);
	check_name(100, "sh");
	check_name(101, "helper");
	check_path(100, 0x1000, "/bin/sh");
	check_path(100, 0x8000, "");
	look(0, 0, 0);
	check_path(100, 0x8000, "/lib/x");
	check_name(200, "sh"); /* from its FORK; its COMM would have come */
	check_path(200, 0x1000, "/bin/sh");
	check_name(300, "new");
	check_path(300, 0x1000, "");
	check_path(300, 0x2000, "/bin/new");
	check_name(400, "gone");
	ck_assert(replay_find(&replay, 400)->ended);
	ck_assert(replay_find(&replay, 500)->ended);
	check_path(500, 0x1000, "/bin/sh"); /* not the reported one: another process's */
	/* A repetition changes nothing. */
	ck_assert_int_eq(tell(tasks, ARRAY_SIZE(tasks), map, ARRAY_SIZE(map)), 0);
	ck_assert_uint_eq(table.n_ended, 2);
	ck_assert_uint_eq(table.n_processes, 5);
}
END_TEST

/* A child forked before the iterator reported its parent has the parent's mappings, even when read
 * alone. */
START_TEST(told_and_shared)
{
	const struct pp_task tasks[] = { told_task(100, 100, 50, "sh") };
	const struct told_map map[] = { told_map(100, 0x1000, "/bin/sh") };

	forks(100, 200);
	ck_assert_int_eq(tell(tasks, 1, map, 1), 0);
	exits(100, 100);
	look(now + 1, 0, 0);
	check_path(200, 0x1000, "/bin/sh");
	ck_assert_uint_eq(replay.of_type[PERF_RECORD_MMAP2], 1);
}
END_TEST

START_TEST(told_after_loss)
{
	const struct pp_task first[] = { told_task(1, 1, 1, "init"),
					 told_task(100, 100, 50, "sh") };
	const struct pp_task second[] = { told_task(1, 1, 1, "init"),
					  told_task(200, 200, 1005, "lost"),
					  told_task(300, 300, 1006, "renamed") };
	const struct told_map map[] = { told_map(200, 0x1000, "/bin/lost"),
					told_map(300, 0x1000, "/bin/lost") };

	ck_assert_int_eq(tell(first, ARRAY_SIZE(first), NULL, 0), 0);
	forks(100, 300);
	loses(5);
	now += 100;
	ck_assert_uint_eq(table.lost, 5);
	ck_assert_int_eq(tell(second, ARRAY_SIZE(second), map, ARRAY_SIZE(map)), 0);
	ck_assert_uint_eq(table.n_ended, 1);
	ck_assert_uint_eq(table.n_processes, 4);
	look(0, 0, 0);
	ck_assert(replay_find(&replay, 100)->ended);
	check_name(200, "lost");
	check_name(300, "renamed");
	check_path(200, 0x1000, "/bin/lost");
	check_path(300, 0x1000, "/bin/lost");
	ck_assert_uint_eq(replay.of_type[PERF_RECORD_LOST], 1);
}
END_TEST

/* Linear: 400,000 mappings take less than a second, and a search for each would take minutes. After
 * a loss the engine reports them all again. */
START_TEST(told_of_many_maps)
{
	const struct pp_task tasks[] = { told_task(100, 100, 50, "sh") };
	const size_t n = 400000;
	_cleanup_free_ struct told_map *map = calloc(n, sizeof(*map));
	uint64_t used;

	for (size_t i = 0; i < n; i++)
		map[i] = told_map(100, 0x1000 + i * 0x2000, "/bin/sh");
	ck_assert_int_eq(tell(tasks, 1, map, n), 0);
	ck_assert_uint_eq(thread_find(&table, 100)->process->n_maps, n);
	used = table.memory.used;
	loses(5);
	now += 100;
	ck_assert_int_eq(tell(tasks, 1, map, n), 0);
	ck_assert_uint_eq(thread_find(&table, 100)->process->n_maps, n);
	ck_assert_uint_lt(table.memory.used, used + (1 << 16));
}
END_TEST

/* Reports n processes from pid on, which are more than one read can take. */
static int write_told(int fd, uint32_t pid, uint32_t n, uint32_t n_maps)
{
	_cleanup_free_ struct told_map *map = calloc(n_maps, sizeof(*map));

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < n_maps; k++)
			map[k] = told_map(pid + i, 0x1000 + 0x2000 * (uint64_t)k, "/bin/sh");
		if (write(fd, map, n_maps * sizeof(*map)) != (ssize_t)(n_maps * sizeof(*map)))
			return -errno;
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static uint32_t maps_of(uint32_t pid)
{
	return thread_find(&table, pid)->process->n_maps;
}

#define MODEST 1000
#define GREEDY 20

START_TEST(greedy_are_cut_short)
{
	_cleanup_close_ int fd = memfd_create("told", MFD_CLOEXEC);
	_cleanup_(tasks_free) struct tasks of_maps = { 0 };
	struct pp_task tasks[MODEST + GREEDY];
	struct tasks of_tasks = { .bytes = (uint8_t *)tasks, .size = sizeof(tasks) };

	for (uint32_t i = 0; i < ARRAY_SIZE(tasks); i++)
		tasks[i] = told_task(1000 + i, 1000 + i, 50, "sh");
	/* The last ones find room as well. */
	ck_assert_int_eq(write_told(fd, 1000, MODEST / 2, 5), 0);
	lseek(fd, 0, SEEK_END);
	ck_assert_int_eq(write_told(fd, 1000 + MODEST, GREEDY, 5000), 0);
	lseek(fd, 0, SEEK_END);
	ck_assert_int_eq(write_told(fd, 1000 + MODEST / 2, MODEST / 2, 5), 0);
	ck_assert_int_eq(tasks_read(fd, 2 << 20, 0, idle, NULL, &of_maps), 0);
	ck_assert_uint_lt(of_maps.size, 2 << 20);
	ck_assert_int_eq(table_tell(&table, now, &of_tasks, &of_maps), 0);
	ck_assert_uint_eq(table.forgotten, GREEDY);
	ck_assert_uint_eq(table.complete, 0);
	for (uint32_t i = 0; i < MODEST; i++)
		ck_assert_uint_eq(maps_of(1000 + i), 5);
	for (uint32_t i = 0; i < GREEDY; i++) {
		ck_assert_uint_gt(maps_of(1000 + MODEST + i), 100);
		ck_assert_uint_lt(maps_of(1000 + MODEST + i), 5000);
	}
}
END_TEST

START_TEST(no_end_of_processes)
{
	_cleanup_close_ int fd = memfd_create("told", MFD_CLOEXEC);
	_cleanup_(tasks_free) struct tasks of_maps = { 0 };

	ck_assert_int_eq(write_told(fd, 1000, 30000, 1), 0);
	ck_assert_int_eq(tasks_read(fd, 2 << 20, 0, idle, NULL, &of_maps), -EFBIG);
	lseek(fd, 1 << 20, SEEK_SET); /* no entry begins here */
	ck_assert_int_eq(tasks_read(fd, 1 << 20, 0, idle, NULL, &of_maps), -EBADMSG);
}
END_TEST

/* As of an iterator that hangs in the middle of an entry. */
START_TEST(list_that_hangs)
{
	struct pp_task tasks[2] = { told_task(100, 100, 50, "sh"), told_task(200, 200, 50, "sh") };
	_cleanup_(tasks_free) struct tasks of_tasks = { 0 };
	struct pump *pump;
	int ends[2], from;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(write(ends[1], tasks, sizeof(tasks) - 8), sizeof(tasks) - 8);
	ck_assert_int_eq(pump_start(ends[0], &pump, &from), 0);
	ck_assert_int_eq(tasks_read(from, 2 << 20, pp_clock_ns(CLOCK_MONOTONIC) + 200000000, idle,
				    NULL, &of_tasks),
			 0);
	pump_stop(pump);
	ck_assert(of_tasks.unfinished);
	ck_assert_uint_eq(of_tasks.size, sizeof(*tasks));
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST(list_to_its_end)
{
	_cleanup_close_ int fd = memfd_create("told", MFD_CLOEXEC);
	_cleanup_(tasks_free) struct tasks of_maps = { 0 };
	struct pump *pump;
	int from;

	ck_assert_int_eq(write_told(fd, 1000, 100, 50), 0);
	ck_assert_int_eq(pump_start(fd, &pump, &from), 0);
	ck_assert_int_eq(tasks_read(from, 2 << 20, UINT64_MAX, idle, NULL, &of_maps), 0);
	ck_assert_int_eq(pump_stop(pump), 0);
	ck_assert(!of_maps.unfinished);
	ck_assert_uint_eq(of_maps.size, 100 * 50 * sizeof(struct told_map));
}
END_TEST

START_TEST(list_that_fails)
{
	_cleanup_close_ int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(tasks_free) struct tasks of_maps = { 0 };
	struct pump *pump;
	int from;

	ck_assert_int_eq(pump_start(directory, &pump, &from), 0);
	ck_assert_int_eq(tasks_read(from, 2 << 20, UINT64_MAX, idle, NULL, &of_maps), 0);
	ck_assert_int_eq(pump_stop(pump), -EISDIR);
}
END_TEST

/* What is not in an unfinished list may be there all the same. */
START_TEST(unfinished_lists)
{
	struct pp_task tasks[] = { told_task(100, 100, 50, "sh"), told_task(200, 200, 50, "sh"),
				   told_task(300, 300, 50, "sh") };
	struct told_map map[] = { told_map(100, 0x1000, "/bin/sh"),
				  told_map(200, 0x1000, "/bin/sh") };
	struct tasks of_tasks = { .bytes = (uint8_t *)tasks, .size = sizeof(tasks) };
	struct tasks of_maps = { .bytes = (uint8_t *)map, .size = sizeof(map), .unfinished = true };

	ck_assert_int_eq(table_tell(&table, now, &of_tasks, &of_maps), 0);
	ck_assert_uint_eq(table.forgotten, 2); /* of 200 there may be more */
	ck_assert_uint_eq(table.lost, 0);
	ck_assert_uint_eq(maps_of(200), 1);
	loses(5);
	now += 100;
	of_tasks = (struct tasks){ .bytes = (uint8_t *)tasks,
				   .size = sizeof(*tasks),
				   .unfinished = true };
	of_maps.unfinished = false;
	ck_assert_int_eq(table_tell(&table, now, &of_tasks, &of_maps), 0);
	ck_assert_uint_eq(table.lost, 6);
	ck_assert_uint_eq(table.n_ended, 0);
}
END_TEST

START_TEST(told_wrong)
{
	struct pp_task t = told_task(100, 100, 50, "sh");
	struct told_map m = told_map(100, 0x1000, "/bin/sh");

	t.size = 40;
	ck_assert_int_eq(tell(&t, 1, NULL, 0), -EBADMSG);
	t.size = sizeof(t) + 8;
	ck_assert_int_eq(tell(&t, 1, NULL, 0), -EBADMSG);
	t = told_task(100, 100, 50, "sh");
	memset(t.comm, 'x', sizeof(t.comm));
	ck_assert_int_eq(tell(&t, 1, NULL, 0), -EBADMSG);
	add_to(&m, offsetof(struct pp_task_map, path_size), (int64_t)TOLD_PATH_SIZE);
	ck_assert_int_eq(tell(NULL, 0, &m, 1), -EBADMSG);
	m = told_map(100, 0x1000, "/bin/sh");
	add_to(&m, offsetof(struct pp_task_map, path_size), -1);
	ck_assert_int_eq(tell(NULL, 0, &m, 1), -EBADMSG);
	m = told_map(100, 0x1000, "/bin/sh");
	add_to(&m, offsetof(struct pp_task_map, end), -0x1000); /* it begins there */
	ck_assert_int_eq(tell(NULL, 0, &m, 1), -EBADMSG);
	ck_assert(!table.told);
}
END_TEST

/* ── the limit ──────────────────────────────────────────────────────────────────────────── */

START_TEST(oldest_ended_go)
{
	const uint32_t n = 20000;
	struct pp_sideband_header h;
	uint64_t oldest = 0;

	teardown();
	setup_with(1 << 20);
	begin_shell();
	for (uint32_t i = 0; i < n; i++) {
		forks(100, 1000 + i);
		execs(1000 + i, "short");
		maps(1000 + i, 0x1000, "/bin/short");
		exits(1000 + i, 1000 + i);
		ck_assert_uint_le(table.memory.used, table.memory.max);
	}
	ck_assert_uint_gt(table.n_ended, 500);
	ck_assert_uint_eq(table.forgotten + table.n_ended, n);
	for (uint32_t i = 0; i < n && !oldest; i++)
		if (thread_find(&table, 1000 + i))
			oldest = i;
	ck_assert_uint_eq(oldest, n - table.n_ended);
	h = look(now - 1, 0, 0);
	ck_assert_uint_eq(h.forgotten, table.forgotten);
	/* The newest forgotten process ended at that time: four records each. */
	ck_assert_uint_eq(h.complete, 1000 + 10 * (4 + 4 * oldest));
	check_name(100, "sh");
	check_path(100, 0x5000, "/lib/libc.so");
	check_name(1000 + n - 1, "short");
}
END_TEST

/* All are alive: they lose their mappings before their names. */
START_TEST(names_stay)
{
	const uint32_t n = 2500;
	char name[16];

	teardown();
	setup_with(1 << 20);
	begin_shell();
	for (uint32_t i = 0; i < n; i++) {
		forks(100, 1000 + i);
		snprintf(name, sizeof(name), "alive%u", i);
		execs(1000 + i, name);
		for (uint64_t k = 1; k < 8; k++)
			maps(1000 + i, 0x1000 * k, "/bin/alive");
		ck_assert_uint_le(table.memory.used, table.memory.max);
	}
	ck_assert_uint_eq(table.n_processes, n + 2);
	ck_assert_uint_gt(table.forgotten, 0);
	ck_assert_uint_gt(table.complete, 1000);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "alive%u", i);
		ck_assert_str_eq(thread_comm(&thread_find(&table, 1000 + i)->process->main), name);
	}
}
END_TEST

/* A child has its parent's mappings, even if the parent had to lose them. */
START_TEST(lessened_parent)
{
	begin_shell();
	forks(100, 200);
	process_lessen(&table, thread_find(&table, 100)->process, now);
	process_drop_maps(&table, thread_find(&table, 100)->process);
	forks(100, 300);
	ck_assert_uint_eq(table.forgotten, 1);
	look(0, 0, 0);
	check_path(100, 0x1000, "");
	check_path(200, 0x1000, "/bin/sh");
	check_path(300, 0x1000, "");
	check_name(300, "sh");
}
END_TEST

/* Repeated mappings: covered ones go, visible ones stay. */
START_TEST(covered_maps_go)
{
	char path[32];

	begin_shell();
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(path, sizeof(path), "/tmp/jit%u", i % 100);
		maps(100, 0x100000 + 0x1000 * (i % 8), path);
	}
	ck_assert_uint_lt(table.memory.used, 1 << 20);
	ck_assert_uint_eq(table.forgotten, 1);
	look(0, 0, 0);
	check_path(100, 0x1000, "/bin/sh");
	check_path(100, 0x100000, "/tmp/jit92");
	check_path(100, 0x107000, "/tmp/jit99");
}
END_TEST

/* A process has so many mappings that some had to go, and its children began with all of them. */
START_TEST(shared_maps_are_told_once)
{
	struct pp_sideband_header h;
	uint64_t forked;
	char name[16];

	begin_shell();
	for (uint64_t i = 0; i < 16000; i++)
		maps(100, 0x100000 + 0x2000 * i, "/tmp/many");
	forked = now;
	for (uint32_t pid = 200; pid < 300; pid++) {
		forks(100, pid);
		exits(pid, pid);
	}
	for (uint64_t i = 0; i < 8200; i++)
		maps(100, 0x8000000 + 0x2000 * i, "/tmp/more");
	ck_assert_uint_eq(table.forgotten, 1);
	ck_assert_uint_lt(thread_find(&table, 100)->process->n_maps, 24000);
	/* The file repeats the newest of the shared ones. */
	ck_assert_uint_eq(count_maps(0, 0, &h), 2 + 16000 + 8200 + 1);
	ck_assert_uint_eq(h.cut, 0);
	ck_assert_uint_lt(h.size, 4 << 20);
	/* Nor does its name matter. */
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		comm(100, 100, name, 0);
	}
	ck_assert_uint_eq(count_maps(forked, 250, &h), 0);
}
END_TEST

/* Each child has the mappings that its parent had then, whatever happens to the parent later, at
 * little cost. */
START_TEST(former_maps)
{
	const uint32_t rounds = 4, n = 600;
	struct pp_sideband_header h;
	char path[32];

	begin_shell();
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t i = 0; i < n; i++) {
			if (i == n / 2)
				forks(100, 200 + round);
			snprintf(path, sizeof(path), "/tmp/%u", round);
			maps(100, 0x100000 + 0x1000 * i, path);
		}
		if (round == 1) {
			execs(100, "other");
			maps(100, 0x3000, "/bin/other");
		}
	}
	ck_assert_uint_eq(table.forgotten, 1);
	ck_assert_uint_le(count_maps(0, 0, &h), 3 + rounds * (n + 1));
	ck_assert_uint_ge(count_maps(0, 100, &h), 3 + rounds * n / 2);
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t pid = 200 + i;

		look(0, 0, 0);
		check_path(pid, 0x1000, i < 2 ? "/bin/sh" : "");
		check_path(pid, 0x3000, i < 2 ? "" : "/bin/other");
		snprintf(path, sizeof(path), "/tmp/%u", i);
		check_path(pid, 0x100000, path);
		check_path(pid, 0x100000 + 0x1000 * (n / 2 - 1), path);
		/* The mapping from the round before, or none. */
		snprintf(path, sizeof(path), "/tmp/%u", i - 1);
		check_path(pid, 0x100000 + 0x1000 * (n / 2), i % 2 ? path : "");
	}
	check_path(100, 0x100000 + 0x1000 * (n / 2), "/tmp/3");
	/* The children have ended and are forgotten: so are the mappings that only they had. */
	for (uint32_t i = 0; i < rounds; i++)
		process_forget(&table, thread_find(&table, 200 + i)->process);
	for (uint32_t i = 0; i < 4 * n; i++)
		maps(100, 0x100000 + 0x1000 * (i % n), i % 2 ? "/tmp/a" : "/tmp/b");
	ck_assert_ptr_null(thread_find(&table, 100)->process->formers);
}
END_TEST

/* Children of an unreported parent must repeat all its mappings: that has a limit, which hits the
 * largest first, and the file says so. */
START_TEST(telling_is_bounded)
{
	const uint32_t n = 400;
	struct pp_sideband_header h;
	uint64_t since;

	teardown();
	setup_with(4 << 20);
	begin_shell();
	forks(1, 50);
	for (uint64_t i = 0; i < 4000; i++)
		maps(50, 0x100000 + 0x2000 * i, "/tmp/many");
	for (uint32_t i = 0; i < n; i++)
		forks(50, 1000 + i);
	exits(50, 50);
	since = now + 1;
	count_maps(0, 0, &h);
	ck_assert_uint_eq(h.cut, 0);
	ck_assert_uint_lt(h.size, 1 << 20);
	ck_assert_uint_gt(count_maps(since, 0, &h), 10000);
	ck_assert_uint_eq(h.cut, n);
	ck_assert_uint_lt(h.size, 9 << 20);
	ck_assert_uint_gt(h.size, 7 << 20); /* close to the limit */
	ck_assert_uint_gt(count_maps(since, 1000, &h), 100);
	replay.only = 100;
	look(since, 0, 0);
	replay.only = 0;
	check_name(100, "sh");
	check_path(100, 0x1000, "/bin/sh");
	check_path(100, 0x5000, "/lib/libc.so");
	ck_assert_uint_eq(table.forgotten, 0);
}
END_TEST

START_TEST(many_names)
{
	uint64_t used = 0;
	char name[16];

	begin_shell();
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		comm(100, 100, name, 0);
		if (i == 10000)
			used = table.memory.used;
	}
	ck_assert_uint_lt(table.memory.used, used + (1 << 16));
	ck_assert_uint_eq(table.forgotten, 1);
	look(0, 0, 0);
	check_name(100, "name19999");
	check_path(100, 0x1000, "/bin/sh");
}
END_TEST

/* ── the kernel's own, and what is wrong ────────────────────────────────────────────────── */

/* 0, a kernel address, anything. */
START_TEST(impossible_times)
{
	const uint64_t times[] = { 0, 1, 999, 0xffffffffc0001000, UINT64_MAX, 5000000 };
	uint64_t before;

	begin_shell();
	table.first = 1000;
	table.last = 1000000;
	before = now;
	for (uint32_t i = 0; i < ARRAY_SIZE(times); i++) {
		now = times[i] - 10;
		loses(1);
		now = times[i] - 10;
		forks(100, 200 + i);
		now = times[i] - 10;
		exits(200 + i, 200 + i);
		ck_assert_uint_eq(table.now, before);
	}
	now = before;
	ck_assert_uint_eq(table.untimed, 3 * ARRAY_SIZE(times));
	ck_assert_uint_eq(table.lost, ARRAY_SIZE(times));
	ck_assert_uint_eq(look(0, 0, 0).untimed, table.untimed); /* in order of time, too */
	ck_assert_uint_eq(replay.of_type[PERF_RECORD_LOST], ARRAY_SIZE(times));
	ck_assert_uint_eq(replay.of_type[PERF_RECORD_EXIT], ARRAY_SIZE(times));
	check_name(205, "sh");
	look(before + 1, 0, 0);
	check_name(205, "");
	exits(100, 100);
	ck_assert_uint_eq(table.now, now);
}
END_TEST

static unsigned places_behind(struct process *p)
{
	unsigned n = 0;

	while ((p = TAILQ_NEXT(p, link)))
		n++;
	return n;
}

/* Possible but much too late times: the table does not search everything for their places. */
START_TEST(late_records)
{
	const uint32_t n = 5000;
	struct process *late;
	uint64_t later;

	begin_shell();
	for (uint32_t i = 0; i < n; i++) {
		forks(100, 1000 + i);
		exits(1000 + i, 1000 + i);
		loses(1);
	}
	forks(100, 200);
	later = now;
	now = 2000;
	exits(200, 200);
	late = thread_find(&table, 200)->process;
	ck_assert_uint_eq(table.untimed, 1);
	ck_assert_uint_eq(places_behind(late), PLACES_BACK_MAX);
	ck_assert_uint_eq(TAILQ_PREV(late, processes, link)->ended, late->ended);
	loses(1);
	ck_assert_uint_eq(table.untimed, 2);
	/* A small delay does not count. */
	now = later;
	forks(100, 201);
	now = later - 500;
	exits(201, 201);
	ck_assert_uint_eq(table.untimed, 2);
	now = later;
	look(now, 0, 0);
}
END_TEST

START_TEST(damaged)
{
	const uint32_t zeroes[64] = { 100, 100 };
	uint8_t text[24];

	begin_shell();
	record(PERF_RECORD_SAMPLE, 0, zeroes, 16);
	ck_assert_uint_eq(table.lost, 1);
	record(PERF_RECORD_FORK, 0, zeroes, 16); /* cut */
	ck_assert_uint_eq(table.lost, 2);
	memset(text, 1, sizeof(text));
	record(PERF_RECORD_COMM, 0, text, sizeof(text)); /* the text has no end */
	ck_assert_uint_eq(table.lost, 3);
	record(PERF_RECORD_MMAP2, 0, zeroes, 64); /* no text at all */
	ck_assert_uint_eq(table.lost, 4);
	record(PERF_RECORD_NAMESPACES, 0, (const uint64_t[]){ 0, 3, 1, 1 }, 32);
	ck_assert_uint_eq(table.lost, 5);
	task(PERF_RECORD_FORK, 100, 100, 100, 100); /* a process is its own parent */
	ck_assert_uint_eq(table.lost, 6);
	loses(10);
	ck_assert_uint_eq(table.lost, 16);
	ck_assert_uint_eq(look(0, 0, 0).lost, 16);
	check_name(100, "sh");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper-table");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_life);
	tcase_add_test(t, parent_has_ended);
	tcase_add_test(t, windows);
	tcase_add_test(t, numbers_again);
	tcase_add_test(t, threads);
	tcase_add_test(t, thread_execs);
	tcase_add_test(t, many_threads);
	tcase_add_test(t, told);
	tcase_add_test(t, told_and_shared);
	tcase_add_test(t, told_after_loss);
	tcase_add_test(t, told_of_many_maps);
	tcase_add_test(t, greedy_are_cut_short);
	tcase_add_test(t, no_end_of_processes);
	tcase_add_test(t, list_that_hangs);
	tcase_add_test(t, list_to_its_end);
	tcase_add_test(t, list_that_fails);
	tcase_add_test(t, unfinished_lists);
	tcase_add_test(t, told_wrong);
	tcase_add_test(t, oldest_ended_go);
	tcase_add_test(t, names_stay);
	tcase_add_test(t, lessened_parent);
	tcase_add_test(t, covered_maps_go);
	tcase_add_test(t, shared_maps_are_told_once);
	tcase_add_test(t, former_maps);
	tcase_add_test(t, telling_is_bounded);
	tcase_add_test(t, many_names);
	tcase_add_test(t, impossible_times);
	tcase_add_test(t, late_records);
	tcase_add_test(t, damaged);
	suite_add_tcase(s, t);
	return run_suite(s);
}
