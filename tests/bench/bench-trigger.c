// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures how long another CPU goes on writing to what a trigger freezes, beside ftrace's traceoff
 * trigger and perf record --switch-output-event.
 *
 *   bench-trigger INSTANCE TRACEFS SCRATCH ROUNDS
 *
 * A child makes calls on one CPU as fast as it can, and so does this process on another; all are
 * recorded. Then it makes one call of another kind, which fires. A result is the time of the newest record of
 * the child's CPU in what was frozen minus the time just before that call, for all three alike; and minus the
 * time of the call's own record, which perfpersist writes after it has frozen. Rounds in which the child did not
 * run just then are left out. The rounds of the first two alternate; perf takes ten rounds of its own, because
 * it writes a file each time.
 */
#include "tests/bench/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ROUNDS_MAX 10000
#define PERF_ROUNDS 10
#define FIRES SYS_getpgid
#define FIRES_FTRACE SYS_getsid /* another one: our trigger is there all the time */
#define RECORDED SYS_close
#define MS 1000000

static int cpus[CPUS_MAX], own, other;
static double late[ROUNDS_MAX], late_of_record[ROUNDS_MAX];

/* One way for both kinds of call: what fires does not wait for this program's own code. */
static void call_number(long number)
{
	syscall(number, -1);
}

