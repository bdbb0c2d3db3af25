// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests over real connections: the answers, who gets them, and what peers cannot do. */
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/syntax/machine.h"
#include "tests/unit/peer-costs.h"
#include "tests/unit/registry-pins.h"

static struct broker b;
static struct client root, member, team;

static void setup(void)
{
	gid_t gid = TEAM;

	broker_start(&b);
	client_begin(&b, &root, 0);
	ck_assert_int_eq(setegid(61990), 0);
	client_begin(&b, &member, MEMBER);
	ck_assert_int_eq(setegid(gid), 0);
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

START_TEST(ping)
{
	struct pp_msg_empty empty = {};

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_call(&member, PP_OP_PING, &empty), 0);
	ck_assert_uint_eq(member.body.ping_reply.version, PP_PROTOCOL_VERSION);
	ck_assert_uint_eq(member.body.ping_reply.pid, getpid());
	/* The fake engine runs in this process too. */
	ck_assert_uint_eq(member.body.ping_reply.engine_pid, getpid());
	ck_assert_uint_eq(member.body.ping_reply.events, 1);
	ck_assert_str_eq(member.body.ping_reply.instance, "test");
}
END_TEST

START_TEST(from_creation_to_deletion)
{
	struct pp_msg_name by_id = { 0 };

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_str_eq(root.body.event.ns, "a");
	ck_assert_str_eq(root.body.event.name, "x");
	ck_assert_str_eq(root.body.event.event, "cpu-clock");
	ck_assert_str_eq(root.body.event.cpus, "0,3");
	ck_assert_uint_eq(root.body.event.id, 1);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
	ck_assert_uint_eq(root.body.event.group, TEAM);
	ck_assert_uint_eq(root.body.event.mode, 0640);
	ck_assert_uint_eq(root.body.event.flags, PP_EVENT_FREQ | PP_EVENT_ALL_CPUS);
	/* Without a stat file the broker claims nothing. */
	ck_assert_uint_eq(root.body.event.missed_unknown, 1);

	ck_assert_int_eq(client_create(&root, "a", "x"), -EEXIST);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	by_id.id = 1;
	ck_assert_int_eq(client_call(&root, PP_OP_SHOW, &by_id), 0);
	ck_assert_str_eq(root.body.event.name, "x");
	by_id.id = 2;
	ck_assert_int_eq(client_call(&root, PP_OP_SHOW, &by_id), -ENOENT);
	by_id.id = 1;
	by_id.ns[0] = 'a';
	ck_assert_int_eq(client_call(&root, PP_OP_SHOW, &by_id), -EINVAL);

	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.id, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);
	ck_assert_int_eq(client_list(&root, "a", 0), -ENOENT);
	ck_assert_uint_eq(b.lifecycle.registry.n_namespaces, 0);
}
END_TEST

START_TEST(rights)
{
	const struct pp_msg_name by_id = { .id = 1 };

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	/* 0640, root's, group team. */
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_int_eq(client_show(&team, "a", "y"), -ENOENT);
	ck_assert_int_eq(client_delete(&team, "a", "x"), -EACCES);
	ck_assert_int_eq(client_create(&team, "a", "y"), -EACCES);
	ck_assert_int_eq(client_list(&team, "a", 0), 0);
	ck_assert_uint_eq(team.body.list_reply.count, 1);

	ck_assert_int_eq(client_show(&member, "a", "x"), -EACCES);
	ck_assert_int_eq(client_call(&team, PP_OP_SHOW, &by_id), 0);
	ck_assert_int_eq(client_call(&team, PP_OP_DELETE, &by_id), -EACCES);
	ck_assert_int_eq(client_call(&member, PP_OP_SHOW, &by_id), -ENOENT);
	/* A missing event is refused in the same way as an existing one. */
	ck_assert_int_eq(client_show(&member, "a", "y"), -EACCES);
	ck_assert_int_eq(client_delete(&member, "a", "x"), -EACCES);
	ck_assert_int_eq(client_create(&member, "a", "y"), -EACCES);
	ck_assert_int_eq(client_list(&member, "a", 0), -EACCES);
	ck_assert_int_eq(client_list(&member, "", 0), 0);
	ck_assert_uint_eq(member.body.list_reply.count, 0);
	ck_assert_int_eq(client_show(&member, "nowhere", "y"), -ENOENT);
	ck_assert_uint_eq(b.engine.created, 1);
	ck_assert_uint_eq(b.engine.deleted, 0);
}
END_TEST

START_TEST(namespaces_on_demand)
{
	ck_assert_int_eq(client_create(&team, "own", "x"), -EACCES);
	b.config.makers = POLICY_GROUP;
	ck_assert_int_eq(client_create(&member, "own", "x"), -EACCES);
	ck_assert_int_eq(client_create(&team, "own", "x"), 0);
	ck_assert_uint_eq(team.body.event.owner, MEMBER + 10);
	/* Its creator owns it. */
	ck_assert_int_eq(client_create(&team, "own", "y"), 0);
	b.config.makers = POLICY_ALL;
	ck_assert_int_eq(client_create(&member, "own", "z"), -EACCES);
	ck_assert_int_eq(client_create(&member, "other", "z"), 0);
	ck_assert_int_eq(client_delete(&team, "own", "x"), 0);
}
END_TEST

static int create_of(struct client *c, const char *name, const char *first, const char *second)
{
	struct pp_msg_create_request request = { .ns = "open", .count = second ? 2 : 1 };

	snprintf(request.name, sizeof(request.name), "%s", name);
	snprintf(request.selections[0].event, sizeof(request.selections[0].event), "%s", first);
	if (second)
		snprintf(request.selections[1].event, sizeof(request.selections[1].event), "%s",
			 second);
	return client_call(c, PP_OP_CREATE, &request);
}

