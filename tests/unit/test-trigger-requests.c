// SPDX-License-Identifier: LGPL-2.1-or-later
/* TRIGGER, TRIGGERS, FIRE, TAPES, RELEASE, and tapes that are opened: the answers, and who gets
 * them. */
#include <sys/mman.h>

#include "tests/unit/registry-pins.h"

static struct broker b;
static struct client root, member, team;

/* team may read the namespaces that root makes, member may not. */
static void setup(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	ck_assert_int_eq(setegid(61990), 0);
	client_begin(&b, &member, MEMBER);
	ck_assert_int_eq(setegid(TEAM), 0);
	client_begin(&b, &team, MEMBER + 10);
	ck_assert_int_eq(setegid(0), 0);
}

static void teardown(void)
{
	client_end(&root);
	client_end(&member);
	client_end(&team);
	broker_end(&b);
}

static int list(struct client *c, enum pp_op op, const char *ns, uint64_t after)
{
	struct pp_msg_list_request request = { .after = after };

	snprintf(request.ns, sizeof(request.ns), "%s", ns);
	return client_call(c, op, &request);
}

/* Event 1, a/x, and its trigger 2, a/t. */
static void begin(void)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	broker_settle(&b);
}

/* The same, and tape 3. */
static void begin_tape(void)
{
	begin();
	fake_fire(&b.engine, 2, false);
	triggers_fired(&b.triggers, 2, 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.ready, 1);
}

/* ── TRIGGER ────────────────────────────────────────────────────────────────────────────── */

START_TEST(targets)
{
	static const struct {
		const char *text;
		int r;
	} table[] = {
		{ "x", 0 },
		{ "x,y", 0 },
		{ "*", 0 },
		{ "sched-*,sys_[a-z]?,x", 0 },
		{ "0*", 0 },
		{ "", -EINVAL },
		{ ",", -EINVAL },
		{ "x,", -EINVAL },
		{ ",x", -EINVAL },
		{ "x,,y", -EINVAL },
		{ "x y", -EINVAL },
		{ "x, y", -EINVAL },
		{ "a/x", -EINVAL },
		{ "../x", -EINVAL },
		{ "x.*", -EINVAL },
		{ "*\n", -EINVAL },
		{ "x\033[2J*", -EINVAL },
		{ "\xc3\xb6*", -EINVAL },
		{ "-x", -EINVAL },
		{ "x\\*", -EINVAL },
		{ "!x*", -EINVAL },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0 },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -EINVAL },
		{ "*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int r = client_trigger(&root, "a", "t", table[i].text);

		ck_assert_msg(r == table[i].r, "'%s': %d", table[i].text, r);
		if (r == 0)
			ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
		else
			ck_assert_ptr_nonnull(strstr(root.body.error.message, "targets"));
	}
}
END_TEST

/* By this name users release what removed ones have frozen. */
START_TEST(name_of_the_removed)
{
	ck_assert_int_eq(client_trigger(&root, "a", "deleted", "x"), -EINVAL);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "those that are removed"));
	ck_assert_int_eq(client_create(&root, "a", "deleted"), 0);
}
END_TEST

