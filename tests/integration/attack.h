/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For programs that `perfctl reopen … -- PROGRAM` hands buffers and that try to change them: takes
 * the descriptors from LISTEN_FDS, prints the result of each attempt, and counts the attempts that
 * succeeded. Knows attacks on any mapping, and no more.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/macro.h"

#define FIRST_FD 3
#define FORGED "forged"

static int let_through;

/* One attempt and its result; errno is read after the call, which an argument could not ensure. */
#define ATTEMPT(what, succeeds)                                       \
	do {                                                          \
		bool _through = (succeeds);                           \
		tell(what, _through ? NULL : strerrorname_np(errno)); \
	} while (0)

/* why: the name of the errno value; NULL if the attempt succeeded. */
static void tell(const char *what, const char *why)
{
	if (!why)
		let_through++;
	printf("  %-52s %s\n", what, why ?: "LET THROUGH");
}

/* Reports whether something is unchanged. */
static void tell_unchanged(const char *what, bool is)
{
	if (!is)
		let_through++;
	printf("  %-52s %s\n", what, is ? "unchanged" : "CHANGED");
}

static void attack_mapping(int fd, void *map, size_t size)
{
	void *p;

	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ATTEMPT("mmap(PROT_READ | PROT_WRITE)", p != MAP_FAILED);
	if (p != MAP_FAILED)
		munmap(p, size);

	p = mmap(NULL, size, PROT_WRITE, MAP_SHARED, fd, 0);
	ATTEMPT("mmap(PROT_WRITE)", p != MAP_FAILED);
	if (p != MAP_FAILED)
		munmap(p, size);

	ATTEMPT("mprotect(the read-only mapping, PROT_WRITE)",
		mprotect(map, size, PROT_READ | PROT_WRITE) == 0);

	/* Writing through /proc bypasses the mapping's protection where the kernel allows it. */
	_cleanup_close_ int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (mem < 0)
		tell("open(/proc/self/mem)", strerrorname_np(errno));
	else
		ATTEMPT("pwrite(/proc/self/mem, over the mapping)",
			pwrite(mem, FORGED, sizeof(FORGED), (off_t)(uintptr_t)map) >= 0);
}

/* Attacks all descriptors; attack returns 0 or the exit code. Returns main()'s exit code. */
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
