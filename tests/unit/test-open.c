// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * OPEN, against a daemon that follows a script: catalogs, copies and their refresh, rings that are
 * replaced between two pages.
 */
#include "proto/clock.h"
#include "tests/unit/catalog-writer.h"
#include "tests/unit/fake-server.h"

#include <dirent.h>
#include "tests/unit/needs.h"

#define REPLY(op) ((op) | PP_OP_REPLY)

static struct writer rings[3];
static int catalog = -EBADF;
static uint64_t asked; /* when the daemon got the last request */
static struct server server;
static struct perfpersist *p;
static size_t fds_before;

static size_t count_fds(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	return n;
}

static void begin(void (*script)(int fd), uint32_t sources)
{
	for (uint32_t i = 0; i < 3; i++)
		rings[i] = sources > 1 ? writer_new_shared(i, 4096, 64, sources)
				       : writer_new(i, 4096, 64);
	catalog = writer_catalog(sources);
	fds_before = count_fds();
	server_start(&server, script);
	p = server_connect(&server);
}

static void end(void)
{
	perfpersist_free(p);
	server_end(&server);
	ck_assert_uint_eq(count_fds(), fds_before);
	for (uint32_t i = 0; i < 3; i++)
		writer_done(&rings[i]);
	catalog = close_fd(catalog);
}

/* One page, of the rings in [first, first + count). */
struct page {
	uint32_t total, first, count, set, copies;
	uint64_t id;
	bool has_catalog;
	uint32_t ring_sets[3]; /* the set in the rings' headers; 0: as in the page */
};

static struct pp_msg_open_request send_page(int fd, const struct page *page)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_OPEN, body);
	struct pp_msg_open_reply *m = &reply->open_reply;
	int fds[4], n = 0;

	asked = pp_clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < 3; i++) /* the client has read the previous page */
		if (page->ring_sets[i])
			rings[i].header->set = page->ring_sets[i];
	*m = (struct pp_msg_open_reply){
		.event = { .id = page->id ? page->id : WRITER_EVENT_ID,
			   .ns = "space",
			   .name = "name",
			   .set = page->set },
		.total = page->total,
		.copies = page->copies,
	};
	if (page->has_catalog) {
		m->catalog_size = (uint32_t)lseek(catalog, 0, SEEK_END);
		fds[n++] = catalog;
	}
	for (; m->count < page->count; m->count++) {
		uint32_t i = page->first + m->count;

		m->cpus[m->count] = (struct pp_msg_cpu){ i, (uint32_t)rings[i].size };
		fds[n++] = rings[i].fd;
	}
	server_send(fd, REPLY(PP_OP_OPEN), serial, reply, fds, (size_t)n);
	return body->open_request;
}

/* ── Catalogs ───────────────────────────────────────────────────────────────────────────── */

static void catalog_script(int fd)
{
	struct pp_msg_open_request m;

	m = send_page(fd, &(struct page){ .total = 3, .count = 2, .has_catalog = true });
	ck_assert_uint_eq(m.flags, 0);
	m = send_page(fd, &(struct page){ .total = 3, .first = 2, .count = 1 });
	ck_assert_uint_eq(m.first, 2);
}

START_TEST(test_catalog)
{
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;
	struct perfpersist_merge *m;
	struct perfpersist_sample sample;

	begin(catalog_script, 3);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), 0);
	ck_assert_uint_eq(perfpersist_event_rings(e), 3);
	ck_assert_uint_eq(perfpersist_event_sources(e), 3);
	ck_assert(!perfpersist_event_is_copy(e));
	writer_write_source(&rings[2], 1, 77, 5);
	s = writer_snapshot(e);
	ck_assert_int_eq(perfpersist_merge_new(s, PERFPERSIST_OLDEST_FIRST, 0, &m), 0);
	ck_assert_int_eq(perfpersist_merge_next(m, &sample), 1);
	ck_assert_uint_eq(sample.source, 1);
	ck_assert_uint_eq(sample.tid, 77);
	perfpersist_merge_free(m);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	end();
}
END_TEST

/* ── A CPU that comes ───────────────────────────────────────────────────────────────────── */

