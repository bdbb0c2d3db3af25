// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Judges orders. Runs in the engine as if whoever sent them were hostile, and over what
 * recovery finds in pins. Pure; the event's text is only looked at as text, never parsed.
 */
#include "daemon/order.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define FLAGS_KNOWN (PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_ALL_CPUS | PP_EVENT_GENERIC)
#define EXCLUDE_KNOWN                                                            \
	(PP_EXCLUDE_USER | PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV | PP_EXCLUDE_HOST | \
	 PP_EXCLUDE_GUEST | PP_EXCLUDE_IDLE)

static bool is_terminated(const char *field, size_t size)
{
	return strnlen(field, size) < size;
}

static bool name_is_good(const char *field)
{
	return is_terminated(field, PP_NAME_SIZE) && pp_name_is_valid(field);
}

static bool tp_name_is_good(const char *field)
{
	return is_terminated(field, PP_TP_NAME_SIZE) && pp_tp_name_is_valid(field);
}

/* It is shown on terminals and stands in text files, a line for itself. */
static bool event_text_is_good(const char *field)
{
	if (!*field || !is_terminated(field, PP_EVENT_TEXT_SIZE))
		return false;
	for (; *field; field++)
		if (*field < 0x20 || *field > 0x7e)
			return false;
	return true;
}

static bool cpumask_is_empty(const struct pp_cpumask *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->bits); i++)
		if (m->bits[i])
			return false;
	return true;
}

static bool tracepoint_is_good(const struct pp_spec *spec)
{
	const struct pp_source *s = &spec->source;

	return tp_name_is_good(s->system) && tp_name_is_good(s->tracepoint) && !s->type &&
	       !s->config && !s->config1 && !s->config2 && !s->exclude && !s->precise_ip &&
	       !spec->period && !(spec->flags & (PP_EVENT_FREQ | PP_EVENT_CALLCHAIN));
}

/* Does this event count anything? */
static bool counter_is_known(uint32_t type, uint64_t config)
{
	switch (type) {
	case PERF_TYPE_HARDWARE:
		return config < PERF_COUNT_HW_MAX;
	case PERF_TYPE_SOFTWARE:
		return config <= PERF_COUNT_SW_CGROUP_SWITCHES && config != PERF_COUNT_SW_DUMMY &&
		       config != PERF_COUNT_SW_BPF_OUTPUT;
	default:
		return false;
	}
}

static bool sampling_is_good(const struct pp_spec *spec)
{
	const struct pp_source *s = &spec->source;

	/* The kernel keeps the period's top bit for itself. */
	return !*s->system && !*s->tracepoint && counter_is_known(s->type, s->config) &&
	       !s->config1 && !s->config2 && !(s->exclude & ~EXCLUDE_KNOWN) && s->precise_ip <= 3 &&
	       !(spec->flags & PP_EVENT_GENERIC) && spec->period > 0 && spec->period <= INT64_MAX;
}

static bool source_is_good(const struct pp_spec *spec)
{
	switch (spec->source.kind) {
	case PP_SOURCE_TRACEPOINT:
		return tracepoint_is_good(spec);
	case PP_SOURCE_SAMPLING:
		return sampling_is_good(spec);
	default:
		return false;
	}
}

static bool data_size_is_good(uint64_t size)
{
	return size >= PP_DATA_SIZE_MIN && size <= PP_DATA_SIZE_MAX && !(size & (size - 1));
}

int pp_spec_check(const struct pp_spec *spec)
{
	bool all_cpus = spec->flags & PP_EVENT_ALL_CPUS;

	if (!name_is_good(spec->ns) || !strcmp(spec->ns, PP_BY_ID) || !name_is_good(spec->name))
		return -EBADMSG;
	if (!event_text_is_good(spec->event) || !source_is_good(spec))
		return -EBADMSG;
	if (!data_size_is_good(spec->data_size) || spec->flags & ~FLAGS_KNOWN)
		return -EBADMSG;
	if (cpumask_is_empty(&spec->cpus) != all_cpus)
		return -EBADMSG;
	/* An id of -1 would tell chown(2) to leave things with root. */
	if (spec->owner == UINT32_MAX || spec->group == UINT32_MAX || spec->mode > 0777)
		return -EBADMSG;
	return 0;
}

int pp_event_check(const struct pp_event *event)
{
	if (!event->id || event->recorder < PP_RECORDER_GENERIC ||
	    event->recorder > PP_RECORDER_OVERFLOW)
		return -EBADMSG;
	if (event->header_size < PP_RING_PAGE || event->header_size > PP_DATA_SIZE_MAX ||
	    event->spill_size > PP_SPILL_SIZE_MAX)
		return -EBADMSG;
	return pp_spec_check(&event->spec);
}

int pp_order_check(const struct pp_order *order)
{
	if (order->abi != PP_ORDER_ABI)
		return -EBADMSG;
	switch (order->type) {
	case PP_ORDER_ENUMERATE:
		return 0;
	case PP_ORDER_CREATE:
		return pp_spec_check(&order->spec);
	case PP_ORDER_DELETE:
		return order->id ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}
