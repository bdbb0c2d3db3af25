// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CREATE: checks rights first, then the text; then shares an equal running event, or orders a new
 * one.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/broker/syntax/condition.h"
#include "daemon/broker/syntax/machine.h"
#include "daemon/broker/syntax/spec.h"
#include "daemon/broker/syntax/resolve.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* ── rights ─────────────────────────────────────────────────────────────────────────────── */

/* Whether the peer may create there; sets the event's owner, group and mode. */
static bool take_namespace(struct request *req, struct pp_spec *spec)
{
	const struct config *config = req->service->config;
	const struct credentials *c = peer_credentials(req->peer);
	const struct namespace *ns =
		registry_namespace(&req->service->lifecycle->registry, spec->ns);

	spec->creator = c->uid;
	if (ns) {
		spec->owner = ns->owner;
		spec->group = ns->group;
		spec->mode = ns->mode;
		return request_may(req, ns, PP_RIGHT_W);
	}
	spec->owner = c->uid;
	spec->group = config->ns_group;
	spec->mode = NAMESPACE_MODE;
	if (policy_may(c, config->makers, config->ns_group))
		return true;
	refuse(req, EACCES,
	       "There is no namespace '%s', and user %u may not make one; ask the administrator to "
	       "put it, or another CreateNamespaces=, into perfpersistd.conf.",
	       spec->ns, c->uid);
	return false;
}

/* Checked before the text is parsed, since parsing looks at the files of probes. */
static bool may_have_sources(struct request *req, const struct pp_msg_create_request *request)
{
	const struct config *config = req->service->config;
	const struct credentials *c = peer_credentials(req->peer);

	if (policy_may(c, config->probers, config->ns_group))
		return true;
	for (uint32_t i = 0; i < request->count; i++) {
		const char *text = request->selections[i].event;

		if (!pp_spec_has_probe(text))
			continue;
		refuse(req, EACCES,
		       "'%.100s' has a probe or a breakpoint, which user %u may not set, because "
		       "they can break or slow down other users' programs; ask the administrator "
		       "to create the event, or to set Probes= in perfpersistd.conf.",
		       text, c->uid);
		return false;
	}
	return true;
}

static bool may_have_program(struct request *req, const struct pp_msg_create_request *request)
{
	const struct config *config = req->service->config;
	const struct credentials *c = peer_credentials(req->peer);

	if (!(request->flags & PP_EVENT_PROGRAM) ||
	    policy_may(c, config->programmers, config->ns_group))
		return true;
	refuse(req, EACCES,
	       "User %u may not give an event a BPF program, because it runs for all users; ask the "
	       "administrator to create the event, or to set Programs= in perfpersistd.conf.",
	       c->uid);
	return false;
}

static bool may_have_stacks(struct request *req, const struct pp_msg_create_request *request)
{
	const struct config *config = req->service->config;
	const struct credentials *c = peer_credentials(req->peer);

	if (!request->stack_user || policy_may(c, config->stack_users, config->ns_group))
		return true;
	refuse(req, EACCES,
	       "User %u may not record user stacks, because they hold what other users' programs keep "
	       "secret; ask the administrator to create the event, or to set UserStacks= in "
	       "perfpersistd.conf.",
	       c->uid);
	return false;
}

/* It takes the PMU from everybody else, too. */
static bool may_trace(struct request *req, const struct pp_spec *spec)
{
	const struct config *config = req->service->config;
	const struct credentials *c = peer_credentials(req->peer);

	if (!(spec->flags & PP_EVENT_AUX) || policy_may(c, config->tracers, config->ns_group))
		return true;
	refuse(req, EACCES,
	       "User %u may not trace with '%.100s', because such traces show each branch or access of "
	       "other users' programs and of the kernel, and keep others from the PMU; ask the "
	       "administrator to create the event, or to set AuxTraces= in perfpersistd.conf.",
	       c->uid, spec->event);
	return false;
}

static bool can_be_copied(struct request *req, const struct pp_spec *spec)
{
	uint64_t most = req->service->config->max_copies;

	if (!(spec->flags & PP_EVENT_AUX) || pp_spec_aux_copy(spec) <= most)
		return true;
	refuse(req, EDQUOT,
	       "An AUX area of %" PRIu64
	       " bytes could never be copied for a reader, who may have %" PRIu64
	       " bytes of copies; ask for less (-m), or have MaxCopies= raised.",
	       spec->data_size, most);
	return false;
}

/* ── sharing ────────────────────────────────────────────────────────────────────────────── */

