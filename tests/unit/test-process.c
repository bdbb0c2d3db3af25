// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names and mappings of processes, from sideband. */
#include <malloc.h>
#include <string.h>

#include "client/perfctl/trace/process-dsos.h"
#include "client/perfctl/trace/process.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define KERNEL ((uint32_t)-1)

static struct processes *p;

static void setup(void)
{
	ck_assert_int_eq(processes_new(&p), 0);
}

static void teardown(void)
{
	processes_free(p);
}

static void map(uint32_t pid, uint64_t start, uint64_t size, uint64_t offset, const char *path)
{
	const struct map *m;

	ck_assert_int_eq(processes_map(p, pid, start, size, offset, path, NULL, 0, 0, 0, &m), 0);
	ck_assert_uint_eq(m->start, start);
	ck_assert_str_eq(m->dso->path, path);
}

static void ck_mapped(uint32_t pid, uint64_t address, const char *path, uint64_t offset)
{
	const struct map *m = processes_find(p, pid, address, false);

	if (!path) {
		ck_assert_ptr_null(m);
		return;
	}
	ck_assert_ptr_nonnull(m);
	ck_assert_str_eq(m->dso->path, path);
	ck_assert_uint_eq(m->offset + (address - m->start), offset);
}

/* ── Names ──────────────────────────────────────────────────────────────────────────────── */

START_TEST(test_names)
{
	ck_assert_str_eq(processes_name(p, 0, 0), "swapper");
	ck_assert_ptr_null(processes_name(p, 7, 7));
	processes_comm(p, 7, 7, "shell", false);
	processes_fork(p, 7, 7, 8, 8);
	ck_assert_str_eq(processes_name(p, 8, 8), "shell");
	processes_comm(p, 8, 8, "ls", true);
	processes_fork(p, 8, 8, 8, 9);
	processes_comm(p, 8, 9, "worker", false);
	ck_assert_str_eq(processes_name(p, 8, 8), "ls");
	ck_assert_str_eq(processes_name(p, 8, 9), "worker");
	ck_assert_str_eq(processes_name(p, 8, 10), "ls"); /* an unreported thread */
	ck_assert_str_eq(processes_name(p, 7, 7), "shell");
}
END_TEST

/* A name stays known after the exit, until the number is reused. */
START_TEST(test_number_again)
{
	processes_comm(p, 1, 1, "init", false);
	processes_comm(p, 8, 8, "old", true);
	map(8, 0x1000, 0x1000, 0, "/old");
	processes_exit(p, 8, 8);
	ck_assert_str_eq(processes_name(p, 8, 8), "old");
	ck_mapped(8, 0x1000, "/old", 0);
	processes_fork(p, 1, 1, 8, 8);
	ck_assert_str_eq(processes_name(p, 8, 8), "init");
	ck_mapped(8, 0x1000, NULL, 0);
}
END_TEST

START_TEST(test_long_name)
{
	char name[4096];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	processes_comm(p, 1, 1, name, false);
	ck_assert_uint_ge(strlen(processes_name(p, 1, 1)), 15);
	ck_assert_int_eq(strncmp(processes_name(p, 1, 1), name, 15), 0);
	processes_fork(p, 1, 1, 2, 2);
	ck_assert_str_eq(processes_name(p, 2, 2), processes_name(p, 1, 1));
}
END_TEST

/* ── Maps ───────────────────────────────────────────────────────────────────────────────── */

START_TEST(test_over)
{
	map(1, 0x1000, 0x5000, 0x10000, "/a");
	map(1, 0x3000, 0x1000, 0x700, "/b");
	ck_mapped(1, 0xfff, NULL, 0);
	ck_mapped(1, 0x1000, "/a", 0x10000);
	ck_mapped(1, 0x2fff, "/a", 0x11fff);
	ck_mapped(1, 0x3000, "/b", 0x700);
	ck_mapped(1, 0x3fff, "/b", 0x16ff);
	ck_mapped(1, 0x4000, "/a", 0x13000); /* the rest of it, at its offset in the file */
	ck_mapped(1, 0x5fff, "/a", 0x14fff);
	ck_mapped(1, 0x6000, NULL, 0);
	map(1, 0x0, 0x10000, 0, "/c");
	ck_mapped(1, 0x3000, "/c", 0x3000);
}
END_TEST