START_TEST(longest_targets)
{
	char text[PP_TARGETS_SIZE] = "";

	for (unsigned i = 0; i < PP_TARGET_NAMES_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.14s", i ? "," : "",
			 "xxxxxxxxxxxxxxxx");
	ck_assert_int_eq(client_create(&root, "a", "xxxxxxxxxxxxxx"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", text), 0);
	ck_assert_int_eq(list(&root, PP_OP_TRIGGERS, "a", 0), 0);
	ck_assert_str_eq(root.body.triggers_reply.triggers[0].targets, text);
	ck_assert_uint_eq(root.body.triggers_reply.triggers[0].n_targets, 1);
	memset(text, 0, sizeof(text));
	for (unsigned i = 0; i <= PP_TARGET_NAMES_MAX; i++)
		strcat(text, i ? ",x" : "x");
	ck_assert_int_eq(client_trigger(&root, "a", "u", text), -EINVAL);
}
END_TEST

static int trigger_of(struct client *c, uint64_t hold_off, uint32_t flags)
{
	struct pp_msg_trigger_request request = client_trigger_request("a", "t", "x");

	request.hold_off = hold_off;
	request.event.flags = flags;
	return client_call(c, PP_OP_TRIGGER, &request);
}

START_TEST(hold_offs_and_flags)
{
	static const uint32_t refused[] = { PP_EVENT_SHARE, PP_EVENT_BOOT, PP_EVENT_TRIGGER,
					    PP_EVENT_ALL_CPUS, 1U << 31 };

	ck_assert_int_eq(trigger_of(&root, 0, 0), -EINVAL);
	ck_assert_int_eq(trigger_of(&root, PP_HOLD_OFF_MIN - 1, 0), -EINVAL);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "10 ms"));
	ck_assert_int_eq(trigger_of(&root, INT64_MAX + 1ULL, 0), -EINVAL);
	ck_assert_int_eq(trigger_of(&root, UINT64_MAX, 0), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		ck_assert_int_eq(trigger_of(&root, PP_HOLD_OFF_MIN, refused[i]), -EINVAL);
	ck_assert_uint_eq(b.engine.created, 0);
	ck_assert_int_eq(trigger_of(&root, INT64_MAX, PP_EVENT_NO_SHARE), 0);
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	/* Even if the configuration shares what is equal. */
	b.config.share = true;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger_of(&root, PP_HOLD_OFF_MIN, 0), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
	ck_assert_int_eq(client_create(&root, "a", "z"), 0);
	ck_assert_uint_eq(root.body.event.shares, 2);
}
END_TEST

/* No user makes one without targets. */
START_TEST(creations_are_no_triggers)
{
	struct pp_msg_create_request request = {
		.ns = "a",
		.name = "x",
		.flags = PP_EVENT_TRIGGER,
		.count = 1,
		.selections[0].event = "cpu-clock",
	};

	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), -EINVAL);
	ck_assert_uint_eq(b.engine.created, 0);
}
END_TEST

START_TEST(who_may_create)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_trigger(&team, "a", "t", "x"), -EACCES);
	ck_assert_int_eq(client_trigger(&member, "a", "t", "x"), -EACCES);
	ck_assert_int_eq(client_trigger(&member, "own", "t", "x"), -EACCES);
	b.config.makers = POLICY_ALL;
	ck_assert_int_eq(client_trigger(&member, "own", "t", "x"), 0);
	ck_assert_uint_eq(member.body.event.owner, MEMBER);
	ck_assert_int_eq(client_trigger(&member, "own", "t", "x"), -EEXIST);
	ck_assert_str_eq(b.engine.did, "aim2");
}
END_TEST

/* ── TRIGGERS ───────────────────────────────────────────────────────────────────────────── */

START_TEST(triggers_are_shown)
{
	const struct pp_msg_trigger *t = &team.body.triggers_reply.triggers[0];

	begin();
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(list(&team, PP_OP_TRIGGERS, "", 0), 0);
	ck_assert_uint_eq(team.body.triggers_reply.count, 1);
	ck_assert_uint_eq(t->id, 2);
	ck_assert_str_eq(t->ns, "a");
	ck_assert_str_eq(t->name, "t");
	ck_assert_str_eq(t->event, "cpu-clock");
	ck_assert_str_eq(t->targets, "x");
	ck_assert_uint_eq(t->hold_off, PP_HOLD_OFF_MIN);
	ck_assert_uint_eq(t->state, PP_EVENT_RUNNING);
	ck_assert_uint_eq(t->n_targets, 1);
	ck_assert_uint_eq(t->n_armed, 1);
	ck_assert_uint_eq(t->fired, 0); /* there are no pins */
	ck_assert_uint_eq(t->missed_unknown, 1);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_int_eq(list(&team, PP_OP_TRIGGERS, "a", 0), 0);
	ck_assert_uint_eq(t->n_targets, 1);
	ck_assert_uint_eq(t->n_armed, 0);
	/* As an event it is in the other list, too. */
	ck_assert_int_eq(client_list(&team, "a", 0), 0);
	ck_assert_uint_eq(team.body.list_reply.count, 3);
}
END_TEST

