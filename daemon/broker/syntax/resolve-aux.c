// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events of a draft that trace into AUX areas, and those beside them. Must not know names or CPUs. */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/syntax/resolve-internal.h"
#include "daemon/text.h"

/* What a client can ask for of our programs' records; beside AUX areas there are only the kernel's own. */
#define OF_PROGRAMS (PP_EVENT_GENERIC | PP_EVENT_WAKEUP | PP_EVENT_CHECKPOINT | PP_EVENT_PROGRAM)

/* Terms for the group of an AUX area, and there is none. */
static int refuse_terms(struct draft *d)
{
	for (uint32_t i = 0; i < d->parsed->n_sources; i++)
		if (pp_source_has_aux_term(&d->parsed->sources[i]))
			return refuse(
				d, -EINVAL,
				"'%.100s' has a term about an AUX area, and no area to go with; "
				"write the event that traces first, as in "
				"intel_pt//,cpu-clock/aux-sample-size=4096/.",
				d->parsed->sources[i].text);
	return 0;
}

static int check_member(struct draft *d, const struct pp_source *s)
{
	if (s->kind == PP_SOURCE_AUX)
		return refuse(d, -EINVAL,
			      "'%.100s' are two events that trace into AUX areas, or the one that "
			      "does is not the first; write it first, and the others behind it.",
			      d->spec.event);
	if (!pp_source_has_aux_term(s))
		return refuse(
			d, -EINVAL,
			"'%.100s' would have nothing to do beside an event that traces; give it "
			"aux-sample-size=BYTES, aux-action=pause or aux-action=resume, or a name "
			"of its own.",
			s->text);
	if (!pp_source_can_be_beside(s))
		return refuse(
			d, -EINVAL,
			"'%.100s' cannot be beside an event that traces, where each of its occurrences "
			"would make a sample; take a clock (cpu-clock), a hardware counter or another "
			"tracepoint, or give it a name of its own.",
			s->text);
	if (s->kind == PP_SOURCE_TRACEPOINT && (pp_is_glob(s->system) || pp_is_glob(s->name)))
		return refuse(
			d, -EINVAL,
			"'%.100s' can be several tracepoints, and beside an event that traces "
			"each has to be named.",
			s->text);
	return 0;
}

/* The engine takes each tracepoint once. */
static int check_twice(struct draft *d, uint32_t i)
{
	const struct pp_source *s = &d->parsed->sources[i];

	for (uint32_t k = 1; k < i; k++) {
		const struct pp_source *other = &d->parsed->sources[k];

		if (s->kind == PP_SOURCE_TRACEPOINT && other->kind == PP_SOURCE_TRACEPOINT &&
		    !strcmp(s->system, other->system) && !strcmp(s->name, other->name))
			return refuse(d, -EINVAL,
				      "'%s:%s' stands there twice; write it once, with all its "
				      "terms.",
				      s->system, s->name);
	}
	return 0;
}

static int take_group(struct draft *d)
{
	const struct pp_msg_create_request *q = d->request;
	int r = 0;

	if (d->parsed->sources[0].kind != PP_SOURCE_AUX)
		return check_member(d, &(struct pp_source){ .kind = PP_SOURCE_AUX });
	for (uint32_t i = 1; r >= 0 && i < d->parsed->n_sources; i++) {
		r = check_member(d, &d->parsed->sources[i]);
		if (r >= 0)
			r = check_twice(d, i);
	}
	if (r >= 0 && q->stack_user)
		return refuse(d, -EINVAL,
			      "Beside an event that traces no user stacks are recorded; leave out "
			      "--call-graph dwarf.");
	d->spec.flags |= PP_EVENT_AUX_GROUP;
	return r;
}

int resolve_take_aux(struct draft *d)
{
	const struct pp_msg_create_request *q = d->request;
	uint32_t unfit = OF_PROGRAMS;
	int r = 0;

	if (resolve_count_kind(d->parsed, PP_SOURCE_AUX) == 0)
		return refuse_terms(d);
	if (d->parsed->n_sources > 1)
		r = take_group(d);
	else
		unfit |= PP_EVENT_FREQ | PP_EVENT_CHAINS;
	if (r < 0)
		return r;
	if (q->flags & unfit || q->max_rate || *d->spec.filter ||
	    (q->max_stack && unfit & PP_EVENT_CHAINS))
		return refuse(
			d, -EINVAL,
			"'%.100s' traces by itself and our programs make no records of it, so it "
			"takes no filter, frequency, rate, call chains, wakeups, checkpoints or "
			"program; leave that out.",
			d->spec.event);
	if (d->spec.data_size < PP_AUX_SIZE_MIN)
		return refuse(d, -EINVAL,
			      "An AUX area of %" PRIu64 " bytes per CPU is less than %d; some PMUs "
			      "interrupt the CPU whenever half of it is full; ask for more.",
			      d->spec.data_size, PP_AUX_SIZE_MIN);
	if (d->spec.data_size > PP_AUX_SIZE_MAX)
		return refuse(d, -EINVAL,
			      "An AUX area of %" PRIu64 " bytes per CPU is more than the %llu that "
			      "can be copied at once; ask for less.",
			      d->spec.data_size, PP_AUX_SIZE_MAX);
	d->spec.flags |= PP_EVENT_AUX;
	d->spec.period = q->period ?: PP_AUX_PERIOD;
	return 0;
}
