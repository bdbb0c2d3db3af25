// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A pass over the configured events, driven by the completions of its orders. Must not know files or
 * clients.
 */
#include <assert.h>
#include <string.h>

#include "daemon/broker/config/configured.h"
#include "daemon/broker/config/dropin-resolve.h"
#include "daemon/broker/syntax/machine.h"
#include "daemon/broker/syntax/resolve.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* One order at a time is under way, so that clients' orders get their turn in between. */
struct pass {
	struct waiter waiter; /* first: our waiter is the pass */
	struct configured *owner;
	const struct config *config;
	const struct dropins *dropins;
	struct configured_result result;
	struct machine machine;

	enum { DELETING, WANTING, FINISHED } phase;
	uint64_t after;			  /* DELETING: ids up to this one have been seen */
	size_t next;			  /* WANTING: index into the dropins */
	const struct dropin_event *about; /* the subject of the order; DELETING: NULL */
	enum { CREATE, CHANGE, DELETE, REPLACE } order;
	bool waiting, replacing;

	struct pp_msg_create_request request;
	struct pp_parsed parsed;
};

/* ── what goes wrong ────────────────────────────────────────────────────────────────────── */

static void complain_at(struct pass *p, const struct dropin_event *w, unsigned line,
			const char *sentence)
{
	char text[PP_SENTENCE_SIZE + PATH_MAX];

	snprintf(text, sizeof(text), "%s:%u: %s", w->path, line, sentence);
	p->owner->complain(p->owner->userdata, text);
}

/* error: positive errno value. */
static void refused(struct pass *p, const struct dropin_event *w, unsigned line, int error,
		    const char *sentence)
{
	if (error == EAGAIN)
		p->result.unfinished = true;
	if (!w)
		p->owner->complain(p->owner->userdata, sentence);
	else if (dropin_is_excused(w, error))
		log_debug("%s/%s is left out, as it may be: %s", w->ns, w->name, sentence);
	else
		complain_at(p, w, line, sentence);
}

/* ── orders ─────────────────────────────────────────────────────────────────────────────── */

static void on_done(struct waiter *waiter, const struct outcome *outcome)
{
	struct pass *p = (struct pass *)waiter;

	p->waiting = false;
	if (outcome->error) {
		refused(p, p->about, p->about ? p->about->line : 0, outcome->error,
			outcome->sentence);
		p->replacing = false;
		return;
	}
	switch (p->order) {
	case CREATE:
		p->result.created += !p->replacing;
		p->result.changed += p->replacing;
		p->replacing = false;
		break;
	case CHANGE:
		p->result.changed++;
		break;
	case DELETE:
		p->result.deleted++;
		break;
	case REPLACE: /* the creation follows in the next step: the name is taken until then */
		p->replacing = true;
		break;
	}
}

/* err: from the function that gave the order. */
static void ordered(struct pass *p, const struct dropin_event *w, int err, const char *ns,
		    const char *name)
{
	char sentence[PP_SENTENCE_SIZE];

	if (err >= 0)
		return;
	p->waiting = p->replacing = false;
	lifecycle_explain(p->owner->lifecycle, err, ns, name, sentence, sizeof(sentence));
	refused(p, w, w ? w->line : 0, -err, sentence);
}

/* Called before the order is given: the order may complete inside that call. */
static struct waiter *wait_for(struct pass *p, const struct dropin_event *w, int order)
{
	p->about = w;
	p->order = order;
	p->waiting = true;
	p->waiter.done = on_done;
	p->waiter.uid = w ? w->creator : 0;
	return &p->waiter;
}

/* ── creating ───────────────────────────────────────────────────────────────────────────── */

/*
 * Somebody was first to use the namespace, or wrote it with --boot, and owns it. The administrator
 * configures an event there and says nothing about the namespace: its owner must not see that
 * event's records. Nor is an event created in a namespace whose section has a fault, as long as no
 * earlier section is in force; one that is replaced keeps the rights it had. 0; -EACCES; -EINVAL
 * (reported).
 */
