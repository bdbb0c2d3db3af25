// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures how long it takes to write the past to a file: perfctl snapshot from its start to its
 * exit, and perf record --overwrite --switch-output from SIGUSR2 until the file has its name. Also
 * measures the cost of a record while another CPU takes snapshots.
 *
 *   bench-file INSTANCE PERFCTL SCRATCH ROUNDS
 *
 * Both record raw_syscalls:sys_enter and sys_exit into full rings of 512 KiB on two CPUs, and take
 * turns. The benchmark deletes the files that they write to SCRATCH.
 *
 * Knows nothing of how either works.
 */
#include "tests/bench/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define N_CPUS 2
#define RING "512K"
#define FILL 40000 /* calls of each CPU: more than both rings hold */
#define COST_NSEC 20000000ULL
#define PERF_WAIT 20000 /* ms */

static const char *instance, *perfctl, *scratch;
static int cpus[N_CPUS];
static int watch;

static void fill(void)
{
	cpu_set_t before;

	sched_getaffinity(0, sizeof(before), &before);
	for (size_t i = 0; i < N_CPUS; i++) {
		stay_on(cpus[i]);
		for (int n = 0; n < FILL; n++)
			call();
	}
	sched_setaffinity(0, sizeof(before), &before);
}

/* ── perf ───────────────────────────────────────────────────────────────────────────────── */

/* The child dies when this process exits. */
static pid_t spawn(char *const argv[])
{
	pid_t pid = fork();
	int null;

	if (pid < 0)
		die("cannot fork: %m");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

/* Waits until a file whose name begins so appears in SCRATCH, and returns its name. */
static void wait_for_name(const char *begin, char ret[static NAME_MAX + 1])
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd p = { .fd = watch, .events = POLLIN };

	while (poll(&p, 1, PERF_WAIT) == 1) {
		ssize_t n = read(watch, buffer, sizeof(buffer));

		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(buffer + at);

			at += (ssize_t)(sizeof(*e) + e->len);
			if (!e->len || strncmp(e->name, begin, strlen(begin)))
				continue;
			snprintf(ret, NAME_MAX + 1, "%s", e->name);
			return;
		}
	}
	die("perf record has written no file in %d s", PERF_WAIT / 1000);
}

static void remove_file(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	if (unlink(path) < 0)
		die("cannot remove %s: %m", path);
}

static double time_perf(pid_t perf)
{
	char name[NAME_MAX + 1];
	uint64_t begin;

	fill();
	begin = now(CLOCK_MONOTONIC);
	kill(perf, SIGUSR2);
	wait_for_name("perf.data.", name);
	begin = now(CLOCK_MONOTONIC) - begin;
	remove_file(name);
	return (double)begin / 1e6;
}

/* perf is recording when its first requested file appears. */
static pid_t start_perf(void)
{
	char path[PATH_MAX], list[32], name[NAME_MAX + 1];
	char *argv[] = { (char *)"perf",
			 (char *)"record",
			 (char *)"-e",
			 (char *)"raw_syscalls:*",
			 (char *)"-a",
			 (char *)"-C",
			 list,
			 (char *)"--overwrite",
			 (char *)"-m",
			 (char *)RING,
			 (char *)"--switch-output=signal",
			 (char *)"-o",
			 path,
			 NULL };
	struct pollfd p = { .fd = watch, .events = POLLIN };
	pid_t pid;

	snprintf(path, sizeof(path), "%s/perf.data", scratch);
	snprintf(list, sizeof(list), "%d,%d", cpus[0], cpus[1]);
	signal(SIGUSR2, SIG_IGN); /* the signal may arrive before perf handles it */
	pid = spawn(argv);
	for (;;) {
		if (kill(pid, SIGUSR2) < 0 || waitpid(pid, NULL, WNOHANG) == pid)
			die("perf record has ended");
		if (poll(&p, 1, 200) == 1)
			break;
	}
	/* perf writes one file per signal, or fewer. */
	do {
		wait_for_name("perf.data.", name);
		remove_file(name);
	} while (poll(&p, 1, 1000) == 1);
	return pid;
}