START_TEST(who_sees_triggers)
{
	static const enum pp_op ops[] = { PP_OP_TRIGGERS, PP_OP_TAPES };

	begin_tape();
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		ck_assert_int_eq(list(&member, ops[i], "a", 0), -EACCES);
		ck_assert_int_eq(list(&member, ops[i], "b", 0), -ENOENT);
		ck_assert_int_eq(list(&member, ops[i], "", 0), 0);
		/* (Both begin with the count.) */
		ck_assert_uint_eq(member.body.tapes_reply.count, 0);
		ck_assert_uint_eq(member.body.tapes_reply.more, 0);
		ck_assert_int_eq(list(&team, ops[i], "a", 0), 0);
		ck_assert_uint_eq(team.body.tapes_reply.count, 1);
	}
}
END_TEST

START_TEST(triggers_in_pages)
{
	char name[16];
	uint64_t last = 0;
	unsigned seen = 0, pages = 0;

	for (unsigned i = 0; i < FAKE_TRIGGERS; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		ck_assert_int_eq(client_create(&root, "a", name), 0);
		snprintf(name, sizeof(name), "t%u", i);
		ck_assert_int_eq(client_trigger(&root, i % 4 ? "a" : "b", name, "none"), 0);
	}
	do {
		ck_assert_int_eq(list(&root, PP_OP_TRIGGERS, "", last), 0);
		for (unsigned i = 0; i < root.body.triggers_reply.count; i++) {
			ck_assert_uint_gt(root.body.triggers_reply.triggers[i].id, last);
			last = root.body.triggers_reply.triggers[i].id;
			seen++;
		}
		pages++;
	} while (root.body.triggers_reply.more);
	ck_assert_uint_eq(seen, FAKE_TRIGGERS);
	ck_assert_uint_eq(pages, 2);
	ck_assert_int_eq(list(&root, PP_OP_TRIGGERS, "b", 0), 0);
	ck_assert_uint_eq(root.body.triggers_reply.count, FAKE_TRIGGERS / 4);
}
END_TEST

/* ── FIRE ───────────────────────────────────────────────────────────────────────────────── */

START_TEST(who_may_fire)
{
	begin();
	ck_assert_int_eq(client_fire(&team, "a", "t"), -EACCES);
	ck_assert_int_eq(client_fire(&member, "a", "t"), -EACCES);
	ck_assert_int_eq(client_by_id(&member, PP_OP_FIRE, 2), -ENOENT);
	ck_assert_int_eq(client_by_id(&team, PP_OP_FIRE, 2), -EACCES);
	ck_assert_int_eq(client_fire(&root, "a", "x"), -EINVAL);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "no trigger"));
	ck_assert_int_eq(client_fire(&root, "a", "missing"), -ENOENT);
	ck_assert_ptr_null(strstr(b.engine.did, "fire"));
	ck_assert_int_eq(client_fire(&root, "a", "t"), 0);
	broker_settle(&b);
	ck_assert_int_eq(client_by_id(&root, PP_OP_FIRE, 2), 0);
	ck_assert_int_eq(list(&root, PP_OP_TAPES, "a", 0), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, 1);
	ck_assert_uint_eq(root.body.tapes_reply.tapes[0].by_hand, 1);
	/* A tape is no trigger, nor is it anything else that can be written. */
	ck_assert_int_eq(client_by_id(&root, PP_OP_FIRE, 3), -ENOENT);
	ck_assert_int_eq(client_by_id(&root, PP_OP_DELETE, 3), -ENOENT);
	ck_assert_int_eq(client_by_id(&root, PP_OP_WAKEUP, 3), -ENOENT);
}
END_TEST

/* Of all triggers together; what is refused for another reason does not count. Others are not
 * concerned, nor is root. */
