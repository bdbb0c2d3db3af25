/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What stands where in a perf.data file: of the file's ABI, what linux/perf_event.h lacks. */
#pragma once

#include <stdint.h>

#define FILE_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */
#define FILE_MAGIC_SWAPPED 0x50455246494c4532ULL
#define FILE_HEADER_SIZE 104
#define PIPE_HEADER_SIZE 16

struct file_section {
	uint64_t offset, size;
};

struct file_header {
	uint64_t magic;
	uint64_t size; /* of this; PIPE_HEADER_SIZE: of the pipe format, and this is all of it */
	uint64_t attr_size; /* of an attr and the section of its ids */
	struct file_section attrs, data, event_types;
	uint64_t features[4]; /* a bit each */
};

/* Bits of features; for each that is set there is a section behind the data, in this order. */
enum feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_DIR_FORMAT = 24,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256,
};

/* Records that perf itself writes. */
enum {
	RECORD_USER = 64, /* and above */
	RECORD_HEADER_ATTR = 64,
	RECORD_HEADER_TRACING_DATA = 66,
	RECORD_HEADER_BUILD_ID = 67,
	RECORD_AUXTRACE = 71,
	RECORD_EVENT_UPDATE = 78,
	RECORD_HEADER_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
	RECORD_USER_KNOWN = 83, /* the last that has a meaning */
};

#define EVENT_UPDATE_NAME 2
#define MISC_BUILD_ID_SIZE (1 << 15) /* of a build id's record: says how long it is */