/* The check comes before the file: only a user who may ask learns that there is no such file. */
START_TEST(probes)
{
	static const char *const texts[] = {
		"kprobe:do_exit",
		"kretprobe:do_exit",
		"uprobe:/no/file:f",
		"uretprobe:/no/file:f(a=%ax,b=arg2)",
		"usdt:/no/file:p:n",
		"mem:0x1000:w",
		"cpu-clock,mem:0x1000:rw:u",
		"sched:*,uprobe:/no/file:f(arg1,arg2)",
	};

	b.config.makers = POLICY_ALL;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		ck_assert_int_eq(create_of(&team, "x", texts[i], NULL), -EACCES);
		ck_assert_ptr_nonnull(strstr(team.body.error.message, "Probes="));
		ck_assert_int_eq(create_of(&team, "x", "cpu-clock", texts[i]), -EACCES);
	}
	ck_assert_uint_eq(b.engine.created, 0);
	ck_assert_int_eq(create_of(&team, "x", "memory:kprobe,sched:uprobe", NULL), 0);

	b.config.probers = POLICY_GROUP;
	ck_assert_int_eq(create_of(&team, "y", "uprobe:/no/file:f", NULL), -ENOENT);
	ck_assert_int_eq(create_of(&team, "y", "mem:0x1000:w", NULL), 0);
	ck_assert_int_eq(client_delete(&team, "open", "x"), 0);
	ck_assert_int_eq(client_delete(&team, "open", "y"), 0);
	ck_assert_int_eq(create_of(&member, "x", "mem:0x1000:w", NULL), -EACCES);
	b.config.probers = POLICY_ALL;
	ck_assert_int_eq(create_of(&member, "x", "mem:0x1000:w", NULL), 0);
}
END_TEST

static int create_with_stacks(struct client *c, const char *ns)
{
	union pp_body request = { .create_request = {
					  .flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN,
					  .stack_user = 8192,
					  .name = "x",
					  .count = 1,
				  } };

	strcpy(request.create_request.ns, ns);
	strcpy(request.create_request.selections[0].event, "cpu-clock");
	return client_call(c, PP_OP_CREATE, &request);
}

START_TEST(user_stacks)
{
	b.config.makers = POLICY_ALL;
	ck_assert_int_eq(create_with_stacks(&team, "own"), -EACCES);
	ck_assert_ptr_nonnull(strstr(team.body.error.message, "UserStacks="));
	ck_assert_uint_eq(b.engine.created, 0);
	b.config.stack_users = POLICY_GROUP;
	ck_assert_int_eq(create_with_stacks(&member, "other"), -EACCES);
	ck_assert_int_eq(create_with_stacks(&team, "own"), 0);
	ck_assert_uint_eq(team.body.event.stack_user, 8192);
	b.config.stack_users = POLICY_ALL;
	ck_assert_int_eq(create_with_stacks(&member, "other"), 0);
}
END_TEST

START_TEST(lists_in_pages)
{
	char name[16];
	uint64_t last = 0;
	unsigned seen = 0;

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "e%u", (i * 7) % 40);
		ck_assert_int_eq(client_create(&root, i % 2 ? "odd" : "even", name), 0);
	}
	do {
		ck_assert_int_eq(client_list(&root, "", last), 0);
		for (unsigned i = 0; i < root.body.list_reply.count; i++) {
			ck_assert_uint_gt(root.body.list_reply.events[i].id, last);
			last = root.body.list_reply.events[i].id;
			seen++;
		}
	} while (root.body.list_reply.more);
	ck_assert_uint_eq(seen, 40);
	ck_assert_int_eq(client_list(&root, "odd", 0), 0);
	ck_assert_uint_eq(root.body.list_reply.count, PP_LIST_MAX);
	last = root.body.list_reply.events[PP_LIST_MAX - 1].id;
	ck_assert_int_eq(client_list(&root, "odd", last), 0);
	ck_assert_uint_eq(root.body.list_reply.count, 20 - PP_LIST_MAX);
	ck_assert_uint_eq(root.body.list_reply.more, 0);
}
END_TEST

START_TEST(too_many_events)
{
	b.config.max_events = 1;
	broker_limits(&b);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), -EDQUOT);
}
END_TEST

START_TEST(too_many_connections)
{
	struct client more[4], one_more;

	for (int i = 0; i < 3; i++)
		client_begin(&b, &more[i], MEMBER);
	ck_assert_int_eq(client_try(&b, &one_more, MEMBER), -EDQUOT);
	close(one_more.fd);
	client_end(&more[0]);
	client_begin(&b, &more[0], MEMBER);
	for (int i = 0; i < 3; i++)
		client_end(&more[i]);
}
END_TEST

/* While the engine works on one request, the broker answers all others. */
START_TEST(the_broker_does_not_wait)
{
	struct pp_msg_name which = client_name("a", "slow");

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	fake_wait(&b.engine, true);
	client_send_create(&root, "a", "slow");
	broker_settle(&b);
	ck_assert(!client_has_reply(&root));
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_int_eq(client_show(&team, "a", "slow"), -EBUSY);
	ck_assert_int_eq(client_list(&team, "a", 0), 0);
	ck_assert_uint_eq(team.body.list_reply.count, 1);
	/* The waiting client may make other requests, too. */
	client_send(&root, PP_OP_DELETE, &which);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	client_send_create(&root, "a", "slow");
	ck_assert_int_eq(client_receive(&root), -EEXIST);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_str_eq(root.body.event.name, "slow");
}
END_TEST

START_TEST(a_second_deletion)
{
	struct pp_msg_name which = client_name("a", "x");

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_DELETE, &which);
	client_send(&root, PP_OP_DELETE, &which);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_uint_eq(team.body.event.state, PP_EVENT_DELETING);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_eq(b.engine.deleted, 1);
}
END_TEST

/* The broker does not read a peer with max_requests unanswered, and resumes later. */
START_TEST(unanswered_requests_are_limited)
{
	struct pp_msg_empty empty = {};
	char name[16];

	b.peers.max_requests = 2;
	fake_wait(&b.engine, true);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		client_send_create(&root, "a", name);
	}
	client_send(&root, PP_OP_PING, &empty);
	broker_settle(&b);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 2);
	ck_assert(!client_has_reply(&root));
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
}
END_TEST

