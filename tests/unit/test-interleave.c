// SPDX-License-Identifier: LGPL-2.1-or-later
/* Snapshots of several events: their records in order of time, and how far back they reach. */
#include "client/rings/event.h"
#include "proto/clock.h"
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

#define EVENTS 3
#define RINGS 2

struct expected {
	size_t event;
	uint32_t cpu, tid;
};

static void expect(struct perfpersist_interleave *i, const struct expected *expected)
{
	struct perfpersist_sample s;
	size_t event;

	ck_assert_int_eq(perfpersist_interleave_next(i, &s, &event), 1);
	ck_assert_uint_eq(event, expected->event);
	ck_assert_uint_eq(s.cpu, expected->cpu);
	ck_assert_uint_eq(s.tid, expected->tid);
	ck_assert(writer_is_whole(&s));
}

static void expect_end(struct perfpersist_interleave *i)
{
	struct perfpersist_sample s;
	size_t event;

	ck_assert_int_eq(perfpersist_interleave_next(i, &s, &event), 0);
	ck_assert_int_eq(perfpersist_interleave_next(i, &s, &event), 0);
}

static struct perfpersist_interleave *interleave(struct writer w[][RINGS], size_t n)
{
	struct perfpersist_event *events[EVENTS] = { NULL };
	struct perfpersist_interleave *i = NULL;

	for (size_t k = 0; k < n; k++) {
		events[k] = writer_open(w[k], RINGS);
		events[k]->is_copy = false; /* as files are */
	}
	ck_assert_int_eq(perfpersist_interleave_new(events, n, &i), 0);
	for (size_t k = 0; k < n; k++)
		perfpersist_event_free(events[k]); /* it keeps what it needs */
	return i;
}

static void make(struct writer w[][RINGS], size_t n, uint64_t size)
{
	for (size_t k = 0; k < n; k++)
		for (uint32_t cpu = 0; cpu < RINGS; cpu++)
			w[k][cpu] = writer_new(cpu, size, 64);
}

static void done(struct writer w[][RINGS], size_t n)
{
	for (size_t k = 0; k < n; k++)
		for (size_t cpu = 0; cpu < RINGS; cpu++)
			writer_done(&w[k][cpu]);
}

/* The last three have one time: the earlier event first, and within one the earlier ring. */
START_TEST(test_order)
{
	static const struct expected expected[] = {
		{ 0, 1, 1 }, { 2, 0, 2 }, { 2, 0, 3 }, { 1, 1, 4 }, { 0, 0, 5 },
		{ 2, 1, 6 }, { 1, 0, 7 }, { 0, 0, 8 }, { 0, 1, 9 }, { 2, 0, 10 },
	};
	struct writer w[EVENTS][RINGS];
	struct perfpersist_interleave *i;

	make(w, EVENTS, 4096);
	for (size_t k = 0; k < ARRAY_SIZE(expected); k++)
		writer_write(&w[expected[k].event][expected[k].cpu], expected[k].tid,
			     10 * MIN(k, (size_t)7) + 1, 4);
	i = interleave(w, EVENTS);
	writer_write(&w[0][0], 99, 15, 4); /* behind the moment */
	for (size_t k = 0; k < ARRAY_SIZE(expected); k++)
		expect(i, &expected[k]);
	expect_end(i);
	for (size_t k = 0; k < EVENTS; k++)
		ck_assert_uint_eq(perfpersist_interleave_begin(i, k), 0);
	ck_assert_uint_eq(perfpersist_interleave_damaged(i), 0);
	perfpersist_interleave_free(i);
	done(w, EVENTS);
}
END_TEST

