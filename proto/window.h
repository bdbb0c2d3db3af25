/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of a trigger's window, in which its targets go on recording: a time, a number of records,
 * or both: "5ms", "200r", "200r,1s".
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/macro.h"

/* "200r" */
static inline int pp_parse_records(const char *text, uint64_t *ret)
{
	uint64_t n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || strcmp(end, "r") != 0 || !n)
		return -EINVAL;
	*ret = n;
	return 0;
}

/* duration: the parser of times, in ns. What the text does not name is 0. 0; -EINVAL; -ERANGE. */
static inline int pp_parse_window(const char *text,
				  int (*duration)(const char *text, uint64_t *ret),
				  uint64_t *ret_time, uint64_t *ret_records)
{
	uint64_t time = 0, records = 0;
	char item[64];
	int r = 0;

	do {
		size_t n = strcspn(text, ",");

		if (n >= sizeof(item))
			return -EINVAL;
		memcpy(item, text, n);
		item[n] = 0;
		text += n;
		if (n && item[n - 1] == 'r')
			r = records ? -EINVAL : pp_parse_records(item, &records);
		else
			r = time ? -EINVAL : duration(item, &time);
	} while (r >= 0 && *text++ == ',');
	if (r >= 0 && !time && !records)
		r = -EINVAL;
	if (r < 0)
		return r;
	*ret_time = time;
	*ret_records = records;
	return 0;
}