START_TEST(users_fire_only_so_often)
{
	b.config.makers = POLICY_ALL;
	ck_assert_int_eq(client_create(&member, "m", "x"), 0);
	ck_assert_int_eq(client_trigger(&member, "m", "t", "x"), 0);
	ck_assert_int_eq(client_trigger(&member, "m", "u", "x"), 0);
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(client_fire(&member, "m", "missing"), -ENOENT);
		ck_assert_int_eq(client_fire(&member, "m", i % 2 ? "t" : "u"), 0);
	}
	b.engine.did[0] = 0;
	ck_assert_int_eq(client_fire(&member, "m", "t"), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(member.body.error.message, "10 times within a minute"));
	ck_assert_int_eq(client_fire(&member, "m", "u"), -EAGAIN);
	ck_assert_ptr_null(strstr(b.engine.did, "fire"));
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(client_fire(&root, "m", "t"), 0);
}
END_TEST

/* The table of users is bounded, and a place is free again when its minute is over. */
START_TEST(the_table_of_who_fires)
{
	static struct fire_limit l;
	uint64_t now = FIRES_TIME / 2; /* just booted */

	for (uint32_t uid = 1; uid <= FIRES_USERS; uid++)
		for (unsigned i = 0; i <= FIRES_MAX; i++)
			ck_assert_int_eq(fire_limit_take(&l, uid, now), i < FIRES_MAX);
	ck_assert(!fire_limit_take(&l, 9999, now + FIRES_TIME - 1));
	ck_assert(fire_limit_take(&l, 0, now));
	ck_assert(!fire_limit_take(&l, FIRES_USERS, now + FIRES_TIME - 1));
	ck_assert(fire_limit_take(&l, 9999, now + FIRES_TIME));
	ck_assert(fire_limit_take(&l, FIRES_USERS, now + FIRES_TIME));
	for (unsigned i = 0; i < FIRES_MAX; i++)
		ck_assert_int_eq(fire_limit_take(&l, 9999, now + FIRES_TIME), i < FIRES_MAX - 1);
}
END_TEST

/* Who fires and hangs up has fired all the same. */
START_TEST(fired_and_gone)
{
	struct pp_msg_name which = client_name("a", "t");

	begin();
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_FIRE, &which);
	broker_settle(&b);
	client_end(&root);
	fake_wait(&b.engine, false);
	broker_until(&b, b.ready == 1);
}
END_TEST

/* ── TAPES, RELEASE ─────────────────────────────────────────────────────────────────────── */

START_TEST(tapes_are_shown)
{
	const struct pp_msg_tape *t = &team.body.tapes_reply.tapes[0];

	begin_tape();
	ck_assert_int_eq(list(&team, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(team.body.tapes_reply.count, 1);
	ck_assert_uint_eq(t->id, 3);
	ck_assert_uint_eq(t->event, 1);
	ck_assert_str_eq(t->ns, "a");
	ck_assert_str_eq(t->name, "x");
	ck_assert_uint_eq(t->trigger, 2);
	ck_assert_str_eq(t->trigger_name, "t");
	ck_assert_uint_eq(t->number, 1);
	ck_assert_uint_eq(t->fired, 1000);
	ck_assert_uint_eq(t->cpu, 3);
	ck_assert_uint_eq(t->pid, 4711);
	ck_assert_uint_eq(t->tid, 4712);
	ck_assert_uint_eq(t->by_hand, 0);
	ck_assert_str_eq(t->comm, "sh");
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	ck_assert_int_eq(list(&team, PP_OP_TAPES, "a", 0), 0);
	ck_assert_str_eq(t->trigger_name, "");
	ck_assert_int_eq(list(&team, PP_OP_TAPES, "a", 3), 0);
	ck_assert_uint_eq(team.body.tapes_reply.count, 0);
	/* It is shown by its id as the event was, and is in no list of events. */
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 3), 0);
	ck_assert_uint_eq(team.body.event.id, 3);
	ck_assert_str_eq(team.body.event.name, "x");
	ck_assert_uint_eq(team.body.event.state, PP_EVENT_PAUSED);
	ck_assert_int_eq(client_list(&team, "a", 0), 0);
	ck_assert_uint_eq(team.body.list_reply.count, 1);
}
END_TEST

