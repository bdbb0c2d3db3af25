// SPDX-License-Identifier: LGPL-2.1-or-later
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "client/perfctl/pictures/html-block.h"
#include "proto/macro.h"

void bytes_add(struct bytes *b, const void *data, size_t n)
{
	if (b->failed)
		return;
	if (n > b->cap - b->n) {
		size_t cap = MAX(b->cap * 2, MAX(b->n + n, 256));
		void *more = realloc(b->data, cap);

		if (!more) {
			b->failed = true;
			return;
		}
		b->data = more;
		b->cap = cap;
	}
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
}

void bytes_number(struct bytes *b, uint64_t v)
{
	unsigned char text[10];
	size_t n = 0;

	for (; v >= 128; v >>= 7)
		text[n++] = (unsigned char)(v | 128);
	text[n++] = (unsigned char)v;
	bytes_add(b, text, n);
}

void bytes_signed(struct bytes *b, int64_t v)
{
	bytes_number(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

void bytes_column(struct bytes *b, const struct bytes *column)
{
	unsigned char size[4];

	if (column->failed || column->n > UINT32_MAX) {
		b->failed = true;
		return;
	}
	for (unsigned i = 0; i < sizeof(size); i++)
		size[i] = (unsigned char)(column->n >> 8 * i);
	bytes_add(b, size, sizeof(size));
	bytes_add(b, column->data, column->n);
}

void bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){};
}

/* n is a multiple of 3, except for the last call. */
static void write_base64(FILE *f, const unsigned char *p, size_t n)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char out[4];

	for (; n; p += 3, n -= MIN(n, 3)) {
		uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) |
			     (n > 2 ? p[2] : 0);

		for (unsigned i = 0; i < 4; i++)
			out[i] = letters[v >> (18 - 6 * i) & 63];
		memcpy(out + 1 + MIN(n, 3), "==", 3 - MIN(n, 3));
		fwrite(out, 1, sizeof(out), f);
	}
}

static int write_deflated(FILE *f, const struct bytes *b)
{
	_cleanup_free_ unsigned char *out = NULL;
	uLongf size = compressBound(b->n);

	if (b->n > UINT_MAX)
		return -ENOMEM;
	out = malloc(size);
	if (!out || compress2(out, &size, b->data ?: (const Bytef *)"", b->n, 6) != Z_OK)
		return -ENOMEM;
	write_base64(f, out, size);
	return 0;
}

int block_write(FILE *f, const char *attributes, const struct bytes *b)
{
	int r;

	if (b->failed)
		return -ENOMEM;
	fprintf(f, "<script type=\"application/octet-stream\" %s>", attributes);
	r = write_deflated(f, b);
	fputs("</script>\n", f);
	return r < 0 ? r : fflush(f) ? -errno : 0;
}
