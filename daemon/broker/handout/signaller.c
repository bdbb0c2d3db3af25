// SPDX-License-Identifier: LGPL-2.1-or-later
/* Raw system calls: libc has none of these. Must not know the eventfds' owners. */
#include "daemon/broker/handout/signaller.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "daemon/log.h"
#include "proto/macro.h"

int signaller_init(struct signaller *s)
{
	*s = (struct signaller){ .null = -EBADF };
	if (syscall(SYS_io_setup, SIGNALLER_BATCH, &s->context) < 0)
		return errno == ENOSYS || errno == EAGAIN ? -EOPNOTSUPP : -errno;
	s->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (s->null < 0) {
		int r = -errno;

		signaller_done(s);
		return r;
	}
	return 0;
}

void signaller_done(struct signaller *s)
{
	if (s->context)
		syscall(SYS_io_destroy, s->context);
	s->context = 0;
	s->null = close_fd(s->null);
	s->n = 0;
}

/* Completed requests occupy slots until they are reaped. */
static void take_completed(struct signaller *s)
{
	struct io_event events[SIGNALLER_BATCH];
	struct timespec at_once = { 0 };

	syscall(SYS_io_getevents, s->context, 0, SIGNALLER_BATCH, events, &at_once);
}

void signaller_flush(struct signaller *s)
{
	struct iocb reads[SIGNALLER_BATCH], *list[SIGNALLER_BATCH];
	size_t done = 0;

	memset(reads, 0, s->n * sizeof(reads[0]));
	for (size_t i = 0; i < s->n; i++) {
		reads[i].aio_lio_opcode = IOCB_CMD_PREAD;
		reads[i].aio_fildes = s->null;
		reads[i].aio_flags = IOCB_FLAG_RESFD;
		reads[i].aio_resfd = s->fds[i];
		list[i] = &reads[i];
	}
	while (done < s->n) {
		long n = syscall(SYS_io_submit, s->context, s->n - done, list + done);

		take_completed(s);
		if (n <= 0) {
			log_debug("Cannot wake a reader: %s.", strerror(n < 0 ? errno : EIO));
			n = 1; /* skips this one; the others are tried */
		}
		done += n;
	}
	s->n = 0;
}

bool signaller_add(struct signaller *s, int fd)
{
	s->fds[s->n++] = fd;
	return s->n == SIGNALLER_BATCH;
}
