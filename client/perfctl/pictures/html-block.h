/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A growing buffer, and a block of the page: deflated, as base64, between its tags. Knows nothing
 * of records. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bytes {
	unsigned char *data;
	size_t n, cap;
	bool failed; /* no memory: later bytes are missing */
};

void bytes_add(struct bytes *b, const void *data, size_t n);
void bytes_number(struct bytes *b, uint64_t v);
void bytes_signed(struct bytes *b, int64_t v);
/* Appends a column: its size in 4 bytes, lowest first, and its bytes. */
void bytes_column(struct bytes *b, const struct bytes *column);
void bytes_done(struct bytes *b);

/* attributes: the text in the tag. -ENOMEM, or the error of f. */
int block_write(FILE *f, const char *attributes, const struct bytes *b);
