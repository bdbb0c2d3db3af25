/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes protocol buffers' wire format into memory: numbered fields, nested messages. Knows no
 * message. Errors (memory) show in `failed`, at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pbuf {
	unsigned char *bytes;
	size_t n, cap;
	bool failed;
};

void pbuf_unsigned(struct pbuf *b, uint32_t field, uint64_t v); /* also bool, enum */
void pbuf_signed(struct pbuf *b, uint32_t field, int64_t v);	/* int32, int64; not sint */
void pbuf_bytes(struct pbuf *b, uint32_t field, const void *bytes, size_t n);
void pbuf_string(struct pbuf *b, uint32_t field, const char *s);
/* The same, with invalid UTF-8 and control characters as \xNN. */
void pbuf_text(struct pbuf *b, uint32_t field, const char *bytes, size_t n);

/* Everything written between the two is a message. begin returns a value for end; messages may
 * nest. */
size_t pbuf_begin(struct pbuf *b, uint32_t field);
void pbuf_end(struct pbuf *b, size_t begun);

/* Appends fields that were written elsewhere. */
void pbuf_append(struct pbuf *b, const struct pbuf *fields);
void pbuf_done(struct pbuf *b);
