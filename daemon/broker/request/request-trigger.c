// SPDX-License-Identifier: LGPL-2.1-or-later
/* TRIGGER, TRIGGERS, FIRE, TAPES, RELEASE. */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/broker/syntax/condition.h"
#include "daemon/broker/triggers/triggers.h"
#include "daemon/text.h"
#include "proto/clock.h"
#include "proto/fired.h"
#include "proto/macro.h"

/* ── TRIGGER ────────────────────────────────────────────────────────────────────────────── */

static size_t count_triggers(const struct request *req, const char *ns)
{
	const struct registry *r = &req->service->lifecycle->registry;
	size_t n = 0;

	for (size_t i = 0; i < r->n_events; i++)
		n += r->by_name[i]->truth.spec.flags & PP_EVENT_TRIGGER &&
		     !strcmp(r->by_name[i]->truth.spec.ns, ns);
	return n;
}

/* The next firing finds the last window over. */
static bool check_window(struct request *req, const struct pp_trigger_spec *spec)
{
	if (spec->after && spec->action == PP_ACTION_NOTIFY)
		refuse(req, EINVAL,
		       "A trigger that only notifies has no targets that could go on; leave --after out, or "
		       "give another --action.");
	else if (spec->after && spec->action == PP_ACTION_PAUSE)
		refuse(req, EINVAL,
		       "A trigger that pauses its targets stops them at once; leave --after out, or give "
		       "--action snapshot or freeze.");
	else if (spec->after > PP_AFTER_MAX)
		refuse(req, EINVAL,
		       "Targets can go on for a minute after the trigger has fired, and not for "
		       "%llu ms; give a shorter time.",
		       spec->after / 1000000);
	else if (spec->after > spec->hold_off)
		refuse(req, EINVAL,
		       "Targets cannot go on for %llu ms after the trigger has fired: it "
		       "would fire again before, with a hold-off of %llu ms; give a longer hold-off.",
		       spec->after / 1000000, spec->hold_off / 1000000);
	else if (spec->after_records > PP_AFTER_RECORDS_MAX)
		refuse(req, EINVAL, "Targets cannot go on for %llu records; give at most %llu.",
		       spec->after_records, PP_AFTER_RECORDS_MAX);
	else
		return true;
	return false;
}

static bool check_trigger(struct request *req, const struct pp_msg_trigger_request *request)
{
	if (!strcmp(request->event.name, PP_TRIGGER_REMOVED))
		refuse(req, EINVAL,
		       "A trigger cannot have the name " PP_TRIGGER_REMOVED
		       ": that stands for those that are removed, and have frozen something; take "
		       "another one.");
	else if (request->action == PP_ACTION_NOTIFY && *request->targets)
		refuse(req, EINVAL,
		       "A trigger that only notifies does nothing to '%s'; name no targets, or give "
		       "another --action.",
		       request->targets);
	else if (request->action != PP_ACTION_NOTIFY && !pp_targets_are_valid(request->targets))
		refuse(req, EINVAL,
		       "'%s' does not name a trigger's targets; give names of events in its "
		       "namespace, or globs of them, with commas between, at most %d: 'sched,sys*'.",
		       request->targets, PP_TARGET_NAMES_MAX);
	else if (peer_credentials(req->peer)->uid != 0 &&
		 count_triggers(req, request->event.ns) >= PP_TRIGGERS_MAX)
		refuse(req, EDQUOT,
		       "The namespace %s has %d triggers, and only root may create more; remove some, or "
		       "let one have several targets.",
		       request->event.ns, PP_TRIGGERS_MAX);
	else if (request->hold_off < PP_HOLD_OFF_MIN || request->hold_off > INT64_MAX)
		refuse(req, EINVAL,
		       "A hold-off of %" PRIu64
		       " ns is not possible: each firing wakes the daemon; give 10 ms or more.",
		       request->hold_off);
	else if (request->event.flags & (PP_EVENT_SHARE | PP_EVENT_BOOT))
		refuse(req, EINVAL,
		       "A trigger's event is neither shared nor created by --boot; to have it after "
		       "a boot, write it into a file in events.d.");
	else
		return true;
	return false;
}

static bool take_condition(struct request *req, const struct pp_msg_trigger_request *request,
			   struct pp_condition *ret)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	int r = 0;

	if (request->longer_than > INT64_MAX || request->until > 1 ||
	    request->action >= PP_ACTIONS) {
		refuse(req, EINVAL,
		       "The request has numbers that this version does not know; use a client of the "
		       "same version.");
		return false;
	}
	ret->longer_than = request->longer_than;
	if (*request->key)
		r = condition_parse_key(request->key, ret, sentence, sizeof(sentence));
	if (r >= 0 && *request->rate)
		r = condition_parse_rate(request->rate, ret, sentence, sizeof(sentence));
	if (r < 0)
		refuse(req, -r, "%s", sentence);
	return r >= 0;
}