static void rest(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* At full speed, as the other CPU. */
static void record_for(uint64_t ns)
{
	uint64_t until = now(CLOCK_MONOTONIC) + ns;

	while (now(CLOCK_MONOTONIC) < until)
		call_number(RECORDED);
}

static pid_t start_caller(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot start a process: %m");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(other);
	for (;;)
		call_number(RECORDED);
}

static void print_all(const char *key, const char *p99, double *values, size_t n)
{
	print_result(key, values, n);
	printf("%s %.2f %.2f %.2f\n", p99, quantile(values, n, 0.99), values[0], values[n - 1]);
}

/* ── perfpersist ────────────────────────────────────────────────────────────────────────── */

static struct perfpersist *p;

static void make_events(void)
{
	char mine[64], fires[64];
	const struct perfpersist_create_options target = {
		.sz = sizeof(target),
		.event = "raw_syscalls:sys_enter",
		.filter = mine,
		.buffer = 256 << 10,
	};
	const struct perfpersist_create_options event = {
		.sz = sizeof(event),
		.event = "raw_syscalls:sys_enter",
		.filter = fires,
		.buffer = 64 << 10,
	};
	const struct perfpersist_trigger_options trigger = {
		.sz = sizeof(trigger),
		.targets = "frozen",
		.hold_off = 10 * MS,
		.event = &event,
	};

	snprintf(mine, sizeof(mine), "id == %d", RECORDED);
	snprintf(fires, sizeof(fires), "id == %d && common_pid == %d", FIRES, getpid());
	if (perfpersist_create(p, NAMESPACE, "frozen", &target, NULL) < 0 ||
	    perfpersist_trigger_add(p, NAMESPACE, "fires", &trigger, NULL) < 0)
		die("%s", perfpersist_error(p));
}

static void delete_events(void)
{
	if (perfpersist_delete(p, NAMESPACE, "fires", NULL) < 0 ||
	    perfpersist_delete(p, NAMESPACE, "frozen", NULL) < 0)
		die("%s", perfpersist_error(p));
}

static void wait_until_armed(void)
{
	struct perfpersist_trigger *triggers;
	unsigned armed = 0;
	size_t n;

	while (!armed) {
		if (perfpersist_triggers(p, NAMESPACE, &triggers, &n) < 0)
			die("%s", perfpersist_error(p));
		armed = n ? triggers[0].n_armed : 0;
		free(triggers);
	}
}

static uint64_t newest_of(struct perfpersist_event *e, int cpu)
{
	struct perfpersist_snapshot *s;
	struct perfpersist_sample sample;
	struct perfpersist_cursor *c;
	uint64_t time = 0;

	if (perfpersist_snapshot_new(e, &s) < 0 || perfpersist_snapshot_take(s) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t ring = 0; ring < perfpersist_event_rings(e); ring++) {
		if (perfpersist_ring_cpu(e, ring) != cpu)
			continue;
		if (perfpersist_cursor_new(s, ring, &c) < 0)
			die("%s", perfpersist_error(NULL));
		if (perfpersist_cursor_next(c, &sample) == 1)
			time = sample.time;
		perfpersist_cursor_free(c);
	}
	perfpersist_snapshot_free(s);
	return time;
}

static double freeze_once(double *ret_of_record)
{
	struct perfpersist_event *e;
	struct perfpersist_tape *tapes;
	uint64_t id = 0, trigger = 0, called, newest;
	size_t n = 0;

	wait_until_armed();
	record_for(11 * MS);
	called = now(CLOCK_MONOTONIC);
	call_number(FIRES);
	while (n == 0) {
		if (perfpersist_tapes(p, NAMESPACE, &tapes, &n) < 0)
			die("%s", perfpersist_error(p));
		id = n ? tapes[0].id : 0;
		trigger = n ? tapes[0].trigger : 0;
		free(tapes);
	}
	if (perfpersist_open_by_id(p, id, &e) < 0)
		die("%s", perfpersist_error(p));
	newest = newest_of(e, other);
	perfpersist_event_free(e);
	if (perfpersist_open_by_id(p, trigger, &e) < 0)
		die("%s", perfpersist_error(p));
	*ret_of_record = (double)(int64_t)(newest - newest_of(e, own));
	perfpersist_event_free(e);
	if (perfpersist_tape_release(p, id) < 0)
		die("%s", perfpersist_error(p));
	return (double)(int64_t)(newest - called);
}

/* ── ftrace ─────────────────────────────────────────────────────────────────────────────── */

static char instance[512];

static _printf_(2, 3) void put(const char *file, const char *fmt, ...)
{
	char path[1024], text[256];
	va_list ap;
	int fd, n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		die("cannot write '%s' to %s: %m", text, path);
	close(fd);
}

/* Takes its trigger along. */
static void end_ftrace(void)
{
	rmdir(instance);
}

static void begin_ftrace(const char *tracefs)
{
	snprintf(instance, sizeof(instance), "%s/instances/pp-bench-trigger", tracefs);
	end_ftrace(); /* of a run that was killed */
	if (mkdir(instance, 0700) < 0)
		die("cannot make %s: %m", instance);
	atexit(end_ftrace);
	put("tracing_on", "0");
	put("trace_clock", "mono");
	put("buffer_size_kb", "256");
	put("events/raw_syscalls/sys_enter/filter", "id == %d", RECORDED);
	put("events/raw_syscalls/sys_enter/trigger", "traceoff if id == %d && common_pid == %d",
	    FIRES_FTRACE, getpid());
}

/* The time of the last record of a CPU with this call's number, ns; 0: none. ftrace shows whole microseconds:
 * half of one is added, the mean of what it leaves out. */
static uint64_t last_of(int cpu, int number)
{
	char path[1024], line[512], want[32];
	uint64_t s, us, time = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace", instance, cpu);
	snprintf(want, sizeof(want), "NR %d ", number);
	f = fopen(path, "re");
	if (!f)
		die("cannot read %s: %m", path);
	while (fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, ": sys_enter: ");

		if (!at || !strstr(at, want))
			continue;
		while (at > line && at[-1] != ' ')
			at--;
		if (sscanf(at, "%" SCNu64 ".%" SCNu64, &s, &us) == 2)
			time = s * 1000000000 + us * 1000 + 500;
	}
	fclose(f);
	return time;
}

static double traceoff_once(void)
{
	uint64_t fired, newest;

	put("trace", "0");
	put("events/raw_syscalls/sys_enter/enable", "1");
	put("tracing_on", "1");
	record_for(2 * MS);
	fired = now(CLOCK_MONOTONIC); /* what stops ftrace may not be in its buffer any more */
	call_number(FIRES_FTRACE);
	rest(2 * MS);
	put("events/raw_syscalls/sys_enter/enable", "0");
	newest = last_of(other, RECORDED);
	return (double)(int64_t)(newest - fired);
}

/* ── perf ───────────────────────────────────────────────────────────────────────────────── */

