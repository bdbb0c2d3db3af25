// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the shape of samples in a perf.data file: the order of fields that perf_event_open(2) gives.
 */
#include <string.h>

#include "client/perfdata/perfdata.h"

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *put_two(uint8_t *p, uint32_t a, uint32_t b)
{
	memcpy(p, &a, sizeof(a));
	memcpy(p + sizeof(a), &b, sizeof(b));
	return p + sizeof(uint64_t);
}

/* The size goes to the end of the record, as the kernel does it: up to a multiple of 8. */
static uint8_t *put_raw(uint8_t *p, const struct perfdata_evsel *evsel,
			const struct perfpersist_sample *s)
{
	uint32_t size = (uint32_t)(ALIGN_TO(s->raw_size + 4, (size_t)8) - 4);
	uint16_t number = (uint16_t)evsel->attr.config;

	memcpy(p, &size, sizeof(size));
	p += sizeof(size);
	if (s->raw_size)
		memcpy(p, s->raw, s->raw_size);
	memset(p + s->raw_size, 0, size - s->raw_size);
	if (evsel->is_renumbered && s->raw_size >= sizeof(number))
		memcpy(p, &number, sizeof(number));
	return p + size;
}

static uint64_t period_of(const struct perfdata_evsel *evsel, const struct perfpersist_sample *s)
{
	if (evsel->source_type & PERF_SAMPLE_PERIOD)
		return s->period;
	return evsel->attr.freq ? 1 : evsel->attr.sample_period;
}

static uint8_t *put_fields(uint8_t *p, const struct perfdata_evsel *evsel,
			   const struct perfpersist_sample *s)
{
	uint64_t type = evsel->attr.sample_type;

	p = put_u64(p, evsel->id);
	if (type & PERF_SAMPLE_IP)
		p = put_u64(p, s->ip);
	p = put_two(p, s->pid, s->tid);
	p = put_u64(p, s->time);
	if (type & PERF_SAMPLE_ADDR)
		p = put_u64(p, s->addr);
	p = put_two(p, s->cpu, 0);
	p = put_u64(p, period_of(evsel, s));
	if (type & PERF_SAMPLE_CALLCHAIN) {
		p = put_u64(p, s->n_callchain);
		if (s->n_callchain)
			memcpy(p, s->callchain, s->n_callchain * sizeof(uint64_t));
		p += s->n_callchain * sizeof(uint64_t);
	}
	if (type & PERF_SAMPLE_RAW)
		p = put_raw(p, evsel, s);
	return p;
}

/* header, identifier, tid, time, cpu, period; ip and addr; the others with their counts */
static size_t size_of(uint64_t type, const struct perfpersist_sample *s)
{
	size_t size = sizeof(struct perf_event_header) + 5 * sizeof(uint64_t);

	size += type & PERF_SAMPLE_IP ? sizeof(uint64_t) : 0;
	size += type & PERF_SAMPLE_ADDR ? sizeof(uint64_t) : 0;
	size += type & PERF_SAMPLE_CALLCHAIN ? (1 + s->n_callchain) * sizeof(uint64_t) : 0;
	size += type & PERF_SAMPLE_RAW ? ALIGN_TO(s->raw_size + sizeof(uint32_t), (size_t)8) : 0;
	return size;
}

int perfdata_put_sample(struct perfpersist_perfdata *d, const struct perfdata_evsel *evsel,
			const struct perfpersist_sample *sample)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE };
	size_t size;
	uint8_t *p;

	if (sample->n_callchain > PERFDATA_RECORD_MAX / 8 || sample->raw_size > PERFDATA_RECORD_MAX)
		return -EINVAL;
	size = size_of(evsel->attr.sample_type, sample);
	if (size > PERFDATA_RECORD_MAX)
		return -EINVAL;
	p = output_room(&d->out, size);
	if (!p)
		return d->out.error;
	/* Whether it was in the kernel or in user space stands there. */
	if (sample->record_size >= sizeof(header))
		memcpy(&header, sample->record, sizeof(header));
	header.size = (uint16_t)size;
	memcpy(p, &header, sizeof(header));
	put_fields(p + sizeof(header), evsel, sample);
	return 0;
}