/* Against sorting, with more records than the rings hold. */
START_TEST(test_many)
{
	uint64_t last = 0, begin[EVENTS] = {}, oldest[EVENTS][RINGS] = {};
	uint32_t written[EVENTS][RINGS] = {}, next[EVENTS][RINGS] = {};
	struct writer w[EVENTS][RINGS];
	struct perfpersist_interleave *i;
	struct perfpersist_sample s;
	size_t event, n = 0;

	make(w, EVENTS, 4096);
	srand(7);
	for (uint64_t time = 1; time < 2000; time++) {
		size_t k = (size_t)rand() % EVENTS;
		uint32_t cpu = (uint32_t)rand() % RINGS;

		writer_write(&w[k][cpu], written[k][cpu]++, time, 4);
	}
	i = interleave(w, EVENTS);
	for (; perfpersist_interleave_next(i, &s, &event) == 1; n++) {
		ck_assert(s.time > last);
		ck_assert(writer_is_whole(&s));
		ck_assert(!oldest[event][s.cpu] || s.tid == next[event][s.cpu]);
		oldest[event][s.cpu] = oldest[event][s.cpu] ?: s.time;
		next[event][s.cpu] = s.tid + 1;
		last = s.time;
	}
	ck_assert_uint_eq(last, 1999);
	ck_assert_uint_gt(n, 100);
	ck_assert_uint_lt(n, 1999);
	for (size_t k = 0; k < EVENTS; k++) {
		for (size_t cpu = 0; cpu < RINGS; cpu++) {
			ck_assert_uint_eq(next[k][cpu], written[k][cpu]); /* the newest are there */
			begin[k] = MAX(begin[k], oldest[k][cpu]);
		}
		ck_assert_uint_eq(perfpersist_interleave_begin(i, k), begin[k]);
	}
	perfpersist_interleave_free(i);
	done(w, EVENTS);
}
END_TEST

START_TEST(test_about)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct writer w[1][RINGS];
	struct perfpersist_interleave *i;

	make(w, 1, 4096);
	writer_write(&w[0][0], 1, 5, 4);
	writer_write(&w[0][1], 2, 6, 4);
	atomic_store(WRITER_WORD(&w[0][1], head), 3); /* no ring looks like this */
	i = interleave(w, 1);
	writer_write(&w[0][0], 3, 7, 4);
	expect(i, &(struct expected){ 0, 0, 1 });
	expect_end(i);
	ck_assert_uint_eq(perfpersist_interleave_damaged(i), 1);
	ck_assert_int_eq(perfpersist_interleave_info(i, 0, &info), 0);
	ck_assert_str_eq(info.name, "name");
	ck_assert_uint_eq(info.records, 2);
	ck_assert_int_eq(perfpersist_interleave_info(i, 1, &info), -EINVAL);
	info.sz--;
	ck_assert_int_eq(perfpersist_interleave_info(i, 0, &info), -EINVAL);
	perfpersist_interleave_free(i);
	done(w, 1);
}
END_TEST

static void expect_history(struct perfpersist_interleave *i, size_t event, uint32_t ring,
			   uint64_t from)
{
	struct perfpersist_history h = { .sz = sizeof(h) };

	ck_assert_int_eq(perfpersist_interleave_history(i, event, ring, &h), 0);
	ck_assert_uint_eq(h.sz, sizeof(h));
	ck_assert_uint_eq(h.cpu, ring);
	ck_assert_uint_eq(h.from, from);
}

/* Since the event was created, or since the oldest record of a ring that was overwritten or is not
 * one of the first; until the snapshot, or the last record of an event that stands still. */
