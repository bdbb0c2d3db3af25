/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The layout of a perf.data file, beyond the kernel's own linux/perf_event.h: the header, perf's
 * own records, the sections of features. Numbers and shapes, no code. */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>

#define PERF_FILE_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */
#define PERF_FILE_MAGIC_SWAPPED 0x50455246494c4532ULL
#define PERF_FILE_STRING_ALIGN 64

struct perf_file_section {
	uint64_t offset, size;
};

struct perf_file_header {
	uint64_t magic;
	/* of this struct; if it is that of the pipe's header: the pipe format, and this is the
	 * whole header */
	uint64_t size;
	uint64_t attr_size; /* of an attr and its ids' section */
	struct perf_file_section attrs, data, event_types;
	uint64_t features[4]; /* one bit each */
};
_Static_assert(sizeof(struct perf_file_header) == 104, "as perf has it");

struct perf_file_pipe_header {
	uint64_t magic, size;
};

/* Bits of features; each set bit has a section behind the data, in this order. */
enum perf_file_feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_CPUID = 9,
	FEATURE_TOTAL_MEM = 10,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CPU_TOPOLOGY = 13,
	FEATURE_PMU_MAPPINGS = 16,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCKID = 23,
	FEATURE_DIR_FORMAT = 24,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256,
};

/* Records that perf itself writes. */
enum perf_file_record {
	PERF_FILE_USER = 64, /* and above */
	PERF_FILE_ATTR = 64,
	PERF_FILE_TRACING_DATA = 66,
	PERF_FILE_BUILD_ID = 67,
	PERF_FILE_FINISHED_ROUND = 68,
	PERF_FILE_ID_INDEX = 69,
	PERF_FILE_AUXTRACE_INFO = 70,
	PERF_FILE_AUXTRACE = 71,
	PERF_FILE_EVENT_UPDATE = 78,
	PERF_FILE_TIME_CONV = 79,
	PERF_FILE_FEATURE = 80,
	PERF_FILE_COMPRESSED = 81,
	PERF_FILE_FINISHED_INIT = 82,
	PERF_FILE_COMPRESSED2 = 83,
	PERF_FILE_USER_KNOWN = 83, /* the last known one */
};

/* PERF_FILE_BUILD_ID, also each entry of FEATURE_BUILD_ID; a path follows. */
#define PERF_FILE_BUILD_ID_HAS_SIZE (1U << 15) /* in header.misc; else it has 20 bytes */
struct perf_file_build_id {
	struct perf_event_header header;
	int32_t pid; /* -1: the host */
	uint8_t build_id[20];
	uint8_t size;
	uint8_t reserved[3];
};

#define PERF_FILE_UPDATE_NAME 2
struct perf_file_event_update {
	struct perf_event_header header;
	uint64_t type, id;
};

/* Ours: how complete the records of some events are on one CPU, as struct perfpersist_history says.
 * perf reads over updates of unknown types. */
#define PERF_FILE_UPDATE_HISTORY 0x79726f7473694850 /* "PHistory" */
#define PERF_FILE_HISTORY_AT_LEAST (1U << 0)	    /* missed is a lower bound */
struct perf_file_history {
	struct perf_file_event_update update; /* id: of the first event */
	uint32_t n_events;		      /* that follow each other in the file */
	uint32_t cpu;
	uint64_t from, to; /* ns, as times of samples */
	uint64_t missed, limited;
	uint32_t flags, reserved;
};
_Static_assert(sizeof(struct perf_file_history) == 72, "without padding");

/* How the processor's counter becomes the time of a record: for the decoder of the
 * PERF_FILE_AUXTRACE_INFO behind it. */
struct perf_file_time_conv {
	struct perf_event_header header;
	/* as in struct perf_event_mmap_page */
	uint64_t time_shift, time_mult, time_zero, time_cycles, time_mask;
	uint8_t cap_user_time_zero, cap_user_time_short, reserved[6];
};
_Static_assert(sizeof(struct perf_file_time_conv) == 56, "as perf has it");

/* Which decoder the traces of this file are for. */
enum perf_file_auxtrace {
	PERF_FILE_AUXTRACE_INTEL_PT = 1,
	PERF_FILE_AUXTRACE_INTEL_BTS = 2,
	PERF_FILE_AUXTRACE_CS_ETM = 3,
	PERF_FILE_AUXTRACE_ARM_SPE = 4,
};
#define PERF_FILE_AUXTRACE_PRIV_MAX 17
struct perf_file_auxtrace_info {
	struct perf_event_header header;
	uint32_t type, reserved;
	uint64_t priv[PERF_FILE_AUXTRACE_PRIV_MAX]; /* as many as header.size says */
};

/* To which CPU, and to which trace, the records with an id belong; nr of them follow. */
struct perf_file_id_index {
	struct perf_event_header header;
	uint64_t nr;
};
struct perf_file_id_entry {
	uint64_t id;
	uint64_t idx; /* that of a perf_file_auxtrace_data */
	uint64_t cpu;
	uint64_t tid; /* UINT64_MAX: a CPU's */
};

/* `size` bytes of trace follow, which header.size does not count. */
struct perf_file_auxtrace_data {
	struct perf_event_header header;
	uint64_t size;
	uint64_t offset;    /* in the stream, of its first byte */
	uint64_t reference; /* the counter, after the last byte */
	uint32_t idx;
	uint32_t tid; /* UINT32_MAX: a CPU's */
	uint32_t cpu;
	uint32_t reserved;
};
_Static_assert(sizeof(struct perf_file_auxtrace_data) == 48, "as perf has it");

struct perf_file_tracing_data {
	struct perf_event_header header;
	uint32_t size; /* bytes behind the record, a multiple of 8 */
};
