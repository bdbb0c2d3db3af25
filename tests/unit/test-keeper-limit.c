// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What anybody can make the keeper's table do: it takes no more memory than the limit, and nobody's
 * record costs more than a few of all others' do.
 */
#include "tests/unit/keeper-table.h"
#include "tests/unit/needs.h"

static struct process *process(uint32_t pid)
{
	struct thread *thread = thread_find(&table, pid);

	ck_assert_ptr_nonnull(thread);
	return thread->process;
}

/* ── lists of mappings ──────────────────────────────────────────────────────────────────── */

/* A parent whose list is about to be compacted has children that map a little: what is compacted is
 * copied, so that the memory tells how often that was. */
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
	ck_assert_uint_eq(table.forgotten, 0); /* as a compacting would have counted */
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper-limit");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, children_of_many_maps);
	suite_add_tcase(s, t);
	return run_suite(s);
}
