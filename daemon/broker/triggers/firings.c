// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the ring buffer of firings. Must not know triggers. */
#include "daemon/broker/triggers/firings.h"

#include <string.h>
#include <sys/epoll.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* Triggers may fire all the time, each as often as its hold-off allows. Of the broker's time they take so large a part
 * for long, and so much at once; then what fires waits. What finds no room meanwhile is counted by the kernel. What
 * they take and what is forgiven are times of one clock: on a machine that lets the broker have less than such a part
 * of a CPU, CPU time would be forgiven faster than it can be taken, and requests would wait without end. */
#define SHARE 8
#define AT_ONCE 50000000ULL /* ns */
/* It waits for a second at most, though the machine stood still for minutes while it read. */
#define DEBT_MAX (AT_ONCE + 1000000000ULL / SHARE)
#define RETRY_USEC 1000000ULL

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

static int on_timer(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct firings *f = userdata;

	if (sd_event_source_set_enabled(f->io, SD_EVENT_ON) < 0)
		timer_start(f->timer, RETRY_USEC);
	return 0;
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	struct firings *f = userdata;
	uint64_t began = pp_clock_ns(CLOCK_MONOTONIC);

	f->debt -= MIN(f->debt, (began - f->paid) / SHARE);
	consume(f);
	f->paid = pp_clock_ns(CLOCK_MONOTONIC);
	f->debt = MIN(f->debt + (f->paid - began), DEBT_MAX);
	if (f->debt <= AT_ONCE || timer_start(f->timer, (f->debt - AT_ONCE) * SHARE / 1000 + 1) < 0)
		return 0;
	return sd_event_source_set_enabled(f->io, SD_EVENT_OFF);
}

static void ignore(struct firings *f)
{
	f->io = sd_event_source_disable_unref(f->io);
	f->timer = sd_event_source_disable_unref(f->timer);
	ringbuf_unmap(&f->ring);
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
	/* Before any request: an answer knows all that fired before it was asked for, unless triggers fire without
	 * end, and no stream of requests delays a snapshot. */
	if (r >= 0)
		r = sd_event_source_set_priority(f->io, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = timer_add(f->loop, &f->timer, on_timer, f);
	if (r < 0) {
		ignore(f);
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
	ignore(f);
	f->fd = close_fd(f->fd);
}
