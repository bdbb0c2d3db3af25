// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opening rings, snapshots and the walk over one ring, against rings made here. */
#include "tests/unit/ring-writer.h"

#include <pthread.h>
#include "tests/unit/needs.h"

/* Walks ring 0: n records, the newest first, each whole and with the tid one below the last. */
static void check_walk(struct perfpersist_snapshot *s, uint32_t newest, size_t n, int end)
{
	struct perfpersist_cursor *c = NULL;
	struct perfpersist_sample sample;

	ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(perfpersist_cursor_next(c, &sample), 1);
		ck_assert_uint_eq(sample.tid, newest - i);
		ck_assert(writer_is_whole(&sample));
	}
	ck_assert_int_eq(perfpersist_cursor_next(c, &sample), end);
	ck_assert_int_eq(perfpersist_cursor_next(c, &sample), end);
	perfpersist_cursor_free(c);
}

static void check_ring(struct writer *w, uint32_t newest, size_t n, int end)
{
	struct perfpersist_event *e = writer_open(w, 1);
	struct perfpersist_snapshot *s = writer_snapshot(e);

	perfpersist_event_free(e); /* the snapshot keeps what it needs */
	check_walk(s, newest, n, end);
	ck_assert_int_eq(perfpersist_snapshot_take(s), 0);
	check_walk(s, newest, n, end);
	perfpersist_snapshot_free(s);
}

START_TEST(test_empty)
{
	struct writer w = writer_new(3, 4096, 64);

	check_ring(&w, 0, 0, 0);
	writer_done(&w);
}
END_TEST

START_TEST(test_some)
{
	struct writer w = writer_new(3, 4096, 64);

	for (uint32_t i = 1; i <= 10; i++)
		writer_write(&w, i, i, 4);
	check_ring(&w, 10, 10, 0);
	writer_done(&w);
}
END_TEST

/* Records of 32 bytes: exactly 128 fill the ring, and the oldest must be there. */
START_TEST(test_exactly_full)
{
	struct writer w = writer_new(3, 4096, 64);

	for (uint32_t i = 1; i <= 128; i++)
		writer_write(&w, i, i, 4);
	check_ring(&w, 128, 128, 0);
	writer_write(&w, 129, 129, 4);
	check_ring(&w, 129, 128, 0);
	writer_done(&w);
}
END_TEST

/* Sizes that do not divide the ring: records run into the spill, and the oldest is cut off. */
START_TEST(test_wrap_and_spill)
{
	struct writer w = writer_new(3, 4096, 96);
	uint64_t spilled = 0;

	for (uint32_t i = 1; i <= 5000; i++) {
		uint64_t at;

		writer_write(&w, i, i, 12);
		at = atomic_load(WRITER_WORD(&w, head)) & 4095;
		spilled += at + 40 > 4096;
		if (i > 103 && i % 13 == 0)
			check_ring(&w, i, 4096 / 40, 0);
	}
	ck_assert_uint_gt(spilled, 10);
	writer_done(&w);
}
END_TEST

/* A record being written takes its room from the oldest, and is not visible itself. */
START_TEST(test_reserved)
{
	struct writer w = writer_new(3, 4096, 256);

	for (uint32_t i = 1; i <= 200; i++)
		writer_write(&w, i, i, 4);
	atomic_store(WRITER_WORD(&w, reserve), atomic_load(WRITER_WORD(&w, head)) - 40);
	memset(w.ring + PP_RING_PAGE + ((atomic_load(WRITER_WORD(&w, head)) - 40) & 4095), 0xff,
	       40);
	check_ring(&w, 200, 126, 0);
	writer_done(&w);
}
END_TEST

