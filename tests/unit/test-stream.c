// SPDX-License-Identifier: LGPL-2.1-or-later
/* Following several events: each record once or counted, in order of time, and what becomes of the
 * events. */
#include <poll.h>
#include <sys/eventfd.h>

#include "client/rings/event.h"
#include "proto/clock.h"
#include "tests/unit/fake-server.h"
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

#define EVENTS 3

static uint64_t now(void)
{
	return pp_clock_ns(CLOCK_MONOTONIC);
}

static struct perfpersist_stream *stream_new(struct perfpersist *p, bool at_once)
{
	struct perfpersist_stream_options o = { .sz = sizeof(o), .at_once = at_once };
	struct perfpersist_stream *s = NULL;

	ck_assert_int_eq(perfpersist_stream_new(p, &o, &s), 0);
	return s;
}

static void add(struct perfpersist_stream *s, const struct writer *w, int number)
{
	struct perfpersist_event *e = writer_open(w, 1);

	e->is_copy = false; /* as files are, which nobody writes to any more */
	ck_assert_int_eq(perfpersist_stream_add(s, e, SIZE_MAX), number);
	perfpersist_event_free(e); /* it keeps what it needs */
}

static struct perfpersist_stream_item next(struct perfpersist_stream *s)
{
	struct perfpersist_stream_item item = { .sz = sizeof(item) };

	ck_assert(perfpersist_stream_next(s, &item) == 1);
	ck_assert(item.sz == sizeof(item));
	ck_assert(item.kind != PERFPERSIST_STREAM_RECORD ||
		  (writer_is_whole(&item.sample) && item.time == item.sample.time));
	return item;
}

static void expect_record(struct perfpersist_stream *s, size_t event, uint32_t tid)
{
	struct perfpersist_stream_item item = next(s);

	ck_assert_uint_eq(item.kind, PERFPERSIST_STREAM_RECORD);
	ck_assert_uint_eq(item.event, event);
	ck_assert_uint_eq(item.sample.tid, tid);
}

static void expect_kind(struct perfpersist_stream *s, enum perfpersist_stream_kind kind,
			size_t event)
{
	struct perfpersist_stream_item item = next(s);

	ck_assert_uint_eq(item.kind, kind);
	ck_assert_uint_eq(item.event, event);
}

static void expect_nothing(struct perfpersist_stream *s)
{
	struct perfpersist_stream_item item = { .sz = sizeof(item) };

	ck_assert_int_eq(perfpersist_stream_next(s, &item), 0);
}

static void set_state(struct writer *w, enum pp_ring_state state)
{
	atomic_store((_Atomic uint32_t *)WRITER_WORD(w, state), (uint32_t)state);
}

/* Rounds in which events are written to in turn, as they are looked at in turn: what comes to the
 * first when it has been looked at is older than what is found with the last. */
START_TEST(test_order)
{
	struct perfpersist_stream *s = stream_new(NULL, false);
	uint32_t written[EVENTS] = {}, read[EVENTS] = {};
	uint64_t last = 0;
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer w[EVENTS];

	srand(3);
	for (size_t k = 0; k < EVENTS; k++) {
		w[k] = writer_new((uint32_t)k, 1 << 16, 64);
		add(s, &w[k], (int)k);
	}
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 20; i++) {
			size_t k = (size_t)rand() % EVENTS;

			/* It is written a moment after its time, and after others' that are of later. */
			writer_write(&w[k], written[k]++, now() - (uint64_t)rand() % 1000000, 4);
		}
		ck_assert(perfpersist_stream_dispatch(s) == 0);
		if (round == 299) {
			perfpersist_stream_stop(s);
			ck_assert(perfpersist_stream_dispatch(s) == 0);
		}
		while (perfpersist_stream_next(s, &item) == 1 &&
		       item.kind == PERFPERSIST_STREAM_RECORD) {
			ck_assert(item.time >= last);
			ck_assert(writer_is_whole(&item.sample));
			ck_assert(item.sample.cpu == item.event);
			read[item.event]++;
			last = item.time;
		}
	}
	ck_assert_uint_eq(item.kind, PERFPERSIST_STREAM_END);
	expect_nothing(s);
	for (size_t k = 0; k < EVENTS; k++) {
		ck_assert_uint_eq(read[k], written[k]);
		writer_done(&w[k]);
	}
	perfpersist_stream_free(s);
}
END_TEST

