// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From request to spec and parsed event: names, CPUs, buffer and recording options; resolve-texts.c
 * has texts and filters. Must not know peers, rights or the registry.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/resolve-internal.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define FLAGS_KNOWN                                                                              \
	(PP_EVENT_FREQ | PP_EVENT_CHAINS | PP_EVENT_GENERIC | PP_EVENT_WAKEUP | PP_EVENT_SHARE | \
	 PP_EVENT_NO_SHARE | PP_EVENT_BOOT | PP_EVENT_CHECKPOINT | PP_EVENT_PROGRAM)
/* The flags that remain part of the event. */
#define DESCRIBING \
	(PP_EVENT_FREQ | PP_EVENT_CHAINS | PP_EVENT_GENERIC | PP_EVENT_WAKEUP | PP_EVENT_CHECKPOINT)

int resolve_refuse(struct draft *d, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->sentence, d->size, fmt, ap);
	va_end(ap);
	return error;
}

static int take_names(struct draft *d)
{
	if (!pp_name_is_valid(d->request->ns))
		return refuse(d, -EINVAL,
			      "'%s' cannot be a namespace's name; take letters, digits, '_' and "
			      "'-', beginning with a letter or '_', 63 at most.",
			      d->request->ns);
	if (strcmp(d->request->ns, PP_BY_ID) == 0)
		return refuse(d, -EINVAL,
			      "No namespace can be named '" PP_BY_ID
			      "': the registry keeps its links by id there; take another name.");
	if (!pp_name_is_valid(d->request->name))
		return refuse(d, -EINVAL,
			      "'%s' cannot be an event's name; take letters, digits, '_' and '-', "
			      "beginning with a letter or '_', 63 at most.",
			      d->request->name);
	memcpy(d->spec.ns, d->request->ns, sizeof(d->spec.ns));
	memcpy(d->spec.name, d->request->name, sizeof(d->spec.name));
	return 0;
}

/* ── CPUs and buffer ────────────────────────────────────────────────────────────────────── */

/* The CPUs of a that are not in b. Returns whether there are any. */
static bool without(const struct pp_cpumask *a, const struct pp_cpumask *b, struct pp_cpumask *ret)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(ret->bits); i++) {
		ret->bits[i] = a->bits[i] & ~b->bits[i];
		any |= ret->bits[i] != 0;
	}
	return any;
}

/* Parses the list; an empty one means all CPUs. */
static int read_cpus(struct draft *d, struct pp_cpumask *ret)
{
	int r;

	if (d->request->cpus[0] == '\0') {
		d->spec.flags |= PP_EVENT_ALL_CPUS;
		return 0;
	}
	r = pp_parse_cpus(d->request->cpus, ret);
	if (r < 0)
		return refuse(d, -EINVAL, "'%.64s' is not a list of CPUs%s; write one like 0-3,8.",
			      d->request->cpus, r == -ERANGE ? " that Linux can have" : "");
	return 0;
}

static int take_cpus(struct draft *d)
{
	struct pp_cpumask cpus, bad;
	char list[128], others[128];
	int r = read_cpus(d, &cpus);

	if (r < 0 || d->spec.flags & PP_EVENT_ALL_CPUS)
		return r;
	if (without(&cpus, &d->machine->possible, &bad)) {
		pp_format_cpus(&bad, list, sizeof(list));
		pp_format_cpus(&d->machine->possible, others, sizeof(others));
		return refuse(d, -EINVAL, "This machine cannot have CPU %s; its CPUs are %s.", list,
			      others);
	}
	if (without(&cpus, &d->machine->online, &bad)) {
		pp_format_cpus(&bad, list, sizeof(list));
		pp_format_cpus(&d->machine->online, others, sizeof(others));
		return refuse(d, -ENODEV,
			      "CPU %s is offline, and cannot record; bring it online, or choose "
			      "from those that are: %s.",
			      list, others);
	}
	d->spec.cpus = cpus;
	return 0;
}

static int take_buffer(struct draft *d, uint64_t wanted, uint64_t max_buffer)
{
	uint64_t size = PP_DATA_SIZE_MIN;

	if (wanted == 0)
		wanted = RESOLVE_DATA_SIZE;
	if (wanted > PP_DATA_SIZE_MAX)
		return refuse(d, -EINVAL,
			      "A buffer of %" PRIu64 " bytes per CPU is more than the %llu that a "
			      "ring can have; ask for less.",
			      wanted, PP_DATA_SIZE_MAX);
	while (size < wanted)
		size *= 2;
	if (size > max_buffer)
		return refuse(d, -EDQUOT,
			      "A buffer of %" PRIu64
			      " bytes per CPU is over this daemon's limit of "
			      "%" PRIu64 "; ask for less, or have MaxBuffer= raised.",
			      size, max_buffer);
	d->spec.data_size = size;
	return 0;
}

/* ── how it is recorded ─────────────────────────────────────────────────────────────────── */