static void end_perf(pid_t pid)
{
	kill(pid, SIGINT);
	waitpid(pid, NULL, 0);
}

/* ── perfctl ────────────────────────────────────────────────────────────────────────────── */

static pid_t start_snapshot(void)
{
	char path[PATH_MAX];
	char *argv[] = { (char *)perfctl,
			 (char *)"--instance",
			 (char *)instance,
			 (char *)"snapshot",
			 (char *)NAMESPACE "/file",
			 (char *)"-o",
			 path,
			 NULL };

	snprintf(path, sizeof(path), "%s/ours.data", scratch);
	return spawn(argv);
}

static void end_snapshot(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("perfctl snapshot has failed");
}

static double time_snapshot(void)
{
	uint64_t begin;

	fill();
	begin = now(CLOCK_MONOTONIC);
	end_snapshot(start_snapshot());
	begin = now(CLOCK_MONOTONIC) - begin;
	remove_file("ours.data");
	return (double)begin / 1e6;
}

/* ── the cost of a record meanwhile ─────────────────────────────────────────────────────── */

static double time_calls(void)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID), end, n = 0;

	do {
		for (int i = 0; i < 1000; i++)
			call();
		n += 1000;
		end = now(CLOCK_THREAD_CPUTIME_ID);
	} while (end - begin < COST_NSEC);
	return (double)(end - begin) / (double)n;
}

/* The child takes snapshots without a pause, on the other CPU, until it is killed. */
static pid_t start_snapshots(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork: %m");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(cpus[1]);
	for (;;)
		end_snapshot(start_snapshot());
}

static void measure_costs(size_t rounds, double *alone, double *during)
{
	stay_on(cpus[0]);
	for (size_t i = 0; i < rounds; i++) {
		pid_t pid;

		alone[i] = time_calls();
		pid = start_snapshots();
		time_calls(); /* snapshots are being taken */
		during[i] = time_calls();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = "raw_syscalls:sys_enter,raw_syscalls:sys_exit",
		.buffer = 512 << 10,
	};
	char list[32];
	struct perfpersist *p;
	size_t rounds;
	double *values;
	pid_t perf;

	if (argc != 5)
		die("usage: bench-file INSTANCE PERFCTL SCRATCH ROUNDS");
	instance = argv[1];
	perfctl = argv[2];
	scratch = argv[3];
	rounds = (size_t)atol(argv[4]);
	values = calloc(2 * rounds, sizeof(*values));
	watch = inotify_init1(IN_CLOEXEC);
	if (!values || !rounds || inotify_add_watch(watch, scratch, IN_MOVED_TO) < 0)
		die("cannot begin: %m");
	if (usable_cpus(cpus, N_CPUS) < N_CPUS)
		die("needs two CPUs");
	p = connect_to(instance);
	snprintf(list, sizeof(list), "%d,%d", cpus[0], cpus[1]);
	opts.cpus = list;
	if (perfpersist_create(p, NAMESPACE, "file", &opts, NULL) < 0)
		die("%s", perfpersist_error(p));

	perf = start_perf();
	for (size_t i = 0; i < rounds; i++) {
		values[i] = time_snapshot();
		values[rounds + i] = time_perf(perf);
	}
	end_perf(perf);
	print_result("file_ms", values, rounds);
	print_result("perf_file_ms", values + rounds, rounds);

	measure_costs(rounds, values, values + rounds);
	print_result("call_ns", values, rounds);
	print_result("call_during_file_ns", values + rounds, rounds);
	if (perfpersist_delete(p, NAMESPACE, "file", NULL) < 0)
		die("%s", perfpersist_error(p));
	perfpersist_free(p);
	free(values);
	return 0;
}
