// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * DELETE and CHANGE: checked here, carried out by the event's life, answered when that is done.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/broker/syntax/resolve.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* With its counts as they were before. */
static bool answer_delete(struct request *r, struct pending *p, const struct event *e)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = p->service;
	uint64_t since = pp_clock_ns(CLOCK_MONOTONIC), waited;
	int err = s->forget ? s->forget(s->userdata, e, sentence, sizeof(sentence)) : 0;

	waited = pp_clock_ns(CLOCK_MONOTONIC) - since;
	if (r->peer && err < 0) {
		refuse(r, -err, "%s", sentence);
	} else if (r->peer) {
		request_describe(r, e, &p->stat, &p->service->reply.event);
		peer_reply(r->peer, r->header, &p->service->reply, NULL, 0);
	}
	peer_claim_owe(&p->claim, waited);
	return true;
}

void request_delete(struct request *r, const struct pp_msg_name *request)
{
	struct event *e = request_find(r, request, PP_RIGHT_W);
	struct pending *p;

	if (!e || !request_is_made(r, e))
		return;
	p = request_wait(r);
	if (!p)
		return;
	p->answer = answer_delete;
	event_count(r->service->registry, e, -EBADF, &p->stat);
	request_ordered(r, p, lifecycle_delete(r->service->lifecycle, e, &p->waiter),
			e->truth.spec.ns, e->truth.spec.name);
}

void request_change(struct request *r, const struct pp_msg_change_request *request)
{
	struct event *e = request_find(r, &request->which, PP_RIGHT_W);
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = r->service;
	struct pp_spec spec;
	struct pending *p;
	int err;

	if (!e || !request_is_made(r, e))
		return;
	err = resolve_change(request, s->config->max_buffer, &spec, &s->parsed, sentence,
			     sizeof(sentence));
	if (err < 0) {
		refuse(r, -err, "%s", sentence);
		return;
	}
	if (request->what & PP_CHANGE_BUFFER &&
	    !policy_may_resize(peer_credentials(r->peer), e->creator)) {
		refuse(r, EACCES,
		       "Only root and user %u, who created %s/%s, may give it other buffers: they "
		       "are charged to that user.",
		       e->creator, e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	p = request_wait(r);
	if (!p)
		return;
	err = lifecycle_change(s->lifecycle, e, request->what, &spec, &s->parsed, &p->waiter);
	request_ordered(r, p, err, e->truth.spec.ns, e->truth.spec.name);
}