static void cpu_comes_script(int fd)
{
	struct pp_msg_open_request m;

	send_page(fd, &(struct page){ .total = 2, .count = 2 });
	m = send_page(fd, &(struct page){ .total = 3, .count = 3 });
	ck_assert_uint_eq(m.flags, 0);
	ck_assert_uint_eq(m.which.id, WRITER_EVENT_ID);
}

/* A follower of live rings keeps its position, and gets all of the new ring. */
START_TEST(test_cpu_comes)
{
	struct perfpersist_event *e = NULL;
	struct perfpersist_follow *f;
	struct perfpersist_sample sample;

	begin(cpu_comes_script, 1);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), 0);
	ck_assert_uint_eq(perfpersist_event_rings(e), 2);
	writer_write(&rings[0], 70, 4, 12);
	ck_assert_int_eq(perfpersist_follow_new(e, 0, &f), 0);
	writer_write(&rings[0], 71, 5, 12);
	writer_write(&rings[2], 72, 6, 12);
	ck_assert_int_eq(perfpersist_follow_next(f, &sample), 1);
	ck_assert_uint_eq(sample.tid, 71);
	ck_assert_int_eq(perfpersist_follow_next(f, &sample), 0);
	ck_assert_int_eq(perfpersist_event_refresh(e, p), 0);
	ck_assert_uint_eq(perfpersist_event_rings(e), 3);
	ck_assert(!perfpersist_event_is_copy(e));
	writer_write(&rings[0], 73, 7, 12);
	for (unsigned tid = 72; tid <= 73; tid++) {
		ck_assert_int_eq(perfpersist_follow_next(f, &sample), 1);
		ck_assert_uint_eq(sample.tid, tid);
	}
	ck_assert_int_eq(perfpersist_follow_next(f, &sample), 0);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	end();
}
END_TEST

/* ── Pages that are wrong ───────────────────────────────────────────────────────────────── */

static void no_catalog_script(int fd)
{
	send_page(fd, &(struct page){ .total = 3, .count = 3 });
}

static void late_catalog_script(int fd)
{
	send_page(fd, &(struct page){ .total = 3, .count = 1, .has_catalog = true });
	send_page(fd, &(struct page){ .total = 3, .first = 1, .count = 1, .has_catalog = true });
}

static void wrong_catalog_script(int fd)
{
	ck_assert_int_eq(ftruncate(catalog, 64), 0);
	send_page(fd, &(struct page){ .total = 3, .count = 3, .has_catalog = true });
}

/* A ring that is younger than the event, and not shared. */
static void younger_script(int fd)
{
	send_page(fd, &(struct page){ .id = 6, .total = 3, .count = 3, .has_catalog = true });
}

static void unknown_kind_script(int fd)
{
	send_page(fd, &(struct page){ .total = 3, .count = 3, .has_catalog = true, .copies = 2 });
}

START_TEST(test_bad_pages)
{
	static const struct {
		void (*script)(int fd);
		int error;
	} bad[] = {
		{ no_catalog_script, -EINVAL },	    { late_catalog_script, -EBADMSG },
		{ wrong_catalog_script, -EBADMSG }, { younger_script, -EINVAL },
		{ unknown_kind_script, -EBADMSG },
	};
	struct perfpersist_event *e = NULL;

	begin(bad[_i].script, 3);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), bad[_i].error);
	ck_assert_ptr_null(e);
	ck_assert_uint_gt(strlen(perfpersist_error(p)), 20);
	end();
}
END_TEST

/* ── Rings and names of different age ───────────────────────────────────────────────────── */

/* The rings keep the id from their creation; the name that has them now may be younger. */
static void successor_script(int fd)
{
	send_page(fd, &(struct page){ .id = 12, .total = 3, .count = 3 });
}

START_TEST(test_older_rings)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_event *e = NULL;

	begin(successor_script, 1);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), 0);
	ck_assert_int_eq(perfpersist_event_info(e, &info), 0);
	ck_assert_uint_eq(info.id, 12);
	perfpersist_event_free(e);
	end();
}
END_TEST

