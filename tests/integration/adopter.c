// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program with perf events of its own, for test-adopt.sh.
 *
 *   adopter open WHAT               opens them, prints their descriptors, and works until it is killed
 *   adopter adopt SOCKET NAME WHAT  hands them over by the library, and ends
 *   adopter leave SOCKET NAME WHAT  begins to hand them over, attaches, prints "attached", and waits
 *   adopter task SOCKET NAME N      hands over `faults`; then N children, one after the other, have 64 each
 *   adopter claim SOCKET NAME       takes it back, prints its records as of then and of after some work; if the
 *                                   daemon ends meanwhile it says so first
 *   adopter last SOCKET NAME        the same, but prints "parts" and waits for a line before it says that it has all
 *   adopter read                    the same with rings that it inherits (LISTEN_FDS)
 *   adopter tells                   whether the kernel tells what a perf event with a program counts
 *   adopter call N                  calls sched_getattr(2) N times
 *   adopter cancel N                calls io_cancel(2) N times, which no other test does
 *
 * WHAT: clock (cpu-clock of each online CPU), chains (the same with call chains), faults (page faults of this task), tracepoint ID (of each CPU);
 * inherited (faults, and a child that has got them), dead (faults of a task that has ended), file (no perf event), taken (a clock with a BPF program), many (65 counters, or more than CPUs).
 */
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "client/daemon/call.h"
#include "client/perfpersist.h"
#include "client/request/make.h"
#include "client/rings/bpf.h"
#include "proto/macro.h"

#define FDS_MAX 5000

static int fds[FDS_MAX];
static size_t n_fds;
static struct perfpersist_create_options options = { .sz = sizeof(options) };

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void add(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		die("perf_event_open");
	fds[n_fds++] = fd;
}

static void add_on_all(struct perf_event_attr *attr)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < cpus; cpu++)
		add(attr, -1, cpu);
}

static void add_clocks(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.disabled = 1,
	};

	options.event = "cpu-clock";
	options.period = 1000000;
	add_on_all(&attr);
}

/* The kernel takes the chains for the perf event, too. */
static void add_chains(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
	};

	options.event = "cpu-clock";
	options.period = 1000000;
	options.flags = PERFPERSIST_CALLCHAIN;
	add_on_all(&attr);
}

/* Each fault is a sample, of this task and of its children. */
static void add_faults(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = 1, /* an ordinary user's */
	};

	options.event = "page-faults:u";
	options.period = 1;
	add(&attr, 0, -1);
}

static void add_inherited(void)
{
	add_faults();
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
}

static void add_tracepoint(const char *id)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.config = strtoull(id, NULL, 10),
		.sample_period = 1,
		.disabled = 1,
	};

	options.event = "syscalls:sys_enter_sched_getattr";
	if (getenv("ADOPTER_EVENT"))
		options.event = getenv("ADOPTER_EVENT");
	add_on_all(&attr);
}

static void add_many(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.disabled = 1,
	};

	options.event = "page-faults";
	options.period = 1;
	for (long i = 0; i <= (n < 64 ? 64 : n); i++)
		add(&attr, 0, -1);
}

/* A perf event of a child that has ended. */
static void add_dead(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.disabled = 1,
	};
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	options.event = "page-faults";
	options.period = 1;
	add(&attr, pid, -1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* "return 0". The link. */
static int attach_other(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insn_cnt = 2,
		.insns = (uintptr_t)insns,
		.license = (uintptr_t) "GPL",
	};
	int program = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	int link = program < 0 ? -1 : client_bpf_link_perf(program, fds[0]);

	if (link < 0)
		die("attaching another program");
	return link;
}

/* Linux 6.6: the word behind a link's type, id and program, and four bytes. */
static bool kernel_tells(void)
{
	uint32_t info[32] = { 0 };
	union bpf_attr attr = { 0 };

	add_clocks();
	attr.info.bpf_fd = (uint32_t)attach_other();
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)info;
	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) == 0 && info[4];
}

static void open_all(char **what)
{
	if (!strcmp(what[0], "tracepoint")) {
		add_tracepoint(what[1]);
		return;
	}
	if (!strcmp(what[0], "faults"))
		add_faults();
	else if (!strcmp(what[0], "inherited"))
		add_inherited();
	else if (!strcmp(what[0], "many"))
		add_many();
	else if (!strcmp(what[0], "dead"))
		add_dead();
	else if (!strcmp(what[0], "chains"))
		add_chains();
	else
		add_clocks();
	if (!strcmp(what[0], "file"))
		fds[0] = 0;
	if (!strcmp(what[0], "taken"))
		attach_other();
}

static uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void work(uint64_t nsec)
{
	for (uint64_t end = cpu_time() + nsec; cpu_time() < end;)
		;
}

static struct perfpersist *connect_to(const char *socket)
{
	struct perfpersist_options o = { .sz = sizeof(o), .socket = socket };
	struct perfpersist *p;

