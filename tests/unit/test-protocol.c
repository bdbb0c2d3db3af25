// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The codec against golden vectors, which another implementation made from PROTOCOL.md, and against
 * every possible fault of a packet.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/protocol.h"
#include "tests/unit/needs.h"

#define SIZE_OF_EVENT 5676 /* on the wire */
#define SIZE_OF_TRIGGER 3800
#define SIZE_OF_TAPE 272

static uint8_t packet[PP_PACKET_MAX + 1], again[PP_PACKET_MAX];
static union pp_body body, expected;
static struct pp_header header;

/* ── Golden vectors ─────────────────────────────────────────────────────────────────────── */

static void fill_switches(struct pp_msg_event *e)
{
	e->id = 19;
	strcpy(e->ns, "sys");
	strcpy(e->name, "switches");
	strcpy(e->event, "sched:sched_switch");
	e->recorder = PP_RECORDER_TP_BTF;
	e->state = PP_EVENT_RUNNING;
	e->sources = 1;
	e->set = 1;
	e->data_size = 524288;
	e->memory = 2965504;
	e->sample_type = 0x407;
	e->flags = PP_EVENT_ALL_CPUS;
	e->group = 61998;
	e->mode = 0640;
	e->created = 1700000000123456789;
	strcpy(e->cpus, "0-3,8");
	strcpy(e->away, "3");
	strcpy(e->lacking, "9");
	e->lacking_error = 122;
	e->records = 1234567;
	e->bytes = 98765432;
}

static void fill_clock(struct pp_msg_event *e, uint64_t id)
{
	e->id = id;
	e->shares = 17;
	strcpy(e->ns, "web");
	strcpy(e->name, "clock-1");
	strcpy(e->event, "cpu-clock:u");
	strcpy(e->filter, "pid == 1");
	e->recorder = PP_RECORDER_OVERFLOW;
	e->state = PP_EVENT_CREATING;
	e->sources = 1;
	e->set = 3;
	e->data_size = 1 << 20;
	e->memory = 1 << 21;
	e->sample_type = 0x127;
	e->period = 999;
	e->max_rate = 5000;
	e->flags = PP_EVENT_FREQ | PP_EVENT_CALLCHAIN;
	e->owner = 1000;
	e->group = 1001;
	e->mode = 0600;
	e->creator = 1002;
	e->created = 1700000001000000001;
	strcpy(e->cpus, "1");
	e->records = 42;
	e->bytes = 4200;
	e->missed = 7;
	e->missed_unknown = 1;
	e->max_stack = 64;
	e->stack_user = 8192;
	e->limited = 8;
	e->target.kind = PP_TARGET_PROCESS;
	e->target.flags = PP_TARGET_DELETE | PP_TARGET_ENDED;
	e->target.pid = 4711;
	e->target.start = 123456;
}

static void fill_mixed(struct pp_msg_event *e)
{
	e->id = 21;
	strcpy(e->ns, "sys");
	strcpy(e->name, "mixed");
	strcpy(e->event, "sched:*,cpu-clock");
	strcpy(e->filter, "prev_pid != 0");
	e->recorder = PP_RECORDER_GENERIC;
	e->state = PP_EVENT_PAUSED;
	e->sources = 25;
	e->set = 2;
	e->data_size = 1 << 20;
	e->memory = 1 << 22;
	e->sample_type = 0x10000;
	e->period = 4000;
	e->max_rate = 100;
	e->flags = PP_EVENT_FREQ | PP_EVENT_WAKEUP | PP_EVENT_CONFIGURED | PP_EVENT_COPIES;
	e->group = 61998;
	e->mode = 0644;
	e->creator = 1000;
	e->created = 1700000002000000002;
	strcpy(e->cpus, "0-1");
	e->records = 5;
	e->bytes = 600;
	e->missed = 1;
	e->limited = 2;
	e->target.kind = PP_TARGET_CGROUP;
	e->target.start = 77;
	strcpy(e->target.cgroup, "/system.slice/nginx.service");
}

static void fill_nothing(union pp_body *b _unused_)
{
}

static void fill_error(union pp_body *b)
{
	b->error.error = 13;
	strcpy(b->error.message,
	       "event sys/switches: not allowed to read; ask for membership of its group");
}

static void fill_ping_reply(union pp_body *b)
{
	b->ping_reply.version = 1;
	b->ping_reply.pid = 4242;
	b->ping_reply.engine_pid = 4243;
	b->ping_reply.events = 2;
	b->ping_reply.started = 1700000000000000001;
	strcpy(b->ping_reply.release, "0.1.0");
	strcpy(b->ping_reply.instance, "demo");
}

static void fill_list_request(union pp_body *b)
{
	b->list_request.after = 18;
	strcpy(b->list_request.ns, "sys");
}

static void fill_list_reply(union pp_body *b)
{
	b->list_reply.count = 2;
	b->list_reply.more = 1;
	fill_switches(&b->list_reply.events[0]);
	fill_clock(&b->list_reply.events[1], 0x1122334455667788);
}