/* The number of sources of this kind. */
static uint32_t count_kind(const struct pp_parsed *parsed, enum pp_source_kind kind)
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
	bool tracepoint = count_kind(d->parsed, PP_SOURCE_TRACEPOINT) > 0;
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

/* Bytes of user stacks that a CPU may have to copy a second. Beyond it does little else. */
#define STACKS_PER_SECOND (256ULL << 20)

/* `stack_user`: bytes of a sample. */
static int take_samples(struct draft *d, uint32_t stack_user)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->parsed->n_sources; i++)
		sum += samples_of(d, &d->parsed->sources[i]);
	d->spec.samples = (uint32_t)MIN(sum, (uint64_t)UINT32_MAX);
	if (sum * stack_user <= STACKS_PER_SECOND)
		return 0;
	return refuse(
		d, -EINVAL,
		"%" PRIu64 " samples a second, each with up to %u bytes of user stack, are more "
		"than the %llu MiB that a CPU should copy; sample less often (-F, -c) or record "
		"less of the stack (--call-graph dwarf,BYTES).",
		sum, stack_user, STACKS_PER_SECOND >> 20);
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

/* No CPU writes more. */
static uint64_t rate_limit(uint64_t wanted)
{
	return MIN(wanted, (1ULL << 48) - 1);
}

/* What a client can ask for of records; AUX areas have none. */
#define OF_RECORDS                                                              \
	(PP_EVENT_FREQ | PP_EVENT_CHAINS | PP_EVENT_GENERIC | PP_EVENT_WAKEUP | \
	 PP_EVENT_CHECKPOINT | PP_EVENT_PROGRAM)

/* Operations from one that Arm SPE samples to the next; the other PMUs trace all. */
#define AUX_PERIOD 4096

