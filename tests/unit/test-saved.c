// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Saves: written rings decode to what the rings held, record for record and byte for byte; their
 * names, and when they are removed.
 */
#include "client/local/saved-place.h"
#include "client/local/saved-remove.h"
#include "client/local/textfile.h"
#include "proto/clock.h"
#include "tests/unit/catalog-writer.h"
#include "tests/unit/saved-fixture.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include "tests/unit/needs.h"

/* ── What comes back ────────────────────────────────────────────────────────────────────── */

/* All records of both, the newest first, have the same bytes. */
static size_t expect_same(struct perfpersist_event *a, struct perfpersist_event *b)
{
	struct perfpersist_snapshot *s[2] = { writer_snapshot(a), writer_snapshot(b) };
	size_t n = 0;

	ck_assert_uint_eq(perfpersist_event_rings(a), perfpersist_event_rings(b));
	for (size_t i = 0; i < perfpersist_event_rings(a); i++) {
		struct perfpersist_sample x, y;
		struct perfpersist_cursor *c[2];
		int more;

		ck_assert_int_eq(perfpersist_ring_cpu(a, i), perfpersist_ring_cpu(b, i));
		ck_assert_int_eq(perfpersist_cursor_new(s[0], i, &c[0]), 0);
		ck_assert_int_eq(perfpersist_cursor_new(s[1], i, &c[1]), 0);
		while ((more = perfpersist_cursor_next(c[0], &x)) > 0) {
			ck_assert_int_eq(perfpersist_cursor_next(c[1], &y), 1);
			ck_assert_uint_eq(x.record_size, y.record_size);
			ck_assert_mem_eq(x.record, y.record, x.record_size);
			ck_assert_uint_eq(x.source, y.source);
			n++;
		}
		ck_assert_int_eq(more, 0);
		ck_assert_int_eq(perfpersist_cursor_next(c[1], &y), 0);
		perfpersist_cursor_free(c[0]);
		perfpersist_cursor_free(c[1]);
	}
	perfpersist_snapshot_free(s[0]);
	perfpersist_snapshot_free(s[1]);
	return n;
}

START_TEST(test_round_trip)
{
	struct perfpersist_info info = the_info(), back = { .sz = sizeof(back) };
	struct perfpersist_event *live, *e = NULL;
	struct writer w[RINGS];
	struct stat st;

	fill(w);
	save_event(w, RINGS, -EBADF, &info);
	live = writer_open(w, RINGS);
	ck_assert_int_eq(open_saved(&e), 0);
	ck_assert_uint_gt(expect_same(live, e), 40);
	ck_assert(perfpersist_event_is_copy(e));

	ck_assert_int_eq(perfpersist_event_info(e, &back), 0);
	ck_assert_uint_eq(back.records, 20 + 1000 + w[3].header->live.records);
	ck_assert_uint_eq(back.limited, 3 * RINGS);
	ck_assert_uint_eq(back.missed, 5);
	ck_assert_str_eq(back.event, info.event);
	ck_assert_str_eq(back.filter, "a == 1 && b == 2");
	ck_assert_uint_eq(back.state, PERFPERSIST_PAUSED);
	ck_assert_uint_eq(back.flags, info.flags);
	ck_assert_uint_gt(back.saved, 1600000000000000000);
	ck_assert_uint_eq(perfpersist_event_realtime(e, back.saved_mono - 7), back.saved - 7);

	/* An empty ring has only its header on the disk. */
	ck_assert_int_eq(stat(file("cpu0"), &st), 0);
	ck_assert_int_ge(st.st_size, 4096 + 4096 + 512);
	ck_assert_int_le(st.st_blocks * 512, 4096);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	perfpersist_event_free(live);
	perfpersist_event_free(e);
	for (size_t i = 0; i < RINGS; i++)
		writer_done(&w[i]);
}
END_TEST

/* When the first ring had been written. */
static uint64_t first_written;

int fchown(int fd, uid_t owner, gid_t group_)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	if (!first_written && S_ISREG(st.st_mode))
		first_written = pp_clock_ns(CLOCK_MONOTONIC);
	return (int)syscall(SYS_fchown, fd, owner, group_);
}

