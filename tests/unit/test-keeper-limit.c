// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Limits of the keeper's table against hostile input: it takes no more memory than the limit, and
 * no record costs more than a few others.
 */
#include "tests/unit/keeper-table.h"

#include <time.h>

#include "daemon/keeper/keep.h"
#include "daemon/keeper/tasks.h"
#include "daemon/tasks.h"
#include "tests/unit/needs.h"

static struct process *process(uint32_t pid)
{
	struct thread *thread = thread_find(&table, pid);

	ck_assert_ptr_nonnull(thread);
	return thread->process;
}

/* ── lists of mappings ──────────────────────────────────────────────────────────────────── */

/* A parent whose list is about to be compacted has children with few mappings: compacting copies,
 * so memory shows how often it happened. */
START_TEST(children_of_many_maps)
{
	uint64_t used;

	begin_shell();
	for (uint64_t i = 0; process(100)->n_maps + 1 < process(100)->compact_at || i < 20000; i++)
		maps(100, 0x100000 + 0x2000 * i, "/tmp/many");
	used = table.memory.used;
	for (uint32_t pid = 200; pid < 500; pid++) {
		forks(100, pid);
		for (uint64_t i = 0; i < 16; i++)
			maps(pid, 0x1000 * (1 + i), "/tmp/few");
	}
	ck_assert_uint_lt(table.memory.used - used, 300 * 4096);
	ck_assert_uint_eq(table.forgotten, 0); /* compacting would have counted some */
}
END_TEST

/* The process with most mappings has them in lists of earlier programs, and few now. */
START_TEST(maps_before_exec)
{
	const uint32_t n = 20, few = 400;
	uint64_t at = 0x100000;

	teardown();
	setup_with(4 << 20);
	begin_shell();
	for (uint32_t pid = 200; pid < 200 + n; pid++) {
		forks(100, pid);
		execs(pid, "modest");
		for (uint64_t i = 0; i < few; i++)
			maps(pid, 0x1000 * (1 + i), "/bin/modest");
	}
	forks(100, 150);
	while (table.memory.used < table.memory.max - (256 << 10)) {
		execs(150, "greedy");
		for (uint64_t i = 0; i < 1000; i++, at += 0x2000)
			maps(150, at, "/tmp/many");
	}
	execs(150, "greedy");
	ck_assert_uint_eq(table.forgotten, 0);
	for (uint32_t pid = 1000; table.forgotten == 0; pid++) {
		forks(100, pid);
		execs(pid, "another");
	}
	ck_assert(process(150)->lessened);
	ck_assert_uint_eq(table.forgotten, 1);
	for (uint32_t pid = 200; pid < 200 + n; pid++)
		ck_assert_uint_eq(process(pid)->n_maps, few);
}
END_TEST

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

/* Words that differ in bit 63, and the next ones in bits 63 and 34: a product and a shift by 29
 * cancel that, whatever their beginning. */
static void name_of(unsigned i, char name[static 193])
{
	memset(name, 'a', 192);
	name[192] = '\0';
	for (unsigned k = 0; k < 12; k++)
		if (i >> k & 1) {
			name[16 * k + 7] ^= (char)0x80;
			name[16 * k + 12] ^= 0x04;
			name[16 * k + 15] ^= (char)0x80;
		}
}

/* Lookup finds paths that were chosen to collide like any others. */
START_TEST(chosen_paths)
{
	const union pp_file_id id = { 0 };
	struct blob *held[4096];
	size_t longest = 0;
	char name[193];

	for (unsigned i = 0; i < ARRAY_SIZE(held); i++) {
		name_of(i, name);
		held[i] = blobs_get(&table.blobs, BLOB_FILE, &id, sizeof(id), name, sizeof(name));
	}
	ck_assert_uint_eq(table.blobs.n, ARRAY_SIZE(held));
	for (size_t i = 0; i < table.blobs.n_buckets; i++) {
		size_t n = 0;

		for (const struct blob *b = table.blobs.buckets[i]; b; b = b->next)
			n++;
		longest = MAX(longest, n);
	}
	ck_assert_uint_le(longest, 20); /* of 4096 in as many buckets: 8 or so */
	for (unsigned i = 0; i < ARRAY_SIZE(held); i++)
		blobs_put(&table.blobs, held[i]);
}
END_TEST

