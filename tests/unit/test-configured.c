// SPDX-License-Identifier: LGPL-2.1-or-later
/* Configured events: the daemon applies the difference between what runs and what is configured,
 * and touches nothing else. */
#include "tests/unit/broker-fixture.h"

#include "daemon/broker/config/dropins.h"
#include "daemon/broker/reload.h"
#include "tests/unit/needs.h"

static struct broker b;
static struct client root, team;
static struct config base; /* perfpersistd.conf */
static char conf[96], folder[96], written[96];
static struct reload reload;
static unsigned begun, ended;

static void on_changed(void *userdata _unused_)
{
	b.changes++;
	reload_continue(&reload);
}

static void on_begun(void *userdata _unused_)
{
	begun++;
}

static void on_ended(void *userdata _unused_)
{
	ended++;
}

static void on_name_ended(void *userdata _unused_, const struct event *e)
{
	reload_ended(&reload, e);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void put_dropin(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	put(path, text);
}

static void remove_dropin(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ck_assert_int_eq(unlink(path), 0);
}

/* Starts the part of the daemon that owns the configuration. */
static void begin_reload(void)
{
	struct reload_options options = { .config = &base, .instance = "", .named = conf };

	memset(&reload, 0, sizeof(reload));
	reload.lifecycle = &b.lifecycle;
	reload.quota = &b.quota;
	reload.peers = &b.peers;
	reload.service = &b.service;
	reload.begun = on_begun;
	reload.ended = on_ended;
	b.service.boot = reload_boot;
	b.service.forget = reload_forget;
	b.service.reload = reload_request;
	b.service.userdata = &reload;
	ck_assert_int_eq(reload_init(&reload, &options), 0);
	/* Uses a directory of this test instead of the machine's /var/lib. */
	snprintf(reload.places.folders[reload.places.written], PATH_MAX, "%s", written);
}

static void setup(void)
{
	begun = ended = 0;
	broker_begin(&b);
	b.lifecycle.changed = on_changed;
	b.lifecycle.ended = on_name_ended;
	base = b.config;
	snprintf(conf, sizeof(conf), "%s/conf", b.dir);
	snprintf(folder, sizeof(folder), "%s/conf.d", b.dir);
	snprintf(written, sizeof(written), "%s/written", b.dir);
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	put(conf, "[daemon]\nUser=61996\nGroup=61998\nMaxEvents=64\nMaxMemory=1G\n");
	base.path = conf;
	base.user = base.group = conf;
	base.uid = 61996;
	base.gid = TEAM;
}

static void start(void)
{
	begin_reload();
	ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	broker_until(&b, reload.settled);
	client_begin(&b, &root, 0);
	client_begin(&b, &team, MEMBER);
}

static void teardown(void)
{
	char command[320];

	client_end(&root);
	client_end(&team);
	reload_end(&reload);
	peers_done(&b.peers);
	lifecycle_done(&b.lifecycle);
	reload_done(&reload);
	snprintf(command, sizeof(command), "rm -rf %s %s %s", conf, folder, written);
	ck_assert_int_eq(system(command), 0);
	broker_end(&b);
}

static const struct pp_msg_reload_reply *again(void)
{
	ck_assert_int_eq(client_call(&root, PP_OP_RELOAD, NULL), 0);
	return &root.body.reload_reply;
}

static void expect(uint32_t created, uint32_t changed, uint32_t deleted, uint32_t failed)
{
	const struct pp_msg_reload_reply *reply = again();

	ck_assert_msg(reply->created == created && reply->changed == changed &&
			      reply->deleted == deleted && reply->failed == failed,
		      "%u created, %u changed, %u deleted, %u failed: %s", reply->created,
		      reply->changed, reply->deleted, reply->failed, reply->message);
	ck_assert(failed ? *reply->message : !*reply->message);
}

static const struct pp_event *runs(const char *ns, const char *name)
{
	const struct event *e = registry_by_name(&b.lifecycle.registry, ns, name);

	return e ? &e->truth : NULL;
}

static uint64_t id_of(const char *ns, const char *name)
{
	return runs(ns, name) ? runs(ns, name)->id : 0;
}

#define TWO                                                                          \
	"[namespace n]\nOwner=7\nMode=0600\n[event n/a]\nEvent=sched:sched_switch\n" \
	"Filter=prev_pid != 0\nBuffer=64K\n[event n/b]\nEvent=cpu-clock\n"

START_TEST(at_the_start)
{
	put_dropin("a.conf", TWO);
	start();
	ck_assert_uint_eq(b.engine.created, 2);
	ck_assert_uint_eq(runs("n", "a")->spec.flags, PP_EVENT_CONFIGURED | PP_EVENT_ALL_CPUS);
	ck_assert_str_eq(runs("n", "a")->spec.filter, "prev_pid != 0");
	ck_assert_uint_eq(runs("n", "a")->spec.owner, 7);
	ck_assert_uint_eq(runs("n", "a")->spec.mode, 0600);
	ck_assert_uint_eq(runs("n", "b")->spec.creator, 0);
	ck_assert_uint_eq(ended, 1);
	expect(0, 0, 0, 0);
	ck_assert_uint_eq(begun, 1);
	ck_assert_uint_eq(b.engine.created + b.engine.changed + b.engine.deleted, 2);
	ck_assert_int_eq(client_call(&team, PP_OP_RELOAD, NULL), -EACCES);
}
END_TEST

/* A restarted daemon finds the events that it made, and touches nothing. */
START_TEST(at_the_next_start)
{
	uint64_t a;

	put_dropin("a.conf", TWO);
	start();
	a = id_of("n", "a");
	reload_end(&reload);
	reload_done(&reload);
	begin_reload();
	/* As if the enumeration had just ended. */
	reload_continue(&reload);
	broker_until(&b, reload.settled);
	ck_assert_uint_eq(id_of("n", "a"), a);
	ck_assert_uint_eq(b.engine.created + b.engine.changed + b.engine.deleted, 2);
}
END_TEST

START_TEST(differences)
{
	uint64_t a, x, c;

	put_dropin("a.conf", TWO "[event n/c]\nEvent=page-faults\nPeriod=5\n");
	start();
	a = id_of("n", "a");
	x = id_of("n", "b");
	c = id_of("n", "c");
	/* A change sets filter, rate and period; a new text makes a new event; one event less, one more. */
	put_dropin("a.conf", "[namespace n]\nOwner=7\nMode=0600\n"
			     "[event n/a]\nEvent=sched:sched_switch\nBuffer=64K\nMaxRate=9/s\n"
			     "[event n/b]\nEvent=cpu-clock\n"
			     "[event n/c]\nEvent=page-faults\nPeriod=6\n");
	expect(0, 2, 0, 0);
	ck_assert_uint_eq(id_of("n", "a"), a);
	ck_assert_str_eq(runs("n", "a")->spec.filter, "");
	ck_assert_uint_eq(runs("n", "a")->spec.max_rate, 9);
	ck_assert_uint_eq(id_of("n", "b"), x);
	ck_assert_uint_eq(runs("n", "c")->spec.period, 6);
	ck_assert_uint_eq(id_of("n", "c"), c);
	ck_assert_uint_eq(b.engine.changed, 2);
	/* So often, less often, no more. */
	put_dropin("b.conf", "[event n/b]\nEvent=cpu-clock\nCheckpoint=5s\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(runs("n", "b")->spec.flags & PP_EVENT_CHECKPOINT, pp_checkpoint_flags(5));
	put_dropin("b.conf", "[event n/b]\nEvent=cpu-clock\nCheckpoint=1m\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(runs("n", "b")->spec.flags & PP_EVENT_CHECKPOINT,
			  pp_checkpoint_flags(60));
	remove_dropin("b.conf");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(runs("n", "b")->spec.flags & PP_EVENT_CHECKPOINT, 0);
	ck_assert_uint_eq(id_of("n", "b"), x);
	put_dropin("b.conf", "[event n/a]\nBuffer=128K\n[event n/b]\nEnabled=no\n"
			     "[event m/d]\nEvent=cpu-clock\nFrequency=9\n");
	expect(1, 1, 1, 0);
	ck_assert_uint_eq(runs("n", "a")->set, 2);
	ck_assert_ptr_null(runs("n", "b"));
	remove_dropin("b.conf");
	expect(1, 1, 1, 0);
	ck_assert_uint_eq(id_of("n", "a"), a);
	ck_assert_ptr_null(runs("m", "d"));
	ck_assert_ptr_null(registry_namespace(&b.lifecycle.registry, "m"));
	expect(0, 0, 0, 0);
}
END_TEST

/* A trigger is made as one; another trigger of that name is made anew, another filter is a change. */
START_TEST(triggers)
{
	const struct event *e;
	uint64_t id;

	put_dropin("a.conf",
		   "[event n/a]\nEvent=cpu-clock\n"
		   "[trigger n/t]\nOn=sched:sched_switch\nFilter=prev_pid == 1\nTargets=a\n");
	start();
	e = registry_by_name(&b.lifecycle.registry, "n", "t");
	ck_assert_ptr_nonnull(e);
	id = e->truth.id;
	ck_assert_uint_eq(e->truth.spec.flags,
			  PP_EVENT_CONFIGURED | PP_EVENT_TRIGGER | PP_EVENT_ALL_CPUS);
	ck_assert_str_eq(e->trigger.targets, "a");
	ck_assert_uint_eq(e->trigger.hold_off, 10000000000);
	ck_assert_uint_eq(e->trigger.max_per_day, 0);
	ck_assert_uint_eq(e->truth.spec.data_size, 64 * 1024);
	ck_assert_str_eq(fake_trigger(&b.engine, id)->spec.targets, "a");
	expect(0, 0, 0, 0);
	put_dropin("b.conf", "[trigger n/t]\nFilter=prev_pid == 2\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(id_of("n", "t"), id);
	put_dropin("b.conf", "[trigger n/t]\nHoldOff=500ms\nMaxPerDay=3\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_ne(id_of("n", "t"), id);
	e = registry_by_name(&b.lifecycle.registry, "n", "t");
	ck_assert_uint_eq(e->trigger.hold_off, 500000000);
	ck_assert_uint_eq(e->trigger.max_per_day, 3);
	ck_assert_uint_eq(e->trigger.after, 0);
	expect(0, 0, 0, 0);
	put_dropin("b.conf", "[trigger n/t]\nHoldOff=500ms\nMaxPerDay=3\nAfter=200r\n");
	expect(0, 1, 0, 0);
	e = registry_by_name(&b.lifecycle.registry, "n", "t");
	ck_assert_uint_eq(e->trigger.after, 500000000);
	ck_assert_uint_eq(e->trigger.after_records, 200);
	expect(0, 0, 0, 0);
	/* What an earlier file has set is taken away. */
	put_dropin("c.conf", "[trigger n/t]\nAfter=\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(registry_by_name(&b.lifecycle.registry, "n", "t")->trigger.after, 0);
	put_dropin("c.conf", "");
	expect(0, 1, 0, 0);
	put_dropin("b.conf", "[trigger n/t]\nHoldOff=500ms\nMaxPerDay=3\nAfter=501ms\n");
	expect(0, 0, 0, 1);
	put_dropin("b.conf", "[trigger n/t]\nAction=pause\n");
	expect(0, 1, 0, 0);
	e = registry_by_name(&b.lifecycle.registry, "n", "t");
	ck_assert_uint_eq(e->trigger.action, PP_ACTION_PAUSE);
	expect(0, 0, 0, 0);
	put_dropin("b.conf", "[trigger n/t]\nAction=pause\nAfter=1ms\n");
	expect(0, 0, 0, 1);
	put_dropin("b.conf", "[trigger n/t]\nAction=notify\n");
	expect(0, 0, 0, 1); /* it has Targets= */
	put_dropin("c.conf", "[trigger n/v]\nOn=cpu-clock\nAction=notify\n");
	put_dropin("b.conf", "[trigger n/t]\n");
	expect(1, 1, 0, 0);
	ck_assert_str_eq(registry_by_name(&b.lifecycle.registry, "n", "v")->trigger.targets, "");
	put_dropin("b.conf", "[trigger n/t]\nEnabled=no\n[trigger n/u]\nOn=cpu-clock\n");
	expect(0, 0, 1, 1); /* no Targets= */
	ck_assert_ptr_null(runs("n", "t"));
	ck_assert_ptr_null(runs("n", "u"));
}
END_TEST

/* Of two events, and rates: settled as for requests, and no difference if they are the same. */
START_TEST(conditions)
{
	const char *pair = "[event n/a]\nEvent=cpu-clock\n"
			   "[trigger n/t]\nOn=sched:sched_waking,sched:sched_wakeup_new\n"
			   "Filter=pid == 1\nUntil=sched:sched_switch\nFilter=next_pid == 1\n"
			   "Key=pid,next_pid\nLongerThan=10ms\nTargets=a\n";
	const struct pp_condition *c;
	uint64_t id;

	put_dropin("a.conf", pair);
	start();
	id = id_of("n", "t");
	c = &fake_trigger(&b.engine, id)->spec.condition;
	ck_assert_uint_eq(c->kind, PP_CONDITION_PAIR);
	ck_assert_uint_eq(c->n_on, 2);
	ck_assert_str_eq(runs("n", "t")->spec.event + c->until_at, "sched:sched_switch");
	ck_assert_str_eq(c->key[0], "pid");
	ck_assert_str_eq(c->key[1], "next_pid");
	ck_assert_uint_eq(c->longer_than, 10000000);
	expect(0, 0, 0, 0);
	ck_assert_uint_eq(id_of("n", "t"), id);
	put_dropin("b.conf", "[trigger n/t]\nLongerThan=20ms\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_ne(id_of("n", "t"), id);
	put_dropin("b.conf", "[trigger n/t]\nRate=over 5/s for 1m\n");
	expect(0, 0, 0, 1); /* both */
	put_dropin("b.conf", "[trigger n/t]\nOn=cpu-clock\nRate=over 5/s for 1m\n");
	expect(0, 0, 0, 1); /* a key for one event */
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\n[trigger n/t]\nTargets=a\n");
	expect(0, 1, 0, 0);
	c = &fake_trigger(&b.engine, id_of("n", "t"))->spec.condition;
	ck_assert_uint_eq(c->kind, PP_CONDITION_RATE);
	ck_assert_uint_eq(c->rate, 5);
	ck_assert_uint_eq(c->seconds, 60);
	put_dropin("b.conf", "[trigger n/t]\nUntil=cpu-clock\nKey=tid\nLongerThan=1s\n");
	expect(0, 0, 0, 1); /* nothing begins */
	put_dropin("b.conf", "[trigger n/t]\nOn=cpu-clock\nRate=under 5/s for 1m\n");
	expect(0, 0, 0, 1);
}
END_TEST

/* The period that the kernel would choose today is no difference. */
START_TEST(periods_left_open)
{
	struct event *e;
	uint64_t a;

	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\n[event n/m]\nEvent=mem:0x1000:w\n");
	start();
	ck_assert_uint_eq(runs("n", "m")->spec.period, 1);
	a = id_of("n", "a");
	expect(0, 0, 0, 0);
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\nFrequency=100\n"
			     "[event n/m]\nEvent=mem:0x1000:w\nPeriod=1\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(runs("n", "a")->spec.period, 100);
	/* The key is gone: the default, again. */
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\n[event n/m]\nEvent=mem:0x1000:w\n");
	expect(0, 1, 0, 0);
	e = registry_by_name(&b.lifecycle.registry, "n", "a");
	ck_assert_uint_ge(e->truth.spec.period, 1000);
	ck_assert(e->truth.spec.flags & PP_EVENT_FREQ);
	/* Not a frequency, none of a breakpoint, and not possible. */
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\nPeriod=100\n"
			     "[event n/m]\nEvent=mem:0x1000:w\nFrequency=1\n");
	expect(0, 1, 0, 1);
	ck_assert_uint_eq(e->truth.spec.period, 100);
	ck_assert(!(e->truth.spec.flags & PP_EVENT_FREQ));
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\nFrequency=99999999999\n");
	expect(0, 0, 1, 1);
	ck_assert_uint_eq(e->truth.spec.period, 100);
	ck_assert_uint_eq(id_of("n", "a"), a);
}
END_TEST

START_TEST(other_peoples_events)
{
	uint64_t theirs;

	put_dropin("a.conf", TWO);
	start();
	ck_assert_int_eq(client_create(&root, "n", "mine"), 0);
	theirs = id_of("n", "mine");
	expect(0, 0, 0, 0);
	put_dropin("b.conf", "[event n/mine]\nEvent=page-faults\n");
	expect(0, 0, 0, 1);
	ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "/b.conf:1: "));
	ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "left alone"));
	ck_assert_uint_eq(id_of("n", "mine"), theirs);
	remove_dropin("b.conf");
	expect(0, 0, 0, 0);
	ck_assert_uint_eq(id_of("n", "mine"), theirs);
}
END_TEST

/* A typing error costs no running event. */
START_TEST(faults_leave_what_runs)
{
	uint64_t a, x;

	put_dropin("a.conf", TWO);
	start();
	a = id_of("n", "a");
	x = id_of("n", "b");
	put_dropin("a.conf", "[namespace n]\nOwner=7\nMode=0600\n"
			     "[event n/a]\nEvent=sched:sched_switch\nBufer=64K\n"
			     "[evnt n/b]\nEvent=cpu-clock\n");
	expect(0, 0, 0, 2);
	ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "/a.conf:6: "));
	put_dropin("a.conf", "[event n/a]\nEvent=no-such-event\n[event n/b]\nEvent=cpu-clock\n"
			     "Filter=(\n");
	expect(0, 0, 0, 2);
	ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "/a.conf:2: "));
	put_dropin("a.conf", "[event n/a]\nBuffer=8K\n[event n/b]\nEvent=cpu-clock\n");
	expect(0, 0, 0, 1);
	ck_assert_uint_eq(id_of("n", "a"), a);
	ck_assert_uint_eq(id_of("n", "b"), x);
	ck_assert_uint_eq(b.engine.deleted + b.engine.changed, 0);
	/* Nor does a faulty perfpersistd.conf: the old settings stay in force. */
	put_dropin("a.conf", TWO);
	put(conf, "[daemon]\nMaxEvents=none\n");
	expect(0, 0, 0, 1);
	ck_assert_uint_eq(b.service.config->max_events, 64);
}
END_TEST

