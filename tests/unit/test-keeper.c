// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The keeper as a process: which requests it accepts, when it exits, and that with the kernel's own
 * events its file is true.
 */
#include "tests/unit/keeper-kernel.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>

#include "daemon/keeper/rings.h"
#include "proto/clock.h"
#include "tests/unit/needs.h"
#include "tests/unit/sideband-replay.h"

static struct keeper_process keeper;
static int peer;

static void setup(void)
{
	keeper_process_start(&keeper, false);
	peer = keeper_connect(&keeper);
}

static void teardown(void)
{
	close(peer);
	keeper_process_done(&keeper);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

static void check_refused(const void *packet, size_t size, const int *fds, size_t n)
{
	int fd = keeper_connect(&keeper);

	ck_assert_int_eq(pp_packet_send(fd, packet, size, fds, n), 0);
	ck_assert(is_closed(fd));
	close(fd);
}

START_TEST(malformed)
{
	struct pp_keep_request r = { .abi = PP_KEEP_ABI, .type = PP_KEEP_HELLO };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	check_refused(&r, sizeof(r) - 1, NULL, 0);
	check_refused(&r, 8, NULL, 0);
	check_refused(&r, sizeof(r), &null, 1);
	r.type = PP_KEEP_AREAS_TAKE + 1;
	check_refused(&r, sizeof(r), NULL, 0);
	r.type = 0;
	check_refused(&r, sizeof(r), NULL, 0);
	r.type = PP_KEEP_TASKS;
	check_refused(&r, sizeof(r), &null, 1);
	r.type = PP_KEEP_RINGS;
	r.n_cpus = 2;
	check_refused(&r, sizeof(r), &null, 1);
	r.n_cpus = PP_KEEP_CPUS + 1;
	check_refused(&r, sizeof(r), NULL, 0);
	r.n_cpus = 0;
	r.abi = PP_KEEP_ABI + 1;
	check_refused(&r, sizeof(r), NULL, 0);
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_HELLO).pid, (uint32_t)keeper.pid);
	close(null);
}
END_TEST

/* The keeper understands HELLO and END of another version, whatever their size. */
START_TEST(another_version)
{
	struct pp_keep_request r[2] = { { .abi = 77, .type = PP_KEEP_HELLO, .serial = 9 } };
	struct pp_keep_answer a;

	for (int larger = 0; larger < 2; larger++) {
		size_t size = larger ? sizeof(r) : 16;

		ck_assert_int_eq(pp_packet_send(peer, r, size, NULL, 0), 0);
		ck_assert_int_eq(recv(peer, &a, sizeof(a), 0), sizeof(a));
		ck_assert_uint_eq(a.abi, PP_KEEP_ABI);
		ck_assert_uint_eq(a.serial, 9);
	}
	r->type = PP_KEEP_END;
	ck_assert_int_eq(pp_packet_send(peer, r, sizeof(r), NULL, 0), 0);
	keeper_process_wait(&keeper);
}
END_TEST

START_TEST(nothing_kept)
{
	struct pp_keep_request r = { .type = PP_KEEP_TAKE };
	int fd = -EBADF, fds[PP_KEEP_ITERATORS];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, &fd).error, ENODATA);
	ck_assert_int_eq(fd, -EBADF);
	r.type = PP_KEEP_TASKS;
	ck_assert_int_eq(keeper_ask(peer, &r, fds, ARRAY_SIZE(fds), NULL).error, ENODATA);
	r.type = PP_KEEP_RINGS;
	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, NULL).error, EINVAL);
	r.n_cpus = 2; /* no events */
	ck_assert_int_eq(keeper_ask(peer, &r, fds, 2, NULL).error, EBADMSG);
	r = (struct pp_keep_request){ .type = PP_KEEP_LIMIT, .max_memory = 1000 };
	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, NULL).error, EINVAL);
	r.max_memory = 5 << 20;
	ck_assert_uint_eq(keeper_ask(peer, &r, NULL, 0, NULL).status.max_memory, 5 << 20);
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_DROP).status.max_memory, 5 << 20);
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_HELLO).status.keeping, 0);
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_CPUS_HELD).n_cpus, 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}
END_TEST

