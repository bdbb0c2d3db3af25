/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a perf.data file's bytes go: a buffer in front of a descriptor, and a blob, which is a
 * buffer that grows. Both remember their first failure, so that who writes many small things looks
 * once. Know nothing of what the bytes mean.
 */
#pragma once

#include "proto/macro.h"

struct perfdata_output {
	int fd;
	bool seekable; /* written at its place, whatever the descriptor's position is */
	uint8_t *buffer;
	size_t used;
	uint64_t written; /* bytes that were put, those in the buffer included */
	int error;	  /* 0, or the first failure: nothing is written any more */
};

int output_init(struct perfdata_output *o, int fd, bool seekable); /* -ENOMEM */
void output_done(struct perfdata_output *o);

void output_put(struct perfdata_output *o, const void *bytes, size_t n);
void output_fill(struct perfdata_output *o, size_t n); /* zeroes */

/* Room for n more bytes, in one piece, to be filled at once; n at most PP_RECORD_SIZE_MAX. NULL
 * after a failure. */
void *output_room(struct perfdata_output *o, size_t n);
void output_give_back(struct perfdata_output *o, size_t n); /* of its end, what was not filled */

/* Returns o->error. */
int output_flush(struct perfdata_output *o);

/* Writes over what was written, which must have been flushed. Returns o->error. */
int output_rewrite(struct perfdata_output *o, uint64_t offset, const void *bytes, size_t n);

struct blob {
	uint8_t *bytes;
	size_t n, cap;
	bool failed; /* out of memory */
};

void blob_done(struct blob *b);
/* Room for n more bytes, until the next call; NULL: there is none, which is remembered. */
void *blob_room(struct blob *b, size_t n);
void blob_give_back(struct blob *b, size_t n); /* of its end, what was not filled */

void blob_put(struct blob *b, const void *bytes, size_t n);
void blob_fill(struct blob *b, size_t n); /* zeroes */
void blob_u32(struct blob *b, uint32_t v);
void blob_u64(struct blob *b, uint64_t v);

/* As perf has strings: their size with NUL and padding, then so many bytes. */
void blob_string(struct blob *b, const char *s);
void blob_bytes_as_string(struct blob *b, const char *s, size_t n);
