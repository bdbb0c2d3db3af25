// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints the frequency in kHz of this machine's time stamp counter, for the guest, which sees the
 * same counter (run.sh). Prints nothing on a machine that has none.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__)

/* A time by both clocks. */
struct moment {
	uint64_t tsc, ns;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Takes the shortest of many attempts: nothing interrupted the two reads. */
static struct moment moment(void)
{
	struct moment best = {};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t before = __builtin_ia32_rdtsc(), ns = now();
		uint64_t after = __builtin_ia32_rdtsc();

		if (after - before < least) {
			least = after - before;
			best = (struct moment){ before + least / 2, ns };
		}
	}
	return best;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct moment from = moment(), to;

	nanosleep(&pause, NULL);
	to = moment();
	printf("%.0f\n", (double)(to.tsc - from.tsc) * 1e6 / (double)(to.ns - from.ns));
	return 0;
}

#else

int main(void)
{
	return 0;
}

#endif