/* The broker does not read a peer that does not read its replies, and loses no reply. */
START_TEST(slow_peers)
{
	enum { MANY = 20 };
	struct pp_msg_empty empty = {};
	struct pp_msg_list_request list = { 0 };
	char name[16];

	for (unsigned i = 0; i < PP_LIST_MAX; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		ck_assert_int_eq(client_create(&root, "a", name), 0);
	}
	for (int i = 0; i < MANY; i++) /* a MiB of replies */
		client_send(&team, PP_OP_LIST, &list);
	broker_settle(&b);
	ck_assert_int_eq(client_call(&root, PP_OP_PING, &empty), 0);
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(client_receive(&team), 0);
		ck_assert_uint_eq(team.header.serial, i + 1);
		ck_assert_uint_eq(team.body.list_reply.count, PP_LIST_MAX);
	}
}
END_TEST

START_TEST(who_leaves_early)
{
	struct client gone;

	client_begin(&b, &gone, 0);
	fake_wait(&b.engine, true);
	client_send_create(&gone, "a", "x");
	client_send_create(&gone, "a", "y");
	broker_settle(&b);
	client_end(&gone);
	fake_wait(&b.engine, false);
	broker_until(&b, b.lifecycle.registry.n_settled == 2);
	ck_assert_int_eq(client_show(&root, "a", "y"), 0);
}
END_TEST

static void expect_hang_up(struct client *c)
{
	struct pp_msg_empty empty = {};

	ck_assert_int_eq(client_receive(c), 1);
	/* No other client is affected. */
	ck_assert_int_eq(client_call(&root, PP_OP_PING, &empty), 0);
	client_end(c);
}

START_TEST(malformed_packets_cost_the_peer)
{
	static const uint8_t garbage[PP_PACKET_MAX + 1] = { 7 };
	static const size_t sizes[] = { 1, 15, 16, 200, PP_PACKET_MAX, PP_PACKET_MAX + 1 };
	uint8_t packet[256];
	struct pp_header header = { .opcode = PP_OP_PING, .serial = 1 };
	struct pp_msg_empty empty = {};
	struct client bad;
	ssize_t n = pp_encode(&header, &empty, packet, sizeof(packet));

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		client_begin(&b, &bad, MEMBER);
		ck_assert_int_eq(send(bad.fd, garbage, sizes[i], 0), (ssize_t)sizes[i]);
		if (sizes[i] >= 16 && sizes[i] <= PP_PACKET_MAX)
			/* The header has another version: the reply says so first. */
			ck_assert_int_eq(client_receive(&bad), -EPROTONOSUPPORT);
		expect_hang_up(&bad);
	}
	client_begin(&b, &bad, MEMBER); /* one byte more than the header says */
	packet[n] = 0;
	ck_assert_int_eq(send(bad.fd, packet, n + 1, 0), n + 1);
	expect_hang_up(&bad);
}
END_TEST

START_TEST(unexpected_descriptors_are_closed)
{
	struct pp_header header = { .opcode = PP_OP_PING, .serial = 1 };
	struct pp_msg_empty empty = {};
	uint8_t packet[64];
	struct client bad;
	int pipes[2];
	char byte;
	ssize_t n = pp_encode(&header, &empty, packet, sizeof(packet));

	client_begin(&b, &bad, MEMBER);
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(pp_packet_send(bad.fd, packet, n, &pipes[1], 1), 0);
	close(pipes[1]);
	expect_hang_up(&bad);
	/* No writer is left: the broker has closed its copy. */
	ck_assert_int_eq(read(pipes[0], &byte, 1), 0);
	close(pipes[0]);
}
END_TEST

START_TEST(unknown_operations)
{
	struct pp_header header = { .opcode = PP_OP_PING, .serial = 1 };
	struct pp_msg_empty empty = {};
	uint8_t packet[64];
	ssize_t n = pp_encode(&header, &empty, packet, sizeof(packet));

	packet[2] = 99; /* the opcode's low byte */
	ck_assert_int_eq(send(team.fd, packet, n, 0), n);
	ck_assert_int_eq(client_receive(&team), -EOPNOTSUPP);
	ck_assert_int_eq(client_call(&team, PP_OP_PING, &empty), 0);
}
END_TEST

START_TEST(before_the_engine_is_known)
{
	b.lifecycle.synced = false;
	ck_assert_int_eq(client_list(&root, "", 0), -EAGAIN);
	ck_assert_int_eq(client_show(&root, "a", "x"), -EAGAIN);
	ck_assert_int_eq(client_create(&root, "a", "x"), -EAGAIN);
	b.lifecycle.synced = true;
}
END_TEST

START_TEST(counts_come_from_the_stat_file)
{
	static const char text[] = "cpu0 records=2 bytes=64 limited=0 missed=0\n"
				   "cpu3 records=3 bytes=96 limited=4 missed=1\n"
				   "total records=5 bytes=160 limited=4 missed=1\n";
	char stat[300];
	FILE *f;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	pins_event(&b, 1);
	snprintf(stat, sizeof(stat), "%s/by-id/1/stat", b.registry);
	f = fopen(stat, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_uint_eq(team.body.event.records, 5);
	ck_assert_uint_eq(team.body.event.bytes, 160);
	ck_assert_uint_eq(team.body.event.limited, 4);
	ck_assert_uint_eq(team.body.event.missed, 1);
	ck_assert_uint_eq(team.body.event.missed_unknown, 0);
	f = fopen(stat, "we");
	ck_assert_ptr_nonnull(f);
	fputs("total records=5 bytes=160 limited=4 missed=7+ ringless=2\n", f);
	fclose(f);
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_uint_eq(team.body.event.missed, 7);
	ck_assert_uint_eq(team.body.event.missed_unknown, PP_MISSED_AT_LEAST);
	/* The reply to a deletion describes the event. */
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.records, 5);
	unlink(stat);
	for (unsigned i = 0; i < 2; i++) {
		*strrchr(stat, '/') = '\0';
		rmdir(stat);
	}
}
END_TEST

