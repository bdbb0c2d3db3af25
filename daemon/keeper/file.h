/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file in memory that nobody can change once it is handed out. Knows nothing of its contents. */
#pragma once

#include <stddef.h>

int memfile_new(int *ret);
int memfile_write(int fd, const void *bytes, size_t size, size_t at);
/* Sealed, and opened anew: *ret is read-only and CLOEXEC, the caller's; so does fd remain. */
int memfile_finish(int fd, int *ret);
