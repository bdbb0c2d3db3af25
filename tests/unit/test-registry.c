// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registry's two orders, the lives of its namespaces, the states of events. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/state/registry.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static struct pp_spec spec_of(const char *ns, const char *name)
{
	struct pp_spec s = { .owner = 7, .group = 8, .mode = 0640 };

	snprintf(s.ns, sizeof(s.ns), "%s", ns);
	snprintf(s.name, sizeof(s.name), "%s", name);
	return s;
}

static struct event *add(struct registry *r, const char *ns, const char *name)
{
	struct pp_spec spec = spec_of(ns, name);
	struct event *e;

	ck_assert_int_eq(registry_add(r, &spec, &e), 0);
	return e;
}

static struct event *settle(struct registry *r, struct event *e, uint64_t id)
{
	struct pp_event truth = { .id = id, .spec = e->truth.spec };

	ck_assert_int_eq(registry_settle(r, e, &truth), 0);
	return e;
}

START_TEST(names_are_reserved_at_once)
{
	struct registry r = { 0 };
	struct pp_spec spec = spec_of("a", "x");
	struct event *e = add(&r, "a", "x"), *other;

	ck_assert_int_eq(e->state, PP_EVENT_CREATING);
	ck_assert_ptr_eq(registry_by_name(&r, "a", "x"), e);
	ck_assert_int_eq(registry_add(&r, &spec, &other), -EEXIST);
	ck_assert_ptr_null(registry_by_name(&r, "a", "y"));
	ck_assert_ptr_null(registry_by_name(&r, "b", "x"));
	ck_assert_ptr_null(registry_by_id(&r, 0));
	ck_assert_uint_eq(r.n_settled, 0);
	registry_done(&r);
}
END_TEST

START_TEST(ids_are_unique)
{
	struct registry r = { 0 };
	struct event *x = settle(&r, add(&r, "a", "x"), 5), *y = add(&r, "a", "y");
	struct pp_event truth = { .id = 5, .spec = y->truth.spec };

	ck_assert_int_eq(registry_settle(&r, y, &truth), -EEXIST);
	ck_assert_int_eq(y->state, PP_EVENT_CREATING);
	ck_assert_ptr_eq(registry_by_id(&r, 5), x);
	ck_assert_ptr_null(registry_by_id(&r, 4));
	ck_assert_ptr_null(registry_by_id(&r, 6));
	registry_done(&r);
}
END_TEST

START_TEST(namespaces_live_as_long_as_events)
{
	struct registry r = { 0 };
	struct event *x = add(&r, "a", "x"), *y = add(&r, "a", "y");
	struct namespace *ns = registry_namespace(&r, "a");

	ck_assert_uint_eq(ns->owner, 7);
	ck_assert_uint_eq(ns->group, 8);
	ck_assert_uint_eq(ns->n_events, 2);
	registry_remove(&r, x);
	ck_assert_ptr_eq(registry_namespace(&r, "a"), ns);
	registry_remove(&r, y);
	ck_assert_ptr_null(registry_namespace(&r, "a"));
	registry_done(&r);
}
END_TEST

START_TEST(configured_namespaces_stay_as_they_are)
{
	struct registry r = { 0 };
	struct event *x;

	ck_assert_int_eq(registry_configure(&r, "a", 1, 2, 0600, NAMESPACE_LIVE_OWNER), 0);
	x = add(&r, "a", "x");
	ck_assert_uint_eq(x->ns->owner, 1);
	ck_assert_uint_eq(x->ns->mode, 0600);
	ck_assert_int_eq(x->ns->live, NAMESPACE_LIVE_OWNER);
	/* Reconfigured: the return value says whether the files of its events need other rights. */
	ck_assert_int_eq(registry_configure(&r, "a", 1, 2, 0600, NAMESPACE_LIVE_NOBODY), 0);
	ck_assert_int_eq(registry_configure(&r, "a", 9, 2, 0600, NAMESPACE_LIVE_NOBODY), 1);
	ck_assert_int_eq(registry_configure(&r, "a", 9, 3, 0600, NAMESPACE_LIVE_NOBODY), 1);
	ck_assert_int_eq(registry_configure(&r, "a", 9, 3, 0640, NAMESPACE_LIVE_NOBODY), 1);
	ck_assert_uint_eq(x->ns->owner, 9);
	registry_remove(&r, x);
	ck_assert_ptr_nonnull(registry_namespace(&r, "a"));
	registry_unconfigure(&r, registry_namespace(&r, "a"));
	ck_assert_ptr_null(registry_namespace(&r, "a"));
	registry_done(&r);
	ck_assert_uint_eq(r.n_namespaces, 0);
}
END_TEST

