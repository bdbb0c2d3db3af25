/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations for the reader's parts: the trace, and each part's functions. */
#pragma once

#include <linux/perf_event.h>

#include "client/perfctl/trace/process-table.h"
#include "client/perfctl/trace/trace-source.h"
#include "client/perfctl/trace/trace.h"
#include "proto/macro.h"
#include "proto/perf-file.h"
#include "proto/perf-record.h"

/* An event and its decoding. */
struct event {
	struct trace_event pub; /* name: NULL until the whole file is read */
	const char *point;	/* the name in its format */
	uint64_t read_format, sample_regs_user;
	bool sample_id_all;
	uint32_t history; /* index in the trace's, + 1; 0: none */
	uint64_t lost;
};

/* The history of some events that follow each other. */
struct history_of_events {
	uint32_t first;
	struct trace_history all;	/* its cpus: not set */
	struct trace_history_cpu *cpus; /* all.n_cpus of them */
};

/* A record's place and time. */
struct place {
	uint64_t time;
	uint64_t offset;
};

struct trace {
	struct source source;
	struct trace_info info;
	struct event **events;
	size_t n_events;
	struct keytable by_id; /* events by the kernel's ids */
	struct history_of_events *histories;
	size_t n_histories;
	bool events_checked; /* records can be assigned to them */
	bool has_formats;    /* of tracepoints: there is one table of them */
	bool identifier;     /* all have PERF_SAMPLE_IDENTIFIER */
	int id_place;	     /* the id's other place in samples, in bytes; -1: none */
	int id_place_back;   /* and in other records, from the end */
	struct blob *blobs;  /* texts and formats that live as long as the trace */
	uint64_t begin, end; /* of the records */
	struct place *places;
	size_t n_places, next;
	bool sorted;
	char *damage; /* the error message for the end of the records */
	struct processes *processes;
};

/* ── errors: trace-error.c ── */

/* Sets trace_error(); returns -EBADMSG. */
int trace_damaged(const char *format, ...) _printf_(1, 2);
/* Sets the message for the end; the first one counts. -ENOMEM. */
int trace_note_damage(struct trace *t, const char *format, ...) _printf_(2, 3);

/* ── memory: trace-error.c ── */

/* Takes over bytes from malloc(3), which are freed with the trace. -ENOMEM: they are freed. */
int trace_keep(struct trace *t, void *bytes);
void trace_free_kept(struct trace *t);

/* ── trace-events.c ── */

/* attr: n bytes, as in the file. -EBADMSG, -ENOMEM. */
int events_add(struct trace *t, const void *attr, size_t n);
/* Gives the newest event this id. -ENOMEM. */
int events_add_id(struct trace *t, uint64_t id);
void events_name(struct trace *t, size_t i, const char *name);
/* record: of size bytes; i: the event of its id. -EBADMSG, -ENOMEM. */
int events_history(struct trace *t, size_t i, const uint8_t *record, size_t size);
/* Call before the first record. -EBADMSG. */
int events_check(struct trace *t);
/* Names the events without a name. -ENOMEM. */
int events_finish(struct trace *t);
void events_free(struct trace *t);
/* The minimum size of a sample that contains its id. */
size_t events_id_end(const struct trace *t);
/* The record's event; NULL: none. */
const struct event *events_of(const struct trace *t, const uint8_t *record, size_t size,
			      uint32_t type);

/* ── trace-header.c: the seekable file's header, attrs and sections ── */
int header_read(struct trace *t);

/* ── trace-features.c ── */

/* -EBADMSG: invalid (sets no error message), -ENOMEM. */
int feature_read(struct trace *t, unsigned feature, const uint8_t *bytes, size_t n);
int feature_build_id(struct trace *t, const uint8_t *record, size_t n);

/* ── trace-tracing.c: the formats of tracepoints ── */
/* bytes: live as long as t. -EBADMSG, -ENOMEM. */
int tracing_data_read(struct trace *t, const uint8_t *bytes, size_t n);

/* ── trace-record.c ── */

/* A decoded record, with the facts about processes. Pointers lead into the record. */
struct decoded {
	struct trace_record record;
	struct pp_record fields; /* not of samples */
	bool gone;		 /* the symbol was removed */
};
/* record: of h's size. -EBADMSG: *ret_why says why; otherwise it is untouched. */
int record_decode(const struct trace *t, const uint8_t *record, struct decoded *ret,
		  const char **ret_why);
/* Applies it to the processes and sets the resulting fields. -ENOMEM. */
int record_apply(struct trace *t, struct decoded *d);

/* ── trace-index.c: the first pass ── */

/* Finds all records and sorts them. -EBADMSG: nothing can be read; -ENOMEM. */
int index_build(struct trace *t);
