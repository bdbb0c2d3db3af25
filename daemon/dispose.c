// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A thread with its own descriptor table closes the descriptor, so that our close() is not the last
 * one. The kernel frees the table after it has woken pthread_join(3), with PF_EXITING set: then
 * inet_release() does not wait (Linux 2.6 to 7.x), and any other delay is not ours.
 */
#include "daemon/dispose.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/log.h"
#include "proto/macro.h"

#ifndef SO_PASSRIGHTS /* Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif

#define STACK_SIZE (64 * 1024)

struct handover {
	sem_t held, released;
	int error;
};

bool dispose_keep_out(int socket)
{
	const int no = 0;

	return setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no)) == 0;
}

static void *hold(void *userdata)
{
	struct handover *h = userdata;

	h->error = unshare(CLONE_FILES) < 0 ? errno : 0;
	sem_post(&h->held);
	while (sem_wait(&h->released) < 0)
		;
	return NULL;
}

static int start(struct handover *h, pthread_t *ret)
{
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r)
		return r;
	r = pthread_attr_setstacksize(&attr, MAX(STACK_SIZE, (size_t)PTHREAD_STACK_MIN));
	if (!r)
		r = pthread_create(ret, &attr, hold, h);
	pthread_attr_destroy(&attr);
	return r;
}

int dispose_fd(int fd)
{
	struct handover h = { 0 };
	pthread_t thread;
	int r;

	if (fd < 0)
		return -EBADF;
	sem_init(&h.held, 0, 0);
	sem_init(&h.released, 0, 0);
	r = start(&h, &thread);
	if (r) {
		log_debug("Cannot start a thread to close a connection: %s.", strerror(r));
		close_fd(fd);
		return -EBADF;
	}
	while (sem_wait(&h.held) < 0)
		;
	if (h.error)
		log_debug("Cannot give a thread its own descriptor table: %s.", strerror(h.error));
	close_fd(fd);
	sem_post(&h.released);
	pthread_join(thread, NULL);
	return -EBADF;
}