static void fill_by_name(union pp_body *b)
{
	strcpy(b->name.ns, "sys");
	strcpy(b->name.name, "switches");
}

static void fill_by_id(union pp_body *b)
{
	b->name.id = 0x1122334455667788;
}

static void fill_event(union pp_body *b)
{
	fill_switches(&b->event);
}

static void fill_created(union pp_body *b)
{
	fill_clock(&b->event, 20);
}

static void fill_deleted(union pp_body *b)
{
	fill_switches(&b->event);
	b->event.state = PP_EVENT_DELETING;
}

static void fill_create_request(union pp_body *b)
{
	struct pp_msg_create_request *m = &b->create_request;

	strcpy(m->ns, "web");
	strcpy(m->name, "clock-1");
	strcpy(m->cpus, "1,4-5");
	m->data_size = 1000000;
	m->period = 999;
	m->max_rate = 5000;
	m->flags = PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_WAKEUP | PP_EVENT_SHARE |
		   PP_EVENT_BOOT | PP_EVENT_PROGRAM;
	m->program = 77;
	m->max_stack = 64;
	m->stack_user = 8192;
	m->count = 2;
	strcpy(m->selections[0].event, "cpu-clock:u");
	strcpy(m->selections[1].event, "sched:*,irq:irq_handler_entry");
	strcpy(m->selections[1].filter, "common_pid != 0 && prev_comm ~ \"nginx*\"");
	m->target.kind = PP_TARGET_THREAD;
	m->target.flags = PP_TARGET_NO_INHERIT | PP_TARGET_DELETE;
	m->target.pid = 812;
	m->target.start = 99;
}

static void fill_open_request(union pp_body *b)
{
	b->open_request.which.id = 19;
	b->open_request.first = 253;
	b->open_request.flags = PP_OPEN_COPY;
}

static void fill_open_reply(union pp_body *b)
{
	fill_mixed(&b->open_reply.event);
	b->open_reply.total = 255;
	b->open_reply.catalog_size = 70000;
	b->open_reply.copies = 1;
	b->open_reply.count = 2;
	b->open_reply.cpus[0] = (struct pp_msg_cpu){ .cpu = 0, .map_size = 593920 };
	b->open_reply.cpus[1] = (struct pp_msg_cpu){ .cpu = 8, .map_size = 593920 };
}

static void fill_change_request(union pp_body *b)
{
	strcpy(b->change_request.which.ns, "sys");
	strcpy(b->change_request.which.name, "switches");
	b->change_request.what =
		PP_CHANGE_FILTER | PP_CHANGE_BUFFER | PP_CHANGE_MAX_RATE | PP_CHANGE_PERIOD;
	b->change_request.flags = PP_EVENT_FREQ;
	b->change_request.data_size = 1 << 21;
	b->change_request.max_rate = 777;
	b->change_request.period = 4999;
	strcpy(b->change_request.filter, "prev_pid == 0 || next_comm == \"sh\"");
}

static void fill_changed(union pp_body *b)
{
	fill_mixed(&b->event);
}

static void fill_pause_request(union pp_body *b)
{
	strcpy(b->pause_request.which.ns, "sys");
	b->pause_request.pause = 1;
}

static void fill_pause_reply(union pp_body *b)
{
	b->pause_reply.count = 3;
}

static void fill_limits_request(union pp_body *b)
{
	b->limits_request.first = 128;
}

static void fill_limits_reply(union pp_body *b)
{
	b->limits_reply.count = 2;
	b->limits_reply.more = 1;
	b->limits_reply.limits[0] = (struct pp_msg_limit){
		.scope = PP_LIMIT_NAMESPACE,
		.ns = "sys",
		.memory = 1 << 30,
		.held = 1 << 20,
		.max_memory = 1UL << 31,
		.events = 12,
		.max_events = UINT64_MAX,
		.max_connections = UINT64_MAX,
		.programs = 9,
		.max_programs = UINT64_MAX,
		.max_on_tracepoint = UINT64_MAX,
		.max_sample_rate = UINT64_MAX,
	};
	b->limits_reply.limits[1] = (struct pp_msg_limit){
		.scope = PP_LIMIT_USER,
		.uid = 1000,
		.memory = 4096,
		.max_memory = 1 << 28,
		.events = 1,
		.max_events = 4096,
		.connections = 3,
		.max_connections = 256,
		.requests = 2,
		.max_requests = 64,
		.copies = 8192,
		.max_copies = 1 << 27,
		.programs = 700,
		.max_programs = 1024,
		.max_on_tracepoint = 8,
		.sample_rate = 4000,
		.max_sample_rate = 5000,
	};
}

static void fill_watch_request(union pp_body *b)
{
	strcpy(b->watch_request.ns, "sys");
}

static void fill_notice(union pp_body *b)
{
	b->notice.kind = PP_NOTICE_CHANGED;
	b->notice.cpu = 5;
	b->notice.lost = 6;
	fill_mixed(&b->notice.event);
}

static void fill_wakeup_request(union pp_body *b)
{
	strcpy(b->name.ns, "sys");
	strcpy(b->name.name, "mixed");
}

