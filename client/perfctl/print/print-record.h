/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A record as a person or a program reads it.
 */
#pragma once

#include "client/perfctl/decode/sources.h"
#include "client/perfctl/trace/symbols.h"

/* A time as it is shown. */
struct record_time {
	uint64_t mono;	   /* CLOCK_MONOTONIC, ns */
	uint64_t realtime; /* the time of day in its stead, CLOCK_REALTIME, ns; else 0 */
	uint64_t relative; /* since the first record, if it is shown so */
	bool is_relative;
};
void time_print(const struct record_time *t, bool nanoseconds, FILE *f);
void time_json(const struct record_time *t, struct json *j);

/* What is shown of a sample. */
struct record {
	const char *event;
	const char *comm; /* NULL: it is not shown */
	uint32_t cpu, pid, tid;
	struct record_time time;
	uint64_t shown; /* PERF_SAMPLE_* */
	const struct perfpersist_sample *sample;
	const struct symbol *place;	    /* of ip; NULL: it was not looked for */
	const struct symbols_frame *frames; /* the call chain; NULL: as it is in the sample */
	size_t n_frames;
	struct decoder *decoder; /* NULL: its payload is shown in hex */
};
void sample_json(const struct record *r, struct json *j);

/* For `perfctl reopen`, which knows no more than the rings. source: the record's, as sources_of() told it; NULL: it names none that is there. */
/* realtime: when it was, where the time alone says too little (of another boot); else 0. */
void record_print(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		  FILE *f);
/* One object on a line of its own. */
void record_json(struct source *source, const struct perfpersist_sample *s, uint64_t realtime,
		 FILE *f);

/* What of it its format tells: d decodes it; NULL: nobody can, and it is shown in hex. */
void payload_print(struct decoder *d, const struct perfpersist_sample *s, FILE *f);
void payload_json(struct decoder *d, const struct perfpersist_sample *s, struct json *j);
