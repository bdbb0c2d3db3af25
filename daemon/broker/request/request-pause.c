// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PAUSE: an event, or all events of a namespace, one order after the other, answered when all are
 * done. Pausing an event pauses all its names; a second name cannot be paused.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

static void reply(struct request *req, uint32_t count)
{
	struct pp_msg_pause_reply *body = &req->service->reply.pause_reply;

	*body = (struct pp_msg_pause_reply){ .count = count };
	peer_reply(req->peer, req->header, body, NULL, 0);
}

/* ── one event ──────────────────────────────────────────────────────────────────────────── */

static bool answer_one(struct request *req, struct pending *p, const struct event *e _unused_)
{
	if (req->peer)
		reply(req, p->count);
	return true;
}

static void pause_one(struct request *req, const struct pp_msg_pause_request *request)
{
	struct event *e = request_find(req, &request->which, PP_RIGHT_W);
	struct pending *p;

	if (!e || !request_is_made(req, e))
		return;
	p = request_wait(req);
	if (!p)
		return;
	p->answer = answer_one;
	p->count = lifecycle_is_paused(e) != (request->pause == 1);
	request_ordered(
		req, p,
		lifecycle_pause(req->service->lifecycle, e, request->pause == 1, &p->waiter),
		e->truth.spec.ns, e->truth.spec.name);
}

/* ── all of a namespace ─────────────────────────────────────────────────────────────────── */

/* The events that must change state, by id, so that changes in the meantime are noticed. */
struct batch {
	struct waiter waiter; /* first: a waiter of ours is a batch */
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
	char ns[PP_NAME_SIZE];
	bool pause;
	size_t n, next;
	int error; /* from the first failure, with its message */
	char sentence[PP_SENTENCE_SIZE];
	uint64_t ids[];
};

static struct lifecycle *lifecycle_of(const struct batch *b)
{
	return b->service->lifecycle;
}

static void note(struct batch *b, int error, const char *sentence)
{
	if (b->error)
		return;
	b->error = error;
	snprintf(b->sentence, sizeof(b->sentence), "%s", sentence);
}

static void finish(struct batch *b)
{
	struct request req = {
		.service = b->service,
		.peer = b->claim.peer,
		.header = &b->header,
	};
	uint32_t count = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct event *e = registry_by_id(&lifecycle_of(b)->registry, b->ids[i]);

		count += e && e->truth.paused == b->pause;
	}
	if (req.peer && b->error)
		refuse(&req, b->error, "%u of %zu events of %s were %s: %.*s", count, b->n, b->ns,
		       b->pause ? "paused" : "resumed",
		       (int)sizeof(b->sentence) - PP_NAME_SIZE - 64, b->sentence);
	else if (req.peer)
		reply(&req, count);
	peer_claim_end(&b->claim);
	free(b);
}

/* Explains why a second name is skipped, unless its event is in this namespace too. */
static void pass_over(struct batch *b, struct event *e)
{
	const struct event *target = lifecycle_target(lifecycle_of(b), e);
	char sentence[PP_SENTENCE_SIZE];

	if (!target || target->ns == e->ns)
		return;
	snprintf(sentence, sizeof(sentence),
		 "%s shares the rings of %s/%s, and is paused and resumed with that.",
		 e->truth.spec.name, target->truth.spec.ns, target->truth.spec.name);
	note(b, EBUSY, sentence);
}

/* Orders the next event. false: there is none. */
static bool order_next(struct batch *b)
{
	struct request req = { .service = b->service };
	char sentence[PP_SENTENCE_SIZE];

	while (b->next < b->n) {
		struct event *e = registry_by_id(&lifecycle_of(b)->registry, b->ids[b->next++]);
		int r;

		if (!e || e->truth.paused == b->pause)
			continue;
		if (e->truth.shares) {
			pass_over(b, e);
			continue;
		}
		r = lifecycle_pause(lifecycle_of(b), e, b->pause, &b->waiter);
		if (r == 0)
			return true;
		if (r == -EALREADY) /* it is being deleted anyway */
			continue;
		request_explain(&req, r, e->truth.spec.ns, e->truth.spec.name, sentence,
				sizeof(sentence));
		note(b, request_error(r), sentence);
	}
	return false;
}

static void batch_done(struct waiter *waiter, const struct outcome *outcome)
{
	struct batch *b = (struct batch *)waiter;

	if (outcome->error)
		note(b, outcome->error, outcome->sentence);
	if (!order_next(b))
		finish(b);
}

static struct batch *batch_new(struct request *req, const struct namespace *ns, bool pause)
{
	const struct registry *registry = &req->service->lifecycle->registry;
	struct batch *b = calloc(1, sizeof(*b) + ns->n_events * sizeof(b->ids[0]));

	if (!b)
		return NULL;
	for (size_t i = 0; i < registry->n_settled; i++) {
		const struct event *e = registry->by_id[i];

		if (e->ns == ns && e->truth.paused != pause)
			b->ids[b->n++] = e->truth.id;
	}
	b->waiter.done = batch_done;
	b->waiter.uid = peer_credentials(req->peer)->uid;
	b->service = req->service;
	b->header = *req->header;
	b->pause = pause;
	memcpy(b->ns, ns->name, sizeof(b->ns));
	return b;
}

static void pause_namespace(struct request *req, const struct pp_msg_pause_request *request)
{
	const struct namespace *ns;
	struct batch *b;

	if (!request_is_synced(req))
		return;
	ns = registry_namespace(&req->service->lifecycle->registry, request->which.ns);
	if (!ns) {
		refuse(req, ENOENT,
		       "There is no namespace '%s'; `perfctl list` shows those there are.",
		       request->which.ns);
		return;
	}
	if (!request_may(req, ns, PP_RIGHT_W))
		return;
	b = batch_new(req, ns, request->pause == 1);
	if (!b) {
		refuse(req, ENOMEM, "The daemon has no memory for the request; try again.");
		return;
	}
	peer_claim_begin(req->peer, &b->claim);
	if (!order_next(b))
		finish(b);
}

void request_pause(struct request *req, const struct pp_msg_pause_request *request)
{
	if (request->pause > 1 || request->reserved)
		refuse(req, EINVAL,
		       "The request has fields that this version does not know; use a "
		       "client of the same version.");
	else if (!request->which.id && request->which.ns[0] && !request->which.name[0])
		pause_namespace(req, request);
	else
		pause_one(req, request);
}
