// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How the events of a draft are recorded: period or frequency, call chains and stacks, a program; and what of
 * it their kind excludes. Must not know names, CPUs or buffers.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/broker/syntax/resolve-internal.h"

uint32_t resolve_count_kind(const struct pp_parsed *parsed, enum pp_source_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < parsed->n_sources; i++)
		n += parsed->sources[i].kind == kind;
	return n;
}

static bool are_breakpoints(const struct pp_parsed *parsed)
{
	for (uint32_t i = 0; i < parsed->n_sources; i++)
		if (parsed->sources[i].kind == PP_SOURCE_SAMPLING &&
		    parsed->sources[i].type != PERF_TYPE_BREAKPOINT)
			return false;
	return true;
}

/* There are no sampling events. */
static int refuse_sampling(struct draft *d, uint32_t flags)
{
	bool tracepoint = resolve_count_kind(d->parsed, PP_SOURCE_TRACEPOINT) > 0;
	const char *what = tracepoint ? "tracepoint" : "probe";

	return refuse(d, -EINVAL,
		      "%.*s is a %s, of which every occurrence is recorded; leave out the "
		      "%s, which is for sampling events.",
		      (int)sizeof(d->parsed->sources[0].text), d->parsed->sources[0].text, what,
		      flags & PP_EVENT_FREQ ? "frequency" : "period");
}

/* Sets the period and its flag, for all sources that sample. */
static int take_period(struct draft *d, uint64_t period, uint32_t flags)
{
	uint64_t max = d->machine->max_sample_rate;

	flags &= PP_EVENT_FREQ;

	if (flags && period && are_breakpoints(d->parsed))
		return refuse(
			d, -EINVAL,
			"%.*s is a breakpoint, which has no frequency; give a period, or record "
			"every hit.",
			(int)sizeof(d->parsed->sources[0].text), d->parsed->sources[0].text);
	if (period == 0 && !(flags & PP_EVENT_FREQ) && are_breakpoints(d->parsed)) {
		period = 1; /* every hit, as in perf */
	} else if (period == 0) {
		/* As in perf, the default adapts to the kernel's limit; an explicit rate over it is
		 * refused. */
		flags |= PP_EVENT_FREQ;
		period = MAX(1ULL, MIN(max, (uint64_t)RESOLVE_FREQUENCY));
	}
	if (flags & PP_EVENT_FREQ && period > max)
		return refuse(d, -EINVAL,
			      "%" PRIu64 " Hz is more than the %" PRIu64 " that this kernel "
			      "allows; ask for less, or raise kernel.perf_event_max_sample_rate.",
			      period, max);
	if (period >> 63)
		return refuse(d, -EINVAL,
			      "A period of %" PRIu64 " events is more than the kernel can count; "
			      "ask for less.",
			      period);
	d->spec.period = period;
	d->spec.flags |= flags;
	return 0;
}

/* The kernel's shortest period of a timer, and the fastest rate of a processor's counters. */
#define CLOCK_PERIOD_MIN 10000ULL
#define CLOCK_PER_SECOND 1000000000ULL
#define COUNTER_PER_SECOND (5 * CLOCK_PER_SECOND)

/*
 * The most samples per second of one source on one CPU. 0 for counters of occurrences (page
 * faults), whose rate nobody can predict. As with tracepoints, recording them costs time where they
 * occur, and the limit on programs bounds it.
 */
static uint64_t samples_of(const struct draft *d, const struct pp_source *source)
{
	uint64_t period = d->spec.period, rate;

	if (source->kind != PP_SOURCE_SAMPLING)
		return 0;
	if (d->spec.flags & PP_EVENT_FREQ)
		return period;
	if (source->type == PERF_TYPE_SOFTWARE && (source->config == PERF_COUNT_SW_CPU_CLOCK ||
						   source->config == PERF_COUNT_SW_TASK_CLOCK))
		rate = CLOCK_PER_SECOND / MAX(period, CLOCK_PERIOD_MIN);
	else if (source->type == PERF_TYPE_SOFTWARE || source->type == PERF_TYPE_BREAKPOINT)
		return 0;
	else
		rate = COUNTER_PER_SECOND / period;
	return MIN(MAX(rate, 1ULL), d->machine->max_sample_rate);
}

/* Bytes of user stacks, or of AUX areas, that a CPU may have to copy a second. Beyond it does little else. */
#define COPIED_PER_SECOND (256ULL << 20)

/* `stack_user`: bytes of a sample. */
static int take_samples(struct draft *d, uint32_t stack_user)
{
	uint64_t sum = 0, aux = 0;

	for (uint32_t i = 0; i < d->parsed->n_sources; i++) {
		const struct pp_source *s = &d->parsed->sources[i];
		uint64_t n = samples_of(d, s);

		sum += n;
		aux += n * s->aux_sample;
	}
	d->spec.samples = (uint32_t)MIN(sum, (uint64_t)UINT32_MAX);
	if (aux > COPIED_PER_SECOND)
		return refuse(
			d, -EINVAL,
			"%" PRIu64 " samples a second with parts of the trace are %" PRIu64
			" MiB, more than the %llu that a CPU should copy; sample less often (-F, "
			"-c), or less of it (aux-sample-size).",
			sum, aux >> 20, COPIED_PER_SECOND >> 20);
	if (sum * stack_user <= COPIED_PER_SECOND)
		return 0;
	return refuse(
		d, -EINVAL,
		"%" PRIu64 " samples a second, each with up to %u bytes of user stack, are more "
		"than the %llu MiB that a CPU should copy; sample less often (-F, -c) or record "
		"less of the stack (--call-graph dwarf,BYTES).",
		sum, stack_user, COPIED_PER_SECOND >> 20);
}

