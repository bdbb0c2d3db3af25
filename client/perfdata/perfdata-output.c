// SPDX-License-Identifier: LGPL-2.1-or-later
/* Buffers the bytes of a perf.data file until they are written. */
#include "client/perfdata/perfdata-output.h"

#include <string.h>

#include "proto/io.h"
#include "proto/perf-file.h"

#define BUFFER_SIZE (256U << 10)

int output_init(struct perfdata_output *o, int fd, bool seekable)
{
	*o = (struct perfdata_output){ .fd = fd, .seekable = seekable };
	o->buffer = malloc(BUFFER_SIZE);
	return o->buffer ? 0 : -ENOMEM;
}

void output_done(struct perfdata_output *o)
{
	free(o->buffer);
	o->buffer = NULL;
}

static int write_all(const struct perfdata_output *o, uint64_t offset, const void *bytes, size_t n)
{
	return o->seekable ? pp_pwrite_all(o->fd, bytes, n, offset) : pp_write_all(o->fd, bytes, n);
}

int output_flush(struct perfdata_output *o)
{
	if (!o->error && o->used)
		o->error = write_all(o, o->written - o->used, o->buffer, o->used);
	o->used = 0;
	return o->error;
}

void *output_room(struct perfdata_output *o, size_t n)
{
	void *room;

	if (n > BUFFER_SIZE - o->used && output_flush(o) < 0)
		return NULL;
	if (o->error)
		return NULL;
	room = o->buffer + o->used;
	o->used += n;
	o->written += n;
	return room;
}

void output_give_back(struct perfdata_output *o, size_t n)
{
	o->used -= n;
	o->written -= n;
}

void output_put(struct perfdata_output *o, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n && !o->error) {
		size_t k = MIN(n, BUFFER_SIZE - o->used);

		if (!k) {
			output_flush(o);
			continue;
		}
		memcpy(o->buffer + o->used, p, k);
		o->used += k;
		o->written += k;
		p += k;
		n -= k;
	}
}

void output_fill(struct perfdata_output *o, size_t n)
{
	static const uint8_t zeroes[64];

	for (size_t k; n; n -= k) {
		k = MIN(n, sizeof(zeroes));
		output_put(o, zeroes, k);
	}
}

int output_rewrite(struct perfdata_output *o, uint64_t offset, const void *bytes, size_t n)
{
	if (!o->error)
		o->error = write_all(o, offset, bytes, n);
	return o->error;
}

/* ── Blobs ──────────────────────────────────────────────────────────────────────────────── */

void blob_done(struct blob *b)
{
	free(b->bytes);
	*b = (struct blob){};
}

void *blob_room(struct blob *b, size_t n)
{
	uint8_t *room;

	if (n > b->cap - b->n) {
		size_t cap = MAX(b->n + n, MAX(2 * b->cap, (size_t)1024));
		uint8_t *bytes = b->failed ? NULL : realloc(b->bytes, cap);

		if (!bytes) {
			b->failed = true;
			return NULL;
		}
		b->bytes = bytes;
		b->cap = cap;
	}
	room = b->bytes + b->n;
	b->n += n;
	return room;
}

void blob_give_back(struct blob *b, size_t n)
{
	b->n -= n;
}

void blob_put(struct blob *b, const void *bytes, size_t n)
{
	uint8_t *room = n ? blob_room(b, n) : NULL;

	if (room)
		memcpy(room, bytes, n);
}

void blob_fill(struct blob *b, size_t n)
{
	uint8_t *room = n ? blob_room(b, n) : NULL;

	if (room)
		memset(room, 0, n);
}

void blob_u32(struct blob *b, uint32_t v)
{
	blob_put(b, &v, sizeof(v));
}

void blob_u64(struct blob *b, uint64_t v)
{
	blob_put(b, &v, sizeof(v));
}

void blob_bytes_as_string(struct blob *b, const char *s, size_t n)
{
	size_t padded = ALIGN_TO(n + 1, (size_t)PERF_FILE_STRING_ALIGN);

	blob_u32(b, (uint32_t)padded);
	blob_put(b, s, n);
	blob_fill(b, padded - n);
}

void blob_string(struct blob *b, const char *s)
{
	blob_bytes_as_string(b, s, strlen(s));
}
