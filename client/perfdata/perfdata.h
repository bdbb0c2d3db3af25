/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A perf.data file being written: the declarations that its parts share. Each part is a file: the
 * events' attributes (perfdata-attr.c), tracing data, features, sideband, build ids; perfdata.c has
 * their order.
 */
#pragma once

#include "client/perfdata/path-set.h"
#include "client/perfdata/perfdata-output.h"
#include "client/perfpersist.h"
#include "proto/auxtrace.h"
#include "proto/perf-file.h"
#include "proto/perf-record.h"

/* The size of each attr in a file. An older perf refuses longer ones, and in the pipe format perf
 * 6.1 expects an attr's ids behind this many bytes, whatever its size says. */
#define PERFDATA_ATTR_SIZE 128

/* One source of an event: an evsel, in perf's words. */
struct perfdata_evsel {
	struct perf_event_attr attr; /* as in the file */
	uint64_t id;
	uint64_t source_type; /* the sample_type of its records in the rings */
	char *name;
	char *format; /* a tracepoint's, as in the file; else NULL */
	size_t format_size;
	bool is_known;	    /* an earlier evsel has the same format */
	bool is_renumbered; /* records have another tracepoint number than the file */
};

/* The evsels of one event, by source index. */
struct perfdata_event {
	uint32_t first, n;
};

/* Files that have a build id, each once. */
struct build_id_table {
	struct blob entries; /* struct perf_file_build_id and path, one after the other */
	struct path_set known;
};

struct perfdata_sideband {
	uint8_t *bytes; /* records only; NULL: none */
	size_t at, size;
	uint64_t next_time; /* of the record at `at`; UINT64_MAX: none */
};

/* Files whose other mappings are told, each read once. */
struct mapped_files {
	struct path_set files; /* time: where its entry in `loads` is */
	struct blob loads;
};

/* One CPU's trace, written at the end. Samples of the events beside it have ids of their own in the file, since perf
 * finds the CPU's queue by them. */
struct perfdata_trace {
	int fd;
	uint32_t event;
	struct pp_auxtrace_header header;
};

struct perfpersist_perfdata {
	struct perfdata_output out;
	bool pipe;
	bool is_late;	 /* sideband comes after samples */
	bool is_started; /* everything before the records is written */
	bool is_finished;
	bool is_other_boot; /* an event is: this kernel's functions and modules are not in their places */
	char **argv;
	size_t argc;
	uint64_t realtime_offset;

	struct perfdata_evsel *evsels; /* the last one, added at the start, is the sideband's */
	size_t n_evsels;
	struct perfdata_event *events;
	size_t n_events;
	bool has_user_stacks;

	struct perfdata_trace *traces;
	size_t n_traces;
	struct perfdata_sideband sideband;
	struct mapped_files mapped;
	struct build_id_table build_ids;
	struct perf_file_header header;
	uint64_t first_time, last_time; /* of samples */
	uint64_t round;			/* where the next FINISHED_ROUND goes */
};

/* ── perfdata-attr.c ── */

/* Makes the evsel of a source; id: the id of its records in the file. -ENOMEM. */
int evsel_init(struct perfdata_evsel *evsel, const struct perfpersist_source *source, uint64_t id);

/* The evsel of the sideband. */
int evsel_init_sideband(struct perfdata_evsel *evsel);
void evsel_done(struct perfdata_evsel *evsel);

/* Gives evsels[n] a tracepoint number that no other format among evsels[0 … n - 1] has. -ENOMEM. */
int evsel_number(struct perfdata_evsel *evsels, size_t n);

/* ── perfdata-sample.c ── */

/* Writes a sample as the evsel's attr says. -EINVAL: it is too long for a record. */
int perfdata_put_sample(struct perfpersist_perfdata *d, const struct perfdata_evsel *evsel,
			const struct perfpersist_sample *sample);

/* ── perfdata-tracing.c ── */

void perfdata_tracing_data(const struct perfpersist_perfdata *d, struct blob *b);

/* ── perfdata-features.c ── */

/* Writes the contents of a feature's section; empty: this machine, or this file, has no such
 * feature. */
void perfdata_feature(const struct perfpersist_perfdata *d, enum perf_file_feature feature,
		      struct blob *b);

/* ── perfdata-machine.c ── */

void perfdata_cpudesc(struct blob *b);
void perfdata_cpuid(struct blob *b);
void perfdata_cpu_topology(struct blob *b);
void perfdata_pmu_mappings(struct blob *b);

/* ── perfdata-sideband.c ── */

/* Takes the records of a sideband file. -EBADMSG, -ENOMEM, or of read(2). */
int perfdata_sideband_open(struct perfpersist_perfdata *d, int fd);

/* Writes the records up to a time. */
void sideband_put_until(struct perfpersist_perfdata *d, uint64_t time);

/*
 * Opens the file that was mapped, if it is still the same. A stranger chose the path, and his mount
 * namespace may have another file there than ours: device and inode must match, and it must not have been
 * changed after `changed` (CLOCK_REALTIME; 0: that does not matter), where the inode's generation says
 * that no other file has it now. < 0: it is not the same.
 */
int open_mapped(const char *path, uint64_t device, uint64_t inode, uint64_t generation,
		uint64_t changed);

/* ── perfdata-mappings.c ── */

/* For user stacks: in front of a record of sideband, if it maps a file's code, the mappings of its
 * beginning and of its tables. */
void mappings_put(struct perfpersist_perfdata *d, const uint8_t *bytes, size_t size);
void mapped_files_done(struct mapped_files *files);

/* ── perfdata-auxtrace.c ── */

/* What precedes all records: which decoder perf takes for the traces, and the ids beside them. Nothing if there are
 * none, or perf knows none. */
void traces_put_info(struct perfpersist_perfdata *d);

/* Writes all traces. */
void traces_put(struct perfpersist_perfdata *d);
void traces_done(struct perfpersist_perfdata *d);

/* ── perfdata-beside.c ── */

/* The ids in samples beside traces of the evsel with this index: how many there are, and they themselves. Its own is
 * another. */
size_t beside_count_ids(const struct perfpersist_perfdata *d, size_t evsel);
void beside_put_ids(struct perfpersist_perfdata *d, size_t evsel);

/* Whether a trace has samples of as many events as are beside its own, in a shape that is known. */
bool beside_is_sound(const struct perfpersist_perfdata *d, const struct perfdata_trace *t);

/* To which trace the ids of samples belong. */
void beside_put_index(struct perfpersist_perfdata *d);

/* Writes the samples beside that trace. */
void beside_put(struct perfpersist_perfdata *d, size_t trace);

/* ── synthesize.c ── */

/* Makes records of the running processes from /proc, as sideband with time 0. -ENOMEM. */
int synthesize_processes(struct blob *records);

/* The kernel's code, as PERF_RECORD_MMAP. */
void synthesize_kernel(struct blob *records);

/* ── build-id.c ── */

void build_id_add(struct build_id_table *t, uint16_t cpumode, const char *path,
		  const uint8_t *build_id, size_t size);
bool build_id_is_known(const struct build_id_table *t, const char *path);
void build_id_table_done(struct build_id_table *t);

/* The build id in notes, or in the notes of an ELF file, at most 20 bytes; 0: there is none. */
size_t build_id_in_notes(const void *notes, size_t size, uint8_t ret[static 20]);
size_t build_id_of_file(int fd, uint8_t ret[static 20]);
size_t build_id_of_kernel(uint8_t ret[static 20]);