static pid_t start_perf(const char *output)
{
	char mine[32], cpu_list[32];
	pid_t pid;

	snprintf(mine, sizeof(mine), "id==%d", RECORDED);
	snprintf(cpu_list, sizeof(cpu_list), "%d,%d", MIN(own, other), MAX(own, other));
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("cannot start perf: %m");
	if (pid > 0)
		return pid;
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(127);
	execlp("perf", "perf", "record", "-C", cpu_list, "-k", "mono", "-m", "256K", "--overwrite",
	       "-e", "raw_syscalls:sys_enter", "--filter", mine, "--switch-output-event",
	       "syscalls:sys_enter_getpgid", "-o", output, NULL);
	_exit(127);
}

/* The newest record of the other CPU in a file, ns; 0: none. */
static uint64_t newest_in(const char *path)
{
	char command[1024], line[128];
	uint64_t s, ns, time = 0;
	FILE *f;

	snprintf(command, sizeof(command), "perf script --ns -i '%s' -C %d -F time 2>/dev/null",
		 path, other);
	f = popen(command, "re");
	if (!f)
		die("cannot run perf script: %m");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNu64 ".%" SCNu64, &s, &ns) == 2)
			time = s * 1000000000 + ns;
	pclose(f);
	return time;
}

/* perf writes a file soon after each firing, in which the newest record is later than that. */
static void measure_perf(const char *scratch)
{
	char output[512], pattern[600];
	uint64_t fired[PERF_ROUNDS];
	size_t n = 0, at = 0;
	glob_t files = {};
	pid_t perf;

	snprintf(output, sizeof(output), "%s/switch.data", scratch);
	perf = start_perf(output);
	sleep(2);
	for (size_t i = 0; i < PERF_ROUNDS; i++) {
		fired[i] = now(CLOCK_MONOTONIC);
		call_number(FIRES);
		rest(500 * MS);
	}
	kill(perf, SIGINT);
	waitpid(perf, NULL, 0);
	snprintf(pattern, sizeof(pattern), "%s.*", output);
	if (glob(pattern, 0, NULL, &files) != 0)
		die("perf record --switch-output-event wrote no file");
	for (size_t i = 0; i < files.gl_pathc && at < PERF_ROUNDS; i++) {
		uint64_t newest = newest_in(files.gl_pathv[i]);

		if (newest > fired[at])
			late[n++] = (double)(newest - fired[at++]);
	}
	globfree(&files);
	if (n == 0)
		die("no file of perf record goes as far as what fired");
	print_result("switch_output_late_ns", late, n);
}

/* ── main ───────────────────────────────────────────────────────────────────────────────── */

/* A call takes less than a microsecond; ftrace's times are whole ones. */
static bool it_ran(double value)
{
	return value > -5000;
}

static void measure(size_t rounds)
{
	static double traceoff[ROUNDS_MAX];
	size_t n = 0, n_traceoff = 0;

	for (size_t i = 0; i < rounds; i++) {
		late[n] = freeze_once(&late_of_record[n]);
		n += it_ran(late[n]);
		traceoff[n_traceoff] = traceoff_once();
		n_traceoff += it_ran(traceoff[n_traceoff]);
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\r  round %zu of %zu%s", i + 1, rounds,
				i + 1 < rounds ? "" : "\n");
	}
	if (n < rounds / 2 || n_traceoff < rounds / 2)
		die("the machine is too busy: nothing was recorded when triggers fired");
	print_all("frozen_late_ns", "frozen_late_p99_ns", late, n);
	print_all("frozen_after_record_ns", "frozen_after_record_p99_ns", late_of_record, n);
	print_all("traceoff_late_ns", "traceoff_late_p99_ns", traceoff, n_traceoff);
}

int main(int argc, char **argv)
{
	pid_t caller;
	size_t n, rounds;

	if (argc != 5)
		die("usage: bench-trigger INSTANCE TRACEFS SCRATCH ROUNDS");
	rounds = strtoul(argv[4], NULL, 10);
	n = usable_cpus(cpus, CPUS_MAX);
	if (rounds < 1 || rounds > ROUNDS_MAX || n < 2)
		die("needs 1 to %d rounds, and two CPUs", ROUNDS_MAX);
	own = cpus[n - 1];
	other = cpus[0];
	stay_on(own);
	p = connect_to(argv[1]);
	make_events();
	begin_ftrace(argv[2]);
	caller = start_caller();
	measure(rounds);
	delete_events();
	measure_perf(argv[3]);
	kill(caller, SIGKILL);
	waitpid(caller, NULL, 0);
	perfpersist_free(p);
	return 0;
}
