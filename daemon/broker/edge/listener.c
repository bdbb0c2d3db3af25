// SPDX-License-Identifier: LGPL-2.1-or-later
/* Accepts connections. Must not know the protocol. */
#include "daemon/broker/edge/listener.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/broker/edge/fair-queue.h"
#include "daemon/broker/link/timer.h"
#include "daemon/dispose.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define ACCEPTS_PER_TURN 16
#define PAUSE_USEC (100 * 1000ULL)

/* 0: go on; -errno: this process has run out of something. */
static int accept_one(struct listener *l)
{
	_cleanup_close_ int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	if (fd < 0)
		return -errno;
	r = peer_new(l->peers, fd);
	if (r == -EDQUOT)
		log_debug("A connection was refused: MaxConnections= or MaxConnectionsPerUser= is "
			  "reached.");
	else if (r < 0)
		log_warning("A connection was refused: %s.", strerror(-r));
	if (r < 0)
		peers_close(l->peers, fd);
	TAKE_FD(fd);
	return 0;
}

/* Without descriptors accept fails and the socket stays readable: pause instead of spinning. */
static void pause_accepting(struct listener *l, int err)
{
	log_warning("Cannot accept connections just now: %s.", strerror(-err));
	sd_event_source_set_enabled(l->io, SD_EVENT_OFF);
	timer_start(l->pause, PAUSE_USEC);
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	struct listener *l = userdata;

	for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
		int r = accept_one(l);

		if (r == -EAGAIN)
			break;
		if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS) {
			pause_accepting(l, r);
			break;
		}
		/* Other errors belong to the connection that failed. */
	}
	return 0;
}

static int on_pause_over(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	listener_start(userdata);
	return 0;
}

void listener_start(struct listener *l)
{
	sd_event_source_set_enabled(l->io, SD_EVENT_ON);
}

int listener_init(struct listener *l, struct peers *peers, int fd)
{
	sd_event *loop = peers->loop;
	int r;

	l->peers = peers;
	peers->files_come = !dispose_keep_out(fd);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return -errno;
	r = sd_event_add_io(loop, &l->io, fd, EPOLLIN, on_io, l);
	if (r >= 0)
		r = sd_event_source_set_priority(l->io, FAIR_QUEUE_PRIORITY);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->io, SD_EVENT_OFF);
	if (r < 0)
		return r;
	r = timer_add(loop, &l->pause, on_pause_over, l);
	if (r < 0)
		return r;
	l->fd = fd;
	return 0;
}

void listener_done(struct listener *l)
{
	l->io = sd_event_source_disable_unref(l->io);
	l->pause = sd_event_source_disable_unref(l->pause);
	l->fd = close_fd(l->fd);
}