/* The kernel's limit as it is now; PP_MAX_STACK is that of our records. */
static int take_max_stack(struct draft *d)
{
	uint64_t max = MIN(d->machine->max_stack, (uint64_t)PP_MAX_STACK);
	uint32_t wanted = d->request->max_stack;

	if (wanted && !(d->request->flags & PP_EVENT_CALLCHAIN))
		return refuse(d, -EINVAL,
			      "A limit of %u entries is for call chains, and none are recorded; "
			      "add -g (CallGraph=yes), or leave it out.",
			      wanted);
	if (wanted > max)
		return refuse(d, -EINVAL,
			      "Call chains of %u entries are longer than the %" PRIu64
			      " that can be recorded here (kernel.perf_event_max_stack, and %d at "
			      "most); ask for fewer.",
			      wanted, max, PP_MAX_STACK);
	d->spec.max_stack = (uint16_t)wanted;
	return 0;
}

static int take_stack_user(struct draft *d)
{
	uint32_t wanted = d->request->stack_user;

	if (!pp_event_stack_is_good(d->request->flags, wanted))
		return refuse(
			d, -EINVAL,
			"%u bytes of the user stack cannot be recorded: that takes the kernel's "
			"half of call chains alone, and a multiple of 8 that is %d at most.",
			wanted, PP_STACK_USER_MAX);
	d->spec.stack_user = (uint16_t)wanted;
	if (wanted)
		d->spec.flags |= PP_EVENT_USER_STACK;
	return 0;
}

static int take_flags(struct draft *d)
{
	uint32_t flags = d->request->flags;
	uint64_t period = d->request->period;

	if (flags & PP_EVENT_GENERIC && resolve_count_kind(d->parsed, PP_SOURCE_TRACEPOINT) == 0)
		return refuse(d, -EINVAL,
			      "%s is no tracepoint, and the generic recorder is one for "
			      "tracepoints; leave it out.",
			      d->spec.event);
	if (!pp_event_chains_are_good(flags))
		return refuse(
			d, -EINVAL,
			"The request asks for a half of a call chain and for no chain, or for "
			"neither half; ask for one or both.");
	d->spec.flags |= flags & (PP_EVENT_GENERIC | PP_EVENT_WAKEUP | PP_EVENT_CHECKPOINT |
				  PP_EVENT_PROGRAM | PP_EVENT_CHAINS);
	d->spec.max_rate = resolve_rate_limit(d->request->max_rate);
	if (resolve_count_kind(d->parsed, PP_SOURCE_SAMPLING) > 0)
		return take_period(d, period, flags);
	if (d->spec.flags & PP_EVENT_AUX_GROUP && (period || flags & PP_EVENT_FREQ))
		return refuse(
			d, -EINVAL,
			"'%.100s' has no counter beside its trace, which a period or frequency "
			"could be for; leave it out.",
			d->spec.event);
	if (d->spec.flags & PP_EVENT_AUX)
		return 0;
	return period || flags & PP_EVENT_FREQ ? refuse_sampling(d, flags) : 0;
}

/* The engine finds out what a glob stands for. */
static int check_program(struct draft *d)
{
	uint32_t flags = d->request->flags;

	if (!(flags & PP_EVENT_PROGRAM) != !d->request->program)
		return refuse(
			d, -EINVAL,
			"The request names a BPF program and does not say so, or the other way "
			"round; use a client of the same version.");
	if (!(flags & PP_EVENT_PROGRAM))
		return 0;
	if (flags & (PP_EVENT_SHARE | PP_EVENT_BOOT))
		return refuse(
			d, -EINVAL,
			"An event with a BPF program is neither shared nor created by --boot; "
			"a unit that runs `perfctl create --bpf` creates it after each boot.");
	if (d->parsed->n_sources > 1)
		return refuse(
			d, -EINVAL,
			"'%.100s' are several events, and a BPF program decides on the records "
			"of one; name one.",
			d->spec.event);
	return 0;
}

uint64_t resolve_rate_limit(uint64_t wanted)
{
	return MIN(wanted, (1ULL << 48) - 1);
}

int resolve_take_manner(struct draft *d)
{
	int r = resolve_take_aux(d);

	if (r >= 0)
		r = take_flags(d);
	if (r >= 0)
		r = take_max_stack(d);
	if (r >= 0)
		r = take_stack_user(d);
	if (r >= 0)
		r = check_program(d);
	if (r >= 0)
		r = take_samples(d, d->spec.stack_user);
	return r;
}

/* The text of an event that exists says what samples, and so which period it can have. */
int resolve_change_period(struct draft *d, const struct pp_msg_change_request *request,
			  const struct pp_spec *is)
{
	struct pp_msg_selection selection = {};
	int r;

	if (is->flags & PP_EVENT_ADOPTED)
		return refuse(d, -EOPNOTSUPP,
			      "'%s/%s' is on perf events that its creator opened, whose period is "
			      "theirs.",
			      is->ns, is->name);
	memcpy(selection.event, is->event, sizeof(selection.event));
	r = resolve_take_selection(d, &selection);
	if (r < 0)
		return r;
	if (resolve_count_kind(d->parsed, PP_SOURCE_SAMPLING) == 0)
		return refuse_sampling(d, request->flags);
	r = take_period(d, request->period, request->flags);
	return r < 0 ? r : take_samples(d, is->stack_user);
}