/* What is younger than a moment waits for what may come before it. */
START_TEST(test_late)
{
	struct perfpersist_stream *s = stream_new(NULL, false);
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	uint64_t time;

	add(s, &w[0], 0);
	add(s, &w[1], 1);
	time = now();
	writer_write(&w[1], 2, time + 1000000, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	if (now() < time + 5000000)
		expect_nothing(s);
	ck_assert_uint_le(perfpersist_stream_delay(s), 5000000);
	writer_write(&w[0], 1, time, 4);
	while (now() < time + 7000000)
		poll(NULL, 0, 1);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	expect_record(s, 1, 2);
	expect_nothing(s);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

START_TEST(test_at_once)
{
	struct perfpersist_stream *s = stream_new(NULL, true);
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	uint64_t time = now();

	add(s, &w[0], 0);
	add(s, &w[1], 1);
	writer_write(&w[0], 2, time + 2, 4);
	writer_write(&w[1], 1, time + 1, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 1, 1);
	expect_record(s, 0, 2);
	expect_nothing(s);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* Read or overwritten: each is one of these, and is told once, where it is missing. */
START_TEST(test_overwritten)
{
	struct perfpersist_stream *s = stream_new(NULL, true);
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer w = writer_new(0, 4096, 64);
	uint64_t read = 0, overwritten = 0, told = 0, read_before;
	uint32_t expected = 0;

	add(s, &w, 0);
	for (uint32_t i = 0; i < 3000; i++) {
		writer_write(&w, i, pp_clock_ns(CLOCK_MONOTONIC), 4);
		if (i % 1000 != 999)
			continue;
		ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
		read_before = read;
		for (told = 0; perfpersist_stream_next(s, &item) == 1;) {
			if (item.kind == PERFPERSIST_STREAM_OVERWRITTEN) {
				overwritten += item.count;
				told++;
				ck_assert(i == 999 || read == read_before);
				continue;
			}
			ck_assert(item.sample.tid >= expected);
			expected = item.sample.tid + 1;
			read++;
		}
		ck_assert_uint_eq(expected, i + 1);
		ck_assert_uint_eq(told, 1);
		ck_assert_uint_eq(read + overwritten, i + 1);
	}
	perfpersist_stream_free(s);
	writer_done(&w);
}
END_TEST

/* An event that goes is read to its end, and the others go on; with the last one all ends. */
START_TEST(test_ends)
{
	struct perfpersist_stream *s = stream_new(NULL, true);
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };

	add(s, &w[0], 0);
	add(s, &w[1], 1);
	set_state(&w[1], PP_RING_PAUSED);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_kind(s, PERFPERSIST_STREAM_PAUSED, 1);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_nothing(s);
	set_state(&w[1], PP_RING_RUNNING);
	writer_write(&w[0], 1, 1, 4);
	set_state(&w[0], PP_RING_DELETED);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	expect_kind(s, PERFPERSIST_STREAM_DELETED, 0);
	expect_kind(s, PERFPERSIST_STREAM_RESUMED, 1);
	writer_write(&w[0], 2, 2, 4); /* too late */
	writer_write(&w[1], 3, 3, 4);
	set_state(&w[1], PP_RING_RETIRED); /* nobody tells of the others */
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 1, 3);
	expect_kind(s, PERFPERSIST_STREAM_DELETED, 1);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	expect_nothing(s);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_nothing(s);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* In order of time, too, the end comes behind the last record. */
START_TEST(test_ends_late)
{
	struct perfpersist_stream *s = stream_new(NULL, false);
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };

	add(s, &w[0], 0);
	add(s, &w[1], 1);
	writer_write(&w[0], 1, now(), 4);
	set_state(&w[0], PP_RING_DELETED);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	writer_write(&w[1], 2, now(), 4);
	perfpersist_stream_stop(s);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	expect_kind(s, PERFPERSIST_STREAM_DELETED, 0);
	expect_record(s, 1, 2);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* What was recorded after the stop is left out. */
START_TEST(test_stop)
{
	struct perfpersist_stream *s = stream_new(NULL, false);
	struct writer w = writer_new(0, 4096, 64);

	add(s, &w, 0);
	writer_write(&w, 1, now(), 4);
	perfpersist_stream_stop(s);
	writer_write(&w, 2, now() + 1, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	perfpersist_stream_free(s);
	writer_done(&w);
}
END_TEST

/* More than a stream holds, of an event that others are far behind. */
START_TEST(test_far_behind)
{
	struct perfpersist_stream *s = stream_new(NULL, false);
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer w[2] = { writer_new(0, 1 << 26, 8192), writer_new(1, 1 << 26, 8192) };
	uint64_t last = 0, time = 1;
	size_t n[2] = {}, rounds = 0;
	bool ended = false;

	for (uint32_t i = 0; i < 8000; i++, time += 1000000)
		writer_write(&w[1], i, time, 8004);
	for (uint32_t i = 0; i < 8000; i++, time += 1000000)
		writer_write(&w[0], i, time, 8004);
	add(s, &w[0], 0);
	add(s, &w[1], 1);
	perfpersist_stream_stop(s);
	while (!ended) {
		int more = perfpersist_stream_dispatch(s);
		size_t some = 0;

		ck_assert(more >= 0);
		for (; perfpersist_stream_next(s, &item) == 1; some++) {
			if (item.kind == PERFPERSIST_STREAM_END) {
				ended = true;
				break;
			}
			ck_assert(item.kind == PERFPERSIST_STREAM_RECORD);
			ck_assert(item.time > last && item.sample.tid == n[item.event]);
			last = item.time;
			n[item.event]++;
		}
		ck_assert(some > 0); /* it gets on */
		rounds++;
		ck_assert(ended == !more);
	}
	ck_assert_uint_eq(n[0], 8000);
	ck_assert_uint_eq(n[1], 8000);
	ck_assert_uint_gt(rounds, 1);
	ck_assert_uint_lt(rounds, 100);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

START_TEST(test_damaged)
{
	struct perfpersist_stream *s = stream_new(NULL, true);
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };

	add(s, &w[0], 0);
	add(s, &w[1], 1);
	writer_write(&w[0], 1, 1, 4);
	atomic_store(WRITER_WORD(&w[1], head), 3);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), -EBADMSG);
	ck_assert_str_eq(perfpersist_error(NULL),
			 "cannot go on reading space/name: a ring is damaged");
	expect_kind(s, PERFPERSIST_STREAM_CUT, 1);
	expect_record(s, 0, 1);
	expect_nothing(s);
	/* It is told once, and the other event goes on. */
	writer_write(&w[0], 2, 2, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 2);
	/* Also if the stream is stopped: it ends as any other. */
	writer_write(&w[0], 3, 3, 4);
	atomic_store(WRITER_WORD(&w[0], head), 3);
	perfpersist_stream_stop(s);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), -EBADMSG);
	expect_kind(s, PERFPERSIST_STREAM_CUT, 0);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* What a full event has not read is not claimed, though its rings were looked at since. */
