/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What may be shown of text that somebody else wrote. Terminals obey C0, DEL and C1, which UTF-8
 * also has (U+0080 to U+009F); some take the bytes 0x80 to 0x9f alone for C1. So all that is not a
 * printable character in valid UTF-8 is shown as something else, and so is what turns the direction
 * of writing or is not to be seen. Every output that quotes others asks here; the page of
 * `perfctl report --html` (data.js) has the same rule.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character that begins the n bytes at s; 0 if there is no valid one. */
size_t utf8_length(const char *s, size_t n, uint32_t *ret_character);
/* The same; 0 also if it is a control character, of C0, C1 or of Unicode's. A NUL is one. */
size_t printable_length(const char *s, size_t n);
/* Replaces each byte that belongs to nothing printable. */
void make_printable(char *text, char instead);
