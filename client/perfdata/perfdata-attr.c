// SPDX-License-Identifier: LGPL-2.1-or-later
/* The attributes of a perf.data file's events: those of the sources, changed to what perf expects
 * in its own files, with the tracepoints' numbers, by which perf finds formats. */
#include "client/perfdata/perfdata.h"

#include <string.h>
#include <time.h>

#include "proto/sideband.h"

_Static_assert(sizeof(struct perf_event_attr) >= PERFDATA_ATTR_SIZE, "attr of Linux 5.13 or later");

/* The fields of every sample, then those that a source may have. */
#define SAMPLE_ALWAYS                                                                    \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD)
#define SAMPLE_SOMETIMES                                                               \
	(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | \
	 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX)

/* A tracepoint's number is the __u16 at the beginning of each payload. */
#define NUMBER_MAX UINT16_MAX

static const char id_key[] = "\nID: ";

/* The number in a format, with the offsets of its digits. False: there is none. */
static bool find_number(const char *format, size_t size, size_t *ret_begin, size_t *ret_end,
			uint64_t *ret)
{
	const char *key = memmem(format, size, id_key, strlen(id_key));
	size_t begin = key ? (size_t)(key - format) + strlen(id_key) : size, end = begin;
	uint64_t n = 0;

	while (end < size && end - begin < 10 && format[end] >= '0' && format[end] <= '9')
		n = 10 * n + (uint64_t)(format[end++] - '0');
	if (end == begin)
		return false;
	*ret_begin = begin;
	*ret_end = end;
	*ret = n;
	return true;
}

/* Replaces the number in the format. 0 or -ENOMEM. */
static int set_number(struct perfdata_evsel *evsel, uint64_t number)
{
	size_t begin, end;
	uint64_t old;
	char *format;
	int n;

	if (!find_number(evsel->format, evsel->format_size, &begin, &end, &old))
		return 0;
	n = asprintf(&format, "%.*s%llu%.*s", (int)begin, evsel->format, (unsigned long long)number,
		     (int)(evsel->format_size - end), evsel->format + end);
	if (n < 0)
		return -ENOMEM;
	free(evsel->format);
	evsel->format = format;
	evsel->format_size = (size_t)n;
	evsel->attr.config = number;
	return 0;
}

/* Whether two formats are equal except for their numbers: attr.config distinguishes these. */
static bool is_same_format(const struct perfdata_evsel *a, const struct perfdata_evsel *b)
{
	return a->format_size == b->format_size && !memcmp(a->format, b->format, a->format_size);
}

static const struct perfdata_evsel *find_numbered(const struct perfdata_evsel *evsels, size_t n,
						  uint64_t number)
{
	for (size_t i = 0; i < n; i++)
		if (evsels[i].format && evsels[i].attr.config == number)
			return &evsels[i];
	return NULL;
}

int evsel_number(struct perfdata_evsel *evsels, size_t n)
{
	struct perfdata_evsel *evsel = &evsels[n];
	const struct perfdata_evsel *other;
	uint64_t number = NUMBER_MAX;

	if (!evsel->format)
		return 0;
	other = find_numbered(evsels, n, evsel->attr.config);
	if (!other)
		return 0;
	if (is_same_format(evsel, other)) {
		evsel->is_known = true;
		return 0;
	}
	/* Our probes have made-up numbers, and saves those of another boot. */
	while (number && find_numbered(evsels, n, number))
		number--;
	evsel->is_renumbered = true;
	return set_number(evsel, number);
}

static void take_attr(const struct perfpersist_source *source, struct perf_event_attr *ret)
{
	struct perf_event_attr from = {}, attr = {};

	if (source->attr_size)
		memcpy(&from, source->attr, MIN(source->attr_size, (size_t)PERFDATA_ATTR_SIZE));
	attr.type = from.type;
	attr.size = PERFDATA_ATTR_SIZE;
	attr.config = from.config;
	attr.config1 = from.config1;
	attr.config2 = from.config2;
	attr.bp_type = from.bp_type;
	attr.sample_period = from.sample_period;
	attr.freq = from.freq;
	attr.precise_ip = from.precise_ip;
	attr.exclude_user = from.exclude_user;
	attr.exclude_kernel = from.exclude_kernel;
	attr.exclude_hv = from.exclude_hv;
	attr.exclude_idle = from.exclude_idle;
	attr.exclude_host = from.exclude_host;
	attr.exclude_guest = from.exclude_guest;
	attr.exclude_callchain_kernel = from.exclude_callchain_kernel;
	attr.exclude_callchain_user = from.exclude_callchain_user;
	attr.sample_max_stack = from.sample_max_stack;
	attr.sample_regs_user = from.sample_regs_user;
	attr.sample_stack_user = from.sample_stack_user;
	attr.aux_sample_size = from.aux_sample_size;
	attr.sample_type = SAMPLE_ALWAYS | (source->sample_type & SAMPLE_SOMETIMES);
	if (source->sample_type & PERF_SAMPLE_CALLCHAIN) /* perf prints no chain without it */
		attr.sample_type |= PERF_SAMPLE_IP;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.disabled = 1;
	*ret = attr;
}

/* Our probes are other perf events; perf decodes only tracepoints by a format. */
static int take_format(struct perfdata_evsel *evsel, const struct perfpersist_source *source)
{
	size_t begin, end;
	uint64_t number;

	_cleanup_free_ char *format = strndup(source->format, source->format_size);

	if (!format)
		return -ENOMEM;
	if (!find_number(format, strlen(format), &begin, &end, &number))
		return 0;
	evsel->format_size = strlen(format);
	evsel->format = TAKE_PTR(format);
	evsel->attr.type = PERF_TYPE_TRACEPOINT;
	evsel->attr.config = number;
	evsel->attr.config1 = evsel->attr.config2 = 0;
	evsel->attr.sample_period = 1;
	return 0;
}

int evsel_init(struct perfdata_evsel *evsel, const struct perfpersist_source *source, uint64_t id)
{
	struct perfdata_evsel e = { .id = id, .source_type = source->sample_type };

	take_attr(source, &e.attr);
	e.name = strndup(source->event, source->event_size);
	if (!e.name || (source->format && take_format(&e, source) < 0)) {
		evsel_done(&e);
		return -ENOMEM;
	}
	*evsel = e;
	return 0;
}

int evsel_init_sideband(struct perfdata_evsel *evsel)
{
	struct perfdata_evsel e = {
		.id = PP_SIDEBAND_ID,
		.name = strdup("dummy:HG"),
		.attr = {
			.type = PERF_TYPE_SOFTWARE,
			.size = PERFDATA_ATTR_SIZE,
			.config = PERF_COUNT_SW_DUMMY,
			.sample_period = 1,
			.sample_type = PP_SIDEBAND_SAMPLE_TYPE,
			.sample_id_all = 1,
			.use_clockid = 1,
			.clockid = CLOCK_MONOTONIC,
			.mmap = 1,
			.mmap2 = 1,
			.comm = 1,
			.comm_exec = 1,
			.task = 1,
		},
	};

	if (!e.name)
		return -ENOMEM;
	*evsel = e;
	return 0;
}

void evsel_done(struct perfdata_evsel *evsel)
{
	free(evsel->name);
	free(evsel->format);
	evsel->name = evsel->format = NULL;
}
