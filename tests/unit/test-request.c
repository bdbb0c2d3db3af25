// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests over real connections: what is answered, to whom, and what peers cannot do. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "tests/unit/broker-fixture.h"

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
	/* The fake engine is this process too. */
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
	/* There is no stat file: nothing is claimed. */
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
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	/* 0640, root's, of the team. */
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_int_eq(client_show(&team, "a", "y"), -ENOENT);
	ck_assert_int_eq(client_delete(&team, "a", "x"), -EACCES);
	ck_assert_int_eq(client_create(&team, "a", "y"), -EACCES);
	ck_assert_int_eq(client_list(&team, "a", 0), 0);
	ck_assert_uint_eq(team.body.list_reply.count, 1);

	ck_assert_int_eq(client_show(&member, "a", "x"), -EACCES);
	/* What is not there is refused in the same way as what is. */
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
	b.config.makers = POLICY_MAKERS_GROUP;
	ck_assert_int_eq(client_create(&member, "own", "x"), -EACCES);
	ck_assert_int_eq(client_create(&team, "own", "x"), 0);
	ck_assert_uint_eq(team.body.event.owner, MEMBER + 10);
	/* Its maker owns it. */
	ck_assert_int_eq(client_create(&team, "own", "y"), 0);
	b.config.makers = POLICY_MAKERS_ALL;
	ck_assert_int_eq(client_create(&member, "own", "z"), -EACCES);
	ck_assert_int_eq(client_create(&member, "other", "z"), 0);
	ck_assert_int_eq(client_delete(&team, "own", "x"), 0);
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
	ck_assert_uint_eq(root.body.list_reply.count, 4);
	ck_assert_uint_eq(root.body.list_reply.more, 0);
}
END_TEST

START_TEST(too_many_events)
{
	b.config.max_events = 1;
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

/* While the engine works on one, all others are answered. */
START_TEST(the_broker_does_not_wait)
{
	struct pp_msg_name which = client_name("a", "slow");

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	fake_hold(&b.engine, true);
	client_send_create(&root, "a", "slow");
	broker_settle(&b);
	ck_assert(!client_has_reply(&root));
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_int_eq(client_show(&team, "a", "slow"), -EBUSY);
	ck_assert_int_eq(client_list(&team, "a", 0), 0);
	ck_assert_uint_eq(team.body.list_reply.count, 1);
	/* The one that waits may ask for other things too. */
	client_send(&root, PP_OP_DELETE, &which);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	client_send_create(&root, "a", "slow");
	ck_assert_int_eq(client_receive(&root), -EEXIST);
	fake_hold(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_str_eq(root.body.event.name, "slow");
}
END_TEST

START_TEST(a_second_deletion)
{
	struct pp_msg_name which = client_name("a", "x");

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	fake_hold(&b.engine, true);
	client_send(&root, PP_OP_DELETE, &which);
	client_send(&root, PP_OP_DELETE, &which);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_uint_eq(team.body.event.state, PP_EVENT_DELETING);
	fake_hold(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_eq(b.engine.deleted, 1);
}
END_TEST

/* With max_requests unanswered a peer is not read, and then goes on where it was. */
START_TEST(unanswered_requests_are_limited)
{
	struct pp_msg_empty empty = {};
	char name[16];

	b.peers.max_requests = 2;
	fake_hold(&b.engine, true);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		client_send_create(&root, "a", name);
	}
	client_send(&root, PP_OP_PING, &empty);
	broker_settle(&b);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 2);
	ck_assert(!client_has_reply(&root));
	fake_hold(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
}
END_TEST

/* A peer that does not read its replies is not read either, and loses none of them. */
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
	fake_hold(&b.engine, true);
	client_send_create(&gone, "a", "x");
	client_send_create(&gone, "a", "y");
	broker_settle(&b);
	client_end(&gone);
	fake_hold(&b.engine, false);
	broker_until(&b, b.lifecycle.registry.n_settled == 2);
	ck_assert_int_eq(client_show(&root, "a", "y"), 0);
}
END_TEST

static void expect_hang_up(struct client *c)
{
	struct pp_msg_empty empty = {};

	ck_assert_int_eq(client_receive(c), 1);
	/* Nobody else has noticed. */
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
			/* By its header, of another version: told so first. */
			ck_assert_int_eq(client_receive(&bad), -EPROTONOSUPPORT);
		expect_hang_up(&bad);
	}
	client_begin(&b, &bad, MEMBER); /* one byte more than it says */
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
	/* No writer is left: the broker has not kept its copy. */
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
	static const char text[] = "cpu0 records=2 bytes=64 missed=0\n"
				   "cpu3 records=3 bytes=96 missed=1\n"
				   "total records=5 bytes=160 missed=1\n";
	char dir[256], stat[300];
	FILE *f;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	snprintf(dir, sizeof(dir), "%s/a", b.registry);
	mkdir(dir, 0755);
	snprintf(dir, sizeof(dir), "%s/a/x", b.registry);
	mkdir(dir, 0755);
	snprintf(stat, sizeof(stat), "%s/stat", dir);
	f = fopen(stat, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(client_show(&team, "a", "x"), 0);
	ck_assert_uint_eq(team.body.event.records, 5);
	ck_assert_uint_eq(team.body.event.bytes, 160);
	ck_assert_uint_eq(team.body.event.missed, 1);
	ck_assert_uint_eq(team.body.event.missed_unknown, 0);
	/* The reply to a deletion tells what it was. */
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.records, 5);
	unlink(stat);
	rmdir(dir);
	snprintf(dir, sizeof(dir), "%s/a", b.registry);
	rmdir(dir);
}
END_TEST

