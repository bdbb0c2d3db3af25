/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals eventfds that clients hold, and never blocks.
 *
 * write(2) could block: the other holders of an eventfd share its flags, can clear O_NONBLOCK and
 * fill the counter. A completed asynchronous read (IOCB_FLAG_RESFD) increments the counter without
 * that risk: the kernel's own eventfd_signal() stops at the counter's end. One system call signals
 * many.
 */
#pragma once

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stddef.h>

#define SIGNALLER_BATCH 64

struct signaller {
	aio_context_t context; /* 0: none */
	int null;	       /* /dev/null, the file to read: it answers at once */
	size_t n;	       /* gathered eventfds */
	int fds[SIGNALLER_BATCH];
};

/* 0; -EOPNOTSUPP (this kernel has no asynchronous I/O, or none left); -errno. */
int signaller_init(struct signaller *s);
/* Accepts one that was never initialised (null: -EBADF). */
void signaller_done(struct signaller *s);

/* Increments fd's counter with the next flush. Returns whether the batch is full and the caller
 * must flush now. */
bool signaller_add(struct signaller *s, int fd);
void signaller_flush(struct signaller *s);
