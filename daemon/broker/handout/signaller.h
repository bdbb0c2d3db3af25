/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals eventfds that strangers hold, and never waits.
 *
 * write(2) could wait: who is passed an eventfd shares its flags, can take O_NONBLOCK away and
 * fill the counter. A completed asynchronous read (IOCB_FLAG_RESFD) counts it up without that:
 * the kernel's own eventfd_signal() stops at the counter's end. One system call signals many.
 */
#pragma once

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stddef.h>

#define SIGNALLER_BATCH 64

struct signaller {
	aio_context_t context; /* 0: none */
	int null;	       /* what is read: /dev/null, which answers at once */
	size_t n;	       /* of those that are gathered */
	int fds[SIGNALLER_BATCH];
};

/* 0; -EOPNOTSUPP (this kernel has no asynchronous I/O, or none left); -errno. */
int signaller_init(struct signaller *s);
/* Accepts one that was never made (null: -EBADF). */
void signaller_done(struct signaller *s);

/* Counts fd up by one, with the next flush. Returns whether it has to come now: there is no room for
 * another one. */
bool signaller_add(struct signaller *s, int fd);
void signaller_flush(struct signaller *s);
