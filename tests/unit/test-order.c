// SPDX-License-Identifier: LGPL-2.1-or-later
/* Orders of a hostile broker: a valid one, and each way to spoil it. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/order.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static struct pp_order order;
static struct pp_spec *const spec = &order.spec;
static struct pp_parsed *const parsed = &order.parsed;
static struct pp_source *const source = &order.parsed.sources[0];

static void good_create(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CREATE;
	strcpy(spec->ns, "web");
	strcpy(spec->name, "switches");
	spec->data_size = 512 * 1024;
	spec->owner = 1000;
	spec->group = 1001;
	spec->mode = 0640;
	spec->creator = 1002;
	spec->flags = PP_EVENT_ALL_CPUS;
	parsed->n_sources = 1;
}

static void good_tracepoint(void)
{
	good_create();
	strcpy(spec->event, "sched:sched_switch");
	source->kind = PP_SOURCE_TRACEPOINT;
	strcpy(source->system, "sched");
	strcpy(source->name, "sched_switch");
	strcpy(source->text, "sched:sched_switch");
}

static void good_sampling(void)
{
	good_create();
	strcpy(spec->event, "cpu-clock:u");
	source->kind = PP_SOURCE_SAMPLING;
	source->type = PERF_TYPE_SOFTWARE;
	source->config = PERF_COUNT_SW_CPU_CLOCK;
	source->exclude = PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV;
	strcpy(source->text, "cpu-clock:u");
	spec->period = 999;
	spec->flags |= PP_EVENT_FREQ | PP_EVENT_CALLCHAIN;
}

static void good_breakpoint(void)
{
	good_sampling();
	source->type = PERF_TYPE_BREAKPOINT;
	source->config = 0;
	source->config1 = 0xffffffff81000000;
	source->config2 = 8;
	source->bp_type = 2;
}

static void good_aux(void)
{
	good_create();
	strcpy(spec->event, "intel_pt//");
	source->kind = PP_SOURCE_AUX;
	source->type = 9;
	source->config = 0x400e601;
	source->exclude = PP_EXCLUDE_KERNEL;
	strcpy(source->text, "intel_pt//");
	spec->flags |= PP_EVENT_AUX;
	spec->period = 4096;
}

static void add_argument(void)
{
	struct pp_probe_arg *a = &source->args[source->n_args];

	snprintf(a->name, sizeof(a->name), "arg%u", ++source->n_args);
	a->place = PP_PROBE_ARGUMENT;
	a->number = source->n_args;
	a->size = 8;
}

static void good_kprobe(void)
{
	good_create();
	strcpy(spec->event, "kprobe:do_exit(arg1)");
	source->kind = PP_SOURCE_KPROBE;
	strcpy(source->name, "do_exit");
	strcpy(source->text, "kprobe:do_exit(arg1)");
	add_argument();
}

static void good_uprobe(void)
{
	good_create();
	strcpy(spec->event, "uretprobe:/lib/x/libc.so.6:malloc(retval)");
	source->kind = PP_SOURCE_UPROBE;
	source->is_return = 1;
	source->offset = 0x9a0d0;
	strcpy(source->name, "malloc");
	strcpy(source->path, "/lib/x/libc.so.6");
	add_argument();
	source->args[0].place = PP_PROBE_RETURN;
	source->args[0].number = 0;
}

/* pid != 0 */
static void add_filter(void)
{
	struct pp_filter_node *node = &parsed->nodes[parsed->n_nodes];

	node->op = PP_FILTER_NE;
	strcpy(node->field, "pid");
	source->filter = parsed->n_nodes++;
	source->n_filter = 1;
}

static void good_filter(void)
{
	good_tracepoint();
	strcpy(spec->filter, "comm ~ \"kw\303\266rker*\"");
	add_filter();
	add_filter();
}

static void good_change(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CHANGE;
	order.id = 7;
	order.what = PP_CHANGE_FILTER | PP_CHANGE_BUFFER | PP_CHANGE_MAX_RATE;
	order.spec.data_size = 4096;
	add_filter();
}

static void good_alias(void)
{
	good_create();
	order.type = PP_ORDER_ALIAS;
	order.id = 7;
}

static void good_rights(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_RIGHTS;
	strcpy(spec->ns, "web");
	spec->mode = 0640;
}

static void good_pause(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_PAUSE;
	order.id = 7;
	order.what = 1;
}

static void good_trigger(void)
{
	good_tracepoint();
	spec->flags |= PP_EVENT_TRIGGER;
	strcpy(order.trigger.targets, "a,b*");
	order.trigger.hold_off = PP_HOLD_OFF_MIN;
}

static void good_pair(void)
{
	good_trigger();
	order.parsed.sources[1] = order.parsed.sources[0];
	order.parsed.n_sources = 2;
	order.trigger.condition = (struct pp_condition){
		.kind = PP_CONDITION_PAIR,
		.n_on = 1,
		.until_at = 5,
		.longer_than = 1,
		.key = { "tid", "tid" },
	};
}

static void good_rate(void)
{
	good_trigger();
	order.trigger.condition = (struct pp_condition){
		.kind = PP_CONDITION_RATE,
		.rate = UINT32_MAX - 1,
		.seconds = PP_RATE_SECONDS_MAX,
	};
}

static void good_aim(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_AIM;
	order.id = 7;
	order.what = PP_TARGETS_MAX;
}

static void good_fire(void)
{
	good_aim();
	order.type = PP_ORDER_FIRE;
	order.what = 1;
}

static void good_turn(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_TURN;
	order.id = 7;
	order.what = 1;
}

static void good_cpus(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CPUS;
	order.id = 7;
	pp_cpumask_set(&spec->cpus, PP_CPUS_MAX - 1);
}

static void expect(int r)
{
	ck_assert_int_eq(pp_order_check(&order), r);
}