/* ── creating, in detail ────────────────────────────────────────────────────────────────── */

static struct pp_msg_create_request create_request(const char *ns, const char *name,
						   const char *event)
{
	struct pp_msg_create_request request = { .count = 1 };

	snprintf(request.ns, sizeof(request.ns), "%s", ns);
	snprintf(request.name, sizeof(request.name), "%s", name);
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "%s", event);
	return request;
}

/* Without the right to create there, the broker parses nothing. */
START_TEST(rights_before_text)
{
	struct pp_msg_create_request request = create_request("a", "x", "no-such-event");

	ck_assert_int_eq(client_call(&member, PP_OP_CREATE, &request), -EACCES);
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), -EINVAL);
	snprintf(request.ns, sizeof(request.ns), "a.b");
	ck_assert_int_eq(client_call(&member, PP_OP_CREATE, &request), -EINVAL);
}
END_TEST

static int booted;

static int boot(void *userdata, const struct event *e, const struct pp_msg_create_request *request,
		char *sentence, size_t size)
{
	ck_assert_ptr_eq(userdata, &b);
	ck_assert_uint_ne(e->truth.id, 0);
	ck_assert_str_eq(request->selections[0].event, "cpu-clock");
	snprintf(sentence, size, "The disk is full.");
	return booted++ ? -ENOSPC : 0;
}

static int forget(void *userdata, const struct event *e, char *sentence, size_t size)
{
	ck_assert_ptr_eq(userdata, &b);
	snprintf(sentence, size, "The file stays.");
	return strcmp(e->truth.spec.name, "x") == 0 ? 0 : -EROFS;
}

START_TEST(events_that_are_to_be_there_after_a_reboot)
{
	struct pp_msg_create_request request = create_request("a", "x", "cpu-clock");

	request.flags = PP_EVENT_BOOT;
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), -EOPNOTSUPP);
	ck_assert_uint_eq(b.engine.created, 0);
	b.service.boot = boot;
	b.service.userdata = &b;
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ck_assert_int_eq(booted, 1);
	snprintf(request.name, sizeof(request.name), "y");
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), -ENOSPC);
	ck_assert_str_eq(root.body.error.message, "The disk is full.");
	/* An event that could not be written down is not created, either. */
	ck_assert_uint_eq(b.engine.deleted, 1);
	ck_assert_int_eq(client_show(&root, "a", "y"), -ENOENT);
	/* Nor does a deleted event's file remain; or the reply says so. */
	b.service.forget = forget;
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "z"), 0);
	ck_assert_int_eq(client_delete(&root, "a", "z"), -EROFS);
	ck_assert_str_eq(root.body.error.message, "The file stays.");
	ck_assert_int_eq(client_show(&root, "a", "z"), -ENOENT);
}
END_TEST

/* A slow disk. */
static int boot_slowly(void *userdata _unused_, const struct event *e _unused_,
		       const struct pp_msg_create_request *request _unused_,
		       char *sentence _unused_, size_t size _unused_)
{
	const struct timespec a_while = { .tv_nsec = 50000000 };

	nanosleep(&a_while, NULL);
	return 0;
}

static int forget_slowly(void *userdata, const struct event *e, char *sentence, size_t size)
{
	return boot_slowly(userdata, e, NULL, sentence, size);
}

/* Others wait for the disk: the user who asked waits longer, even after he hung up. */
START_TEST(who_makes_us_wait_for_the_disk)
{
	struct pp_msg_create_request request = create_request("a", "x", "cpu-clock");

	b.config.makers = POLICY_ALL;
	b.service.boot = boot_slowly;
	b.service.forget = forget_slowly;
	request.flags = PP_EVENT_BOOT;
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ck_assert(!fair_queue_in_debt(turn_of(&b, 0)));
	snprintf(request.ns, sizeof(request.ns), "own");
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert(fair_queue_in_debt(turn_of(&b, MEMBER + 10)));
	ck_assert(!fair_queue_is_silenced(turn_of(&b, MEMBER + 10)));
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	while (fair_queue_in_debt(turn_of(&b, MEMBER + 10)))
		broker_settle(&b);
	ck_assert_int_eq(client_delete(&team, "own", "x"), 0);
	ck_assert(fair_queue_in_debt(turn_of(&b, MEMBER + 10)));
	while (fair_queue_in_debt(turn_of(&b, MEMBER + 10)))
		broker_settle(&b);
	snprintf(request.name, sizeof(request.name), "y");
	fake_wait(&b.engine, true);
	client_send(&team, PP_OP_CREATE, &request);
	broker_settle(&b);
	client_end(&team);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	broker_settle(&b);
	ck_assert_int_eq(client_show(&root, "own", "y"), 0);
	client_begin(&b, &team, MEMBER + 10);
	ck_assert(fair_queue_in_debt(turn_of(&b, MEMBER + 10)));
}
END_TEST

static struct pp_msg_create_request shared(const char *ns, const char *name)
{
	struct pp_msg_create_request request = create_request(ns, name, "cpu-clock");

	request.flags = PP_EVENT_SHARE;
	return request;
}

/* A second name must not give access that the first one does not give. */
START_TEST(who_may_share)
{
	struct pp_msg_create_request request = shared("own", "x");
	struct namespace *ns;

	b.config.makers = POLICY_ALL;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_call(&member, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(member.body.event.shares, 0);
	ck_assert_int_eq(client_delete(&member, "own", "x"), 0);
	/* The team may read it, and hold its rings. */
	request = shared("team", "x");
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(team.body.event.shares, machine_unprivileged_bpf() ? 0 : 1);
	ck_assert_int_eq(client_delete(&team, "team", "x"), 0);
	/* Copies only: no name for the rings. */
	ns = registry_namespace(&b.lifecycle.registry, "a");
	ns->live = NAMESPACE_LIVE_NOBODY;
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(team.body.event.shares, 0);
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_uint_ne(team.body.event.flags & PP_EVENT_COPIES, 0);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.flags & PP_EVENT_COPIES, 0);
}
END_TEST

