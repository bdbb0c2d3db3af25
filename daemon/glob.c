// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Globs, as the kernel matches them for ftrace's filters (glob_match() in lib/glob.c): * ? [...]
 * [!...], ranges, and \ before a literal character. An unclosed bracket is a literal bracket. Must
 * not know what is matched. Compares bytes: no locale.
 */
#include <stddef.h>

#include "daemon/filter.h"

/* Does the class that begins at class (behind its bracket) contain c? Sets *ret and returns the end
 * of the class; NULL if the class is not closed and so is literal text. */
static const char *match_class(const char *class, unsigned char c, int *ret)
{
	int inverted = *class == '!', found = 0;

	class += inverted;
	do {
		unsigned char first = *class ++, last = first;

		if (!first)
			return NULL;
		if (class[0] == '-' && class[1] != ']') {
			last = class[1];
			if (!last)
				return NULL;
			class += 2;
		}
		found |= first <= c && c <= last;
	} while (*class != ']');
	*ret = found != inverted;
	return class + 1;
}

/* Matches one character of text against *glob (not a star), and advances *glob. */
static int match_one(const char **glob, unsigned char c)
{
	const char *s = *glob, *end;
	int matches = 0;

	if (*s == '?') {
		*glob = s + 1;
		return c != 0;
	}
	if (*s == '[') {
		if (!c)
			return 0;
		end = match_class(s + 1, c, &matches);
		if (end) {
			*glob = end;
			return matches;
		}
	}
	if (*s == '\\')
		s++;
	*glob = s + 1;
	return (unsigned char)*s == c;
}

/* The last star takes one more character whenever its rest does not match: no recursion. */
int pp_glob_match(const char *glob, const char *text)
{
	const char *star = NULL, *taken = NULL; /* behind the last star; the end of its match */

	for (;;) {
		if (*glob == '*') {
			star = ++glob;
			taken = text;
			if (!*glob)
				return 1;
			continue;
		}
		if (match_one(&glob, *text)) {
			if (!*text++)
				return 1;
			continue;
		}
		if (!*text || !star)
			return 0;
		glob = star;
		text = ++taken;
	}
}
