// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * OPEN: the rings of an event, or copies of them. Pins are opened for one reply, or for one job of
 * the dumper, and closed again. Without room for a reply with rings, the request is retried later,
 * and no descriptors are kept.
 */
#include <string.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"
#include "proto/packet.h"

/* Bytes of the copies in one page; a single larger ring still fits. So a page of large rings takes
 * little time, and need not fit a user's limit as a whole. */
#define COPIES_PAGE (64ULL << 20)

/* A request that waits for copies. */
struct opening {
	struct copying copying; /* first: a job of ours is an opening */
	struct opening *next, **link;
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
	struct pp_msg_open_request request;
	bool answered;
	struct pp_msg_open_reply reply;
};

/* ── a page ─────────────────────────────────────────────────────────────────────────────── */

/* Selects the rings of the page; leaves reply->event alone. */
static void fill_page(const struct pp_event *t, uint32_t first, bool copies,
		      struct pp_msg_open_reply *reply)
{
	uint64_t size = pp_ring_size(t->header_size, pp_spec_ring_data(&t->spec), t->spill_size);
	uint32_t max = PP_FDS_MAX;

	reply->total = reply->count = 0;
	reply->copies = copies;
	reply->catalog_size = first == 0 ? t->catalog_size : 0;
	if (reply->catalog_size)
		max--;
	if (copies)
		max = MIN(max, MAX(COPIES_PAGE / size, 1U));
	PP_CPUMASK_FOREACH(cpu, &t->rings)
	{
		if (reply->total++ < first || reply->count == max)
			continue;
		reply->cpus[reply->count++] = (struct pp_msg_cpu){ .cpu = cpu, .map_size = size };
	}
}

/* A ring's descriptor. While the engine changes the event, the pin may already be another ring, of
 * another size. */
static int open_ring(const struct service *s, const struct event *e, const char *directory,
		     struct pp_msg_cpu *cpu)
{
	int fd = tree_ring_open(s->registry, directory, cpu->cpu), err;

	if (fd < 0 || e->state != PP_EVENT_CHANGING)
		return fd;
	err = tree_ring_size(fd, &cpu->map_size);
	if (err >= 0)
		return fd;
	close_fd(fd);
	return err;
}

/* 0; -errno, with nothing left open. */
static int open_page(const struct service *s, const struct event *e,
		     struct pp_msg_open_reply *reply, struct pp_fds *fds)
{
	char buf[TREE_DIRECTORY_SIZE];
	const char *directory = e->is_tape ? tree_tape(e->truth.id, e->is_kept, buf)
					   : tree_event(e->truth.origin, buf);
	int fd = 0;

	if (reply->catalog_size) {
		fd = tree_catalog_open(s->registry, directory);
		if (fd >= 0)
			fds->fd[fds->n++] = fd;
	}
	for (uint32_t i = 0; fd >= 0 && i < reply->count; i++) {
		fd = open_ring(s, e, directory, &reply->cpus[i]);
		if (fd >= 0)
			fds->fd[fds->n++] = fd;
	}
	if (fd < 0)
		pp_fds_close(fds);
	return MIN(fd, 0);
}

static void describe(struct request *req, const struct event *e, struct pp_msg_event *ret)
{
	struct tree_stat stat;

	event_count(req->service->registry, e, &req->service->totals, &stat);
	request_describe(req, e, &stat, ret);
}

/* ── refusing ───────────────────────────────────────────────────────────────────────────── */

static void refuse_open(struct request *req, const struct event *e, int err)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (err == -ENOENT)
		refuse(req, ENOENT, "%s/%s is %s.", spec->ns, spec->name,
		       e->state == PP_EVENT_DELETING ? "being deleted"
						     : "not in the registry any more");
	else if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS)
		refuse(req, EAGAIN,
		       "The daemon has too many descriptors open or in flight to open %s/%s; try "
		       "again.",
		       spec->ns, spec->name);
	else
		refuse(req, EIO, "The daemon cannot open the rings of %s/%s: %s.", spec->ns,
		       spec->name, strerror(-err));
}

static void refuse_copies(struct request *req, const struct pp_msg_event *e, int err)
{
	char sentence[256];

	switch (err) {
	case -EDQUOT:
		quota_sentence(req->service->lifecycle->charges.quota, sentence, sizeof(sentence));
		refuse(req, EDQUOT, "%s", sentence);
		break;
	case -EAGAIN:
	case -ECANCELED:
		refuse(req, EAGAIN,
		       "The dumper, which makes the copies of %s/%s that you may read, did not "
		       "answer or is not running; look at the daemon's log, and try again.",
		       e->ns, e->name);
		break;
	case -ENOSPC:
		refuse(req, EAGAIN,
		       "The daemon cannot watch more copies than it has handed out, and so makes "
		       "none of %s/%s; close some, or have fs.inotify.max_user_watches raised.",
		       e->ns, e->name);
		break;
	case -ENOMEM:
		refuse(req, ENOMEM,
		       "There is no memory for copies of the rings of %s/%s; try again later, or "
		       "give the event smaller ones.",
		       e->ns, e->name);
		break;
	case -EMFILE:
	case -ENFILE:
	case -ETOOMANYREFS:
		refuse(req, EAGAIN,
		       "Too many descriptors are open or in flight to pass copies of %s/%s; try "
		       "again.",
		       e->ns, e->name);
		break;
	default:
		refuse(req, EIO, "The dumper cannot copy the rings of %s/%s: %s.", e->ns, e->name,
		       strerror(-err));
	}
}

