// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ADOPT and ATTACH: an event on perf events that the peer has opened. The engine makes a draft of it, whose
 * program the peer attaches to its perf events; then it sends the links' ids. The draft goes with the
 * peer. No descriptor comes from the peer.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/packet.h"

/* A user's, at a time: each holds descriptors in the engine. */
#define ADOPTIONS_MAX 8

struct adoption {
	struct peer_guest guest; /* first: a guest of ours is an adoption */
	struct adoption *next, **link;
	struct service *service;
	struct pp_fds fds; /* the program, until it is sent */
	uint64_t id;
	char ns[PP_NAME_SIZE], name[PP_NAME_SIZE];
};

/* NULL: it has become an event, or has failed. */
static struct event *event_of(const struct adoption *a)
{
	return lifecycle_adoption(a->service->lifecycle, a->ns, a->name, a->id);
}

static void unlink_adoption(struct adoption *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	free(a);
}

/* Nobody waits for it. */
static void abandon(struct lifecycle *l, struct event *e)
{
	int r = lifecycle_abandon(l, e, NULL);

	if (r < 0 && r != -EBUSY) /* that: the order's waiter does it */
		log_warning("The draft of %s/%s stays until the daemon is restarted: %s.",
			    e->truth.spec.ns, e->truth.spec.name, strerror(-r));
}

static void on_gone(struct peer_guest *guest)
{
	struct adoption *a = (struct adoption *)guest;
	struct event *e = event_of(a);

	if (e)
		abandon(a->service->lifecycle, e);
	unlink_adoption(a);
}

static void forget_ended(struct service *s)
{
	struct adoption *a, *next;

	for (a = s->adoptions; a; a = next) {
		next = a->next;
		if (event_of(a))
			continue;
		peer_detach(&a->guest);
		unlink_adoption(a);
	}
}

/* ── ADOPT ──────────────────────────────────────────────────────────────────────────────── */

static void remember(struct service *s, struct peer *peer, struct adoption *a)
{
	a->guest.gone = on_gone;
	peer_attach(peer, &a->guest);
	a->next = s->adoptions;
	a->link = &s->adoptions;
	if (a->next)
		a->next->link = &a->next;
	s->adoptions = a;
}

/* 0; -errno: the program was not sent. */
static int send_program(struct request *req, struct adoption *a)
{
	struct pp_msg_adopt_reply *reply = &a->service->reply.adopt_reply;
	int r = -EPIPE;

	*reply = (struct pp_msg_adopt_reply){ .adoption = a->id };
	if (req->peer)
		r = peer_reply(req->peer, req->header, &a->service->reply, a->fds.fd, 1);
	pp_fds_close(&a->fds);
	return r;
}

static bool answer_adopt(struct request *req, struct pending *p, const struct event *e)
{
	struct adoption *a = p->data;
	struct event *mine;
	int r;

	a->id = e->adoption;
	mine = event_of(a);
	r = send_program(req, a);
	if (r >= 0) {
		remember(p->service, req->peer, TAKE_PTR(a));
		p->data = NULL;
		return true;
	}
	if (req->peer)
		refuse(req, EAGAIN,
		       "Unread replies leave no room on this connection for the adoption's program, or "
		       "too many descriptors are in flight; read those, and try again.");
	if (mine)
		abandon(p->service->lifecycle, mine);
	return true;
}

static bool check_adopt(struct request *req, const struct pp_msg_create_request *request)
{
	struct service *s = req->service;
	uint32_t uid = peer_credentials(req->peer)->uid;

	forget_ended(s);
	if (request->flags & (PP_EVENT_SHARE | PP_EVENT_BOOT | PP_EVENT_PROGRAM))
		refuse(req, EINVAL,
		       "An adopted event is on perf events of its own: it shares no other's buffers, "
		       "does not return after a reboot, and takes no BPF program.");
	else if (request->target.kind)
		refuse(req, EINVAL,
		       "Whoever opened the perf events has bound them to tasks, or not; leave out the "
		       "task or cgroup.");
	else if (lifecycle_adoptions(s->lifecycle, uid) >= ADOPTIONS_MAX)
		refuse(req, EBUSY,
		       "User %u has begun %d adoptions and not ended them; end one of these first.",
		       uid, ADOPTIONS_MAX);
	else
		return true;
	return false;
}

