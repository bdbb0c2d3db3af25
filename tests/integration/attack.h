/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For programs that are handed buffers by `perfctl reopen … -- PROGRAM` and try to change them:
 * takes the descriptors as LISTEN_FDS has them, tells what came of each attempt, and counts those
 * that were let through. Must not know what is attacked.
 */
#ifndef PP_TEST_ATTACK_H
#define PP_TEST_ATTACK_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_FD 3

static int let_through;

/* One attempt and what came of it; errno is read behind the call, which an argument is not. */
#define ATTEMPT(what, succeeds)                                       \
	do {                                                          \
		bool _through = (succeeds);                           \
		tell(what, _through ? NULL : strerrorname_np(errno)); \
	} while (0)

/* why: the name of the refusal's errno value; NULL: it was let through. */
static void tell(const char *what, const char *why)
{
	if (!why)
		let_through++;
	printf("  %-52s %s\n", what, why ?: "LET THROUGH");
}

/* What is the same afterwards as it was before. */
static void tell_unchanged(const char *what, bool is)
{
	if (!is)
		let_through++;
	printf("  %-52s %s\n", what, is ? "unchanged" : "CHANGED");
}

/* All descriptors there are; attack: 0, or the exit code. Returns main()'s. */
static int attack_all(const char *usage, int (*attack)(int fd))
{
	const char *text = getenv("LISTEN_FDS");
	char *end;
	long n;
	int r;

	errno = 0;
	n = text ? strtol(text, &end, 10) : 0;
	if (!text || *end || errno || n < 1 || n > INT_MAX - FIRST_FD) {
		fprintf(stderr, "usage: %s\n", usage);
		return 2;
	}
	for (int fd = FIRST_FD; fd < FIRST_FD + n; fd++) {
		r = attack(fd);
		if (r)
			return r;
	}
	if (let_through) {
		printf("%d attempts were let through\n", let_through);
		return 1;
	}
	printf("every attempt was refused\n");
	return 0;
}

#endif