void request_trigger(struct request *req, const struct pp_msg_trigger_request *request)
{
	struct pp_trigger_spec spec = {
		.hold_off = request->hold_off,
		.max_per_day = request->max_per_day,
		.after = request->after,
		.after_records = request->after_records,
		.action = request->action,
	};

	_Static_assert(sizeof(spec.targets) == sizeof(request->targets), "the same text");
	pp_window_complete(&spec);
	if (!check_trigger(req, request) || !check_window(req, &spec) ||
	    !take_condition(req, request, &spec.condition))
		return;
	memcpy(spec.targets, request->targets, sizeof(spec.targets));
	request_make(req, &request->event, &spec, request->until);
}

#define COMPARISONS_MAX 4096 /* of a trigger's globs with events' names, in one page */

/* ── TRIGGERS ───────────────────────────────────────────────────────────────────────────── */

/* The condition is over two events, which the event's text has with a comma between. */
static void describe_condition(const struct pp_condition *c, struct pp_msg_trigger *ret)
{
	ret->longer_than = c->longer_than;
	condition_print_key(c, ret->key);
	condition_print_rate(c, ret->rate);
	if (c->kind != PP_CONDITION_PAIR || c->until_at >= sizeof(ret->event))
		return;
	pp_copy_text(ret->until, sizeof(ret->until), ret->event + c->until_at);
	memset(ret->event + c->until_at - 1, 0, sizeof(ret->event) - c->until_at + 1);
}

static uint64_t count_tapes(const struct lifecycle *l, uint64_t trigger)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->tapes.n; i++)
		n += l->tapes.all[i]->ready && l->tapes.all[i]->by.trigger == trigger;
	return n;
}

static void describe(struct service *s, const struct event *e, struct pp_msg_trigger *ret)
{
	const struct pp_event *t = &e->truth;
	struct pp_trigger state = { 0 };
	struct tree_stat stat;
	unsigned n, n_armed;

	triggers_count(s->lifecycle, e, &n, &n_armed);
	event_count(s->registry, e, &s->totals, &stat);
	/* Without it nothing is known of its firings; the event may be about to go. */
	(void)tree_trigger_read(s->registry, t->origin, &state);
	*ret = (struct pp_msg_trigger){
		.id = t->id,
		.hold_off = e->trigger.hold_off,
		.max_per_day = e->trigger.max_per_day,
		.after = e->trigger.after,
		.after_records = e->trigger.after_records,
		.action = (uint32_t)e->trigger.action,
		.tapes = count_tapes(s->lifecycle, t->id),
		.state = e->state,
		.creator = t->spec.creator,
		.n_targets = n,
		.n_armed = n_armed,
		.fired = state.fired,
		.held = state.held,
		.spent = state.spent,
		.late = state.late,
		.last = state.last,
		.missed = stat.missed,
		.missed_unknown = stat.missed_unknown,
		.unkept = state.unkept,
		.overdue = state.overdue,
		.ended = state.ended,
	};
	memcpy(ret->ns, t->spec.ns, sizeof(ret->ns));
	memcpy(ret->name, t->spec.name, sizeof(ret->name));
	memcpy(ret->event, t->spec.event, sizeof(ret->event));
	memcpy(ret->filter, t->spec.filter, sizeof(ret->filter));
	memcpy(ret->targets, e->trigger.targets, sizeof(ret->targets));
	describe_condition(&e->trigger.condition, ret);
}

void request_triggers(struct request *req, const struct pp_msg_list_request *request)
{
	struct service *s = req->service;
	const struct registry *registry = &s->lifecycle->registry;
	struct pp_msg_triggers_reply *reply = &s->reply.triggers_reply;
	const struct namespace *only;
	size_t most;

	if (!request_may_list(req, request->ns, &only))
		return;
	reply->count = reply->more = 0;
	/* Each row compares a trigger with all events: no page takes longer than a few of these. */
	most = MAX(1U, MIN((size_t)PP_LIST_MAX, COMPARISONS_MAX / (registry->n_settled + 1)));
	for (size_t i = registry_after(registry, request->after); i < registry->n_settled; i++) {
		const struct event *e = registry->by_id[i];

		if (!(e->truth.spec.flags & PP_EVENT_TRIGGER) || (only && e->ns != only) ||
		    !policy_allows(peer_credentials(req->peer), e->ns, PP_RIGHT_R))
			continue;
		if (reply->count == most) {
			reply->more = 1;
			break;
		}
		describe(s, e, &reply->triggers[reply->count++]);
	}
	peer_reply(req->peer, req->header, reply, NULL, 0);
}

/* ── FIRE ───────────────────────────────────────────────────────────────────────────────── */

static bool answer_empty(struct request *req, struct pending *p _unused_,
			 const struct event *e _unused_)
{
	if (req->peer)
		peer_reply(req->peer, req->header, &req->service->reply, NULL, 0);
	return true;
}

/* A peer that may fire but not read learns nothing but that it has fired. */
static struct event *find_to_fire(struct request *req, const struct pp_msg_name *which)
{
	const struct registry *registry = &req->service->lifecycle->registry;
	const struct namespace *ns = registry_namespace(registry, which->ns);
	struct event *e;

