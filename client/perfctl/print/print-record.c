// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints one record, as `perf script` would or as a JSON object. Which fields it has, its
 * source's sample type says.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/print/print-record.h"

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

void payload_print(struct decoder *d, const struct perfpersist_sample *s, FILE *f)
{
	int r = d ? decoder_load(d, s->raw, s->raw_size) : 0;

	if (d && r >= 0) {
		decoder_print(d, f);
		return;
	}
	if (d)
		fputs("damaged: ", f);
	print_hex(f, s->raw, s->raw_size);
}

/* Wall-clock time as the readers' machine tells it, or seconds since the boot. */
static void print_time(uint64_t time, uint64_t realtime, FILE *f)
{
	time_t t = (time_t)(realtime / 1000000000);
	char when[64];
	struct tm tm;

	if (realtime && localtime_r(&t, &tm) && strftime(when, sizeof(when), "%F %T", &tm))
		fprintf(f, "%s.%09" PRIu64, when, realtime % 1000000000);
	else
		fprintf(f, "%5" PRIu64 ".%09" PRIu64, time / 1000000000, time % 1000000000);
}

void record_print(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		  FILE *f)
{
	uint64_t has = source ? source->info.sample_type : 0;
	const char *name = source ? source->name : "unknown";

	fprintf(f, "   [%03u] ", s->cpu);
	print_time(s->time, realtime, f);
	fprintf(f, " %7d/%-7d ", (int)s->pid, (int)s->tid);
	print_text(f, name, strlen(name));
	fputc(':', f);
	if (has & PERF_SAMPLE_RAW) {
		fputc(' ', f);
		payload_print(source->decoder, s, f);
	} else {
		if (has & PERF_SAMPLE_PERIOD)
			fprintf(f, " period %" PRIu64, s->period);
		if (has & PERF_SAMPLE_IP)
			fprintf(f, " ip %" PRIx64, s->ip);
		if (has & PERF_SAMPLE_ADDR)
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

void payload_json(struct decoder *d, const struct perfpersist_sample *s, struct json *j)
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

void record_json(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		 FILE *f)
{
	uint64_t has = source ? source->info.sample_type : 0;
	struct json j = { .f = f };

	json_begin(&j, NULL, '{');
	json_string(&j, "event", source ? source->name : "unknown");
	json_unsigned(&j, "cpu", s->cpu);
	json_signed(&j, "pid", (int)s->pid);
	json_signed(&j, "tid", (int)s->tid);
	json_unsigned(&j, "time", s->time);
	if (realtime)
		json_unsigned(&j, "realtime", realtime);
	if (has & PERF_SAMPLE_IP)
		json_address(&j, "ip", s->ip);
	if (has & PERF_SAMPLE_ADDR)
		json_address(&j, "addr", s->addr);
	if (has & PERF_SAMPLE_PERIOD)
		json_unsigned(&j, "period", s->period);
	if (has & PERF_SAMPLE_CALLCHAIN)
		json_callchain(s, &j);
	if (has & PERF_SAMPLE_RAW)
		payload_json(source->decoder, s, &j);
	json_end(&j, '}');
	fputc('\n', f);
}