/* ── limits ─────────────────────────────────────────────────────────────────────────────── */

/* Per user, over all connections; a client that has left is charged until its requests are done. */
START_TEST(requests_of_a_user_are_limited)
{
	struct client second;
	char name[16];

	b.config.makers = POLICY_ALL;
	b.config.max_requests_per_user = 3;
	broker_limits(&b);
	ck_assert_int_eq(setegid(61990), 0);
	client_begin(&b, &second, MEMBER);
	ck_assert_int_eq(setegid(0), 0);
	fake_wait(&b.engine, true);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		client_send_create(i ? &member : &second, "own", name);
	}
	broker_settle(&b);
	client_send_create(&member, "own", "one-more");
	ck_assert_int_eq(client_receive(&member), -EDQUOT);
	ck_assert_ptr_nonnull(strstr(member.body.error.message, "MaxRequestsPerUser="));
	client_end(&second);
	client_send_create(&member, "own", "one-more");
	ck_assert_int_eq(client_receive(&member), -EDQUOT);
	ck_assert_uint_eq(quota_user(&b.quota, MEMBER)->used[QUOTA_REQUESTS], 3);
	/* Root is not refused. */
	client_send_create(&root, "own", "roots");
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&member), 0);
	ck_assert_int_eq(client_receive(&member), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_REQUESTS], 0);
}
END_TEST

static int limits(struct client *c, uint32_t first)
{
	struct pp_msg_limits_request request = { .first = first };

	return client_call(c, PP_OP_LIMITS, &request);
}

START_TEST(limits_are_shown)
{
	const struct pp_msg_limit *line = root.body.limits_reply.limits;

	b.config.max_memory_per_user = 1 << 24;
	broker_limits(&b);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "b", "x"), 0);
	ck_assert_int_eq(limits(&root, 0), 0);
	/* Total, two namespaces, three users. */
	ck_assert_uint_eq(root.body.limits_reply.count, 6);
	ck_assert_uint_eq(line[0].scope, PP_LIMIT_TOTAL);
	ck_assert_uint_eq(line[0].events, 2);
	ck_assert_uint_eq(line[0].max_events, 128);
	ck_assert_uint_eq(line[0].connections, 3);
	ck_assert_uint_eq(line[0].requests, 1);
	ck_assert_uint_eq(line[0].memory, 4 * (4096 + 512 * 1024 + 4096));
	ck_assert_uint_eq(line[1].scope, PP_LIMIT_NAMESPACE);
	ck_assert_str_eq(line[1].ns, "a");
	ck_assert_uint_eq(line[1].events, 1);
	ck_assert_str_eq(line[2].ns, "b");
	ck_assert_uint_eq(line[3].uid, 0);
	ck_assert_uint_eq(line[3].max_memory, 1 << 30);
	ck_assert_uint_eq(line[4].uid, MEMBER);
	ck_assert_uint_eq(line[4].max_memory, 1 << 24);
	ck_assert_uint_eq(line[4].connections, 1);
	ck_assert_int_eq(limits(&root, 4), 0);
	ck_assert_uint_eq(root.body.limits_reply.count, 2);
	ck_assert_uint_eq(root.body.limits_reply.limits[0].uid, MEMBER);
	ck_assert_int_eq(limits(&root, 100), 0);
	ck_assert_uint_eq(root.body.limits_reply.count, 0);
	/* Others see the total, the namespaces that they may read, and themselves. */
	ck_assert_int_eq(limits(&team, 0), 0);
	ck_assert_uint_eq(team.body.limits_reply.count, 4);
	ck_assert_int_eq(limits(&member, 0), 0);
	ck_assert_uint_eq(member.body.limits_reply.count, 2);
	ck_assert_uint_eq(member.body.limits_reply.limits[1].uid, MEMBER);
}
END_TEST

START_TEST(limits_in_pages)
{
	char name[16];

	b.config.max_events = 1000;
	b.config.max_events_per_namespace = b.config.max_events_per_user = 1000;
	broker_limits(&b);
	for (int i = 0; i < PP_LIMITS_MAX; i++) {
		snprintf(name, sizeof(name), "n%03d", i);
		ck_assert_int_eq(client_create(&root, name, "x"), 0);
	}
	ck_assert_int_eq(limits(&root, 0), 0);
	ck_assert_uint_eq(root.body.limits_reply.count, PP_LIMITS_MAX);
	ck_assert_uint_eq(root.body.limits_reply.more, 1);
	ck_assert_int_eq(limits(&root, PP_LIMITS_MAX), 0);
	ck_assert_uint_eq(root.body.limits_reply.count, 4);
	ck_assert_uint_eq(root.body.limits_reply.more, 0);
	ck_assert_str_eq(root.body.limits_reply.limits[0].ns, "n127");
}
END_TEST

/* ── turns, and those that live with a peer ─────────────────────────────────────────────── */

static unsigned handled;

static void count_and_handle(void *userdata, struct peer *peer, const struct pp_header *header,
			     const union pp_body *body)
{
	handled++;
	request_handle(userdata, peer, header, body);
}

/* However many requests of one user wait, on however many connections, another user is next. */
START_TEST(users_take_turns)
{
	enum { MANY = 40, REQUESTS = 4 };
	static struct client crowd[MANY];
	struct pp_msg_empty empty = {};

	b.peers.request = count_and_handle;
	b.config.max_connections = b.config.max_connections_per_user = 100;
	broker_limits(&b);
	for (int i = 0; i < MANY; i++)
		client_begin(&b, &crowd[i], MEMBER + 1);
	for (int i = 0; i < MANY; i++)
		for (int k = 0; k < REQUESTS; k++)
			client_send(&crowd[i], PP_OP_PING, &empty);
	/* They are under way: each has had an answer of either kind. */
	for (int i = 0; i < 3 * MANY; i++)
		sd_event_run(b.loop, 0);
	handled = 0;
	client_send(&team, PP_OP_PING, &empty);
	ck_assert_int_eq(client_receive(&team), 0);
	/* One that was under way, one of the crowd's turn, and its own. */
	ck_assert_uint_le(handled, 3);
	for (int i = 0; i < MANY; i++) {
		for (int k = 0; k < REQUESTS; k++) {
			ck_assert_int_eq(client_receive(&crowd[i]), 0);
			ck_assert_uint_eq(crowd[i].header.serial, k + 1);
		}
		client_end(&crowd[i]);
	}
}
END_TEST

