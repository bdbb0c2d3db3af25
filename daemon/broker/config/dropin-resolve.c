// SPDX-License-Identifier: LGPL-2.1-or-later
/* From a section to a spec, or to the line with the fault. Must not know which events run. */
#include "daemon/broker/config/dropin-resolve.h"

#include <string.h>

#include "daemon/broker/syntax/condition.h"
#include "daemon/broker/syntax/spec.h"
#include "daemon/filter.h"
#include "proto/macro.h"

/* ── which line it is ───────────────────────────────────────────────────────────────────── */

/* The line of the first text that cannot be parsed; 0: all can, or the text is in another
 * section. */
static unsigned line_of(const struct dropin_event *e, const struct pp_msg_create_request *request,
			struct pp_parsed *scratch)
{
	char sentence[PP_SENTENCE_SIZE];

	for (uint32_t i = 0; i < request->count; i++) {
		const struct pp_msg_selection *s = &request->selections[i];

		if (pp_spec_parse(s->event, scratch->sources, PP_TERMS_MAX, sentence,
				  sizeof(sentence)) < 0)
			return e->event_lines[i];
		if (s->filter[0] && pp_filter_parse(s->filter, scratch->nodes, PP_FILTER_NODES_MAX,
						    sentence, sizeof(sentence)) < 0)
			return e->filter_lines[i];
	}
	return 0;
}

static int check_trigger(const struct dropin_event *e, char *sentence, size_t size)
{
	const struct pp_trigger_spec *t = &e->trigger;
	bool notifies = t->action == PP_ACTION_NOTIFY;

	if (!*t->targets && !notifies)
		snprintf(
			sentence, size,
			"%s/%s has no Targets=; name the events that it is to freeze or pause, or give "
			"Action=notify or Enabled=no.",
			e->ns, e->name);
	else if (*t->targets && notifies)
		snprintf(sentence, size,
			 "%s/%s has Targets=, and Action=notify does nothing to them; leave one of "
			 "them out.",
			 e->ns, e->name);
	else if (t->after && notifies)
		snprintf(
			sentence, size,
			"%s/%s has an After=, which is about targets, and Action=notify has none; leave "
			"one of them out.",
			e->ns, e->name);
	else if (t->after && t->action == PP_ACTION_PAUSE)
		snprintf(
			sentence, size,
			"%s/%s has an After=, and Action=pause stops its targets at once; leave one of "
			"them out.",
			e->ns, e->name);
	else if (pp_trigger_check(t) < 0)
		snprintf(sentence, size,
			 "%s/%s has an After= that is longer than its HoldOff= or a minute, or has "
			 "more than %llu records; give less, or a longer HoldOff=.",
			 e->ns, e->name, PP_AFTER_RECORDS_MAX);
	else
		return 0;
	return -EINVAL;
}

int dropin_trigger(const struct dropin_event *e, const struct pp_msg_create_request *request,
		   struct pp_trigger_spec *ret, char *sentence, size_t size)
{
	*ret = e->trigger;
	return condition_settle(&ret->condition, request, e->until, sentence, size);
}

int dropin_resolve(const struct dropin_event *e, const struct pp_msg_create_request *request,
		   const struct machine *machine, uint64_t max_buffer, struct pp_spec *ret,
		   struct pp_parsed *ret_parsed, char *sentence, size_t size, unsigned *ret_line)
{
	struct pp_trigger_spec trigger;
	unsigned line;
	int r;

	if (request->count == 0) {
		snprintf(sentence, size,
			 "%s/%s has no %s=; write what it is to record, or Enabled=no.", e->ns,
			 e->name, e->is_trigger ? "On" : "Event");
		*ret_line = e->line;
		return -EINVAL;
	}
	r = e->is_trigger ? check_trigger(e, sentence, size) : 0;
	if (r < 0) {
		*ret_line = e->line;
		return r;
	}
	r = resolve(request, machine, max_buffer, ret, ret_parsed, sentence, size);
	if (r < 0) {
		line = line_of(e, request, ret_parsed);
		*ret_line = line ? line : e->line;
		return r;
	}
	r = e->is_trigger ? dropin_trigger(e, request, &trigger, sentence, size) : 0;
	if (r < 0) {
		*ret_line = e->line;
		return r;
	}
	ret->flags |= PP_EVENT_CONFIGURED | (e->is_trigger ? PP_EVENT_TRIGGER : 0);
	ret->creator = e->creator;
	return 0;
}

bool dropin_is_excused(const struct dropin_event *e, int error)
{
	return e->optional && (error == ENOENT || error == EOPNOTSUPP || error == ENODEV);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

struct check {
	struct machine machine;
	struct pp_msg_create_request request;
	struct pp_spec spec;
	struct pp_parsed parsed;
};

int dropins_check(const struct dropins *d, uint64_t max_buffer, FILE *complaints)
{
	_cleanup_free_ struct check *c = calloc(1, sizeof(*c));
	char sentence[PP_SENTENCE_SIZE];
	unsigned line;
	int r, faults = 0;

	if (!c)
		return -ENOMEM;
	r = machine_read(&c->machine);
	if (r < 0) {
		fprintf(complaints, "Cannot find out which CPUs there are: %s.\n", strerror(-r));
		return 1;
	}
	c->machine.online = c->machine.possible;
	c->machine.max_sample_rate = UINT64_MAX;
	for (size_t i = 0; i < d->n; i++) {
		const struct dropin_event *e = d->events[i];

		if (!e->enabled || !e->request)
			continue;
		dropin_request(e, &c->request);
		r = dropin_resolve(e, &c->request, &c->machine, max_buffer, &c->spec, &c->parsed,
				   sentence, sizeof(sentence), &line);
		if (r >= 0 || dropin_is_excused(e, -r))
			continue;
		fprintf(complaints, "%s:%u: %s\n", e->path, line, sentence);
		faults++;
	}
	return faults;
}