/* Until all tapes of the firing are there nobody is told of any. */
START_TEST(tapes_that_are_not_ready)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "*"), 0);
	broker_settle(&b);
	b.engine.holds_after = 1;
	fake_fire(&b.engine, 3, false);
	triggers_fired(&b.triggers, 3, 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	ck_assert_int_eq(list(&root, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, 0);
	fake_wait(&b.engine, false);
	broker_settle(&b);
	ck_assert_int_eq(list(&root, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, 2);
}
END_TEST

START_TEST(tapes_in_pages)
{
	enum { EVENTS = PP_TAPES_MAX + 6 };
	char name[16];

	ck_assert_int_eq(client_create(&root, "b", "x"), 0);
	for (unsigned i = 0; i < EVENTS; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		ck_assert_int_eq(client_create(&root, "a", name), 0);
	}
	ck_assert_int_eq(client_trigger(&root, "a", "t0", "e?,e1?,e2?"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t1", "e[3-9]?"), 0);
	broker_settle(&b);
	fake_fire(&b.engine, EVENTS + 2, false);
	fake_fire(&b.engine, EVENTS + 3, false);
	triggers_fired(&b.triggers, EVENTS + 2, 0);
	triggers_fired(&b.triggers, EVENTS + 3, 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.ready, EVENTS);
	ck_assert_int_eq(list(&root, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, PP_TAPES_MAX);
	ck_assert_uint_eq(root.body.tapes_reply.more, 1);
	ck_assert_int_eq(
		list(&root, PP_OP_TAPES, "a", root.body.tapes_reply.tapes[PP_TAPES_MAX - 1].id), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, 6);
	ck_assert_uint_eq(root.body.tapes_reply.more, 0);
	ck_assert_int_eq(list(&root, PP_OP_TAPES, "b", 0), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, 0);
}
END_TEST

START_TEST(who_may_release)
{
	struct pp_msg_name which = { .id = 3 };

	begin_tape();
	ck_assert_int_eq(client_by_id(&team, PP_OP_RELEASE, 3), -EACCES);
	/* A reader learns that it may not, others not even that there is one. */
	ck_assert_int_eq(client_by_id(&member, PP_OP_RELEASE, 3), -ENOENT);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 0), -ENOENT);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 1), -ENOENT);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 99), -ENOENT);
	strcpy(which.name, "x");
	ck_assert_int_eq(client_call(&root, PP_OP_RELEASE, &which), -EINVAL);
	which = client_name("a", "x");
	ck_assert_int_eq(client_call(&root, PP_OP_RELEASE, &which), -ENOENT);
	ck_assert_uint_eq(b.engine.n_tapes, 1);
	/* Two at the same time: it is gone for both. */
	which = (struct pp_msg_name){ .id = 3 };
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_RELEASE, &which);
	client_send(&root, PP_OP_RELEASE, &which);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 3), -ENOENT);
	ck_assert_int_eq(client_by_id(&root, PP_OP_SHOW, 3), -ENOENT);
}
END_TEST

/* The owner of a namespace may release what its triggers froze; without the namespace, too. */
START_TEST(tapes_without_a_namespace)
{
	struct pp_msg_open_request open = { .which.id = 3 };

	b.config.makers = POLICY_ALL;
	ck_assert_int_eq(client_create(&team, "own", "x"), 0);
	ck_assert_int_eq(client_trigger(&team, "own", "t", "x"), 0);
	broker_settle(&b);
	fake_fire(&b.engine, 2, false);
	triggers_fired(&b.triggers, 2, 0);
	broker_settle(&b);
	ck_assert_int_eq(client_delete(&team, "own", "x"), 0);
	ck_assert_int_eq(client_delete(&team, "own", "t"), 0);
	ck_assert_uint_eq(b.lifecycle.registry.n_namespaces, 0);
	ck_assert_int_eq(list(&team, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(team.body.tapes_reply.count, 1);
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 3), 0);
	ck_assert_int_eq(list(&member, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(member.body.tapes_reply.count, 0);
	ck_assert_int_eq(client_by_id(&member, PP_OP_SHOW, 3), -ENOENT);
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &open), -ENOENT);
	ck_assert_int_eq(client_by_id(&member, PP_OP_RELEASE, 3), -ENOENT);
	/* A stranger's new namespace of that name gives no rights. */
	ck_assert_int_eq(client_create(&member, "own", "x"), 0);
	ck_assert_int_eq(client_by_id(&member, PP_OP_SHOW, 3), -ENOENT);
	ck_assert_int_eq(client_by_id(&member, PP_OP_RELEASE, 3), -ENOENT);
	ck_assert_int_eq(list(&member, PP_OP_TAPES, "own", 0), 0);
	ck_assert_uint_eq(member.body.tapes_reply.count, 0);
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 3), 0);
	ck_assert_int_eq(client_by_id(&team, PP_OP_RELEASE, 3), 0);
}
END_TEST

