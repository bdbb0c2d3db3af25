// SPDX-License-Identifier: LGPL-2.1-or-later
/* See specifier.h. */
#include "proto/specifier.h"

#include <errno.h>
#include <string.h>

#define SUFFIX ".conf"

bool pp_file_instance(const char *path, char *buf, size_t size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *at = strchr(name, '@');
	size_t n = at ? strlen(at + 1) : 0, suffix = strlen(SUFFIX);

	buf[0] = '\0';
	if (n <= suffix || strcmp(at + 1 + n - suffix, SUFFIX) != 0 || n - suffix >= size)
		return false;
	memcpy(buf, at + 1, n - suffix);
	buf[n - suffix] = '\0';
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* An expansion under way; n counts also what has no room. */
struct expansion {
	char *buf;
	size_t size, n;
};

static void put(struct expansion *e, char c)
{
	if (e->n + 1 < e->size)
		e->buf[e->n] = c;
	e->n++;
}

static void put_instance(struct expansion *e, const char *instance, bool as_name)
{
	/* No name begins with one of these. */
	if (as_name && (is_digit(*instance) || *instance == '-'))
		put(e, '_');
	for (; *instance; instance++)
		put(e, !as_name || is_letter(*instance) || is_digit(*instance) || *instance == '-'
			       ? *instance
			       : '_');
}

int pp_expand(const char *text, const char *instance, bool as_name, char *buf, size_t size)
{
	struct expansion e = { .buf = buf, .size = size };

	for (; *text; text++) {
		if (*text != '%')
			put(&e, *text);
		else if (*++text == '%')
			put(&e, '%');
		else if (*text == 'i')
			put_instance(&e, instance, as_name);
		else
			return -EINVAL;
	}
	if (e.n >= size)
		return -ENAMETOOLONG;
	buf[e.n] = '\0';
	return 0;
}