static int open_dummy(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* No event here has an AUX area: tests/integration/test-aux.sh has a PMU that does. */
START_TEST(no_areas)
{
	struct pp_keep_request areas = {
		.type = PP_KEEP_AREAS, .event = 7, .aux_size = 65536, .n_cpus = 1
	};
	struct pp_keep_request r = { .type = PP_KEEP_AREAS_TAKE, .event = 7 };
	int fd = -EBADF, null = open("/dev/null", O_RDONLY | O_CLOEXEC), event = open_dummy();
	struct pp_keep_answer a;

	ck_assert_int_ge(event, 0);
	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, &fd).error, ENODATA);
	ck_assert_int_eq(fd, -EBADF);
	r.type = PP_KEEP_AREAS_HELD;
	a = keeper_ask(peer, &r, NULL, 0, NULL);
	ck_assert_uint_eq(a.n_areas + a.more, 0);
	r.type = PP_KEEP_AREAS_DROP;
	r.first = UINT32_MAX;
	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, NULL).error, 0);
	r.type = PP_KEEP_AREAS_PAUSE;
	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, NULL).error, 0);
	r.what = 2;
	ck_assert_int_eq(keeper_ask(peer, &r, NULL, 0, NULL).error, EINVAL);

	ck_assert_int_eq(keeper_ask(peer, &areas, &null, 1, NULL).error, EBADMSG);
	ck_assert_int_eq(keeper_ask(peer, &areas, &event, 1, NULL).error, EOPNOTSUPP);
	for (uint64_t size = 1; size; size <<= 1) {
		areas.aux_size = size >= 4096 && size <= 64 << 20 ? size + 4096 : size;
		if (areas.aux_size != 8192)
			ck_assert_int_eq(keeper_ask(peer, &areas, &event, 1, NULL).error, EBADMSG);
	}
	areas.aux_size = 65536;
	areas.event = 0;
	ck_assert_int_eq(keeper_ask(peer, &areas, &event, 1, NULL).error, EINVAL);
	areas.event = 7;
	areas.n_cpus = 0;
	ck_assert_int_eq(keeper_ask(peer, &areas, NULL, 0, NULL).error, EINVAL);
	r.type = PP_KEEP_AREAS_HELD;
	ck_assert_uint_eq(keeper_ask(peer, &r, NULL, 0, NULL).n_areas, 0);
	close(null);
	close(event);
}
END_TEST

/* A peer that does not read its answers loses the connection, and delays no other peer. */
START_TEST(slow_peer)
{
	struct pp_keep_request r = { .abi = PP_KEEP_ABI, .type = PP_KEEP_HELLO };
	int slow = keeper_connect(&keeper), err;

	do
		err = pp_packet_send(slow, &r, sizeof(r), NULL, 0);
	while (err == 0);
	ck_assert(err == -EPIPE || err == -ECONNRESET);
	ck_assert_int_eq(keeper_ask_for(peer, PP_KEEP_HELLO).error, 0);
	close(slow);
}
END_TEST

START_TEST(too_many)
{
	int fd[70];
	size_t open = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = keeper_connect(&keeper);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		struct pp_keep_request r = { .abi = PP_KEEP_ABI, .type = PP_KEEP_HELLO };
		struct pp_keep_answer a;

		open += pp_packet_send(fd[i], &r, sizeof(r), NULL, 0) == 0 &&
			recv(fd[i], &a, sizeof(a), 0) == sizeof(a);
	}
	ck_assert_uint_eq(open, 63); /* and the peer */
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	ck_assert_int_eq(keeper_ask_for(peer, PP_KEEP_HELLO).error, 0);
}
END_TEST

START_TEST(strangers)
{
	int status;
	pid_t child;

	ck_assert_int_eq(chmod(keeper.address.sun_path, 0666), 0);
	child = fork();
	if (child == 0) {
		int fd;

		if (setgid(61234) < 0 || setuid(61234) < 0)
			_exit(9);
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&keeper.address, sizeof(keeper.address)) < 0)
			_exit(8);
		_exit(!is_closed(fd));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ── its end ────────────────────────────────────────────────────────────────────────────── */

