// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task that polls a perf event, as `perf record` does, and that the event wakes:
 *
 *   polled-wakeups N
 *
 * It prints its thread's number, waits for a line, and ends after the context switches of a child
 * have woken it about N times. perf wakes it from perf_pending_irq(), which holds the recursion
 * context of hardirqs, so that handlers of perf on sched_waking do not run.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct perf_event_mmap_page *open_event(pid_t pid, int *ret_fd)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID,
		.wakeup_events = 1,
	};
	void *ring;

	*ret_fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (*ret_fd < 0)
		die("perf_event_open");
	ring = mmap(NULL, 2 * (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd,
		    0);
	if (ring == MAP_FAILED)
		die("mmap");
	return ring;
}

int main(int argc, char **argv)
{
	struct perf_event_mmap_page *ring;
	long n = argc == 2 ? atol(argv[1]) : 0;
	char line[16];
	pid_t child;
	int fd;

	printf("%d\n", (int)gettid());
	fflush(stdout);
	if (n <= 0 || !fgets(line, sizeof(line), stdin))
		return 2;
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0)
		for (;;)
			usleep(500);
	ring = open_event(child, &fd);
	for (long i = 0; i < n; i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, 10000) != 1)
			die("poll");
		atomic_store((_Atomic __u64 *)&ring->data_tail,
			     atomic_load((_Atomic __u64 *)&ring->data_head));
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