/* The rights that the namespace has now count, not those of the firing. */
START_TEST(rights_that_change)
{
	struct namespace *ns;

	begin_tape();
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 3), 0);
	ns = registry_namespace(&b.lifecycle.registry, "a");
	ns->mode = 0600;
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 3), -ENOENT);
	ck_assert_int_eq(list(&team, PP_OP_TAPES, "", 0), 0);
	ck_assert_uint_eq(team.body.tapes_reply.count, 0);
	ns->mode = 0666;
	ck_assert_int_eq(client_by_id(&member, PP_OP_RELEASE, 3), 0);
}
END_TEST

START_TEST(before_the_engine_is_known)
{
	struct broker late;
	struct client c;

	broker_begin(&late);
	client_begin(&late, &c, 0);
	ck_assert_int_eq(list(&c, PP_OP_TRIGGERS, "", 0), -EAGAIN);
	ck_assert_int_eq(list(&c, PP_OP_TAPES, "", 0), -EAGAIN);
	ck_assert_int_eq(client_fire(&c, "a", "t"), -EAGAIN);
	ck_assert_int_eq(client_trigger(&c, "a", "t", "x"), -EAGAIN);
	client_end(&c);
	broker_end(&late);
}
END_TEST

/* ── OPEN, with real pins ───────────────────────────────────────────────────────────────── */

START_TEST(opening_a_tape)
{
	struct pp_msg_open_request open = { .which.id = 3 };
	const struct pp_msg_open_reply *reply = &root.body.open_reply;
	char leaf[64];

	pins_begin(&b);
	begin_tape();
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &open), -ENOENT); /* no pins */
	pins_mkdir(&b, "+tape-3");
	for (unsigned cpu = 0; cpu <= 3; cpu += 3) {
		int fd = pins_map("", 0, 4096 + 524288 + 4096);

		snprintf(leaf, sizeof(leaf), "+tape-3/cpu%u", cpu);
		pins_add(&b, fd, leaf);
		close(fd);
	}
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &open), 0);
	ck_assert_uint_eq(reply->event.id, 3);
	ck_assert_uint_eq(reply->total, 2);
	ck_assert_uint_eq(reply->copies, 0);
	ck_assert_uint_eq(root.fds.n, 2);
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &open), -ENOENT);
	strcpy(open.which.name, "x");
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &open), -EINVAL);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 3), 0);
	open.which.name[0] = 0;
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &open), -ENOENT);
	pins_end(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trigger requests");
	TCase *t = tcase_create("requests");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, targets);
	tcase_add_test(t, name_of_the_removed);
	tcase_add_test(t, longest_targets);
	tcase_add_test(t, hold_offs_and_flags);
	tcase_add_test(t, creations_are_no_triggers);
	tcase_add_test(t, who_may_create);
	tcase_add_test(t, triggers_are_shown);
	tcase_add_test(t, who_sees_triggers);
	tcase_add_test(t, triggers_in_pages);
	tcase_add_test(t, who_may_fire);
	tcase_add_test(t, users_fire_only_so_often);
	tcase_add_test(t, the_table_of_who_fires);
	tcase_add_test(t, fired_and_gone);
	tcase_add_test(t, tapes_are_shown);
	tcase_add_test(t, tapes_that_are_not_ready);
	tcase_add_test(t, tapes_in_pages);
	tcase_add_test(t, who_may_release);
	tcase_add_test(t, tapes_without_a_namespace);
	tcase_add_test(t, rights_that_change);
	tcase_add_test(t, before_the_engine_is_known);
	add_test_unless(no_bpffs(), t, opening_a_tape);
	suite_add_tcase(s, t);
	return run_suite(s);
}
