/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a perf.data file, seekable or of the pipe format, record by record, and follows what its
 * sideband says of processes: each record is seen as of its own time. Nothing in the file is
 * trusted: every size and offset is checked before it is used, memory is bounded by the file's
 * size, and what is damaged ends the reading with one sentence, after all that could be read.
 *
 * Files of ours are in order of time; of perf's own (which are sorted between FINISHED_ROUNDs) as
 * well, once read to their end.
 */
#pragma once

#include "client/perfctl/trace/process.h"
#include "client/perfpersist.h"

struct trace;

/* One event of the file: an evsel, in perf's words. All pointers live as long as the trace. */
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
	uint32_t format_index; /* of the first event that has this format */
};

enum trace_kind {
	TRACE_SAMPLE = 1,
	TRACE_COMM,
	TRACE_FORK,
	TRACE_EXIT,
	TRACE_MMAP,
	TRACE_LOST,  /* `lost` records */
	TRACE_OTHER, /* a record of `type` that means nothing to us; counted */
};

struct trace_record {
	enum trace_kind kind;
	uint32_t type; /* PERF_RECORD_* */
	uint32_t misc; /* PERF_RECORD_MISC_* */
	uint64_t time; /* ns, 0 if it has none */
	uint32_t cpu, pid, tid;
	const struct trace_event *event;  /* of samples */
	struct perfpersist_sample sample; /* of samples; pointers are valid until the next record */
	const char *comm;      /* of whom it is, as of its time; never NULL, "?" if not known */
	bool exec;	       /* TRACE_COMM: by an exec */
	uint32_t ppid, ptid;   /* TRACE_FORK, TRACE_EXIT */
	const struct map *map; /* TRACE_MMAP */
	uint64_t lost;
};

/* What the file says of itself; texts are "" where it says nothing. */
struct trace_info {
	const char *hostname, *release, *arch, *version, *cpudesc;
	char *cmdline;
	uint32_t nr_cpus_online, nr_cpus_avail;
	uint64_t first_time, last_time; /* of samples, as HEADER_SAMPLE_TIME says; 0: it does not */
	uint64_t realtime_offset;	/* to be added to a time for CLOCK_REALTIME; 0: not known */
	bool pipe;
};

/* fd: a file or a pipe; it stays the caller's. -EBADMSG (trace_error() says what), -ENOMEM,
 * -errno. */
int trace_open(int fd, struct trace **ret);
void trace_free(struct trace *t);

/* 1 with *ret filled, valid until the next call; 0: the end; -EBADMSG: damaged from here on. */
int trace_next(struct trace *t, struct trace_record *ret);

/* One sentence on what was wrong with the last file on this thread. */
const char *trace_error(void);

const struct trace_info *trace_info(const struct trace *t);
size_t trace_events(const struct trace *t);
const struct trace_event *trace_event(const struct trace *t, size_t i);

/* As of the record that was read last. */
struct processes *trace_processes(struct trace *t);

/* The kernel's own maps and all files that are mapped anywhere, with the build ids that are known.
 */