START_TEST(what_the_engine_refuses)
{
	put_dropin("a.conf", TWO "[event n/c]\nEvent=page-faults\n");
	b.engine.mood = FAKE_FAILS;
	b.engine.moods = 1;
	start();
	ck_assert_ptr_null(runs("n", "a"));
	ck_assert_ptr_nonnull(runs("n", "b"));
	ck_assert_uint_eq(reload.failed, 1);
	ck_assert_ptr_nonnull(strstr(reload.message, "/a.conf:4: The fake failed."));
	expect(1, 0, 0, 0);
}
END_TEST

START_TEST(what_need_not_be_there)
{
	put_dropin("a.conf", "[event n/a]\nEvent=no_such_pmu/x=1/\nOptional=yes\n");
	start();
	ck_assert_uint_eq(b.engine.created, 0);
	expect(0, 0, 0, 0);
}
END_TEST

START_TEST(limits_and_namespaces)
{
	struct pp_msg_limits_request request = { 0 };
	const struct namespace *ns;

	put_dropin("a.conf",
		   "[namespace n]\nMaxEvents=1\nLive=nobody\n[event n/a]\nEvent=cpu-clock\n"
		   "[event n/b]\nEvent=page-faults\n");
	start();
	ck_assert_ptr_nonnull(runs("n", "a"));
	ck_assert_ptr_null(runs("n", "b"));
	ck_assert_ptr_nonnull(strstr(reload.message, "/a.conf:6: "));
	ns = registry_namespace(&b.lifecycle.registry, "n");
	ck_assert(ns->configured);
	ck_assert_int_eq(ns->live, NAMESPACE_LIVE_NOBODY);
	put(conf, "[daemon]\nUser=61996\nGroup=61998\nMaxEvents=7\n");
	put_dropin("a.conf", "[namespace n]\nMode=0644\n[event n/a]\nEvent=cpu-clock\n"
			     "[event n/b]\nEvent=page-faults\n");
	expect(1, 0, 0, 0);
	ck_assert_uint_eq(b.engine.given_rights, 1);
	ck_assert_uint_eq(ns->mode, 0644);
	ck_assert_int_eq(client_call(&root, PP_OP_LIMITS, &request), 0);
	ck_assert_uint_eq(root.body.limits_reply.limits[0].max_events, 7);
	/* A namespace that is no longer configured lives as long as its events. */
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\n");
	expect(0, 0, 1, 0);
	ck_assert(!ns->configured);
	remove_dropin("a.conf");
	expect(0, 0, 1, 0);
	ck_assert_uint_eq(b.lifecycle.registry.n_namespaces, 0);
	/* The process keeps its user and group, and says so. */
	put(conf, "[daemon]\nUser=61995\nGroup=61998\n");
	expect(0, 0, 0, 1);
	ck_assert_uint_eq(b.service.config->uid, 61996);
	put(conf, "[daemon]\nUser=61996\nGroup=61995\n[namespace m]\n");
	expect(0, 0, 0, 1);
	ck_assert_uint_eq(registry_namespace(&b.lifecycle.registry, "m")->group, TEAM);
}
END_TEST