	if (which->id || !ns || policy_allows(peer_credentials(req->peer), ns, PP_RIGHT_W))
		return request_find(req, which, PP_RIGHT_W);
	if (!policy_may_fire(peer_credentials(req->peer), ns)) {
		request_may(req, ns, PP_RIGHT_W);
		return NULL;
	}
	e = registry_by_name(registry, which->ns, which->name);
	if (e && e->truth.spec.flags & PP_EVENT_TRIGGER)
		return e;
	refuse(req, ENOENT, "There is no trigger '%s' in the namespace %s.", which->name,
	       which->ns);
	return NULL;
}

void request_fire(struct request *req, const struct pp_msg_name *request)
{
	struct event *e = find_to_fire(req, request);
	struct pending *p;

	if (!e || !request_is_made(req, e))
		return;
	if (!(e->truth.spec.flags & PP_EVENT_TRIGGER)) {
		refuse(req, EINVAL,
		       "%s/%s is an event and no trigger; `perfctl trigger list` shows "
		       "those there are.",
		       e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	if (!fire_limit_take(&req->service->fires, peer_credentials(req->peer)->uid,
			     pp_clock_ns(CLOCK_MONOTONIC))) {
		refuse(req, EAGAIN,
		       "You have fired triggers %d times within a minute, or many users have; wait "
		       "for the next minute.",
		       FIRES_MAX);
		return;
	}
	p = request_wait(req);
	if (!p)
		return;
	p->answer = answer_empty;
	request_ordered(req, p, lifecycle_fire(req->service->lifecycle, e, false, &p->waiter),
			e->truth.spec.ns, e->truth.spec.name);
}

/* ── TAPES, RELEASE ─────────────────────────────────────────────────────────────────────── */

static void describe_tape(const struct registry *registry, const struct tape *tape,
			  struct pp_msg_tape *ret)
{
	const struct event *trigger = registry_by_id(registry, tape->by.trigger);
	const struct pp_spec *spec = &tape->event.truth.spec;

	*ret = (struct pp_msg_tape){
		.id = tape->event.truth.id,
		.event = tape->of,
		.trigger = tape->by.trigger,
		.number = tape->by.number,
		.fired = tape->by.time,
		.cpu = tape->by.cpu,
		.pid = tape->by.pid,
		.tid = tape->by.tid,
		.by_hand = tape->by.by_hand,
		.action = (uint32_t)tape->by.action,
	};
	memcpy(ret->ns, spec->ns, sizeof(ret->ns));
	memcpy(ret->name, spec->name, sizeof(ret->name));
	memcpy(ret->comm, tape->by.comm, sizeof(ret->comm));
	if (trigger)
		memcpy(ret->trigger_name, trigger->truth.spec.name, sizeof(ret->trigger_name));
}

void request_tapes(struct request *req, const struct pp_msg_list_request *request)
{
	struct service *s = req->service;
	const struct lifecycle *l = s->lifecycle;
	struct pp_msg_tapes_reply *reply = &s->reply.tapes_reply;
	const struct namespace *only;

	if (!request_may_list(req, request->ns, &only))
		return;
	reply->count = reply->more = 0;
	for (size_t i = tapes_after(&l->tapes, request->after); i < l->tapes.n; i++) {
		struct tape *tape = l->tapes.all[i];
		const struct namespace *ns = lifecycle_tape_ns(l, tape);

		if (!tape->ready || (only && ns != only) ||
		    !policy_allows(peer_credentials(req->peer), ns, PP_RIGHT_R))
			continue;
		if (reply->count == PP_TAPES_MAX) {
			reply->more = 1;
			break;
		}
		describe_tape(&l->registry, tape, &reply->tapes[reply->count++]);
	}
	peer_reply(req->peer, req->header, reply, NULL, 0);
}

void request_release(struct request *req, const struct pp_msg_name *request)
{
	const struct lifecycle *l = req->service->lifecycle;
	struct event *e = registry_by_id(&l->registry, request->id);
	/* After the engine's end what is frozen is a tape again a moment later. */
	bool is_frozen =
		request->id && (tapes_find(&l->tapes, request->id) || (e && event_is_frozen(e)));
	struct pending *p;

	e = request_find_or_tape(req, request, PP_RIGHT_R);
	if (!e)
		return;
	if (!is_frozen) {
		refuse(req, ENOENT,
		       "%s/%s is recording, and nothing of it waits to be released; see `perfctl "
		       "trigger list`.",
		       e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	if (!policy_may_release(peer_credentials(req->peer), e->ns)) {
		request_may(req, e->ns, PP_RIGHT_W);
		return;
	}
	p = request_wait(req);
	if (!p)
		return;
	p->answer = answer_empty;
	request_ordered(req, p, lifecycle_release(req->service->lifecycle, request->id, &p->waiter),
			e->truth.spec.ns, e->truth.spec.name);
}
