// SPDX-License-Identifier: LGPL-2.1-or-later
/* A save that is damaged, cut off or hostile causes one error message. */
#include "tests/unit/needs.h"
#include "tests/unit/saved-fixture.h"

/* ── What is not as it was ──────────────────────────────────────────────────────────────── */

static void save_some(void)
{
	struct perfpersist_info info = the_info();
	struct writer w[RINGS];

	fill(w);
	save_event(w, RINGS, -EBADF, &info);
	for (size_t i = 0; i < RINGS; i++)
		writer_done(&w[i]);
}

START_TEST(test_cut_off_ring)
{
	static const off_t sizes[] = { 0, 1, 100, 2047, 2048, 4096, 8192, 4096 + 4096 + 511 };
	struct perfpersist_event *e = NULL;

	save_some();
	for (size_t i = ARRAY_SIZE(sizes); i-- > 0;) {
		ck_assert_int_eq(truncate(file("cpu2"), sizes[i]), 0);
		ck_assert_int_eq(open_saved(&e), -EBADMSG);
		ck_assert_ptr_nonnull(strstr(why, "cut off"));
		ck_assert_ptr_nonnull(strstr(why, "cpu2"));
	}
}
END_TEST

/* The text is cut at any point. */
START_TEST(test_cut_off_text)
{
	const char *leaf = _i ? "stat" : "info";
	struct perfpersist_event *e = NULL;
	struct stat st;

	save_some();
	ck_assert_int_eq(stat(file(leaf), &st), 0);
	for (off_t size = st.st_size; size-- > 0;) {
		ck_assert_int_eq(truncate(file(leaf), size), 0);
		ck_assert_msg(open_saved(&e) == -EBADMSG, "%s of %lld bytes", leaf,
			      (long long)size);
	}
}
END_TEST

/* A file that is cut off while it is open loses its records. */
START_TEST(test_shrinks_meanwhile)
{
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;
	struct perfpersist_merge *m;
	struct perfpersist_sample x;

	save_some();
	ck_assert_int_eq(open_saved(&e), 0);
	ck_assert_int_eq(truncate(file("cpu2"), 2048), 0);
	s = writer_snapshot(e);
	ck_assert_int_eq(perfpersist_merge_new(s, PERFPERSIST_OLDEST_FIRST, 0, &m), 0);
	while (perfpersist_merge_next(m, &x) > 0)
		ck_assert_uint_ne(x.cpu, 2);
	ck_assert_uint_eq(perfpersist_merge_damaged(m), 1);
	perfpersist_merge_free(m);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
}
END_TEST

static void replace_by_link(const char *name)
{
	char other[sizeof(path) + 8];

	snprintf(other, sizeof(other), "%s.real", name);
	ck_assert_int_eq(rename(name, other), 0);
	ck_assert_int_eq(symlink(other, name), 0);
}

START_TEST(test_links)
{
	static const char *const names[] = { "space/name/cpu1", "space/name/info",
					     "space/name/stat", "space/name", "space" };
	struct perfpersist_event *e = NULL;
	char name[sizeof(path)];

	save_some();
	snprintf(name, sizeof(name), "%s/%s", save, names[_i]);
	replace_by_link(name);
	ck_assert_int_eq(open_saved(&e), -ELOOP);
	ck_assert_ptr_nonnull(strstr(why, "link"));
}
END_TEST

START_TEST(test_no_plain_files)
{
	struct perfpersist_event *e = NULL;

	save_some();
	ck_assert_int_eq(unlink(file("cpu1")), 0);
	ck_assert_int_eq(mkfifo(file("cpu1"), 0644), 0);
	ck_assert_int_eq(open_saved(&e), -EINVAL);
	ck_assert_int_eq(unlink(file("cpu1")), 0);
	ck_assert_int_eq(mkdir(file("cpu1"), 0755), 0);
	ck_assert_int_eq(open_saved(&e), -EINVAL);
	ck_assert_int_eq(rmdir(file("cpu1")), 0);
	ck_assert_int_eq(open_saved(&e), 0);
	perfpersist_event_free(e);
	ck_assert_int_eq(unlink(file("info")), 0);
	ck_assert_int_eq(mkfifo(file("info"), 0644), 0);
	ck_assert_int_eq(open_saved(&e), -EINVAL);
}
END_TEST

/* A ring under another CPU's name, and one under an invalid name. */
START_TEST(test_wrong_places)
{
	struct perfpersist_event *e = NULL;
	char other[sizeof(path)];

	save_some();
	snprintf(other, sizeof(other), "%s", file("cpu9"));
	ck_assert_int_eq(rename(file("cpu1"), other), 0);
	ck_assert_int_eq(open_saved(&e), -EBADMSG);
	ck_assert_int_eq(unlink(other), 0);
	snprintf(other, sizeof(other), "%s", file("cpu02"));
	ck_assert_int_eq(link(file("cpu2"), other), 0);
	ck_assert_int_eq(open_saved(&e), 0); /* no ring can have this name */
	ck_assert_uint_eq(perfpersist_event_rings(e), RINGS - 1);
	perfpersist_event_free(e);
}
END_TEST

START_TEST(test_bad_texts)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"id=7\nnamespace=space\nname=name\nsaved_mono=1\nsaved=0\n",
		"id=0\nnamespace=space\nname=name\nsaved_mono=1\nsaved=1\n",
		"id=7\nnamespace=../x\nname=name\nsaved_mono=1\nsaved=1\n",
		"id=7\nnamespace=space\nname=name\ncpus=\x1b[2J\nsaved_mono=1\nsaved=1\n",
	};
	struct perfpersist_event *e = NULL;

	save_some();
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		FILE *f = fopen(file("info"), "we");

		ck_assert_ptr_nonnull(f);
		fputs(texts[i], f);
		ck_assert_int_eq(fclose(f), 0);
		ck_assert_msg(open_saved(&e) == -EBADMSG, "text %zu", i);
	}
	ck_assert_int_eq(truncate(file("info"), 1 << 24), 0);
	ck_assert_int_eq(open_saved(&e), -EFBIG);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("saved-damaged");
	TCase *tc = tcase_create("saved-damaged");

	umask(022);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_cut_off_ring);
	tcase_add_loop_test(tc, test_cut_off_text, 0, 2);
	tcase_add_test(tc, test_shrinks_meanwhile);
	tcase_add_loop_test(tc, test_links, 0, 5);
	tcase_add_test(tc, test_no_plain_files);
	tcase_add_test(tc, test_wrong_places);
	tcase_add_test(tc, test_bad_texts);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
