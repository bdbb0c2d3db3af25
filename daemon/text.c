// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names, numbers and CPU lists as people write them. Must not know where a text comes from.
 * Compares bytes as ASCII: a name's validity must not depend on the locale. */
#include "daemon/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/macro.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_rest(const char *s)
{
	for (; *s; s++)
		if (!is_name_start(*s) && !is_digit(*s) && *s != '-')
			return false;
	return true;
}

bool pp_name_is_valid(const char *name)
{
	return is_name_start(name[0]) && strnlen(name, PP_NAME_SIZE) < PP_NAME_SIZE &&
	       is_name_rest(name);
}

bool pp_tp_name_is_valid(const char *name)
{
	return (is_name_start(name[0]) || is_digit(name[0])) &&
	       strnlen(name, PP_TP_NAME_SIZE) < PP_TP_NAME_SIZE && is_name_rest(name);
}

bool pp_tp_glob_is_valid(const char *glob)
{
	size_t n = strnlen(glob, PP_TP_NAME_SIZE);

	if (!pp_is_glob(glob))
		return pp_tp_name_is_valid(glob);
	for (size_t i = 0; i < n; i++)
		if (!is_name_start(glob[i]) && !is_digit(glob[i]) && !strchr("-*?[]", glob[i]))
			return false;
	return n < PP_TP_NAME_SIZE;
}

bool pp_targets_are_valid(const char *text)
{
	char item[PP_NAME_SIZE];
	unsigned items = 0;

	do {
		size_t n = strcspn(text, ",");

		if (n == 0 || n >= sizeof(item) || ++items > PP_TARGET_NAMES_MAX)
			return false;
		memcpy(item, text, n);
		item[n] = 0;
		if (!pp_name_is_valid(item) && !(pp_is_glob(item) && pp_tp_glob_is_valid(item)))
			return false;
		text += n;
	} while (*text++ == ',');
	return true;
}

bool pp_is_glob(const char *text)
{
	return strpbrk(text, "*?[]") != NULL;
}

/* The value of c as a digit in this base, or -1. */
static int digit_value(char c, unsigned base)
{
	if (is_digit(c))
		return c - '0';
	if (base == 16 && c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (base == 16 && c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Reads the digits at *text and advances it. Reads a number over max to its end, so that "wrong"
 * and "too large" are distinguished. 0, -EINVAL, -ERANGE. */
static int scan_number(const char **text, unsigned base, uint64_t max, uint64_t *ret)
{
	const char *s = *text;
	bool over = false;
	uint64_t v = 0;
	int d;

	for (; (d = digit_value(*s, base)) >= 0; s++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v) || v > max)
			over = true;
	}
	if (s == *text)
		return -EINVAL;
	*text = s;
	if (over)
		return -ERANGE;
	*ret = v;
	return 0;
}

static int parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;
	int r;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	r = scan_number(&text, base, max, &v);
	if (*text)
		return -EINVAL;
	if (r < 0)
		return r;
	*ret = v;
	return 0;
}

int pp_parse_u64(const char *text, uint64_t *ret)
{
	return parse_number(text, UINT64_MAX, ret);
}

int pp_parse_u32(const char *text, uint32_t *ret)
{
	uint64_t v;
	int r;

	r = parse_number(text, UINT32_MAX, &v);
	if (r < 0)
		return r;
	*ret = v;
	return 0;
}

/* One "N" or "N-M" of a list. */
static int scan_range(const char **text, uint64_t *ret_first, uint64_t *ret_last)
{
	uint64_t first, last;
	int r;

	r = scan_number(text, 10, PP_CPUS_MAX - 1, &first);
	if (r < 0)
		return r;
	last = first;
	if (**text == '-') {
		(*text)++;
		r = scan_number(text, 10, PP_CPUS_MAX - 1, &last);
		if (r < 0)
			return r;
	}
	if (last < first)
		return -EINVAL;
	*ret_first = first;
	*ret_last = last;
	return 0;
}

int pp_parse_cpus(const char *text, struct pp_cpumask *ret)
{
	struct pp_cpumask mask = { 0 };

	for (;;) {
		uint64_t first = 0, last = 0;
		int r;

		r = scan_range(&text, &first, &last);
		if (r < 0)
			return r;
		for (uint64_t cpu = first; cpu <= last; cpu++)
			pp_cpumask_set(&mask, cpu);
		if (!*text)
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*ret = mask;
	return 0;
}

/* Appends to the text of length *len in buf; a part that does not fit is left out entirely. */
static _printf_(4, 5) int append(char *buf, size_t size, size_t *len, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf + *len, size - *len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size - *len) {
		buf[*len] = 0;
		return -ENOSPC;
	}
	*len += n;
	return 0;
}

int pp_format_cpus(const struct pp_cpumask *mask, char *buf, size_t size)
{
	size_t len = 0;

	if (size == 0)
		return -ENOSPC;
	buf[0] = 0;
	for (unsigned first = 0; first < PP_CPUS_MAX; first++) {
		const char *comma = len ? "," : "";
		unsigned last = first;
		int r;

		if (!mask->bits[first / 64]) { /* most words: events' lists are full of these */
			first |= 63;
			continue;
		}
		if (!pp_cpumask_test(mask, first))
			continue;
		while (pp_cpumask_test(mask, last + 1))
			last++;
		/* "0,1" and "0-1" are equally long; the kernel writes the range. */
		r = last == first ? append(buf, size, &len, "%s%u", comma, first)
				  : append(buf, size, &len, "%s%u-%u", comma, first, last);
		if (r < 0)
			return r;
		first = last;
	}
	return 0;
}

int pp_copy_text(char *field, size_t size, const char *text)
{
	size_t n = strnlen(text, size);

	if (n == size)
		return -ENAMETOOLONG;
	memcpy(field, text, n);
	memset(field + n, 0, size - n);
	return 0;
}
