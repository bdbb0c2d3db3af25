// SPDX-License-Identifier: LGPL-2.1-or-later
/* The types of values that say what is recorded, and what fires. See keys.h. */
#include <string.h>

#include "daemon/broker/config/config-value.h"
#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/config/keys-internal.h"
#include "daemon/broker/syntax/condition.h"
#include "daemon/text.h"
#include "proto/call-graph.h"
#include "proto/macro.h"
#include "proto/window.h"

static bool take_text(struct settings *s, const struct key *k, const char *value, char *field,
		      size_t room)
{
	if (pp_copy_text(field, room, value) == 0)
		return true;
	settings_complain(s, "%s= is too long; it can have %zu bytes.", k->name, room - 1);
	return false;
}

static void take_event(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;
	struct pp_msg_create_request *q = &d->request;
	struct pp_msg_selection *selection;

	if (!*value) {
		settings_complain(s,
				  "%s= names no event; write one such as sched:sched_switch, or "
				  "leave the line out.",
				  k->name);
		return;
	}
	if (d->has_texts && d->event.until) {
		settings_complain(s, "%s= stands behind Until=; move it in front.", k->name);
		return;
	}
	if (!d->has_texts) {
		d->event.until = false;
		memset(q->selections, 0, sizeof(q->selections));
		memset(d->event.filter_lines, 0, sizeof(d->event.filter_lines));
		q->count = 0;
		d->has_texts = true;
	}
	if (q->count == PP_SELECTIONS_MAX) {
		settings_complain(s,
				  "%s= is there too often; %d are the most, and each can list "
				  "several with commas between.",
				  k->name, PP_SELECTIONS_MAX);
		return;
	}
	selection = &q->selections[q->count];
	if (!take_text(s, k, value, selection->event, sizeof(selection->event)))
		return;
	d->event.event_lines[q->count++] = s->line;
}

static void take_until(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;
	uint32_t count = d->has_texts ? d->request.count : 0;

	take_event(s, k, value, into);
	d->event.until |= d->request.count > count;
}

static void print_events(FILE *f, const struct key *k, const void *from)
{
	const struct dropin_draft *d = from;

	for (uint32_t i = 0; i < d->request.count; i++) {
		fprintf(f, "%s=%s\n", k->name, d->request.selections[i].event);
		if (d->request.selections[i].filter[0])
			fprintf(f, "%s=%s\n", k[1].name, d->request.selections[i].filter);
	}
}

static void take_filter(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;
	struct pp_msg_create_request *q = &d->request;

	if (q->count == 0) {
		settings_complain(s, "%s= stands before its Event=; move it behind.", k->name);
		return;
	}
	for (uint32_t i = d->has_texts ? q->count - 1 : 0;
	     i < q->count - (!d->has_texts && d->event.until); i++) {
		struct pp_msg_selection *selection = &q->selections[i];

		if (!take_text(s, k, value, selection->filter, sizeof(selection->filter)))
			return;
		d->event.filter_lines[i] = s->line;
	}
}

static struct pp_condition *condition_of(void *into)
{
	return &((struct dropin_draft *)into)->event.trigger.condition;
}

static void take_key(struct settings *s, const struct key *k, const char *value, void *into)
{
	char sentence[PP_SENTENCE_SIZE];

	if (condition_parse_key(value, condition_of(into), sentence, sizeof(sentence)) < 0)
		settings_complain(s, "%s=: %s", k->name, sentence);
}

static void take_sustained(struct settings *s, const struct key *k, const char *value, void *into)
{
	char sentence[PP_SENTENCE_SIZE];

	if (condition_parse_rate(value, condition_of(into), sentence, sizeof(sentence)) < 0)
		settings_complain(s, "%s=: %s", k->name, sentence);
}

const struct type key_until = { .take = take_until, .is_text = true };
const struct type key_pair = { .take = take_key, .is_text = true };
const struct type key_sustained = { .take = take_sustained, .is_text = true };
const struct type key_events = { .take = take_event, .print = print_events, .is_text = true };
/* print_events prints the filters too. */
const struct type key_filter = { .take = take_filter, .is_text = true };

/* The last setting counts: a period, or with PP_EVENT_FREQ a frequency. */
static void take_period(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;

	key_number.take(s, k, value, into);
	d->request.flags = (d->request.flags & ~PP_EVENT_FREQ) | k->yes;
}

static void print_period(FILE *f, const struct key *k, const void *from)
{
	const struct dropin_draft *d = from;

	if ((d->request.flags & PP_EVENT_FREQ) == k->yes)
		key_number.print(f, k, from);
}