/* The signal comes before it is known which events there are. */
START_TEST(again_from_the_start)
{
	begin_reload();
	reload_again(&reload);
	ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	broker_until(&b, b.lifecycle.synced);
	client_begin(&b, &root, 0);
	client_begin(&b, &team, MEMBER);
	broker_settle(&b);
	ck_assert(reload.settled);
	ck_assert_uint_eq(ended, 1);
}
END_TEST

/* Shared rings: the other name keeps its rings. */
START_TEST(second_names)
{
	uint64_t theirs;

	put_dropin("a.conf",
		   "[event n/a]\nEvent=cpu-clock\n[event n/b]\nEvent=cpu-clock\nShare=yes\n");
	start();
	ck_assert_uint_eq(b.engine.aliased, 1);
	ck_assert_uint_eq(runs("n", "b")->shares, id_of("n", "a"));
	expect(0, 0, 0, 0);
	theirs = id_of("n", "b");
	put_dropin("a.conf", "[event n/a]\nEvent=cpu-clock\nMaxRate=5\n"
			     "[event n/b]\nEvent=cpu-clock\nShare=yes\n");
	expect(0, 1, 0, 0);
	ck_assert_uint_eq(id_of("n", "b"), theirs);
	ck_assert_uint_eq(runs("n", "b")->shares, 0);
	ck_assert_uint_eq(runs("n", "b")->spec.max_rate, 0);
	ck_assert_uint_eq(runs("n", "a")->spec.max_rate, 5);
	expect(0, 0, 0, 0);
}
END_TEST