static int check_namespace(struct pass *p, const struct dropin_event *w)
{
	const struct namespace *ns = registry_namespace(&p->owner->lifecycle->registry, w->ns);
	const struct config_namespace *configured = config_namespace(p->config, w->ns);
	char sentence[PP_SENTENCE_SIZE];
	int error = 0;

	if (configured && configured->faulty && !p->replacing && !(ns && ns->configured)) {
		error = EINVAL;
		snprintf(sentence, sizeof(sentence),
			 "The section [namespace %s] has a fault, so it is not known who may read "
			 "%s/%s, and it is not created; correct the section.",
			 w->ns, w->ns, w->name);
	} else if (ns && ns->owner != 0 && ns->owner != w->creator && !w->written &&
		   !p->replacing && (!configured || configured->written)) {
		error = EACCES;
		snprintf(
			sentence, sizeof(sentence),
			"The namespace %s belongs to user %u, who could read this event's records; "
			"put a section [namespace %s] beside it, or choose another namespace.",
			w->ns, ns->owner, w->ns);
	}
	if (error)
		refused(p, w, w->line, error, sentence);
	return -error;
}

/* 0; -errno (reported). */
static int resolve_wanted(struct pass *p, const struct dropin_event *w, struct pp_spec *ret)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	unsigned line;
	int r;

	dropin_request(w, &p->request);
	r = dropin_resolve(w, &p->request, &p->machine, p->config->max_buffer, ret, &p->parsed,
			   sentence, sizeof(sentence), &line);
	if (r < 0)
		refused(p, w, line, -r, sentence);
	return r;
}

static void take_namespace(const struct pass *p, struct pp_spec *spec)
{
	const struct namespace *ns = registry_namespace(&p->owner->lifecycle->registry, spec->ns);

	spec->owner = ns ? ns->owner : 0;
	spec->group = ns ? ns->group : p->config->ns_group;
	spec->mode = ns ? ns->mode : NAMESPACE_MODE;
}

/*
 * Returns a running event that equals the wanted one, if sharing is allowed. Sharing across
 * namespaces needs root's explicit word: the other namespace's settings decide who may read its
 * rings.
 */
static struct event *find_equal(const struct pass *p, const struct dropin_event *w,
				const struct pp_spec *spec)
{
	const struct registry *r = &p->owner->lifecycle->registry;
	uint32_t flags = p->request.flags;
	bool across = flags & PP_EVENT_SHARE && w->creator == 0;

	if (!(flags & PP_EVENT_SHARE) && (!p->config->share || flags & PP_EVENT_NO_SHARE))
		return NULL;
	for (size_t i = 0; i < r->n_settled; i++) {
		struct event *e = r->by_id[i];

		if (e->state == PP_EVENT_RUNNING && event_is_equal(&e->truth.spec, spec) &&
		    (across || strcmp(e->truth.spec.ns, spec->ns) == 0))
			return e;
	}
	return NULL;
}

static void create(struct pass *p, const struct dropin_event *w)
{
	struct lifecycle *l = p->owner->lifecycle;
	char sentence[PP_SENTENCE_SIZE];
	struct pp_trigger_spec trigger;
	struct pp_msg_target target;
	struct event *equal;
	struct pp_spec spec;
	int r = -EBUSY;

	if (check_namespace(p, w) < 0 || resolve_wanted(p, w, &spec) < 0 ||
	    dropin_trigger(w, &p->request, &trigger, sentence, sizeof(sentence)) < 0) {
		p->replacing = false;
		return;
	}
	take_namespace(p, &spec);
	resolve_target(&p->request, &spec, &target);
	equal = w->is_trigger || target.kind ? NULL : find_equal(p, w, &spec);
	if (equal)
		r = lifecycle_alias(l, equal, &spec, wait_for(p, w, CREATE));
	if (r == -EBUSY || r == -EALREADY)
		r = lifecycle_create(l, &spec, &p->parsed, w->is_trigger ? &trigger : NULL,
				     target.kind ? &target : NULL, 0, wait_for(p, w, CREATE));
	ordered(p, w, r, w->ns, w->name);
}

/* ── comparing ──────────────────────────────────────────────────────────────────────────── */

/*
 * Whether the running event has the default period that it would get now. The default depends on
 * the kernel's limit at the event's creation, and the kernel lowers that limit by itself.
 */
