// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A target for sampling, with known functions:
 *
 *   report-target CALLS ROUNDS
 *
 * A child, whose name contains terminal control characters, calls getppid(2) CALLS times. Then the
 * program computes in two leaves of the same callers, one of which takes about twice as long, and
 * makes the kernel work.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Call chains follow frame pointers, which a leaf has only on request. */
#ifdef __clang__
#define OWN_FRAME __attribute__((noinline))
#else
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")
#define OWN_FRAME __attribute__((noinline, noipa))
#endif

static volatile uint64_t sink;
static void *volatile frame;

static OWN_FRAME void pp_leaf_long(uint64_t n)
{
	frame = __builtin_frame_address(0);
	for (uint64_t i = 0; i < 2 * n; i++)
		sink += i;
}

static OWN_FRAME void pp_leaf_short(uint64_t n)
{
	frame = __builtin_frame_address(0);
	for (uint64_t i = 0; i < n; i++)
		sink += i;
}

static OWN_FRAME void pp_middle(uint64_t n)
{
	pp_leaf_long(n);
	pp_leaf_short(n);
	sink++;
}

static OWN_FRAME void pp_outer(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		pp_middle(100000);
	sink++;
}

/* Each round spends about 10 us in the kernel. */
static OWN_FRAME int pp_kernel(uint64_t rounds)
{
	static char buf[1 << 19];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	for (uint64_t i = 0; i < rounds; i++)
		if (read(fd, buf, sizeof(buf)) != sizeof(buf))
			return -1;
	return close(fd);
}

static void call(uint64_t calls)
{
	prctl(PR_SET_NAME, "\033[31m;evil");
	for (uint64_t i = 0; i < calls; i++)
		syscall(SYS_getppid);
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t child;
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: report-target CALLS ROUNDS\n");
		return 2;
	}
	child = fork();
	if (child < 0)
		return 1;
	if (!child)
		call(strtoull(argv[1], NULL, 10));
	if (waitpid(child, &status, 0) != child || status)
		return 1;
	pp_outer(strtoull(argv[2], NULL, 10));
	return pp_kernel(10 * strtoull(argv[2], NULL, 10)) < 0;
}