/* Events that failed because the engine was offline are created when it is back. */
START_TEST(engine_away)
{
	put_dropin("a.conf", TWO);
	b.engine.mood = FAKE_DIES_BEFORE;
	b.engine.moods = 2;
	start();
	broker_until(&b, runs("n", "a") && runs("n", "a")->id && runs("n", "b") &&
				 runs("n", "b")->id && reload.settled);
	expect(0, 0, 0, 0);
}
END_TEST

/* Several clients that ask all get the answer; a client that leaves while it waits costs
 * nothing. */
START_TEST(asked_at_once)
{
	struct client other;

	start();
	client_begin(&b, &other, 0);
	put_dropin("a.conf", TWO);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_RELOAD, NULL);
	broker_until(&b, reload.configured.pass);
	client_send(&root, PP_OP_RELOAD, NULL);
	client_send(&other, PP_OP_RELOAD, NULL);
	broker_settle(&b);
	client_end(&other);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_eq(root.body.reload_reply.created, 2);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_eq(root.body.reload_reply.created, 0);
	ck_assert(reload.settled);
}
END_TEST

/* The engine dies in the middle of a pass. */
START_TEST(ended_half_way)
{
	start();
	put_dropin("a.conf", TWO);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_RELOAD, NULL);
	broker_until(&b, reload.configured.pass);
}
END_TEST

