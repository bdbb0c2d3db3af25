/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A record, printed for people or as JSON.
 */
#pragma once

#include "client/perfctl/decode/sources.h"
#include "client/perfctl/trace/symbols.h"

/* A time to print. */
struct record_time {
	uint64_t mono;	   /* CLOCK_MONOTONIC, ns */
	uint64_t realtime; /* the time of day to print instead, CLOCK_REALTIME, ns; else 0 */
	uint64_t relative; /* since the first record, if is_relative */
	bool is_relative;
};
void time_print(const struct record_time *t, bool nanoseconds, FILE *f);
void time_json(const struct record_time *t, struct json *j);

/* The parts of a sample to print. */
struct record {
	const char *event;
	const char *comm; /* NULL: not printed */
	uint32_t cpu, pid, tid;
	struct record_time time;
	uint64_t shown; /* PERF_SAMPLE_* */
	const struct perfpersist_sample *sample;
	const struct symbol *place;	    /* of ip; NULL: not looked up */
	const struct symbols_frame *frames; /* the call chain; NULL: that of the sample */
	size_t n_frames;
	struct decoder *decoder; /* NULL: prints the payload in hex */
};
void sample_json(const struct record *r, struct json *j);

/* For `perfctl reopen`, which knows only the rings. source: from sources_of(); NULL: unknown. */
/* realtime: CLOCK_REALTIME of a record from another boot; else 0. */
void record_print(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		  FILE *f);
/* One object on a line of its own. */
void record_json(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		 FILE *f);

/* Prints the payload, decoded by d; d NULL: in hex. */
void payload_print(struct decoder *d, const struct perfpersist_sample *s, FILE *f);
void payload_json(struct decoder *d, const struct perfpersist_sample *s, struct json *j);