	if (perfpersist_connect(&o, &p) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(NULL));
		exit(1);
	}
	return p;
}

static const char *namespace(void)
{
	return getenv("ADOPTER_NAMESPACE") ?: "t";
}

static void adopt(const char *socket, const char *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist *p = connect_to(socket);

	if (perfpersist_adopt(p, namespace(), name, &options, fds, n_fds, &info) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(p));
		exit(1);
	}
	printf("%" PRIu64 "\n", info.id);
	perfpersist_free(p);
}

/* The kernel's part of it, without the end. */
static void leave(const char *socket, const char *name)
{
	struct perfpersist *p = connect_to(socket);
	struct answer a = { .fd = -EBADF };
	struct request *req = NULL;

	if (make_create(p, namespace(), name, &options, &req) < 0)
		die("make_create");
	req->op = PP_OP_ADOPT;
	if (call(p, 0, req, &a) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(p));
		exit(1);
	}
	for (size_t i = 0; i < n_fds; i++)
		if (client_bpf_link_perf(a.fd, fds[i]) < 0)
			die("attaching");
	printf("attached\n");
	fflush(stdout);
	pause();
}

static void run_task(const char *socket, const char *name, long n)
{
	add_faults();
	adopt(socket, name);
	for (long i = 0; i < n; i++) {
		if (fork() == 0) {
			char *page = malloc(64 << 12);

			/* Each page is a fault of its own. */
			for (size_t k = 0; page && k < 64; k++)
				((volatile char *)page)[k << 12] = 1;
			_exit(0);
		}
		wait(NULL);
	}
}

/* Records of all rings so far. */
static uint64_t count(struct perfpersist_event *e)
{
	uint64_t n = 0;

	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

		if (perfpersist_ring_stat(e, i, &stat) < 0)
			die("perfpersist_ring_stat");
		n += stat.records;
	}
	return n;
}

static void read_rings(const int *rings, size_t n)
{
	struct perfpersist_event *e;
	uint64_t before;

	if (perfpersist_open_fds(rings, n, &e) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(NULL));
		exit(1);
	}
	before = count(e);
	work(200000000);
	printf("%" PRIu64 " %" PRIu64 " %d\n", before, count(e), perfpersist_event_state(e));
	fflush(stdout);
	perfpersist_event_free(e);
}

static void claim(const char *socket, const char *name, bool waits)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist *p = connect_to(socket);
	size_t n, rings;
	int *claimed, r;

	r = perfpersist_claim(p, namespace(), name, &claimed, &n, &rings, &info);
	if (r >= 0 && waits) {
		printf("parts\n");
		fflush(stdout);
		getchar();
	}
	if (r >= 0)
		r = perfpersist_claim_end(p, &info);
	if (r) {
		fprintf(stderr, "%s\n", perfpersist_error(p));
		if (r < 0)
			exit(1);
	}
	read_rings(claimed, rings);
	printf("%zu %zu\n", n, rings);
	free(claimed);
	perfpersist_free(p);
}

static void read_inherited(void)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int rings[FDS_MAX];
	size_t n = 0;

	for (int fd = 3; names && *names; fd++) {
		if (!strncmp(names, "cpu", 3))
			rings[n++] = fd;
		names += strcspn(names, ":");
		names += *names == ':';
	}
	read_rings(rings, n);
}

static _Noreturn void work_for_ever(void)
{
	for (;;)
		work(10000000);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "open")) {
		open_all(argv + 2);
		for (size_t i = 0; i < n_fds; i++)
			printf("%s%d", i ? "," : "", fds[i]);
		printf("\n");
		fflush(stdout);
		work_for_ever();
	} else if (argc > 4 && !strcmp(argv[1], "adopt")) {
		open_all(argv + 4);
		adopt(argv[2], argv[3]);
	} else if (argc > 4 && !strcmp(argv[1], "leave")) {
		open_all(argv + 4);
		leave(argv[2], argv[3]);
	} else if (argc > 4 && !strcmp(argv[1], "task")) {
		run_task(argv[2], argv[3], atol(argv[4]));
	} else if (argc > 3 && !strcmp(argv[1], "claim")) {
		claim(argv[2], argv[3], false);
	} else if (argc > 3 && !strcmp(argv[1], "last")) {
		claim(argv[2], argv[3], true);
	} else if (argc > 2 && !strcmp(argv[1], "call")) {
		for (long i = atol(argv[2]); i > 0; i--)
			syscall(SYS_sched_getattr, 0, NULL, 0, 0);
	} else if (argc > 2 && !strcmp(argv[1], "cancel")) {
		for (long i = atol(argv[2]); i > 0; i--)
			syscall(SYS_io_cancel, 0, NULL, NULL);
	} else if (argc > 1 && !strcmp(argv[1], "tells")) {
		return !kernel_tells();
	} else if (argc > 1 && !strcmp(argv[1], "read")) {
		read_inherited();
	} else {
		return 2;
	}
	return 0;
}
