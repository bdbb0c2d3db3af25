/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The perf.data format, as far as it is not the kernel's own (linux/perf_event.h): the header of a
 * file, the records that perf made up, the sections of features. Numbers and shapes, no code.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>

#define PERFDATA_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */

/* Of each attr in a file. Longer ones are refused by a perf that knows no longer one, and in the
 * pipe format perf 6.1 finds an attr's ids behind so many bytes, whatever its size says. */
#define PERFDATA_ATTR_SIZE 128

#define PERFDATA_STRING_ALIGN 64

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_file_header {
	uint64_t magic, size, attr_size;
	struct perfdata_section attrs, data, event_types;
	uint64_t features[4];
};

struct perfdata_pipe_header {
	uint64_t magic, size;
};

enum perfdata_record {
	PERFDATA_ATTR = 64,
	PERFDATA_TRACING_DATA = 66,
	PERFDATA_BUILD_ID = 67,
	PERFDATA_FINISHED_ROUND = 68,
	PERFDATA_EVENT_UPDATE = 78,
	PERFDATA_FEATURE = 80,
	PERFDATA_FINISHED_INIT = 82,
};

enum perfdata_feature {
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
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 30,
};

/* PERFDATA_BUILD_ID, also each entry of FEATURE_BUILD_ID; a path follows. */
#define PERFDATA_BUILD_ID_HAS_SIZE (1U << 15) /* in header.misc */
struct perfdata_build_id {
	struct perf_event_header header;
	int32_t pid; /* -1: of the host */
	uint8_t build_id[20];
	uint8_t size;
	uint8_t reserved[3];
};

#define PERFDATA_UPDATE_NAME 2
struct perfdata_event_update {
	struct perf_event_header header;
	uint64_t type, id;
};

struct perfdata_tracing_data {
	struct perf_event_header header;
	uint32_t size; /* of what follows the record, a multiple of 8 */
};
