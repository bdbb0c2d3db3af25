/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file in memory that nobody can change once it is handed out. Knows nothing of its contents. */
#pragma once

#include <stddef.h>

/* Of so many bytes, which are holes until they are written and cost nothing. *ret is CLOEXEC, the
 * caller's. -errno. */
int pp_memfile_new(const char *name, size_t size, int *ret);

/* From now on nobody can write it or change its size. -errno. */
int pp_memfile_seal(int fd);

/*
 * Sealed, and opened anew: *ret is read-only and CLOEXEC, the caller's; so does fd remain. By no way
 * that was found can who gets that descriptor write the file, nor open it again for writing.
 */
int pp_memfile_finish(int fd, int *ret);
