// SPDX-License-Identifier: LGPL-2.1-or-later
/* The connection to the dumper and the queue of jobs. Must not know registry or peers. */
#include "daemon/broker/handout/copies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/handout/memfd-refs.h"
#include "daemon/broker/link/link.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* After this time the dumper has given the job up: see PP_COPY_SECONDS. */
#define PATIENCE_USEC ((PP_COPY_SECONDS + 1) * 1000000ULL)

struct copies {
	struct quota *quota;
	struct memfd_refs memfds;
	struct link link; /* connected on first use; then kept */
	sd_event_source *patience;

	struct copying *first, **last; /* the waiting jobs */
	struct copying *current;       /* the job at the dumper */
	uint32_t last_uid;	       /* the user of the last job */
	bool pumping;
	struct pp_copy_job job; /* current's */
	struct pp_fds copies;	/* received for it so far */
};

/* The memory that a file of this size takes. */
static uint64_t memory_of(uint64_t size)
{
	return ALIGN_TO(size, (uint64_t)sysconf(_SC_PAGESIZE));
}

static uint64_t job_bytes(const struct pp_copy_job *job)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < job->count; i++)
		bytes += memory_of(job->size[i]);
	return bytes;
}

/* ── the connection ─────────────────────────────────────────────────────────────────────── */

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata);

static void disconnect(struct copies *c)
{
	link_close(&c->link);
	pp_fds_close(&c->copies);
	timer_stop(c->patience);
}

/* The broken end of a kept connection may show only now: then connects anew. */
static int send_job(struct copies *c, const struct pp_fds *fds)
{
	int r = -ENOTCONN;

	if (c->link.fd >= 0)
		r = pp_packet_send(c->link.fd, &c->job, sizeof(c->job), fds->fd, fds->n);
	if (r < 0) {
		disconnect(c);
		r = link_connect(&c->link, on_io, c);
		if (r >= 0)
			r = pp_packet_send(c->link.fd, &c->job, sizeof(c->job), fds->fd, fds->n);
	}
	if (r < 0) {
		disconnect(c);
		return r;
	}
	timer_start(c->patience, PATIENCE_USEC);
	return 0;
}

/* ── jobs ───────────────────────────────────────────────────────────────────────────────── */

/* Users take turns: the next job is the first of another user, if there is one. */
static struct copying *take_next(struct copies *c)
{
	struct copying **p = &c->first, *copying;

	while (*p && (*p)->uid == c->last_uid)
		p = &(*p)->next;
	if (!*p)
		p = &c->first;
	copying = *p;
	*p = copying->next;
	if (!*p)
		c->last = p;
	copying->next = NULL;
	c->last_uid = copying->uid;
	return copying;
}

static int charge(struct copies *c, const struct copying *copying)
{
	memfd_refs_catch_up(&c->memfds);
	return quota_charge(c->quota, QUOTA_COPIES, copying->uid, NULL, job_bytes(&c->job));
}

static void uncharge(struct copies *c, const struct copying *copying)
{
	quota_release(c->quota, QUOTA_COPIES, copying->uid, NULL, job_bytes(&c->job));
}

/* 0: the dumper has the job. */
static int start(struct copies *c, struct copying *copying)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	int r;

	c->job = (struct pp_copy_job){ .abi = PP_COPY_ABI, .serial = c->job.serial + 1 };
	r = copying->prepare(copying, &c->job, &fds);
	if (r < 0)
		return r;
	assert(c->job.count == fds.n && fds.n > 0);
	r = charge(c, copying);
	if (r < 0)
		return r;
	r = send_job(c, &fds);
	if (r < 0) {
		log_warning("Cannot ask the dumper at %s for copies: %s.", c->link.address.sun_path,
			    strerror(-r));
		uncharge(c, copying);
		return -EAGAIN;
	}
	c->current = copying;
	return 0;
}

/* Does not call itself recursively: a done callback may submit the next job. */
static void pump(struct copies *c)
{
	if (c->pumping)
		return;
	c->pumping = true;
	while (!c->current && c->first) {
		struct copying *copying = take_next(c);
		int r = start(c, copying);

		if (r < 0)
			copying->done(copying, r, NULL);
	}
	c->pumping = false;
}

void copies_submit(struct copies *c, struct copying *copying)
{
	copying->next = NULL;
	*c->last = copying;
	c->last = &copying->next;
	pump(c);
}

/* ── answers ────────────────────────────────────────────────────────────────────────────── */

static void log_unwatched(int err)
{
	log_warning("Cannot watch a copy: %s.%s", strerror(-err),
		    err == -ENOSPC ? " Raise fs.inotify.max_user_watches." : "");
}