/* Head and reserve may have any value. */
START_TEST(test_forged_words)
{
	static const uint64_t words[] = { 0,
					  1,
					  8,
					  4096,
					  UINT64_MAX,
					  -8,
					  -4096,
					  -4104,
					  1ULL << 63,
					  UINT64_MAX - 6,
					  -24,
					  1ULL << 32,
					  -(1ULL << 32),
					  0x12345678abc,
					  16 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(words); j++) {
			struct writer w = writer_new(3, 4096, 64);
			struct perfpersist_event *e;
			struct perfpersist_snapshot *s;
			struct perfpersist_cursor *c;
			struct perfpersist_sample sample;
			size_t n = 0;

			for (uint32_t k = 1; k <= 200; k++)
				writer_write(&w, k, k, 4);
			atomic_store(WRITER_WORD(&w, head), words[i]);
			atomic_store(WRITER_WORD(&w, reserve), words[j]);
			e = writer_open(&w, 1);
			s = writer_snapshot(e);
			ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
			while (perfpersist_cursor_next(c, &sample) == 1)
				n++;
			ck_assert_uint_le(n, 4096 / 8);
			if (words[i] % 8)
				ck_assert_int_eq(perfpersist_cursor_next(c, &sample), -EBADMSG);
			perfpersist_cursor_free(c);
			perfpersist_snapshot_free(s);
			perfpersist_event_free(e);
			writer_done(&w);
		}
	}
}
END_TEST

static void damage(uint16_t size, uint32_t type)
{
	struct writer w = writer_new(3, 4096, 64);
	struct perf_event_header bad = { .type = type, .size = size };
	uint64_t at;

	for (uint32_t i = 1; i <= 10; i++)
		writer_write(&w, i, i, 4);
	at = atomic_load(WRITER_WORD(&w, head)) + 4UL * 32; /* the record with tid 6 */
	memcpy(w.ring + PP_RING_PAGE + (at & 4095), &bad, sizeof(bad));
	check_ring(&w, 10, 4, -EBADMSG);
	writer_done(&w);
}

START_TEST(test_damaged_records)
{
	damage(0, PERF_RECORD_SAMPLE);
	damage(7, PERF_RECORD_SAMPLE);
	damage(8, PERF_RECORD_SAMPLE); /* its fields don't fit */
	damage(33, PERF_RECORD_SAMPLE);
	damage(24, PERF_RECORD_SAMPLE); /* no room for the raw size */
	damage(72, PERF_RECORD_SAMPLE); /* larger than any record */
	damage(65528, PERF_RECORD_SAMPLE);
	damage(32, PERF_RECORD_LOST);
}
END_TEST

/* Nothing is cut off at the ring's beginning: a record that crosses it is damage. */
START_TEST(test_record_beyond_begin)
{
	struct writer w = writer_new(3, 4096, 64);
	struct perf_event_header bad = { .type = PERF_RECORD_SAMPLE, .size = 64 };

	writer_write(&w, 1, 1, 4);
	writer_write(&w, 2, 2, 4);
	memcpy(w.ring + PP_RING_PAGE + 4096 - 32, &bad, sizeof(bad));
	check_ring(&w, 2, 1, -EBADMSG);
	writer_done(&w);
}
END_TEST