static struct pp_msg_create_request to_boot(const char *name)
{
	struct pp_msg_create_request request = {
		.ns = "own",
		.count = 1,
		.flags = PP_EVENT_BOOT,
		.selections[0].event = "cpu-clock",
	};

	snprintf(request.name, sizeof(request.name), "%s", name);
	return request;
}

START_TEST(there_after_a_reboot)
{
	struct pp_msg_create_request request = to_boot("x");
	const struct pp_msg_change_request slower = { .which = client_name("own", "x"),
						      .what = PP_CHANGE_MAX_RATE,
						      .max_rate = 5 };
	uint64_t id;

	put(conf, "[daemon]\nUser=61996\nGroup=61998\nCreateNamespaces=all\n");
	start();
	again();
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	id = team.body.event.id;
	/* The event exists, and does not come from the configuration: nothing to do or to
	 * report. */
	expect(0, 0, 0, 0);
	ck_assert_uint_eq(id_of("own", "x"), id);
	/* The reboot: only the file is left. */
	ck_assert(fake_unmake(&b.engine, id));
	fake_hang_up(&b.engine);
	broker_until(&b, !runs("own", "x"));
	expect(1, 0, 0, 0);
	ck_assert_uint_eq(runs("own", "x")->spec.creator, MEMBER);
	ck_assert_uint_eq(runs("own", "x")->spec.owner, MEMBER);
	ck_assert_uint_ne(runs("own", "x")->spec.flags & PP_EVENT_CONFIGURED, 0);
	/* Its owner changes it, and that is not taken back. */
	ck_assert_int_eq(client_call(&team, PP_OP_CHANGE, &slower), 0);
	expect(0, 0, 0, 0);
	ck_assert_uint_eq(runs("own", "x")->spec.max_rate, 5);
	/* Its owner deletes the event, and its file. */
	ck_assert_int_eq(client_delete(&team, "own", "x"), 0);
	expect(0, 0, 0, 0);
	ck_assert_ptr_null(runs("own", "x"));
	ck_assert_int_eq(rmdir(written), 0);
	/* Without a place for the file the event is not created, either. */
	put(written, "");
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), -ENOTDIR);
	ck_assert_ptr_null(runs("own", "x"));
}
END_TEST