/*
 * The owner of an event's namespace can pause it under all its names. Unless the client asked to
 * share with anybody (Share=yes), it shares only with root, with its own user and within a
 * namespace.
 */
static bool is_dependable(const struct request *req, struct event *e, const struct pp_spec *spec)
{
	const struct event *target = lifecycle_target(req->service->lifecycle, e);
	uint32_t uid = peer_credentials(req->peer)->uid;

	return target && (target->ns->owner == 0 || target->ns->owner == uid ||
			  strcmp(target->ns->name, spec->ns) == 0);
}

/*
 * Returns a running event that equals the request. A peer that gets copies must not reach live
 * rings through a name in its own namespace.
 */
static struct event *find_equal(struct request *req, const struct pp_spec *spec, bool asked)
{
	const struct registry *registry = &req->service->lifecycle->registry;

	for (size_t i = 0; i < registry->n_settled; i++) {
		struct event *e = registry->by_id[i];

		if (e->state == PP_EVENT_RUNNING && event_is_equal(&e->truth.spec, spec) &&
		    policy_allows(peer_credentials(req->peer), e->ns, PP_RIGHT_R) &&
		    request_may_hold(req, e->ns) && (asked || is_dependable(req, e, spec)))
			return e;
	}
	return NULL;
}

static bool is_to_share(const struct request *req, uint32_t flags)
{
	return flags & PP_EVENT_SHARE ||
	       (req->service->config->share && !(flags & PP_EVENT_NO_SHARE));
}

/* ── creating ───────────────────────────────────────────────────────────────────────────── */

/* The event could not be written down and was deleted again: gives the reason, which was kept. */
static bool answer_undone(struct request *req, struct pending *p, const struct event *e _unused_)
{
	if (req->peer)
		refuse(req, (int)p->count, "%s", (const char *)p->data);
	return true;
}

/* Deletes the event again, and gives this reason for it. True: that is answered. */
static bool undo(struct request *req, struct pending *p, const struct event *e, int error,
		 const char *sentence)
{
	struct service *s = p->service;
	char *reason = strdup(sentence);
	int undone;

	free(p->data);
	p->data = reason;
	if (!reason) {
		if (req->peer)
			refuse(req, ENOMEM, "The daemon has no memory for the request; try again.");
		return true;
	}
	p->answer = answer_undone;
	p->count = (uint32_t)error;
	undone = lifecycle_delete(s->lifecycle,
				  registry_by_id(&s->lifecycle->registry, e->truth.id), &p->waiter);
	if (undone >= 0)
		return false;
	log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name,
		  "%s/%s cannot be deleted just now, and stays: %s.", e->truth.spec.ns,
		  e->truth.spec.name, strerror(-undone));
	return answer_undone(req, p, e);
}

/* The event records. If it cannot be written down for the next boot, it is deleted again. */
static bool answer_boot(struct request *req, struct pending *p, const struct event *e)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = p->service;
	uint64_t since = pp_clock_ns(CLOCK_MONOTONIC), waited;
	int r = s->boot(s->userdata, e, p->data, sentence, sizeof(sentence));

	waited = pp_clock_ns(CLOCK_MONOTONIC) - since;
	if (r >= 0 && req->peer)
		request_reply_event(req, e);
	peer_claim_owe(&p->claim, waited);
	return r >= 0 || undo(req, p, e, -r, sentence);
}

/* The areas of the event that was created are there, or cannot be. */
static void traced(struct aux_wait *wait, int error, const char *sentence)
{
	struct pending *p = (struct pending *)((char *)wait - offsetof(struct pending, aux));
	struct registry *registry = &p->service->lifecycle->registry;
	struct event *e = registry_by_id(registry, p->created);
	struct outcome outcome = { .error = error, .sentence = sentence, .event = e };
	struct request req = {
		.service = p->service,
		.peer = p->claim.peer,
		.header = &p->header,
	};

	if (error && e) {
		if (undo(&req, p, e, error, sentence))
			request_go_on(p, NULL);
		return;
	}
	if (!e) {
		outcome.error = ENOENT;
		outcome.sentence = "The event has been deleted meanwhile.";
	}
	request_go_on(p, &outcome);
}

/* The event is there. The reply comes when it traces. */
static bool answer_aux(struct request *req _unused_, struct pending *p, const struct event *e)
{
	struct event *owner = lifecycle_target(p->service->lifecycle, (struct event *)e);

	p->answer = p->then;
	p->created = e->truth.id;
	p->aux.id = owner ? owner->truth.id : e->truth.id;
	p->aux.done = traced;
	auxtrace_wait(p->service->auxtrace, &p->aux);
	return false;
}

