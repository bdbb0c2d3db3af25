/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes valid and invalid perf.data files, byte by byte, for tests of their reader. */
#pragma once

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "client/perfctl/trace/trace.h"
#include "proto/macro.h"
#include "proto/perf-file.h"
#include "tests/unit/needs.h"

#define FILE_SIZE_MAX (1U << 20)
#define SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define EVENTS 2 /* with the ids 1 and 2 */

struct perfdata {
	uint8_t bytes[FILE_SIZE_MAX];
	size_t size, data;
	bool pipe;
};

static inline void put(struct perfdata *w, const void *bytes, size_t n)
{
	ck_assert_uint_le(w->size + n, sizeof(w->bytes));
	memcpy(w->bytes + w->size, bytes, n);
	w->size += n;
}

static inline void put_u64(struct perfdata *w, uint64_t v)
{
	put(w, &v, sizeof(v));
}

static inline void put_u32(struct perfdata *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

/* Padded to 8 bytes. */
static inline void put_text(struct perfdata *w, const char *text)
{
	char padded[256] = "";

	ck_assert_uint_lt(strlen(text), sizeof(padded));
	memcpy(padded, text, strlen(text));
	put(w, padded, ALIGN_TO(strlen(text) + 1, 8U));
}

static inline struct perf_event_attr writer_attr(unsigned i)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = i ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 10 + i,
		.sample_type = SAMPLE_TYPE,
		.sample_id_all = 1,
	};
}

/* Writes header and events; records follow. */
static inline void begin_file(struct perfdata *w)
{
	struct perf_file_header h = { .magic = PERF_FILE_MAGIC, .size = sizeof(h) };

	w->size = 0;
	w->pipe = false;
	put(w, &h, sizeof(h));
	for (uint64_t id = 1; id <= EVENTS; id++)
		put_u64(w, id);
	h.attrs.offset = w->size;
	for (unsigned i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = writer_attr(i);

		put(w, &attr, sizeof(attr));
		put_u64(w, sizeof(h) + i * 8);
		put_u64(w, 8);
	}
	h.attr_size = sizeof(struct perf_event_attr) + sizeof(struct perf_file_section);
	h.attrs.size = w->size - h.attrs.offset;
	h.data.offset = w->data = w->size;
	memcpy(w->bytes, &h, sizeof(h));
}

static inline void begin_pipe(struct perfdata *w)
{
	w->size = 0;
	w->pipe = true;
	put_u64(w, PERF_FILE_MAGIC);
	put_u64(w, sizeof(struct perf_file_pipe_header));
	w->data = w->size;
	for (unsigned i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = writer_attr(i);
		struct perf_event_header r = { .type = PERF_FILE_ATTR,
					       .size = sizeof(r) + sizeof(attr) + 8 };

		put(w, &r, sizeof(r));
		put(w, &attr, sizeof(attr));
		put_u64(w, i + 1);
	}
}

static inline struct perf_file_header *file_header(struct perfdata *w)
{
	return (struct perf_file_header *)w->bytes;
}

/* Ends the records. */
static inline void end_data(struct perfdata *w)
{
	if (!w->pipe)
		file_header(w)->data.size = w->size - w->data;
}

/* Writes a record's header; end_record() writes its size. */
static inline size_t begin_record(struct perfdata *w, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = { .type = type, .misc = misc };
	size_t at = w->size;

	put(w, &h, sizeof(h));
	return at;
}

static inline void end_record(struct perfdata *w, size_t at)
{
	uint16_t size = (uint16_t)(w->size - at);

	memcpy(w->bytes + at + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

static inline void put_sample_id(struct perfdata *w, uint32_t pid, uint64_t time)
{
	put_u32(w, pid);
	put_u32(w, pid);
	put_u64(w, time);
	put_u64(w, 0); /* CPU */
	put_u64(w, 1); /* id */
}

static inline void put_sample(struct perfdata *w, uint64_t id, uint64_t time, uint32_t pid,
			      uint64_t ip)
{
	size_t at = begin_record(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put_u64(w, id);
	put_u64(w, ip);
	put_u32(w, pid);
	put_u32(w, pid + 1);
	put_u64(w, time);
	put_u64(w, 3); /* CPU */
	put_u64(w, 77);
	put_u64(w, 2);
	put_u64(w, PERF_CONTEXT_USER);
	put_u64(w, ip);
	end_record(w, at);
}

static inline void put_comm(struct perfdata *w, uint64_t time, uint32_t pid, const char *comm,
			    bool exec)
{
	size_t at = begin_record(w, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);

	put_u32(w, pid);
	put_u32(w, pid);
	put_text(w, comm);
	put_sample_id(w, pid, time);
	end_record(w, at);
}

static inline void put_task(struct perfdata *w, uint32_t type, uint64_t time, uint32_t ppid,
			    uint32_t pid)
{
	size_t at = begin_record(w, type, 0);

	put_u32(w, pid);
	put_u32(w, ppid);
	put_u32(w, pid);
	put_u32(w, ppid);
	put_u64(w, time);
	put_sample_id(w, ppid, time);
	end_record(w, at);
}

static inline void put_mmap2(struct perfdata *w, uint64_t time, uint32_t pid, uint64_t start,
			     uint64_t size, const char *path, const uint8_t build_id[20])
{
	size_t at = begin_record(w, PERF_RECORD_MMAP2,
				 PERF_RECORD_MISC_USER |
					 (build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	uint8_t where[24] = { build_id ? 20 : 0 };

	if (build_id)
		memcpy(where + 4, build_id, 20);
	put_u32(w, pid);
	put_u32(w, pid);
	put_u64(w, start);
	put_u64(w, size);
	put_u64(w, 0x400);
	put(w, where, sizeof(where));
	put_u64(w, 5); /* protection, flags */
	put_text(w, path);
	put_sample_id(w, pid, time);
	end_record(w, at);
}

/* As an unlinked file. */
static inline int perfdata_fd(const struct perfdata *w)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, w->bytes, w->size), (ssize_t)w->size);
	return fd;
}