/* A user who may make namespaces made this one first; configured events are not readable for that
 * user. */
START_TEST(a_strangers_namespace)
{
	struct pp_msg_create_request request = to_boot("x");

	put(conf, "[daemon]\nUser=61996\nGroup=61998\nCreateNamespaces=all\n"
		  "MaxSampleRatePerUser=8000\n");
	start();
	again();
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	put_dropin("a.conf", "[event own/y]\nEvent=page-faults\n");
	for (unsigned i = 0; i < 2; i++) { /* then through their own file */
		expect(0, 0, 0, 1);
		ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "/a.conf:1: "));
		ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "belongs to user"));
		ck_assert_ptr_null(runs("own", "y"));
	}
	/* The event may be charged to that user, or the namespace may become the
	 * administrator's. */
	put_dropin("a.conf", "[event own/y]\nEvent=page-faults\nCreator=61997\n");
	expect(1, 0, 0, 0);
	ck_assert_uint_eq(runs("own", "y")->spec.owner, MEMBER);
	put_dropin("a.conf", "[namespace own]\nMode=0600\n[event own/z]\nEvent=page-faults\n");
	expect(1, 0, 1, 0);
	ck_assert_uint_eq(runs("own", "z")->spec.owner, 0);
	ck_assert_uint_eq(runs("own", "z")->spec.mode, 0600);
}
END_TEST