static void resize_script(int fd)
{
	struct pp_msg_open_request m;

	send_page(fd, &(struct page){ .total = 3, .count = 2, .set = 1 });
	/* The daemon has learned of the new set. */
	m = send_page(fd, &(struct page){ .total = 3, .first = 2, .count = 1, .set = 2 });
	ck_assert_uint_eq(m.first, 2);
	/* The pins were replaced, and the daemon does not know it yet. */
	m = send_page(fd,
		      &(struct page){ .total = 3, .count = 3, .set = 1, .ring_sets = { 1, 2 } });
	ck_assert_uint_eq(m.first, 0);
	m = send_page(fd,
		      &(struct page){ .total = 3, .count = 3, .set = 1, .ring_sets = { 2, 2, 2 } });
	ck_assert_uint_eq(m.first, 0);
}

START_TEST(test_resized_meanwhile)
{
	struct perfpersist_event *e = NULL;

	begin(resize_script, 1);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), 0);
	ck_assert_uint_eq(perfpersist_event_rings(e), 3);
	perfpersist_event_free(e);
	end();
}
END_TEST

static void never_one_set_script(int fd)
{
	for (int i = 0; i < 6; i++)
		send_page(fd, &(struct page){
				      .total = 3, .count = 3, .set = 1, .ring_sets = { 1, 2, 1 } });
}

START_TEST(test_resized_all_the_time)
{
	struct perfpersist_event *e = NULL;

	begin(never_one_set_script, 1);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), -EAGAIN);
	ck_assert_ptr_null(e);
	end();
}
END_TEST

/* ── Copies ─────────────────────────────────────────────────────────────────────────────── */

static pthread_barrier_t turn; /* the script waits until the test has written */

static void copies_script(int fd)
{
	struct pp_msg_open_request m;

	m = send_page(fd,
		      &(struct page){ .total = 2, .count = 1, .copies = 1, .has_catalog = true });
	ck_assert_uint_eq(m.flags, PP_OPEN_COPY);
	m = send_page(fd, &(struct page){ .total = 2, .first = 1, .count = 1, .copies = 1 });
	ck_assert_uint_eq(m.flags, PP_OPEN_COPY);
	/* A CPU came online, and has a ring. */
	m = send_page(fd,
		      &(struct page){ .total = 3, .count = 3, .copies = 1, .has_catalog = true });
	ck_assert_uint_eq(m.which.id, WRITER_EVENT_ID);
	ck_assert_uint_eq(m.flags, PP_OPEN_COPY);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	send_page(fd, &(struct page){ .total = 3, .count = 3, .copies = 1, .has_catalog = true });
}

static size_t drain(struct perfpersist_follow *f, uint32_t *ret_last)
{
	struct perfpersist_sample s;
	size_t n = 0;

	for (; perfpersist_follow_next(f, &s) == 1; n++)
		*ret_last = s.tid;
	return n;
}

/* Until when it is known to have all: before the daemon made the copies. */
static uint64_t end_of(struct perfpersist_event *e)
{
	struct perfpersist_history h = { .sz = sizeof(h) };
	struct perfpersist_interleave *i = NULL;

	ck_assert_int_eq(perfpersist_interleave_new(&e, 1, &i), 0);
	ck_assert_int_eq(perfpersist_interleave_history(i, 0, 0, &h), 0);
	perfpersist_interleave_free(i);
	return h.to;
}