START_TEST(test_stale_cursor)
{
	struct writer w = writer_new(3, 4096, 64);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct perfpersist_snapshot *s = writer_snapshot(e);
	struct perfpersist_cursor *c = NULL;
	struct perfpersist_sample sample;

	ck_assert_int_eq(perfpersist_cursor_new(s, 1, &c), -EINVAL);
	ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
	ck_assert_int_eq(perfpersist_cursor_next(c, &sample), 0);
	ck_assert_int_eq(perfpersist_snapshot_take(s), 0);
	ck_assert_int_eq(perfpersist_cursor_next(c, &sample), -ESTALE);
	perfpersist_cursor_free(c);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* ── Opening ────────────────────────────────────────────────────────────────────────────── */

static int open_error(const int *fds, size_t n)
{
	struct perfpersist_event *e = NULL;
	int r = perfpersist_open_fds(fds, n, &e);

	ck_assert(r < 0 && !e);
	ck_assert_uint_gt(strlen(perfpersist_error(NULL)), 20);
	return r;
}

START_TEST(test_open_what_is_no_ring)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int dir = open("/", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int empty = memfd_create("empty", MFD_CLOEXEC);
	_cleanup_close_ int text = memfd_create("text", MFD_CLOEXEC);
	int pipes[2], closed = 999;

	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	ck_assert_int_eq(ftruncate(text, 1 << 20), 0);
	ck_assert_int_eq(open_error(&null, 1), -EBADMSG);
	ck_assert_int_eq(open_error(&zero, 1), -EBADMSG);
	ck_assert_int_eq(open_error(&dir, 1), -EBADMSG);
	ck_assert_int_eq(open_error(&empty, 1), -EBADMSG);
	ck_assert_int_eq(open_error(&text, 1), -EBADMSG);
	ck_assert_int_eq(open_error(&pipes[0], 1), -EBADMSG);
	ck_assert_int_eq(open_error(&closed, 1), -EBADF);
	ck_assert_int_eq(open_error(NULL, 0), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

START_TEST(test_open_headers)
{
	struct writer w[2] = { writer_new(3, 4096, 64), writer_new(4, 4096, 64) };
	int fds[] = { w[0].fd, w[1].fd };
	_cleanup_close_ int cut = memfd_create("cut", MFD_CLOEXEC);

	w[0].header->version = PP_RING_VERSION + 1;
	ck_assert_int_eq(open_error(fds, 2), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(NULL), "newer"));
	w[0].header->version = PP_RING_VERSION;

	w[0].header->data_size = 8192; /* more than the file has */
	ck_assert_int_eq(open_error(fds, 2), -EBADMSG);
	w[0].header->data_size = 4096;

	w[1].header->event_id++;
	ck_assert_int_eq(open_error(fds, 2), -EINVAL);
	w[1].header->event_id--;

	w[1].header->cpu = 3;
	ck_assert_int_eq(open_error(fds, 2), -EINVAL);
	w[1].header->cpu = UINT32_MAX;
	ck_assert_int_eq(open_error(fds, 2), -EBADMSG);

	ck_assert_int_eq(write(cut, w[0].ring, w[0].size - 8), (ssize_t)w[0].size - 8);
	ck_assert_int_eq(open_error(&cut, 1), -EBADMSG);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* A plain file with a copy of a ring; truncating it while it is open is damage, and causes no
 * SIGBUS. */
START_TEST(test_copy_in_a_file)
{
	struct writer w = writer_new(3, 4096, 64);
	_cleanup_close_ int copy = memfd_create("copy", MFD_CLOEXEC);
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;

	for (uint32_t i = 1; i <= 300; i++)
		writer_write(&w, i, i, 4);
	ck_assert_int_eq(write(copy, w.ring, w.size), (ssize_t)w.size);
	ck_assert_int_eq(perfpersist_open_fds(&copy, 1, &e), 0);
	s = writer_snapshot(e);
	check_walk(s, 300, 128, 0);
	ck_assert_int_eq(ftruncate(copy, 5000), 0);
	ck_assert_int_eq(perfpersist_snapshot_take(s), 0);
	check_walk(s, 0, 0, -EBADMSG);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

START_TEST(test_event)
{
	static const char format[] = "name: tracepoint\nID: 1\n";
	struct writer w[3] = { writer_new(9, 4096, 64), writer_new(2, 4096, 64),
			       writer_new(3, 4096, 64) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .config = 1 };
	struct perfpersist_event *e;
	size_t size;

	w[0].header->attr_size = sizeof(attr);
	memcpy(w[0].header->attr, &attr, sizeof(attr));
	w[0].header->format_size = sizeof(format) - 1;
	memcpy(w[0].ring + PP_RING_FORMAT_OFFSET, format, sizeof(format) - 1);
	e = writer_open(w, 3);
	writer_write(&w[0], 1, 1, 4);
	writer_write(&w[2], 1, 1, 4);
	writer_write(&w[2], 1, 1, 12);

	ck_assert_int_eq(perfpersist_event_info(e, &info), 0);
	ck_assert_uint_eq(info.id, WRITER_EVENT_ID);
	ck_assert_str_eq(info.cpus, "2-3,9");
	ck_assert_str_eq(info.event, "sys:tracepoint");
	ck_assert_uint_eq(info.records, 3);
	ck_assert_uint_eq(info.bytes, 32 + 32 + 40);
	ck_assert(info.missed_unknown);
	info.sz--;
	ck_assert_int_eq(perfpersist_event_info(e, &info), -EINVAL);

	ck_assert_uint_eq(perfpersist_event_rings(e), 3);
	ck_assert_int_eq(perfpersist_ring_cpu(e, 0), 9);
	ck_assert_int_eq(perfpersist_ring_cpu(e, 3), -EINVAL);
	ck_assert_int_ge(perfpersist_ring_fd(e, 0), 3);
	ck_assert_int_eq(fcntl(perfpersist_ring_fd(e, 0), F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(perfpersist_ring_stat(e, 2, &stat), 0);
	ck_assert_uint_eq(stat.records, 2);
	ck_assert_uint_eq(stat.bytes, 72);

	w[0].ring[PP_RING_FORMAT_OFFSET] = 'x';
	ck_assert_mem_eq(perfpersist_event_attr(e, &size), &attr, sizeof(attr));
	ck_assert_uint_eq(size, sizeof(attr));
	ck_assert_ptr_nonnull(perfpersist_event_format(e, &size));
	ck_assert_uint_eq(size, sizeof(format) - 1);
	w[0].ring[PP_RING_FORMAT_OFFSET] = 'y'; /* texts returned before stay valid */
	ck_assert_int_eq(*perfpersist_event_format(e, &size), 'x');
	perfpersist_event_free(e);
	for (size_t i = 0; i < 3; i++)
		writer_done(&w[i]);
}
END_TEST

/* ── A writer at full speed ─────────────────────────────────────────────────────────────── */

#define CONCURRENT_RECORDS 100000

static void *write_many(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 1; i <= CONCURRENT_RECORDS; i++)
		writer_write(w, i, i, 4 + 8 * (i % 16));
	return NULL;
}

/* Walks a snapshot: each record whole, in sequence. Returns the newest. */
static uint32_t check_sequence(struct perfpersist_snapshot *s, size_t *ret_n)
{
	struct perfpersist_cursor *c = NULL;
	struct perfpersist_sample sample;
	uint32_t newest = 0;
	size_t n = 0;
	int r;

	ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
	while ((r = perfpersist_cursor_next(c, &sample)) == 1) {
		if (n == 0)
			newest = sample.tid;
		ck_assert_uint_eq(sample.tid, newest - n);
		ck_assert_uint_eq(sample.time, sample.tid);
		ck_assert_uint_eq(sample.raw_size, 4 + 8 * (sample.tid % 16));
		ck_assert(writer_is_whole(&sample));
		n++;
	}
	ck_assert_int_eq(r, 0);
	perfpersist_cursor_free(c);
	*ret_n = n;
	return newest;
}

START_TEST(test_concurrent_writer)
{
	struct writer w = writer_new(0, 4096UL << (3 * _i), 256);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct perfpersist_snapshot *s = writer_snapshot(e);
	uint32_t newest, last = 0;
	pthread_t thread;
	size_t n;

	ck_assert_int_eq(pthread_create(&thread, NULL, write_many, &w), 0);
	do {
		ck_assert_int_eq(perfpersist_snapshot_take(s), 0);
		newest = check_sequence(s, &n);
		if (n > 0) { /* a small ring may be overwritten completely during the copy */
			ck_assert_uint_ge(newest, last);
			last = newest;
		}
	} while (last < CONCURRENT_RECORDS);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_gt(n, (4096UL << (3 * _i)) / 256);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reader");
	TCase *tc = tcase_create("reader");

	tcase_add_test(tc, test_empty);
	tcase_add_test(tc, test_some);
	tcase_add_test(tc, test_exactly_full);
	tcase_add_test(tc, test_wrap_and_spill);
	tcase_add_test(tc, test_reserved);
	tcase_add_test(tc, test_forged_words);
	tcase_add_test(tc, test_damaged_records);
	tcase_add_test(tc, test_record_beyond_begin);
	tcase_add_test(tc, test_stale_cursor);
	tcase_add_test(tc, test_open_what_is_no_ring);
	tcase_add_test(tc, test_open_headers);
	tcase_add_test(tc, test_copy_in_a_file);
	tcase_add_test(tc, test_event);
	tcase_add_loop_test(tc, test_concurrent_writer, 0, 4);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