static bool has_default_period(struct pass *p, const struct dropin_event *w,
			       const struct pp_spec *runs)
{
	struct machine machine = p->machine;
	char sentence[PP_SENTENCE_SIZE];
	struct pp_spec spec;
	unsigned line;

	if (runs->period == 0)
		return true; /* it does not sample, and its text is the same */
	machine.online = machine.possible;
	machine.max_sample_rate = UINT64_MAX;
	if (dropin_resolve(w, &p->request, &machine, p->config->max_buffer, &spec, &p->parsed,
			   sentence, sizeof(sentence), &line) < 0)
		return true; /* it could not be created again */
	if ((runs->flags & PP_EVENT_FREQ) != (spec.flags & PP_EVENT_FREQ))
		return false;
	return runs->period == spec.period ||
	       (spec.flags & PP_EVENT_FREQ && runs->period < spec.period &&
		runs->period >= p->machine.max_sample_rate);
}

/* Whether a change order can make the difference. p->request is of the wanted event. */
static bool can_change(const struct pass *p, const struct pp_spec *runs,
		       const struct pp_spec *wanted)
{
	uint32_t flags = ~(uint32_t)(PP_EVENT_CONFIGURED | PP_EVENT_CHECKPOINT | PP_EVENT_FREQ);

	if (strcmp(runs->event, wanted->event) != 0 ||
	    (runs->flags & flags) != (wanted->flags & flags) ||
	    runs->max_stack != wanted->max_stack || runs->stack_user != wanted->stack_user ||
	    memcmp(&runs->cpus, &wanted->cpus, sizeof(runs->cpus)) != 0)
		return false;
	return strcmp(runs->filter, wanted->filter) == 0 || resolve_has_one_filter(&p->request);
}

/* ── changing ───────────────────────────────────────────────────────────────────────────── */

/* Resolves the new event first, so that a typing error does not cost the old one. */
static void replace(struct pass *p, const struct dropin_event *w, struct event *e)
{
	struct pp_spec spec;

	if (resolve_wanted(p, w, &spec) < 0)
		return;
	ordered(p, w, lifecycle_delete(p->owner->lifecycle, e, wait_for(p, w, REPLACE)), w->ns,
		w->name);
}

static void change(struct pass *p, const struct dropin_event *w, struct event *e, uint32_t what)
{
	const struct pp_msg_create_request *q = &p->request;
	struct pp_msg_change_request request = {
		.what = what,
		.flags = q->flags & PP_EVENT_CHECKPOINT,
		.data_size = q->data_size,
		.max_rate = q->max_rate,
		.period = q->period,
	};
	char sentence[PP_SENTENCE_SIZE] = "";
	struct pp_spec spec;
	int r;

	memcpy(request.filter, q->selections[0].filter, sizeof(request.filter));
	if (what & PP_CHANGE_PERIOD)
		request.flags |= q->flags & PP_EVENT_FREQ;
	r = resolve_change(&request, &e->truth.spec, &p->machine, p->config->max_buffer, &spec,
			   &p->parsed, sentence, sizeof(sentence));
	if (r < 0) {
		unsigned line = w->filter_lines[0];

		refused(p, w, what & PP_CHANGE_FILTER && line ? line : w->line, -r, sentence);
		return;
	}
	r = lifecycle_change(p->owner->lifecycle, e, what, &spec, &p->parsed,
			     wait_for(p, w, CHANGE));
	if (r == -EMLINK) /* a change would affect its other names: those keep the old rings */
		replace(p, w, e);
	else
		ordered(p, w, r, w->ns, w->name);
}

/* What cannot be settled is another, and its fault is reported. p->request is w's. */
static bool is_same_trigger(struct pass *p, const struct dropin_event *w, const struct event *e)
{
	char sentence[PP_SENTENCE_SIZE];
	struct pp_trigger_spec trigger;

	return !w->is_trigger ||
	       (dropin_trigger(w, &p->request, &trigger, sentence, sizeof(sentence)) >= 0 &&
		memcmp(&e->trigger, &trigger, sizeof(trigger)) == 0);
}

