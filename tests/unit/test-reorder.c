// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records found out of order come out in order, each once, with its own bytes. */
#include "client/stream/reorder.h"

#include "tests/unit/needs.h"

#define MANY 5000

static uint64_t last_time, last_value;
static bool is_seen[MANY];
static bool has_no_memory; /* for arrays */

void *reallocarray(void *p, size_t n, size_t size)
{
	return has_no_memory ? NULL : realloc(p, n * size);
}

/* A record of 24 bytes: a header, a payload, a call chain. */
static void push(struct reorder *r, size_t event, uint64_t time, uint64_t value)
{
	uint64_t record[3] = { 0, value, value + 1 };
	struct perfpersist_stream_item item = {
		.kind = PERFPERSIST_STREAM_RECORD,
		.event = event,
		.time = time,
		.sample = {
			.time = time,
			.record = record,
			.record_size = sizeof(record),
			.raw = &record[1],
			.raw_size = 8,
			.callchain = &record[2],
			.n_callchain = 1,
		},
	};

	ck_assert(reorder_push(r, &item, NULL) == 0);
	memset(record, 0xee, sizeof(record)); /* the push copied it */
}

/* Takes all that is there to be taken, in order, each once; returns how many. */
static size_t take(struct reorder *r, uint64_t until)
{
	struct perfpersist_stream_item item;
	struct perfpersist_event *e;
	size_t n = 0;

	for (; reorder_pop(r, &item, &e); n++) {
		const struct perfpersist_sample *s = &item.sample;
		uint64_t value, ip;

		ck_assert(!e);
		memcpy(&value, s->raw, sizeof(value));
		memcpy(&ip, s->callchain, sizeof(ip));
		ck_assert(ip == value + 1);
		ck_assert((const uint8_t *)s->raw == (const uint8_t *)s->record + 8);
		ck_assert(item.event == value % 3);
		ck_assert(item.time < until && item.time == s->time);
		ck_assert(item.time > last_time || (item.time == last_time && value >= last_value));
		ck_assert(value < MANY && !is_seen[value]);
		is_seen[value] = true;
		last_time = item.time;
		last_value = value;
	}
	return n;
}

static void setup(void)
{
	last_time = last_value = 0;
	memset(is_seen, 0, sizeof(is_seen));
}

START_TEST(in_order)
{
	struct reorder r = {};
	uint64_t until = 0, pushed = 0;
	size_t taken = 0;

	srand(1);
	while (pushed < MANY) {
		for (int i = 0; i < 100; i++, pushed++)
			push(&r, pushed % 3, until + (uint64_t)rand() % 1000, pushed);
		until += 300; /* some are held back, and come with later ones */
		reorder_release(&r, until);
		taken += take(&r, until);
	}
	ck_assert_uint_lt(taken, MANY);
	ck_assert_uint_eq(take(&r, until), 0);
	reorder_release(&r, UINT64_MAX);
	ck_assert_uint_eq(taken + take(&r, UINT64_MAX), MANY);
	reorder_release(&r, UINT64_MAX);
	ck_assert_uint_eq(r.n, 0);
	ck_assert_uint_eq(r.n_bytes, 0);
	reorder_done(&r);
}
END_TEST

START_TEST(once_each)
{
	struct reorder r = {};
	size_t taken = 0;

	for (uint64_t i = 0; i < MANY; i++)
		push(&r, i % 3, MANY - i, i);
	for (uint64_t until = 0; until <= MANY + 1; until += 7) {
		reorder_release(&r, until);
		taken += take(&r, until);
	}
	reorder_release(&r, UINT64_MAX);
	ck_assert_uint_eq(taken + take(&r, UINT64_MAX), MANY);
	reorder_done(&r);
}
END_TEST

/* What was released and not taken waits, before what is pushed meanwhile. */
START_TEST(not_taken)
{
	struct perfpersist_stream_item item;
	struct perfpersist_event *e;
	struct reorder r = {};

	for (uint64_t i = 0; i < 10; i++)
		push(&r, i % 3, 10 * i, i);
	reorder_release(&r, 50);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert(reorder_pop(&r, &item, &e));
	for (uint64_t i = 10; i < 1000; i++)
		push(&r, i % 3, 95, i);
	reorder_release(&r, 50);
	last_time = 20;
	ck_assert_uint_eq(take(&r, 50), 2);
	reorder_release(&r, 96);
	ck_assert_uint_eq(take(&r, 96), 995);
	reorder_done(&r);
}
END_TEST

/* The bytes have grown, and then the array cannot: what was pushed before is still there. */
START_TEST(no_memory)
{
	uint64_t big[4096] = {};
	struct perfpersist_stream_item item = {
		.kind = PERFPERSIST_STREAM_RECORD,
		.sample = { .record = big, .record_size = sizeof(big) },
	};
	struct reorder r = {};

	push(&r, 0, 10, 0);
	has_no_memory = true;
	ck_assert_int_eq(reorder_push(&r, &item, NULL), -ENOMEM);
	has_no_memory = false;
	ck_assert_uint_ge(r.cap_bytes, sizeof(big)); /* where they are now */
	reorder_release(&r, 20);
	ck_assert_uint_eq(take(&r, 20), 1);
	reorder_done(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("reorder");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, in_order);
	tcase_add_test(t, once_each);
	tcase_add_test(t, not_taken);
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	return run_suite(s);
}
