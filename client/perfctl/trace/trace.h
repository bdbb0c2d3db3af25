/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a perf.data file, seekable or in the pipe format, record by record, and follows its
 * sideband: each record is seen as of its own time. Trusts nothing in the file: every size and
 * offset is checked before use, memory is bounded by the file's size, and damage ends the reading
 * with an error message, after all readable records.
 *
 * Records come in order of time: our own files are sorted, and perf's (which are sorted between
 * FINISHED_ROUNDs) are sorted once read to their end.
 */
#pragma once

#include "client/perfctl/trace/process.h"
#include "client/perfpersist.h"

struct trace;

/* One event of the file: perf's evsel. All pointers live as long as the trace. */
struct trace_event {
	uint32_t index;
	uint64_t sample_type;
	uint32_t type; /* perf_event_attr.type */
	uint64_t config;
	uint64_t period; /* sample_period, or sample_freq with freq */
	bool freq;
	const char *name;   /* "sched:sched_switch", "cpu-clock"; never NULL */
	const char *format; /* of a tracepoint; else NULL; not NUL-terminated */
	size_t format_size;
	uint32_t format_index; /* of the first event with this format */
};

enum trace_kind {
	TRACE_SAMPLE = 1,
	TRACE_COMM,
	TRACE_FORK,
	TRACE_EXIT,
	TRACE_MMAP,
	TRACE_LOST,  /* `lost` records */
	TRACE_OTHER, /* a record of an unknown `type`; counted */
};

struct trace_record {
	enum trace_kind kind;
	uint32_t type; /* PERF_RECORD_* */
	uint32_t misc; /* PERF_RECORD_MISC_* */
	uint64_t time; /* ns, 0 if it has none */
	uint32_t cpu, pid, tid;
	const struct trace_event *event;  /* of samples */
	struct perfpersist_sample sample; /* of samples; pointers are valid until the next record */
	const char *comm; /* of its task, as of its time; never NULL, "?" if unknown */
	bool again; /* of samples: another event of its tracepoint has told of it (repeats.h) */
	bool exec;  /* TRACE_COMM: by an exec */
	uint32_t ppid, ptid;   /* TRACE_FORK, TRACE_EXIT */
	const struct map *map; /* TRACE_MMAP */
	uint64_t lost;
};

struct trace_history_cpu {
	uint32_t cpu;
	uint64_t from; /* ns */
};

/*
 * How complete an event's records are: from when to when the file has all that the event recorded, and
 * how many records it could not record. Files of `perfctl snapshot` and `perfctl record` say so, of the
 * records that the command was to write; others do not (known is false, and the rest but lost is 0).
 */
struct trace_history {
	bool known;
	uint64_t from, to; /* ns, on all of these CPUs; from >= to: never */
	const struct trace_history_cpu
		*cpus; /* where each one's begins; other CPUs have no records */
	size_t n_cpus;
	/* Records that were not written, on all CPUs: lost at a known time within the file (the sum of
	 * its TRACE_LOST); missed, at an unknown time since the event was created, so maybe before
	 * `from`; and dropped by the event's rate limit, likewise. Events that share buffers have one
	 * history, and these are of all of them together. */
	uint64_t lost;
	uint64_t missed, limited;
	bool missed_at_least; /* missed is a lower bound */
};

/* The file's facts about itself; missing texts are "". */
struct trace_info {
	const char *hostname, *release, *arch, *version, *cpudesc;
	char *cmdline;
	uint32_t nr_cpus_online, nr_cpus_avail;
	uint64_t first_time, last_time; /* of samples, from HEADER_SAMPLE_TIME; 0: missing */
	uint64_t realtime_offset;	/* to add to a time for CLOCK_REALTIME; 0: unknown */
	int clock; /* clockid_t of the times; -1: perf's own, which has no number */
	bool pipe;
};

/* fd: a file or a pipe; the caller keeps it. -EBADMSG (trace_error() says why), -ENOMEM, -errno. */
int trace_open(int fd, struct trace **ret);
void trace_free(struct trace *t);

/* 1 with *ret filled, valid until the next call; 0: the end; -EBADMSG: damaged from here on. */
int trace_next(struct trace *t, struct trace_record *ret);

/* The same for all records before they are read, without an effect on processes: every comm is "?",
 * and maps are NULL. *pos: 0 at first. 0: the end, or damage, of which trace_next() tells. */
int trace_peek(struct trace *t, size_t *pos, struct trace_record *ret);

/* The error message about this thread's last file. */
const char *trace_error(void);

const struct trace_info *trace_info(const struct trace *t);
size_t trace_events(const struct trace *t);
const struct trace_event *trace_event(const struct trace *t, size_t i);

struct trace_history trace_history(const struct trace *t, size_t event);
/* So many events from this one on share its history; 1 if it has none. */
size_t trace_history_events(const struct trace *t, size_t event);
/* For several events together, a byte for each of the trace's: known if it is for all of them. cpus is
 * NULL. */
struct trace_history trace_histories(const struct trace *t, const bool *events);

/* As of the last record read. */
struct processes *trace_processes(struct trace *t);

/* The kernel's own maps and all mapped files, with the known build ids. */
