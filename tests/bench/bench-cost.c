// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures what recording costs: the time per event that raw_syscalls:sys_enter and sys_exit add to
 * close(-1), for our recorders and for others.
 *
 *   bench-cost INSTANCE TRACEFS SCRATCH ROUNDS
 *
 * variants.h explains the method. Our recorders and ftrace must prove that they recorded the calls.
 *
 * Must not know how the daemon makes events: it is a client like any other.
 */
#include "tests/bench/recording.h"
#include "tests/bench/variants.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EVENTS_PER_CALL 2
#define BUFFER_KB 512 /* per CPU, for each recorder that has a buffer */

static const char *const tracepoints[] = { "sys_enter", "sys_exit" };
#define N_TRACEPOINTS ARRAY_SIZE(tracepoints)

static const char *instance, *tracefs, *scratch;
static int cpu;
static struct perfpersist *daemon_connection;

static void path_of(char path[PATH_MAX], const char *fmt, ...) _printf_(2, 3);
static void path_of(char path[PATH_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(path, PATH_MAX, fmt, ap) >= PATH_MAX)
		die("a path is too long");
	va_end(ap);
}

/* ── empty programs: the minimum cost of any BPF recorder ───────────────────────────────── */

static int links[N_TRACEPOINTS] = { -EBADF, -EBADF };

static void detach(void)
{
	for (size_t i = 0; i < N_TRACEPOINTS; i++)
		links[i] = close_fd(links[i]);
}

static int load_empty(enum bpf_prog_type type, int result, const struct bpf_prog_load_opts *opts)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = result },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(type, "bench_empty", "GPL", insns, ARRAY_SIZE(insns), opts);

	if (fd < 0)
		die("the kernel refuses an empty program: %s", strerror(-fd));
	return fd;
}

static void attach_empty_tp_btf(void)
{
	for (size_t i = 0; i < N_TRACEPOINTS; i++) {
		LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP);
		int id = libbpf_find_vmlinux_btf_id(tracepoints[i], BPF_TRACE_RAW_TP);
		_cleanup_close_ int program = -EBADF;

		if (id < 0)
			die("the kernel's BTF has no tracepoint %s", tracepoints[i]);
		opts.attach_btf_id = (uint32_t)id;
		program = load_empty(BPF_PROG_TYPE_TRACING, 0, &opts);
		links[i] = bpf_raw_tracepoint_open(NULL, program);
		if (links[i] < 0)
			die("cannot attach to %s: %s", tracepoints[i], strerror(-links[i]));
	}
}

static uint64_t tracepoint_id(const char *name)
{
	char path[PATH_MAX];
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t id;

	path_of(path, "%s/events/raw_syscalls/%s/id", tracefs, name);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%" SCNu64, &id) != 1)
		die("cannot read %s", path);
	return id;
}

/* Attaches like our generic recorder: to a perf event that is never enabled and hides nothing. */
static void attach_empty_tracepoint(void)
{
	for (size_t i = 0; i < N_TRACEPOINTS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_TRACEPOINT,
			.size = sizeof(attr),
			.config = tracepoint_id(tracepoints[i]),
			.sample_period = 1,
			.disabled = 1,
		};
		LIBBPF_OPTS(bpf_prog_load_opts, opts);
		_cleanup_close_ int program = load_empty(BPF_PROG_TYPE_TRACEPOINT, 1, &opts);
		_cleanup_close_ int carrier =
			(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (carrier < 0)
			die("cannot open the tracepoint %s: %m", tracepoints[i]);
		links[i] = bpf_link_create(program, carrier, BPF_PERF_EVENT, NULL);
		if (links[i] < 0)
			die("cannot attach to %s: %s", tracepoints[i], strerror(-links[i]));
	}
}

/* ── our recorders ──────────────────────────────────────────────────────────────────────── */

static struct recording recordings[N_TRACEPOINTS];

