// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CLAIM: an event becomes a process's own. The peer gets the descriptors that keep the event alive, page by
 * page, while it stays ours; when it has all of them it says so, and the event is forgotten. Whoever dies
 * before that leaves it with us.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/packet.h"

static bool may_claim(struct request *req, const struct event *e)
{
	const struct credentials *c = peer_credentials(req->peer);
	const struct pp_event *t = &e->truth;
	bool adopted = t->spec.flags & PP_EVENT_ADOPTED;

	/* The end of the claim, and who looks for it, name the event by its id, which readers may. */
	if (!request_may(req, e->ns, PP_RIGHT_R))
		return false;
	if (policy_may_claim(c, e->creator, adopted, t->recorder == PP_RECORDER_GENERIC) &&
	    request_may_hold(req, e->ns))
		return true;
	refuse(req, EACCES,
	       "User %u may not claim %s/%s: who may have live rings claims the sampling events that "
	       "were adopted from him; root claims any.",
	       c->uid, t->spec.ns, t->spec.name);
	return false;
}

static bool can_be_claimed(struct request *req, const struct event *e)
{
	const struct pp_event *t = &e->truth;

	if (t->spec.flags & (PP_EVENT_TRIGGER | PP_EVENT_PROGRAM))
		refuse(req, EOPNOTSUPP,
		       "%s/%s is a trigger, or has a BPF program of its creator's, and cannot be "
		       "claimed; delete it instead.",
		       t->spec.ns, t->spec.name);
	else if (t->spec.flags & PP_EVENT_AUX)
		refuse(req, EOPNOTSUPP,
		       "%s/%s traces into AUX areas, which only the keeper has, and cannot be claimed; "
		       "delete it instead.",
		       t->spec.ns, t->spec.name);
	else if (t->paused)
		refuse(req, EBUSY,
		       "%s/%s is paused, and nobody could resume it any more; resume it, and claim "
		       "it then.",
		       t->spec.ns, t->spec.name);
	else if (t->now & (PP_NOW_ARMED | PP_NOW_TURNED | PP_NOW_CLOSING))
		refuse(req, EBUSY,
		       "%s/%s is the target of a trigger; remove that, or save what it has frozen, "
		       "and claim the event then.",
		       t->spec.ns, t->spec.name);
	else
		return true;
	return false;
}

/* ── pages ──────────────────────────────────────────────────────────────────────────────── */

static void describe(struct request *req, const struct event *e, const struct tree_stat *stat,
		     uint32_t total)
{
	struct pp_msg_claim_reply *reply = &req->service->reply.claim_reply;

	*reply = (struct pp_msg_claim_reply){ .total = total };
	request_describe(req, e, stat, &reply->event);
	PP_CPUMASK_FOREACH(cpu, &e->truth.rings)
	reply->rings++;
	reply->rings += e->truth.catalog_size > 0;
}

static bool answer_page(struct request *req, struct pending *p, const struct event *e)
{
	struct pp_fds *fds = p->data;
	int r;

	if (req->peer) {
		event_count(p->service->registry, e, &p->service->totals, &p->stat);
		describe(req, e, &p->stat, p->count);
		r = peer_reply(req->peer, req->header, &p->service->reply, fds->fd, fds->n);
		if (r < 0)
			refuse(req, EAGAIN,
			       "Unread replies leave no room on this connection for descriptors, or "
			       "too many are in flight; read those, and try again.");
	}
	pp_fds_close(fds);
	return true;
}

static void hand_out(struct request *req, struct event *e, uint32_t first, struct pending *p)
{
	struct pp_fds *fds = calloc(1, sizeof(*fds));
	int r = -ENOMEM;

	p->answer = answer_page;
	p->data = fds;
	if (fds)
		r = lifecycle_hand_out(req->service->lifecycle, e, first, fds, &p->waiter);
	request_ordered(req, p, r, e->truth.spec.ns, e->truth.spec.name);
}

/* ── the end ────────────────────────────────────────────────────────────────────────────── */

static bool answer_done(struct request *req, struct pending *p, const struct event *e)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = p->service;
	uint64_t since = pp_clock_ns(CLOCK_MONOTONIC), waited;
	int r = s->forget ? s->forget(s->userdata, e, sentence, sizeof(sentence)) : 0;

	waited = pp_clock_ns(CLOCK_MONOTONIC) - since;
	if (r < 0) /* the event is the peer's all the same */
		log_warning("%s", sentence);
	if (req->peer) {
		describe(req, e, &p->stat, 0);
		peer_reply(req->peer, req->header, &s->reply, NULL, 0);
	}
	peer_claim_owe(&p->claim, waited);
	return true;
}

static void give_back(struct request *req, struct event *e, struct pending *p)
{
	p->answer = answer_done;
	event_count(req->service->registry, e, &req->service->totals, &p->stat);
	request_ordered(req, p, lifecycle_give_back(req->service->lifecycle, e, &p->waiter),
			e->truth.spec.ns, e->truth.spec.name);
}

void request_claim(struct request *req, const struct pp_msg_claim_request *request)
{
	struct event *e = request_find(req, &request->which, PP_RIGHT_W);
	struct pending *p;

	if (!e || !request_is_made(req, e) || !may_claim(req, e) || !can_be_claimed(req, e))
		return;
	if (request->done && !request->which.id) {
		refuse(req, EINVAL,
		       "A claim ends with the event's id: another event may have its name by now.");
		return;
	}
	if (!request->done && request->first == 0)
		e->claimer = peer_number(req->peer);
	if (e->claimer != peer_number(req->peer) ||
	    (request->done && request->set != e->truth.set)) {
		refuse(req, EAGAIN,
		       "%s/%s has changed during the claim, or somebody else claims it, too; nothing "
		       "was changed, try again.",
		       e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	p = request_wait(req);
	if (!p)
		return;
	if (request->done)
		give_back(req, e, p);
	else
		hand_out(req, e, request->first, p);
}
