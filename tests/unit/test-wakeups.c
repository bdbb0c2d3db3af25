// SPDX-License-Identifier: LGPL-2.1-or-later
/* From a BPF program's message to the eventfds of waiting readers. */
#include <poll.h>
#include <sys/eventfd.h>

#include "daemon/broker/handout/ringbuf.h"
#include "daemon/broker/handout/signaller.h"
#include "daemon/wakeup.h"
#include "tests/unit/peer-costs.h"
#include "tests/unit/registry-pins.h"

/* ── the consumer, on crafted memory ────────────────────────────────────────────────────── */

#define SIZE 4096U

static uint64_t positions[2]; /* consumer, producer */
static uint8_t data[2 * SIZE];
static struct ringbuf ring = {
	.consumer = &positions[0],
	.producer = &positions[1],
	.data = data,
	.size = SIZE,
};
static unsigned taken, sum;

static void on_record(void *userdata _unused_, const void *record, size_t size)
{
	taken++;
	sum += size + *(const uint8_t *)record;
}

/* Writes a record at the producer's end, as the kernel does, in both mappings. */
static void produce(uint32_t head, uint8_t byte)
{
	uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
	uint64_t at = positions[1] & (SIZE - 1);

	for (uint64_t i = 0; i < 8 + size; i++) {
		uint8_t v = i < 4 ? ((const uint8_t *)&head)[i] : i < 8 ? 0 : byte;

		data[(at + i) & (SIZE - 1)] = data[((at + i) & (SIZE - 1)) + SIZE] = v;
	}
	positions[1] += ALIGN_TO(size + 8, 8U);
}

START_TEST(consuming)
{
	uint64_t busy;

	ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), 0);
	/* Wraps many times, with sizes that do not divide the ring. */
	for (unsigned i = 0; i < 1000; i++) {
		produce(16, 1);
		produce(13, 2);
		produce(40 | BPF_RINGBUF_DISCARD_BIT, 3);
		ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), 3);
		ck_assert_uint_eq(positions[0], positions[1]);
	}
	ck_assert_uint_eq(taken, 2000);
	ck_assert_uint_eq(sum, 1000 * (17 + 15));
	/* The reader stops at a record that is being written, and takes it when it is complete. */
	produce(16, 1);
	busy = positions[1];
	produce(16 | BPF_RINGBUF_BUSY_BIT, 1);
	produce(16, 1);
	ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), 1);
	ck_assert_uint_eq(positions[0], busy);
	ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), 0);
	data[(busy & (SIZE - 1)) + 3] &= 0x7f;
	data[(busy & (SIZE - 1)) + 3 + SIZE] &= 0x7f;
	ck_assert_int_eq(ringbuf_consume(&ring, NULL, NULL), 2);
	/* Impossible records are skipped. */
	produce(16, 1);
	data[positions[0] & (SIZE - 1)] = 200;
	ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), -EBADMSG);
	positions[1] = positions[0] + SIZE + 8;
	ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), -EBADMSG);
	ck_assert_int_eq(ringbuf_consume(&ring, on_record, NULL), 0);
	ck_assert_uint_eq(positions[0], positions[1]);
}
END_TEST

/* ── signalling ─────────────────────────────────────────────────────────────────────────── */

