// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures how long a reader waits to reopen an event by name, and to take a snapshot of its full
 * rings. Reopening is compared with a socket round trip that passes as many descriptors, plus the
 * kernel's time to map the rings. A snapshot is compared with a memcpy of as many bytes.
 *
 *   bench-latency INSTANCE
 *
 * The event is raw_syscalls:sys_enter on two CPUs, and keeps recording. Both sides take
 * turns. A snapshot is taken of an event that is open: to map its rings is part of reopening. It is
 * measured
 *   reused   as the second and any later one of a process, into the memory of the one before;
 *            beside a memcpy from and to memory that has been used before,
 *   fresh    as the first one of a process, into memory that it has to get its pages for;
 *            beside mmap of new memory (in huge pages, as the snapshot's), and a memcpy to it,
 *            from memory that has been used before.
 *
 * Knows nothing of the library's internals: it is a program like any other.
 */
#include "tests/bench/measure.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "proto/protocol.h"
#include "proto/ring.h"

#define N_CPUS 2
#define REOPENS 2000
#define SMALL_TIMES 300
#define LARGE_TIMES 15
#define HUGE_PAGE (2UL << 20)

static const char *instance;
static struct perfpersist *p;

static double since(uint64_t begin)
{
	return (double)(now(CLOCK_MONOTONIC) - begin) / 1e3;
}

/* ── events with full rings ─────────────────────────────────────────────────────────────── */

static void fill_ring(struct perfpersist_event *e, size_t ring, uint64_t size)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	stay_on(perfpersist_ring_cpu(e, ring));
	do {
		for (int i = 0; i < 1000; i++)
			call();
		if (perfpersist_ring_stat(e, ring, &stat) < 0)
			die("%s", perfpersist_error(NULL));
	} while (stat.bytes < size);
}

static struct perfpersist_event *create(const char *name, const int *cpus, uint64_t size)
{
	char list[32];
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = "raw_syscalls:sys_enter",
		.cpus = list,
		.buffer = size,
	};
	struct perfpersist_event *e;
	cpu_set_t before;

	snprintf(list, sizeof(list), "%d,%d", cpus[0], cpus[1]);
	if (perfpersist_create(p, NAMESPACE, name, &opts, NULL) < 0)
		die("%s", perfpersist_error(p));
	e = open_event(p, name);

	sched_getaffinity(0, sizeof(before), &before);
	for (size_t i = 0; i < N_CPUS; i++)
		fill_ring(e, i, size);
	sched_setaffinity(0, sizeof(before), &before);
	return e;
}

/* ── mapping ────────────────────────────────────────────────────────────────────────────── */

/* Size of a ring's mapping in bytes. */
static size_t mapping_size(int fd)
{
	const struct pp_ring_header *h = mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	size_t size;

	if (h == MAP_FAILED)
		die("cannot map a ring: %m");
	size = pp_ring_size(h->header_size, h->data_size, h->spill_size);
	munmap((void *)h, PP_RING_PAGE);
	return size;
}

/* Time that the kernel takes to map these rings, as a reader maps them. */
static double time_map(const int *fds, size_t size)
{
	void *maps[N_CPUS];
	uint64_t begin = now(CLOCK_MONOTONIC);
	double us;

	for (size_t i = 0; i < N_CPUS; i++)
		maps[i] = mmap(NULL, size, PROT_READ, MAP_SHARED, fds[i], 0);
	us = since(begin);
	for (size_t i = 0; i < N_CPUS; i++)
		if (maps[i] == MAP_FAILED || munmap(maps[i], size) < 0)
			die("cannot map a ring: %m");
	return us;
}

/* ── reopening ──────────────────────────────────────────────────────────────────────────── */

static double time_reopen(const char *name)
{
	uint64_t begin = now(CLOCK_MONOTONIC);
	struct perfpersist_event *e = open_event(p, name);
	double us = since(begin);

	perfpersist_event_free(e);
	return us;
}

static double time_connect_and_reopen(const char *name)
{
	uint64_t begin = now(CLOCK_MONOTONIC);
	struct perfpersist *mine = connect_to(instance);
	struct perfpersist_event *e = open_event(mine, name);
	double us = since(begin);

	perfpersist_event_free(e);
	perfpersist_free(mine);
	return us;
}

/* One packet with room for N_CPUS descriptors. */
struct packet {
	struct iovec iov;
	struct msghdr msg;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(N_CPUS * sizeof(int))];
};

static void make_packet(struct packet *k, void *data, size_t size, bool with_fds)
{
	k->iov = (struct iovec){ data, size };
	k->msg = (struct msghdr){ .msg_iov = &k->iov, .msg_iovlen = 1 };
	if (with_fds) {
		k->msg.msg_control = k->control;
		k->msg.msg_controllen = sizeof(k->control);
	}
}

