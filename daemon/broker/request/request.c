// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests: finds their subjects and checks rights; handles those that only ask. Must not know
 * sockets: peer.c moves packets and descriptors.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/broker/syntax/machine.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

/* ── finding, with rights ───────────────────────────────────────────────────────────────── */

static const char *verb_of(enum pp_right right)
{
	return right == PP_RIGHT_W ? "create, change or delete in" : "read";
}

bool request_may(struct request *r, const struct namespace *ns, enum pp_right right)
{
	const struct credentials *c = peer_credentials(r->peer);

	if (policy_allows(c, ns, right))
		return true;
	refuse(r, EACCES,
	       "User %u may not %s the namespace %s, whose owner is %u, group %u, mode %04o; "
	       "ask for membership of that group, or its owner.",
	       c->uid, verb_of(right), ns->name, ns->owner, ns->group, ns->mode);
	return false;
}

bool request_is_synced(struct request *r)
{
	if (r->service->lifecycle->synced)
		return true;
	refuse(r, EAGAIN,
	       "The engine has not started yet, so it is not known which events there are; look at "
	       "the daemon's log, and try again.");
	return false;
}

/* One sentence for what is not there and what the peer may not read: ids count up. */
static void refuse_id(struct request *r, uint64_t id)
{
	refuse(r, ENOENT,
	       "There is no event with the id %" PRIu64
	       " that you may read; `perfctl list` shows those there are.",
	       id);
}

/* Finds the event and checks the peer's right on it; else refuses and returns NULL. */
struct event *request_find(struct request *r, const struct pp_msg_name *which, enum pp_right right)
{
	const struct registry *registry = &r->service->lifecycle->registry;
	const struct namespace *ns;
	struct event *e;

	if (!request_is_synced(r))
		return NULL;
	if (which->id) {
		if (which->ns[0] || which->name[0]) {
			refuse(r, EINVAL, "Name an event by its id or by its name, not by both.");
			return NULL;
		}
		e = registry_by_id(registry, which->id);
		if (e && !policy_allows(peer_credentials(r->peer), e->ns, PP_RIGHT_R))
			e = NULL;
		if (!e)
			refuse_id(r, which->id);
		return e && request_may(r, e->ns, right) ? e : NULL;
	}
	ns = registry_namespace(registry, which->ns);
	if (!ns) {
		refuse(r, ENOENT,
		       "There is no namespace '%s', and so no event '%s' in it; `perfctl list` "
		       "shows those there are.",
		       which->ns, which->name);
		return NULL;
	}
	/* Rights first: a peer that may not read a namespace must not learn the names in it. */
	if (!request_may(r, ns, right))
		return NULL;
	e = registry_by_name(registry, which->ns, which->name);
	if (!e)
		refuse(r, ENOENT,
		       "There is no event '%s' in the namespace %s; `perfctl list %s` shows those "
		       "there are.",
		       which->name, which->ns, which->ns);
	return e;
}

struct event *request_find_or_tape(struct request *r, const struct pp_msg_name *which,
				   enum pp_right right)
{
	const struct lifecycle *l = r->service->lifecycle;
	bool by_id = which->id && !which->ns[0] && !which->name[0];
	struct tape *tape = by_id ? tapes_find(&l->tapes, which->id) : NULL;

	if (!tape)
		return request_find(r, which, right);
	if (policy_allows(peer_credentials(r->peer), lifecycle_tape_ns(l, tape), right))
		return &tape->event;
	refuse_id(r, which->id);
	return NULL;
}

/* Until the engine has made the event, only its name is reserved. */
bool request_is_made(struct request *r, const struct event *e)
{
	if (e->state != PP_EVENT_CREATING)
		return true;
	refuse(r, EBUSY, "%s/%s is still being created; try again when it is there.",
	       e->truth.spec.ns, e->truth.spec.name);
	return false;
}

bool request_may_hold(struct request *r, const struct namespace *ns)
{
	const struct credentials *c = peer_credentials(r->peer);

	if (c->uid != 0 && r->bpf == REQUEST_BPF_UNASKED)
		r->bpf = machine_unprivileged_bpf() ? REQUEST_BPF_OPEN : REQUEST_BPF_CLOSED;
	return policy_may_hold_rings(c, ns, r->bpf == REQUEST_BPF_OPEN);
}

void request_describe(struct request *r, const struct event *e, const struct tree_stat *stat,
		      struct pp_msg_event *ret)
{
	event_describe(e, stat, ret);
	event_describe_cpus(r->service->lifecycle, e, &r->service->hotplug->online, ret);
	if (!request_may_hold(r, e->ns))
		ret->flags |= PP_EVENT_COPIES;
}

void request_reply_event(struct request *r, const struct event *e)
{
	struct tree_stat stat;

	event_count(r->service->registry, e, &r->service->totals, &stat);
	request_describe(r, e, &stat, &r->service->reply.event);
	peer_reply(r->peer, r->header, &r->service->reply, NULL, 0);
}

/* ── PING, LIST, SHOW ───────────────────────────────────────────────────────────────────── */