START_TEST(test_damaged_full)
{
	enum { N = 3000, OTHERS = 7 };
	struct perfpersist_stream *s = stream_new(NULL, true);
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer w = writer_new(0, 1 << 25, 8192), other = writer_new(0, 4096, 64);
	uint32_t read = 0;
	uint64_t time;
	int r;

	for (uint32_t i = 0; i < N; i++)
		writer_write(&w, i, i + 1, 8004);
	add(s, &w, 0);
	for (int i = 1; i <= OTHERS; i++) /* the more events, the smaller each share */
		add(s, &other, i);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 1);
	while (perfpersist_stream_next(s, &item) == 1)
		read++;
	time = now();
	writer_write(&w, N, time, 8004);
	atomic_store(WRITER_WORD(&w, head), 3);
	do {
		r = perfpersist_stream_dispatch(s);
		while (perfpersist_stream_next(s, &item) == 1)
			if (item.kind == PERFPERSIST_STREAM_CUT)
				ck_assert_uint_le(item.time, time);
			else
				read++;
	} while (r == 1);
	ck_assert_int_eq(r, -EBADMSG);
	ck_assert_uint_eq(read, N);
	perfpersist_stream_free(s);
	writer_done(&w);
	writer_done(&other);
}
END_TEST

/* More than an event's share, all an hour ahead of this clock: all is returned, and no caller is
 * told again and again that there is more while nothing is returned. */