static uint64_t count(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* A holder of the eventfd makes it blocking, and full. */
START_TEST(never_waits)
{
	const uint64_t full = UINT64_MAX - 1;
	struct signaller s;
	int fds[2 * SIGNALLER_BATCH + 3];

	ck_assert_int_eq(signaller_init(&s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_eq(fcntl(fds[1], F_SETFL, 0), 0);
	ck_assert_int_eq(write(fds[1], &full, sizeof(full)), sizeof(full));
	for (unsigned round = 0; round < 3; round++)
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			if (signaller_add(&s, fds[i]))
				signaller_flush(&s);
	signaller_flush(&s);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (i != 1)
			ck_assert_uint_eq(count(fds[i]), 3);
	ck_assert_uint_ge(count(fds[1]), full);
	/* An invalid one does not affect the others. */
	close(fds[0]);
	signaller_add(&s, fds[0]);
	signaller_add(&s, fds[2]);
	signaller_flush(&s);
	ck_assert_uint_eq(count(fds[2]), 1);
	for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	signaller_done(&s);
}
END_TEST

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

static struct broker b;
static struct client root, reader;
static int map = -EBADF, program = -EBADF;

/* Sends the packet's bytes after the first 14, as a recorder does. */
static int make_program(int map_fd)
{
	const struct bpf_insn code[] = {
		{ BPF_LD | BPF_DW | BPF_IMM, 6, BPF_PSEUDO_MAP_FD, 0, map_fd },
		{ 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -16 },
		{ BPF_ST | BPF_MEM | BPF_DW, 10, 0, -16, 0 },
		{ BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8, 0 },
		/* bpf_skb_load_bytes(skb, 0, stack, 16) */
		{ BPF_ALU64 | BPF_MOV | BPF_X, 3, 2, 0, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 16 },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_load_bytes },
		/* bpf_ringbuf_output(map, stack, 16, 0) */
		{ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -16 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 16 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0 },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	static char log[65536];
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = ARRAY_SIZE(code);
	attr.license = (uint64_t)(uintptr_t) "GPL";
	attr.log_buf = (uint64_t)(uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		fprintf(stderr, "%s\n", log);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void send_wakeup(uint64_t event_id)
{
	struct {
		uint8_t link[14];
		struct pp_wakeup wakeup;
		uint8_t rest[34];
	} __attribute__((packed)) packet = { .link = { [12] = 8 } };
	union bpf_attr attr;

	packet.wakeup.event_id = event_id;
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = program;
	attr.test.data_in = (uint64_t)(uintptr_t)&packet;
	attr.test.data_size_in = sizeof(packet);
	pins_call(BPF_PROG_TEST_RUN, &attr);
}

static void begin(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	client_begin(&b, &reader, 0);
	pins_begin(&b);
	map = pins_ringbuf();
	program = make_program(map);
}

static void end(void)
{
	client_end(&root);
	client_end(&reader);
	pins_end(&b);
	close_fd(map);
	close_fd(program);
	/* This asserts that no eventfd is left. */
	broker_end(&b);
}

static void create(const char *name, uint32_t flags)
{
	struct pp_msg_create_request request = { .ns = "a", .flags = flags, .count = 1 };

	snprintf(request.name, sizeof(request.name), "%s", name);
	snprintf(request.selections[0].event, sizeof(request.selections[0].event), "cpu-clock");
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
}

static int ask(struct client *c, const char *name)
{
	struct pp_msg_name which = client_name("a", name);

	return client_call(c, PP_OP_WAKEUP, &which);
}

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	broker_until(&b, poll(&p, 1, 0) == 1);
}

/*
 * A reader that is woken, or has just begun to wait, is woken once more after two intervals, and
 * then has nothing pending. Returns how often it was woken.
 */
static uint64_t let_pass(int fd)
{
	const struct timespec longer = { .tv_nsec = 3 * PP_WAKEUP_INTERVAL };
	uint64_t n, all = 0;

	do {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &longer, NULL);
		broker_settle(&b);
		n = count(fd);
		all += n;
	} while (n > 0);
	return all;
}

#define WAKES 300

START_TEST(woken)
{
	uint64_t told = 0;
	int x, y;

	begin();
	create("x", PP_EVENT_WAKEUP);
	create("y", PP_EVENT_WAKEUP);
	create("silent", 0);
	ck_assert_int_eq(ask(&reader, "silent"), -EINVAL);
	ck_assert_int_eq(ask(&reader, "nothing"), -ENOENT);
	/* The ring buffer does not exist yet. */
	ck_assert_int_eq(ask(&reader, "x"), -EIO);
	pins_add(&b, map, PP_WAKEUPS);
	/* Full, and without a reader: the first waiter empties it. */
	for (unsigned i = 0; i < 500; i++)
		send_wakeup(1);
	ck_assert_int_eq(ask(&reader, "x"), 0);
	ck_assert_uint_eq(reader.body.wakeup_reply.id, 1);
	ck_assert_uint_eq(reader.fds.n, 1);
	x = fcntl(reader.fds.fd[0], F_DUPFD_CLOEXEC, 3);
	ck_assert_int_eq(ask(&reader, "y"), 0);
	y = fcntl(reader.fds.fd[0], F_DUPFD_CLOEXEC, 3);
	broker_settle(&b);
	/* Older messages do not count; 500 of them would have woken it by now. */
	ck_assert_uint_le(count(x), 1);
	let_pass(x);
	let_pass(y);
	for (unsigned i = 0; i < WAKES; i++) {
		send_wakeup(1);
		send_wakeup(77); /* of no event */
		wait_for(x);
		told += count(x);
	}
	/* And once more, for messages that came directly after. */
	told += let_pass(x);
	ck_assert_uint_gt(told, WAKES);
	ck_assert_uint_le(told, 2 * WAKES);
	ck_assert_uint_eq(count(y), 0);
	send_wakeup(2);
	wait_for(y);
	ck_assert_uint_eq(count(x), 0);
	/* What finds no room, because of others' messages, is told all the same. */
	let_pass(y);
	for (unsigned i = 0; i < 500; i++)
		send_wakeup(77);
	send_wakeup(2);
	wait_for(y);
	close(x);
	close(y);
	end();
}
END_TEST

static struct client member;

/* Its eventfd, with nothing pending. */
static int begin_member(void)
{
	int fd;

	begin();
	create("x", PP_EVENT_WAKEUP);
	pins_add(&b, map, PP_WAKEUPS);
	ck_assert_int_ge(registry_configure(&b.lifecycle.registry, "a", MEMBER, 0, 0600,
					    NAMESPACE_LIVE_GROUP),
			 0);
	client_begin(&b, &member, MEMBER);
	ck_assert_int_eq(ask(&member, "x"), 0);
	fd = fcntl(member.fds.fd[0], F_DUPFD_CLOEXEC, 3);
	let_pass(fd);
	return fd;
}

static void owe(uint64_t nsec)
{
	struct peer *peer = b.peers.first;

	ck_assert_uint_eq(peer_credentials(peer)->uid, MEMBER);
	fair_queue_owe(b.peers.queue, &peer->turn, nsec);
}

/* The broker does not wake a user who is silenced, which costs no other user. */
START_TEST(in_debt)
{
	int mine = begin_member(), other;

	ck_assert_int_eq(ask(&reader, "x"), 0);
	other = fcntl(reader.fds.fd[0], F_DUPFD_CLOEXEC, 3);
	let_pass(other);
	count(mine);
	owe(3600 * 1000000000ULL);
	for (unsigned i = 0; i < 3; i++) {
		wakeups_wake(b.service.wakeups, 1);
		ck_assert_uint_eq(count(mine), 0);
		ck_assert_uint_eq(count(other), 1);
	}
	let_pass(other);
	ck_assert_uint_eq(count(mine), 0);
	close(mine);
	close(other);
	client_end(&member);
	end();
}
END_TEST

/* A user who puts an eventfd into many epoll sets pays for all the wakeups. */
START_TEST(a_waker_that_costs)
{
	struct costly costly;
	int mine = begin_member();

	costly_begin(&costly, &b, mine, EPOLLIN);
	wakeups_wake(b.service.wakeups, 1);
	ck_assert(peer_is_silenced(b.peers.first));
	costly_end(&costly);
	close(mine);
	client_end(&member);
	end();
}
END_TEST

START_TEST(after_a_debt)
{
	int mine = begin_member();

	owe(2 * 1000000);
	wakeups_wake(b.service.wakeups, 1);
	wait_for(mine);
	close(mine);
	client_end(&member);
	end();
}
END_TEST

START_TEST(as_many_as_it_may)
{
	struct client other;

	begin();
	create("x", PP_EVENT_WAKEUP);
	pins_add(&b, map, PP_WAKEUPS);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < WAKEUPS_MAX; k++)
			ck_assert_int_eq(ask(&reader, "x"), 0);
		ck_assert_int_eq(ask(&reader, "x"), -EDQUOT);
		client_end(&reader);
		client_begin(&b, &reader, 0);
	}
	/* A user other than root has half of the limit, over all its connections. */
	ck_assert_int_ge(registry_configure(&b.lifecycle.registry, "a", MEMBER, 0, 0600,
					    NAMESPACE_LIVE_GROUP),
			 0);
	client_begin(&b, &other, MEMBER);
	for (unsigned k = 0; k < WAKEUPS_MAX; k++)
		ck_assert_int_eq(ask(&other, "x"), 0);
	ck_assert_int_eq(ask(&other, "x"), -EDQUOT);
	client_end(&other);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("wakeups");
	TCase *t = tcase_create("all");

	tcase_add_test(t, consuming);
	tcase_add_test(t, never_waits);
	add_test_unless(no_bpffs(), t, woken);
	add_test_unless(no_bpffs(), t, in_debt);
	add_test_unless(no_bpffs(), t, a_waker_that_costs);
	add_test_unless(no_bpffs(), t, after_a_debt);
	add_test_unless(no_bpffs(), t, as_many_as_it_may);
	suite_add_tcase(s, t);
	return run_suite(s);
}
