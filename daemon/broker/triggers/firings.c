// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the ring buffer of firings. Must not know triggers. */
#include "daemon/broker/triggers/firings.h"

#include <string.h>
#include <sys/epoll.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/log.h"
#include "proto/macro.h"

static void on_record(void *userdata, const void *record, size_t size)
{
	struct firings *f = userdata;
	struct pp_fired fired;

	if (size != sizeof(fired))
		return;
	memcpy(&fired, record, sizeof(fired));
	fired.comm[sizeof(fired.comm) - 1] = 0;
	f->fired(f->userdata, &fired);
}

static void consume(struct firings *f)
{
	if (ringbuf_consume(&f->ring, on_record, f) < 0)
		log_error("The ring buffer of firings is malformed; its content was skipped, and "
			  "what some triggers froze is saved late.");
	f->done(f->userdata);
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	consume(userdata);
	return 0;
}

int firings_listen(struct firings *f)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (f->fd >= 0)
		return 0;
	fd = tree_firings_open(f->registry);
	if (fd < 0)
		return fd;
	r = ringbuf_map(fd, &f->ring);
	if (r < 0)
		return r;
	r = sd_event_add_io(f->loop, &f->io, fd, EPOLLIN, on_io, f);
	/* Before any request: an answer knows all that fired before it was asked for, and no
	 * stream of requests delays a snapshot. */
	if (r >= 0)
		r = sd_event_source_set_priority(f->io, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0) {
		f->io = sd_event_source_disable_unref(f->io);
		ringbuf_unmap(&f->ring);
		return r;
	}
	f->fd = TAKE_FD(fd);
	/* The kernel wakes only who has read all that was written before. */
	consume(f);
	return 0;
}

void firings_look(struct firings *f)
{
	if (f->fd >= 0)
		consume(f);
}

void firings_done(struct firings *f)
{
	f->io = sd_event_source_disable_unref(f->io);
	ringbuf_unmap(&f->ring);
	f->fd = close_fd(f->fd);
}
