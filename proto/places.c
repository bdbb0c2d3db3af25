// SPDX-License-Identifier: LGPL-2.1-or-later
/* Forms the paths of an instance. Pure. */
#include "places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Like a namespace's name: no slash, no dot, so that it stays one path component. */
static int instance_is_valid(const char *s)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char rest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-";
	size_t n = strlen(s);

	return n < 64 && strchr(first, s[0]) && strspn(s, rest) == n;
}

int pp_place(const char *instance, const char *leaf, char *buf, size_t size)
{
	int n;

	if (!instance || !*instance)
		n = snprintf(buf, size, "%s%s", PP_PLACE_RUN, leaf);
	else if (instance_is_valid(instance))
		n = snprintf(buf, size, "%s-%s%s", PP_PLACE_RUN, instance, leaf);
	else
		return -EINVAL;
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