START_TEST(test_future)
{
	struct perfpersist_stream *s = stream_new(NULL, false);
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer w[2] = { writer_new(0, 1 << 27, 8192), writer_new(1, 4096, 64) };
	uint64_t time = now() + 3600000000000ULL;
	unsigned items = 0, in_vain = 0;

	for (uint32_t i = 0; i < 16000; i++)
		writer_write(&w[0], i, time + i, 8004);
	add(s, &w[0], 0);
	add(s, &w[1], 1);
	while (items < 16000) {
		bool more = perfpersist_stream_dispatch(s) == 1;
		unsigned before = items;

		while (perfpersist_stream_next(s, &item) == 1)
			items++;
		in_vain = more && items == before ? in_vain + 1 : 0;
		ck_assert_uint_lt(in_vain, 10);
		if (!more && items < 16000)
			poll(NULL, 0, (int)(perfpersist_stream_delay(s) / 1000000) + 1);
	}
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* Records whose time does not advance are returned before all of them have been read. */
START_TEST(test_still)
{
	enum { N = 1500000 };
	struct perfpersist_stream *s = stream_new(NULL, false);
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer w = writer_new(0, 1 << 26, 64);
	unsigned items = 0, most = 0;
	bool is_over = false;

	for (uint32_t i = 0; i < N; i++)
		writer_write(&w, i, 1, 4);
	add(s, &w, 0);
	perfpersist_stream_stop(s);
	while (!is_over) {
		unsigned n = 0;

		ck_assert_int_ge(perfpersist_stream_dispatch(s), 0);
		while (!is_over && perfpersist_stream_next(s, &item) == 1) {
			is_over = item.kind == PERFPERSIST_STREAM_END;
			n += item.kind == PERFPERSIST_STREAM_RECORD;
		}
		most = MAX(most, n);
		items += n;
	}
	ck_assert_uint_eq(items, N);
	ck_assert_uint_lt(most, N);
	perfpersist_stream_free(s);
	writer_done(&w);
}
END_TEST

static void refused_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	struct pp_msg_notice m = { .kind = PP_NOTICE_STARTED };
	uint32_t serial = server_expect(fd, PP_OP_WATCH, body);

	ck_assert_str_eq(body->watch_request.ns, "space");
	server_send(fd, PP_OP_WATCH | PP_OP_REPLY, serial, &m, NULL, 0);
}

/* One watch for both events; then the daemon goes. */
START_TEST(test_unattended)
{
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	struct perfpersist_stream *s;
	struct server server;
	struct pollfd pfd = { .events = POLLIN };

	server_start(&server, refused_script);
	s = stream_new(server_connect(&server), true);
	add(s, &w[0], 0);
	add(s, &w[1], 1);
	server_end(&server);
	pfd.fd = perfpersist_stream_fd(s);
	ck_assert_int_eq(poll(&pfd, 1, -1), 1);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_kind(s, PERFPERSIST_STREAM_UNATTENDED, 0);
	expect_nothing(s);
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	writer_write(&w[1], 1, 1, 4); /* it goes on looking */
	ck_assert_uint_le(perfpersist_stream_delay(s), 100000000);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 1, 1);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* Answers OPEN with the rings themselves, also if copies are asked for. */
static void send_rings(int fd, const struct writer *w, uint32_t n, uint32_t flags)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*reply));
	uint32_t serial = server_expect(fd, PP_OP_OPEN, body);
	struct pp_msg_open_reply *m = &reply->open_reply;
	int fds[2];

	ck_assert_uint_eq(body->open_request.flags, flags);
	*m = (struct pp_msg_open_reply){
		.event = { .id = WRITER_EVENT_ID, .ns = "space", .name = "name" },
		.total = n,
		.copies = flags & PP_OPEN_COPY ? n : 0,
		.count = n,
	};
	m->event.set = w->header->set;
	for (uint32_t i = 0; i < n; i++) {
		m->cpus[i] = (struct pp_msg_cpu){ w[i].header->cpu, (uint32_t)w[i].size };
		fds[i] = w[i].fd;
	}
	server_send(fd, PP_OP_OPEN | PP_OP_REPLY, serial, reply, fds, n);
}

static void refuse_open(int fd, int error)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	server_error(fd, server_expect(fd, PP_OP_OPEN, body), error, "not now");
}

/* Answers the look at those that an event with live rings may have got. */
static void refuse_look(int fd)
{
	refuse_open(fd, ENOENT);
}

