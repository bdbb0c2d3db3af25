/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Complete reads and writes: the loops around read(2), write(2) and similar calls, which may move
 * only a part. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0; -EIO: the file takes no more; another -errno. */
int pp_write_all(int fd, const void *bytes, size_t n);
int pp_pwrite_all(int fd, const void *bytes, size_t n, uint64_t offset);

/* Returns the bytes read: fewer than n only at the end. -errno. */
ssize_t pp_read_all(int fd, void *bytes, size_t n);
ssize_t pp_pread_all(int fd, void *bytes, size_t n, uint64_t offset);