/* ── OPEN, with real pins in a bpffs that only this process sees ────────────────────────── */

static bool mount_registry(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("bpf", b.registry, "bpf", 0, NULL) == 0;
}

static void pin_ring(const char *name, unsigned cpu, uint32_t size)
{
	char path[256];
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = size;
	attr.max_entries = 1;
	attr.map_flags = BPF_F_MMAPABLE;
	fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	ck_assert_int_ge(fd, 0);
	snprintf(path, sizeof(path), "%s/a/%s/cpu%u", b.registry, name, cpu);
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.bpf_fd = fd;
	ck_assert_int_eq(syscall(SYS_bpf, BPF_OBJ_PIN, &attr, sizeof(attr)), 0);
	close(fd);
}

START_TEST(opening)
{
	struct pp_msg_open_request request = { .which = client_name("a", "x") };
	const struct pp_msg_open_reply *reply = &root.body.open_reply;
	char dir[256];
	void *map;

	if (!mount_registry()) {
		fprintf(stderr, "SKIP opening: no bpffs can be mounted here\n");
		return;
	}
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	/* Pins that are not there are told, not waited for. */
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -ENOENT);
	snprintf(dir, sizeof(dir), "%s/a", b.registry);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	snprintf(dir, sizeof(dir), "%s/a/x", b.registry);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	pin_ring("x", 0, 4096 + 524288 + 4096);
	/* One of two: none is handed out, and none kept. */
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -ENOENT);
	pin_ring("x", 3, 4096 + 524288 + 4096);
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

	/* More replies than its socket holds: each comes, with its descriptors, in turn. */
	for (int i = 0; i < 100; i++)
		client_send(&root, PP_OP_OPEN, &request);
	broker_settle(&b);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(client_receive(&root), 0);
		ck_assert_uint_eq(root.fds.n, 2);
	}
	umount2(b.registry, MNT_DETACH);
}
END_TEST

/* a/x with so many rings, pinned; false, and said so, where there can be no pins. */
static bool begin_opening(const char *test, unsigned rings)
{
	struct pp_event *truth;
	char dir[256];

	if (!mount_registry()) {
		fprintf(stderr, "SKIP %s: no bpffs can be mounted here\n", test);
		return false;
	}
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	snprintf(dir, sizeof(dir), "%s/a", b.registry);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	snprintf(dir, sizeof(dir), "%s/a/x", b.registry);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	truth = &registry_by_name(&b.lifecycle.registry, "a", "x")->truth;
	truth->rings = (struct pp_cpumask){ 0 };
	for (unsigned cpu = 0; cpu < rings; cpu++) {
		pp_cpumask_set(&truth->rings, cpu);
		pin_ring("x", cpu, 4096);
	}
	return true;
}

static void send_opens(struct client *c, int n)
{
	struct pp_msg_open_request request = { .which = client_name("a", "x") };

	for (int i = 0; i < n; i++)
		client_send(c, PP_OP_OPEN, &request);
	broker_settle(&b);
}

/* Replies that are there now, whatever they say. The broker does nothing meanwhile. */
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

	if (!begin_opening("who_does_not_read_gets_no_more_descriptors", RINGS))
		return;
	send_opens(&team, MANY);
	ck_assert_int_eq(count_replies(&team), AT_ONCE);
	for (int i = 0; i < MANY - AT_ONCE; i++) {
		ck_assert_int_eq(client_receive(&team), 0);
		ck_assert_uint_eq(team.fds.n, RINGS);
	}
	ck_assert(!client_has_reply(&team));
	umount2(b.registry, MNT_DETACH);
}
END_TEST

START_TEST(users_share_what_may_be_in_flight)
{
	struct client second, other;

	if (!begin_opening("users_share_what_may_be_in_flight", 2))
		return;
	ck_assert_int_eq(setegid(TEAM), 0);
	client_begin(&b, &second, MEMBER + 10); /* the same user as team */
	client_begin(&b, &other, MEMBER + 11);
	ck_assert_int_eq(setegid(0), 0);
	b.peers.max_in_flight = 12; /* 6 of a user */
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
	umount2(b.registry, MNT_DETACH);
}
END_TEST

START_TEST(who_hangs_up_stays_charged)
{
	static const uint8_t garbage[32] = { 7 };
	size_t connections = b.quota.connections;

	if (!begin_opening("who_hangs_up_stays_charged", 2))
		return;
	send_opens(&team, 3);
	ck_assert_int_eq(send(team.fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.connections, connections);
	ck_assert_int_eq(client_receive(&team), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.connections, connections);
	while (client_receive(&team) != 1)
		;
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.connections, connections - 1);

	send_opens(&root, 3);
	ck_assert_int_eq(shutdown(root.fd, SHUT_RDWR), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.quota.connections, connections - 1);
	client_end(&root);
	ck_assert_uint_eq(b.quota.connections, connections - 2);
	umount2(b.registry, MNT_DETACH);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request");
	TCase *t = tcase_create("connections");
	SRunner *r;
	int failed;

	if (geteuid() != 0) {
		puts("SKIP: peers of several users take root");
		return 77;
	}
	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, ping);
	tcase_add_test(t, from_creation_to_deletion);
	tcase_add_test(t, rights);
	tcase_add_test(t, namespaces_on_demand);
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
	tcase_add_test(t, opening);
	tcase_add_test(t, who_does_not_read_gets_no_more_descriptors);
	tcase_add_test(t, users_share_what_may_be_in_flight);
	tcase_add_test(t, who_hangs_up_stays_charged);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