/* Changes one field of a valid order. */
#define WITH_STACK (PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN | PP_EVENT_USER_STACK)

#define SPOIL(good, ...)          \
	do {                      \
		good();           \
		expect(0);        \
		__VA_ARGS__;      \
		expect(-EBADMSG); \
	} while (0)

#define ALLOW(good, ...)     \
	do {                 \
		good();      \
		__VA_ARGS__; \
		expect(0);   \
	} while (0)

#define FILL(field) memset(field, 'a', sizeof(field))

START_TEST(orders)
{
	SPOIL(good_tracepoint, order.abi++);
	SPOIL(good_tracepoint, order.type = 0);
	SPOIL(good_tracepoint, order.type = PP_ORDER_AUX + 1);

	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CREATE;
	expect(-EBADMSG);
	order.type = PP_ORDER_ENUMERATE;
	expect(0);
	order.type = PP_ORDER_DELETE;
	expect(-EBADMSG);
	order.id = 1;
	expect(0);
	order.abi++;
	expect(-EBADMSG);
}
END_TEST

/* An order has only the bytes that its type needs, and the engine reads no others. */
START_TEST(lengths)
{
	for (uint32_t type = 0; type <= PP_ORDER_AUX + 1; type++) {
		bool has_parsed = type == PP_ORDER_CREATE || type == PP_ORDER_ADOPT ||
				  type == PP_ORDER_CHANGE;

		ck_assert_uint_eq(pp_order_size(type),
				  has_parsed ? sizeof(order) : offsetof(struct pp_order, parsed));
	}
	ALLOW(good_pause, memset(parsed, 0xff, sizeof(*parsed)));
	ALLOW(good_alias, memset(parsed, 0xff, sizeof(*parsed)));
	ALLOW(good_rights, memset(parsed, 0xff, sizeof(*parsed)));
	ALLOW(good_cpus, memset(parsed, 0xff, sizeof(*parsed)));
	ALLOW(good_aim, memset(parsed, 0xff, sizeof(*parsed)));
	ALLOW(good_turn, memset(parsed, 0xff, sizeof(*parsed)));
}
END_TEST

START_TEST(other_orders)
{
	SPOIL(good_pause, order.id = 0);
	SPOIL(good_pause, order.what = 2);
	ALLOW(good_pause, order.what = 0);

	SPOIL(good_cpus, order.id = 0);
	SPOIL(good_cpus, pp_cpumask_clear(&spec->cpus, PP_CPUS_MAX - 1));

	SPOIL(good_alias, order.id = 0);
	SPOIL(good_alias, strcpy(spec->name, "a/b"));
	SPOIL(good_alias, *spec->ns = 0);
	SPOIL(good_alias, spec->group = UINT32_MAX);
	SPOIL(good_alias, spec->creator = UINT32_MAX);
	SPOIL(good_alias, spec->flags = PP_EVENT_SHARE);
	SPOIL(good_alias, spec->flags = PP_EVENT_TRIGGER);
	ALLOW(good_alias, spec->flags = PP_EVENT_CONFIGURED);

	SPOIL(good_rights, *spec->ns = 0);
	SPOIL(good_rights, strcpy(spec->ns, "../x"));
	SPOIL(good_rights, strcpy(spec->ns, "by-id"));
	SPOIL(good_rights, spec->owner = UINT32_MAX);
	SPOIL(good_rights, spec->group = UINT32_MAX);
	SPOIL(good_rights, spec->mode = 01000);
}
END_TEST

static void good_program(void)
{
	good_tracepoint();
	spec->flags |= PP_EVENT_PROGRAM;
	order.what = 7;
}

/* Of one event, and named if and only if the flag says so. */
START_TEST(programs)
{
	ALLOW(good_program, order.what = UINT32_MAX);
	SPOIL(good_program, order.what = 0);
	SPOIL(good_program, spec->flags &= ~PP_EVENT_PROGRAM);
	SPOIL(good_program, order.parsed.n_sources = 2,
	      order.parsed.sources[1] = order.parsed.sources[0]);
}
END_TEST

static void good_adoption(void)
{
	good_tracepoint();
	order.type = PP_ORDER_ADOPT;
	spec->flags |= PP_EVENT_ADOPTED;
}

static void good_process(void)
{
	good_sampling();
	spec->flags |= PP_EVENT_BOUND;
	order.target = (struct pp_msg_target){
		.kind = PP_TARGET_PROCESS,
		.pid = 4711,
		.start = 123,
	};
}

static void good_cgroup(void)
{
	good_process();
	order.target = (struct pp_msg_target){ .kind = PP_TARGET_CGROUP, .cgroup = "/a" };
}

/* Of events that count; a cgroup has no children that inherit. */
START_TEST(bindings)
{
	ALLOW(good_process, order.target.flags = PP_TARGET_NO_INHERIT | PP_TARGET_DELETE);
	ALLOW(good_process, order.target.kind = PP_TARGET_THREAD);
	ALLOW(good_process, order.target.start = 0);
	ALLOW(good_cgroup, order.target.flags = PP_TARGET_DELETE);
	ALLOW(good_cgroup, order.target.start = 77);
	SPOIL(good_process, spec->flags &= ~PP_EVENT_BOUND);
	SPOIL(good_process, order.target = (struct pp_msg_target){});
	SPOIL(good_process, order.target.kind = 4);
	SPOIL(good_process, order.target.pid = 0);
	SPOIL(good_process, order.target.pid = 1U << 31);
	SPOIL(good_process, order.target.reserved = 1);
	SPOIL(good_process, order.target.flags = PP_TARGET_OR_FILTER);
	SPOIL(good_process, order.target.flags = PP_TARGET_ENDED);
	SPOIL(good_process, order.target.cgroup[0] = '/');
	SPOIL(good_process, spec->flags |= PP_EVENT_TRIGGER);
	SPOIL(good_cgroup, order.target.cgroup[0] = 0);
	SPOIL(good_cgroup, order.target.cgroup[1] = '\n');
	SPOIL(good_cgroup, memset(order.target.cgroup, 'a', sizeof(order.target.cgroup)));
	SPOIL(good_cgroup, order.target.flags = PP_TARGET_NO_INHERIT);
	SPOIL(good_cgroup, order.target.pid = 1);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_BOUND, order.target.kind = PP_TARGET_PROCESS,
	      order.target.pid = 1);
	SPOIL(good_adoption, spec->flags |= PP_EVENT_BOUND);
}
END_TEST

