/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads numbers and texts one after the other, never beyond the end: a read that would go beyond
 * makes the cursor bad, for good. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static inline const void *cursor_bytes(struct cursor *c, uint64_t n)
{
	const void *p = c->p;

	if (c->bad || n > c->left) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	c->left -= n;
	return p;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	const void *p = cursor_bytes(c, sizeof(uint32_t));
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t cursor_u64(struct cursor *c)
{
	const void *p = cursor_bytes(c, sizeof(uint64_t));
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

/* A NUL-terminated text in a field of `max` bytes, all of which it consumes (max > left: bad).
 * NULL: bad. */
static inline const char *cursor_text(struct cursor *c, size_t max)
{
	const char *text = (const char *)cursor_bytes(c, max);

	if (!text || !memchr(text, 0, max)) {
		c->bad = true;
		return NULL;
	}
	return text;
}

/* A text that ends at its NUL; the next field follows. NULL: bad. */
static inline const char *cursor_line(struct cursor *c)
{
	const uint8_t *end = c->bad ? NULL : (const uint8_t *)memchr(c->p, 0, c->left);

	if (!end) {
		c->bad = true;
		return NULL;
	}
	return (const char *)cursor_bytes(c, (uint64_t)(end - c->p) + 1);
}
