/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file in memory that is immutable once it is handed out. Knows nothing of its contents. */
#pragma once

#include <stddef.h>

/* Makes a file of that size, all holes: unwritten parts cost nothing. *ret is CLOEXEC; the caller
 * owns it. -errno. */
int pp_memfile_new(const char *name, size_t size, int *ret);

/* Makes contents and size immutable. -errno. */
int pp_memfile_seal(int fd);

/*
 * Seals the file and opens it again: *ret is read-only and CLOEXEC; the caller owns it, and still
 * owns fd. We know no way in which a receiver of that descriptor can write the file or reopen it
 * for writing.
 */
int pp_memfile_finish(int fd, int *ret);