static void fill_wakeup_reply(union pp_body *b)
{
	b->wakeup_reply.id = 21;
}

static void fill_reload_reply(union pp_body *b)
{
	b->reload_reply.created = 1;
	b->reload_reply.changed = 2;
	b->reload_reply.deleted = 3;
	b->reload_reply.failed = 4;
	strcpy(b->reload_reply.message, "events.d/mce.conf:7: no such tracepoint: mce:mce_recor");
}

static void fill_cpus_request(union pp_body *b)
{
	b->cpus_request.first = 64;
}

static void fill_cpus_reply(union pp_body *b)
{
	b->cpus_reply.count = 2;
	b->cpus_reply.more = 1;
	b->cpus_reply.cpus[0] = (struct pp_msg_cpu_away){ .cpu = 65, .since = 1700000000123456789 };
	b->cpus_reply.cpus[1].cpu = 4095;
}

static void fill_sideband_request(union pp_body *b)
{
	b->sideband_request.since = 123456789012;
	b->sideband_request.until = 234567890123;
}

static void fill_sideband_reply(union pp_body *b)
{
	b->sideband_reply = (struct pp_msg_sideband_reply){
		.keeping = 1,
		.pid = 4711,
		.size = 81920,
		.began = 5000000000,
		.complete = 6000000000,
		.lost = 1,
		.forgotten = 2,
		.processes = 312,
		.ended = 45,
		.memory = 4 << 20,
		.max_memory = 64 << 20,
		.cpu_time = 700000000,
		.why = PP_SIDEBAND_STUCK,
		.unseen = 3,
	};
}

static void fill_trigger_request(union pp_body *b)
{
	struct pp_msg_trigger_request *m = &b->trigger_request;

	strcpy(m->targets, "sched,sys*");
	m->hold_off = 250000000;
	m->max_per_day = 24;
	m->after = 5000000;
	m->after_records = 200;
	strcpy(m->event.ns, "web");
	strcpy(m->event.name, "slow");
	m->event.data_size = 65536;
	m->event.max_rate = 10;
	m->event.flags = PP_EVENT_WAKEUP;
	m->event.count = 1;
	strcpy(m->event.selections[0].event, "syscalls:sys_exit_fsync");
	strcpy(m->event.selections[0].filter, "ret == -5");
	m->longer_than = 5000000;
	strcpy(m->key, "tid,pid");
	strcpy(m->rate, "over 5/s for 2s");
	m->until = 1;
	m->action = PP_ACTION_FREEZE;
}

static void fill_trigger_event(union pp_body *b)
{
	struct pp_msg_event *e = &b->event;

	e->id = 22;
	strcpy(e->ns, "web");
	strcpy(e->name, "slow");
	strcpy(e->event, "syscalls:sys_exit_fsync");
	strcpy(e->filter, "ret == -5");
	e->recorder = PP_RECORDER_GENERIC;
	e->state = PP_EVENT_RUNNING;
	e->sources = 1;
	e->set = 1;
	e->data_size = 65536;
	e->memory = 1 << 19;
	e->sample_type = 0x10000;
	e->max_rate = 10;
	e->flags = PP_EVENT_TRIGGER | PP_EVENT_ALL_CPUS;
	e->owner = 1000;
	e->group = 1001;
	e->mode = 0640;
	e->creator = 1002;
	e->created = 1700000003000000003;
	strcpy(e->cpus, "0-1");
}

static void fill_triggers_request(union pp_body *b)
{
	b->list_request.after = 21;
	strcpy(b->list_request.ns, "web");
}

static void fill_triggers_reply(union pp_body *b)
{
	b->triggers_reply.count = 2;
	b->triggers_reply.more = 1;
	b->triggers_reply.triggers[0] = (struct pp_msg_trigger){
		.id = 22,
		.ns = "web",
		.name = "slow",
		.event = "syscalls:sys_exit_fsync",
		.filter = "ret == -5",
		.targets = "sched,sys*",
		.hold_off = 250000000,
		.max_per_day = 24,
		.state = PP_EVENT_RUNNING,
		.creator = 1002,
		.n_targets = 5,
		.n_armed = 4,
		.fired = 3,
		.held = 17,
		.spent = 6,
		.late = 1,
		.last = 987654321012,
		.missed = 2,
		.missed_unknown = 1,
		.until = "block:block_rq_complete",
		.key = "sector",
		.longer_than = 7000000,
		.rate = "over 9/s for 3s",
		.unkept = 8,
		.overdue = 9,
		.ended = 10,
		.after = 5000000,
		.after_records = 200,
		.action = PP_ACTION_FREEZE,
		.tapes = 11,
	};
	b->triggers_reply.triggers[1] = (struct pp_msg_trigger){
		.id = 0x1122334455667788,
		.ns = "web",
		.name = "oom",
		.event = "oom:mark_victim",
		.targets = "a",
		.hold_off = PP_HOLD_OFF_MIN,
		.state = PP_EVENT_PAUSED,
	};
}

static void fill_fire_request(union pp_body *b)
{
	strcpy(b->name.ns, "web");
	strcpy(b->name.name, "slow");
}

