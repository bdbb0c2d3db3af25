/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The shapes of perf's records, as in perf_event_open(2) and linux/perf_event.h, for readers and
 * writers: one walk over the fields does both. Trusts no size. Knows nothing of rings and files,
 * nor of a record's consequences.
 */
#pragma once

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PP_RECORD_SIZE_MAX 65528 /* its size is a __u16, and a multiple of 8 */
#define PP_NAMESPACES_MAX 32	 /* of one record */

/* ── sample_id: at the end of all records but samples ───────────────────────── */

#define PP_SAMPLE_ID_FROM_ID \
	(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define PP_SAMPLE_ID_FROM_TIME (PERF_SAMPLE_TIME | PP_SAMPLE_ID_FROM_ID)
#define PP_SAMPLE_ID_ALL (PERF_SAMPLE_TID | PP_SAMPLE_ID_FROM_TIME)

/* The size of a sample_id. For only the fields from a place on: how far before the record's end
 * that place is. */
static inline size_t pp_sample_id_size(uint64_t sample_type)
{
	return 8 * (size_t)__builtin_popcountll(sample_type & PP_SAMPLE_ID_ALL);
}

/* Size of the record that begins here: a multiple of 8, complete, with a sample_id of that type (0:
 * none). 0: no valid record, so the next one cannot be found. */
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

/* The time of a record that pp_record_extent() accepted and whose sample_id has a time. */
static inline uint64_t pp_record_time(const void *bytes, size_t size, uint64_t sample_type)
{
	uint64_t time;

	memcpy(&time,
	       (const char *)bytes + size - pp_sample_id_size(sample_type & PP_SAMPLE_ID_FROM_TIME),
	       sizeof(time));
	return time;
}

/* ── all records but samples ────────────────────────────────────────────────────────────── */

/* With PERF_RECORD_MISC_MMAP_BUILD_ID a build id takes its place. */
union pp_file_id {
	struct {
		uint32_t major, minor;
		uint64_t inode, generation;
	};
	struct {
		uint8_t build_id_size; /* may exceed the array */
		uint8_t reserved[3];
		uint8_t build_id[20];
	};
};

struct pp_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint16_t size;
	uint16_t body_size;   /* between header and sample_id */
	const uint8_t *bytes; /* the whole record */

	/* sample_id; 0: it has no such field */
	uint32_t on_pid, on_tid; /* the task that ran when it was written */
	uint64_t time;
	uint32_t cpu;
	uint64_t id;

	uint32_t pid, tid;		/* COMM, FORK, EXIT, MMAP, MMAP2, NAMESPACES: its task */
	uint32_t ppid, ptid;		/* FORK, EXIT */
	uint64_t task_time;		/* FORK, EXIT */
	uint64_t start, length, offset; /* MMAP, MMAP2; KSYMBOL: the first two */
	union pp_file_id file;		/* MMAP2 */
	uint32_t prot, flags;		/* MMAP2 */
	uint16_t kind, kind_flags;	/* KSYMBOL, BPF_EVENT */
	uint32_t program;		/* BPF_EVENT */
	uint8_t tag[8];			/* BPF_EVENT */
	uint64_t number;		/* LOST, LOST_SAMPLES: how many; CGROUP: its id */
	uint64_t lost_id;		/* LOST: the event's id */
	const uint8_t *namespaces;	/* NAMESPACES: their number, then that many pairs */
	size_t namespaces_size;
	const char *text; /* COMM, MMAP, MMAP2, KSYMBOL, CGROUP: ends in a NUL */
	size_t text_size; /* with the NUL */
};

/* Reads header and sample_id of a record of `size` bytes. -EBADMSG: it is too small for them, or
 * larger than a record can be (65,535 bytes).
 * Pointers lead into the record. */
int pp_record_open(const void *bytes, size_t size, uint64_t sample_type, struct pp_record *ret);

/* Reads the fields of an opened record's type. -EBADMSG: they do not fit, or the type is
 * unknown. */
int pp_record_parse(struct pp_record *r);

/* Writes the record with header and sample_id and returns its size; ignores `bytes` and the sizes
 * in r. 0: no room, or the type is unknown. */
size_t pp_record_write(const struct pp_record *r, uint64_t sample_type, void *to, size_t room);

/* Overwrites the sample_id of a whole record with that of `r`. Leaves a record alone that is too
 * small for both. */
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
	uint64_t user_abi;	   /* PERF_SAMPLE_REGS_ABI_*; NONE: there are no registers */
	const uint64_t *user_regs; /* not aligned */
	uint32_t n_user_regs;
	uint32_t user_stack_size;
	const void *user_stack; /* from the stack pointer on: what could be read */
	uint64_t aux_size;
	const void *aux; /* a part of an AUX area's trace */
};

/* Says which fields samples have: those of struct perf_event_attr. */
struct pp_sample_form {
	uint64_t sample_type, read_format, sample_regs_user;
};

/*
 * Reads the fields of a sample of `size` bytes, header included; fields that the type lacks are 0, and
 * so are those of user registers and stack behind a branch stack, whose size the form does not say,
 * and that of a trace behind fields that this struct lacks.
 * -EBADMSG: they do not fit. Pointers lead into the record.
 */
int pp_sample_parse(const void *bytes, size_t size, const struct pp_sample_form *form,
		    struct pp_sample *ret);

/*
 * Writes a sample and returns its size, header included; not for types with PERF_SAMPLE_READ. Pads
 * the raw data with zeroes to the record's end, as the kernel does. 0: no room. Pointers then lead
 * into the record.
 */
size_t pp_sample_write(struct pp_sample *s, uint16_t misc, uint64_t sample_type, void *to,
		       size_t room);

/* The offset of PERF_SAMPLE_ID in a sample; -1: it has none. */
int pp_sample_id_place(uint64_t sample_type);