START_TEST(ends_when_idle)
{
	struct keeper_process k;
	int fd;

	keeper_process_start(&k, true);
	fd = keeper_connect(&k);
	ck_assert_int_eq(keeper_ask_for(fd, PP_KEEP_HELLO).error, 0);
	close(fd);
	keeper_process_wait(&k);
	keeper_process_done(&k);
}
END_TEST

/* It keeps something, but its socket is unreachable. Another file of that name is not its own. */
START_TEST(ends_when_unreachable)
{
	for (int renamed = 0; renamed < 2; renamed++) {
		struct keeper_process k;
		char other[128];
		int fd;

		keeper_process_start(&k, true);
		fd = keeper_connect(&k);
		keep_all(fd, false);
		close(fd);
		fd = keeper_connect(&k); /* it continues without a peer */
		ck_assert_uint_eq(keeper_ask_for(fd, PP_KEEP_HELLO).status.keeping, 1);
		if (renamed) {
			snprintf(other, sizeof(other), "%s/other", k.directory);
			close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
			ck_assert_int_eq(rename(other, k.address.sun_path), 0);
		} else {
			ck_assert_int_eq(unlink(k.address.sun_path), 0);
		}
		/* It still serves connected peers. */
		ck_assert_uint_eq(keeper_ask_for(fd, PP_KEEP_HELLO).status.keeping, 1);
		close(fd);
		keeper_process_wait(&k);
		keeper_process_done(&k);
	}
}
END_TEST

/* ── what it keeps ──────────────────────────────────────────────────────────────────────── */

static pid_t run(const char *path, const char *name)
{
	char *argv[] = { (char *)name, NULL };
	pid_t pid;

	ck_assert_int_eq(posix_spawn(&pid, path, NULL, NULL, argv, NULL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* Its number is another's before and after these times, where many processes begin. */
struct run {
	pid_t pid;
	uint64_t from, to;
};

static struct run run_true(void)
{
	struct run one = { .from = pp_clock_ns(CLOCK_MONOTONIC) };

	one.pid = run("/bin/true", "true");
	one.to = pp_clock_ns(CLOCK_MONOTONIC);
	return one;
}

#define RUNS 150

struct seen {
	unsigned forks, execs, exits, maps;
	bool named, mapped;
};

static bool is_of(const struct perf_event_header *h, const struct run *run)
{
	return (uint32_t)run->pid == record_u32(h, 8) &&
	       record_at(h) + RINGS_CLOCK_SLACK >= run->from &&
	       record_at(h) <= run->to + RINGS_CLOCK_SLACK;
}

static void see(struct seen *seen, const struct run *runs, size_t n, int fd)
{
	struct sideband s = sideband_map(fd);
	const struct perf_event_header *h;

	while ((h = sideband_next(&s))) {
		size_t i = 0;

		while (i < n && !is_of(h, &runs[i]))
			i++;
		if (i == n || h->type == PERF_RECORD_LOST || h->type >= PERF_RECORD_KSYMBOL)
			continue;
		seen[i].forks += h->type == PERF_RECORD_FORK;
		seen[i].exits += h->type == PERF_RECORD_EXIT;
		seen[i].maps += h->type == PERF_RECORD_MMAP2;
		if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC) {
			seen[i].execs++;
			seen[i].named = strcmp((const char *)h + 16, "true") == 0;
		}
		if (h->type == PERF_RECORD_MMAP2)
			seen[i].mapped |= strstr((const char *)h + 72, "/true") != NULL;
	}
	sideband_unmap(&s);
}

static void check_seen(const struct run *runs, size_t n)
{
	_cleanup_free_ struct seen *seen = calloc(n, sizeof(*seen));
	_cleanup_close_ int fd = take(peer, 0);

	see(seen, runs, n, fd);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(seen[i].forks, 1);
		ck_assert_uint_eq(seen[i].execs, 1);
		ck_assert_uint_eq(seen[i].exits, 1);
		ck_assert_uint_ge(seen[i].maps, 2); /* itself and its loader, at least */
		ck_assert(seen[i].named);
		ck_assert(seen[i].mapped);
	}
}

static size_t n_applied;

static void apply_slowly(void *context _unused_, const uint8_t *record _unused_,
			 size_t size _unused_)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	n_applied++;
	nanosleep(&ms, NULL);
}

