/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which parts of untrusted text may be shown. Terminals obey C0, DEL and C1, which UTF-8 also
 * encodes (U+0080 to U+009F); some take the single bytes 0x80 to 0x9f for C1. So everything that is
 * not a printable character in valid UTF-8 is shown as something else, and so are invisible
 * characters and those that change the direction of writing. Every output of untrusted text uses
 * these functions; the page of `perfctl report --html` (data.js) has the same rule.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at the beginning of the n bytes at s; 0: not valid. */
size_t utf8_length(const char *s, size_t n, uint32_t *ret_character);
/* The same; 0 also for control characters, of C0, C1 or Unicode. A NUL is one. */
size_t printable_length(const char *s, size_t n);
/* Replaces each byte that is not part of a printable character. */
void make_printable(char *text, char instead);