/* A user with one connection need not wait while nobody does; with two of them it takes turns with itself. */
START_TEST(who_is_alone_has_its_turn_at_once)
{
	struct client second;
	struct pp_msg_empty empty = {};

	b.peers.request = count_and_handle;
	handled = 0;
	client_send(&team, PP_OP_PING, &empty);
	sd_event_run(b.loop, 0);
	ck_assert_uint_eq(handled, 1);
	ck_assert_int_eq(client_receive(&team), 0);

	client_begin(&b, &second, MEMBER + 10);
	handled = 0;
	client_send(&team, PP_OP_PING, &empty);
	client_send(&second, PP_OP_PING, &empty);
	sd_event_run(b.loop, 0);
	sd_event_run(b.loop, 0);
	ck_assert_uint_eq(handled, 0);
	ck_assert_int_eq(client_receive(&team), 0);
	ck_assert_int_eq(client_receive(&second), 0);
	ck_assert_uint_eq(handled, 2);
	client_end(&second);
}
END_TEST

/* Who has always something to ask does not keep others waiting, though it need not wait itself. */
START_TEST(who_is_alone_leaves_turns_to_others)
{
	enum { REQUESTS = 16 };
	struct pp_msg_empty empty = {};

	b.peers.request = count_and_handle;
	for (int k = 0; k < REQUESTS; k++)
		client_send(&member, PP_OP_PING, &empty);
	sd_event_run(b.loop, 0);
	handled = 0;
	client_send(&team, PP_OP_PING, &empty);
	ck_assert_int_eq(client_receive(&team), 0);
	ck_assert_uint_le(handled, 3);
	for (int k = 0; k < REQUESTS; k++)
		ck_assert_int_eq(client_receive(&member), 0);
}
END_TEST

static int on_signal(sd_event_source *s, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	*(bool *)userdata = true;
	return sd_event_source_set_enabled(s, SD_EVENT_OFF);
}

/* What the broker waits for itself goes before the requests that wait. */
START_TEST(who_asks_does_not_hold_up_signals)
{
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC);
	struct pp_msg_empty empty = {};
	sd_event_source *s = NULL;
	bool came = false;

	b.peers.request = count_and_handle;
	ck_assert_int_ge(sd_event_add_io(b.loop, &s, fd, EPOLLIN, on_signal, &came), 0);
	handled = 0;
	client_send(&root, PP_OP_PING, &empty);
	client_send(&member, PP_OP_PING, &empty);
	client_send(&team, PP_OP_PING, &empty);
	sd_event_run(b.loop, 0);
	ck_assert_int_eq(eventfd_write(fd, 1), 0);
	sd_event_run(b.loop, 0);
	ck_assert(came);
	ck_assert_uint_eq(handled, 1);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&member), 0);
	ck_assert_int_eq(client_receive(&team), 0);
	sd_event_source_unref(s);
}
END_TEST

static struct peer_guest guest;
static struct peer *host;
static int gone, drained;

static void on_gone(struct peer_guest *g)
{
	ck_assert_ptr_eq(g, &guest);
	ck_assert_ptr_null(g->peer);
	gone++;
}

static void on_drained(void *userdata _unused_, struct peer *peer)
{
	ck_assert_ptr_eq(peer, host);
	ck_assert(!peer_is_backlogged(peer));
	drained++;
}

START_TEST(guests_go_with_their_peer)
{
	struct client c;

	guest.gone = on_gone;
	client_begin(&b, &c, MEMBER);
	host = b.peers.first;
	peer_attach(host, &guest);
	peer_detach(&guest);
	peer_detach(&guest);
	peer_attach(host, &guest);
	client_end(&c);
	ck_assert_int_eq(gone, 1);
	client_begin(&b, &c, MEMBER);
	peer_attach(b.peers.first, &guest);
	ck_assert_int_eq(send(c.fd, "x", 1, 0), 1); /* no request: disconnected */
	broker_settle(&b);
	ck_assert_int_eq(gone, 2);
	client_end(&c);
}
END_TEST

/* Unsolicited packets: as many as there is room for, and a note when there is room again. */
START_TEST(backlogs)
{
	struct pp_header header = { .opcode = PP_OP_PING, .serial = 7 };
	struct pp_msg_ping_reply reply = { .version = 1 };
	struct client c;
	unsigned sent = 0;

	b.peers.drained = on_drained;
	client_begin(&b, &c, MEMBER);
	host = b.peers.first;
	while (!peer_is_backlogged(host)) {
		reply.events = sent++;
		ck_assert_int_eq(peer_reply(host, &header, &reply, NULL, 0), 0);
	}
	ck_assert_int_eq(drained, 0);
	for (unsigned i = 0; i < sent; i++) {
		ck_assert_int_eq(client_receive(&c), 0);
		ck_assert_uint_eq(c.header.serial, 7);
		ck_assert_uint_eq(c.body.ping_reply.events, i);
	}
	ck_assert_int_eq(drained, 1);
	ck_assert(!peer_is_backlogged(host));
	client_end(&c);
}
END_TEST

/* ── OPEN, with real pins in a bpffs that only this process sees ────────────────────────── */

static void pin_ring(uint64_t origin, unsigned cpu, uint32_t size)
{
	char leaf[64];
	int fd = pins_map("", 0, size);

	snprintf(leaf, sizeof(leaf), "by-id/%llu/cpu%u", (unsigned long long)origin, cpu);
	pins_add(&b, fd, leaf);
	close(fd);
}

