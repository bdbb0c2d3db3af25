// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/keeper/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/keeper/tasks.h"
#include "proto/macro.h"

#define STACK_SIZE (64 * 1024)

struct pump {
	atomic_int users; /* the caller and the thread: the last one frees it */
	int fd;		  /* the thread's own */
	int to, from;	  /* ends of the pipe: the thread's, and the caller's */
	atomic_int error; /* written before `to` is closed */
	uint8_t bytes[TASKS_READ];
};

static void put(struct pump *p)
{
	if (atomic_fetch_sub(&p->users, 1) == 1)
		free(p);
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static bool is_given_up(const struct pump *p)
{
	struct pollfd end = { .fd = p->to };

	return poll(&end, 1, 0) > 0 && end.revents & POLLERR;
}

static int read_to_end(struct pump *p)
{
	for (;;) {
		ssize_t n = read(p->fd, p->bytes, sizeof(p->bytes));
		int r;

		/* An iterator that found nothing to tell in a while asks to be read again. */
		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			if (is_given_up(p))
				return -EPIPE;
			continue;
		}
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = write_all(p->to, p->bytes, (size_t)n);
		if (r < 0)
			return r;
	}
}

static void *run(void *userdata)
{
	struct pump *p = userdata;

	p->error = read_to_end(p);
	close_fd(p->fd);
	close_fd(p->to);
	put(p);
	return NULL;
}

static int start_thread(struct pump *p)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	r = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!r)
		r = pthread_attr_setstacksize(&attr, MAX(STACK_SIZE, (size_t)PTHREAD_STACK_MIN));
	if (!r)
		r = pthread_create(&thread, &attr, run, p);
	pthread_attr_destroy(&attr);
	return -r;
}

int pump_start(int fd, struct pump **ret, int *ret_from)
{
	_cleanup_close_ int from = -EBADF, to = -EBADF, own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	_cleanup_free_ struct pump *p = calloc(1, sizeof(*p));
	int ends[2], r;

	if (!p)
		return -ENOMEM;
	if (own < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	to = ends[1];
	p->users = 2;
	p->fd = own;
	p->to = to;
	p->from = from;
	r = start_thread(p);
	if (r < 0)
		return r;
	*ret_from = TAKE_FD(from);
	TAKE_FD(to);
	TAKE_FD(own);
	*ret = TAKE_PTR(p);
	return 0;
}

int pump_stop(struct pump *p)
{
	int error = p->error;

	close_fd(p->from);
	put(p);
	return error;
}