const struct type key_period = { .take = take_period, .print = print_period };

static void take_checkpoint(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t nsec;

	if (config_parse_duration(value, &nsec) < 0 || nsec % SECOND != 0 ||
	    nsec / SECOND > PP_CHECKPOINT_MAX)
		settings_complain(s,
				  "%s= must be a time in whole seconds such as 5s, of one hour at "
				  "most, or 0 for none, and '%s' is not.",
				  k->name, value);
	else
		key_put(k, into, (key_get(k, into) & ~k->yes) | pp_checkpoint_flags(nsec / SECOND));
}

static void print_checkpoint(FILE *f, const struct key *k, const void *from)
{
	if (key_get(k, from) & k->yes)
		fprintf(f, "%s=%us\n", k->name, pp_event_checkpoint((uint32_t)key_get(k, from)));
}

const struct type key_checkpoint = { .take = take_checkpoint, .print = print_checkpoint };

static void take_cpus(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct pp_cpumask mask;

	if (*value && pp_parse_cpus(value, &mask) < 0)
		settings_complain(s,
				  "%s= must be a list such as 0-3,8, or nothing for all, and "
				  "'%.64s' is neither.",
				  k->name, value);
	else
		take_text(s, k, value, (char *)into + k->offset, k->size);
}

/* What is there only later is no fault of the text. */
static void take_cgroup(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct dropin_draft *d = into;

	if (take_text(s, k, value, (char *)into + k->offset, k->size))
		d->request.target.kind = *value ? PP_TARGET_CGROUP : PP_TARGET_NONE;
}

static void take_targets(struct settings *s, const struct key *k, const char *value, void *into)
{
	if (!pp_targets_are_valid(value))
		settings_complain(
			s,
			"%s= must be names of events in the trigger's namespace, or globs, "
			"with commas between, and '%.64s' is not.",
			k->name, value);
	else
		take_text(s, k, value, (char *)into + k->offset, k->size);
}

static void take_after(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct pp_trigger_spec *spec = (void *)((char *)into + k->offset);
	uint64_t time = 0, records = 0;

	/* A file that comes later takes away what an earlier one has set. */
	if (!*value || pp_parse_window(value, config_parse_duration, &time, &records) >= 0) {
		spec->after = time;
		spec->after_records = records;
	} else
		settings_complain(s,
				  "%s= must be a time such as 5ms, a number of records such as "
				  "200r, or both, with a comma between, and '%.64s' is not.",
				  k->name, value);
}

static void print_text(FILE *f, const struct key *k, const void *from)
{
	const char *text = (const char *)from + k->offset;

	if (*text)
		fprintf(f, "%s=%s\n", k->name, text);
}

static void take_chains(struct settings *s, const struct key *k, const char *value, void *into)
{
	struct pp_msg_create_request *request = (void *)((char *)into + k->offset);
	uint32_t chains = 0;

	if (strcmp(value, "no") != 0 && pp_parse_call_graph(strcmp(value, "yes") ? value : "both",
							    &chains, &request->stack_user) < 0) {
		settings_complain(
			s,
			"%s= must be no, yes, both, kernel, user, dwarf or dwarf,SIZE with "
			"at most %d bytes of the user stack, and '%.64s' is not.",
			k->name, PP_STACK_USER_MAX, value);
		return;
	}
	if (!chains)
		request->stack_user = 0;
	request->flags = (request->flags & ~(uint32_t)PP_EVENT_CHAINS) | chains;
}

static void print_chains(FILE *f, const struct key *k, const void *from)
{
	const struct pp_msg_create_request *request = (void *)((char *)from + k->offset);

	if (request->stack_user)
		fprintf(f, "%s=dwarf,%u\n", k->name, request->stack_user);
	else if (request->flags & PP_EVENT_CALLCHAIN)
		fprintf(f, "%s=%s\n", k->name,
			request->flags & PP_EVENT_NO_USER_CHAIN	    ? "kernel"
			: request->flags & PP_EVENT_NO_KERNEL_CHAIN ? "user"
								    : "yes");
}

/* is_text: likewise. */
const struct type key_chains = { .take = take_chains, .print = print_chains, .is_text = true };

const struct type key_cpus = { .take = take_cpus, .print = print_text, .is_text = true };
const struct type key_cgroup = { .take = take_cgroup, .print = print_text, .is_text = true };
/* is_text: it is more than one number. */
const struct type key_after = { .take = take_after, .is_text = true };
const struct type key_targets = { .take = take_targets, .is_text = true };