static bool check_sources(struct request *req, const struct pp_spec *spec)
{
	const struct pp_parsed *parsed = &req->service->parsed;
	const struct credentials *c = peer_credentials(req->peer);
	bool is_tracepoint = parsed->sources[0].kind == PP_SOURCE_TRACEPOINT;

	if (parsed->n_sources != 1)
		refuse(req, EINVAL,
		       "'%.100s' are %u events, and perf events of one kind are adopted under one "
		       "name; name one.",
		       spec->event, parsed->n_sources);
	else if (!policy_may_adopt(c, is_tracepoint))
		refuse(req, EACCES,
		       "User %u may not hand over perf events of tracepoint '%.100s', which only root "
		       "may; create the event instead, it records the same.",
		       c->uid, spec->event);
	else if (!is_tracepoint && parsed->sources[0].kind != PP_SOURCE_SAMPLING)
		refuse(req, EOPNOTSUPP,
		       "'%.100s' is a probe, or traces by itself; only tracepoints and events that are counted and sampled "
		       "can be adopted. Create it instead.",
		       spec->event);
	else
		return true;
	return false;
}

void request_adopt(struct request *req, const struct pp_msg_create_request *request)
{
	struct service *s = req->service;
	struct adoption *a;
	struct pp_spec spec;
	struct pending *p;

	if (!check_adopt(req, request) || !request_resolve(req, request, NULL, false, &spec) ||
	    !check_sources(req, &spec))
		return;
	spec.flags |= PP_EVENT_ADOPTED;
	if (s->parsed.sources[0].kind == PP_SOURCE_TRACEPOINT)
		spec.flags |= PP_EVENT_GENERIC; /* the others are attached to no perf event */
	p = request_wait(req);
	if (!p)
		return;
	p->data = a = calloc(1, sizeof(*a));
	if (!a) {
		request_ordered(req, p, -ENOMEM, spec.ns, spec.name);
		return;
	}
	a->service = s;
	memcpy(a->ns, spec.ns, sizeof(a->ns));
	memcpy(a->name, spec.name, sizeof(a->name));
	p->answer = answer_adopt;
	request_ordered(req, p,
			lifecycle_adopt(s->lifecycle, &spec, &s->parsed, &a->fds, &p->waiter),
			spec.ns, spec.name);
}

/* ── ATTACH ─────────────────────────────────────────────────────────────────────────────── */

static struct event *find_adoption(struct request *req, uint64_t id)
{
	const struct peer_guest *g;
	struct event *e;

	for (g = peer_guests(req->peer); g; g = g->next) {
		if (g->gone != on_gone || ((const struct adoption *)g)->id != id)
			continue;
		e = event_of((const struct adoption *)g);
		if (e)
			return e;
	}
	refuse(req, ENOENT, "There is no adoption %" PRIu64 " on this connection; begin one.", id);
	return NULL;
}

static void reply_nothing(struct request *req)
{
	struct service *s = req->service;

	memset(&s->reply.event, 0, sizeof(s->reply.event));
	peer_reply(req->peer, req->header, &s->reply, NULL, 0);
}

/* Whether its peer is there: one that has hung up may still have replies in flight. */
static bool has_peer(const struct service *s, uint64_t id)
{
	for (const struct adoption *a = s->adoptions; a; a = a->next)
		if (a->id == id)
			return true;
	return false;
}

static bool answer_attach(struct request *req, struct pending *p, const struct event *e)
{
	struct service *s = p->service;
	struct event *mine =
		lifecycle_adoption(s->lifecycle, e->truth.spec.ns, e->truth.spec.name, e->adoption);

	if (mine && !has_peer(s, mine->adoption))
		abandon(s->lifecycle, mine);
	else if (mine && req->peer)
		reply_nothing(req);
	else if (req->peer)
		request_reply_event(req, e);
	return true;
}

static bool answer_abandoned(struct request *req, struct pending *p _unused_,
			     const struct event *e _unused_)
{
	if (req->peer)
		reply_nothing(req);
	return true;
}

/* No links: the peer gives it up. */
static void give_up(struct request *req, struct event *e)
{
	struct pending *p = request_wait(req);

	if (!p)
		return;
	p->answer = answer_abandoned;
	request_ordered(req, p, lifecycle_abandon(req->service->lifecycle, e, &p->waiter),
			e->truth.spec.ns, e->truth.spec.name);
}

void request_attach(struct request *req, const struct pp_msg_attach_request *request)
{
	struct event *e = find_adoption(req, request->adoption);
	uint64_t links[PP_LINKS_MAX];
	struct pending *p;

	if (!e)
		return;
	if (request->count == 0) {
		give_up(req, e);
		return;
	}
	for (uint32_t i = 0; i < request->count; i++)
		links[i] = request->links[i].id;
	p = request_wait(req);
	if (!p)
		return;
	p->answer = answer_attach;
	request_ordered(req, p,
			lifecycle_attach(req->service->lifecycle, e, links, request->count,
					 request->more > 0, &p->waiter),
			e->truth.spec.ns, e->truth.spec.name);
}
