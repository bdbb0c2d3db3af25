// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the iterators' entries. */
#include "daemon/keeper/tasks.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/clock.h"
#include "proto/macro.h"

#define SHARE_MIN 4096 /* bytes of one process's entries; each is less */

int tasks_head_at(const struct tasks *tasks, size_t at, struct tasks_head *ret)
{
	if (tasks->size - at < 8)
		return 0;
	memcpy(ret, tasks->bytes + at, 8);
	if (ret->size < sizeof(struct tasks_cut) || ret->size % 8)
		return -EBADMSG;
	if (ret->size > tasks->size - at)
		return 0;
	memcpy(ret, tasks->bytes + at, sizeof(*ret));
	return 1;
}

static size_t put_cut(struct tasks *tasks, size_t at, uint32_t pid)
{
	const struct tasks_cut cut = { TASKS_CUT, sizeof(cut), pid, 0 };

	memcpy(tasks->bytes + at, &cut, sizeof(cut));
	return at + sizeof(cut);
}

/* Leaves each process so many bytes of its entries, which are adjacent. A partly read entry stays
 * at the end. */
static int share_out(struct tasks *tasks, size_t share)
{
	struct tasks_head h = { 0 };
	size_t at = 0, to = 0, left = 0;
	uint32_t pid = 0;
	bool is_cut = false;
	int r;

	for (; (r = tasks_head_at(tasks, at, &h)) > 0; at += h.size) {
		if (h.pid != pid) {
			if (is_cut)
				to = put_cut(tasks, to, pid);
			pid = h.pid;
			is_cut = false;
			left = share;
		}
		if (h.type == TASKS_CUT || h.size > left) {
			is_cut = true;
			left = 0;
			continue;
		}
		left -= h.size;
		memmove(tasks->bytes + to, tasks->bytes + at, h.size);
		to += h.size;
	}
	if (is_cut)
		to = put_cut(tasks, to, pid);
	memmove(tasks->bytes + to, tasks->bytes + at, tasks->size - at);
	tasks->size -= at - to;
	return r;
}

/* Cuts to half the limit, so that this is not repeated every few bytes. */
static int cut_short(struct tasks *tasks, size_t max)
{
	for (size_t share = max / 2; share >= SHARE_MIN; share /= 2) {
		int r = share_out(tasks, share);

		if (r < 0)
			return r;
		if (tasks->size <= max / 2)
			return 0;
	}
	return -EFBIG;
}

static int make_room(struct tasks *tasks, size_t max, size_t *room)
{
	size_t more = MIN(MAX(2 * *room, 2 * TASKS_READ), max);
	uint8_t *p;

	if (*room - tasks->size >= TASKS_READ)
		return 0;
	if (tasks->size + TASKS_READ > max)
		return cut_short(tasks, max);
	p = realloc(tasks->bytes, more);
	if (!p)
		return -ENOMEM;
	tasks->bytes = p;
	*room = more;
	return 0;
}

/* How long nothing may come before busy() is called again. */
#define BUSY_AGAIN 50 /* ms */

/* 1: there is something to read; 0: not yet. */
static int wait_for_entries(int fd, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return deadline ? poll(&p, 1, BUSY_AGAIN) : 1;
}

/* Leaves out the entry that was read in part. */
static int trim(struct tasks *tasks)
{
	struct tasks_head h = { 0 };
	size_t at = 0;
	int r;

	while ((r = tasks_head_at(tasks, at, &h)) > 0)
		at += h.size;
	tasks->size = at;
	return r;
}

/* 1: read something, or nothing yet; 0: the end. */
static int read_more(int fd, uint64_t deadline, struct tasks *tasks)
{
	int r = wait_for_entries(fd, deadline);
	ssize_t n;

	if (r == 0)
		return 1;
	n = r < 0 ? r : read(fd, tasks->bytes + tasks->size, TASKS_READ);
	/* An iterator that met no process in a while asks to be read again. */
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -errno;
	tasks->size += (size_t)n;
	return n > 0;
}

int tasks_read(int fd, size_t max, uint64_t deadline, void (*busy)(void *context), void *context,
	       struct tasks *ret)
{
	_cleanup_(tasks_free) struct tasks tasks = { 0 };
	size_t room = 0;
	int r = 1;

	while (r > 0 && !tasks.unfinished) {
		r = make_room(&tasks, max, &room);
		if (r == 0)
			r = read_more(fd, deadline, &tasks);
		busy(context);
		tasks.unfinished = deadline && r > 0 && pp_clock_ns(CLOCK_MONOTONIC) >= deadline;
	}
	if (tasks.unfinished)
		r = trim(&tasks);
	if (r < 0)
		return r;
	*ret = tasks;
	tasks.bytes = NULL;
	return 0;
}

void tasks_free(struct tasks *tasks)
{
	free(tasks->bytes);
	*tasks = (struct tasks){ 0 };
}
