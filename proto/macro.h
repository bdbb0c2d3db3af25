/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * C idioms that every part of the project uses. Libc only, no state.
 *
 * Scope-bound ownership: a local marked _cleanup_(f) is released by f when its scope ends; TAKE_FD
 * and TAKE_PTR hand ownership on and leave nothing behind.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))
#define _unused_ __attribute__((unused))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* Rounds up to a power-of-two boundary. */
#define ALIGN_TO(v, a) (((v) + ((a)-1)) & ~((__typeof__(v))(a)-1))

#define TAKE_PTR(p)                   \
	({                            \
		__auto_type _p = (p); \
		(p) = NULL;           \
		_p;                   \
	})

#define TAKE_FD(fd)             \
	({                      \
		int _fd = (fd); \
		(fd) = -EBADF;  \
		_fd;            \
	})

/*
 * Makes room for one more element in an array of n elements that grows by this macro alone. The
 * room is n rounded up to a power of two, so it need not be stored. False: no memory; the array is
 * unchanged.
 */
#define GROW(array, n)                                                 \
	({                                                             \
		void *_a = grow_array((array), (n), sizeof(*(array))); \
		if (_a)                                                \
			(array) = _a;                                  \
		_a != NULL;                                            \
	})

static inline void *grow_array(void *array, size_t n, size_t size)
{
	if (array && (n & (n - 1)))
		return array;
	return reallocarray(array, n ? 2 * n : 1, size);
}

/* Closes fd if it is valid, keeps errno, and returns -EBADF, so that a field can be reset in one
 * line. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return -EBADF;
}

static inline void cleanup_close(int *fd)
{
	*fd = close_fd(*fd);
}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)
