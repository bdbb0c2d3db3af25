// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads that wait in known ways:
 *
 *   latency-target ROUNDS
 *
 * lt-sleeper handles a signal, and sleeps 10 ms ROUNDS times, in clock_nanosleep(2); lt-reader reads
 * from a pipe, into which lt-writer writes a byte ROUNDS times, 5 ms apart; two lt-hogs use one CPU
 * for 100 ms each; lt-stuck reads from a pipe into which nobody writes. When all but the last are
 * done, it prints their process ids, and waits to be killed; lt-stuck dies with it.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rounds;

static void be(const char *name)
{
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void nap(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static pid_t start(void (*run)(void), const char *name)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	be(name);
	run();
	_exit(0);
}

static void handle(int signal)
{
	(void)signal;
}

static void sleeper(void)
{
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	for (int i = 0; i < rounds; i++)
		nap(10);
}

static int bytes[2], nothing[2];

static void reader(void)
{
	char c;

	close(bytes[1]);
	for (int i = 0; i < rounds; i++)
		if (read(bytes[0], &c, 1) != 1)
			_exit(1);
}

/* Longer than the reader needs to wait again. */
static void writer(void)
{
	for (int i = 0; i < rounds; i++) {
		nap(5);
		if (write(bytes[1], "", 1) != 1)
			_exit(1);
	}
}

static void stuck(void)
{
	char c;

	_exit(read(nothing[0], &c, 1) == 1);
}

static void hog(void)
{
	struct timespec t;
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus) && found++)
			CPU_CLR(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	do {
		for (volatile int i = 0; i < 1000000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_nsec < 100000000 && !t.tv_sec);
}

int main(int argc, char **argv)
{
	static const struct {
		void (*run)(void);
		const char *name;
	} all[] = { { stuck, "lt-stuck" },   { sleeper, "lt-sleeper" }, { reader, "lt-reader" },
		    { writer, "lt-writer" }, { hog, "lt-hog" },		{ hog, "lt-hog" } };
	enum { N = sizeof(all) / sizeof(all[0]) };
	pid_t pids[N];
	int status, failed = 0;

	rounds = argc > 1 ? atoi(argv[1]) : 10;
	if (pipe2(bytes, O_CLOEXEC) < 0 || pipe2(nothing, O_CLOEXEC) < 0)
		return 1;
	for (int i = 0; i < N; i++)
		pids[i] = start(all[i].run, all[i].name);
	for (int i = 1; i < N; i++) {
		waitpid(pids[i], &status, 0);
		failed |= status;
	}
	for (int i = 0; i < N; i++)
		printf("%s=%d\n", all[i].name, (int)pids[i]);
	puts(failed ? "failed" : "done");
	fflush(stdout);
	pause();
	return !!failed;
}