static void good_links(void)
{
	good_pause();
	order.type = PP_ORDER_ATTACH;
	order.what = 1;
}

/* Of one event, which is no probe, no trigger and has no program. */
START_TEST(adoptions)
{
	ALLOW(good_adoption, (void)0);
	SPOIL(good_adoption, spec->flags &= ~PP_EVENT_ADOPTED);
	SPOIL(good_adoption, order.what = 7);
	SPOIL(good_adoption, spec->flags |= PP_EVENT_PROGRAM, order.what = 7);
	SPOIL(good_adoption, spec->flags |= PP_EVENT_TRIGGER);
	SPOIL(good_adoption, order.parsed.n_sources = 2,
	      order.parsed.sources[1] = order.parsed.sources[0]);
	SPOIL(good_kprobe, order.type = PP_ORDER_ADOPT, spec->flags |= PP_EVENT_ADOPTED);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_ADOPTED);

	ALLOW(good_links, order.what = PP_TARGETS_MAX);
	ALLOW(good_links, order.what |= PP_ATTACH_MORE);
	SPOIL(good_links, order.what = 0);
	SPOIL(good_links, order.what = PP_ATTACH_MORE);
	SPOIL(good_links, order.what = PP_TARGETS_MAX + 1);
	SPOIL(good_links, order.id = 0);

	ALLOW(good_pause, order.type = PP_ORDER_HANDOUT, order.what = UINT32_MAX);
	SPOIL(good_pause, order.type = PP_ORDER_HANDOUT, order.id = 0);
	ALLOW(good_pause, order.type = PP_ORDER_DESCRIBE);
	SPOIL(good_pause, order.type = PP_ORDER_DESCRIBE, order.id = 0);
	ALLOW(good_pause, order.type = PP_ORDER_DELETE, order.what = PP_DELETE_CLAIMED);
	SPOIL(good_pause, order.type = PP_ORDER_DELETE, order.what = 2);
}
END_TEST

START_TEST(triggers)
{
	static const uint32_t by_id[] = { PP_ORDER_ARM, PP_ORDER_DISARM, PP_ORDER_FIRE,
					  PP_ORDER_RELEASE };

	for (size_t i = 0; i < ARRAY_SIZE(by_id); i++) {
		ALLOW(good_turn, order.type = by_id[i]);
		SPOIL(good_turn, order.type = by_id[i], order.id = 0);
	}
	SPOIL(good_aim, order.id = 0);
	SPOIL(good_aim, order.what = PP_TARGETS_MAX + 1);
	SPOIL(good_aim, order.what = UINT32_MAX);
	ALLOW(good_aim, order.what = 0);
	SPOIL(good_turn, order.id = 0);
	ALLOW(good_turn, order.what = PP_TURN_STOPPED);
	SPOIL(good_turn, order.what = 4);
	ALLOW(good_turn, order.what = 0);

	SPOIL(good_fire, order.id = 0);
	SPOIL(good_fire, order.what = 2);

	SPOIL(good_trigger, order.trigger.condition.kind = PP_CONDITION_RATE + 1);
	SPOIL(good_pair, order.trigger.condition.n_on = 0);
	SPOIL(good_pair, order.trigger.condition.n_on = 2);
	SPOIL(good_pair, order.trigger.condition.until_at = 0);
	SPOIL(good_pair, order.trigger.condition.until_at = PP_EVENT_TEXT_SIZE);
	SPOIL(good_pair, order.trigger.condition.longer_than = 0);
	SPOIL(good_pair, order.trigger.condition.longer_than = 1ULL << 63);
	SPOIL(good_pair, *order.trigger.condition.key[0] = 0);
	SPOIL(good_pair, FILL(order.trigger.condition.key[1]));
	SPOIL(good_pair, order.trigger.condition.key[1][1] = '\n');
	SPOIL(good_rate, order.trigger.condition.rate = UINT32_MAX);
	SPOIL(good_rate, order.trigger.condition.seconds = 0);
	SPOIL(good_rate, order.trigger.condition.seconds = PP_RATE_SECONDS_MAX + 1);

	SPOIL(good_trigger, *order.trigger.targets = 0);
	SPOIL(good_trigger, order.trigger.action = PP_ACTION_PAUSE; order.trigger.after = 1);
	ALLOW(good_trigger, order.trigger.action = PP_ACTION_PAUSE);
	SPOIL(good_trigger, order.trigger.action = PP_ACTION_NOTIFY);
	ALLOW(good_trigger, order.trigger.action = PP_ACTION_NOTIFY; *order.trigger.targets = 0);
	SPOIL(good_trigger, order.trigger.action = PP_ACTIONS; *order.trigger.targets = 0);
	SPOIL(good_trigger, FILL(order.trigger.targets));
	SPOIL(good_trigger, order.trigger.targets[1] = '\n');
	SPOIL(good_trigger, order.trigger.hold_off = PP_HOLD_OFF_MIN - 1);
	SPOIL(good_trigger, order.trigger.hold_off = 1ULL << 63);
	SPOIL(good_trigger, order.trigger.after = PP_HOLD_OFF_MIN + 1);
	SPOIL(good_trigger, order.trigger.after_records = 1);
	SPOIL(good_trigger, order.trigger.hold_off = INT64_MAX;
	      order.trigger.after = PP_AFTER_MAX + 1);
	SPOIL(good_trigger, order.trigger.after = 1;
	      order.trigger.after_records = PP_AFTER_RECORDS_MAX + 1);
	ALLOW(good_trigger, order.trigger.after = PP_HOLD_OFF_MIN;
	      order.trigger.after_records = PP_AFTER_RECORDS_MAX);
	SPOIL(good_trigger, order.trigger.targets[1] = '\x7f');
	SPOIL(good_trigger, order.trigger.targets[1] = '\xc3');
	SPOIL(good_trigger, *spec->name = 0);
	/* No other event has targets, so nobody looks at them. */
	ALLOW(good_tracepoint, FILL(order.trigger.targets));
}
END_TEST