static void fill_tapes_reply(union pp_body *b)
{
	b->tapes_reply.count = 2;
	b->tapes_reply.tapes[0] = (struct pp_msg_tape){
		.id = 31,
		.event = 19,
		.ns = "web",
		.name = "sched",
		.trigger = 22,
		.trigger_name = "slow",
		.number = 3,
		.fired = 987654321012,
		.cpu = 7,
		.pid = 4711,
		.tid = 4712,
		.comm = "postgres",
		.action = PP_ACTION_FREEZE,
	};
	b->tapes_reply.tapes[1] = (struct pp_msg_tape){
		.id = 32,
		.event = 20,
		.ns = "web",
		.name = "sys-enter",
		.trigger = 23,
		.number = 1,
		.fired = 987654321013,
		.cpu = 4095,
		.by_hand = 1,
		.comm = "perfpersistd-en",
	};
}

static void fill_release_request(union pp_body *b)
{
	b->name.id = 31;
}

static void fill_adopt_reply(union pp_body *b)
{
	b->adopt_reply.adoption = 31;
}

static void fill_attach_request(union pp_body *b)
{
	b->attach_request.adoption = 31;
	b->attach_request.more = 1;
	b->attach_request.count = 2;
	b->attach_request.links[0].id = 7;
	b->attach_request.links[1].id = 0x100000002;
}

static void fill_claim_request(union pp_body *b)
{
	fill_wakeup_request(b);
	b->claim_request.first = 253;
	b->claim_request.done = 1;
	b->claim_request.set = 3;
}

static void fill_claim_reply(union pp_body *b)
{
	fill_event(b);
	b->claim_reply.total = 300;
	b->claim_reply.rings = 5;
}

static void fill_descriptors_reply(union pp_body *b)
{
	b->descriptors_reply.size = 240;
}

static void fill_auxtrace_request(union pp_body *b)
{
	b->auxtrace_request.which.id = 4711;
	b->auxtrace_request.first = 3;
}

static void fill_auxtrace_reply(union pp_body *b)
{
	b->auxtrace_reply.total = 8;
	b->auxtrace_reply.cpu = 5;
	b->auxtrace_reply.size = 65768;
}

static const struct vector {
	const char *file;
	uint16_t opcode;
	uint32_t serial, fds;
	void (*fill)(union pp_body *b);
} vectors[] = {
	{ "ping-request", PP_OP_PING, 7, 0, fill_nothing },
	{ "ping-reply", PP_OP_PING | PP_OP_REPLY, 7, 0, fill_ping_reply },
	{ "list-request", PP_OP_LIST, 0x01020304, 0, fill_list_request },
	{ "list-reply", PP_OP_LIST | PP_OP_REPLY, 0x01020304, 0, fill_list_reply },
	{ "show-request", PP_OP_SHOW, 1, 0, fill_by_name },
	{ "show-reply", PP_OP_SHOW | PP_OP_REPLY, 1, 0, fill_event },
	{ "create-request", PP_OP_CREATE, UINT32_MAX, 0, fill_create_request },
	{ "create-reply", PP_OP_CREATE | PP_OP_REPLY, UINT32_MAX, 0, fill_created },
	{ "delete-request", PP_OP_DELETE, 2, 0, fill_by_id },
	{ "delete-reply", PP_OP_DELETE | PP_OP_REPLY, 2, 0, fill_deleted },
	{ "open-request", PP_OP_OPEN, 3, 0, fill_open_request },
	{ "open-reply", PP_OP_OPEN | PP_OP_REPLY, 3, 3, fill_open_reply },
	{ "error-reply", PP_OP_ERROR, 3, 0, fill_error },
	{ "change-request", PP_OP_CHANGE, 4, 0, fill_change_request },
	{ "change-reply", PP_OP_CHANGE | PP_OP_REPLY, 4, 0, fill_changed },
	{ "pause-request", PP_OP_PAUSE, 5, 0, fill_pause_request },
	{ "pause-reply", PP_OP_PAUSE | PP_OP_REPLY, 5, 0, fill_pause_reply },
	{ "limits-request", PP_OP_LIMITS, 6, 0, fill_limits_request },
	{ "limits-reply", PP_OP_LIMITS | PP_OP_REPLY, 6, 0, fill_limits_reply },
	{ "watch-request", PP_OP_WATCH, 8, 0, fill_watch_request },
	{ "watch-reply", PP_OP_WATCH | PP_OP_REPLY, 8, 0, fill_notice },
	{ "wakeup-request", PP_OP_WAKEUP, 9, 0, fill_wakeup_request },
	{ "wakeup-reply", PP_OP_WAKEUP | PP_OP_REPLY, 9, 1, fill_wakeup_reply },
	{ "reload-request", PP_OP_RELOAD, 10, 0, fill_nothing },
	{ "reload-reply", PP_OP_RELOAD | PP_OP_REPLY, 10, 0, fill_reload_reply },
	{ "cpus-request", PP_OP_CPUS, 11, 0, fill_cpus_request },
	{ "cpus-reply", PP_OP_CPUS | PP_OP_REPLY, 11, 0, fill_cpus_reply },
	{ "auxtrace-request", PP_OP_AUXTRACE, 24, 0, fill_auxtrace_request },
	{ "auxtrace-reply", PP_OP_AUXTRACE | PP_OP_REPLY, 24, 1, fill_auxtrace_reply },
	{ "sideband-request", PP_OP_SIDEBAND, 12, 0, fill_sideband_request },
	{ "sideband-reply", PP_OP_SIDEBAND | PP_OP_REPLY, 12, 1, fill_sideband_reply },
	{ "trigger-request", PP_OP_TRIGGER, 13, 0, fill_trigger_request },
	{ "trigger-reply", PP_OP_TRIGGER | PP_OP_REPLY, 13, 0, fill_trigger_event },
	{ "triggers-request", PP_OP_TRIGGERS, 14, 0, fill_triggers_request },
	{ "triggers-reply", PP_OP_TRIGGERS | PP_OP_REPLY, 14, 0, fill_triggers_reply },
	{ "fire-request", PP_OP_FIRE, 15, 0, fill_fire_request },
	{ "fire-reply", PP_OP_FIRE | PP_OP_REPLY, 15, 0, fill_nothing },
	{ "tapes-request", PP_OP_TAPES, 16, 0, fill_nothing },
	{ "tapes-reply", PP_OP_TAPES | PP_OP_REPLY, 16, 0, fill_tapes_reply },
	{ "release-request", PP_OP_RELEASE, 17, 0, fill_release_request },
	{ "release-reply", PP_OP_RELEASE | PP_OP_REPLY, 17, 0, fill_nothing },
	{ "adopt-request", PP_OP_ADOPT, 18, 0, fill_create_request },
	{ "adopt-reply", PP_OP_ADOPT | PP_OP_REPLY, 18, 1, fill_adopt_reply },
	{ "attach-request", PP_OP_ATTACH, 19, 0, fill_attach_request },
	{ "attach-reply", PP_OP_ATTACH | PP_OP_REPLY, 19, 0, fill_event },
	{ "claim-request", PP_OP_CLAIM, 20, 0, fill_claim_request },
	{ "claim-reply", PP_OP_CLAIM | PP_OP_REPLY, 20, 2, fill_claim_reply },
	{ "descriptors-request", PP_OP_DESCRIPTORS, 21, 0, fill_wakeup_request },
	{ "descriptors-reply", PP_OP_DESCRIPTORS | PP_OP_REPLY, 21, 1, fill_descriptors_reply },
};