START_TEST(opening)
{
	struct pp_msg_open_request request = { .which = client_name("a", "x") };
	const struct pp_msg_open_reply *reply = &root.body.open_reply;
	void *map;

	pins_begin(&b);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	/* Missing pins are an error; the broker does not wait for them. */
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -ENOENT);
	pins_event(&b, 1);
	pin_ring(1, 0, 4096 + 524288 + 4096);
	/* One of two: none is handed out, and none kept. */
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -ENOENT);
	pin_ring(1, 3, 4096 + 524288 + 4096);
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(reply->total, 2);
	ck_assert_uint_eq(reply->count, 2);
	ck_assert_uint_eq(reply->cpus[0].cpu, 0);
	ck_assert_uint_eq(reply->cpus[1].cpu, 3);
	ck_assert_uint_eq(reply->cpus[1].map_size, 4096 + 524288 + 4096);
	ck_assert_uint_eq(root.fds.n, 2);
	map = mmap(NULL, reply->cpus[0].map_size, PROT_READ, MAP_SHARED, root.fds.fd[0], 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	munmap(map, reply->cpus[0].map_size);

	request.first = 1;
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(reply->total, 2);
	ck_assert_uint_eq(reply->count, 1);
	ck_assert_uint_eq(reply->cpus[0].cpu, 3);
	request.first = 2;
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -EINVAL);
	request.first = 0;
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), -EACCES);

	/* More replies than its socket holds: each arrives, with its descriptors, in turn. */
	for (int i = 0; i < 100; i++)
		client_send(&root, PP_OP_OPEN, &request);
	broker_settle(&b);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(client_receive(&root), 0);
		ck_assert_uint_eq(root.fds.n, 2);
	}
	pins_end(&b);
}
END_TEST

static void *change_places(void *stop)
{
	char one[512], two[512];
	unsigned queue = 0;

	snprintf(one, sizeof(one), "%s/by-id/1", b.registry);
	snprintf(two, sizeof(two), "%s/by-id/2", b.registry);
	for (; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED) || queue % 2; queue++) {
		const struct timespec pause = { .tv_nsec = 20000 };

		ck_assert_int_eq(renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE), 0);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* A change puts another directory in the place of the event's: its rings are there at any time. */
START_TEST(directories_change_places)
{
	const uint32_t size = 4096 + 524288 + 4096;
	bool stop = false;
	pthread_t thread;

	pins_begin(&b);
	for (uint64_t origin = 1; origin <= 2; origin++) {
		pins_event(&b, origin);
		pin_ring(origin, 0, size);
	}
	pthread_create(&thread, NULL, change_places, &stop);
	for (unsigned i = 0; i < 20000; i++) {
		int fd = tree_ring_open(b.registry, "by-id/1", 0);

		ck_assert_int_ge(fd, 0);
		close(fd);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	ck_assert_int_eq(tree_ring_open(b.registry, "by-id/3", 0), -ENOENT);
	pins_end(&b);
}
END_TEST

/* Creates a/x with so many rings, pinned. */
static void begin_opening(unsigned rings)
{
	struct pp_event *truth;

	pins_begin(&b);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	pins_event(&b, 1);
	truth = &registry_by_name(&b.lifecycle.registry, "a", "x")->truth;
	truth->rings = (struct pp_cpumask){ 0 };
	for (unsigned cpu = 0; cpu < rings; cpu++) {
		pp_cpumask_set(&truth->rings, cpu);
		pin_ring(1, cpu, 4096);
	}
}

static void send_opens(struct client *c, int n)
{
	struct pp_msg_open_request request = { .which = client_name("a", "x") };

	for (int i = 0; i < n; i++)
		client_send(c, PP_OP_OPEN, &request);
	broker_settle(&b);
}

/* Counts the waiting replies, of any kind. The broker does nothing meanwhile. */
static int count_replies(struct client *c)
{
	int n = 0;

	for (; client_has_reply(c); n++)
		client_receive(c);
	return n;
}

START_TEST(who_does_not_read_gets_no_more_descriptors)
{
	enum { RINGS = 30, AT_ONCE = PP_FDS_MAX / RINGS, MANY = 5 * AT_ONCE };

	begin_opening(RINGS);
	send_opens(&team, MANY);
	ck_assert_int_eq(count_replies(&team), AT_ONCE);
	for (int i = 0; i < MANY - AT_ONCE; i++) {
		ck_assert_int_eq(client_receive(&team), 0);
		ck_assert_uint_eq(team.fds.n, RINGS);
	}
	ck_assert(!client_has_reply(&team));
	pins_end(&b);
}
END_TEST

START_TEST(users_share_what_may_be_in_flight)
{
	struct client second, other;

	begin_opening(2);
	ck_assert_int_eq(setegid(TEAM), 0);
	client_begin(&b, &second, MEMBER + 10); /* the same user as team */
	client_begin(&b, &other, MEMBER + 11);
	ck_assert_int_eq(setegid(0), 0);
	b.peers.max_in_flight = 12; /* 6 per user */
	send_opens(&team, 2);
	send_opens(&second, 2);
	send_opens(&other, 1);
	send_opens(&root, 20); /* is not refused */
	ck_assert_int_eq(client_receive(&second), 0);
	ck_assert_int_eq(client_receive(&second), -EAGAIN);
	ck_assert_int_eq(client_receive(&other), 0);
	ck_assert_int_eq(count_replies(&team), 2);
	send_opens(&second, 1);
	ck_assert_int_eq(client_receive(&second), 0);
	ck_assert_int_eq(count_replies(&root), 20);
	client_end(&second);
	client_end(&other);
	pins_end(&b);
}
END_TEST

START_TEST(who_hangs_up_stays_charged)
{
	static const uint8_t garbage[32] = { 7 };
	uint64_t connections = b.quota.sum.used[QUOTA_CONNECTIONS];

	begin_opening(2);
	send_opens(&team, 3);
	ck_assert_int_eq(send(team.fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_CONNECTIONS], connections);
	ck_assert_int_eq(client_receive(&team), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_CONNECTIONS], connections);
	while (client_receive(&team) != 1)
		;
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_CONNECTIONS], connections - 1);

	send_opens(&root, 3);
	ck_assert_int_eq(shutdown(root.fd, SHUT_RDWR), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_CONNECTIONS], connections - 1);
	client_end(&root);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_CONNECTIONS], connections - 2);
	pins_end(&b);
}
END_TEST

