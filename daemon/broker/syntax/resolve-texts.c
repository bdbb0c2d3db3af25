// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The texts and filters of a draft: parsed, and in the form for display. Must not know which events
 * this machine has.
 */
#include <stdarg.h>
#include <string.h>

#include "daemon/broker/syntax/spec.h"
#include "daemon/broker/syntax/resolve-internal.h"
#include "daemon/filter.h"
#include "proto/macro.h"
#include "proto/printable.h"

/* Appends to a text of that size; false: there is no room. */
static bool append(char *text, size_t size, const char *fmt, ...) _printf_(3, 4);
static bool append(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text + used, size - used, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < size - used;
}

/* Each text goes into one line of the registry's files, which people read with cat. */
static int refuse_control(struct draft *d, const char *what, const char *text)
{
	size_t n = strlen(text), at = 0, len;
	uint32_t character;

	for (; at < n; at += len) {
		len = printable_length(text + at, n - at);
		if (len)
			continue;
		if (utf8_length(text + at, n - at, &character))
			return refuse(d, -EINVAL,
				      "The %s has a control character in it, at byte %zu; leave it "
				      "out.",
				      what, at + 1);
		return refuse(d, -EINVAL,
			      "The %s has a byte in it that is no UTF-8, at byte %zu; leave it "
			      "out, or let a ? after ~ stand for it.",
			      what, at + 1);
	}
	return 0;
}

int resolve_take_filter(struct draft *d, const char *text, uint32_t *ret_n)
{
	struct pp_parsed *parsed = d->parsed;
	int n, r = refuse_control(d, "filter", text);

	if (r < 0)
		return r;
	n = pp_filter_parse(text, parsed->nodes + parsed->n_nodes,
			    PP_FILTER_NODES_MAX - parsed->n_nodes, d->sentence, d->size);
	if (n < 0)
		return n;
	parsed->n_nodes += n;
	*ret_n = n;
	return 0;
}

int resolve_take_selection(struct draft *d, const struct pp_msg_selection *selection)
{
	struct pp_parsed *parsed = d->parsed;
	uint32_t first = parsed->n_nodes, n_nodes = 0;
	int n, r;

	if (parsed->n_sources == PP_TERMS_MAX)
		return refuse(
			d, -E2BIG,
			"One event can list %d others, and %s is one more; make it an event of "
			"its own.",
			PP_TERMS_MAX, selection->event);
	r = refuse_control(d, "event's text", selection->event);
	if (r < 0)
		return r;
	n = pp_spec_parse(selection->event, parsed->sources + parsed->n_sources,
			  PP_TERMS_MAX - parsed->n_sources, d->sentence, d->size);
	if (n < 0)
		return n;
	if (selection->filter[0]) {
		r = resolve_take_filter(d, selection->filter, &n_nodes);
		if (r < 0)
			return r;
	}
	for (int i = 0; i < n; i++) {
		parsed->sources[parsed->n_sources].filter = n_nodes ? first : 0;
		parsed->sources[parsed->n_sources++].n_filter = n_nodes;
	}
	return 0;
}

bool resolve_has_one_filter(const struct pp_msg_create_request *request)
{
	for (uint32_t i = 1; i < request->count; i++)
		if (strcmp(request->selections[i].filter, request->selections[0].filter) != 0)
			return false;
	return true;
}

int resolve_join_texts(struct draft *d)
{
	const struct pp_msg_create_request *request = d->request;
	bool one = resolve_has_one_filter(request);

	if (one)
		memcpy(d->spec.filter, request->selections[0].filter, sizeof(d->spec.filter));
	for (uint32_t i = 0; i < request->count; i++) {
		const struct pp_msg_selection *s = &request->selections[i];

		if (!append(d->spec.event, sizeof(d->spec.event), "%s%s", i ? "," : "", s->event))
			return refuse(
				d, -E2BIG,
				"The events' text is too long: with commas between it can have "
				"%d bytes; make several events of it.",
				PP_EVENT_TEXT_SIZE - 1);
		if (!one && s->filter[0] &&
		    !append(d->spec.filter, sizeof(d->spec.filter), "%s%s: %s",
			    d->spec.filter[0] ? "; " : "", s->event, s->filter))
			return refuse(d, -E2BIG,
				      "The filters' text is too long: together with their events' "
				      "it can have %d bytes; make several events of it.",
				      PP_FILTER_SIZE - 1);
	}
	return 0;
}

int resolve_take_selections(struct draft *d)
{
	int r;

	if (d->request->count == 0)
		return refuse(d, -EINVAL,
			      "No event was named; say what is to be recorded, as in "
			      "sched:sched_switch.");
	/* First, since it bounds what parsing costs: each term of a PMU's event is files to read. */
	r = resolve_join_texts(d);
	memset(d->parsed, 0, sizeof(*d->parsed));
	for (uint32_t i = 0; r >= 0 && i < d->request->count; i++)
		r = resolve_take_selection(d, &d->request->selections[i]);
	return r;
}
