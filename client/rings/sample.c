// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sample types that rings can have, and their decoding. */
#include "client/rings/sample.h"

#include <errno.h>

#include "proto/perf-record.h"

size_t sample_record_size(const void *record, size_t max)
{
	struct perf_event_header h;

	memcpy(&h, record, sizeof(h));
	return h.type == PERF_RECORD_SAMPLE ? pp_record_extent(record, max, 0) : 0;
}

int sample_decode(const struct pp_sample_form *form, const void *record, size_t size,
		  struct perfpersist_sample *ret)
{
	struct pp_sample s;

	if (form->sample_type & PERF_SAMPLE_READ) /* its size depends on read_format */
		return -EBADMSG;
	if (pp_sample_parse(record, size, form, &s) < 0)
		return -EBADMSG;
	*ret = (struct perfpersist_sample){
		.cpu = ret->cpu, /* the ring's, for all its records */
		.pid = s.pid,
		.tid = s.tid,
		.time = s.time,
		.ip = s.ip,
		.addr = s.addr,
		.id = s.id,
		.period = s.period,
		.callchain = s.callchain,
		.n_callchain = s.n_callchain,
		.raw = s.raw,
		.raw_size = s.raw_size,
		.user_abi = s.user_abi,
		.user_regs = s.user_regs,
		.n_user_regs = s.n_user_regs,
		.user_stack = s.user_stack,
		.user_stack_size = s.user_stack_size,
		.record = record,
		.record_size = size,
	};
	return 0;
}