/* Waits for the order. With --boot, keeps a copy of the request. */
static struct pending *wait_for_it(struct request *req, const struct pp_msg_create_request *request)
{
	struct pending *p = request_wait(req);

	if (!p || !(request->flags & PP_EVENT_BOOT))
		return p;
	p->data = malloc(sizeof(*request));
	if (!p->data) {
		request_ordered(req, p, -ENOMEM, request->ns, request->name);
		return NULL;
	}
	memcpy(p->data, request, sizeof(*request));
	p->answer = answer_boot;
	return p;
}

static void create(struct request *req, const struct pp_msg_create_request *request,
		   const struct pp_spec *spec, const struct pp_trigger_spec *trigger)
{
	struct service *s = req->service;
	bool asked = request->flags & PP_EVENT_SHARE;
	bool alone = trigger || spec->flags & (PP_EVENT_PROGRAM | PP_EVENT_BOUND);
	struct event *equal =
		!alone && is_to_share(req, request->flags) ? find_equal(req, spec, asked) : NULL;
	struct pending *p = wait_for_it(req, request);
	struct pp_msg_target target;
	int r = -EBUSY;

	if (!p)
		return;
	if (spec->flags & PP_EVENT_AUX) {
		p->then = p->answer;
		p->answer = answer_aux;
	}
	if (equal)
		r = lifecycle_alias(s->lifecycle, equal, spec, &p->waiter);
	resolve_target(request, spec, &target);
	if (r == -EBUSY || r == -EALREADY) /* it is going, or will not match the request */
		r = lifecycle_create(s->lifecycle, spec, &s->parsed, trigger,
				     target.kind ? &target : NULL, request->program, &p->waiter);
	request_ordered(req, p, r, spec->ns, spec->name);
}

void request_create(struct request *req, const struct pp_msg_create_request *request)
{
	request_make(req, request, NULL, false);
}

bool request_resolve(struct request *req, const struct pp_msg_create_request *request,
		     struct pp_trigger_spec *trigger, bool until, struct pp_spec *ret)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct service *s = req->service;
	struct pp_spec named = { 0 };
	struct machine machine;
	int r;

	if (!request_is_synced(req))
		return false;
	r = resolve_names(request, &named, sentence, sizeof(sentence));
	if (r < 0) {
		refuse(req, -r, "%s", sentence);
		return false;
	}
	if (!take_namespace(req, &named) || !may_have_sources(req, request) ||
	    !may_have_program(req, request) || !may_have_stacks(req, request))
		return false;
	if (request->flags & PP_EVENT_BOOT && !s->boot) {
		refuse(req, EOPNOTSUPP,
		       "This daemon does not support --boot; write the event into a file in "
		       "events.d.");
		return false;
	}
	r = machine_read(&machine);
	if (r < 0) {
		refuse(req, EIO, "The daemon cannot find out which CPUs there are: %s.",
		       strerror(-r));
		return false;
	}
	r = resolve(request, &machine, s->config->max_buffer, ret, &s->parsed, sentence,
		    sizeof(sentence));
	if (r >= 0 && trigger)
		r = condition_settle(&trigger->condition, request, until, sentence,
				     sizeof(sentence));
	if (r < 0) {
		refuse(req, -r, "%s", sentence);
		return false;
	}
	if (!may_trace(req, ret) || !can_be_copied(req, ret))
		return false;
	if (trigger && ret->flags & PP_EVENT_AUX) {
		refuse(req, EINVAL,
		       "'%.100s' traces into AUX areas and makes no records, so nothing can fire with "
		       "them; take another event.",
		       ret->event);
		return false;
	}
	ret->owner = named.owner;
	ret->group = named.group;
	ret->mode = named.mode;
	ret->creator = named.creator;
	return true;
}

void request_make(struct request *req, const struct pp_msg_create_request *request,
		  struct pp_trigger_spec *trigger, bool until)
{
	struct pp_spec spec;

	if (trigger && request->target.kind) {
		refuse(req, EINVAL,
		       "A trigger watches the whole machine; give it a filter instead of a task or "
		       "cgroup.");
		return;
	}
	if (!request_resolve(req, request, trigger, until, &spec))
		return;
	if (trigger)
		spec.flags |= PP_EVENT_TRIGGER;
	create(req, request, &spec, trigger);
}