/* What is recorded while it is made may be missing: it is complete until before that. */
START_TEST(test_time)
{
	uint64_t before = pp_clock_ns(CLOCK_MONOTONIC), offset = pp_clock_offset();
	struct perfpersist_info info = the_info(), back = { .sz = sizeof(back) };
	struct perfpersist_event *e = NULL;
	struct writer w[RINGS];

	fill(w);
	first_written = 0;
	save_event(w, RINGS, -EBADF, &info);
	ck_assert_int_eq(open_saved(&e), 0);
	ck_assert_int_eq(perfpersist_event_info(e, &back), 0);
	ck_assert_uint_gt(first_written, 0);
	ck_assert_uint_ge(back.saved_mono, before);
	ck_assert_uint_le(back.saved_mono, first_written);
	ck_assert_uint_le(labs((long)(back.saved - back.saved_mono - offset)), 1000000000);
	perfpersist_event_free(e);
	for (size_t i = 0; i < RINGS; i++)
		writer_done(&w[i]);
}
END_TEST

/* A save of the daemon's copies is of when they were made. */
START_TEST(test_time_of_copies)
{
	struct perfpersist_info info = the_info(), back = { .sz = sizeof(back) };
	struct saved_event_counts counts;
	struct perfpersist_event *e;
	struct writer w[RINGS];
	char file[32] = "";
	int dir;

	fill(w);
	e = writer_open(w, RINGS);
	e->is_copy = true;
	e->copied = 12345;
	ck_assert_int_eq(mkdir(save, 0700), 0);
	dir = open(save, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(saved_write_event(dir, e, &info, &counts, file), 0);
	ck_assert_int_eq(textfile_read_saved(dir, &back), 0);
	ck_assert_uint_eq(back.saved_mono, 12345);
	close(dir);
	perfpersist_event_free(e);
	for (size_t i = 0; i < RINGS; i++)
		writer_done(&w[i]);
}
END_TEST

START_TEST(test_several_sources)
{
	struct perfpersist_info info = the_info();
	struct perfpersist_event *live = NULL, *e = NULL;
	struct writer w = writer_new_shared(2, 4096, 64, 3);
	int fds[2] = { w.fd, writer_catalog(3) };

	info.sources = 3;
	for (uint32_t i = 0; i < 500; i++)
		writer_write_source(&w, i % 3, i, 1000 + i);
	save_event(&w, 1, fds[1], &info);
	ck_assert_int_eq(perfpersist_open_fds(fds, 2, &live), 0);
	ck_assert_int_eq(open_saved(&e), 0);
	ck_assert_uint_eq(perfpersist_event_sources(e), 3);
	ck_assert_uint_gt(expect_same(live, e), 50);
	perfpersist_event_free(live);
	perfpersist_event_free(e);
	close(fds[1]);
	writer_done(&w);
}
END_TEST

/* From a ring of an earlier boot that nothing saved: the header knows. */
START_TEST(test_clock_of_an_earlier_boot)
{
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_event *e;

	memset(w.header->boot_id, 0xa5, sizeof(w.header->boot_id));
	w.header->created = 1700000000000000000;
	w.header->created_mono = 5000;
	e = writer_open(&w, 1);
	ck_assert_uint_eq(perfpersist_event_realtime(e, 6000), 1700000000000001000);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

static atomic_bool is_over;

static void *write_on(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 1; !is_over; i++)
		writer_write(w, i, i, 4 + 8 * (i % 30));
	return NULL;
}

/* During writes: a run of whole records, and the count that matches the newest. */
START_TEST(test_under_load)
{
	struct writer w = writer_new(0, 65536, 512);
	struct perfpersist_info info = the_info();
	pthread_t thread;

	is_over = false;
	ck_assert_int_eq(pthread_create(&thread, NULL, write_on, &w), 0);
	while (atomic_load(WRITER_WORD(&w, records)) < 5000)
		;
	for (int round = 0; round < 100; round++) {
		struct perfpersist_event *e = NULL;
		struct perfpersist_snapshot *s;
		struct perfpersist_cursor *c;
		struct perfpersist_sample x;
		uint32_t next = 0;
		size_t n = 0;

		save_event(&w, 1, -EBADF, &info);
		ck_assert_int_eq(open_saved(&e), 0);
		s = writer_snapshot(e);
		ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
		for (; perfpersist_cursor_next(c, &x) > 0; n++) {
			ck_assert(writer_is_whole(&x));
			ck_assert(n == 0 || x.tid + 1 == next);
			next = x.tid;
		}
		ck_assert_uint_gt(n, 10);
		perfpersist_cursor_free(c);
		perfpersist_snapshot_free(s);
		perfpersist_event_free(e);
		saved_remove(AT_FDCWD, save);
	}
	is_over = true;
	pthread_join(thread, NULL);
	writer_done(&w);
}
END_TEST

/* ── Names, and what is left ────────────────────────────────────────────────────────────── */

START_TEST(test_names)
{
	char name[SAVED_NAME_SIZE];

	saved_name(1795304412, name);
	ck_assert_str_eq(name, "2026-11-21T23-40-12Z");
	ck_assert(saved_name_is_valid(name));
	ck_assert_int_eq(saved_name_time(name), 1795304412);
	ck_assert(!saved_name_is_valid(""));
	ck_assert(!saved_name_is_valid("2026-11-21T23-40-12"));
	ck_assert(!saved_name_is_valid("2026-11-21T23-40-12Z-"));
	ck_assert(!saved_name_is_valid("2026-11-21T23-40-12Z-2"));
	ck_assert(!saved_name_is_valid("2026-11-21T23-40-12Z/.."));
	ck_assert(!saved_name_is_valid("+new-2026-11-21T23-40-12Z"));
}
END_TEST

static void make_dir(int at, const char *name)
{
	char below[128];
	int fd;

	ck_assert_int_eq(mkdirat(at, name, 0755), 0);
	snprintf(below, sizeof(below), "%s/space", name);
	ck_assert_int_eq(mkdirat(at, below, 0755), 0);
	snprintf(below, sizeof(below), "%s/space/file", name);
	fd = openat(at, below, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static bool is_there(int at, const char *name)
{
	return faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Saves in progress stay; so do foreign files, and the targets of links. */
START_TEST(test_sweep)
{
	int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), busy;

	make_dir(at, "+new-dead");
	make_dir(at, "+new-busy");
	make_dir(at, "+del-2026-11-21T23-40-12Z");
	make_dir(at, "theirs");
	ck_assert_int_eq(symlinkat("theirs", at, "+del-link"), 0);
	ck_assert_int_eq(symlinkat("../../theirs", at, "+new-dead/space/link"), 0);
	busy = openat(at, "+new-busy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(busy, LOCK_EX), 0);
	saved_sweep(at);
	ck_assert(!is_there(at, "+new-dead"));
	ck_assert(!is_there(at, "+del-2026-11-21T23-40-12Z"));
	ck_assert(is_there(at, "+new-busy/space/file"));
	ck_assert(is_there(at, "theirs/space/file"));
	close(busy);
	saved_sweep(at);
	ck_assert(!is_there(at, "+new-busy"));
	close(at);
}
END_TEST

/* The oldest go; never the one that was just made, whatever the clock says. */
START_TEST(test_prune)
{
	static const char *const names[] = { "2020-01-01T00-00-00Z", "2021-01-01T00-00-00Z",
					     "2022-01-01T00-00-00Z", "2023-01-01T00-00-00Z" };
	int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make_dir(at, names[i]);
	make_dir(at, "notes");
	ck_assert_uint_eq(saved_prune(at, 4, names[3]), 0);
	ck_assert_uint_eq(saved_prune(at, 2, names[0]), 1);
	ck_assert(is_there(at, names[0]));
	ck_assert(!is_there(at, names[1]));
	ck_assert(is_there(at, names[2]) && is_there(at, names[3]));
	ck_assert(is_there(at, "notes/space/file"));
	close(at);
}
END_TEST

/* Two at once for the same place: the second fails. A dead process's files block nothing. */
START_TEST(test_same_place)
{
	struct saving a, b;
	char temp[128];

	ck_assert_int_eq(saving_begin_at(save, &a), 0);
	ck_assert_int_eq(saving_begin_at(save, &b), -EBUSY);
	saving_done(&b);
	saving_done(&a); /* unfinished: nothing remains */
	snprintf(temp, sizeof(temp), "%s/+new-save", root);
	ck_assert_int_ne(access(temp, F_OK), 0);
	make_dir(AT_FDCWD, temp);
	ck_assert_int_eq(saving_begin_at(save, &a), 0);
	ck_assert_int_eq(saving_finish(&a), 0);
	saving_done(&a);
	ck_assert_int_eq(saving_begin_at(save, &a), -EEXIST);
	saving_done(&a);
	ck_assert_int_eq(saving_begin_at("/", &a), -EINVAL);
	saving_done(&a);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("saved");
	TCase *tc = tcase_create("saved");

	umask(022);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_round_trip);
	tcase_add_test(tc, test_time);
	tcase_add_test(tc, test_time_of_copies);
	tcase_add_test(tc, test_several_sources);
	tcase_add_test(tc, test_clock_of_an_earlier_boot);
	tcase_add_test(tc, test_under_load);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_sweep);
	tcase_add_test(tc, test_prune);
	tcase_add_test(tc, test_same_place);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