static int take_aux(struct draft *d)
{
	const struct pp_msg_create_request *q = d->request;

	if (count_kind(d->parsed, PP_SOURCE_AUX) == 0)
		return 0;
	if (d->parsed->n_sources > 1)
		return refuse(d, -EINVAL,
			      "'%.100s' are several events, and one that traces into AUX areas is "
			      "alone under its name; create one for each.",
			      d->spec.event);
	if (q->flags & OF_RECORDS || q->max_rate || q->max_stack || *d->spec.filter)
		return refuse(
			d, -EINVAL,
			"'%.100s' traces by itself and makes no records, so it takes no filter, "
			"frequency, rate, call chains, wakeups, checkpoints or program; leave that "
			"out.",
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
	d->spec.period = q->period ?: AUX_PERIOD;
	return 0;
}

static int take_manner(struct draft *d)
{
	uint32_t flags = d->request->flags;
	uint64_t period = d->request->period;

	if (flags & PP_EVENT_GENERIC && count_kind(d->parsed, PP_SOURCE_TRACEPOINT) == 0)
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
	d->spec.max_rate = rate_limit(d->request->max_rate);
	if (count_kind(d->parsed, PP_SOURCE_SAMPLING) > 0)
		return take_period(d, period, flags);
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

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

static int refuse_checkpoint(struct draft *d, uint32_t flags)
{
	return refuse(d, -EINVAL, "Checkpoints every %u s are too rare; give %d s or less.",
		      pp_event_checkpoint(flags), PP_CHECKPOINT_MAX);
}

static int check_flags(struct draft *d)
{
	uint32_t flags = d->request->flags;

	if (flags & ~FLAGS_KNOWN)
		return refuse(d, -EINVAL,
			      "The request has flags (%#x) that this version does not know; use a "
			      "client of the same version.",
			      flags);
	if (pp_event_checkpoint(flags) > PP_CHECKPOINT_MAX)
		return refuse_checkpoint(d, flags);
	if (flags & PP_EVENT_SHARE && flags & PP_EVENT_NO_SHARE)
		return refuse(d, -EINVAL,
			      "The request both asks for sharing and forbids it: choose one.");
	return 0;
}

int resolve_names(const struct pp_msg_create_request *request, struct pp_spec *ret, char *sentence,
		  size_t size)
{
	struct draft d = { .request = request, .sentence = sentence, .size = size };
	int r = take_names(&d);

	if (r < 0)
		return r;
	memcpy(ret->ns, d.spec.ns, sizeof(ret->ns));
	memcpy(ret->name, d.spec.name, sizeof(ret->name));
	return 0;
}

/* A process that its events cannot be bound to becomes a part of their filters. */
static int take_selections(struct draft *d, struct pp_msg_create_request *filtered)
{
	int r = resolve_check_target(d);

	if (r >= 0)
		r = resolve_take_selections(d);
	if (r >= 0)
		r = resolve_bind(d, filtered);
	if (r <= 0)
		return r;
	memset(d->spec.event, 0, sizeof(d->spec.event));
	memset(d->spec.filter, 0, sizeof(d->spec.filter));
	return resolve_take_selections(d);
}

int resolve(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, struct pp_parsed *ret_parsed, char *sentence,
	    size_t size)
{
	_cleanup_free_ struct pp_msg_create_request *filtered = malloc(sizeof(*filtered));
	struct draft d = {
		.request = request,
		.machine = machine,
		.parsed = ret_parsed,
		.sentence = sentence,
		.size = size,
	};
	int r = filtered ? check_flags(&d)
			 : refuse(&d, -ENOMEM, "The daemon has no memory for the request.");

	if (r >= 0)
		r = take_names(&d);
	if (r >= 0)
		r = take_cpus(&d);
	if (r >= 0)
		r = take_buffer(&d, request->data_size, max_buffer);
	if (r >= 0)
		r = take_selections(&d, filtered);
	if (r >= 0)
		r = take_aux(&d);
	if (r >= 0)
		r = take_manner(&d);
	if (r >= 0)
		r = take_max_stack(&d);
	if (r >= 0)
		r = take_stack_user(&d);
	if (r >= 0)
		r = check_program(&d);
	if (r >= 0)
		r = take_samples(&d, d.spec.stack_user);
	if (r < 0)
		return r;
	/* The engine accepts nothing else, and would close the link. */
	if (pp_spec_check(&d.spec) < 0 || pp_parsed_check(ret_parsed, true) < 0)
		return refuse(&d, -EINVAL,
			      "%s/%s has something in its texts or numbers that no event can have; "
			      "write it more simply.",
			      request->ns, request->name);
	*ret = d.spec;
	return 0;
}

int resolve_outline(const struct pp_msg_create_request *request, uint64_t max_buffer,
		    struct pp_spec *ret, char *sentence, size_t size)
{
	struct draft d = { .request = request, .sentence = sentence, .size = size };
	int r = check_flags(&d);

	if (r >= 0)
		r = take_names(&d);
	if (r >= 0)
		r = read_cpus(&d, &d.spec.cpus);
	if (r >= 0)
		r = take_buffer(&d, request->data_size, max_buffer);
	if (r >= 0)
		r = resolve_join_texts(&d);
	if (r < 0)
		return r;
	d.spec.flags |= request->flags & DESCRIBING;
	if (request->target.kind)
		d.spec.flags |= PP_EVENT_BOUND;
	if (request->stack_user)
		d.spec.flags |= PP_EVENT_USER_STACK;
	d.spec.period = request->period;
	d.spec.max_rate = rate_limit(request->max_rate);
	d.spec.max_stack = (uint16_t)MIN(request->max_stack, (uint32_t)UINT16_MAX);
	d.spec.stack_user = (uint16_t)MIN(request->stack_user, (uint32_t)UINT16_MAX);
	*ret = d.spec;
	return 0;
}

/* The text of an event that exists says what samples, and so which period it can have. */
static int change_period(struct draft *d, const struct pp_msg_change_request *request,
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
	if (count_kind(d->parsed, PP_SOURCE_SAMPLING) == 0)
		return refuse_sampling(d, request->flags);
	r = take_period(d, request->period, request->flags);
	return r < 0 ? r : take_samples(d, is->stack_user);
}

static int check_change(struct draft *d, const struct pp_msg_change_request *request)
{
	uint32_t flags = PP_EVENT_CHECKPOINT;

	if (request->what & PP_CHANGE_PERIOD)
		flags |= PP_EVENT_FREQ;
	if (request->what & ~PP_CHANGES || request->flags & ~flags)
		return refuse(d, -EINVAL,
			      "The request is for changes (%#x) that this version does not know; "
			      "use a client of the same version.",
			      request->what);
	if (pp_event_checkpoint(request->flags) > PP_CHECKPOINT_MAX)
		return refuse_checkpoint(d, request->flags);
	if (!request->what)
		return refuse(
			d, -EINVAL,
			"Nothing is to be changed; name a filter, a buffer, a rate, a period or "
			"the time of checkpoints.");
	return 0;
}

int resolve_change(const struct pp_msg_change_request *request, const struct pp_spec *is,
		   const struct machine *machine, uint64_t max_buffer, struct pp_spec *ret,
		   struct pp_parsed *ret_parsed, char *sentence, size_t size)
{
	struct draft d = {
		.machine = machine,
		.parsed = ret_parsed,
		.sentence = sentence,
		.size = size,
	};
	uint32_t n;
	int r = check_change(&d, request);

	memset(ret_parsed, 0, sizeof(*ret_parsed));
	if (r >= 0 && request->what & PP_CHANGE_PERIOD) {
		r = change_period(&d, request, is);
		memset(ret_parsed, 0, sizeof(*ret_parsed));
	}
	if (r < 0)
		return r;
	if (request->what & PP_CHANGE_FILTER && request->filter[0])
		r = resolve_take_filter(&d, request->filter, &n);
	if (r >= 0 && request->what & PP_CHANGE_BUFFER)
		r = take_buffer(&d, request->data_size, max_buffer);
	if (r < 0)
		return r;
	if (request->what & PP_CHANGE_FILTER)
		memcpy(d.spec.filter, request->filter, sizeof(d.spec.filter));
	d.spec.max_rate = rate_limit(request->max_rate);
	d.spec.flags |= request->flags & PP_EVENT_CHECKPOINT;
	*ret = d.spec;
	return 0;
}
