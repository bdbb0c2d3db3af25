// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests that are answered when their order completes, if the peer is still there. Must not know
 * the kind of order.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

static void pending_free(struct pending *p)
{
	peer_claim_end(&p->claim);
	free(p->data);
	free(p);
}

static void pending_done(struct waiter *waiter, const struct outcome *outcome)
{
	struct pending *p = (struct pending *)waiter;
	struct request r = {
		.service = p->service,
		.peer = p->claim.peer,
		.header = &p->header,
	};
	bool ended = true;

	if (outcome->total)
		p->count = outcome->total;
	if (outcome->error && r.peer)
		refuse(&r, outcome->error, "%s", outcome->sentence);
	else if (!outcome->error && p->answer)
		ended = p->answer(&r, p, outcome->event);
	else if (!outcome->error && r.peer)
		request_reply_event(&r, outcome->event);
	if (ended)
		pending_free(p);
}

void request_go_on(struct pending *p, const struct outcome *outcome)
{
	if (outcome)
		pending_done(&p->waiter, outcome);
	else
		pending_free(p);
}

struct pending *request_wait(struct request *r)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p) {
		refuse(r, ENOMEM, "The daemon has no memory for the request; try again.");
		return NULL;
	}
	p->waiter.done = pending_done;
	p->waiter.uid = peer_credentials(r->peer)->uid;
	p->service = r->service;
	p->header = *r->header;
	peer_claim_begin(r->peer, &p->claim);
	return p;
}

void request_explain(const struct request *r, int err, const char *ns, const char *name, char *buf,
		     size_t size)
{
	lifecycle_explain(r->service->lifecycle, err, ns, name, buf, size);
}

int request_error(int err)
{
	return err == -EALREADY || err == -EMLINK || err == -ENOTEMPTY ? EBUSY : -err;
}

void request_ordered(struct request *r, struct pending *p, int err, const char *ns,
		     const char *name)
{
	char sentence[PP_SENTENCE_SIZE];

	if (err >= 0)
		return;
	request_explain(r, err, ns, name, sentence, sizeof(sentence));
	refuse(r, request_error(err), "%s", sentence);
	pending_free(p);
}
