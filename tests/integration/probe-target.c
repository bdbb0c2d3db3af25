// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A target for breakpoints and probes:
 *
 *   probe-target N
 *
 * Prints the addresses of a variable and a function, waits for a line on its input, and then, N
 * times, calls the function and writes the variable. For each call it prints the arguments and the
 * result, as: NUMBER TEXT LARGE RESULT. The static probe has a semaphore, as in a program that
 * computes the arguments only for the probe.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#define HAS_USDT 1
__extension__ unsigned short pp_step_semaphore __attribute__((section(".probes"), used));
#else
#define HAS_USDT 0
#endif

#define MIX 0x9e3779b97f4a7c15ULL

uint64_t pp_watched __attribute__((aligned(8)));

uint64_t pp_work(int number, const char *text, uint64_t large);

__attribute__((noinline)) uint64_t pp_work(int number, const char *text, uint64_t large)
{
	uint64_t result = large;

	for (; *text; text++)
		result = result * 31 + (unsigned char)*text;
	result -= number;
#if HAS_USDT
	if (__atomic_load_n(&pp_step_semaphore, __ATOMIC_RELAXED))
		STAP_PROBE3(pp, step, number, large, (unsigned char)number);
#endif
	__atomic_store_n(&pp_watched, result, __ATOMIC_RELAXED);
	return result;
}

int main(int argc, char **argv)
{
	char text[32];
	int n = argc == 2 ? atoi(argv[1]) : 0;

	if (n <= 0) {
		fprintf(stderr, "usage: probe-target N\n");
		return 2;
	}
	printf("%p %p %s\n", (void *)&pp_watched, (void *)(uintptr_t)pp_work,
	       HAS_USDT ? "usdt" : "none");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < n; i++) {
		int number = i % 2 ? -i : i * 1000003;
		uint64_t large = (i + 1) * MIX;

		snprintf(text, sizeof(text), "call-%d", i);
		printf("%d %s %" PRIu64, number, text, large);
		printf(" %" PRIu64 "\n", pp_work(number, text, large));
	}
	return 0;
}