/* Records that take long to apply: the keeper works in steps, serves peers in between, and loses
 * nothing. */
START_TEST(in_steps)
{
	const size_t n = 200;
	unsigned cpu = (unsigned)sched_getcpu();
	struct pp_cpumask here = { 0 }, opened;
	struct rings rings;
	struct pp_fds fds;
	size_t steps = 1;
	uint64_t until;
	cpu_set_t set;
	char name[16];

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	pp_cpumask_set(&here, cpu);
	rings_init(&rings);
	order_sideband(&here, 0, &opened, &fds);
	ck_assert_int_eq(rings_put(&rings, cpu, 1, fds.fd[0]), 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "name%zu", i);
		prctl(PR_SET_NAME, name);
	}
	until = clock_now() + RINGS_CLOCK_SLACK;
	for (; !rings_merge(&rings, until, apply_slowly, NULL); steps++)
		ck_assert_uint_le(n_applied, steps * RINGS_STEP / 1000000);
	ck_assert_uint_ge(steps, n * 1000000 / RINGS_STEP);
	ck_assert_uint_ge(n_applied, n);
	rings_unmap(&rings);
}
END_TEST

/* The file has each program that ran, once, with its name, even those that ran without a peer, and
 * while the rings were replaced. */
START_TEST(short_lives)
{
	struct run runs[RUNS];

	keep_all(peer, true);
	for (size_t i = 0; i < RUNS; i++) {
		if (i == RUNS / 3) {
			close(peer);
			peer = -EBADF;
		}
		if (i == 2 * RUNS / 3) {
			peer = keeper_connect(&keeper);
			keep_all(peer, false);
		}
		runs[i] = run_true();
	}
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_HELLO).status.lost, 0);
	check_seen(runs, RUNS);
}
END_TEST

/* The rings are replaced again and again meanwhile; nothing is lost or repeated. */
START_TEST(changed_rings)
{
	struct run runs[RUNS];
	pid_t child;
	int ends[2];

	keep_all(peer, true);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		for (size_t i = 0; i < RUNS; i++)
			runs[i] = run_true();
		_exit(write(ends[1], runs, sizeof(runs)) !=
		      sizeof(runs)); /* at once: below PIPE_BUF */
	}
	close(ends[1]);
	do
		keep_all(peer, false);
	while (waitpid(child, NULL, WNOHANG) == 0);
	ck_assert_int_eq(read(ends[0], runs, sizeof(runs)), sizeof(runs));
	close(ends[0]);
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_HELLO).status.lost, 0);
	check_seen(runs, RUNS);
}
END_TEST

/* How often the process has slept. */
static unsigned long waits(pid_t pid)
{
	char path[64], line[128];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
			break;
	fclose(f);
	return n;
}

/* How many descriptors of a kind the keeper's epoll set has. */
static unsigned count_waited_for(pid_t pid, const char *kind)
{
	char path[64], what[64] = "", line[128];
	unsigned n = 0;
	int target;

	for (int fd = 0; fd < 256; fd++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		memset(what, 0, sizeof(what));
		if (readlink(path, what, sizeof(what) - 1) < 0 ||
		    strcmp(what, "anon_inode:[eventpoll]") != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
		f = fopen(path, "re");
		ck_assert_ptr_nonnull(f);
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "tfd: %d", &target) != 1)
				continue;
			snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, target);
			memset(what, 0, sizeof(what));
			if (readlink(path, what, sizeof(what) - 1) > 0)
				n += strncmp(what, kind, strlen(kind)) == 0;
		}
		fclose(f);
	}
	return n;
}

/* perf never wakes the keeper: otherwise other recorders would miss those wakeups. */
START_TEST(wakes_by_time)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	unsigned long n;

	keep_all(peer, true);
	ck_assert_uint_eq(count_waited_for(keeper.pid, "socket:"), 2);
	ck_assert_uint_eq(count_waited_for(keeper.pid, "anon_inode:[perf_event]"), 0);
	n = waits(keeper.pid);
	while (waits(keeper.pid) < n + 5)
		nanosleep(&moment, NULL);
}
END_TEST