static struct writer both[2];

/* The event has two rings by now. */
static struct perfpersist_stream *follow_first(struct server *server, void (*script)(int fd))
{
	struct perfpersist_stream *s;

	both[0] = writer_new(0, 4096, 64);
	both[1] = writer_new(1, 4096, 64);
	server_start(server, script);
	s = stream_new(server_connect(server), true);
	add(s, both, 0);
	return s;
}

static void follow_end(struct server *server, struct perfpersist_stream *s)
{
	server_end(server);
	perfpersist_stream_free(s);
	writer_done(&both[0]);
	writer_done(&both[1]);
}

static void between_script(int fd)
{
	refused_script(fd);
	send_rings(fd, both, 2, 0);
}

/* A CPU came before the stream was told of such things. */
START_TEST(test_between)
{
	struct server server;
	struct perfpersist_stream *s = follow_first(&server, between_script);

	writer_write(&both[1], 1, 1, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	expect_nothing(s);
	follow_end(&server, s);
}
END_TEST

static void told_script(int fd)
{
	refused_script(fd);
	refuse_look(fd);
	send_rings(fd, both, 2, 0);
}

/* Or before it stopped, and nobody has told it yet. */
START_TEST(test_between_and_stop)
{
	struct server server;
	struct perfpersist_stream *s = follow_first(&server, told_script);

	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	writer_write(&both[1], 1, 1, 4);
	perfpersist_stream_stop(s);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	follow_end(&server, s);
}
END_TEST

static struct writer newer; /* another set */

static void changing_script(int fd)
{
	refused_script(fd);
	send_rings(fd, &newer, 1, 0); /* the look */
	send_rings(fd, &newer, 1, 0); /* opened again */
}

static void never_marked_script(int fd)
{
	refused_script(fd);
	send_rings(fd, &newer, 1, 0);
	send_rings(fd, &newer, 1, 0); /* another look */
	send_rings(fd, &newer, 1, 0);
}

/* The daemon gives new rings while programs still write into the old ones, which are not marked: all of that is read, or
 * there is a gap, where the mark never comes. */
START_TEST(test_changing)
{
	struct perfpersist_stream_item item;
	struct perfpersist_stream *s;
	struct server server;

	newer = writer_new(0, 4096, 64);
	newer.header->set = 2;
	s = follow_first(&server, _i ? never_marked_script : changing_script);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_nothing(s);
	writer_write(&both[0], 1, 1, 4);
	writer_write(&newer, 2, 2, 4);
	if (_i)
		usleep(600000); /* an interval of looks */
	else
		set_state(&both[0], PP_RING_RETIRED);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	item = next(s);
	ck_assert_uint_eq(item.kind, PERFPERSIST_STREAM_RESIZED);
	ck_assert_int_eq(item.gap, _i);
	expect_record(s, 0, 2);
	follow_end(&server, s);
	writer_done(&newer);
}
END_TEST

static int waker;

static void unwatched_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	struct pp_msg_wakeup_reply reply = { .id = 5 };
	uint32_t serial = server_expect(fd, PP_OP_WAKEUP, body);

	waker = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	server_send(fd, PP_OP_WAKEUP | PP_OP_REPLY, serial, &reply, &waker, 1);
	serial = server_expect(fd, PP_OP_WATCH, body);
	server_error(fd, serial, EBUSY, "too many watch");
}