/* Answers each packet of the request's size with a packet of the reply's size and these
 * descriptors. */
__attribute__((noreturn)) static void serve(int socket, const int *fds)
{
	static char request[sizeof(struct pp_msg_name)], reply[sizeof(struct pp_msg_open_reply)];
	struct packet in, out;
	struct cmsghdr *c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		make_packet(&in, request, sizeof(request), false);
		if (recvmsg(socket, &in.msg, 0) <= 0)
			_exit(0);
		make_packet(&out, reply, sizeof(reply), true);
		c = CMSG_FIRSTHDR(&out.msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(N_CPUS * sizeof(int));
		memcpy(CMSG_DATA(c), fds, N_CPUS * sizeof(int));
		if (sendmsg(socket, &out.msg, MSG_NOSIGNAL) < 0)
			_exit(1);
	}
}

static int start_server(const int *fds)
{
	int sockets[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0 ||
	    (pid = fork()) < 0)
		die("cannot start a server: %m");
	if (pid == 0) {
		close(sockets[0]); /* or the server would never see the end */
		serve(sockets[1], fds);
	}
	close(sockets[1]);
	return sockets[0];
}

/* The minimum time of any server's answer with these descriptors. */
static double time_socket(int socket)
{
	static char request[sizeof(struct pp_msg_name)], reply[sizeof(struct pp_msg_open_reply)];
	uint64_t begin = now(CLOCK_MONOTONIC);
	struct packet in;
	int fds[N_CPUS];
	double us;

	make_packet(&in, reply, sizeof(reply), true);
	if (send(socket, request, sizeof(request), MSG_NOSIGNAL) < 0 ||
	    recvmsg(socket, &in.msg, MSG_CMSG_CLOEXEC) != sizeof(reply) || !CMSG_FIRSTHDR(&in.msg))
		die("no answer from the bare server: %m");
	us = since(begin);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&in.msg)), sizeof(fds));
	for (size_t i = 0; i < N_CPUS; i++)
		close(fds[i]);
	return us;
}

static void measure_reopen(const char *name, struct perfpersist_event *e)
{
	static double reopen[REOPENS], with_connect[REOPENS], bare[REOPENS], map[REOPENS],
		rest[REOPENS];
	int fds[N_CPUS], socket;
	size_t size;

	for (size_t i = 0; i < N_CPUS; i++)
		fds[i] = perfpersist_ring_fd(e, i);
	size = mapping_size(fds[0]);
	socket = start_server(fds);
	for (size_t i = 0; i < REOPENS; i++) {
		reopen[i] = time_reopen(name);
		with_connect[i] = time_connect_and_reopen(name);
		bare[i] = time_socket(socket);
		map[i] = time_map(fds, size);
		rest[i] = reopen[i] - map[i];
	}
	close(socket);
	wait(NULL);
	print_result("reopen_us", reopen, REOPENS);
	print_result("reopen_connect_us", with_connect, REOPENS);
	print_result("reopen_map_us", map, REOPENS);
	print_result("reopen_rest_us", rest, REOPENS);
	print_result("socket_us", bare, REOPENS);
}

/* ── snapshots ──────────────────────────────────────────────────────────────────────────── */

struct copying {
	const char *name, *suffix; /* of the event; of the results' keys */
	uint64_t ring_size;
	struct perfpersist_event *event;
	char *from, *to; /* for memcpy */
	size_t size;	 /* of all rings' data */
};

/* The snapshot must not be empty. Its records are not read. */
static void check_snapshot(struct perfpersist_snapshot *s)
{
	for (size_t i = 0; i < N_CPUS; i++) {
		struct perfpersist_sample sample;
		struct perfpersist_cursor *c;

		if (perfpersist_cursor_new(s, i, &c) < 0)
			die("%s", perfpersist_error(NULL));
		if (perfpersist_cursor_next(c, &sample) != 1)
			die("a snapshot of a full ring is empty");
		perfpersist_cursor_free(c);
	}
}

static double time_snapshot_of(struct perfpersist_event *e)
{
	uint64_t begin = now(CLOCK_MONOTONIC);
	struct perfpersist_snapshot *s;
	double us;

	if (perfpersist_snapshot_new(e, &s) < 0 || perfpersist_snapshot_take(s) < 0)
		die("%s", perfpersist_error(NULL));
	us = since(begin);

	check_snapshot(s);
	perfpersist_snapshot_free(s);
	return us;
}

static double time_snapshot(const struct copying *c)
{
	return time_snapshot_of(c->event);
}

/* The event is opened in this process: the processor has to fault in a mapping inherited from the
 * parent. */
