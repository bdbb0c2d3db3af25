// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records found out of order come out in order, each once, with its own bytes. */
#include "client/perfctl/events/reorder.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/macro.h"
#include "tests/unit/needs.h"

#define MANY 5000

struct seen {
	uint64_t time, value;
	int event;
};
static struct seen seen[MANY];
static size_t n_seen;
static int verdict;

static int take(void *userdata _unused_, int event, const struct perfpersist_sample *s)
{
	uint64_t value, ip;

	memcpy(&value, s->raw, sizeof(value));
	memcpy(&ip, s->callchain, sizeof(ip));
	ck_assert_uint_eq(ip, value + 1);
	ck_assert_ptr_eq(s->raw, (const uint8_t *)s->record + 8);
	seen[n_seen++] = (struct seen){ s->time, value, event };
	return verdict;
}

/* A record of 24 bytes: a header, a payload, a call chain. */
static void push(struct reorder *r, int event, uint64_t time, uint64_t value)
{
	uint64_t record[3] = { 0, value, value + 1 };
	struct perfpersist_sample s = {
		.time = time,
		.record = record,
		.record_size = sizeof(record),
		.raw = &record[1],
		.raw_size = 8,
		.callchain = &record[2],
		.n_callchain = 1,
	};

	ck_assert_int_eq(reorder_push(r, event, &s), 0);
	memset(record, 0xee, sizeof(record)); /* the push copied it */
}

static void setup(void)
{
	n_seen = 0;
	verdict = 0;
}

START_TEST(in_order)
{
	struct reorder *r;
	uint64_t until = 0, pushed = 0;

	srand(1);
	ck_assert_int_eq(reorder_new(&r), 0);
	while (pushed < MANY) {
		for (int i = 0; i < 100; i++, pushed++)
			push(r, (int)(pushed % 3), until + (uint64_t)rand() % 1000, pushed);
		until += 300; /* some are held back, and come with later ones */
		ck_assert_int_eq(reorder_pop(r, until, take, NULL), 0);
		for (size_t i = 0; i < n_seen; i++)
			ck_assert_uint_lt(seen[i].time, until);
	}
	ck_assert_uint_lt(n_seen, MANY);
	ck_assert_int_eq(reorder_pop(r, UINT64_MAX, take, NULL), 0);
	ck_assert_uint_eq(n_seen, MANY);
	ck_assert_uint_eq(reorder_held(r), 0);
	for (size_t i = 1; i < MANY; i++) {
		ck_assert_uint_le(seen[i - 1].time, seen[i].time);
		ck_assert_int_eq(seen[i].event, (int)(seen[i].value % 3));
		if (seen[i - 1].time == seen[i].time)
			ck_assert_uint_lt(seen[i - 1].value, seen[i].value);
	}
	reorder_free(r);
}
END_TEST

START_TEST(once_each)
{
	static bool is_seen[MANY];
	struct reorder *r;

	ck_assert_int_eq(reorder_new(&r), 0);
	for (uint64_t i = 0; i < MANY; i++)
		push(r, 0, MANY - i, i);
	for (uint64_t until = 0; until <= MANY + 1; until += 7)
		ck_assert_int_eq(reorder_pop(r, until, take, NULL), 0);
	ck_assert_int_eq(reorder_pop(r, UINT64_MAX, take, NULL), 0);
	ck_assert_uint_eq(n_seen, MANY);
	for (size_t i = 0; i < MANY; i++) {
		ck_assert(!is_seen[seen[i].value]);
		is_seen[seen[i].value] = true;
	}
	reorder_free(r);
}
END_TEST

START_TEST(refused)
{
	struct reorder *r;

	ck_assert_int_eq(reorder_new(&r), 0);
	push(r, 0, 1, 1);
	push(r, 0, 2, 2);
	verdict = -ENOSPC;
	ck_assert_int_eq(reorder_pop(r, UINT64_MAX, take, NULL), -ENOSPC);
	ck_assert_uint_eq(n_seen, 1);
	reorder_free(r);
	reorder_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("reorder");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, in_order);
	tcase_add_test(t, once_each);
	tcase_add_test(t, refused);
	suite_add_tcase(s, t);
	return run_suite(s);
}