START_TEST(test_copies)
{
	struct perfpersist_follow_stat stat = { .sz = sizeof(stat) };
	struct perfpersist_source source = { .sz = sizeof(source) };
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;
	struct perfpersist_cursor *c;
	struct perfpersist_follow *f = NULL;
	struct perfpersist_sample sample;
	const char *text;
	uint32_t last = 0;
	uint64_t first;

	pthread_barrier_init(&turn, NULL, 2);
	begin(copies_script, 3);
	for (uint32_t i = 1; i <= 5; i++)
		writer_write_source(&rings[0], i % 3, i, i);
	ck_assert_int_eq(perfpersist_open_copy(p, "space", "name", &e), 0);
	ck_assert(perfpersist_event_is_copy(e));
	ck_assert_uint_eq(perfpersist_event_rings(e), 2);
	first = end_of(e);
	ck_assert_uint_gt(first, 0);
	ck_assert_uint_le(first, asked);
	ck_assert_int_eq(perfpersist_event_source(e, 2, &source), 0);
	text = source.event;
	s = writer_snapshot(e);
	ck_assert_int_eq(perfpersist_cursor_new(s, 0, &c), 0);
	ck_assert_int_eq(perfpersist_follow_new(e, 0, &f), 0);

	writer_write_source(&rings[0], 0, 6, 6);
	writer_write_source(&rings[2], 1, 7, 7);
	ck_assert_int_eq(perfpersist_event_refresh(e, p), 0);
	ck_assert_uint_eq(perfpersist_event_rings(e), 3);
	ck_assert_uint_gt(end_of(e), first);
	ck_assert_uint_le(end_of(e), asked);
	ck_assert_mem_eq(text, "sys:event2", 10); /* texts returned before stay valid */
	for (uint32_t i = 5; i > 0; i--) {
		ck_assert_int_eq(perfpersist_cursor_next(c, &sample), 1);
		ck_assert_uint_eq(sample.tid, i);
	}
	ck_assert_int_eq(perfpersist_snapshot_take(s), 0); /* of the new copies */
	ck_assert_int_eq(perfpersist_cursor_next(c, &sample), -ESTALE);
	perfpersist_cursor_free(c);
	ck_assert_int_eq(perfpersist_cursor_new(s, 2, &c), 0);
	ck_assert_int_eq(perfpersist_cursor_next(c, &sample), 1);
	ck_assert_uint_eq(sample.tid, 7);
	ck_assert_int_eq(perfpersist_follow_stat(f, 2, &stat), 0);
	ck_assert_uint_eq(stat.read, 0);
	ck_assert_uint_eq(drain(f, &last), 2);
	ck_assert_uint_eq(last, 7);
	ck_assert_int_eq(perfpersist_follow_stat(f, 2, &stat), 0);
	ck_assert_uint_eq(stat.begin + stat.read + stat.overwritten, 1);

	/* New buffers: the old copies stay, and so do their records. */
	pthread_barrier_wait(&turn);
	for (uint32_t i = 0; i < 3; i++)
		rings[i].header->set = 2;
	pthread_barrier_wait(&turn);
	ck_assert_int_eq(perfpersist_event_refresh(e, p), -ESTALE);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(p), "open it again"));
	ck_assert_uint_eq(drain(f, &last), 0);
	perfpersist_cursor_free(c);
	perfpersist_snapshot_free(s);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	end();
	pthread_barrier_destroy(&turn);
}
END_TEST

/* ── What the rings say of themselves ───────────────────────────────────────────────────── */

START_TEST(test_state)
{
	static const struct {
		uint32_t first, second;
		enum perfpersist_ring_state state;
	} states[] = {
		{ 0, 0, PERFPERSIST_RINGS_RUNNING },
		{ PP_RING_PAUSED, PP_RING_PAUSED, PERFPERSIST_RINGS_PAUSED },
		{ PP_RING_RUNNING, PP_RING_RETIRED, PERFPERSIST_RINGS_RETIRED },
		{ PP_RING_DELETED, PP_RING_PAUSED, PERFPERSIST_RINGS_DELETED },
		{ 4, UINT32_MAX, PERFPERSIST_RINGS_RUNNING },
	};
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
	struct perfpersist_event *e = writer_open(w, 2);

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		w[0].header->live.state = states[i].first;
		w[1].header->live.state = states[i].second;
		ck_assert_int_eq(perfpersist_event_state(e), states[i].state);
	}
	w[1].header->limit.limited = 17;
	w[1].header->live.missed = 18;
	ck_assert_int_eq(perfpersist_ring_stat(e, 1, &stat), 0);
	ck_assert_uint_eq(stat.limited, 17);
	ck_assert_uint_eq(stat.missed, 18);
	perfpersist_event_free(e);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("open");
	TCase *tc = tcase_create("open");

	tcase_add_test(tc, test_catalog);
	tcase_add_test(tc, test_cpu_comes);
	tcase_add_loop_test(tc, test_bad_pages, 0, 5);
	tcase_add_test(tc, test_older_rings);
	tcase_add_test(tc, test_resized_meanwhile);
	tcase_add_test(tc, test_resized_all_the_time);
	tcase_add_test(tc, test_copies);
	tcase_add_test(tc, test_state);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
