/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Owns the shapes of perf's records, as perf_event_open(2) and linux/perf_event.h have them, for who
 * reads and for who writes them: it is one walk over the fields that does both. Believes no size.
 * Knows nothing of rings and files, and not what follows from a record.
 */
#pragma once

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PP_RECORD_SIZE_MAX 65528 /* its size is a __u16, and a multiple of 8 */
#define PP_NAMESPACES_MAX 32	 /* of one record */

/* ── sample_id: what stands at the end of all records but samples ───────────────────────── */

#define PP_SAMPLE_ID_FROM_ID \
	(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define PP_SAMPLE_ID_FROM_TIME (PERF_SAMPLE_TIME | PP_SAMPLE_ID_FROM_ID)
#define PP_SAMPLE_ID_ALL (PERF_SAMPLE_TID | PP_SAMPLE_ID_FROM_TIME)

/* Bytes of it. Of the fields that stand behind a place: how far before the record's end that is. */
static inline size_t pp_sample_id_size(uint64_t sample_type)
{
	return 8 * (size_t)__builtin_popcountll(sample_type & PP_SAMPLE_ID_ALL);
}

/* Bytes of the record that begins here: a multiple of 8, with a sample_id of that type (0: none),
 * and all there. 0: what is here is none, and where the next begins is not known. */
static inline size_t pp_record_extent(const void *bytes, size_t left, uint64_t sample_type)
{
	struct perf_event_header h;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, bytes, sizeof(h));
	if (h.size % 8 || h.size < sizeof(h) + pp_sample_id_size(sample_type) || h.size > left)
		return 0;
	return h.size;
}

/* When it was; of a record that pp_record_extent() has found, whose sample_id has a time. */
static inline uint64_t pp_record_time(const void *bytes, size_t size, uint64_t sample_type)
{
	uint64_t time;

	memcpy(&time,
	       (const char *)bytes + size - pp_sample_id_size(sample_type & PP_SAMPLE_ID_FROM_TIME),
	       sizeof(time));
	return time;
}

/* ── all records but samples ────────────────────────────────────────────────────────────── */

/* With PERF_RECORD_MISC_MMAP_BUILD_ID there is a build id in its place. */
union pp_file_id {
	struct {
		uint32_t major, minor;
		uint64_t inode, generation;
	};
	struct {
		uint8_t build_id_size; /* may be more than there is room */
		uint8_t reserved[3];
		uint8_t build_id[20];
	};
};

struct pp_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint16_t size;
	uint16_t body_size;   /* between header and sample_id */
	const uint8_t *bytes; /* all of it */

	/* sample_id; 0: it has no such field */
	uint32_t on_pid, on_tid; /* who ran when it was written */
	uint64_t time;
	uint32_t cpu;
	uint64_t id;

	uint32_t pid, tid;   /* COMM, FORK, EXIT, MMAP, MMAP2, NAMESPACES: of whom it is */
	uint32_t ppid, ptid; /* FORK, EXIT */
	uint64_t task_time;  /* FORK, EXIT */
	uint64_t start, length, offset; /* MMAP, MMAP2; of KSYMBOL the first two */
	union pp_file_id file;		/* MMAP2 */
	uint32_t prot, flags;		/* MMAP2 */
	uint16_t kind, kind_flags;	/* KSYMBOL, BPF_EVENT */
	uint32_t program;		/* BPF_EVENT */
	uint8_t tag[8];			/* BPF_EVENT */
	uint64_t number;		/* LOST, LOST_SAMPLES: how many; CGROUP: its own */
	uint64_t lost_id;		/* LOST: of the event */
	const uint8_t *namespaces;	/* NAMESPACES: their number, and so many pairs */
	size_t namespaces_size;
	const char *text; /* COMM, MMAP, MMAP2, KSYMBOL, CGROUP: ends in a NUL */
	size_t text_size; /* with it */
};

/* Header and sample_id of a record of so many bytes. -EBADMSG: it has no room for them. Pointers
 * lead into the record. */
int pp_record_open(const void *bytes, size_t size, uint64_t sample_type, struct pp_record *ret);

/* The fields of its type, of a record that was opened. -EBADMSG: they do not fit into it, or its
 * type is not known here. */
int pp_record_parse(struct pp_record *r);

/* Its bytes, header and sample_id included, which are returned; `bytes` and sizes of it are not
 * looked at. 0: there is no room, or its type is not known here. */
size_t pp_record_write(const struct pp_record *r, uint64_t sample_type, void *to, size_t room);

/* Writes over the sample_id of a whole record, as `r` has it. */
void pp_record_rewrite_id(const struct pp_record *r, uint64_t sample_type, void *bytes,
			  size_t size);

/* ── samples ────────────────────────────────────────────────────────────────────────────── */

struct pp_sample {
	uint64_t id, ip, time, addr, period;
	uint32_t pid, tid, cpu;
	uint32_t raw_size;
	const void *raw;
	const uint64_t *callchain; /* not aligned */
	uint64_t n_callchain;
};

/* The fields of a sample of so many bytes, header included; what the type has not is 0.
 * -EBADMSG: they do not fit into it. Pointers lead into the record. */
int pp_sample_parse(const void *bytes, size_t size, uint64_t sample_type, uint64_t read_format,
		    struct pp_sample *ret);

/*
 * Its bytes, header included, which are returned; no type with PERF_SAMPLE_READ. The raw data gets
 * zeroes up to the end of the record, as the kernel does it. 0: there is no room. Pointers lead into
 * the record from now on.
 */
size_t pp_sample_write(struct pp_sample *s, uint16_t misc, uint64_t sample_type, void *to,
		       size_t room);

/* Where PERF_SAMPLE_ID stands in a sample; -1: it does not. */
int pp_sample_id_place(uint64_t sample_type);
