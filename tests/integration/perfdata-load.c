// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A workload whose records are known in advance:
 *
 *   perfdata-load CPU CALLS SWITCHES PROGRAMS PROGRAM
 *   perfdata-load burn
 *
 * On one CPU, between two marks (close(2) of MARK_BEGIN and MARK_END), it calls close(2) CALLS
 * times, each time with another number that is no descriptor; passes a byte to a child and waits
 * for one back SWITCHES times, so that the CPU switches between the two each time; and forks,
 * executes and waits for PROGRAM, PROGRAMS times. Prints one line each:
 *
 *   pid PID              of the process that does all this
 *   partner PID          of the child it plays ping-pong with
 *   switches N           away from PID, between the marks, as the kernel counts them
 *   child PID            of a PROGRAM, in their order
 *
 * `burn` loops in a function of that name until it is killed.
 */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "proto/macro.h"

#define MARK_BEGIN (-7000001)
#define MARK_END (-7000002)
#define FIRST_CALL (-8000000)

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "perfdata-load: %s: %m\n", what);
	exit(1);
}

static long switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		die("getrusage");
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Returns each byte until its input ends. */
static pid_t start_partner(int *ret_to, int *ret_from)
{
	int to[2], from[2];
	pid_t pid;
	char c;

	if (pipe(to) < 0 || pipe(from) < 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			if (write(from[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	*ret_to = to[1];
	*ret_from = from[0];
	return pid;
}

static void play(int to, int from, long times)
{
	char c = 'x';

	for (long i = 0; i < times; i++)
		if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
			die("ping-pong");
}

static pid_t run(char *program)
{
	char *argv[] = { program, NULL };
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		execv(program, argv);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die(program);
	return pid;
}

__attribute__((noinline)) static void burn(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 10 };
	long calls, times, programs, before;
	pid_t partner, *children;
	cpu_set_t set;
	int to, from;

	if (argc == 2 && !strcmp(argv[1], "burn"))
		burn();
	if (argc != 6)
		die("CPU CALLS SWITCHES PROGRAMS PROGRAM");
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	calls = atol(argv[2]);
	times = atol(argv[3]);
	programs = atol(argv[4]);
	children = calloc((size_t)programs + 1, sizeof(*children));
	/* Real-time priority gives the two the CPU; where that is not allowed they share it, and no
	 * number changes. */
	sched_setscheduler(0, SCHED_FIFO, &param);
	if (!children || sched_setaffinity(0, sizeof(set), &set) < 0)
		die("starting");
	partner = start_partner(&to, &from);

	before = switches();
	close(MARK_BEGIN);
	for (long i = 0; i < calls; i++)
		close(FIRST_CALL + (int)i);
	play(to, from, times);
	for (long i = 0; i < programs; i++)
		children[i] = run(argv[5]);
	close(MARK_END);
	printf("switches %ld\n", switches() - before);

	close(to);
	waitpid(partner, NULL, 0);
	printf("pid %d\npartner %d\n", getpid(), partner);
	for (long i = 0; i < programs; i++)
		printf("child %d\n", children[i]);
	free(children);
	return 0;
}