START_TEST(test_ends_of_space)
{
	const struct map *m;

	ck_assert_int_eq(
		processes_map(p, 1, UINT64_MAX - 0xfff, UINT64_MAX, 0, "/a", NULL, 0, 0, 0, &m), 0);
	ck_assert_uint_eq(m->end, UINT64_MAX);
	ck_mapped(1, UINT64_MAX - 1, "/a", 0xffe);
	ck_assert_int_eq(processes_map(p, 2, 0x1000, 0, 0, "/a", NULL, 0, 0, 0, &m), 0);
	ck_assert_ptr_null(m);
}
END_TEST

/* A child has its parent's mappings; from then on each has its own. */
START_TEST(test_fork)
{
	map(1, 0x1000, 0x3000, 0, "/a");
	processes_fork(p, 1, 1, 2, 2);
	map(2, 0x2000, 0x1000, 0, "/child");
	map(1, 0x3000, 0x1000, 0, "/parent");
	ck_mapped(1, 0x2000, "/a", 0x1000);
	ck_mapped(1, 0x3000, "/parent", 0);
	ck_mapped(2, 0x2000, "/child", 0);
	ck_mapped(2, 0x3000, "/a", 0x2000);
	processes_fork(p, 2, 2, 2, 3); /* a thread, which has none of its own */
	ck_mapped(2, 0x3000, "/a", 0x2000);
	processes_comm(p, 2, 2, "new", true);
	ck_mapped(2, 0x2000, NULL, 0);
	ck_mapped(1, 0x1000, "/a", 0);
}
END_TEST

START_TEST(test_kernel)
{
	const struct map *m;

	map(KERNEL, 0xffffffff81000000, 0x1000000, 0, "[kernel.kallsyms]");
	map(KERNEL, 0xffffffff81001000, 0x100, 0, "bpf_prog_1_x");
	m = processes_find(p, 55, 0xffffffff81001010, true);
	ck_assert_str_eq(m->dso->name, "bpf_prog_1_x");
	ck_assert(m->dso->kernel);
	m = processes_find(p, 55, 0xffffffff81002000, true);
	ck_assert_str_eq(m->dso->name, "[kernel.kallsyms]");
	ck_mapped(55, 0xffffffff81002000, NULL, 0);
}
END_TEST

/* All possible records, in any order, compared with page tables. */
#define PAGES 64
#define PIDS 8
START_TEST(test_like_pages)
{
	static struct {
		int file;
		uint64_t offset;
	} pages[PIDS][PAGES];
	unsigned seed = 1;
	char path[16];

	memset(pages, -1, sizeof(pages));
	for (unsigned i = 0; i < 4000; i++) {
		uint32_t pid = (uint32_t)rand_r(&seed) % PIDS, other;
		unsigned what = (unsigned)rand_r(&seed) % 20, first, n;

		other = (pid + 1 + (uint32_t)rand_r(&seed) % (PIDS - 1)) % PIDS;
		first = (unsigned)rand_r(&seed) % PAGES;
		n = 1 + (unsigned)rand_r(&seed) % (PAGES - first);
		if (what == 0) {
			ck_assert_int_eq(processes_fork(p, pid, pid, other, other), 0);
			memcpy(pages[other], pages[pid], sizeof(pages[0]));
		} else if (what == 1) {
			ck_assert_int_eq(processes_comm(p, pid, pid, "x", true), 0);
			memset(pages[pid], -1, sizeof(pages[0]));
		} else {
			snprintf(path, sizeof(path), "/%u", i % 10);
			map(pid, first * 0x1000, n * 0x1000, i * 0x1000, path);
			for (unsigned k = 0; k < n; k++) {
				pages[pid][first + k].file = (int)(i % 10);
				pages[pid][first + k].offset = (i + k) * 0x1000;
			}
		}
		for (unsigned k = 0; k < PAGES; k++) {
			snprintf(path, sizeof(path), "/%d", pages[pid][k].file);
			ck_mapped(pid, k * 0x1000 + 5, pages[pid][k].file < 0 ? NULL : path,
				  pages[pid][k].offset + 5);
		}
	}
}
END_TEST