static bool is_written(const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", written, file);
	return access(path, F_OK) == 0;
}

/* A name that ends with another user's event does not return at the next boot. */
START_TEST(ended_with_another)
{
	struct pp_msg_create_request request = to_boot("y");

	put(conf, "[daemon]\nUser=61996\nGroup=61998\nCreateNamespaces=all\n"
		  "MaxProgramsPerUser=7\nMaxSampleRatePerUser=100000\n");
	put_dropin("a.conf", "[namespace a]\nMode=0644\nLive=readers\n");
	start();
	again();
	b.engine.sources = 3;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	request.flags = PP_EVENT_BOOT | PP_EVENT_SHARE;
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert_uint_ne(team.body.event.shares, 0);
	ck_assert(is_written("own.y.conf"));
	b.engine.sources = 7; /* now the member has no room for y's programs */
	request.flags = PP_EVENT_NO_SHARE;
	strcpy(request.name, "z");
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_show(&team, "own", "y"), -ENOENT);
	ck_assert(!is_written("own.y.conf"));
}
END_TEST

/* Files that would not be read at the next start are not written. */
START_TEST(no_room_for_files)
{
	struct pp_msg_create_request request = to_boot("x");
	char path[256];

	put(conf, "[daemon]\nUser=61996\nGroup=61998\nCreateNamespaces=all\n"
		  "MaxSampleRatePerUser=100000\n");
	start();
	again();
	ck_assert_int_eq(mkdir(written, 0755), 0);
	for (unsigned i = 0; i < DROPINS_FILES_MAX; i++) {
		snprintf(path, sizeof(path), "%s/n.e%u.conf", written, i);
		put(path, "");
	}
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), -ENOSPC);
	ck_assert(!is_written("own.x.conf"));
	ck_assert_int_eq(client_show(&team, "own", "x"), -ENOENT);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert(is_written("own.x.conf"));
}
END_TEST