/* An event that could not be added wakes nobody, though the daemon still has its eventfd. */
START_TEST(test_not_added)
{
	struct perfpersist_stream_options o = { .sz = sizeof(o), .wakeup = true };
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct perfpersist_stream *s = NULL;
	struct server server;
	struct pollfd pfd = { .events = POLLIN };

	e->is_copy = false;
	server_start(&server, unwatched_script);
	ck_assert_int_eq(perfpersist_stream_new(server_connect(&server), &o, &s), 0);
	ck_assert_int_eq(perfpersist_stream_add(s, e, SIZE_MAX), -EBUSY);
	pfd.fd = perfpersist_stream_fd(s);
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	server_end(&server);
	close(waker);
	perfpersist_stream_free(s);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* ── Copies ─────────────────────────────────────────────────────────────────────────────── */

static struct writer copied; /* what the daemon copies from */

static void send_copies(int fd)
{
	send_rings(fd, &copied, 1, PP_OPEN_COPY);
}

static void add_copy(struct perfpersist_stream *s, const struct writer *w, int number)
{
	struct perfpersist_event *e = writer_open(w, 1);

	ck_assert(perfpersist_event_is_copy(e));
	ck_assert_int_eq(perfpersist_stream_add(s, e, SIZE_MAX), number);
	perfpersist_event_free(e);
}

static void copied_script(int fd)
{
	send_copies(fd); /* the first refresh */
	send_copies(fd); /* opened again */
}

/* The old rings recorded on after their last copy: there is a gap, though no rings were left out. */
START_TEST(test_copy_resized)
{
	struct perfpersist_stream_item item;
	struct perfpersist_stream *s;
	struct server server;
	struct writer old = writer_new(0, 4096, 64);

	copied = writer_new(0, 4096, 64);
	copied.header->set = 2;
	server_start(&server, copied_script);
	s = stream_new(server_connect(&server), true);
	add_copy(s, &old, 0);
	writer_write(&old, 1, 1, 4);
	writer_write(&copied, 2, 2, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	item = next(s);
	ck_assert_uint_eq(item.kind, PERFPERSIST_STREAM_RESIZED);
	ck_assert(item.gap);
	expect_record(s, 0, 2);
	expect_nothing(s);
	server_end(&server);
	perfpersist_stream_free(s);
	writer_done(&old);
	writer_done(&copied);
}
END_TEST

static void later_script(int fd)
{
	refuse_open(fd, EDQUOT);
	refuse_open(fd, ENOMEM);
	send_copies(fd); /* of other rings */
	refuse_open(fd, EAGAIN);
	send_copies(fd);
}

/* Copies that are refused come later, those of new rings, too. */
START_TEST(test_copies_come_later)
{
	struct writer old = writer_new(0, 4096, 64);
	struct perfpersist_stream *s;
	struct server server;
	int r;

	copied = writer_new(0, 4096, 64);
	copied.header->set = 2;
	server_start(&server, later_script);
	s = stream_new(server_connect(&server), true);
	add_copy(s, &old, 0);
	writer_write(&old, 1, 1, 4);
	writer_write(&copied, 2, 2, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 1);
	perfpersist_stream_stop(s);
	while ((r = perfpersist_stream_dispatch(s)) == 1)
		expect_nothing(s);
	ck_assert_int_eq(r, 0);
	expect_kind(s, PERFPERSIST_STREAM_RESIZED, 0);
	expect_record(s, 0, 2);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	server_end(&server);
	perfpersist_stream_free(s);
	writer_done(&old);
	writer_done(&copied);
}
END_TEST

/* The daemon's end is that of an event that is copied, and not that of one with live rings. */
START_TEST(test_copies_deserted)
{
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	struct perfpersist_stream *s;
	struct server server;

	server_start(&server, refused_script);
	s = stream_new(server_connect(&server), true);
	add(s, &w[0], 0);
	add_copy(s, &w[1], 1);
	server_end(&server);
	writer_write(&w[0], 1, 1, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), -ECONNRESET);
	ck_assert_str_eq(perfpersist_error(NULL), "cannot go on reading space/name: "
						  "the connection to perfpersistd has ended");
	expect_kind(s, PERFPERSIST_STREAM_CUT, 1);
	expect_record(s, 0, 1);
	expect_kind(s, PERFPERSIST_STREAM_UNATTENDED, 0);
	writer_write(&w[0], 2, 2, 4);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_record(s, 0, 2);
	expect_nothing(s);
	perfpersist_stream_free(s);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

#define LIVE 7

static void one_copy_script(int fd)
{
	refused_script(fd);
	for (int i = 0; i < LIVE; i++)
		refuse_look(fd);
	send_copies(fd);
}

/* The daemon goes when a part of a copy has been read: the rest is read, too, and is not missing. */
START_TEST(test_full_copy_deserted)
{
	enum { N = 3000 };
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct writer other = writer_new(0, 4096, 64);
	struct perfpersist_stream *s;
	struct server server;
	uint64_t begin = now(), cut = 0;
	uint32_t read = 0;
	bool failed = false;

	copied = writer_new(0, 1 << 25, 8192);
	for (uint32_t i = 0; i < N; i++)
		writer_write(&copied, i, i + 1, 8004);
	server_start(&server, one_copy_script);
	s = stream_new(server_connect(&server), true);
	for (int i = 0; i < LIVE; i++) /* the more events, the smaller each share */
		add(s, &other, i);
	add_copy(s, &copied, LIVE);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 1);
	server_end(&server);
	perfpersist_stream_stop(s); /* asks again at once */
	do {
		while (perfpersist_stream_next(s, &item) == 1) {
			read += item.kind == PERFPERSIST_STREAM_RECORD;
			if (item.kind == PERFPERSIST_STREAM_CUT)
				cut = item.time;
		}
		failed |= perfpersist_stream_dispatch(s) == -ECONNRESET;
	} while (item.kind != PERFPERSIST_STREAM_END);
	ck_assert(failed);
	ck_assert_uint_eq(read, N);
	ck_assert_uint_ge(cut, begin);
	perfpersist_stream_free(s);
	writer_done(&copied);
	writer_done(&other);
}
END_TEST

static void busy_script(int fd, int looks, int attempts)
{
	char more;

	refused_script(fd);
	for (int i = 0; i < looks; i++)
		refuse_look(fd);
	for (int i = 0; i < attempts; i++)
		refuse_open(fd, EAGAIN);
	ck_assert_int_eq(recv(fd, &more, sizeof(more), 0), 0);
}

static void busy_once_script(int fd)
{
	busy_script(fd, 1, 20);
}

/* The last copy of an event is refused, while another has more than its share: the attempts end all
 * the same, and then all of the other is returned. */
START_TEST(test_last_copy_refused)
{
	enum { N = 8000 };
	struct writer w[2] = { writer_new(0, 1 << 26, 8192), writer_new(1, 4096, 64) };
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct perfpersist_stream *s;
	struct server server;
	uint32_t read = 0, cut = 0;
	int r;

	for (uint32_t i = 0; i < N; i++)
		writer_write(&w[0], i, 1 + i * 1000000ULL, 8004);
	server_start(&server, busy_once_script);
	s = stream_new(server_connect(&server), false);
	add(s, &w[0], 0);
	add_copy(s, &w[1], 1);
	perfpersist_stream_stop(s);
	do {
		r = perfpersist_stream_dispatch(s);
		while (perfpersist_stream_next(s, &item) == 1) {
			read += item.kind == PERFPERSIST_STREAM_RECORD;
			cut += item.kind == PERFPERSIST_STREAM_CUT && item.event == 1;
		}
	} while (r > 0);
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_uint_eq(read, N);
	ck_assert_uint_eq(cut, 1);
	ck_assert_uint_eq(item.kind, PERFPERSIST_STREAM_END);
	perfpersist_stream_free(s);
	server_end(&server);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

static void by_turns_script(int fd)
{
	char more;

	send_copies(fd);
	refuse_open(fd, EAGAIN); /* that of the second event */
	send_copies(fd);
	ck_assert_int_eq(recv(fd, &more, sizeof(more), 0), 0);
}

/* An event that has its last copy is not copied again while another's is refused. */
START_TEST(test_last_copies_by_turns)
{
	struct perfpersist_stream *s;
	struct server server;
	int r;

	copied = writer_new(0, 4096, 64);
	server_start(&server, by_turns_script);
	s = stream_new(server_connect(&server), false);
	add_copy(s, &copied, 0);
	add_copy(s, &copied, 1);
	writer_write(&copied, 1, 1, 4);
	perfpersist_stream_stop(s);
	while ((r = perfpersist_stream_dispatch(s)) == 1)
		expect_nothing(s);
	ck_assert_int_eq(r, 0);
	expect_record(s, 0, 1);
	expect_record(s, 1, 1);
	expect_kind(s, PERFPERSIST_STREAM_END, 0);
	perfpersist_stream_free(s);
	server_end(&server);
	writer_done(&copied);
}
END_TEST

static void no_rings_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	struct pp_msg_wakeup_reply reply = { .id = 5 };
	uint32_t serial = server_expect(fd, PP_OP_WAKEUP, body);

	waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server_send(fd, PP_OP_WAKEUP | PP_OP_REPLY, serial, &reply, &waker, 1);
	busy_script(fd, 0, 1);
}

/* Nobody wakes a stream when it can have the new rings: it asks by itself, and soon. */
START_TEST(test_new_rings_refused)
{
	struct perfpersist_stream_options o = {
		.sz = sizeof(o),
		.wakeup = true,
		.at_once = true,
	};
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_stream *s = NULL;
	struct server server;

	server_start(&server, no_rings_script);
	ck_assert_int_eq(perfpersist_stream_new(server_connect(&server), &o, &s), 0);
	add(s, &w, 0);
	set_state(&w, PP_RING_RETIRED);
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_nothing(s);
	ck_assert_uint_le(perfpersist_stream_delay(s), 500000000);
	perfpersist_stream_free(s);
	server_end(&server);
	close(waker);
	writer_done(&w);
}
END_TEST

static void busy_twice_script(int fd)
{
	busy_script(fd, 0, 40);
}

/* The attempts for an event begin when those for an earlier one have ended: both are cut. */
START_TEST(test_last_copies_refused)
{
	enum { N = 8000 };
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 1 << 26, 8192) };
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	struct perfpersist_stream *s;
	struct server server;
	uint32_t read = 0, cut[2] = {};
	int r;

	for (uint32_t i = 0; i < N; i++)
		writer_write(&w[1], i, 1 + i * 1000000ULL, 8004);
	server_start(&server, busy_twice_script);
	s = stream_new(server_connect(&server), false);
	add_copy(s, &w[0], 0);
	add(s, &w[1], 1); /* more than its share is read before new rings are asked for */
	set_state(&w[1], PP_RING_RETIRED);
	perfpersist_stream_stop(s);
	do {
		r = perfpersist_stream_dispatch(s);
		while (perfpersist_stream_next(s, &item) == 1) {
			read += item.kind == PERFPERSIST_STREAM_RECORD;
			if (item.kind == PERFPERSIST_STREAM_CUT)
				cut[item.event]++;
		}
	} while (r > 0);
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_uint_eq(read, N);
	ck_assert_uint_eq(cut[0], 1);
	ck_assert_uint_eq(cut[1], 1);
	ck_assert_uint_eq(item.kind, PERFPERSIST_STREAM_END);
	perfpersist_stream_free(s);
	server_end(&server);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

