// SPDX-License-Identifier: LGPL-2.1-or-later
/* Missing ends: how often the broker looks for them. The tables are the test's own. */
#include <sys/mman.h>

#include "daemon/broker/triggers/overdue.h"
#include "proto/clock.h"
#include "tests/unit/broker-fixture.h"
#include "tests/unit/needs.h"

#define TABLES 10
#define MS 1000000ULL
#define MINUTE (60000 * MS)

static struct broker b;
static struct client root;
static struct overdue o;

static struct event *event_of(uint64_t id)
{
	struct event *e = registry_by_id(&b.lifecycle.registry, id);

	ck_assert_ptr_nonnull(e);
	return e;
}

/* It goes with the event. */
static struct pp_pair *give_table(uint64_t id)
{
	void *at = mmap(NULL, PP_PAIRS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	ck_assert(at != MAP_FAILED);
	event_of(id)->pairs = at;
	return at;
}

/* Triggers 1 to TABLES, of pairs that may take a minute. */
static void setup(void)
{
	char name[8];

	broker_start(&b);
	client_begin(&b, &root, 0);
	for (uint64_t id = 1; id <= TABLES; id++) {
		snprintf(name, sizeof(name), "t%u", (unsigned)id);
		ck_assert_int_eq(client_trigger(&root, "a", name, "x"), 0);
		event_of(id)->trigger.condition.kind = PP_CONDITION_PAIR;
		event_of(id)->trigger.condition.longer_than = MINUTE;
		give_table(id);
	}
	broker_settle(&b);
	b.engine.did[0] = 0;
	o = (struct overdue){ .loop = b.loop, .lifecycle = &b.lifecycle, .registry = b.registry };
}

static void teardown(void)
{
	client_end(&root);
	broker_end(&b); /* orders that end go on with it */
	overdue_done(&o);
}

/* A pair has begun long ago. */
static void begin_pair(uint64_t id)
{
	((struct pp_pair *)event_of(id)->pairs)->since = pp_clock_ns(CLOCK_MONOTONIC) - MINUTE - MS;
}

static uint64_t next_look(void)
{
	uint64_t usec;

	ck_assert_int_ge(sd_event_source_get_time(o.timer, &usec), 0);
	return usec * 1000;
}

/* The look that comes next has been made, and has ordered nothing. */
static void look(void)
{
	uint64_t before = next_look();

	broker_until(&b, next_look() != before);
	ck_assert(!o.ordered);
}

START_TEST(nothing_is_missing)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);

	overdue_continue(&o);
	look();
	ck_assert_uint_ge(next_look(), now + MINUTE);
	ck_assert_str_eq(b.engine.did, "");
}
END_TEST

/* It is always there, and all tables are looked at: no more often than if it were not. */
START_TEST(one_is_missing_at_each_look)
{
	uint64_t now;

	begin_pair(5);
	overdue_continue(&o);
	for (unsigned i = 0; i < 2; i++) {
		broker_until(&b, o.ordered);
		now = pp_clock_ns(CLOCK_MONOTONIC);
		broker_until(&b, !o.ordered);
	}
	ck_assert_str_eq(b.engine.did, "fire5 fire5");
	ck_assert_uint_ge(next_look(), now + TABLES * 2 * MS);
}
END_TEST

/* None starves the others. */
START_TEST(several_are_missing)
{
	begin_pair(2);
	begin_pair(5);
	begin_pair(9);
	overdue_continue(&o);
	broker_until(&b, strstr(b.engine.did, "fire9"));
	ck_assert_str_eq(b.engine.did, "fire2 fire5 fire9");
}
END_TEST

/* No order can be given. */
START_TEST(what_is_refused_waits)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);

	begin_pair(5);
	event_of(5)->state = PP_EVENT_CREATING;
	overdue_continue(&o);
	look();
	ck_assert_uint_ge(next_look(), now + 1000 * MS);
	ck_assert_uint_le(next_look(), pp_clock_ns(CLOCK_MONOTONIC) + 1001 * MS);
	event_of(5)->state = PP_EVENT_RUNNING;
}
END_TEST

/* There is no file of it. Other events change all the time. */
START_TEST(a_table_that_is_new)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);

	overdue_continue(&o);
	look();
	munmap((void *)event_of(5)->pairs, PP_PAIRS_SIZE);
	event_of(5)->pairs = NULL;
	overdue_continue(&o);
	ck_assert_uint_lt(next_look(), now + MINUTE);
	while (!o.told) {
		overdue_continue(&o);
		ck_assert_int_ge(sd_event_run(b.loop, 0), 0);
	}
	ck_assert_uint_ge(next_look(), now + 1000 * MS);
	/* It is tried again, and so is another one that comes then. */
	overdue_continue(&o);
	ck_assert_uint_lt(next_look(), pp_clock_ns(CLOCK_MONOTONIC) + 1000 * MS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("overdue");
	TCase *t = tcase_create("overdue");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, nothing_is_missing);
	tcase_add_test(t, one_is_missing_at_each_look);
	tcase_add_test(t, several_are_missing);
	tcase_add_test(t, what_is_refused_waits);
	tcase_add_test(t, a_table_that_is_new);
	suite_add_tcase(s, t);
	return run_suite(s);
}