START_TEST(on_demand_becomes_configured)
{
	struct registry r = { 0 };
	struct event *x = add(&r, "a", "x");
	struct namespace *ns = x->ns;

	ck_assert_int_eq(ns->live, NAMESPACE_LIVE_GROUP);
	ck_assert_int_eq(registry_configure(&r, "a", 7, 8, 0600, NAMESPACE_LIVE_GROUP), 1);
	ck_assert_ptr_eq(registry_namespace(&r, "a"), ns);
	registry_unconfigure(&r, ns);
	ck_assert_ptr_eq(registry_namespace(&r, "a"), ns);
	registry_remove(&r, x);
	ck_assert_ptr_null(registry_namespace(&r, "a"));
	registry_done(&r);
}
END_TEST

/* 4096 events, added in random order, found in both orders, and removed in a third. */
START_TEST(thousands)
{
	enum { N = 4096 };
	static struct event *events[N];
	struct registry r = { 0 };
	char ns[16], name[16];

	for (unsigned i = 0; i < N; i++) {
		unsigned k = (i * 1237) % N;

		snprintf(ns, sizeof(ns), "n%u", k % 37);
		snprintf(name, sizeof(name), "e%u", k);
		events[k] = settle(&r, add(&r, ns, name), k + 1);
	}
	ck_assert_uint_eq(r.n_namespaces, 37);
	for (unsigned i = 0; i < N; i++) {
		ck_assert_ptr_eq(r.by_id[i], events[i]);
		ck_assert_ptr_eq(registry_by_id(&r, i + 1), events[i]);
		ck_assert_uint_eq(registry_after(&r, i), i);
		ck_assert_ptr_eq(
			registry_by_name(&r, events[i]->ns->name, events[i]->truth.spec.name),
			events[i]);
	}
	ck_assert_uint_eq(registry_after(&r, N), N);
	for (unsigned i = 0; i < N; i++)
		registry_remove(&r, events[(i * 2411) % N]);
	ck_assert_uint_eq(r.n_events, 0);
	ck_assert_uint_eq(r.n_settled, 0);
	ck_assert_uint_eq(r.n_namespaces, 0);
	registry_done(&r);
}
END_TEST

START_TEST(states_run_in_circles_only)
{
	struct registry r = { 0 };
	struct event *e = settle(&r, add(&r, "a", "x"), 1);

	ck_assert_int_eq(e->state, PP_EVENT_RUNNING);
	event_set_state(e, PP_EVENT_DELETING);
	event_set_state(e, PP_EVENT_RUNNING);
	registry_done(&r);
}
END_TEST

START_TEST(no_way_back_to_creating)
{
	struct registry r = { 0 };

	event_set_state(settle(&r, add(&r, "a", "x"), 1), PP_EVENT_CREATING);
}
END_TEST

START_TEST(changes_and_pauses)
{
	struct registry r = { 0 };
	struct event *e = settle(&r, add(&r, "a", "x"), 1);

	event_set_state(e, PP_EVENT_CHANGING);
	e->truth.paused = 1;
	event_rest(e);
	ck_assert_int_eq(e->state, PP_EVENT_PAUSED);
	event_set_state(e, PP_EVENT_CHANGING);
	event_rest(e);
	event_set_state(e, PP_EVENT_DELETING);
	event_rest(e);
	ck_assert_int_eq(e->state, PP_EVENT_PAUSED);
	registry_done(&r);
}
END_TEST

START_TEST(one_order_at_a_time)
{
	struct registry r = { 0 };
	struct event *e = settle(&r, add(&r, "a", "x"), 1);

	event_set_state(e, PP_EVENT_CHANGING);
	event_set_state(e, PP_EVENT_DELETING);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("registry");
	TCase *t = tcase_create("model");

	tcase_add_test(t, names_are_reserved_at_once);
	tcase_add_test(t, ids_are_unique);
	tcase_add_test(t, namespaces_live_as_long_as_events);
	tcase_add_test(t, configured_namespaces_stay_as_they_are);
	tcase_add_test(t, on_demand_becomes_configured);
	tcase_add_test(t, thousands);
	tcase_add_test(t, states_run_in_circles_only);
	tcase_add_test_raise_signal(t, no_way_back_to_creating, SIGABRT);
	tcase_add_test_raise_signal(t, one_order_at_a_time, SIGABRT);
	tcase_add_test(t, changes_and_pauses);
	suite_add_tcase(s, t);
	return run_suite(s);
}