/* ── what a peer costs ──────────────────────────────────────────────────────────────────── */

/* A user whose connections are expensive waits in proportion; other users do not. */
START_TEST(users_in_debt)
{
	ck_assert(fair_queue_owe(b.peers.queue, turn_of(&b, MEMBER + 10), 3600 * 1000000000ULL));
	ck_assert(!fair_queue_owe(b.peers.queue, turn_of(&b, MEMBER + 10), 1));
	client_send(&team, PP_OP_PING, NULL);
	broker_settle(&b);
	ck_assert_int_eq(client_call(&member, PP_OP_PING, NULL), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_PING, NULL), 0);
	ck_assert(!client_has_reply(&team));
	/* A new connection belongs to the same user. */
	client_end(&team);
	client_begin(&b, &team, MEMBER + 10);
	ck_assert(fair_queue_in_debt(turn_of(&b, MEMBER + 10)));
	client_send(&team, PP_OP_PING, NULL);
	broker_settle(&b);
	ck_assert_int_eq(client_call(&member, PP_OP_PING, NULL), 0);
	ck_assert(!client_has_reply(&team));
	/* Nothing keeps the administrator out. */
	ck_assert(!fair_queue_owe(b.peers.queue, turn_of(&b, 0), 3600 * 1000000000ULL));
	ck_assert_int_eq(client_call(&root, PP_OP_PING, NULL), 0);
}
END_TEST

/* The broker answers new and old requests when the debt is over. */
START_TEST(debts_end)
{
	b.config.makers = POLICY_ALL;
	fake_wait(&b.engine, true);
	client_send_create(&member, "own", "x");
	broker_settle(&b);
	fair_queue_owe(b.peers.queue, turn_of(&b, MEMBER), 2 * 1000000);
	client_send(&member, PP_OP_PING, NULL);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&member), 0);
	ck_assert_int_eq(client_receive(&member), 0);
	ck_assert(!fair_queue_in_debt(turn_of(&b, MEMBER)));
}
END_TEST

/* Requests from before the limit was lowered get replies, too. */
START_TEST(a_limit_is_lowered)
{
	char name[8];

	b.config.makers = POLICY_ALL;
	fake_wait(&b.engine, true);
	for (unsigned i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		client_send_create(&member, "own", name);
	}
	broker_settle(&b);
	b.peers.max_requests = 1;
	fair_queue_owe(b.peers.queue, turn_of(&b, MEMBER), 2 * 1000000);
	fake_wait(&b.engine, false);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(client_receive(&member), 0);
}
END_TEST

/* Each of these holds the client's end of the connection many times, and each packet wakes it. */
START_TEST(a_socket_that_costs)
{
	struct costly costly;

	costly_begin(&costly, &b, member.fd, EPOLLIN | EPOLLOUT);
	client_send(&member, PP_OP_PING, NULL);
	broker_settle(&b);
	ck_assert_uint_gt(b.peers.costly, 0);
	ck_assert_int_eq(client_call(&root, PP_OP_PING, NULL), 0);
	costly_end(&costly);
	ck_assert_int_eq(client_receive(&member), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request");
	TCase *t = tcase_create("connections");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, ping);
	tcase_add_test(t, from_creation_to_deletion);
	tcase_add_test(t, rights);
	tcase_add_test(t, namespaces_on_demand);
	tcase_add_test(t, probes);
	tcase_add_test(t, user_stacks);
	tcase_add_test(t, lists_in_pages);
	tcase_add_test(t, too_many_events);
	tcase_add_test(t, too_many_connections);
	tcase_add_test(t, the_broker_does_not_wait);
	tcase_add_test(t, a_second_deletion);
	tcase_add_test(t, unanswered_requests_are_limited);
	tcase_add_test(t, slow_peers);
	tcase_add_test(t, who_leaves_early);
	tcase_add_test(t, malformed_packets_cost_the_peer);
	tcase_add_test(t, unexpected_descriptors_are_closed);
	tcase_add_test(t, unknown_operations);
	tcase_add_test(t, before_the_engine_is_known);
	tcase_add_test(t, counts_come_from_the_stat_file);
	tcase_add_test(t, rights_before_text);
	tcase_add_test(t, events_that_are_to_be_there_after_a_reboot);
	tcase_add_test(t, who_makes_us_wait_for_the_disk);
	tcase_add_test(t, who_may_share);
	tcase_add_test(t, requests_of_a_user_are_limited);
	tcase_add_test(t, limits_are_shown);
	tcase_add_test(t, limits_in_pages);
	tcase_add_test(t, users_take_turns);
	tcase_add_test(t, who_is_alone_has_its_turn_at_once);
	tcase_add_test(t, who_is_alone_leaves_turns_to_others);
	tcase_add_test(t, who_asks_does_not_hold_up_signals);
	tcase_add_test(t, guests_go_with_their_peer);
	tcase_add_test(t, backlogs);
	tcase_add_test(t, users_in_debt);
	tcase_add_test(t, debts_end);
	tcase_add_test(t, a_limit_is_lowered);
	tcase_add_test(t, a_socket_that_costs);
	add_test_unless(no_bpffs(), t, opening);
	add_test_unless(no_bpffs(), t, directories_change_places);
	add_test_unless(no_bpffs(), t, who_does_not_read_gets_no_more_descriptors);
	add_test_unless(no_bpffs(), t, users_share_what_may_be_in_flight);
	add_test_unless(no_bpffs(), t, who_hangs_up_stays_charged);
	suite_add_tcase(s, t);
	return run_suite(s);
}