/* Each child changes its mappings: the cost must be the change, not a copy. */
START_TEST(test_many_forks)
{
	enum { MAPS = 2000, FORKS = 20000 };

	for (unsigned i = 0; i < MAPS; i++)
		map(1, i * 0x2000UL, 0x1000, 0, "/a");
	for (uint32_t i = 0; i < FORKS; i++) {
		processes_fork(p, 1, 1, 100 + i, 100 + i);
		map(100 + i, 0x1000 * (1 + 2UL * (i % MAPS)), 0x1000, 0, "/b");
	}
	ck_assert_uint_lt(mallinfo2().uordblks, 64 << 20);
	ck_mapped(100 + FORKS - 1, 0, "/a", 0);
	ck_mapped(100 + 7, 0x1000 * 15, "/b", 0);
	ck_mapped(1, 0x1000 * 15, NULL, 0);
}
END_TEST

/* ── Files ──────────────────────────────────────────────────────────────────────────────── */

static const struct dso *dso_at(uint32_t pid, uint64_t address)
{
	return processes_find(p, pid, address, false)->dso;
}

/* From any state of FNV-1a, each of these leads to the same next state, if the state's lowest byte
 * is XORed with each byte here. */
static const uint8_t same[][13] = {
	{ 0x71, 0x07, 0x00, 0x5e, 0x2e, 0x4e, 0x0f, 0xff, 0x00, 0xe5, 0x58, 0x5a, 0x61 },
	{ 0xb8, 0x07, 0x00, 0x0d, 0xf1, 0x5c, 0x03, 0x52, 0x00, 0x9d, 0xde, 0x14, 0x61 },
	{ 0xc1, 0x08, 0x00, 0x46, 0xce, 0x54, 0x56, 0x65, 0x00, 0xf8, 0xcc, 0x32, 0x61 },
	{ 0x29, 0x0a, 0x00, 0xc4, 0x8a, 0x2e, 0x8d, 0xe6, 0x00, 0x9f, 0x1d, 0x1a, 0x61 },
	{ 0x98, 0x0c, 0x00, 0x22, 0xdb, 0x64, 0x8d, 0x60, 0x00, 0xd6, 0x86, 0x3b, 0x61 },
	{ 0xa2, 0x10, 0x00, 0x72, 0x33, 0x30, 0xf3, 0x1c, 0x00, 0x4a, 0xc7, 0x69, 0x61 },
	{ 0x7c, 0x12, 0x00, 0x03, 0x6a, 0x15, 0x96, 0xc2, 0x00, 0x16, 0x71, 0x26, 0x61 },
	{ 0x99, 0x12, 0x00, 0x10, 0x48, 0x21, 0x81, 0xe3, 0x00, 0x6a, 0x10, 0x51, 0x61 },
};

static uint64_t put_same(char *at, size_t which, uint64_t state)
{
	for (size_t i = 0; i < sizeof(same[0]); i++) {
		at[i] = (char)((state & 0xff) ^ same[which][i]);
		state = (state ^ (uint8_t)at[i]) * 0x100000001b3;
	}
	return state;
}

/* Lookup finds paths with the same FNV-1a hash like any others. */
START_TEST(test_chosen_paths)
{
	struct dsos d = {};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(same) * ARRAY_SIZE(same); i++) {
		uint64_t state = (0xcbf29ce484222325 ^ '/') * 0x100000001b3;
		char path[2 + 2 * sizeof(same[0])] = "/";
		struct dso *dso;

		state = put_same(path + 1, i / ARRAY_SIZE(same), state);
		put_same(path + 1 + sizeof(same[0]), i % ARRAY_SIZE(same), state);
		if (strlen(path) < sizeof(path) - 1)
			continue;
		ck_assert_int_eq(dsos_get(&d, path, NULL, 0, 0, 0, &dso), 0);
		n++;
	}
	ck_assert_uint_gt(n, 30);
	ck_assert_uint_eq(d.n, n);
	ck_assert_uint_eq(d.by_key.n, n);
	dsos_done(&d);
}
END_TEST

