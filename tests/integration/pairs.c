// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes pairs of system calls with a key, which are ftruncate(key, number) and lseek(key, number): both
 * fail, and the kernel records their arguments. Each pair has a number of its own.
 *
 *   pairs FROM KEYS ROUNDS MS     in each round begins a pair for each key, in another order; ends 9 of 10
 *                                 at once, begins some of these twice, and leaves every 50th without an
 *                                 end, if it has no end in this round; sleeps, and ends the others
 *   pairs begin FROM KEYS         begins a pair for each key, and ends none
 *   pairs end FROM KEYS           ends them
 *   pairs rate FD PER_SECOND MS   begins so many, evenly
 */
#include <string.h>
#include <time.h>

#include "tests/integration/observe.h"

static uint64_t number;

static void begin(uint64_t key)
{
	syscall(SYS_ftruncate, key, ++number);
}

static void end(uint64_t key)
{
	syscall(SYS_lseek, key, ++number, 0);
}

static void pause_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (nanosleep(&t, &t) < 0)
		;
}

static uint32_t next_random(void)
{
	static uint32_t state = 12345;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

static void shuffle(uint64_t *keys, uint64_t n)
{
	for (uint64_t i = n; i > 1; i--) {
		uint64_t k = next_random() % i, key = keys[k];

		keys[k] = keys[i - 1];
		keys[i - 1] = key;
	}
}

/* A key's begin is followed by 20 others' before its end: many are under way. */
#define UNDER_WAY 20

static void do_round(uint64_t *keys, uint64_t n, uint64_t ms)
{
	shuffle(keys, n);
	for (uint64_t i = 0; i < n + UNDER_WAY; i++) {
		if (i < n)
			begin(keys[i]);
		if (i >= UNDER_WAY && (i - UNDER_WAY) % 10 != 0)
			end(keys[i - UNDER_WAY]);
	}
	pause_ns(ms * 1000000);
	for (uint64_t i = 0; i < n; i += 10) {
		if (i % 70 == 0)
			begin(keys[i]); /* it began anew: not late */
		if (i % 50 != 10)
			end(keys[i]);
	}
}

static void do_rounds(uint64_t from, uint64_t n, uint64_t rounds, uint64_t ms)
{
	uint64_t *keys = calloc(n, sizeof(*keys));

	if (!keys)
		die("no memory");
	for (uint64_t i = 0; i < n; i++)
		keys[i] = from + i;
	while (rounds-- > 0)
		do_round(keys, n, ms);
	free(keys);
}

static void do_rate(uint64_t fd, uint64_t per_second, uint64_t ms)
{
	uint64_t n = per_second * ms / 1000, start = now(), due, t;

	for (uint64_t i = 0; i < n; i++) {
		due = start + i * 1000000000 / per_second;
		t = now();
		if (due > t)
			pause_ns(due - t);
		begin(fd);
	}
}

int main(int argc, char **argv)
{
	uint64_t a, b, c;

	number = now(); /* no other run has these */
	if (argc < 4)
		die("usage: pairs FROM KEYS ROUNDS MS | begin FROM KEYS | end FROM KEYS | rate FD "
		    "PER_SECOND MS");
	a = parse_count(argv[2]);
	b = parse_count(argv[3]);
	c = argc > 4 ? parse_count(argv[4]) : 0;
	if (!strcmp(argv[1], "begin"))
		for (uint64_t i = 0; i < b; i++)
			begin(a + i);
	else if (!strcmp(argv[1], "end"))
		for (uint64_t i = 0; i < b; i++)
			end(a + i);
	else if (!strcmp(argv[1], "rate"))
		do_rate(a, b, c);
	else
		do_rounds(parse_count(argv[1]), a, b, c);
	return 0;
}
