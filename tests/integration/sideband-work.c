// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Does what the sideband must show later. Prints the ids of the processes.
 *
 *   sideband-work run                 runs for 50 ms, and exits
 *   sideband-work wait                runs until it is killed
 *   sideband-work threads             one thread, which calls itself "its-thread", and runs for 50 ms
 *   sideband-work fork                a child that executes no other program, and outlives its parent
 *   sideband-work exec PROGRAM ARG…   calls itself "before-exec", and becomes that program
 *   sideband-work many N              N short programs, one after the other
 *   sideband-work nothing             the shortest program there is
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/macro.h"

static void last_50_ms(void)
{
	const struct timespec t = { .tv_nsec = 50000000 };

	nanosleep(&t, NULL);
}

static void *name_thread(void *arg _unused_)
{
	prctl(PR_SET_NAME, "its-thread");
	printf("%d %ld\n", getpid(), syscall(SYS_gettid));
	last_50_ms();
	return NULL;
}

static int run_threads(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, name_thread, NULL) != 0)
		return 1;
	return pthread_join(thread, NULL);
}

static int run_fork(void)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		return 1;
	if (child == 0) {
		last_50_ms();
		_exit(0);
	}
	printf("%d %d\n", parent, child);
	return 0;
}

static int run_many(char *self, long n)
{
	char *args[] = { self, (char *)"nothing", NULL }, *none[] = { NULL };

	for (long i = 0; i < n; i++) {
		pid_t pid;

		if (posix_spawn(&pid, self, NULL, NULL, args, none) != 0 ||
		    waitpid(pid, NULL, 0) != pid)
			return 1;
		printf("%d\n", pid);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "nothing") == 0)
		_exit(0);
	if (strcmp(what, "threads") == 0)
		return run_threads();
	if (strcmp(what, "fork") == 0)
		return run_fork();
	if (strcmp(what, "many") == 0 && argc == 3)
		return run_many(argv[0], strtol(argv[2], NULL, 10));
	printf("%d\n", getpid());
	fflush(stdout);
	if (strcmp(what, "wait") == 0)
		pause();
	if (strcmp(what, "exec") == 0 && argc > 2) {
		prctl(PR_SET_NAME, "before-exec");
		execv(argv[2], argv + 2);
		return 1;
	}
	last_50_ms();
	return 0;
}
