// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints one record, as `perf script` does or as a JSON object. The sample type of its source says
 * which fields it has.
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

/* Call chains contain marks between addresses: the kernel, or the user, begins here. */
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

/* Local time of the reader's machine, or seconds since the boot. */
void time_print(const struct record_time *t, bool nanoseconds, FILE *f)
{
	uint64_t time = t->is_relative ? t->relative : t->mono;
	time_t seconds = (time_t)(t->realtime / 1000000000);
	char text[64] = "?";
	struct tm tm;

	if (!t->realtime)
		snprintf(text, sizeof(text), "%5" PRIu64, time / 1000000000);
	else if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%F %T", &tm);
	time = (t->realtime ?: time) % 1000000000;
	fprintf(f, nanoseconds ? "%s.%09" PRIu64 : "%s.%06" PRIu64, text,
		nanoseconds ? time : time / 1000);
}

void record_print(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		  FILE *f)
{
	struct record_time time = { .mono = s->time, .realtime = realtime };
	uint64_t has = source ? source->info.sample_type : 0;
	const char *name = source ? source->name : "unknown";

	fprintf(f, "   [%03u] ", s->cpu);
	time_print(&time, true, f);
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
	if (s->user_stack_size)
		fprintf(f, "\t%16zu bytes of user stack\n", s->user_stack_size);
}

static void json_symbol(const struct symbol *symbol, struct json *j)
{
	if (strcmp(symbol->name, "[unknown]")) {
		json_string(j, "sym", symbol->name);
		json_unsigned(j, "symoff", symbol->offset);
	}
	if (symbol->dso)
		json_string(j, "dso", symbol->dso->path);
}

static void json_frame(uint64_t ip, const char *space, const struct symbol *symbol, struct json *j)
{
	json_begin(j, NULL, '{');
	json_address(j, "ip", ip);
	json_string(j, "space", space);
	if (symbol)
		json_symbol(symbol, j);
	json_end(j, '}');
}

static void json_callchain(const struct record *r, struct json *j)
{
	const char *space = "unknown";

	json_begin(j, "callchain", '[');
	for (size_t i = 0; r->frames && i < r->n_frames; i++)
		json_frame(r->frames[i].address, r->frames[i].kernel ? "kernel" : "user",
			   &r->frames[i].symbol, j);
	for (size_t i = 0; !r->frames && i < r->sample->n_callchain; i++) {
		uint64_t ip = callchain_entry(r->sample, i);

		if (is_mark(ip))
			space = mark_name(ip);
		else
			json_frame(ip, space, NULL, j);
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

void time_json(const struct record_time *t, struct json *j)
{
	json_unsigned(j, "time", t->mono);
	if (t->realtime)
		json_unsigned(j, "realtime", t->realtime);
	if (t->is_relative)
		json_unsigned(j, "relative", t->relative);
}

void sample_json(const struct record *r, struct json *j)
{
	json_string(j, "event", r->event);
	if (r->comm)
		json_string(j, "comm", r->comm);
	if (r->shown & PERF_SAMPLE_CPU)
		json_unsigned(j, "cpu", r->cpu);
	if (r->shown & PERF_SAMPLE_TID) {
		json_signed(j, "pid", (int)r->pid);
		json_signed(j, "tid", (int)r->tid);
	}
	if (r->shown & PERF_SAMPLE_TIME)
		time_json(&r->time, j);
	if (r->shown & PERF_SAMPLE_IP)
		json_address(j, "ip", r->sample->ip);
	if (r->shown & PERF_SAMPLE_IP && r->place)
		json_symbol(r->place, j);
	if (r->shown & PERF_SAMPLE_ADDR)
		json_address(j, "addr", r->sample->addr);
	if (r->shown & PERF_SAMPLE_PERIOD)
		json_unsigned(j, "period", r->sample->period);
	if (r->shown & PERF_SAMPLE_CALLCHAIN)
		json_callchain(r, j);
	if (r->shown & PERF_SAMPLE_STACK_USER)
		json_unsigned(j, "user_stack", r->sample->user_stack_size);
	if (r->shown & PERF_SAMPLE_RAW)
		payload_json(r->decoder, r->sample, j);
}

void record_json(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		 FILE *f)
{
	struct json j = { .f = f };
	struct record r = {
		.event = source ? source->name : "unknown",
		.cpu = s->cpu,
		.pid = s->pid,
		.tid = s->tid,
		.time = { .mono = s->time, .realtime = realtime },
		.shown = PERF_SAMPLE_CPU | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			 (source ? source->info.sample_type : 0),
		.sample = s,
		.decoder = source ? source->decoder : NULL,
	};

	json_begin(&j, NULL, '{');
	sample_json(&r, &j);
	json_end(&j, '}');
	fputc('\n', f);
}