START_TEST(test_history)
{
	struct perfpersist_history h = { .sz = sizeof(h) };
	struct writer w[EVENTS][RINGS];
	struct perfpersist_interleave *i;
	uint64_t before = pp_clock_ns(CLOCK_MONOTONIC);

	make(w, EVENTS, 4096);
	for (uint32_t n = 0; n < 1000; n++)
		writer_write(&w[0][0], n, 1000 + n, 4);
	writer_write(&w[0][1], 1, 1500, 4);
	for (uint32_t cpu = 0; cpu < RINGS; cpu++) {
		w[0][cpu].header->created_mono = w[2][cpu].header->created_mono = 70;
		w[1][cpu].header->created_mono = 70;
		w[1][cpu].header->set = 2;
	}
	writer_write(&w[1][0], 1, 1600, 4);
	writer_write(&w[2][0], 1, 1700, 4);
	atomic_store(WRITER_WORD(&w[2][0], state), PP_RING_RETIRED);
	i = interleave(w, EVENTS);
	for (struct perfpersist_sample s; perfpersist_interleave_next(i, &s, &(size_t){ 0 }) == 1;)
		;
	expect_history(i, 0, 0, perfpersist_interleave_begin(i, 0));
	expect_history(i, 0, 1, 70);
	expect_history(i, 1, 0, 1600);
	expect_history(i, 2, 0, 70);
	ck_assert_int_eq(perfpersist_interleave_history(i, 2, 1, &h), 0);
	ck_assert_uint_eq(h.to, 1700);
	ck_assert_int_eq(perfpersist_interleave_history(i, 1, 1, &h), 0);
	ck_assert_uint_ge(h.to, before);
	ck_assert_uint_eq(h.from, h.to); /* a later set, without a record */
	ck_assert_int_eq(perfpersist_interleave_history(i, 1, RINGS, &h), -EINVAL);
	ck_assert_int_eq(perfpersist_interleave_history(i, EVENTS, 0, &h), -EINVAL);
	h.sz--;
	ck_assert_int_eq(perfpersist_interleave_history(i, 0, 0, &h), -EINVAL);
	perfpersist_interleave_free(i);
	done(w, EVENTS);
}
END_TEST

/* Copies end when the daemon began to make them; those in files may be of any time: with their last record, as
 * those of a paused event. */
START_TEST(test_copies)
{
	struct perfpersist_history h = { .sz = sizeof(h) };
	struct perfpersist_interleave *i = NULL;
	struct perfpersist_event *e;
	struct perfpersist_sample s;
	struct writer w[1][RINGS];

	make(w, 1, 4096);
	w[0][0].header->created_mono = w[0][1].header->created_mono = 70;
	writer_write(&w[0][0], 1, 1600, 4);
	e = writer_open(w[0], RINGS);
	ck_assert(perfpersist_event_is_copy(e));
	for (int known = 2; known >= 0; known--) {
		e->copied = known ? 1650 : 0;
		e->base.state = known == 2 ? PERFPERSIST_PAUSED : PERFPERSIST_RUNNING;
		ck_assert_int_eq(perfpersist_interleave_new(&e, 1, &i), 0);
		while (perfpersist_interleave_next(i, &s, &(size_t){ 0 }) == 1)
			;
		expect_history(i, 0, 1, 70);
		ck_assert_int_eq(perfpersist_interleave_history(i, 0, 1, &h), 0);
		ck_assert_uint_eq(h.to, known == 1 ? 1650 : 1600);
		perfpersist_interleave_free(i);
	}
	perfpersist_event_free(e);
	done(w, 1);
}
END_TEST

/* A writer of large records has overwritten all of a ring at the moment of its snapshot. */
START_TEST(test_nothing_readable)
{
	struct writer w[1][RINGS];
	uint64_t before = pp_clock_ns(CLOCK_MONOTONIC);
	struct perfpersist_interleave *i;

	make(w, 1, 4096);
	writer_write(&w[0][0], 1, 1, 4);
	atomic_fetch_sub(WRITER_WORD(&w[0][0], reserve), 4096);
	i = interleave(w, 1);
	expect_end(i);
	ck_assert_uint_ge(perfpersist_interleave_begin(i, 0), before);
	perfpersist_interleave_free(i);
	done(w, 1);
}
END_TEST

START_TEST(test_none)
{
	struct perfpersist_interleave *i = NULL;

	ck_assert_int_eq(perfpersist_interleave_new(NULL, 0, &i), 0);
	expect_end(i);
	ck_assert_uint_eq(perfpersist_interleave_begin(i, 0), 0);
	perfpersist_interleave_free(i);
	perfpersist_interleave_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("interleave");
	TCase *t = tcase_create("all");

	tcase_add_test(t, test_order);
	tcase_add_test(t, test_many);
	tcase_add_test(t, test_about);
	tcase_add_test(t, test_history);
	tcase_add_test(t, test_copies);
	tcase_add_test(t, test_nothing_readable);
	tcase_add_test(t, test_none);
	suite_add_tcase(s, t);
	return run_suite(s);
}