int copies_reserve(struct copies *c, uint32_t uid, uint64_t bytes)
{
	memfd_refs_catch_up(&c->memfds);
	return quota_charge(c->quota, QUOTA_COPIES, uid, NULL, bytes);
}

void copies_unreserve(struct copies *c, uint32_t uid, uint64_t bytes)
{
	quota_release(c->quota, QUOTA_COPIES, uid, NULL, bytes);
}

int copies_hold(struct copies *c, int file, uint32_t uid, uint64_t size)
{
	uint64_t bytes = memory_of(size);
	int r = copies_reserve(c, uid, bytes);

	if (r < 0)
		return r;
	r = memfd_refs_add(&c->memfds, file, uid, bytes);
	if (r < 0) {
		copies_unreserve(c, uid, bytes);
		log_unwatched(r);
	}
	return r;
}

/* Turns the job's charge into a charge for each copy, and releases the rest. */
static int hold(struct copies *c, const struct copying *copying)
{
	int r = 0;

	for (size_t i = 0; i < c->copies.n; i++) {
		uint64_t bytes = memory_of(c->job.size[i]);

		if (r >= 0)
			r = memfd_refs_add(&c->memfds, c->copies.fd[i], copying->uid, bytes);
		if (r < 0)
			quota_release(c->quota, QUOTA_COPIES, copying->uid, NULL, bytes);
	}
	if (r < 0)
		log_unwatched(r);
	return r;
}

static void finish(struct copies *c, int error)
{
	struct copying *copying = TAKE_PTR(c->current);

	timer_stop(c->patience);
	if (error < 0)
		uncharge(c, copying);
	else
		error = hold(c, copying);
	copying->done(copying, error, error < 0 ? NULL : &c->copies);
	pp_fds_close(&c->copies);
}

/* The answer either brings copies or is the last one, which comes after all copies or with an
 * error. */
static bool answer_is_sound(const struct copies *c, const struct pp_copy_answer *a, ssize_t size,
			    const struct pp_fds *fds)
{
	uint32_t due = c->copies.n || a->error ? 0 : c->job.count;

	return size == sizeof(*a) && a->abi == PP_COPY_ABI && c->current &&
	       a->serial == c->job.serial && a->error >= 0 && a->count == fds->n && fds->n == due &&
	       a->last == (due == 0) && !(a->error && c->copies.n);
}

static void take_answer(struct copies *c, const struct pp_copy_answer *a, struct pp_fds *fds)
{
	if (a->last) {
		finish(c, -a->error);
	} else {
		c->copies = *fds;
		fds->n = 0;
	}
}

static int on_io(sd_event_source *s _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	struct copies *c = userdata;
	struct pp_copy_answer answer = { 0 };
	ssize_t n = pp_packet_receive(fd, &answer, sizeof(answer), PP_FDS_MAX, &fds, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (answer_is_sound(c, &answer, n, &fds)) {
		take_answer(c, &answer, &fds);
	} else {
		if (n > 0 || n == -EBADMSG)
			log_error("The dumper sent a malformed answer; reconnecting.");
		else if (c->current && n != -EMFILE)
			log_warning("The dumper ended while it made copies.");
		disconnect(c);
		if (c->current)
			finish(c, n == -EMFILE ? -EMFILE : -EAGAIN);
	}
	pump(c);
	return 0;
}

static int on_patience(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct copies *c = userdata;

	log_error("The dumper at %s has not answered for %d seconds; reconnecting.",
		  c->link.address.sun_path, PP_COPY_SECONDS + 1);
	disconnect(c);
	if (c->current)
		finish(c, -EAGAIN);
	pump(c);
	return 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

void copies_free(struct copies *c)
{
	if (!c)
		return;
	c->pumping = true; /* no job starts any more */
	if (c->current)
		finish(c, -ECANCELED);
	while (c->first) {
		struct copying *copying = take_next(c);

		copying->done(copying, -ECANCELED, NULL);
	}
	disconnect(c);
	memfd_refs_done(&c->memfds);
	sd_event_source_disable_unref(c->patience);
	link_done(&c->link);
	free(c);
}

static void cleanup_copies(struct copies **c)
{
	copies_free(*c);
}

int copies_new(sd_event *loop, struct quota *quota, const char *path, struct copies **ret)
{
	_cleanup_(cleanup_copies) struct copies *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->quota = quota;
	c->memfds.fd = -EBADF;
	c->last = &c->first;
	c->last_uid = UINT32_MAX;
	r = link_init(&c->link, loop, path);
	if (r >= 0)
		r = memfd_refs_init(&c->memfds, loop, quota);
	if (r >= 0)
		r = timer_add(loop, &c->patience, on_patience, c);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}
