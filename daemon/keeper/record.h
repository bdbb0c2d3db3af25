/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One record of the kernel's, taken apart. Whoever has a struct record need not look at sizes any
 * more. Knows nothing of rings and of what is made of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/sideband.h"

#define COMM_SIZE 16 /* with its NUL */
#define NAMESPACES_MAX 32

struct record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint16_t size;
	uint64_t time;
	const uint8_t *bytes;		/* all of it, header and sample_id included */
	uint32_t pid, tid;		/* that it tells of; not of CGROUP, LOST */
	uint32_t ppid, ptid;		/* FORK, EXIT */
	const char *text;		/* COMM, MMAP2, CGROUP: ends in a NUL */
	size_t text_size;		/* with it */
	uint64_t start, length, offset; /* MMAP2 */
	const uint8_t *file;		/* MMAP2: BLOB_FILE_ID_SIZE bytes */
	uint32_t prot, flags;		/* MMAP2 */
	const uint8_t *namespaces;	/* NAMESPACES: its number, and so many pairs */
	size_t namespaces_size;
	uint64_t number; /* LOST: how many; CGROUP: its own */
};

/* Bytes of the record that begins here: a multiple of 8, with a sample_id, and all there. 0: what
 * is here is none, and where the next begins is not known. */
size_t record_extent(const uint8_t *bytes, size_t left);

/* Of a record that record_extent() has found. */
uint64_t record_when(const uint8_t *bytes, size_t size);

/* 1: taken apart; 0: nothing that belongs in a sideband; -EBADMSG: damaged, or of a type that
 * nobody asked the kernel for. */
int record_parse(const uint8_t *bytes, size_t size, struct record *ret);
