// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rust's legacy mangling: "_ZN", parts with their lengths, the last one "h" and 16 hex
 * digits, "E". */
#include <ctype.h>
#include <string.h>

#include "client/perfctl/trace/demangle.h"
#include "proto/macro.h"

#define HASH_DIGITS 16

/* The next part of a path. */
static bool next_part(const char **at, const char **ret, size_t *ret_len)
{
	size_t len = 0;

	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); (*at)++) {
		len = len * 10 + (size_t)(**at - '0');
		if (len > 4096)
			return false;
	}
	if (!len || strnlen(*at, len) < len)
		return false;
	*ret = *at;
	*ret_len = len;
	*at += len;
	return true;
}

static bool is_hash(const char *part, size_t len)
{
	if (len != HASH_DIGITS + 1 || part[0] != 'h')
		return false;
	for (size_t i = 1; i < len; i++)
		if (!isdigit((unsigned char)part[i]) && (part[i] < 'a' || part[i] > 'f'))
			return false;
	return true;
}

/* Decodes the text between two '$'. Returns how many bytes it wrote to *out; 0: unknown. */
static size_t unescape(const char *s, size_t len, char *out)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "SP", '@' }, { "BP", '*' }, { "RF", '&' }, { "LT", '<' },
		      { "GT", '>' }, { "LP", '(' }, { "RP", ')' }, { "C", ',' } };
	unsigned c = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].name) == len && !memcmp(known[i].name, s, len)) {
			*out = known[i].c;
			return 1;
		}
	if (len != 3 || s[0] != 'u' || !isxdigit((unsigned char)s[1]) ||
	    !isxdigit((unsigned char)s[2]) || sscanf(s + 1, "%2x", &c) != 1 || c < ' ' || c > '~')
		return 0;
	*out = (char)c;
	return 1;
}

/* Never longer than its source. Returns the length. */
static size_t write_part(const char *part, size_t len, char *out)
{
	size_t n = 0;

	if (len > 1 && part[0] == '_' && part[1] == '$') {
		part++;
		len--;
	}
	for (size_t i = 0; i < len;) {
		const char *end = part[i] == '$' ? memchr(part + i + 1, '$', len - i - 1) : NULL;
		size_t m = end ? unescape(part + i + 1, (size_t)(end - part) - i - 1, out + n) : 0;

		if (m) {
			n += m;
			i = (size_t)(end - part) + 1;
		} else if (part[i] == '.' && i + 1 < len && part[i + 1] == '.') {
			out[n++] = ':';
			out[n++] = ':';
			i += 2;
		} else {
			out[n++] = part[i++];
		}
	}
	return n;
}

char *demangle_rust(const char *name)
{
	_cleanup_free_ char *out = NULL;
	const char *at = name, *part, *last = NULL;
	size_t len, last_len = 0, n = 0;

	if (strncmp(name, "_ZN", 3))
		return NULL;
	/* "::" replaces a length, which has at least one digit. */
	out = malloc(2 * strlen(name) + 1);
	if (!out)
		return NULL;
	for (at += 3; next_part(&at, &part, &len); last = part, last_len = len) {
		if (!last)
			continue;
		if (n) {
			out[n++] = ':';
			out[n++] = ':';
		}
		n += write_part(last, last_len, out + n);
	}
	/* ".llvm.1234" may follow. */
	if (!n || !is_hash(last, last_len) || at[0] != 'E' || (at[1] && at[1] != '.'))
		return NULL;
	out[n] = '\0';
	return TAKE_PTR(out);
}
