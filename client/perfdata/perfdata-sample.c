// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts a ring's samples to perf.data's form. */
#include <asm/perf_regs.h>

#include "client/perfdata/perfdata.h"

#if defined(__x86_64__)
#define USER_IP PERF_REG_X86_IP
#elif defined(__aarch64__)
#define USER_IP PERF_REG_ARM64_PC
#endif

static uint64_t period_of(const struct perfdata_evsel *evsel, const struct perfpersist_sample *s)
{
	if (evsel->source_type & PERF_SAMPLE_PERIOD)
		return s->period;
	return evsel->attr.freq ? 1 : evsel->attr.sample_period;
}

/* misc says whether the CPU was in the kernel or in user space. */
static uint16_t misc_of(const struct perfpersist_sample *s)
{
	struct perf_event_header header = {};

	if (s->record_size >= sizeof(header))
		memcpy(&header, s->record, sizeof(header));
	return header.misc;
}

/* The register with the instruction pointer; 0: there is none. */
static uint64_t user_ip(const struct perfdata_evsel *evsel, const struct perfpersist_sample *s)
{
	uint64_t bit = 1ULL << USER_IP, mask = evsel->attr.sample_regs_user, ip;
	size_t i = (size_t)__builtin_popcountll(mask & (bit - 1));

	if (!(mask & bit) || i >= s->n_user_regs)
		return 0;
	memcpy(&ip, (const char *)s->user_regs + i * sizeof(ip), sizeof(ip));
	return ip;
}

/* perf gives a tracepoint's sample the place of its innermost frame. */
static uint64_t innermost(const struct perfdata_evsel *evsel, const struct perfpersist_sample *s,
			  uint16_t *ret_misc)
{
	for (size_t i = 0; i < s->n_callchain; i++) {
		uint64_t word;

		memcpy(&word, (const char *)s->callchain + i * sizeof(word), sizeof(word));
		if (word < PERF_CONTEXT_MAX)
			return word;
		*ret_misc =
			word == PERF_CONTEXT_USER ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;
	}
	if (s->n_user_regs)
		*ret_misc = PERF_RECORD_MISC_USER;
	return user_ip(evsel, s);
}

int perfdata_put_sample(struct perfpersist_perfdata *d, const struct perfdata_evsel *evsel,
			const struct perfpersist_sample *sample)
{
	struct pp_sample s = {
		.id = evsel->id,
		.ip = sample->ip,
		.pid = sample->pid,
		.tid = sample->tid,
		.time = sample->time,
		.addr = sample->addr,
		.cpu = sample->cpu,
		.period = period_of(evsel, sample),
		.callchain = sample->callchain,
		.n_callchain = sample->n_callchain,
		.raw = sample->raw,
		.raw_size = (uint32_t)sample->raw_size,
		.user_abi = sample->user_abi,
		.user_regs = sample->user_regs,
		.n_user_regs = (uint32_t)sample->n_user_regs,
		.user_stack = sample->user_stack,
		.user_stack_size = (uint32_t)sample->user_stack_size,
	};
	uint16_t number = (uint16_t)evsel->attr.config, misc = misc_of(sample);
	size_t size;
	void *p;

	if (sample->n_callchain > PP_RECORD_SIZE_MAX / 8 || sample->raw_size > PP_RECORD_SIZE_MAX ||
	    sample->user_stack_size > PP_RECORD_SIZE_MAX || sample->n_user_regs > 64)
		return -EINVAL;
	if (!(evsel->source_type & PERF_SAMPLE_IP) && (sample->n_callchain || sample->n_user_regs))
		s.ip = innermost(evsel, sample, &misc);
	p = output_room(&d->out, PP_RECORD_SIZE_MAX);
	if (!p)
		return d->out.error;
	size = pp_sample_write(&s, misc, evsel->attr.sample_type, p, PP_RECORD_SIZE_MAX);
	output_give_back(&d->out, PP_RECORD_SIZE_MAX - size);
	if (!size)
		return -EINVAL;
	if (evsel->is_renumbered && s.raw_size >= sizeof(number))
		memcpy((void *)s.raw, &number, sizeof(number));
	return 0;
}