/* Hexadecimal bytes separated by spaces; XX*N is N times XX; # begins a comment. */
static size_t read_vector(const char *name, uint8_t *buf, size_t cap)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[256], line[256];
	size_t n = 0;

	snprintf(path, sizeof(path), "tests/vectors/%s.hex", name);
	f = fopen(path, "re");
	ck_assert_msg(f != NULL, "%s: not found; run the tests from the source's top", path);
	while (fgets(line, sizeof(line), f)) {
		for (char *s = line, *token; *line != '#' && (token = strtok(s, " \n")); s = NULL) {
			unsigned byte, times = 1;

			ck_assert_int_ge(sscanf(token, "%2x*%u", &byte, &times), 1);
			ck_assert_uint_le(n + times, cap);
			memset(buf + n, byte, times);
			n += times;
		}
	}
	return n;
}

static bool is_reply(const struct vector *v)
{
	return v->opcode & PP_OP_REPLY;
}

/* Encodes fill()'s message into packet and returns its size. */
static size_t encode_vector(const struct vector *v)
{
	ssize_t n;

	memset(&expected, 0, sizeof(expected));
	v->fill(&expected);
	header = (struct pp_header){ .opcode = v->opcode, .serial = v->serial, .fds = v->fds };
	n = pp_encode(&header, &expected, packet, sizeof(packet));
	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq(header.size, n);
	ck_assert_uint_eq(header.version, PP_PROTOCOL_VERSION);
	return n;
}

START_TEST(vector_is_encoded)
{
	const struct vector *v = &vectors[_i];
	size_t n = read_vector(v->file, again, sizeof(again));

	ck_assert_uint_eq(encode_vector(v), n);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(packet[i] == again[i], "%s: byte %zu is %02x, not %02x", v->file, i,
			      packet[i], again[i]);
}
END_TEST

START_TEST(vector_is_decoded)
{
	const struct vector *v = &vectors[_i];
	size_t n = read_vector(v->file, packet, sizeof(packet));

	memset(&expected, 0, sizeof(expected));
	memset(&body, 0, sizeof(body));
	v->fill(&expected);
	ck_assert_int_eq(pp_decode(packet, n, v->fds, is_reply(v), &header, &body), 0);
	ck_assert_uint_eq(header.version, 1);
	ck_assert_uint_eq(header.opcode, v->opcode);
	ck_assert_uint_eq(header.serial, v->serial);
	ck_assert_uint_eq(header.size, n);
	ck_assert_uint_eq(header.fds, v->fds);
	ck_assert_int_eq(memcmp(&body, &expected, pp_message_by_opcode(v->opcode)->struct_size), 0);
}
END_TEST

