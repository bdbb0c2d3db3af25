// SPDX-License-Identifier: LGPL-2.1-or-later
#include "printable.h"

#include <stdbool.h>
#include <string.h>

size_t utf8_length(const char *s, size_t n, uint32_t *ret_character)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t len;
	uint32_t c;

	if (!n)
		return 0;
	len = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (!len || len > n || u[0] > 0xf4)
		return 0;
	c = len == 1 ? u[0] : u[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	/* Overlong forms, surrogates, beyond Unicode. */
	if ((len == 3 && c < 0x800) || (len == 4 && c < 0x10000) || (c >= 0xd800 && c < 0xe000) ||
	    c > 0x10ffff)
		return 0;
	*ret_character = c;
	return len;
}

/*
 * Invisible characters that change how others appear: direction marks and embeddings, which can
 * make one name look like another, or its end like our own text; line and paragraph separators;
 * zero-width spaces.
 */
static bool is_hidden(uint32_t c)
{
	return c == 0x61c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
}

size_t printable_length(const char *s, size_t n)
{
	uint32_t c = 0;
	size_t len = utf8_length(s, n, &c);

	return c >= 0x20 && (c < 0x7f || c >= 0xa0) && !is_hidden(c) ? len : 0;
}

void make_printable(char *text, char instead)
{
	size_t n = strlen(text);

	while (n) {
		size_t len = printable_length(text, n);

		if (!len)
			*text = instead;
		len += !len;
		text += len;
		n -= len;
	}
}
