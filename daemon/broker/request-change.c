// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CREATE and DELETE: checked here, carried out by the event's life, answered when that is
 * done, if the peer is still there then.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/machine.h"
#include "daemon/broker/request-internal.h"
#include "daemon/broker/specify.h"
#include "proto/macro.h"

struct pending {
	struct waiter waiter; /* first: a waiter of ours is a pending request */
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
	struct tree_stat stat; /* DELETE: as it was before */
};

static void pending_done(struct waiter *waiter, const struct outcome *outcome)
{
	struct pending *p = (struct pending *)waiter;
	struct request r = {
		.service = p->service,
		.peer = p->claim.peer,
		.header = &p->header,
	};

	if (!r.peer) {
		free(p);
		return;
	}
	if (outcome->error) {
		refuse(&r, outcome->error, "%s", outcome->sentence);
	} else if (p->header.opcode == PP_OP_DELETE) {
		event_describe(outcome->event, &p->stat, &p->service->reply.event);
		peer_reply(r.peer, r.header, &p->service->reply, NULL, 0);
	} else {
		request_reply_event(&r, outcome->event);
	}
	peer_claim_end(&p->claim);
	free(p);
}

static struct pending *pending_new(struct request *r)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->waiter.done = pending_done;
	p->service = r->service;
	p->header = *r->header;
	peer_claim_begin(r->peer, &p->claim);
	return p;
}

static void pending_cancel(struct pending *p)
{
	peer_claim_end(&p->claim);
	free(p);
}

static void refuse_order(struct request *r, int err, const char *ns, const char *name)
{
	switch (err) {
	case -EEXIST:
		refuse(r, EEXIST,
		       "There is an event %s/%s already; delete it first, or take another name.",
		       ns, name);
		break;
	case -EALREADY:
		refuse(r, EBUSY, "%s/%s is being deleted already.", ns, name);
		break;
	case -EAGAIN:
		refuse(r, EAGAIN,
		       "The engine, which creates and deletes events, is not running just now; "
		       "look at the daemon's log, and try again.");
		break;
	default:
		refuse(r, -err, "The daemon cannot handle the request for %s/%s: %s.", ns, name,
		       strerror(-err));
	}
}

/* Whether the peer may create there; sets whose the event will be. */
static bool take_namespace(struct request *r, struct pp_spec *spec)
{
	const struct config *config = r->service->config;
	const struct credentials *c = peer_credentials(r->peer);
	const struct namespace *ns = registry_namespace(&r->service->lifecycle->registry, spec->ns);

	if (ns) {
		spec->owner = ns->owner;
		spec->group = ns->group;
		spec->mode = ns->mode;
		return request_may(r, ns, PP_RIGHT_W);
	}
	spec->owner = c->uid;
	spec->group = config->ns_group;
	spec->mode = NAMESPACE_MODE;
	if (policy_may_make_namespace(c, config->makers, config->ns_group))
		return true;
	refuse(r, EACCES,
	       "There is no namespace '%s', and user %u may not make one; ask the administrator to "
	       "put it, or another CreateNamespaces=, into perfpersistd.conf.",
	       spec->ns, c->uid);
	return false;
}

static bool check_room(struct request *r)
{
	if (r->service->lifecycle->registry.n_events < r->service->config->max_events)
		return true;
	refuse(r, EDQUOT,
	       "There are %" PRIu64 " events, which is this daemon's limit; delete some, or have "
	       "MaxEvents= raised.",
	       r->service->config->max_events);
	return false;
}

void request_create(struct request *r, const struct pp_msg_create_request *request)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct pending *pending;
	struct machine machine;
	struct pp_spec spec;
	int err;

	if (!request_is_synced(r))
		return;
	err = machine_read(&machine);
	if (err < 0) {
		refuse(r, EIO, "The daemon cannot find out which CPUs there are: %s.",
		       strerror(-err));
		return;
	}
	err = specify(request, &machine, r->service->config->max_buffer, &spec, sentence,
		      sizeof(sentence));
	if (err < 0) {
		refuse(r, -err, "%s", sentence);
		return;
	}
	if (!take_namespace(r, &spec) || !check_room(r))
		return;
	pending = pending_new(r);
	err = pending ? lifecycle_create(r->service->lifecycle, &spec, &pending->waiter) : -ENOMEM;
	if (err < 0) {
		if (pending)
			pending_cancel(pending);
		refuse_order(r, err, spec.ns, spec.name);
	}
}

void request_delete(struct request *r, const struct pp_msg_name *request)
{
	struct event *e = request_find(r, request, PP_RIGHT_W);
	struct pending *pending;
	int err;

	if (!e || !request_is_made(r, e))
		return;
	pending = pending_new(r);
	if (pending)
		event_count(r->service->registry, e, &pending->stat);
	err = pending ? lifecycle_delete(r->service->lifecycle, e, &pending->waiter) : -ENOMEM;
	if (err < 0) {
		if (pending)
			pending_cancel(pending);
		refuse_order(r, err, e->truth.spec.ns, e->truth.spec.name);
	}
}