/* Every message of every operation has a vector. */
START_TEST(vectors_are_complete)
{
	size_t known = 0;

	for (unsigned opcode = 0; opcode <= UINT16_MAX; opcode++) {
		bool found = false;

		if (!pp_message_by_opcode(opcode))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
			found |= vectors[i].opcode == opcode;
		ck_assert_msg(found, "opcode %#x has no vector", opcode);
		known++;
	}
	ck_assert_uint_eq(known, ARRAY_SIZE(vectors));
}
END_TEST

/* ── Sizes ──────────────────────────────────────────────────────────────────────────────── */

static void set_size(uint8_t *p, uint32_t size)
{
	for (int i = 0; i < 4; i++)
		p[8 + i] = size >> (8 * i);
}

static int decode(size_t size, bool reply)
{
	return pp_decode(packet, size, 0, reply, &header, &body);
}

START_TEST(every_other_length_is_refused)
{
	const struct vector *v = &vectors[_i];
	size_t n = encode_vector(v);

	packet[n] = 0;
	for (size_t size = 0; size <= n + 1; size++) {
		_cleanup_free_ uint8_t *exact = malloc(MAX(size, 16ul));

		/* In a buffer of exactly that size, so that ASan sees an overrun. */
		memcpy(exact, packet, MAX(size, 16ul));
		set_size(exact, size);
		ck_assert_int_eq(pp_decode(exact, size, v->fds, is_reply(v), &header, &body),
				 size == n ? 0 : -EBADMSG);
	}
}
END_TEST

START_TEST(every_smaller_buffer_is_refused)
{
	const struct vector *v = &vectors[_i];
	size_t n = encode_vector(v);

	for (size_t cap = 0; cap < n; cap++) {
		_cleanup_free_ uint8_t *exact = malloc(cap);

		ck_assert_int_eq(pp_encode(&header, &expected, exact, cap), -EMSGSIZE);
	}
	ck_assert_int_eq(pp_encode(&header, &expected, packet, n), n);
}
END_TEST

START_TEST(largest_messages_fit)
{
	ssize_t n;

	memset(&body, 0, sizeof(body));
	body.list_reply.count = PP_LIST_MAX;
	header = (struct pp_header){ .opcode = PP_OP_LIST | PP_OP_REPLY };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + 8 + PP_LIST_MAX * SIZE_OF_EVENT);
	ck_assert_int_eq(decode(n, true), 0);

	memset(&body, 0, sizeof(body));
	body.open_reply.count = PP_FDS_MAX;
	header = (struct pp_header){ .opcode = PP_OP_OPEN | PP_OP_REPLY };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + SIZE_OF_EVENT + 16 + PP_FDS_MAX * 8);
	ck_assert_int_eq(decode(n, true), 0);

	memset(&body, 0, sizeof(body));
	body.create_request.count = PP_SELECTIONS_MAX;
	header = (struct pp_header){ .opcode = PP_OP_CREATE };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + 1476 + PP_SELECTIONS_MAX * 2048);
	ck_assert_int_eq(decode(n, false), 0);

	memset(&body, 0, sizeof(body));
	body.limits_reply.count = PP_LIMITS_MAX;
	header = (struct pp_header){ .opcode = PP_OP_LIMITS | PP_OP_REPLY };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + 8 + PP_LIMITS_MAX * 200);
	ck_assert_int_eq(decode(n, true), 0);

	memset(&body, 0, sizeof(body));
	body.trigger_request.event.count = PP_SELECTIONS_MAX;
	header = (struct pp_header){ .opcode = PP_OP_TRIGGER };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + PP_TARGETS_SIZE + 32 + 1476 + PP_SELECTIONS_MAX * 2048 + 8 +
				    PP_KEY_SIZE + PP_RATE_SIZE + 8);
	ck_assert_int_eq(decode(n, false), 0);

	memset(&body, 0, sizeof(body));
	body.triggers_reply.count = PP_LIST_MAX;
	header = (struct pp_header){ .opcode = PP_OP_TRIGGERS | PP_OP_REPLY };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + 8 + PP_LIST_MAX * SIZE_OF_TRIGGER);
	ck_assert_int_eq(decode(n, true), 0);

	memset(&body, 0, sizeof(body));
	body.tapes_reply.count = PP_TAPES_MAX;
	header = (struct pp_header){ .opcode = PP_OP_TAPES | PP_OP_REPLY };
	n = pp_encode(&header, &body, packet, sizeof(packet));
	ck_assert_int_eq(n, 16 + 8 + PP_TAPES_MAX * SIZE_OF_TAPE);
	ck_assert_int_eq(decode(n, true), 0);
}
END_TEST

/* ── Header ─────────────────────────────────────────────────────────────────────────────── */

