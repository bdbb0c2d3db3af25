/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and writes all that was asked for, however often the kernel takes a part of it. Owns the
 * loops around read(2), write(2) and their like. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0; -EIO: nothing is taken any more; another -errno. */
int pp_write_all(int fd, const void *bytes, size_t n);
int pp_pwrite_all(int fd, const void *bytes, size_t n, uint64_t offset);

/* How many bytes there were: fewer than n at the end alone. -errno. */
ssize_t pp_read_all(int fd, void *bytes, size_t n);
ssize_t pp_pread_all(int fd, void *bytes, size_t n, uint64_t offset);