/* A recovered trigger's text is checked again, by engine and broker. */
START_TEST(trigger_texts)
{
	struct pp_trigger_spec t = { .targets = "x", .hold_off = PP_HOLD_OFF_MIN };

	ck_assert_int_eq(pp_trigger_check(&t), 0);
	*t.targets = 0;
	ck_assert_int_eq(pp_trigger_check(&t), -EBADMSG);
	FILL(t.targets);
	ck_assert_int_eq(pp_trigger_check(&t), -EBADMSG);
	t.targets[sizeof(t.targets) - 1] = 0;
	ck_assert_int_eq(pp_trigger_check(&t), 0);
	t.targets[3] = '\033';
	ck_assert_int_eq(pp_trigger_check(&t), -EBADMSG);
}
END_TEST

START_TEST(changes)
{
	SPOIL(good_change, order.id = 0);
	SPOIL(good_change, order.what = 0);
	SPOIL(good_change, order.what |= 32);
	SPOIL(good_change, order.what |= PP_CHANGE_PERIOD, spec->period = 0);
	SPOIL(good_change, order.what |= PP_CHANGE_PERIOD, spec->period = 1ULL << 63);
	SPOIL(good_change, spec->data_size = 4097);
	SPOIL(good_change, FILL(spec->filter));
	SPOIL(good_change, parsed->n_sources = 1);
	SPOIL(good_change, parsed->nodes[0].op = PP_FILTER_AND);
	SPOIL(good_change, parsed->nodes[0].field[0] = 0);
	SPOIL(good_change, parsed->n_nodes = PP_FILTER_NODES_MAX + 1);
	SPOIL(good_change, add_filter()); /* two trees */
	ALLOW(good_change, parsed->n_nodes = 0);
	ALLOW(good_change, order.what = PP_CHANGE_MAX_RATE, spec->data_size = 0);
	ALLOW(good_change, order.what = PP_CHANGE_CHECKPOINT);
	ALLOW(good_change, order.what = PP_CHANGE_PERIOD, spec->period = 99);
}
END_TEST

START_TEST(names)
{
	SPOIL(good_tracepoint, *spec->ns = 0);
	SPOIL(good_tracepoint, *spec->name = 0);
	SPOIL(good_tracepoint, FILL(spec->ns));
	SPOIL(good_tracepoint, FILL(spec->name));
	SPOIL(good_tracepoint, strcpy(spec->ns, "+new-1"));
	SPOIL(good_tracepoint, strcpy(spec->name, "../x"));
	SPOIL(good_tracepoint, strcpy(spec->name, ".."));
	SPOIL(good_tracepoint, strcpy(spec->ns, "by-id"));
	ALLOW(good_tracepoint, strcpy(spec->name, "by-id"));
}
END_TEST

START_TEST(texts)
{
	SPOIL(good_tracepoint, *spec->event = 0);
	SPOIL(good_tracepoint, FILL(spec->event));
	SPOIL(good_tracepoint, spec->event[3] = '\n');
	SPOIL(good_tracepoint, spec->event[3] = '\033');
	SPOIL(good_tracepoint, spec->event[3] = '\x7f');
	SPOIL(good_tracepoint, spec->event[3] = '\xc3');
	ALLOW(good_tracepoint, spec->event[3] = ' ');
	SPOIL(good_tracepoint, FILL(source->text));
	SPOIL(good_tracepoint, source->text[3] = '\n');
	SPOIL(good_filter, FILL(spec->filter));
	SPOIL(good_filter, spec->filter[3] = '\n');
	SPOIL(good_filter, spec->filter[3] = '\x7f');
}
END_TEST

START_TEST(sources)
{
	SPOIL(good_tracepoint, source->kind = 0);
	SPOIL(good_tracepoint, source->kind = PP_SOURCE_UPROBE + 1);
	SPOIL(good_tracepoint, source->kind = PP_SOURCE_SAMPLING);
	SPOIL(good_sampling, source->kind = PP_SOURCE_TRACEPOINT);
	SPOIL(good_kprobe, source->kind = PP_SOURCE_UPROBE);
	SPOIL(good_uprobe, source->kind = PP_SOURCE_KPROBE);
	SPOIL(good_tracepoint, parsed->n_sources = 0);
	SPOIL(good_tracepoint, parsed->n_sources = 2); /* the second is empty */
	SPOIL(good_tracepoint, parsed->n_sources = PP_TERMS_MAX + 1);
	SPOIL(good_tracepoint, parsed->n_sources = UINT32_MAX);
	good_tracepoint();
	for (parsed->n_sources = 1; parsed->n_sources < PP_TERMS_MAX; parsed->n_sources++)
		parsed->sources[parsed->n_sources] = *source;
	expect(0);
	parsed->sources[PP_TERMS_MAX - 1].name[0] = '.';
	expect(-EBADMSG);
}
END_TEST