START_TEST(test_refused)
{
	struct perfpersist_stream_options o = { .sz = sizeof(o) - 1 };
	struct perfpersist_stream_item item = { .sz = sizeof(item) - 1 };
	struct perfpersist_stream *s = NULL;

	ck_assert_int_eq(perfpersist_stream_new(NULL, &o, &s), -EINVAL);
	ck_assert_ptr_null(s);
	s = stream_new(NULL, false);
	ck_assert_int_eq(perfpersist_stream_next(s, &item), -EINVAL);
	ck_assert_ptr_null(perfpersist_stream_event(s, 0));
	ck_assert_int_eq(perfpersist_stream_dispatch(s), 0);
	expect_kind(s, PERFPERSIST_STREAM_END, 0); /* there is nothing to follow */
	perfpersist_stream_free(s);
	perfpersist_stream_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream");
	TCase *t = tcase_create("all");

	tcase_add_test(t, test_order);
	tcase_add_test(t, test_late);
	tcase_add_test(t, test_at_once);
	tcase_add_test(t, test_overwritten);
	tcase_add_test(t, test_ends);
	tcase_add_test(t, test_ends_late);
	tcase_add_test(t, test_stop);
	tcase_add_test(t, test_far_behind);
	tcase_add_test(t, test_damaged);
	tcase_add_test(t, test_damaged_full);
	tcase_add_test(t, test_future);
	tcase_add_test(t, test_still);
	tcase_add_test(t, test_unattended);
	tcase_add_test(t, test_between);
	tcase_add_test(t, test_between_and_stop);
	tcase_add_loop_test(t, test_changing, 0, 2);
	tcase_add_test(t, test_not_added);
	tcase_add_test(t, test_copy_resized);
	tcase_add_test(t, test_copies_come_later);
	tcase_add_test(t, test_copies_deserted);
	tcase_add_test(t, test_full_copy_deserted);
	tcase_add_test(t, test_last_copy_refused);
	tcase_add_test(t, test_last_copies_by_turns);
	tcase_add_test(t, test_new_rings_refused);
	tcase_add_test(t, test_last_copies_refused);
	tcase_add_test(t, test_refused);
	suite_add_tcase(s, t);
	return run_suite(s);
}
