/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Catalogs and records of several sources, for tests: writes what the engine and the programs
 * write. */
#pragma once

#include "proto/catalog.h"
#include "tests/unit/ring-writer.h"

/* Sources differ: the first is a tracepoint, the second a sampling source, and so on
 * alternately. */
#define WRITER_TRACEPOINT (PERF_SAMPLE_IDENTIFIER | WRITER_SAMPLE_TYPE)
#define WRITER_SAMPLING                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_PERIOD)

#define WRITER_ENTRY_SIZE \
	(sizeof(struct pp_catalog_entry) + 16 + sizeof(struct perf_event_attr) + 32)

static inline void writer_catalog_entry(uint8_t *bytes, uint32_t n, uint32_t i)
{
	struct pp_catalog_entry *e =
		(struct pp_catalog_entry *)(void *)(bytes + sizeof(struct pp_catalog_header)) + i;
	uint32_t at = (uint32_t)(sizeof(struct pp_catalog_header) + n * sizeof(*e) +
				 i * (WRITER_ENTRY_SIZE - sizeof(*e)));
	struct perf_event_attr attr = { .config = i };
	char format[48];

	e->id = PP_SOURCE_ID(WRITER_EVENT_ID, i);
	e->sample_type = i % 2 ? WRITER_SAMPLING : WRITER_TRACEPOINT;
	e->recorder = i % 2 ? PP_RECORDER_OVERFLOW : PP_RECORDER_GENERIC;
	e->text_offset = at;
	e->text_size = (uint32_t)snprintf((char *)bytes + at, 16, "sys:event%u", i);
	e->attr_offset = at + 16;
	e->attr_size = sizeof(attr);
	memcpy(bytes + e->attr_offset, &attr, sizeof(attr));
	if (i % 2)
		return;
	e->format_offset = e->attr_offset + e->attr_size;
	e->format_size = (uint32_t)snprintf(format, sizeof(format), "name: event%u\n", i);
	memcpy(bytes + e->format_offset, format, e->format_size);
}

/* A sealed memfd with a catalog of n sources. */
static inline int writer_catalog(uint32_t n)
{
	size_t size = sizeof(struct pp_catalog_header) + n * WRITER_ENTRY_SIZE;
	uint8_t *bytes = calloc(1, size);
	struct pp_catalog_header *h = (struct pp_catalog_header *)(void *)bytes;
	int fd = memfd_create("catalog", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	*h = (struct pp_catalog_header){
		.magic = PP_CATALOG_MAGIC,
		.version = PP_CATALOG_VERSION,
		.header_size = sizeof(*h),
		.entry_size = sizeof(struct pp_catalog_entry),
		.n_sources = n,
		.size = size,
		.event_id = WRITER_EVENT_ID,
	};
	for (uint32_t i = 0; i < n; i++)
		writer_catalog_entry(bytes, n, i);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	free(bytes);
	return fd;
}

/* A ring for the records of n sources. */
static inline struct writer writer_new_shared(uint32_t cpu, uint64_t data_size, uint32_t spill_size,
					      uint32_t n)
{
	struct writer w = writer_new(cpu, data_size, spill_size);

	w.header->n_sources = n;
	w.header->sample_type = PERF_SAMPLE_IDENTIFIER;
	return w;
}

/* A record of source `id` with the fields of source number i. */
static inline void writer_write_as(struct writer *w, uint64_t id, uint32_t i, uint32_t tid,
				   uint64_t time)
{
	struct {
		struct perf_event_header header;
		uint64_t id, words[4];
	} r = { .header = { .type = PERF_RECORD_SAMPLE }, .id = id };
	uint32_t ids[2] = { 1, tid }, raw[2] = { 4, tid };
	size_t n = 0;

	if (i % 2)
		r.words[n++] = 0x1234; /* ip */
	memcpy(&r.words[n++], ids, sizeof(ids));
	r.words[n++] = time;
	if (i % 2)
		r.words[n++] = 4000; /* period */
	else
		memcpy(&r.words[n++], raw, sizeof(raw));
	r.header.size = (uint16_t)(16 + 8 * n);
	writer_put(w, &r, r.header.size);
}

static inline void writer_write_source(struct writer *w, uint32_t i, uint32_t tid, uint64_t time)
{
	writer_write_as(w, PP_SOURCE_ID(WRITER_EVENT_ID, i), i, tid, time);
}