START_TEST(filters)
{
	ALLOW(good_filter, );
	ALLOW(good_filter, source->n_filter = 0);
	ALLOW(good_filter, parsed->sources[1] = *source, parsed->n_sources = 2);
	SPOIL(good_filter, source->filter = 0, source->n_filter = 2);
	SPOIL(good_filter, source->filter = 2);
	SPOIL(good_filter, source->filter = UINT32_MAX);
	SPOIL(good_filter, source->filter = UINT32_MAX, source->n_filter = 2);
	SPOIL(good_filter, source->n_filter = UINT32_MAX);
	SPOIL(good_filter, parsed->n_nodes = PP_FILTER_NODES_MAX + 1);
	SPOIL(good_filter, FILL(parsed->nodes[1].field));
	SPOIL(good_filter, FILL(parsed->nodes[1].text));
}
END_TEST

START_TEST(tracepoints)
{
	SPOIL(good_tracepoint, *source->system = 0);
	SPOIL(good_tracepoint, *source->name = 0);
	SPOIL(good_tracepoint, FILL(source->system));
	SPOIL(good_tracepoint, FILL(source->name));
	SPOIL(good_tracepoint, strcpy(source->system, ".."));
	SPOIL(good_tracepoint, strcpy(source->name, "../../x"));
	ALLOW(good_tracepoint, strcpy(source->system, "9p"));
	ALLOW(good_tracepoint, strcpy(source->name, "*[!a-f]?"));
	SPOIL(good_tracepoint, source->type = 1);
	SPOIL(good_tracepoint, source->config = 1);
	SPOIL(good_tracepoint, source->config1 = 1);
	SPOIL(good_tracepoint, source->config2 = 1);
	SPOIL(good_tracepoint, source->exclude = PP_EXCLUDE_USER);
	SPOIL(good_tracepoint, source->precise_ip = 1);
	SPOIL(good_tracepoint, source->any_cpu = 1);
	SPOIL(good_tracepoint, source->bp_type = 1);
	SPOIL(good_tracepoint, source->n_args = 1);
	SPOIL(good_tracepoint, strcpy(source->path, "/x"));
	SPOIL(good_tracepoint, spec->period = 1);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_FREQ);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_NO_USER_CHAIN);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_CHAINS);
	SPOIL(good_tracepoint, spec->max_stack = 5);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_CALLCHAIN,
	      spec->max_stack = PP_MAX_STACK + 1);
	ALLOW(good_tracepoint, spec->flags |= PP_EVENT_CALLCHAIN, spec->max_stack = PP_MAX_STACK);
	SPOIL(good_tracepoint, spec->stack_user = 8192);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_CALLCHAIN | PP_EVENT_USER_STACK,
	      spec->stack_user = 8192);
	SPOIL(good_tracepoint, spec->flags |= WITH_STACK & ~PP_EVENT_USER_STACK,
	      spec->stack_user = 8192);
	SPOIL(good_tracepoint, spec->flags |= WITH_STACK);
	ALLOW(good_tracepoint, spec->flags |= WITH_STACK, spec->stack_user = PP_STACK_USER_MAX);
	SPOIL(good_tracepoint, spec->flags |= WITH_STACK, spec->stack_user = PP_STACK_USER_MAX + 7);
	SPOIL(good_tracepoint, spec->flags |= WITH_STACK, spec->stack_user = 12);
	ALLOW(good_tracepoint, spec->flags |= PP_EVENT_GENERIC);
}
END_TEST

START_TEST(counters)
{
	SPOIL(good_sampling, source->type = PERF_TYPE_TRACEPOINT);
	SPOIL(good_sampling, source->type = 1U << 16);
	ALLOW(good_sampling, source->type = 99, source->config = 1ULL << 63, source->any_cpu = 1,
	      source->config1 = 1, source->config2 = 1);
	ALLOW(good_sampling, source->type = PERF_TYPE_RAW, source->config = 0x1a8);
	ALLOW(good_sampling, source->type = PERF_TYPE_HW_CACHE, source->config = 0x10106);
	SPOIL(good_sampling, source->type = PERF_TYPE_HW_CACHE, source->config = 0x10107);
	SPOIL(good_sampling, source->type = PERF_TYPE_HW_CACHE, source->config = 0x1010006);
	SPOIL(good_sampling, source->config = PERF_COUNT_SW_DUMMY);
	SPOIL(good_sampling, source->config = PERF_COUNT_SW_BPF_OUTPUT);
	SPOIL(good_sampling, source->config = PERF_COUNT_SW_CGROUP_SWITCHES + 1);
	SPOIL(good_sampling, source->config = 1ULL << 32);
	SPOIL(good_sampling, spec->flags |= PP_EVENT_GENERIC);
	ALLOW(good_sampling, source->config = PERF_COUNT_SW_CGROUP_SWITCHES);
	ALLOW(good_sampling, source->type = PERF_TYPE_HARDWARE,
	      source->config = 8ULL << 32 | PERF_COUNT_HW_REF_CPU_CYCLES);
	SPOIL(good_sampling, source->type = PERF_TYPE_HARDWARE, source->config = PERF_COUNT_HW_MAX);
	SPOIL(good_sampling, source->bp_type = 1);
	SPOIL(good_sampling, source->any_cpu = 2);
	SPOIL(good_sampling, source->exclude = 1U << 6);
	ALLOW(good_sampling, source->exclude = 0x3f);
	SPOIL(good_sampling, source->precise_ip = 4);
	ALLOW(good_sampling, source->precise_ip = 3);
	SPOIL(good_sampling, strcpy(source->system, "sched"));
	SPOIL(good_sampling, strcpy(source->name, "sched_switch"));
	SPOIL(good_sampling, strcpy(source->path, "/x"));
	SPOIL(good_sampling, spec->period = 0);
	SPOIL(good_sampling, spec->flags &= ~(PP_EVENT_FREQ | PP_EVENT_CALLCHAIN),
	      spec->period = 0);
	SPOIL(good_sampling, spec->period = 1ULL << 63);
	ALLOW(good_sampling, spec->period = INT64_MAX);
	SPOIL(good_breakpoint, source->bp_type = 0);
	SPOIL(good_breakpoint, source->bp_type = 8);
	SPOIL(good_breakpoint, source->config = 1);
	SPOIL(good_breakpoint, source->config2 = 0);
	SPOIL(good_breakpoint, source->config2 = 9);
}
END_TEST