/* A section of a namespace that is left out widens neither rights nor limits. */
START_TEST(a_faulty_namespace)
{
	put_dropin("a.conf", "[namespace n]\nMode=0600\nMaxMemory=8M\nLive=nobdy\n"
			     "[event n/a]\nEvent=cpu-clock\n");
	start();
	ck_assert_ptr_null(runs("n", "a"));
	expect(0, 0, 0, 2);
	ck_assert_ptr_nonnull(strstr(root.body.reload_reply.message, "/a.conf:"));
	put_dropin("a.conf", "[namespace n]\nMode=0600\nMaxMemory=8M\n"
			     "[event n/a]\nEvent=cpu-clock\n");
	expect(1, 0, 0, 0);
	ck_assert_uint_eq(runs("n", "a")->spec.mode, 0600);
	put_dropin("a.conf", "[namespace n]\nMode=0640\nMaxMemory=9M\nLive=nobdy\n"
			     "[event n/a]\nEvent=cpu-clock\n");
	expect(0, 0, 0, 1);
	ck_assert_uint_eq(runs("n", "a")->spec.mode, 0600);
	ck_assert_uint_eq(quota_max_of_namespace(&b.quota, QUOTA_MEMORY, "n"), 8 << 20);
	/* An event that is replaced meanwhile is not lost. */
	put_dropin("b.conf", "[event m/a]\nEvent=cpu-clock\n");
	expect(1, 0, 0, 1);
	put_dropin("b.conf", "[namespace m]\nMode=9\n[event m/a]\nEvent=page-faults\n");
	expect(0, 1, 0, 2);
	ck_assert_ptr_nonnull(runs("m", "a"));
}
END_TEST

/* The engine is gone between the deletion and the creation of one event, and comes back only when
 * the order to create has been given up. */
START_TEST(engine_away_for_long)
{
	put_dropin("a.conf", "[event n/b]\nEvent=cpu-clock\n");
	start();
	ck_assert_ptr_nonnull(runs("n", "b"));
	put_dropin("a.conf", "[event n/b]\nEvent=page-faults\n");
	client_send(&root, PP_OP_RELOAD, NULL);
	broker_until(&b, b.engine.deleted == 1);
	fake_wait(&b.engine, true); /* accepts connections, and answers nothing */
	fake_hang_up(&b.engine);
	broker_until(&b, reload.unfinished && !reload.configured.pass);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	broker_until(&b, runs("n", "b"));
}
END_TEST

/* A creation waits in the engine while the namespace is narrowed: its files get the new rights. */
START_TEST(narrowed_while_created)
{
	struct pp_msg_create_request request = to_boot("x");

	put(conf, "[daemon]\nUser=61996\nGroup=61998\nCreateNamespaces=all\n"
		  "MaxSampleRatePerUser=100000\n");
	start();
	again();
	request.flags = PP_EVENT_NO_SHARE;
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	fake_wait(&b.engine, true);
	strcpy(request.name, "y");
	client_send(&team, PP_OP_CREATE, &request);
	strcpy(request.name, "z");
	client_send(&team, PP_OP_CREATE, &request);
	broker_settle(&b);
	put_dropin("a.conf", "[namespace own]\nOwner=61997\nMode=0600\n");
	client_send(&root, PP_OP_RELOAD, NULL);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	broker_until(&b, runs("own", "x")->spec.mode == 0600 && runs("own", "y") &&
				 runs("own", "y")->spec.mode == 0600 && runs("own", "z") &&
				 runs("own", "z")->spec.mode == 0600);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("configured");
	TCase *t = tcase_create("pass");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, at_the_start);
	tcase_add_test(t, at_the_next_start);
	tcase_add_test(t, differences);
	tcase_add_test(t, triggers);
	tcase_add_test(t, conditions);
	tcase_add_test(t, periods_left_open);
	tcase_add_test(t, other_peoples_events);
	tcase_add_test(t, faults_leave_what_runs);
	tcase_add_test(t, what_the_engine_refuses);
	tcase_add_test(t, what_need_not_be_there);
	tcase_add_test(t, limits_and_namespaces);
	tcase_add_test(t, again_from_the_start);
	tcase_add_test(t, second_names);
	tcase_add_test(t, engine_away);
	tcase_add_test(t, asked_at_once);
	tcase_add_test(t, ended_half_way);
	tcase_add_test(t, there_after_a_reboot);
	tcase_add_test(t, a_strangers_namespace);
	tcase_add_test(t, ended_with_another);
	tcase_add_test(t, no_room_for_files);
	tcase_add_test(t, a_faulty_namespace);
	tcase_add_test(t, engine_away_for_long);
	tcase_add_test(t, narrowed_while_created);
	suite_add_tcase(s, t);
	return run_suite(s);
}