static double time_fresh_snapshot(const struct copying *c)
{
	struct perfpersist_event *e;
	int fds[N_CPUS];

	for (size_t i = 0; i < N_CPUS; i++)
		fds[i] = perfpersist_ring_fd(c->event, i);
	if (perfpersist_open_fds(fds, N_CPUS, &e) < 0)
		die("%s", perfpersist_error(NULL));
	return time_snapshot_of(e);
}

/* Makes the compiler believe that the copy is read. */
static void copy(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__asm__ volatile("" : : "r"(to) : "memory");
}

static double time_memcpy(const struct copying *c)
{
	uint64_t begin = now(CLOCK_MONOTONIC);

	copy(c->to, c->from, c->size);
	return since(begin);
}

static char *map_huge(size_t wanted)
{
	size_t size = ALIGN_TO(wanted, HUGE_PAGE); /* a smaller size would get small pages */
	char *at = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		die("no memory for %zu bytes: %m", size);
	at = (char *)ALIGN_TO((uintptr_t)at, HUGE_PAGE);
	madvise(at, size, MADV_HUGEPAGE);
	return at;
}

static double time_fresh_memcpy(const struct copying *c)
{
	uint64_t begin = now(CLOCK_MONOTONIC);

	copy(map_huge(c->size), c->from, c->size);
	return since(begin);
}

/* Measures in a child process that has not taken a snapshot yet. */
static double in_child(double (*time)(const struct copying *), const struct copying *c)
{
	int fds[2], status;
	double us;
	pid_t pid;

	if (pipe(fds) < 0 || (pid = fork()) < 0)
		die("cannot start a process: %m");
	if (pid == 0) {
		us = time(c);
		_exit(write(fds[1], &us, sizeof(us)) != sizeof(us));
	}
	close(fds[1]);
	if (read(fds[0], &us, sizeof(us)) != sizeof(us))
		exit(1); /* the child has printed why */
	close(fds[0]);
	waitpid(pid, &status, 0);
	return us;
}

static void print_pair(const char *size, const char *memory, double *snapshot, double *memcopy,
		       size_t n)
{
	char key[64];

	snprintf(key, sizeof(key), "snapshot%s%s_us", size, memory);
	print_result(key, snapshot, n);
	snprintf(key, sizeof(key), "memcpy%s%s_us", size, memory);
	print_result(key, memcopy, n);
}

static void measure_fresh(struct copying *c, size_t times)
{
	double snapshot[times], memcopy[times];

	for (size_t i = 0; i < times; i++) {
		snapshot[i] = in_child(time_fresh_snapshot, c);
		memcopy[i] = in_child(time_fresh_memcpy, c);
	}
	print_pair(c->suffix, "_fresh", snapshot, memcopy, times);
}

static void measure_reused(struct copying *c, size_t times)
{
	double snapshot[times], memcopy[times];

	c->to = map_huge(c->size);
	time_snapshot(c);
	time_memcpy(c);
	for (size_t i = 0; i < times; i++) {
		snapshot[i] = time_snapshot(c);
		memcopy[i] = time_memcpy(c);
	}
	munmap(c->to, c->size);
	print_pair(c->suffix, "", snapshot, memcopy, times);
}

static void prepare(struct copying *c, const int *cpus)
{
	c->event = create(c->name, cpus, c->ring_size);
	c->size = N_CPUS * c->ring_size;
	c->from = map_huge(c->size);
	memset(c->from, 1, c->size);
}

static void finish(struct copying *c)
{
	munmap(c->from, c->size);
	perfpersist_event_free(c->event);
	if (perfpersist_delete(p, NAMESPACE, c->name, NULL) < 0)
		die("%s", perfpersist_error(p));
}

/* ── main ───────────────────────────────────────────────────────────────────────────────── */

int main(int argc, char **argv)
{
	struct copying small = { .name = "small", .suffix = "", .ring_size = 512UL << 10 };
	struct copying large = { .name = "large", .suffix = "_64m", .ring_size = 64UL << 20 };
	int cpus[N_CPUS];

	if (argc != 2)
		die("usage: bench-latency INSTANCE");
	instance = argv[1];
	if (usable_cpus(cpus, N_CPUS) < N_CPUS)
		die("needs %d CPUs", N_CPUS);
	p = connect_to(instance);
	prepare(&small, cpus);
	prepare(&large, cpus);
	measure_reopen(small.name, small.event);
	/* This process takes no snapshot before its children have taken theirs. */
	measure_fresh(&small, SMALL_TIMES);
	measure_fresh(&large, LARGE_TIMES);
	measure_reused(&small, SMALL_TIMES);
	measure_reused(&large, LARGE_TIMES);
	finish(&small);
	finish(&large);
	perfpersist_free(p);
	return 0;
}