START_TEST(test_build_ids)
{
	static const uint8_t one[BUILD_ID_SIZE_MAX] = { 1 }, two[BUILD_ID_SIZE_MAX] = { 2 };

	processes_build_id(p, "/lib/a.so", one, 20);
	map(1, 0, 0x1000, 0, "/lib/a.so"); /* without: what was announced */
	ck_assert_uint_eq(dso_at(1, 0)->build_id_size, 20);
	ck_assert_int_eq(memcmp(dso_at(1, 0)->build_id, one, 20), 0);
	ck_assert_str_eq(dso_at(1, 0)->name, "a.so");
	processes_map(p, 2, 0, 0x1000, 0, "/lib/a.so", one, 20, 0, 7, NULL);
	ck_assert_ptr_eq(dso_at(1, 0), dso_at(2, 0));
	processes_map(p, 3, 0, 0x1000, 0, "/lib/a.so", two, 20, 0, 7, NULL);
	ck_assert_ptr_ne(dso_at(1, 0), dso_at(3, 0));
	ck_assert_int_eq(memcmp(dso_at(3, 0)->build_id, two, 20), 0);
	map(4, 0, 0x1000, 0, "/lib/b.so");
	ck_assert_uint_eq(dso_at(4, 0)->build_id_size, 0);
	/* Without a build id: one for each inode, but only where a file can be opened. */
	processes_map(p, 5, 0, 0x1000, 0, "/lib/b.so", NULL, 0, 0, 7, NULL);
	ck_assert_ptr_ne(dso_at(4, 0), dso_at(5, 0));
	ck_assert_uint_eq(dso_at(5, 0)->inode, 7);
	processes_map(p, 6, 0, 0x1000, 0, "/lib/b.so", NULL, 0, 0, 7, NULL);
	ck_assert_ptr_eq(dso_at(5, 0), dso_at(6, 0));
	processes_map(p, 7, 0, 0x1000, 0, "/lib/a.so", NULL, 0, 0, 7, NULL);
	ck_assert_ptr_eq(dso_at(1, 0), dso_at(7, 0));
	processes_map(p, 8, 0, 0x1000, 0, "/memfd:jit (deleted)", NULL, 0, 0, 8, NULL);
	processes_map(p, 9, 0, 0x1000, 0, "/memfd:jit (deleted)", NULL, 0, 0, 9, NULL);
	ck_assert_ptr_eq(dso_at(8, 0), dso_at(9, 0));
	for (size_t i = 0; i < processes_dsos(p); i++)
		ck_assert_uint_eq(processes_dso(p, i)->index, i);
	ck_assert_ptr_null(processes_dso(p, processes_dsos(p)));
}
END_TEST

START_TEST(test_names_of_files)
{
	static const char *const names[][2] = {
		{ "/usr/bin/ls", "ls" },       { "[vdso]", "[vdso]" },
		{ "//anon", "//anon" },	       { "/", "/" },
		{ "/memfd:a/b (x)", "b (x)" }, { "", "" }
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		map(1, 0, 0x1000, 0, names[i][0]);
		ck_assert_str_eq(dso_at(1, 0)->name, names[i][1]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("process");
	TCase *t = tcase_create("process");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_names);
	tcase_add_test(t, test_number_again);
	tcase_add_test(t, test_long_name);
	tcase_add_test(t, test_over);
	tcase_add_test(t, test_ends_of_space);
	tcase_add_test(t, test_fork);
	tcase_add_test(t, test_kernel);
	tcase_add_test(t, test_like_pages);
	tcase_add_test(t, test_many_forks);
	tcase_add_test(t, test_chosen_paths);
	tcase_add_test(t, test_build_ids);
	tcase_add_test(t, test_names_of_files);
	suite_add_tcase(s, t);
	return run_suite(s);
}