static void compare(struct pass *p, const struct dropin_event *w, struct event *e)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct pp_spec wanted;
	uint32_t what;
	int r;

	dropin_request(w, &p->request);
	if (p->request.count == 0) {
		resolve_wanted(p, w, &wanted); /* reports the fault */
		return;
	}
	r = resolve_outline(&p->request, p->config->max_buffer, &wanted, sentence,
			    sizeof(sentence));
	if (r < 0) {
		refused(p, w, w->line, -r, sentence);
		return;
	}
	if (w->is_trigger)
		wanted.flags |= PP_EVENT_TRIGGER;
	/* An outline does not know which PMUs have AUX areas; the text is compared, too. */
	wanted.flags |= e->truth.spec.flags & (PP_EVENT_AUX | PP_EVENT_AUX_GROUP);
	if (!can_change(p, &e->truth.spec, &wanted) || !is_same_trigger(p, w, e) ||
	    !resolve_is_same_target(&p->request, &e->target)) {
		replace(p, w, e);
		return;
	}
	what = event_find_changes(&e->truth.spec, &wanted);
	if (wanted.period == 0 && has_default_period(p, w, &e->truth.spec))
		what &= ~PP_CHANGE_PERIOD;
	if (what && e->truth.spec.flags & PP_EVENT_AUX)
		replace(p, w, e); /* AUX areas cannot be changed */
	else if (what)
		change(p, w, e, what);
}

/* ── one after the other ────────────────────────────────────────────────────────────────── */

/* An event from --boot exists already, and may have been changed since; else another one has the name. */
static void meet_other(struct pass *p, const struct dropin_event *w)
{
	char sentence[PP_SENTENCE_SIZE];

	if (w->written)
		return;
	snprintf(sentence, sizeof(sentence),
		 "There is an event %s/%s that was not made from the configuration, and it is left "
		 "alone; delete it, or take another name.",
		 w->ns, w->name);
	complain_at(p, w, w->line, sentence);
}

static void consider(struct pass *p, const struct dropin_event *w)
{
	struct event *e = registry_by_name(&p->owner->lifecycle->registry, w->ns, w->name);

	/* A fault in the event's sections was reported already; the running event stays as it
	 * is. */
	if (!w->enabled || !w->request || (e && w->faulty))
		return;
	if (!e)
		create(p, w);
	else if (e->truth.spec.flags & PP_EVENT_CONFIGURED && !w->written)
		compare(p, w, e);
	else
		meet_other(p, w);
}

static bool is_unwanted(const struct pass *p, const struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;
	const struct dropin_event *w = dropins_event(p->dropins, spec->ns, spec->name);

	if (!(spec->flags & PP_EVENT_CONFIGURED))
		return false;
	return w ? !w->enabled && !w->faulty : !p->dropins->incomplete;
}

/* Returns whether there was an event to delete. */
static bool delete_next(struct pass *p)
{
	struct lifecycle *l = p->owner->lifecycle;

	for (size_t i = registry_after(&l->registry, p->after); i < l->registry.n_settled; i++) {
		struct event *e = l->registry.by_id[i];
		const struct pp_spec *spec = &e->truth.spec;

		p->after = e->truth.id;
		if (!is_unwanted(p, e))
			continue;
		ordered(p, NULL, lifecycle_delete(l, e, wait_for(p, NULL, DELETE)), spec->ns,
			spec->name);
		return true;
	}
	return false;
}

static void step(struct pass *p)
{
	if (p->replacing)
		create(p, p->about);
	else if (p->phase == DELETING)
		p->phase = delete_next(p) ? DELETING : WANTING;
	else if (p->next < p->dropins->n)
		consider(p, p->dropins->events[p->next++]);
	else
		p->phase = FINISHED;
}

/* ── the pass ───────────────────────────────────────────────────────────────────────────── */

void configured_continue(struct configured *c)
{
	struct configured_result result;
	struct pass *p = c->pass;

	if (!p || c->stepping)
		return;
	c->stepping = true;
	while (!p->waiting && p->phase != FINISHED)
		step(p);
	c->stepping = false;
	if (p->waiting)
		return;
	result = p->result;
	configured_stop(c);
	c->done(c->userdata, &result);
}

int configured_begin(struct configured *c, const struct config *config, const struct dropins *d)
{
	_cleanup_free_ struct pass *p = calloc(1, sizeof(*p));
	int r;

	assert(!c->pass);
	if (!p)
		return -ENOMEM;
	r = machine_read(&p->machine);
	if (r < 0)
		return r;
	p->owner = c;
	p->config = config;
	p->dropins = d;
	c->pass = TAKE_PTR(p);
	configured_continue(c);
	return 0;
}

void configured_stop(struct configured *c)
{
	free(c->pass);
	c->pass = NULL;
}
