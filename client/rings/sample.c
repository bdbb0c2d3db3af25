// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the order of a sample's fields, which is the ABI of perf_event_open(2). Each read is
 * bounded by the record.
 */
#include "client/rings/sample.h"

#include <linux/perf_event.h>
#include <string.h>

#include "proto/macro.h"

struct reader {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static const void *read_bytes(struct reader *r, size_t n)
{
	const void *p = r->p;

	if (n > r->left) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	r->left -= n;
	return p;
}

static uint64_t read_u64(struct reader *r)
{
	const void *p = read_bytes(r, sizeof(uint64_t));
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t read_u32(struct reader *r)
{
	const void *p = read_bytes(r, sizeof(uint32_t));
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static void read_callchain(struct reader *r, struct perfpersist_sample *ret)
{
	uint64_t n = read_u64(r);

	if (n > r->left / sizeof(uint64_t)) {
		r->bad = true;
		return;
	}
	ret->callchain = read_bytes(r, n * sizeof(uint64_t));
	ret->n_callchain = n;
}

static void read_raw(struct reader *r, struct perfpersist_sample *ret)
{
	uint32_t n = read_u32(r);

	ret->raw = read_bytes(r, n);
	ret->raw_size = n;
}

size_t sample_record_size(const void *record, size_t max)
{
	struct perf_event_header h;

	memcpy(&h, record, sizeof(h));
	if (h.type != PERF_RECORD_SAMPLE || h.size < sizeof(h) || h.size % 8 || h.size > max)
		return 0;
	return h.size;
}

int sample_decode(uint64_t sample_type, const void *record, size_t size,
		  struct perfpersist_sample *ret)
{
	struct reader r = { .p = record, .left = size };
	struct perfpersist_sample s = { .cpu = ret->cpu, .record = record, .record_size = size };

	read_bytes(&r, sizeof(struct perf_event_header));
	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		s.id = read_u64(&r);
	if (sample_type & PERF_SAMPLE_IP)
		s.ip = read_u64(&r);
	if (sample_type & PERF_SAMPLE_TID) {
		s.pid = read_u32(&r);
		s.tid = read_u32(&r);
	}
	if (sample_type & PERF_SAMPLE_TIME)
		s.time = read_u64(&r);
	if (sample_type & PERF_SAMPLE_ADDR)
		s.addr = read_u64(&r);
	if (sample_type & PERF_SAMPLE_ID)
		s.id = read_u64(&r);
	if (sample_type & PERF_SAMPLE_STREAM_ID)
		read_u64(&r);
	if (sample_type & PERF_SAMPLE_CPU)
		read_u64(&r); /* the ring's, as all of its records */
	if (sample_type & PERF_SAMPLE_PERIOD)
		s.period = read_u64(&r);
	if (sample_type & PERF_SAMPLE_READ) /* its size depends on read_format */
		return -EBADMSG;
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		read_callchain(&r, &s);
	if (sample_type & PERF_SAMPLE_RAW)
		read_raw(&r, &s);
	if (r.bad)
		return -EBADMSG;
	*ret = s;
	return 0;
}