static void handle_ping(struct request *r)
{
	struct service *s = r->service;
	struct pp_msg_ping_reply *reply = &s->reply.ping_reply;

	*reply = (struct pp_msg_ping_reply){
		.version = PP_PROTOCOL_VERSION,
		.pid = getpid(),
		.engine_pid = orders_engine_pid(s->lifecycle->orders),
		.events = s->lifecycle->registry.n_settled,
		.started = s->started,
		.release = PP_VERSION,
	};
	if (pp_copy_text(reply->instance, sizeof(reply->instance), s->instance) < 0)
		log_debug("The instance's name does not fit.");
	peer_reply(r->peer, r->header, reply, NULL, 0);
}

bool request_may_list(struct request *r, const char *name, const struct namespace **ret)
{
	*ret = NULL;
	if (!request_is_synced(r))
		return false;
	if (!*name)
		return true;
	*ret = registry_namespace(&r->service->lifecycle->registry, name);
	if (*ret)
		return request_may(r, *ret, PP_RIGHT_R);
	refuse(r, ENOENT, "There is no namespace '%s'; `perfctl list` shows those there are.",
	       name);
	return false;
}

static void handle_list(struct request *r, const struct pp_msg_list_request *request)
{
	struct service *s = r->service;
	const struct registry *registry = &s->lifecycle->registry;
	struct pp_msg_list_reply *reply = &s->reply.list_reply;
	const struct namespace *only = NULL;

	if (!request_may_list(r, request->ns, &only))
		return;
	reply->count = 0;
	reply->more = 0;
	for (size_t i = registry_after(registry, request->after); i < registry->n_settled; i++) {
		const struct event *e = registry->by_id[i];
		struct tree_stat stat;

		if (only && e->ns != only)
			continue;
		if (!only && !policy_allows(peer_credentials(r->peer), e->ns, PP_RIGHT_R))
			continue;
		if (reply->count == PP_LIST_MAX) {
			reply->more = 1;
			break;
		}
		event_count(s->registry, e, &s->totals, &stat);
		request_describe(r, e, &stat, &reply->events[reply->count++]);
	}
	peer_reply(r->peer, r->header, reply, NULL, 0);
}

static void handle_show(struct request *r, const struct pp_msg_name *request)
{
	const struct event *e = request_find_or_tape(r, request, PP_RIGHT_R);

	if (e && request_is_made(r, e))
		request_reply_event(r, e);
}

/* ── RELOAD ─────────────────────────────────────────────────────────────────────────────── */

static void handle_reload(struct request *r)
{
	struct service *s = r->service;

	if (peer_credentials(r->peer)->uid != 0)
		refuse(r, EACCES, "Only root may reload the configuration.");
	else if (!s->reload)
		refuse(r, EOPNOTSUPP,
		       "This daemon reads its configuration when it starts and not again; restart "
		       "it, which costs no event a record.");
	else
		s->reload(s->userdata, r->peer, r->header);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

void request_handle(void *userdata, struct peer *peer, const struct pp_header *header,
		    const union pp_body *body)
{
	struct request r = { .service = userdata, .peer = peer, .header = header };

	switch ((enum pp_op)header->opcode) {
	case PP_OP_PING:
		handle_ping(&r);
		break;
	case PP_OP_LIST:
		handle_list(&r, &body->list_request);
		break;
	case PP_OP_SHOW:
		handle_show(&r, &body->name);
		break;
	case PP_OP_CREATE:
		request_create(&r, &body->create_request);
		break;
	case PP_OP_DELETE:
		request_delete(&r, &body->name);
		break;
	case PP_OP_OPEN:
		request_open(&r, &body->open_request);
		break;
	case PP_OP_CHANGE:
		request_change(&r, &body->change_request);
		break;
	case PP_OP_PAUSE:
		request_pause(&r, &body->pause_request);
		break;
	case PP_OP_LIMITS:
		request_limits(&r, &body->limits_request);
		break;
	case PP_OP_WATCH:
		request_watch(&r, &body->watch_request);
		break;
	case PP_OP_WAKEUP:
		request_wakeup(&r, &body->name);
		break;
	case PP_OP_RELOAD:
		handle_reload(&r);
		break;
	case PP_OP_CPUS:
		request_cpus(&r, &body->cpus_request);
		break;
	case PP_OP_SIDEBAND:
		request_sideband(&r, &body->sideband_request);
		break;
	case PP_OP_AUXTRACE:
		request_auxtrace(&r, &body->auxtrace_request);
		break;
	case PP_OP_TRIGGER:
		request_trigger(&r, &body->trigger_request);
		break;
	case PP_OP_TRIGGERS:
		request_triggers(&r, &body->list_request);
		break;
	case PP_OP_FIRE:
		request_fire(&r, &body->name);
		break;
	case PP_OP_TAPES:
		request_tapes(&r, &body->list_request);
		break;
	case PP_OP_RELEASE:
		request_release(&r, &body->name);
		break;
	case PP_OP_ADOPT:
		request_adopt(&r, &body->create_request);
		break;
	case PP_OP_ATTACH:
		request_attach(&r, &body->attach_request);
		break;
	case PP_OP_CLAIM:
		request_claim(&r, &body->claim_request);
		break;
	case PP_OP_DESCRIPTORS:
		request_descriptors(&r, &body->name);
		break;
	}
}
