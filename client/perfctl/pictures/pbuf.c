// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The wire format: a field is a tag (number and type), then a varint, or a length and that many
 * bytes. A message's length is known only at its end: one byte is kept free for it, and if that is
 * not enough, the message is moved.
 */
#include <string.h>

#include "client/perfctl/output/output.h"
#include "client/perfctl/pictures/pbuf.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

#define VARINT_MAX 10

static bool make_room(struct pbuf *b, size_t n)
{
	size_t cap = b->cap ?: 256;
	unsigned char *bigger;

	if (b->failed)
		return false;
	if (n <= b->cap - b->n)
		return true;
	while (cap - b->n < n)
		cap *= 2;
	bigger = realloc(b->bytes, cap);
	if (!bigger) {
		b->failed = true;
		return false;
	}
	b->bytes = bigger;
	b->cap = cap;
	return true;
}

static size_t encode_varint(uint64_t v, unsigned char *to)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (unsigned char)v | 0x80;
	to[n++] = (unsigned char)v;
	return n;
}

static void add_varint(struct pbuf *b, uint64_t v)
{
	if (make_room(b, VARINT_MAX))
		b->n += encode_varint(v, b->bytes + b->n);
}

static void add_tag(struct pbuf *b, uint32_t field, unsigned wire)
{
	add_varint(b, (uint64_t)field << 3 | wire);
}

void pbuf_unsigned(struct pbuf *b, uint32_t field, uint64_t v)
{
	add_tag(b, field, WIRE_VARINT);
	add_varint(b, v);
}

/* A negative int32 also takes 10 bytes: it is extended to 64 bits. */
void pbuf_signed(struct pbuf *b, uint32_t field, int64_t v)
{
	pbuf_unsigned(b, field, (uint64_t)v);
}

void pbuf_bytes(struct pbuf *b, uint32_t field, const void *bytes, size_t n)
{
	add_tag(b, field, WIRE_BYTES);
	add_varint(b, n);
	if (n && make_room(b, n)) {
		memcpy(b->bytes + b->n, bytes, n);
		b->n += n;
	}
}

void pbuf_string(struct pbuf *b, uint32_t field, const char *s)
{
	pbuf_bytes(b, field, s, strlen(s));
}

void pbuf_text(struct pbuf *b, uint32_t field, const char *bytes, size_t n)
{
	_cleanup_free_ char *text = NULL;
	size_t size, plain = 0;
	FILE *f;

	while (plain < n && bytes[plain] >= ' ' && bytes[plain] < 0x7f)
		plain++;
	if (plain == n) {
		pbuf_bytes(b, field, bytes, n);
		return;
	}
	f = open_memstream(&text, &size);
	if (f)
		print_text(f, bytes, n);
	if (f && !fclose(f))
		pbuf_bytes(b, field, text, size);
	else
		b->failed = true;
}

size_t pbuf_begin(struct pbuf *b, uint32_t field)
{
	add_tag(b, field, WIRE_BYTES);
	if (make_room(b, 1))
		b->bytes[b->n++] = 0;
	return b->n;
}

void pbuf_end(struct pbuf *b, size_t begun)
{
	unsigned char length[VARINT_MAX];
	size_t size = b->n - begun, n = encode_varint(size, length);

	if (!make_room(b, n))
		return;
	if (n > 1) {
		memmove(b->bytes + begun + n - 1, b->bytes + begun, size);
		b->n += n - 1;
	}
	memcpy(b->bytes + begun - 1, length, n);
}

void pbuf_append(struct pbuf *b, const struct pbuf *fields)
{
	if (fields->n && make_room(b, fields->n)) {
		memcpy(b->bytes + b->n, fields->bytes, fields->n);
		b->n += fields->n;
	}
}

void pbuf_done(struct pbuf *b)
{
	free(b->bytes);
	*b = (struct pbuf){};
}