static void *thread_main(void *gate)
{
	pthread_setname_np(pthread_self(), "a-thread");
	pthread_barrier_wait(gate);
	pthread_barrier_wait(gate);
	return NULL;
}

/* The test itself, which started before the keeper; a child that only forks; a thread. */
START_TEST(ourselves)
{
	struct replay *r = malloc(sizeof(*r));
	uint32_t self = (uint32_t)getpid();
	pthread_barrier_t gate;
	pthread_t thread;
	uint64_t before, between;
	int fd, status;
	pid_t child;

	r->only = self;
	before = clock_now();
	keep_all(peer, true);
	pthread_barrier_init(&gate, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, thread_main, &gate), 0);
	pthread_barrier_wait(&gate);
	between = clock_now();
	pthread_barrier_wait(&gate);
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "a-child");
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	fd = take(peer, 0);
	replay_file(r, fd, before);
	ck_assert_str_eq(replay_comm(r, self), "test-keeper");
	ck_assert_ptr_nonnull(
		strstr(replay_path(r, self, (uint64_t)(uintptr_t)&thread_main), "test-keeper"));
	ck_assert_ptr_nonnull(strstr(replay_path(r, self, (uint64_t)(uintptr_t)&getppid), "libc"));
	replay_file(r, fd, between);
	ck_assert_str_eq(replay_comm(r, self), "test-keeper");
	for (size_t i = r->n; i-- > 0;)
		if (r->task[i].pid == self && r->task[i].tid != self)
			ck_assert_str_eq(r->task[i].comm, "a-thread");
	replay_file(r, fd, UINT64_MAX);
	ck_assert_str_eq(replay_comm(r, (uint32_t)child), "a-child");
	ck_assert(replay_find(r, (uint32_t)child)->ended);
	ck_assert_str_eq(replay_path(r, (uint32_t)child, (uint64_t)(uintptr_t)&thread_main),
			 replay_path(r, self, (uint64_t)(uintptr_t)&thread_main));
	/* All threads but this one have ended. */
	for (size_t i = 0; i < r->n; i++)
		if (r->task[i].pid == self)
			ck_assert(r->task[i].ended == (r->task[i].tid != self));
	close(fd);
	free(r);
}
END_TEST

START_TEST(dropped)
{
	struct pp_keep_answer a;

	keep_all(peer, true);
	a = keeper_ask_for(peer, PP_KEEP_HELLO);
	ck_assert_uint_gt(a.status.processes, 1);
	a = keeper_ask_for(peer, PP_KEEP_DROP);
	ck_assert_uint_eq(a.status.keeping, 0);
	ck_assert_uint_eq(a.status.tasks, 0);
	ck_assert_uint_eq(a.status.processes, 0);
	ck_assert_uint_eq(keeper_ask_for(peer, PP_KEEP_CPUS_HELD).n_cpus, 0);
	keep_all(peer, true);
	ck_assert_uint_gt(keeper_ask_for(peer, PP_KEEP_HELLO).status.processes, 1);
	ck_assert_int_eq(keeper_ask_for(peer, PP_KEEP_END).error, 0);
	keeper_process_wait(&keeper);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper");
	TCase *t = tcase_create("all");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, malformed);
	tcase_add_test(t, another_version);
	tcase_add_test(t, nothing_kept);
	tcase_add_test(t, no_areas);
	tcase_add_test(t, slow_peer);
	tcase_add_test(t, too_many);
	tcase_add_test(t, strangers);
	tcase_add_test(t, ends_when_idle);
	tcase_add_test(t, ends_when_unreachable);
	tcase_add_test(t, in_steps);
	tcase_add_test(t, short_lives);
	tcase_add_test(t, changed_rings);
	tcase_add_test(t, wakes_by_time);
	tcase_add_test(t, ourselves);
	tcase_add_test(t, dropped);
	suite_add_tcase(s, t);
	return run_suite(s);
}
