// SPDX-License-Identifier: LGPL-2.1-or-later
/* From request to spec. Must not know peers, rights or the registry. */
#include "daemon/broker/specify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/spec.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

struct draft {
	const struct pp_msg_create_request *request;
	const struct machine *machine;
	struct pp_spec spec;
	char *sentence;
	size_t size;
};

static int refuse(struct draft *d, int error, const char *fmt, ...) _printf_(3, 4);
static int refuse(struct draft *d, int error, const char *fmt, ...)
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

static int take_event(struct draft *d)
{
	int err = pp_source_parse(d->request->event, &d->spec.source, d->sentence, d->size);

	if (err < 0)
		return err;
	memcpy(d->spec.event, d->request->event, sizeof(d->spec.event));
	return 0;
}

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

static int take_cpus(struct draft *d)
{
	struct pp_cpumask cpus, bad;
	char list[128], others[128];
	int err;

	if (d->request->cpus[0] == '\0') {
		d->spec.flags |= PP_EVENT_ALL_CPUS;
		return 0;
	}
	err = pp_parse_cpus(d->request->cpus, &cpus);
	if (err < 0)
		return refuse(d, -EINVAL, "'%.64s' is not a list of CPUs%s; write one like 0-3,8.",
			      d->request->cpus, err == -ERANGE ? " that Linux can have" : "");
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

static int take_buffer(struct draft *d, uint64_t max_buffer)
{
	uint64_t wanted = d->request->data_size ? d->request->data_size : SPECIFY_DATA_SIZE;
	uint64_t size = PP_DATA_SIZE_MIN;

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

static int take_tracepoint(struct draft *d)
{
	if (d->request->period || d->request->flags & PP_EVENT_FREQ)
		return refuse(d, -EINVAL,
			      "%s is a tracepoint, of which every occurrence is recorded; leave "
			      "out the %s, which is for sampling events.",
			      d->request->event,
			      d->request->flags & PP_EVENT_FREQ ? "frequency" : "period");
	if (d->request->flags & PP_EVENT_CALLCHAIN)
		return refuse(d, -EOPNOTSUPP,
			      "%s is a tracepoint, and in this version only sampling events such "
			      "as cpu-clock record call chains; leave them out.",
			      d->request->event);
	d->spec.flags |= d->request->flags & PP_EVENT_GENERIC;
	return 0;
}

static int take_period(struct draft *d)
{
	uint64_t max = d->machine->max_sample_rate;
	uint64_t period = d->request->period;
	uint32_t flags = d->request->flags & (PP_EVENT_FREQ | PP_EVENT_CALLCHAIN);

	if (d->request->flags & PP_EVENT_GENERIC)
		return refuse(d, -EINVAL,
			      "%s is a sampling event, and the generic recorder is one for "
			      "tracepoints; leave it out.",
			      d->request->event);
	if (period == 0) {
		/* The default gives way, as perf's does; what was asked for is refused instead. */
		flags |= PP_EVENT_FREQ;
		period = MAX(1ULL, MIN(max, (uint64_t)SPECIFY_FREQUENCY));
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

int specify(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, char *sentence, size_t size)
{
	struct draft d = {
		.request = request,
		.machine = machine,
		.sentence = sentence,
		.size = size,
	};
	int err;

	if (request->flags & ~(PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_GENERIC) ||
	    request->reserved)
		return refuse(&d, -EINVAL,
			      "The request has flags (%#x) that this version does not know; use a "
			      "client of the same version.",
			      request->flags);
	err = take_names(&d);
	if (err < 0)
		return err;
	err = take_event(&d);
	if (err < 0)
		return err;
	err = take_cpus(&d);
	if (err < 0)
		return err;
	err = take_buffer(&d, max_buffer);
	if (err < 0)
		return err;
	err = d.spec.source.kind == PP_SOURCE_TRACEPOINT ? take_tracepoint(&d) : take_period(&d);
	if (err < 0)
		return err;
	*ret = d.spec;
	return 0;
}
