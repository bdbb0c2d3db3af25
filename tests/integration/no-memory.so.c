// SPDX-License-Identifier: LGPL-2.1-or-later
/* To be preloaded: memory ends after NO_MEMORY_AFTER allocations. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool is_over(void)
{
	static long left = -1;
	const char *text = left < 0 ? getenv("NO_MEMORY_AFTER") : NULL;

	if (left < 0)
		left = text ? atol(text) : 0;
	if (left > 0) {
		left--;
		return false;
	}
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return is_over() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_over() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return is_over() ? NULL : __libc_realloc(p, size);
}