START_TEST(header_size_must_be_what_came)
{
	size_t n = encode_vector(&vectors[2]);

	set_size(packet, n - 1);
	ck_assert_int_eq(decode(n, false), -EBADMSG);
	set_size(packet, n + 1);
	ck_assert_int_eq(decode(n, false), -EBADMSG);
	set_size(packet, n);
	ck_assert_int_eq(decode(n, false), 0);
}
END_TEST

START_TEST(fds_must_be_those_that_came)
{
	size_t n = encode_vector(&vectors[2]);

	ck_assert_int_eq(pp_decode(packet, n, 1, false, &header, &body), -EBADMSG);
	packet[12] = 1;
	ck_assert_int_eq(pp_decode(packet, n, 0, false, &header, &body), -EBADMSG);
	ck_assert_int_eq(pp_decode(packet, n, 1, false, &header, &body), 0);
	packet[15] = 1; /* 0x01000001: the upper bytes count as well */
	ck_assert_int_eq(pp_decode(packet, n, 1, false, &header, &body), -EBADMSG);
}
END_TEST

START_TEST(other_versions_are_refused)
{
	size_t n = encode_vector(&vectors[0]);

	packet[0] = 0;
	ck_assert_int_eq(decode(n, false), -EPROTONOSUPPORT);
	packet[0] = PP_PROTOCOL_VERSION + 1;
	ck_assert_int_eq(decode(n, false), -EPROTONOSUPPORT);
	packet[0] = PP_PROTOCOL_VERSION;
	packet[1] = 1;
	ck_assert_int_eq(decode(n, false), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(direction_is_checked)
{
	ck_assert_int_eq(decode(encode_vector(&vectors[0]), true), -EBADMSG);
	ck_assert_int_eq(decode(encode_vector(&vectors[1]), false), -EBADMSG);
	ck_assert_int_eq(decode(encode_vector(&vectors[12]), false), -EBADMSG);
}
END_TEST

START_TEST(unknown_opcode_keeps_the_header)
{
	size_t n = encode_vector(&vectors[2]);

	packet[2] = 0xff;
	packet[3] = 0x7f;
	memset(&header, 0, sizeof(header));
	ck_assert_int_eq(decode(n, false), -EOPNOTSUPP);
	ck_assert_uint_eq(header.opcode, 0x7fff);
	ck_assert_uint_eq(header.serial, 0x01020304);
	packet[2] = packet[3] = 0;
	ck_assert_int_eq(decode(n, false), -EOPNOTSUPP);
	/* But not if the header has another fault. */
	set_size(packet, n + 1);
	ck_assert_int_eq(decode(n, false), -EBADMSG);
}
END_TEST

START_TEST(too_large_is_refused)
{
	encode_vector(&vectors[0]);
	packet[2] = 0x77; /* an unknown opcode has no size of its own */
	set_size(packet, PP_PACKET_MAX);
	ck_assert_int_eq(decode(PP_PACKET_MAX, false), -EOPNOTSUPP);
	set_size(packet, PP_PACKET_MAX + 1);
	ck_assert_int_eq(decode(PP_PACKET_MAX + 1, false), -EBADMSG);
}
END_TEST

/* ── Strings and counts ─────────────────────────────────────────────────────────────────── */

START_TEST(string_without_nul_is_refused)
{
	size_t n = encode_vector(&vectors[2]);

	memset(packet + 24, 'x', 63);
	ck_assert_int_eq(decode(n, false), 0);
	packet[24 + 63] = 'x';
	ck_assert_int_eq(decode(n, false), -EBADMSG);

	memset(expected.list_request.ns, 'x', PP_NAME_SIZE);
	ck_assert_int_eq(pp_encode(&header, &expected, packet, sizeof(packet)), -EINVAL);
}
END_TEST

START_TEST(bytes_behind_the_nul_are_refused)
{
	size_t n = encode_vector(&vectors[2]);

	packet[24 + 4] = 'x'; /* "sys\0x" */
	ck_assert_int_eq(decode(n, false), -EBADMSG);
	packet[24 + 4] = 0;
	packet[24 + 63] = 'x';
	ck_assert_int_eq(decode(n, false), -EBADMSG);
}
END_TEST

START_TEST(bytes_behind_the_nul_do_not_leave)
{
	size_t n = encode_vector(&vectors[2]);

	memcpy(again, packet, n);
	memset(expected.list_request.ns + 4, 'x', PP_NAME_SIZE - 4);
	ck_assert_int_eq(pp_encode(&header, &expected, packet, sizeof(packet)), n);
	ck_assert_int_eq(memcmp(packet, again, n), 0);
}
END_TEST

START_TEST(counts_are_bounded)
{
	size_t n = 16 + 8 + (PP_LIST_MAX + 1) * SIZE_OF_EVENT;

	/* The bytes of one element too many are all there. */
	memset(packet, 0, sizeof(packet));
	packet[0] = PP_PROTOCOL_VERSION;
	packet[2] = PP_OP_LIST;
	packet[3] = PP_OP_REPLY >> 8;
	packet[16] = PP_LIST_MAX + 1;
	set_size(packet, n);
	ck_assert_int_eq(decode(n, true), -EBADMSG);
	packet[16] = PP_LIST_MAX;
	ck_assert_int_eq(decode(n, true), -EBADMSG);
	set_size(packet, n - SIZE_OF_EVENT);
	ck_assert_int_eq(decode(n - SIZE_OF_EVENT, true), 0);
	memset(packet + 16, 0xff, 4);
	ck_assert_int_eq(decode(n - SIZE_OF_EVENT, true), -EBADMSG);

	memset(&body, 0, sizeof(body));
	body.list_reply.count = PP_LIST_MAX + 1;
	header = (struct pp_header){ .opcode = PP_OP_LIST | PP_OP_REPLY };
	ck_assert_int_eq(pp_encode(&header, &body, packet, sizeof(packet)), -EINVAL);
}
END_TEST

START_TEST(unknown_opcode_is_not_encoded)
{
	header = (struct pp_header){ .opcode = 999 };
	ck_assert_int_eq(pp_encode(&header, &body, packet, sizeof(packet)), -EINVAL);
}
END_TEST

/* ── The table ──────────────────────────────────────────────────────────────────────────── */

START_TEST(operations_are_found)
{
	const struct pp_operation *op = pp_operation_by_number(PP_OP_DELETE);

	ck_assert_ptr_nonnull(op);
	ck_assert_str_eq(op->name, "DELETE");
	ck_assert_uint_eq(op->since, 1);
	ck_assert_int_eq(op->right, PP_RIGHT_W);
	ck_assert_str_eq(op->request->name, "name");
	ck_assert_str_eq(op->reply->name, "event");
	ck_assert_ptr_eq(pp_message_by_opcode(PP_OP_DELETE), op->request);
	ck_assert_ptr_eq(pp_message_by_opcode(PP_OP_DELETE | PP_OP_REPLY), op->reply);
	ck_assert_str_eq(pp_message_by_opcode(PP_OP_ERROR)->name, "error");
	/* Readers neither fire nor release what others want to save. */
	ck_assert_int_eq(pp_operation_by_number(PP_OP_TRIGGER)->right, PP_RIGHT_W);
	ck_assert_int_eq(pp_operation_by_number(PP_OP_FIRE)->right, PP_RIGHT_W);
	ck_assert_int_eq(pp_operation_by_number(PP_OP_RELEASE)->right, PP_RIGHT_W);
	ck_assert_int_eq(pp_operation_by_number(PP_OP_TAPES)->right, PP_RIGHT_R);
	ck_assert_int_eq(pp_operation_by_number(PP_OP_ADOPT)->right, PP_RIGHT_W);
	ck_assert_int_eq(pp_operation_by_number(PP_OP_CLAIM)->right, PP_RIGHT_W);
	ck_assert_ptr_null(pp_operation_by_number(0));
	ck_assert_ptr_null(pp_operation_by_number(25));
	ck_assert_ptr_null(pp_operation_by_number(PP_OP_DELETE | PP_OP_REPLY));
	ck_assert_ptr_null(pp_message_by_opcode(0));
	ck_assert_ptr_null(pp_message_by_opcode(25 | PP_OP_REPLY));
}
END_TEST

START_TEST(document_comes_from_the_table)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	pp_protocol_document(f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "| 6 | OPEN | 1 | r | `open_request` | `open_reply` |"));
	ck_assert_ptr_nonnull(strstr(text, "| 5688 | 4 | u32 | `count` |"));
	ck_assert_ptr_nonnull(
		strstr(text, "| 8 | 5676 × `count` | array of `event`, at most 11 |"));
	ck_assert_ptr_nonnull(strstr(text, "| 0 | 136 | `name` | `which` |"));
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("protocol");
	TCase *t = tcase_create("vectors");

	tcase_add_loop_test(t, vector_is_encoded, 0, ARRAY_SIZE(vectors));
	tcase_add_loop_test(t, vector_is_decoded, 0, ARRAY_SIZE(vectors));
	tcase_add_loop_test(t, every_other_length_is_refused, 0, ARRAY_SIZE(vectors));
	tcase_add_loop_test(t, every_smaller_buffer_is_refused, 0, ARRAY_SIZE(vectors));
	tcase_add_test(t, vectors_are_complete);
	suite_add_tcase(s, t);
	t = tcase_create("rules");
	tcase_add_test(t, largest_messages_fit);
	tcase_add_test(t, header_size_must_be_what_came);
	tcase_add_test(t, fds_must_be_those_that_came);
	tcase_add_test(t, other_versions_are_refused);
	tcase_add_test(t, direction_is_checked);
	tcase_add_test(t, unknown_opcode_keeps_the_header);
	tcase_add_test(t, too_large_is_refused);
	tcase_add_test(t, string_without_nul_is_refused);
	tcase_add_test(t, bytes_behind_the_nul_are_refused);
	tcase_add_test(t, bytes_behind_the_nul_do_not_leave);
	tcase_add_test(t, counts_are_bounded);
	tcase_add_test(t, unknown_opcode_is_not_encoded);
	tcase_add_test(t, operations_are_found);
	tcase_add_test(t, document_comes_from_the_table);
	suite_add_tcase(s, t);
	return run_suite(s);
}