static void create_events(enum perfpersist_recorder recorder, uint32_t flags, uint32_t stack_user)
{
	for (size_t i = 0; i < N_TRACEPOINTS; i++) {
		char text[64];
		struct perfpersist_create_options opts = {
			.sz = sizeof(opts),
			.event = text,
			.buffer = BUFFER_KB << 10,
			.flags = flags,
			.stack_user = stack_user,
		};

		snprintf(text, sizeof(text), "raw_syscalls:%s", tracepoints[i]);
		recording_begin(&recordings[i], daemon_connection, tracepoints[i], cpu, recorder,
				&opts);
	}
}

static void create_tp_btf(void)
{
	create_events(PERFPERSIST_RECORDER_TP_BTF, 0, 0);
}

static void create_generic(void)
{
	create_events(PERFPERSIST_RECORDER_GENERIC, PERFPERSIST_GENERIC, 0);
}

static void create_chains(void)
{
	create_events(PERFPERSIST_RECORDER_GENERIC, PERFPERSIST_CALLCHAIN, 0);
}

static void create_stacks(void)
{
	create_events(PERFPERSIST_RECORDER_GENERIC,
		      PERFPERSIST_CALLCHAIN | PERFPERSIST_NO_USER_CHAIN, 8192);
}

static void check_events(void)
{
	for (size_t i = 0; i < N_TRACEPOINTS; i++)
		recording_check(&recordings[i], CALLS, 0);
}

static void delete_events(void)
{
	recording_end(recordings, N_TRACEPOINTS, daemon_connection);
}

/* ── ftrace, in a tracing instance of its own ───────────────────────────────────────────── */

static char ftrace[PATH_MAX];

static void write_ftrace(const char *leaf, const char *text)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];

	path_of(path, "%s/%s", ftrace, leaf);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("cannot write \"%s\" to %s: %m", text, path);
}

static uint64_t count_ftrace(void)
{
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t sum = 0, n;
	char path[PATH_MAX], line[256];

	path_of(path, "%s/per_cpu/cpu%d/stats", ftrace, cpu);
	f = fopen(path, "re");
	if (!f)
		die("cannot read %s: %m", path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "entries: %" SCNu64, &n) == 1 ||
		    sscanf(line, "overrun: %" SCNu64, &n) == 1)
			sum += n;
	return sum;
}

static uint64_t ftrace_before;

static void remove_ftrace(void)
{
	if (*ftrace)
		rmdir(ftrace);
}

static void make_ftrace(void)
{
	char size[16];

	path_of(ftrace, "%s/instances/perfpersist-%s", tracefs, instance);
	if (mkdir(ftrace, 0700) < 0)
		die("cannot make %s: %m", ftrace);
	atexit(remove_ftrace);
	snprintf(size, sizeof(size), "%d", BUFFER_KB);
	write_ftrace("buffer_size_kb", size);
	write_ftrace("options/overwrite", "1");
	write_ftrace("tracing_on", "1");
}

static void enable_ftrace(const char *clock)
{
	write_ftrace("trace_clock", clock); /* empties the buffer */
	ftrace_before = count_ftrace();
	for (size_t i = 0; i < N_TRACEPOINTS; i++) {
		char leaf[64];

		snprintf(leaf, sizeof(leaf), "events/raw_syscalls/%s/enable", tracepoints[i]);
		write_ftrace(leaf, "1");
	}
}

static void enable_ftrace_as_it_is(void)
{
	enable_ftrace("local");
}

/* Uses the clock that perf and our recorders use. */
static void enable_ftrace_monotonic(void)
{
	enable_ftrace("mono");
}

static void check_ftrace(void)
{
	uint64_t n = count_ftrace() - ftrace_before;

	if (n < (uint64_t)CALLS * EVENTS_PER_CALL)
		die("of %d events, ftrace recorded only %" PRIu64, CALLS * EVENTS_PER_CALL, n);
}

static void disable_ftrace(void)
{
	write_ftrace("events/raw_syscalls/enable", "0");
}

/* ── perf record --overwrite ────────────────────────────────────────────────────────────── */

static char perf_log[PATH_MAX];
static pid_t perf = -1;
static int perf_control = -EBADF, perf_ack = -EBADF; /* perf ends if they are closed */

