/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internals of a perfetto trace being written, for its files. Field numbers are those of
 * perfetto's own protos (perfetto/trace/trace_packet.proto and its imports), which never change
 * them.
 */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/pictures/pbuf.h"
#include "client/perfctl/pictures/perfetto.h"

/* The packets of a sequence share interned data: names by number. */
enum {
	SEQUENCE_SYSTEM = 1, /* clocks, processes, ftrace */
	SEQUENCE_MOMENTS,
	SEQUENCE_SAMPLES, /* and one more for each event */
};

enum {
	FTRACE_GLOBAL = 2,	/* FtraceEventBundle.ftrace_clock: the events' clock is the next */
	CLOCK_OF_SEQUENCE = 64, /* ClockSnapshot.Clock.clock_id: the first of a sequence's own */
};

enum {			 /* TracePacket.sequence_flags */
       FLAG_CLEARED = 1, /* the first packet: nothing is interned yet */
       FLAG_NEEDED = 2,
};

#define NATIVE_FIELDS 8
#define COMM_SIZE 32

struct native;

/* An event of the trace. */
struct perfetto_event {
	const struct trace_event *event;
	struct decoder *decoder;     /* NULL: it has no fields */
	const struct native *native; /* NULL: perfetto does not know it */
	const struct tep_format_field *native_fields[NATIVE_FIELDS];
	uint32_t first_field;	  /* number of its first field's name */
	bool named;		  /* its names are interned */
	bool sampling;		  /* its sequence of samples has begun */
	struct cpu_counts counts; /* its counter, summed up */
};

/* A CPU's events that are not written yet. */
struct perfetto_cpu {
	struct pbuf events;
	uint64_t time;	/* of the last */
	bool lost;	/* events are missing before these */
	bool has_track; /* for events while it is idle */
};

struct perfetto_thread {
	uint32_t tid, pid, ppid;
	char comm[COMM_SIZE];
	bool told;	/* its present state is written */
	bool has_track; /* as a thread of pid */
};

struct perfetto {
	int fd;
	struct trace *trace;
	unsigned clock; /* of the records, as perfetto numbers clocks */
	const struct aggregate *a;
	struct pbuf out; /* packets to write */
	bool begun;	 /* there was a sample */
	uint64_t damaged;

	struct decoders decoders;
	struct perfetto_event *events;
	size_t n_events;
	bool has_raw_syscalls; /* these include all system calls */

	struct perfetto_cpu *cpus;
	size_t n_cpus;

	struct perfetto_thread *threads;
	size_t n_threads, cap_threads;
	struct hash thread_hash;
	bool all_told; /* everything known before the first sample is written */

	bool instants_begun;

	/* Interned chains, functions and files; keys as in perfetto-stacks.c. */
	struct hash interned;
	uint64_t *keys;
	size_t n_keys, cap_keys;
};

/* ── perfetto.c ── */

size_t packet_begin(struct perfetto *p, uint64_t time, uint32_t sequence, unsigned flags);
void packet_end(struct perfetto *p, size_t begun);
struct perfetto_cpu *perfetto_cpu(struct perfetto *p, uint32_t cpu); /* NULL: no memory */

/* ── perfetto-ftrace.c ── */

/* Finds out whether perfetto knows the event with its present fields. */
void ftrace_find(struct perfetto *p, struct perfetto_event *e);
int ftrace_add(struct perfetto *p, struct perfetto_event *e, const struct trace_record *record);
int ftrace_flush(struct perfetto *p);
void ftrace_lost(struct perfetto *p, uint32_t cpu);

/* ── perfetto-threads.c ── */

int threads_record(struct perfetto *p, const struct trace_record *record); /* of sideband */
int threads_sample(struct perfetto *p, const struct trace_record *record,
		   struct perfetto_thread **ret);

/* ── perfetto-instants.c ── */

int instants_add(struct perfetto *p, struct perfetto_event *e, const struct trace_record *record,
		 struct perfetto_thread *thread);

/* ── perfetto-stacks.c ── */

int stacks_add(struct perfetto *p, struct perfetto_event *e, const struct trace_record *record,
	       const struct perfetto_thread *thread, const struct flame_node *leaf);
