/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the reader's parts share: the trace, and who is asked for what. */
#pragma once

#include <linux/perf_event.h>

#include "client/perfctl/trace/process-table.h"
#include "client/perfctl/trace/trace-source.h"
#include "client/perfctl/trace/trace.h"
#include "proto/macro.h"
#include "proto/perf-file.h"
#include "proto/perf-record.h"

/* An event and what its records are decoded by. */
struct event {
	struct trace_event pub; /* name: NULL until all has been seen */
	const char *point;	/* what its format says that it is called */
	uint64_t read_format;
	bool sample_id_all;
};

/* Where a record is, and its time. */
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
	bool events_checked;   /* they can be told apart */
	bool identifier;       /* all have PERF_SAMPLE_IDENTIFIER */
	int id_place;	       /* where else the id is in samples, in bytes; -1: nowhere */
	int id_place_back;     /* and in other records, from the end */
	struct blob *blobs;    /* texts and formats that live as long as this */
	uint64_t begin, end;   /* of the records */
	struct place *places;
	size_t n_places, next;
	bool sorted;
	char *damage; /* what is to be said after the last record */
	struct processes *processes;
};

/* ── errors: trace-error.c ── */

/* -EBADMSG, and what trace_error() says. */
int trace_damaged(const char *format, ...) _printf_(1, 2);
/* What is to be said at the end; the first one counts. -ENOMEM. */
int trace_note_damage(struct trace *t, const char *format, ...) _printf_(2, 3);

/* ── memory: trace-error.c ── */

/* Takes bytes from malloc(3); they go with the trace. -ENOMEM: they are freed. */
int trace_keep(struct trace *t, void *bytes);
void trace_free_kept(struct trace *t);

/* ── trace-events.c ── */

/* attr: of n bytes, as they stand in the file. -EBADMSG, -ENOMEM. */
int events_add(struct trace *t, const void *attr, size_t n);
/* That the newest event has this id. -ENOMEM. */
int events_add_id(struct trace *t, uint64_t id);
void events_name(struct trace *t, size_t i, const char *name);
/* Before the first record. -EBADMSG. */
int events_check(struct trace *t);
/* Names for those that nobody named. -ENOMEM. */
int events_finish(struct trace *t);
void events_free(struct trace *t);
/* Which bytes a sample must have for its id to be in it. */
size_t events_id_end(const struct trace *t);
/* Whose record it is; NULL: nobody's. */
const struct event *events_of(const struct trace *t, const uint8_t *record, size_t size,
			      uint32_t type);

/* ── trace-header.c: the seekable file's header, attrs and sections ── */
int header_read(struct trace *t);

/* ── trace-features.c ── */

/* -EBADMSG: there is something wrong in it (no sentence yet), -ENOMEM. */
int feature_read(struct trace *t, unsigned feature, const uint8_t *bytes, size_t n);
int feature_build_id(struct trace *t, const uint8_t *record, size_t n);

/* ── trace-tracing.c: the formats of tracepoints ── */
/* bytes: live as long as t. -EBADMSG, -ENOMEM. */
int tracing_data_read(struct trace *t, const uint8_t *bytes, size_t n);

/* ── trace-record.c ── */

/* A record, decoded, and what of it concerns processes. Pointers lead into the record. */
struct decoded {
	struct trace_record record;
	struct pp_record fields; /* not of samples */
	bool gone;		 /* a symbol that is no more */
};
/* record: of h's size. -EBADMSG: says in *ret_why what is wrong, else untouched. */
int record_decode(const struct trace *t, const uint8_t *record, struct decoded *ret,
		  const char **ret_why);
/* Applies it to the processes, and fills what follows from that. -ENOMEM. */
int record_apply(struct trace *t, struct decoded *d);

/* ── trace-index.c: the first pass ── */

/* Finds all records and puts them in order. -EBADMSG: nothing can be read; -ENOMEM. */
int index_build(struct trace *t);