START_TEST(probes)
{
	struct pp_probe_arg *const arg = source->args;

	ALLOW(good_kprobe, strcpy(source->name, "foo.isra.0"), source->offset = 4);
	SPOIL(good_kprobe, *source->name = 0);
	SPOIL(good_kprobe, strcpy(source->name, "a b"));
	SPOIL(good_kprobe, strcpy(source->name, "do_*"));
	SPOIL(good_kprobe, strcpy(source->system, "kprobes"));
	SPOIL(good_kprobe, strcpy(source->path, "/x"));
	SPOIL(good_kprobe, source->offset = 1ULL << 32);
	SPOIL(good_kprobe, source->ref_ctr_offset = 1);
	SPOIL(good_kprobe, source->is_return = 2);
	SPOIL(good_kprobe, source->type = 1);
	SPOIL(good_kprobe, source->n_args = PP_PROBE_ARGS_MAX + 1);
	SPOIL(good_kprobe, source->n_args = 2);
	SPOIL(good_kprobe, spec->period = 1);

	SPOIL(good_uprobe, strcpy(source->path, "lib"));
	SPOIL(good_uprobe, *source->path = 0);
	SPOIL(good_uprobe, FILL(source->path));
	SPOIL(good_uprobe, source->path[4] = '\n');
	SPOIL(good_uprobe, source->name[2] = '\n');
	SPOIL(good_uprobe, source->offset = 1ULL << 63);
	SPOIL(good_uprobe, source->ref_ctr_offset = 1ULL << 32);
	SPOIL(good_uprobe, source->any_cpu = 1);

	SPOIL(good_kprobe, add_argument(), strcpy(arg[1].name, arg[0].name));
	SPOIL(good_kprobe, *arg->name = 0);
	SPOIL(good_kprobe, *arg->name = '1');
	SPOIL(good_kprobe, FILL(arg->name));
	SPOIL(good_kprobe, arg->name[1] = ';');
	SPOIL(good_kprobe, arg->place = 0);
	SPOIL(good_kprobe, arg->place = PP_PROBE_CONSTANT + 1);
	SPOIL(good_kprobe, arg->number = 0);
	SPOIL(good_kprobe, arg->number = 7);
	SPOIL(good_kprobe, arg->place = PP_PROBE_REGISTER, arg->number = 64);
	SPOIL(good_kprobe, arg->place = PP_PROBE_RETURN, arg->number = 0);
	ALLOW(good_uprobe, );
	ALLOW(good_kprobe, arg->place = PP_PROBE_CONSTANT, arg->number = 0, arg->value = -1);
	SPOIL(good_kprobe, arg->value = 1);
	SPOIL(good_kprobe, arg->dereferences = 5);
	SPOIL(good_kprobe, arg->size = 3);
	SPOIL(good_kprobe, arg->size = 0);
	SPOIL(good_kprobe, arg->is_signed = 2);
	SPOIL(good_kprobe, arg->is_hex = 2);
	SPOIL(good_kprobe, arg->is_string = 2);
}
END_TEST

START_TEST(mixtures)
{
	/* A tracepoint beside a counter: the period belongs to the counter. */
	good_sampling();
	parsed->sources[1].kind = PP_SOURCE_TRACEPOINT;
	strcpy(parsed->sources[1].system, "sched");
	strcpy(parsed->sources[1].name, "*");
	parsed->n_sources = 2;
	expect(0);
	spec->flags |= PP_EVENT_GENERIC;
	expect(0);
	spec->period = 0;
	expect(-EBADMSG);
}
END_TEST

START_TEST(sizes)
{
	SPOIL(good_tracepoint, spec->data_size = 0);
	SPOIL(good_tracepoint, spec->data_size--);
	SPOIL(good_tracepoint, spec->data_size = 3 << 12);
	SPOIL(good_tracepoint, spec->data_size = PP_DATA_SIZE_MIN / 2);
	SPOIL(good_tracepoint, spec->data_size = PP_DATA_SIZE_MAX * 2);
	ALLOW(good_tracepoint, spec->data_size = PP_DATA_SIZE_MIN);
	ALLOW(good_tracepoint, spec->data_size = PP_DATA_SIZE_MAX);
	ALLOW(good_tracepoint, spec->max_rate = (1ULL << 48) - 1);
}
END_TEST

START_TEST(flags_and_cpus)
{
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_SHARE);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_NO_SHARE);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_BOOT);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_COPIES);
	SPOIL(good_tracepoint, spec->flags |= 1U << 31);
	ALLOW(good_tracepoint, spec->flags |= PP_EVENT_WAKEUP | PP_EVENT_CONFIGURED);
	SPOIL(good_tracepoint, spec->flags = 0); /* on no CPU at all */
	SPOIL(good_tracepoint, pp_cpumask_set(&spec->cpus, 0));
	SPOIL(good_tracepoint, pp_cpumask_set(&spec->cpus, PP_CPUS_MAX - 1));
	ALLOW(good_tracepoint, spec->flags = 0, pp_cpumask_set(&spec->cpus, PP_CPUS_MAX - 1));
}
END_TEST

START_TEST(rights)
{
	SPOIL(good_tracepoint, spec->mode = 01000);
	SPOIL(good_tracepoint, spec->mode = UINT16_MAX);
	SPOIL(good_tracepoint, spec->owner = UINT32_MAX);
	SPOIL(good_tracepoint, spec->group = UINT32_MAX);
	SPOIL(good_tracepoint, spec->creator = UINT32_MAX);
	ALLOW(good_tracepoint, spec->mode = 0777);
	ALLOW(good_tracepoint, spec->mode = 0);
	ALLOW(good_tracepoint, spec->owner = 0);
}
END_TEST

