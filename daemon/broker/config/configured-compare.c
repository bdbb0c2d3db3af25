// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What runs beside what is wanted: whether they differ, and whether a change can mend it. Must
 * not know orders, nor complain of anything.
 */
#include <string.h>

#include "daemon/broker/config/configured-internal.h"
#include "daemon/broker/config/dropin-resolve.h"

static bool has_one_filter(const struct pp_msg_create_request *request)
{
	for (uint32_t i = 1; i < request->count; i++)
		if (strcmp(request->selections[i].filter, request->selections[0].filter) != 0)
			return false;
	return true;
}

/*
 * Whether the event that runs has the period that it would be given. That depends on the kernel's
 * limit at its creation, which the kernel lowers by itself.
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
		return true; /* it could not be had anew */
	if ((runs->flags & PP_EVENT_FREQ) != (spec.flags & PP_EVENT_FREQ))
		return false;
	return runs->period == spec.period ||
	       (spec.flags & PP_EVENT_FREQ && runs->period < spec.period &&
		runs->period >= p->machine.max_sample_rate);
}

bool pass_can_change(struct pass *p, const struct dropin_event *w, const struct pp_spec *runs,
		     const struct pp_spec *wanted)
{
	uint32_t flags = ~(uint32_t)PP_EVENT_CONFIGURED;

	if (wanted->period == 0)
		flags &= ~PP_EVENT_FREQ;
	if (strcmp(runs->event, wanted->event) != 0 ||
	    (runs->flags & flags) != (wanted->flags & flags) ||
	    memcmp(&runs->cpus, &wanted->cpus, sizeof(runs->cpus)) != 0)
		return false;
	if (wanted->period == 0 ? !has_default_period(p, w, runs) : runs->period != wanted->period)
		return false;
	return strcmp(runs->filter, wanted->filter) == 0 || has_one_filter(&p->request);
}

uint32_t pass_find_changes(const struct pp_spec *runs, const struct pp_spec *wanted)
{
	uint32_t what = 0;

	if (strcmp(runs->filter, wanted->filter) != 0)
		what |= PP_CHANGE_FILTER;
	if (runs->data_size != wanted->data_size)
		what |= PP_CHANGE_BUFFER;
	if (runs->max_rate != wanted->max_rate)
		what |= PP_CHANGE_MAX_RATE;
	return what;
}
