// SPDX-License-Identifier: LGPL-2.1-or-later
/* Watches memfds. Must not know their contents. */
#include "daemon/broker/handout/memfd-refs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "daemon/broker/edge/fair-queue.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* Index of the first memfd reference whose watch is not below this one. */
static size_t place_of(const struct memfd_refs *h, int watch)
{
	size_t low = 0, high = h->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (h->all[middle].watch < watch)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void release(struct memfd_refs *h, size_t i)
{
	quota_release(h->quota, QUOTA_COPIES, h->all[i].uid, NULL, h->all[i].bytes);
	h->n--;
	memmove(&h->all[i], &h->all[i + 1], (h->n - i) * sizeof(h->all[0]));
}

static void on_gone(struct memfd_refs *h, int watch)
{
	size_t i = place_of(h, watch);

	if (i < h->n && h->all[i].watch == watch)
		release(h, i);
}

/* ── the truth ──────────────────────────────────────────────────────────────────────────── */

static int compare_watches(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* The watches that the kernel still has, sorted: from each "inotify wd:HEX …" in the fdinfo. */
static int read_watches(int inotify, int **ret, size_t *ret_n)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ int *watches = NULL;
	size_t n = 0, room = 0;
	char line[512];

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", inotify);
	f = fopen(line, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "inotify wd:", 11) != 0)
			continue;
		if (n == room) {
			int *p = reallocarray(watches, room ? room * 2 : 64, sizeof(*p));

			if (!p)
				return -ENOMEM;
			watches = p;
			room = room ? room * 2 : 64;
		}
		watches[n++] = (int)strtol(line + 11, NULL, 16);
	}
	if (n > 0)
		qsort(watches, n, sizeof(*watches), compare_watches);
	*ret = TAKE_PTR(watches);
	*ret_n = n;
	return 0;
}

void memfd_refs_review(struct memfd_refs *h)
{
	_cleanup_free_ int *watches = NULL;
	size_t n;
	int r = read_watches(h->fd, &watches, &n);

	if (r < 0) {
		/* The charges that cannot be released now last until the daemon restarts. */
		log_warning("Cannot find out which copies of rings are gone: %s.", strerror(-r));
		return;
	}
	for (size_t i = h->n; i > 0; i--)
		if (n == 0 ||
		    !bsearch(&h->all[i - 1].watch, watches, n, sizeof(*watches), compare_watches))
			release(h, i - 1);
}

/* ── what the kernel tells ──────────────────────────────────────────────────────────────── */

/* Handles one read of notices. false: there were none. */
static bool take_notices(struct memfd_refs *h)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n = read(h->fd, buf, sizeof(buf));
	bool lost = false;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(buf + at);

		if (e->mask & IN_DELETE_SELF)
			on_gone(h, e->wd);
		lost |= (e->mask & IN_Q_OVERFLOW) != 0;
		at += sizeof(*e) + e->len;
	}
	if (lost)
		memfd_refs_review(h);
	return n > 0;
}

void memfd_refs_catch_up(struct memfd_refs *h)
{
	while (take_notices(h))
		;
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	take_notices(userdata);
	return 0;
}

int memfd_refs_add(struct memfd_refs *h, int file, uint32_t uid, uint64_t bytes)
{
	char path[64];
	size_t i;
	int watch;

	if (h->n == h->room) {
		size_t room = h->room ? h->room * 2 : 64;
		struct memfd_ref *p = reallocarray(h->all, room, sizeof(*p));

		if (!p)
			return -ENOMEM;
		h->all = p;
		h->room = room;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	watch = inotify_add_watch(h->fd, path, IN_DELETE_SELF);
	if (watch < 0)
		return -errno;
	i = place_of(h, watch);
	/* The same file added twice has one watch, and IN_DELETE_SELF would come once. */
	if (i < h->n && h->all[i].watch == watch)
		return -EEXIST;
	memmove(&h->all[i + 1], &h->all[i], (h->n - i) * sizeof(h->all[0]));
	h->all[i] = (struct memfd_ref){ .watch = watch, .uid = uid, .bytes = bytes };
	h->n++;
	return 0;
}

int memfd_refs_init(struct memfd_refs *h, sd_event *loop, struct quota *quota)
{
	int r;

	h->quota = quota;
	h->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (h->fd < 0)
		return -errno;
	r = sd_event_add_io(loop, &h->io, h->fd, EPOLLIN, on_io, h);
	if (r >= 0)
		r = sd_event_source_set_priority(h->io, FAIR_QUEUE_PRIORITY);
	if (r < 0) {
		h->io = sd_event_source_disable_unref(h->io);
		h->fd = close_fd(h->fd);
	}
	return r;
}

void memfd_refs_done(struct memfd_refs *h)
{
	while (h->n > 0)
		release(h, h->n - 1);
	free(h->all);
	h->all = NULL;
	h->room = 0;
	h->io = sd_event_source_disable_unref(h->io);
	h->fd = close_fd(h->fd);
}