START_TEST(events)
{
	struct pp_event good = {
		.id = 1,
		.origin = 1,
		.recorder = PP_RECORDER_PROBE,
		.header_size = PP_RING_PAGE,
		.spill_size = 64,
		.n_sources = 1,
		.set = 1,
	};
	struct pp_event e;

#define SPOIL_EVENT(change)                                     \
	do {                                                    \
		e = good;                                       \
		change;                                         \
		ck_assert_int_eq(pp_event_check(&e), -EBADMSG); \
	} while (0)

	good_tracepoint();
	good.spec = *spec;
	ck_assert_int_eq(pp_event_check(&good), 0);
	SPOIL_EVENT(e.id = 0);
	SPOIL_EVENT(e.id = 1ULL << 52);
	SPOIL_EVENT(e.origin = 0);
	SPOIL_EVENT(e.origin = 1ULL << 52);
	SPOIL_EVENT(e.shares = e.id);
	SPOIL_EVENT(e.recorder = 0);
	SPOIL_EVENT(e.recorder = PP_RECORDER_AUX + 1);
	SPOIL_EVENT(e.recorder = PP_RECORDER_AUX);
	SPOIL_EVENT(e.header_size = PP_RING_PAGE - 1);
	SPOIL_EVENT(e.header_size = UINT32_MAX);
	SPOIL_EVENT(e.spill_size = PP_SPILL_SIZE_MAX + 1);
	SPOIL_EVENT(e.n_sources = 0);
	SPOIL_EVENT(e.n_sources = PP_SOURCES_MAX + 1);
	SPOIL_EVENT(e.set = 0);
	SPOIL_EVENT(e.paused = 2);
	SPOIL_EVENT(e.spec.name[0] = '.');
}
END_TEST

static void good_aux_order(void)
{
	good_cpus();
	order.type = PP_ORDER_AUX;
	order.what = 1;
}

static void fill_cpus(unsigned n)
{
	memset(&spec->cpus, 0, sizeof(spec->cpus));
	for (unsigned cpu = 0; cpu < n; cpu++)
		pp_cpumask_set(&spec->cpus, cpu);
}

/* A sampling event that takes a part of the trace. */
static void good_group(void)
{
	struct pp_source *s = &order.parsed.sources[1];

	good_aux();
	order.parsed.n_sources = 2;
	*s = (struct pp_source){ .kind = PP_SOURCE_SAMPLING, .type = PERF_TYPE_SOFTWARE };
	strcpy(s->text, "cpu-clock");
	s->aux_sample = 4096;
	spec->flags |= PP_EVENT_AUX_GROUP;
}

static void good_tracepoint_group(void)
{
	struct pp_source *s = &order.parsed.sources[1];

	good_group();
	*s = (struct pp_source){ .kind = PP_SOURCE_TRACEPOINT };
	strcpy(s->system, "sched");
	strcpy(s->name, "sched_switch");
	strcpy(s->text, "sched:sched_switch");
	s->aux_action = PP_AUX_PAUSE;
}

/* Events beside an AUX area: perf events of the kernel's, each with something to do there. */
START_TEST(groups)
{
	struct pp_source *second = &order.parsed.sources[1];

	ALLOW(good_group, spec->samples = 100);
	ALLOW(good_group, spec->flags |= PP_EVENT_FREQ);
	ALLOW(good_group, spec->flags |= PP_EVENT_CALLCHAIN);
	ALLOW(good_group, source->aux_action = PP_AUX_START_PAUSED);
	ALLOW(good_group, second->aux_sample = PP_AUX_SAMPLE_MAX);
	ALLOW(good_group, second->aux_action = PP_AUX_RESUME);
	ALLOW(good_tracepoint_group, second->aux_action = PP_AUX_RESUME);
	SPOIL(good_group, spec->flags &= ~PP_EVENT_AUX_GROUP);
	SPOIL(good_group, spec->flags &= ~PP_EVENT_AUX);
	SPOIL(good_aux, spec->flags |= PP_EVENT_AUX_GROUP);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_AUX_GROUP);
	SPOIL(good_group, order.parsed.sources[1] = order.parsed.sources[0]);
	SPOIL(good_group, order.parsed.sources[0] = order.parsed.sources[1]);
	SPOIL(good_group, second->aux_sample = PP_AUX_SAMPLE_MAX + 8);
	SPOIL(good_group, second->aux_sample = 4);
	SPOIL(good_group, second->aux_sample = 0);
	SPOIL(good_group, second->aux_action = PP_AUX_START_PAUSED);
	SPOIL(good_group, second->aux_action = PP_AUX_PAUSE | PP_AUX_RESUME);
	SPOIL(good_group, source->aux_action = PP_AUX_PAUSE);
	SPOIL(good_group, source->aux_sample = 8);
	SPOIL(good_group, spec->flags |= PP_EVENT_WAKEUP);
	SPOIL(good_group, spec->flags |= PP_EVENT_PROGRAM, order.what = 3);
	SPOIL(good_group, spec->max_rate = 1);
	SPOIL(good_tracepoint_group, strcpy(second->name, "sched_*"));
	SPOIL(good_tracepoint_group, strcpy(second->system, "ftrace"));
	SPOIL(good_group, second->config = PERF_COUNT_SW_PAGE_FAULTS);
	ALLOW(good_group, second->config = PERF_COUNT_SW_TASK_CLOCK);
	SPOIL(good_tracepoint_group, strcpy(second->system, "s*"));
	SPOIL(good_tracepoint, source->aux_action = PP_AUX_PAUSE);
	SPOIL(good_tracepoint, source->aux_sample = 8);
}
END_TEST

