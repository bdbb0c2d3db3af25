/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of a perf.data file: a buffer in front of a descriptor, and a blob, which is a buffer
 * that grows. Both remember their first error, so that a caller with many small writes checks once.
 * Know nothing of the bytes' meaning.
 */
#pragma once

#include "proto/macro.h"

struct perfdata_output {
	int fd;
	bool seekable; /* written at explicit offsets, regardless of the descriptor's position */
	uint8_t *buffer;
	size_t used;
	uint64_t written; /* bytes put, including those in the buffer */
	int error;	  /* 0, or the first error: nothing is written any more */
};

int output_init(struct perfdata_output *o, int fd, bool seekable); /* -ENOMEM */
void output_done(struct perfdata_output *o);

void output_put(struct perfdata_output *o, const void *bytes, size_t n);
void output_fill(struct perfdata_output *o, size_t n); /* zeroes */

/* Returns room for n more contiguous bytes, which the caller fills at once; n at most
 * PP_RECORD_SIZE_MAX. NULL after an error. */
void *output_room(struct perfdata_output *o, size_t n);
void output_give_back(struct perfdata_output *o, size_t n); /* the unused end of the room */

/* Returns o->error. */
int output_flush(struct perfdata_output *o);

/* Overwrites bytes that were written and flushed. Returns o->error. */
int output_rewrite(struct perfdata_output *o, uint64_t offset, const void *bytes, size_t n);

struct blob {
	uint8_t *bytes;
	size_t n, cap;
	bool failed; /* out of memory */
};

void blob_done(struct blob *b);
/* Room for n more bytes, until the next call; NULL: no memory, which is remembered. */
void *blob_room(struct blob *b, size_t n);
void blob_give_back(struct blob *b, size_t n); /* the unused end of the room */

void blob_put(struct blob *b, const void *bytes, size_t n);
void blob_fill(struct blob *b, size_t n); /* zeroes */
void blob_u32(struct blob *b, uint32_t v);
void blob_u64(struct blob *b, uint64_t v);

/* A string as perf writes it: its size with NUL and padding, then that many bytes. */
void blob_string(struct blob *b, const char *s);
void blob_bytes_as_string(struct blob *b, const char *s, size_t n);