/* Whether a page can begin there. */
static bool check_first(struct request *req, const struct event *e, uint32_t first,
			const struct pp_msg_open_reply *reply)
{
	if (first == 0 || first < reply->total)
		return true;
	refuse(req, EINVAL, "%s/%s has %u rings, and none with the index %u.", e->truth.spec.ns,
	       e->truth.spec.name, reply->total, first);
	return false;
}

/* ── copies ─────────────────────────────────────────────────────────────────────────────── */

static void opening_free(struct opening *o)
{
	*o->link = o->next;
	if (o->next)
		o->next->link = o->link;
	peer_claim_end(&o->claim);
	free(o);
}

static struct request request_of(struct opening *o)
{
	return (struct request){
		.service = o->service,
		.peer = o->claim.peer,
		.header = &o->header,
	};
}

/* The job's turn has come: copies the event's present rings, if the peer may still read it. */
static int opening_prepare(struct copying *copying, struct pp_copy_job *job, struct pp_fds *fds)
{
	struct opening *o = (struct opening *)copying;
	struct request req = request_of(o);
	const struct event *e;
	int r;

	o->answered = true;
	if (!req.peer)
		return -ECANCELED;
	e = request_find_or_tape(&req, &o->request.which, PP_RIGHT_R);
	if (!e || !request_is_made(&req, e))
		return -ECANCELED;
	fill_page(&e->truth, o->request.first, true, &o->reply);
	if (!check_first(&req, e, o->request.first, &o->reply))
		return -ECANCELED;
	r = open_page(o->service, e, &o->reply, fds);
	if (r < 0) {
		refuse_open(&req, e, r);
		return r;
	}
	describe(&req, e, &o->reply.event);
	job->catalog = o->reply.catalog_size > 0;
	if (job->catalog)
		job->size[job->count++] = o->reply.catalog_size;
	for (uint32_t i = 0; i < o->reply.count; i++)
		job->size[job->count++] = o->reply.cpus[i].map_size;
	o->answered = false;
	return 0;
}

static void opening_done(struct copying *copying, int error, const struct pp_fds *copies)
{
	struct opening *o = (struct opening *)copying;
	struct request req = request_of(o);

	if (req.peer && !o->answered) {
		if (error >= 0)
			error = peer_reply(req.peer, req.header, &o->reply, copies->fd, copies->n);
		if (error == -EAGAIN && copies)
			refuse(&req, EAGAIN,
			       "Unread replies leave no room on this connection for the copies of "
			       "%s/%s; read those, and try again.",
			       o->reply.event.ns, o->reply.event.name);
		else if (error < 0)
			refuse_copies(&req, &o->reply.event, error);
	}
	opening_free(o);
}

bool request_has_opening(const struct request *req)
{
	for (const struct opening *o = req->service->openings; o; o = o->next)
		if (o->claim.peer == req->peer)
			return true;
	return false;
}

static void open_copies(struct request *req, const struct pp_msg_open_request *request)
{
	struct service *s = req->service;
	struct opening *o;

	if (request_has_opening(req) || request_has_asking(req)) {
		peer_defer(req->peer);
		return;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		refuse(req, ENOMEM, "The daemon has no memory for the request; try again.");
		return;
	}
	o->copying.uid = peer_credentials(req->peer)->uid;
	o->copying.prepare = opening_prepare;
	o->copying.done = opening_done;
	o->service = s;
	o->header = *req->header;
	o->request = *request;
	o->next = s->openings;
	o->link = &s->openings;
	if (o->next)
		o->next->link = &o->next;
	s->openings = o;
	peer_claim_begin(req->peer, &o->claim);
	copies_submit(s->copies, &o->copying);
}

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

static void open_rings(struct request *req, const struct event *e, uint32_t first)
{
	struct pp_msg_open_reply *reply = &req->service->reply.open_reply;
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	int r;

	fill_page(&e->truth, first, false, reply);
	if (!check_first(req, e, first, reply))
		return;
	r = open_page(req->service, e, reply, &fds);
	if (r < 0) {
		refuse_open(req, e, r);
		return;
	}
	describe(req, e, &reply->event);
	r = peer_reply(req->peer, req->header, reply, fds.fd, fds.n);
	if (r == -EAGAIN)
		peer_defer(req->peer);
	else if (r < 0)
		refuse_open(req, e, r);
}

void request_open(struct request *req, const struct pp_msg_open_request *request)
{
	const struct event *e;

	if (request->flags & ~PP_OPEN_COPY) {
		refuse(req, EINVAL,
		       "The request has flags (0x%x) that this daemon (" PP_VERSION
		       ") does not know; "
		       "use a client of its version.",
		       request->flags);
		return;
	}
	e = request_find_or_tape(req, &request->which, PP_RIGHT_R);
	if (!e || !request_is_made(req, e))
		return;
	if (request->flags & PP_OPEN_COPY || !request_may_hold(req, e->ns))
		open_copies(req, request);
	else
		open_rings(req, e, request->first);
}