START_TEST(aux)
{
	ALLOW(good_aux, spec->flags |= PP_EVENT_CONFIGURED);
	ALLOW(good_aux, spec->data_size = PP_AUX_SIZE_MAX);
	SPOIL(good_aux, spec->data_size = 2 * PP_AUX_SIZE_MAX);
	ALLOW(good_aux, spec->data_size = PP_AUX_SIZE_MIN);
	SPOIL(good_aux, spec->data_size = PP_AUX_SIZE_MIN / 2);
	SPOIL(good_aux, spec->flags &= ~PP_EVENT_AUX);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_AUX);
	SPOIL(good_aux, order.parsed.n_sources = 2,
	      order.parsed.sources[1] = order.parsed.sources[0]);
	SPOIL(good_aux, source->type = PERF_TYPE_BREAKPOINT);
	SPOIL(good_aux, source->type = 1U << 16);
	SPOIL(good_aux, source->precise_ip = 1);
	SPOIL(good_aux, source->bp_type = 1);
	SPOIL(good_aux, source->any_cpu = 2);
	SPOIL(good_aux, source->exclude = 1U << 31);
	SPOIL(good_aux, strcpy(source->system, "sched"));
	SPOIL(good_aux, source->offset = 1);
	SPOIL(good_aux, spec->period = 0);
	SPOIL(good_aux, spec->flags |= PP_EVENT_FREQ);
	SPOIL(good_aux, spec->max_rate = 1);
	SPOIL(good_aux, spec->samples = 1);
	SPOIL(good_aux, strcpy(spec->filter, "pid == 1"));
	SPOIL(good_aux, spec->flags |= PP_EVENT_CALLCHAIN);
	SPOIL(good_aux, spec->flags |= PP_EVENT_WAKEUP);
	SPOIL(good_aux, spec->flags |= PP_EVENT_TRIGGER);
	SPOIL(good_aux, spec->flags |= PP_EVENT_ADOPTED);
	SPOIL(good_aux, spec->flags |= 10U << PP_EVENT_CHECKPOINT_SHIFT);
	SPOIL(good_aux, spec->flags |= PP_EVENT_PROGRAM, order.what = 3);

	SPOIL(good_aux_order, order.id = 0);
	SPOIL(good_aux_order, memset(&spec->cpus, 0, sizeof(spec->cpus)));
	SPOIL(good_aux_order, order.what = 0);
	SPOIL(good_aux_order, order.what = PP_TERMS_MAX + 1);
	ALLOW(good_aux_order, order.what = PP_TERMS_MAX);
	ALLOW(good_aux_order, fill_cpus(PP_SIDEBAND_CPUS));
	SPOIL(good_aux_order, fill_cpus(PP_SIDEBAND_CPUS + 1));
	ALLOW(good_aux_order, order.what = 2, fill_cpus(PP_SIDEBAND_CPUS / 2));
	SPOIL(good_aux_order, order.what = 2, fill_cpus(PP_SIDEBAND_CPUS / 2 + 1));
}
END_TEST

static void good_sideband(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_SIDEBAND;
	order.what = PP_SIDEBAND_TASKS;
	for (unsigned cpu = 100; cpu < 100 + PP_SIDEBAND_CPUS; cpu++)
		pp_cpumask_set(&spec->cpus, cpu);
}

START_TEST(sidebands)
{
	good_sideband();
	ck_assert_int_eq(pp_order_check(&order), 0);
	order.what = 0;
	ck_assert_int_eq(pp_order_check(&order), 0);
	memset(&spec->cpus, 0, sizeof(spec->cpus));
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG); /* asks for nothing */
	order.what = PP_SIDEBAND_TASKS;
	ck_assert_int_eq(pp_order_check(&order), 0);
	order.what = PP_SIDEBAND_TASKS << 1;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);

	good_sideband();
	pp_cpumask_set(&spec->cpus, 4095); /* one more than the descriptors in a packet */
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	good_sideband();
	order.id = 1;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	good_sideband();
	spec->name[5] = 'x';
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	good_sideband();
	spec->creator = 1000;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
}
END_TEST

START_TEST(cpumasks)
{
	struct pp_cpumask m = { 0 };
	unsigned seen = 0;

	pp_cpumask_set(&m, 0);
	pp_cpumask_set(&m, 64);
	pp_cpumask_set(&m, 4095);
	pp_cpumask_set(&m, 7);
	pp_cpumask_clear(&m, 7);
	ck_assert(!pp_cpumask_test(&m, 4096));
	ck_assert(!pp_cpumask_test(&m, UINT32_MAX));
	PP_CPUMASK_FOREACH(cpu, &m)
	{
		ck_assert(cpu == 0 || cpu == 64 || cpu == 4095);
		seen++;
	}
	ck_assert_uint_eq(seen, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("order");
	TCase *t = tcase_create("order");

	tcase_add_test(t, orders);
	tcase_add_test(t, lengths);
	tcase_add_test(t, other_orders);
	tcase_add_test(t, programs);
	tcase_add_test(t, adoptions);
	tcase_add_test(t, bindings);
	tcase_add_test(t, triggers);
	tcase_add_test(t, trigger_texts);
	tcase_add_test(t, changes);
	tcase_add_test(t, names);
	tcase_add_test(t, texts);
	tcase_add_test(t, sources);
	tcase_add_test(t, filters);
	tcase_add_test(t, tracepoints);
	tcase_add_test(t, counters);
	tcase_add_test(t, probes);
	tcase_add_test(t, mixtures);
	tcase_add_test(t, sizes);
	tcase_add_test(t, flags_and_cpus);
	tcase_add_test(t, rights);
	tcase_add_test(t, events);
	tcase_add_test(t, sidebands);
	tcase_add_test(t, aux);
	tcase_add_test(t, groups);
	tcase_add_test(t, cpumasks);
	suite_add_tcase(s, t);
	return run_suite(s);
}
