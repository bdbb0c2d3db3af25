/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the samples of a perf.data file, as `perf record` writes it. For tests only: the file is
 * unchanged since its writer left it on this machine, so anything unexpected is simply an error.
 */
#pragma once

#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/macro.h"

#define PERF_DATA_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */

struct perf_data_section {
	uint64_t offset, size;
};

struct perf_data_header {
	uint64_t magic, size, attr_size;
	struct perf_data_section attrs, data, types;
};

struct perf_data {
	const uint8_t *file;
	size_t size;
	struct perf_data_header header;
	uint64_t sample_type; /* of every event in it */
	uint64_t at;	      /* the next record's offset */
	uint64_t lost;	      /* records that perf reports as lost, so far */
};

struct perf_data_sample {
	uint32_t pid, tid, cpu, raw_size;
	uint64_t time;
	const void *raw;
};

static inline bool perf_data_take(struct perf_data *d, uint64_t offset, void *ret, size_t size)
{
	if (offset > d->size || size > d->size - offset)
		return false;
	memcpy(ret, d->file + offset, size);
	return true;
}

/* All tracepoints have one sample type; otherwise the reader could not know a record's type. perf's
 * other events have no samples. */
static inline bool perf_data_attrs(struct perf_data *d)
{
	const struct perf_data_header *h = &d->header;
	struct perf_event_attr attr;

	if (h->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_data_section))
		return false;
	for (uint64_t at = 0; at + h->attr_size <= h->attrs.size; at += h->attr_size) {
		if (!perf_data_take(d, h->attrs.offset + at, &attr, PERF_ATTR_SIZE_VER0))
			return false;
		if (attr.type != PERF_TYPE_TRACEPOINT)
			continue;
		if (d->sample_type && attr.sample_type != d->sample_type)
			return false;
		d->sample_type = attr.sample_type;
	}
	return !(d->sample_type & (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN)) &&
	       d->sample_type & PERF_SAMPLE_TID && d->sample_type & PERF_SAMPLE_TIME &&
	       d->sample_type & PERF_SAMPLE_CPU && d->sample_type & PERF_SAMPLE_RAW;
}

static inline bool perf_data_open(const char *path, struct perf_data *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	*ret = (struct perf_data){};
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	ret->file = map;
	ret->size = (size_t)st.st_size;
	if (!perf_data_take(ret, 0, &ret->header, sizeof(ret->header)) ||
	    ret->header.magic != PERF_DATA_MAGIC || !perf_data_attrs(ret)) {
		munmap(map, ret->size);
		return false;
	}
	ret->at = ret->header.data.offset;
	return true;
}

static inline void perf_data_close(struct perf_data *d)
{
	munmap((void *)d->file, d->size);
}

/* The fields have the order of perf_event_open(2). */
static inline bool perf_data_sample(const struct perf_data *d, uint64_t at, uint64_t end,
				    struct perf_data_sample *ret)
{
	const uint64_t type = d->sample_type;
	const uint8_t *p = d->file + at + sizeof(struct perf_event_header);

	p += type & PERF_SAMPLE_IDENTIFIER ? 8 : 0;
	p += type & PERF_SAMPLE_IP ? 8 : 0;
	memcpy(&ret->pid, p, 4);
	memcpy(&ret->tid, p + 4, 4);
	memcpy(&ret->time, p + 8, 8);
	p += 16;
	p += type & PERF_SAMPLE_ADDR ? 8 : 0;
	p += type & PERF_SAMPLE_ID ? 8 : 0;
	p += type & PERF_SAMPLE_STREAM_ID ? 8 : 0;
	memcpy(&ret->cpu, p, 4);
	p += 8;
	p += type & PERF_SAMPLE_PERIOD ? 8 : 0;
	memcpy(&ret->raw_size, p, 4);
	ret->raw = p + 4;
	return p + 4 + ret->raw_size <= d->file + end;
}

/* 1: a sample; 0: the end; -1: not the output of perf. */
static inline int perf_data_next(struct perf_data *d, struct perf_data_sample *ret)
{
	const uint64_t end = d->header.data.offset + d->header.data.size;

	while (d->at < end) {
		struct perf_event_header header;
		uint64_t at = d->at, lost[2];

		if (!perf_data_take(d, at, &header, sizeof(header)) ||
		    header.size < sizeof(header) || at + header.size > MIN(end, d->size))
			return -1;
		d->at = at + header.size;
		if (header.type == PERF_RECORD_SAMPLE)
			return perf_data_sample(d, at, d->at, ret) ? 1 : -1;
		if (header.type == PERF_RECORD_LOST) { /* its id, then the count */
			memcpy(lost, d->file + at + sizeof(header), sizeof(lost));
			d->lost += lost[1];
		}
	}
	return 0;
}