/* The child is perf. It acknowledges each command from `control` through `ack`. */
__attribute__((noreturn)) static void exec_perf(int control, int ack, const char *chains)
{
	char fds[64], size[16], output[PATH_MAX];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(fds, sizeof(fds), "fd:%d,%d", control, ack);
	snprintf(size, sizeof(size), "%dK", BUFFER_KB);
	path_of(output, "%s/perf.data", scratch);
	fd = open(perf_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(1);
	execlp("perf", "perf", "record", "-e", "raw_syscalls:*", "-a", "--overwrite", "-m", size,
	       "-D", "-1", "--control", fds, "-o", output, chains, NULL);
	dprintf(STDERR_FILENO, "cannot run perf: %m\n");
	_exit(127);
}

__attribute__((noreturn)) static void perf_has_ended(void)
{
	_cleanup_fclose_ FILE *f = fopen(perf_log, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		fputs(line, stderr);
	die("perf record has ended; its last words are above");
}

/* Only perf records in this run, from the return of this function until perf is killed. */
static void start_perf_with(const char *chains)
{
	int control[2], ack[2];
	char answer[16];

	if (pipe(control) < 0 || pipe(ack) < 0)
		die("cannot make a pipe: %m");
	perf = fork();
	if (perf < 0)
		die("cannot start perf: %m");
	if (perf == 0) {
		close(control[1]);
		close(ack[0]);
		exec_perf(control[0], ack[1], chains);
	}
	close(control[0]);
	close(ack[1]);
	perf_control = control[1];
	perf_ack = ack[0];
	if (write(perf_control, "enable\n", 7) != 7 || read(perf_ack, answer, sizeof(answer)) <= 0)
		perf_has_ended();
}

static void start_perf(void)
{
	start_perf_with(NULL);
}

static void start_perf_chains(void)
{
	start_perf_with("-g");
}

static void start_perf_stacks(void)
{
	start_perf_with("--call-graph=dwarf");
}

static void check_perf(void)
{
	int status;

	if (waitpid(perf, &status, WNOHANG) != 0)
		perf_has_ended();
}

/* The benchmark measures perf's buffer, not the speed of its output file. */
static void kill_perf(void)
{
	kill(perf, SIGKILL);
	waitpid(perf, NULL, 0);
	perf_control = close_fd(perf_control);
	perf_ack = close_fd(perf_ack);
}

/* ── bpftrace, which counts by call chain ───────────────────────────────────────────────── */

/* No call has this number. Each program says when it has seen one, since bpftrace attaches one after the
 * other and tells nobody. */
#define NO_CALL "98765"
#define COUNT_CHAINS(tracepoint)                                           \
	"tracepoint:raw_syscalls:" tracepoint " { if (args->id == 98765) " \
	"{ printf(\"" tracepoint "\\n\"); } @" tracepoint "[kstack, ustack] = count(); } "

static pid_t bpftrace = -1;
static int bpftrace_says = -EBADF;

__attribute__((noreturn)) static void exec_bpftrace(int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(out, STDOUT_FILENO) < 0)
		_exit(1);
	execlp("bpftrace", "bpftrace", "-B", "none", "-e",
	       COUNT_CHAINS("sys_enter") COUNT_CHAINS("sys_exit"), NULL);
	_exit(127);
}

/* Until both have said something. */
static void wait_for_bpftrace(void)
{
	char text[4096];
	size_t n = 0;

	while (n + 1 < sizeof(text)) {
		struct pollfd p = { .fd = bpftrace_says, .events = POLLIN };
		ssize_t more;

		syscall(atol(NO_CALL));
		if (poll(&p, 1, 100) <= 0)
			continue;
		more = read(bpftrace_says, text + n, sizeof(text) - 1 - n);
		if (more <= 0)
			die("bpftrace has ended");
		n += (size_t)more;
		text[n] = 0;
		if (strstr(text, "sys_enter\n") && strstr(text, "sys_exit\n"))
			return;
	}
	die("bpftrace says too much: %s", text);
}

static void start_bpftrace(void)
{
	int out[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		die("cannot make a pipe: %m");
	bpftrace = fork();
	if (bpftrace < 0)
		die("cannot start bpftrace: %m");
	if (bpftrace == 0)
		exec_bpftrace(out[1]);
	close(out[1]);
	bpftrace_says = out[0];
	wait_for_bpftrace();
}

static void check_bpftrace(void)
{
	if (waitpid(bpftrace, NULL, WNOHANG) != 0)
		die("bpftrace has ended");
}

static void kill_bpftrace(void)
{
	kill(bpftrace, SIGKILL);
	waitpid(bpftrace, NULL, 0);
	bpftrace_says = close_fd(bpftrace_says);
}

/* ── measuring ──────────────────────────────────────────────────────────────────────────── */

#define BOTH .events = EVENTS_PER_CALL
static struct variant variants[] = {
	{ .key = "bare_ns" },
	{ .key = "empty_ns", BOTH, .begin = attach_empty_tp_btf, .end = detach },
	{ .key = "empty_tracepoint_ns", BOTH, .begin = attach_empty_tracepoint, .end = detach },
	{ .key = "recorder_ns",
	  BOTH,
	  .begin = create_tp_btf,
	  .check = check_events,
	  .end = delete_events },
	{ .key = "generic_ns",
	  BOTH,
	  .begin = create_generic,
	  .check = check_events,
	  .end = delete_events },
	{ .key = "ftrace_ns",
	  BOTH,
	  .begin = enable_ftrace_as_it_is,
	  .check = check_ftrace,
	  .end = disable_ftrace },
	{ .key = "ftrace_mono_ns",
	  BOTH,
	  .begin = enable_ftrace_monotonic,
	  .check = check_ftrace,
	  .end = disable_ftrace },
	{ .key = "perf_overwrite_ns",
	  BOTH,
	  .begin = start_perf,
	  .check = check_perf,
	  .end = kill_perf },
	{ .key = "chains_ns",
	  BOTH,
	  .begin = create_chains,
	  .check = check_events,
	  .end = delete_events },
	{ .key = "perf_chains_ns",
	  BOTH,
	  .begin = start_perf_chains,
	  .check = check_perf,
	  .end = kill_perf },
	{ .key = "stacks_ns",
	  BOTH,
	  .begin = create_stacks,
	  .check = check_events,
	  .end = delete_events },
	{ .key = "perf_stacks_ns",
	  BOTH,
	  .begin = start_perf_stacks,
	  .check = check_perf,
	  .end = kill_perf },
	/* The last: not every machine has it. */
	{ .key = "bpftrace_chains_ns",
	  BOTH,
	  .begin = start_bpftrace,
	  .check = check_bpftrace,
	  .end = kill_bpftrace },
};
#define N_VARIANTS ARRAY_SIZE(variants)

static void on_signal(int signal)
{
	exit(128 + signal); /* for the sake of atexit: nothing else runs here */
}

int main(int argc, char **argv)
{
	size_t rounds, n = N_VARIANTS;
	int cpus[CPUS_MAX];

	if (argc != 5)
		die("usage: bench-cost INSTANCE TRACEFS SCRATCH ROUNDS");
	instance = argv[1];
	tracefs = argv[2];
	scratch = argv[3];
	rounds = strtoul(argv[4], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		die("rounds: from 1 to %d", ROUNDS_MAX);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	path_of(perf_log, "%s/perf.log", scratch);

	cpu = cpus[usable_cpus(cpus, CPUS_MAX) - 1];
	stay_on(cpu);
	daemon_connection = connect_to(instance);
	make_ftrace();
	if (system("command -v bpftrace >/dev/null") != 0)
		n--;
	measure(variants, n, rounds);
	rounds = drop_disturbed(variants, n, rounds);
	print_added(variants, n, rounds);
	print_result(variants[0].key, variants[0].ns, rounds);
	printf("rounds %zu %zu %zu\n", rounds, rounds, rounds);
	perfpersist_free(daemon_connection);
	return 0;
}
