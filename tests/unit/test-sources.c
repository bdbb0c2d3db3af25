// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events with several sources: their catalog, and the records that only it can tell apart. */
#include "tests/unit/catalog-writer.h"
#include "tests/unit/needs.h"

static struct perfpersist_event *open_shared(const struct writer *w, int catalog)
{
	struct perfpersist_event *e = NULL;
	int fds[] = { catalog, w->fd };

	ck_assert_int_eq(perfpersist_open_fds(fds, 2, &e), 0);
	return e;
}

static int open_error(const int *fds, size_t n)
{
	struct perfpersist_event *e = NULL;
	int r = perfpersist_open_fds(fds, n, &e);

	ck_assert(r < 0 && !e);
	ck_assert_uint_gt(strlen(perfpersist_error(NULL)), 20);
	return r;
}

START_TEST(test_sources)
{
	_cleanup_close_ int catalog = writer_catalog(3);
	struct writer w = writer_new_shared(0, 4096, 64, 3);
	struct perfpersist_source s = { .sz = sizeof(s) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_event *e = open_shared(&w, catalog);
	struct perf_event_attr attr;
	size_t size;

	ck_assert_uint_eq(perfpersist_event_sources(e), 3);
	ck_assert_int_eq(perfpersist_event_info(e, &info), 0);
	ck_assert_uint_eq(info.sources, 3);
	ck_assert_uint_eq(info.sample_type, PERF_SAMPLE_IDENTIFIER);
	for (uint32_t i = 0; i < 3; i++) {
		char event[16];

		snprintf(event, sizeof(event), "sys:event%u", i);
		ck_assert_int_eq(perfpersist_event_source(e, i, &s), 0);
		ck_assert_uint_eq(s.id, PP_SOURCE_ID(WRITER_EVENT_ID, i));
		ck_assert_uint_eq(s.sample_type, i % 2 ? WRITER_SAMPLING : WRITER_TRACEPOINT);
		ck_assert_uint_eq(s.event_size, strlen(event));
		ck_assert_mem_eq(s.event, event, strlen(event));
		ck_assert_uint_eq(s.attr_size, sizeof(attr));
		memcpy(&attr, s.attr, sizeof(attr));
		ck_assert_uint_eq(attr.config, i);
		ck_assert_int_eq(s.format != NULL, i % 2 == 0);
	}
	ck_assert_int_eq(perfpersist_event_source(e, 3, &s), -EINVAL);
	ck_assert_int_eq(perfpersist_event_source(e, SIZE_MAX, &s), -EINVAL);
	ck_assert_ptr_nonnull(perfpersist_event_format(e, &size)); /* the first one's */
	ck_assert_uint_eq(size, strlen("name: event0\n"));
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* An event with one source has no catalog, and looks the same to a client. */
START_TEST(test_one_source)
{
	static const char format[] = "name: tracepoint\n";
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_source s = { .sz = sizeof(s) };
	struct perfpersist_event *e;

	w.header->format_size = sizeof(format) - 1;
	memcpy(w.ring + PP_RING_FORMAT_OFFSET, format, sizeof(format) - 1);
	e = writer_open(&w, 1);
	ck_assert_uint_eq(perfpersist_event_sources(e), 1);
	ck_assert_int_eq(perfpersist_event_source(e, 0, &s), 0);
	ck_assert_uint_eq(s.id, 0);
	ck_assert_uint_eq(s.sample_type, WRITER_SAMPLE_TYPE);
	ck_assert_mem_eq(s.event, "sys:tracepoint", s.event_size);
	ck_assert_uint_eq(s.format_size, sizeof(format) - 1);
	ck_assert_int_eq(perfpersist_event_source(e, 1, &s), -EINVAL);
	s.sz--;
	ck_assert_int_eq(perfpersist_event_source(e, 0, &s), -EINVAL);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

START_TEST(test_records)
{
	_cleanup_close_ int catalog = writer_catalog(3);
	struct writer w = writer_new_shared(0, 4096, 64, 3);
	struct perfpersist_event *e = open_shared(&w, catalog);
	struct perfpersist_snapshot *s;
	struct perfpersist_merge *m;
	struct perfpersist_sample sample;

	for (uint32_t i = 0; i < 300; i++)
		writer_write_source(&w, i % 3, i, 1000 + i);
	s = writer_snapshot(e);
	ck_assert_int_eq(perfpersist_merge_new(s, PERFPERSIST_NEWEST_FIRST, 90, &m), 0);
	for (uint32_t i = 300; i-- > 210;) {
		ck_assert_int_eq(perfpersist_merge_next(m, &sample), 1);
		ck_assert_uint_eq(sample.source, i % 3);
		ck_assert_uint_eq(sample.id, PP_SOURCE_ID(WRITER_EVENT_ID, i % 3));
		ck_assert_uint_eq(sample.tid, i);
		ck_assert_uint_eq(sample.time, 1000 + i);
		ck_assert_uint_eq(sample.raw_size, i % 3 == 1 ? 0 : 4);
		ck_assert_uint_eq(sample.period, i % 3 == 1 ? 4000 : 0);
	}
	perfpersist_merge_free(m);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* A record without a source, or too short for one, is damage. Newer records stay readable. */
START_TEST(test_bad_ids)
{
	static const uint64_t ids[] = { 0, 3, PP_SOURCE_ID(WRITER_EVENT_ID, 3),
					PP_SOURCE_ID(WRITER_EVENT_ID + 1, 0), UINT64_MAX };
	_cleanup_close_ int catalog = writer_catalog(3);

	for (size_t i = 0; i <= ARRAY_SIZE(ids); i++) {
		struct writer w = writer_new_shared(0, 4096, 64, 3);
		struct perf_event_header bare = { .type = PERF_RECORD_SAMPLE, .size = 8 };
		struct perfpersist_event *e = open_shared(&w, catalog);
		struct perfpersist_snapshot *s;
		struct perfpersist_cursor *c;
		struct perfpersist_sample sample;

		if (i < ARRAY_SIZE(ids))
			writer_write_as(&w, ids[i], 0, 1, 1);
		else
			writer_put(&w, &bare, sizeof(bare));
		writer_write_source(&w, 2, 2, 2);
		s = writer_snapshot(e);
		ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
		ck_assert_int_eq(perfpersist_cursor_next(c, &sample), 1);
		ck_assert_uint_eq(sample.tid, 2);
		ck_assert_int_eq(perfpersist_cursor_next(c, &sample), -EBADMSG);
		perfpersist_cursor_free(c);
		perfpersist_snapshot_free(s);
		perfpersist_event_free(e);
		writer_done(&w);
	}
}
END_TEST

START_TEST(test_bad_catalogs)
{
	_cleanup_close_ int catalog = writer_catalog(3), fewer = writer_catalog(2);
	_cleanup_close_ int other = writer_catalog(3), newer = writer_catalog(3);
	_cleanup_close_ int cut = writer_catalog(3);
	struct writer w = writer_new_shared(0, 4096, 64, 3), one = writer_new(0, 4096, 64);
	uint64_t id = WRITER_EVENT_ID + 1;
	uint32_t version = PP_CATALOG_VERSION + 1;

	ck_assert_int_eq(open_error(&w.fd, 1), -EINVAL);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(NULL), "catalog"));
	ck_assert_int_eq(open_error(&catalog, 1), -EINVAL);
	ck_assert_int_eq(open_error((int[]){ catalog, catalog, w.fd }, 3), -EINVAL);
	ck_assert_int_eq(open_error((int[]){ fewer, w.fd }, 2), -EINVAL);
	ck_assert_int_eq(open_error((int[]){ w.fd, catalog, one.fd }, 3), -EINVAL);
	ck_assert_int_eq(open_error((int[]){ one.fd, catalog }, 2), -EINVAL);
	ck_assert_int_eq(pwrite(other, &id, 8, offsetof(struct pp_catalog_header, event_id)), 8);
	ck_assert_int_eq(open_error((int[]){ other, w.fd }, 2), -EBADMSG);
	ck_assert_int_eq(pwrite(newer, &version, 4, offsetof(struct pp_catalog_header, version)),
			 4);
	ck_assert_int_eq(open_error((int[]){ newer, w.fd }, 2), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(NULL), "newer"));
	ck_assert_int_eq(ftruncate(cut, 300), 0);
	ck_assert_int_eq(open_error((int[]){ cut, w.fd }, 2), -EBADMSG);
	writer_done(&one);
	writer_done(&w);
}
END_TEST

/* The catalog is copied when it is opened: later changes of the file have no effect. */
START_TEST(test_catalog_changes_later)
{
	_cleanup_close_ int catalog = writer_catalog(3);
	struct writer w = writer_new_shared(0, 4096, 64, 3);
	struct perfpersist_event *e = open_shared(&w, catalog);
	struct perfpersist_source s = { .sz = sizeof(s) };

	ck_assert_int_eq(ftruncate(catalog, 0), 0);
	ck_assert_int_eq(perfpersist_event_source(e, 2, &s), 0);
	ck_assert_mem_eq(s.event, "sys:event2", s.event_size);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sources");
	TCase *tc = tcase_create("sources");

	tcase_add_test(tc, test_sources);
	tcase_add_test(tc, test_one_source);
	tcase_add_test(tc, test_records);
	tcase_add_test(tc, test_bad_ids);
	tcase_add_test(tc, test_bad_catalogs);
	tcase_add_test(tc, test_catalog_changes_later);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