/* ── processes ──────────────────────────────────────────────────────────────────────────── */

/* A process forks and exits, its child does the same, and so on: the table forgets the oldest of
 * them, and no unrelated process. */
START_TEST(endless_chain)
{
	const uint32_t n = 30000, witnesses = 100;
	uint32_t pid = 5000;

	teardown();
	setup_with(1 << 20);
	begin_shell();
	for (uint32_t i = 0; i < witnesses; i++) {
		forks(100, 1000 + i);
		execs(1000 + i, "witness");
	}
	forks(1, pid);
	for (uint32_t i = 0; i < n; i++, pid++) {
		forks(pid, pid + 1);
		exits(pid, pid);
		ck_assert_uint_le(table.memory.used, table.memory.max);
	}
	ck_assert_uint_eq(table.n_ended + table.forgotten, n);
	ck_assert_uint_eq(table.n_processes - table.n_ended, witnesses + 3);
	for (uint32_t i = 0; i < witnesses; i++)
		ck_assert_str_eq(thread_comm(&process(1000 + i)->main), "witness");
}
END_TEST

/* There is no room for live processes: when there is, the engine reports them again. */
START_TEST(told_again)
{
	struct pp_task tasks[] = {
		{ PP_TASK, sizeof(tasks[0]), 100, 100, 1, 0, 50, "sh" },
		{ PP_TASK, sizeof(tasks[0]), 200, 200, 1, 0, 60, "kept" },
	};
	struct tasks of_tasks = { .bytes = (uint8_t *)tasks, .size = sizeof(tasks) },
		     of_maps = { 0 };
	struct pp_keep_status status;
	struct timespec clock;
	struct keep k;

	ck_assert_int_eq(keep_init(&k), 0);
	k.keeping = true;
	k.table.began = 1;
	k.table.since_rings = 1000;
	ck_assert_int_eq(table_tell(&k.table, 100, &of_tasks, &of_maps), 0);
	keep_status(&k, &status);
	ck_assert_uint_eq(status.tasks, 1);
	ck_assert_ptr_nonnull(thread_find(&k.table, 100));
	ck_assert_int_eq(keep_limit(&k, 1 << 20), 0);
	for (uint32_t pid = 1000; thread_find(&k.table, 100); pid++) {
		const struct pp_record fork = { .type = PERF_RECORD_FORK,
						.pid = pid,
						.tid = pid,
						.ppid = 200,
						.ptid = 200,
						.time = pid };

		table_apply(&k.table, &fork);
	}
	keep_status(&k, &status);
	ck_assert_uint_eq(status.tasks, 0);
	ck_assert_int_eq(keep_limit(&k, ROOMY), 0);
	ck_assert_int_eq(table_tell(&k.table, 1 << 20, &of_tasks, &of_maps), 0);
	ck_assert_str_eq(thread_comm(&thread_find(&k.table, 100)->process->main), "sh");
	keep_status(&k, &status);
	ck_assert_uint_eq(status.tasks, 1);
	/* Not as often as a client wants. */
	k.table.lacking = true;
	clock_gettime(CLOCK_MONOTONIC, &clock);
	k.told = (uint64_t)clock.tv_sec * 1000000000;
	keep_status(&k, &status);
	ck_assert_uint_eq(status.tasks, 1);
	keep_done(&k);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper-limit");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, children_of_many_maps);
	tcase_add_test(t, maps_before_exec);
	tcase_add_test(t, chosen_paths);
	tcase_add_test(t, endless_chain);
	tcase_add_test(t, told_again);
	suite_add_tcase(s, t);
	return run_suite(s);
}
