// SPDX-License-Identifier: LGPL-2.1-or-later
/* DELETE and CHANGE: checked here, carried out by the lifecycle, answered at completion. */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/broker/syntax/resolve.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* Reports the counts from before the deletion. */
static bool answer_delete(struct request *req, struct pending *p, const struct event *e)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = p->service;
	uint64_t since = pp_clock_ns(CLOCK_MONOTONIC), waited;
	int r = s->forget ? s->forget(s->userdata, e, sentence, sizeof(sentence)) : 0;

	waited = pp_clock_ns(CLOCK_MONOTONIC) - since;
	if (req->peer && r < 0) {
		refuse(req, -r, "%s", sentence);
	} else if (req->peer) {
		request_describe(req, e, &p->stat, &p->service->reply.event);
		peer_reply(req->peer, req->header, &p->service->reply, NULL, 0);
	}
	peer_claim_owe(&p->claim, waited);
	return true;
}

/* A creation is waited for; but an adoption can be left by its peer for ever. */
void request_delete(struct request *req, const struct pp_msg_name *request)
{
	struct event *e = request_find(req, request, PP_RIGHT_W);
	struct lifecycle *l = req->service->lifecycle;
	struct pending *p;
	int r;

	if (!e || (!lifecycle_is_waiting(l, e) && !request_is_made(req, e)))
		return;
	p = request_wait(req);
	if (!p)
		return;
	p->answer = answer_delete;
	event_count(req->service->registry, e, &req->service->totals, &p->stat);
	r = lifecycle_is_waiting(l, e) ? lifecycle_abandon(l, e, &p->waiter)
				       : lifecycle_delete(l, e, &p->waiter);
	request_ordered(req, p, r, e->truth.spec.ns, e->truth.spec.name);
}

/* To the event's creator. */
#define CHARGED (PP_CHANGE_BUFFER | PP_CHANGE_CHECKPOINT | PP_CHANGE_PERIOD)

void request_change(struct request *req, const struct pp_msg_change_request *request)
{
	struct event *e = request_find(req, &request->which, PP_RIGHT_W);
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = req->service;
	struct machine machine = {};
	struct pp_spec spec;
	struct pending *p;
	int r;

	if (!e || !request_is_made(req, e))
		return;
	if (request->what & CHARGED &&
	    !policy_may_resize(peer_credentials(req->peer), e->creator)) {
		refuse(req, EACCES,
		       "Only root and user %u, who created %s/%s, may give it other buffers, "
		       "checkpoints or sampling rates: they are charged to that user.",
		       e->creator, e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	if (e->truth.spec.flags & PP_EVENT_AUX) {
		refuse(req, EOPNOTSUPP,
		       "%s/%s traces into AUX areas, which cannot be changed while it does; delete it "
		       "and create it anew.",
		       e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	r = request->what & PP_CHANGE_PERIOD ? machine_read(&machine) : 0;
	if (r < 0) {
		refuse(req, EIO, "The daemon cannot find out what this machine allows: %s.",
		       strerror(-r));
		return;
	}
	r = resolve_change(request, &e->truth.spec, &machine, s->config->max_buffer, &spec,
			   &s->parsed, sentence, sizeof(sentence));
	if (r < 0) {
		refuse(req, -r, "%s", sentence);
		return;
	}
	p = request_wait(req);
	if (!p)
		return;
	r = lifecycle_change(s->lifecycle, e, request->what, &spec, &s->parsed, &p->waiter);
	request_ordered(req, p, r, e->truth.spec.ns, e->truth.spec.name);
}
