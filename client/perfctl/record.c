// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints one record, as `perf script` would or as a JSON object. Which fields it has, the
 * event's sample type says.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/record.h"

static uint64_t callchain_entry(const struct perfpersist_sample *s, size_t i)
{
	uint64_t ip;

	memcpy(&ip, (const char *)s->callchain + i * sizeof(ip), sizeof(ip));
	return ip;
}

/* Call chains have marks among their addresses: from here on it is the kernel, or the user. */
static bool is_mark(uint64_t ip)
{
	return ip >= (uint64_t)PERF_CONTEXT_MAX;
}

static const char *mark_name(uint64_t mark)
{
	switch (mark) {
	case (uint64_t)PERF_CONTEXT_HV:
		return "hypervisor";
	case (uint64_t)PERF_CONTEXT_KERNEL:
		return "kernel";
	case (uint64_t)PERF_CONTEXT_USER:
		return "user";
	case (uint64_t)PERF_CONTEXT_GUEST_KERNEL:
		return "guest kernel";
	case (uint64_t)PERF_CONTEXT_GUEST_USER:
		return "guest user";
	}
	return "unknown";
}

static void print_callchain(const struct perfpersist_sample *s, FILE *f)
{
	const char *space = "unknown";

	for (size_t i = 0; i < s->n_callchain; i++) {
		uint64_t ip = callchain_entry(s, i);

		if (is_mark(ip))
			space = mark_name(ip);
		else
			fprintf(f, "\t%16" PRIx64 " [%s]\n", ip, space);
	}
}

static void print_payload(struct decoder *d, const struct perfpersist_sample *s, FILE *f)
{
	int r = d ? decoder_load(d, s->raw, s->raw_size) : 0;

	fputc(' ', f);
	if (d && r >= 0) {
		decoder_print(d, f);
		return;
	}
	if (d)
		fputs("damaged: ", f);
	print_hex(f, s->raw, s->raw_size);
}

void record_print(const struct perfpersist_info *info, struct decoder *d,
		  const struct perfpersist_sample *s, FILE *f)
{
	fprintf(f, "   [%03u] %5" PRIu64 ".%09" PRIu64 " %7d/%-7d ", s->cpu, s->time / 1000000000,
		s->time % 1000000000, (int)s->pid, (int)s->tid);
	print_text(f, info->event, strlen(info->event));
	fputc(':', f);
	if (info->sample_type & PERF_SAMPLE_RAW) {
		print_payload(d, s, f);
	} else {
		if (info->sample_type & PERF_SAMPLE_PERIOD)
			fprintf(f, " period %" PRIu64, s->period);
		if (info->sample_type & PERF_SAMPLE_IP)
			fprintf(f, " ip %" PRIx64, s->ip);
		if (info->sample_type & PERF_SAMPLE_ADDR)
			fprintf(f, " addr %" PRIx64, s->addr);
	}
	fputc('\n', f);
	if (s->n_callchain)
		print_callchain(s, f);
}

static void json_callchain(const struct perfpersist_sample *s, struct json *j)
{
	const char *space = "unknown";

	json_begin(j, "callchain", '[');
	for (size_t i = 0; i < s->n_callchain; i++) {
		uint64_t ip = callchain_entry(s, i);

		if (is_mark(ip)) {
			space = mark_name(ip);
			continue;
		}
		json_begin(j, NULL, '{');
		json_address(j, "ip", ip);
		json_string(j, "space", space);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json_payload(struct decoder *d, const struct perfpersist_sample *s, struct json *j)
{
	int r = d ? decoder_load(d, s->raw, s->raw_size) : 0;

	if (d && r >= 0) {
		decoder_json(d, "fields", j);
		return;
	}
	if (d)
		json_bool(j, "damaged", true);
	json_hex(j, "raw", s->raw, s->raw_size);
}

void record_json(const struct perfpersist_info *info, struct decoder *d,
		 const struct perfpersist_sample *s, FILE *f)
{
	struct json j = { .f = f };

	json_begin(&j, NULL, '{');
	json_string(&j, "event", info->event);
	json_unsigned(&j, "cpu", s->cpu);
	json_signed(&j, "pid", (int)s->pid);
	json_signed(&j, "tid", (int)s->tid);
	json_unsigned(&j, "time", s->time);
	if (info->sample_type & PERF_SAMPLE_IP)
		json_address(&j, "ip", s->ip);
	if (info->sample_type & PERF_SAMPLE_ADDR)
		json_address(&j, "addr", s->addr);
	if (info->sample_type & PERF_SAMPLE_PERIOD)
		json_unsigned(&j, "period", s->period);
	if (info->sample_type & PERF_SAMPLE_CALLCHAIN)
		json_callchain(s, &j);
	if (info->sample_type & PERF_SAMPLE_RAW)
		json_payload(d, s, &j);
	json_end(&j, '}');
	fputc('\n', f);
}
