// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts and rates. Prints nothing and asks nobody. */
#include "client/perfctl/print/rates.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/clock.h"

struct counts counts_of(const struct perfpersist_info *info)
{
	return (struct counts){
		.records = info->records,
		.bytes = info->bytes,
		.missed = info->missed,
		.limited = info->limited,
		.missed_unknown = info->missed_unknown,
		.missed_at_least = info->missed_at_least,
	};
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

struct counts counts_since(const struct counts *now, const struct counts *before)
{
	return (struct counts){
		.records = since(now->records, before->records),
		.bytes = since(now->bytes, before->bytes),
		.missed = since(now->missed, before->missed),
		.limited = since(now->limited, before->limited),
		.missed_unknown = now->missed_unknown,
		.missed_at_least = now->missed_at_least,
		.limited_unknown = now->limited_unknown,
	};
}

struct rates rates_of(const struct counts *counts, double seconds)
{
	if (seconds <= 0)
		seconds = 1e-9;
	return (struct rates){
		.records = counts->records / seconds,
		.megabytes = counts->bytes / seconds / 1e6,
		.missed = counts->missed / seconds,
		.limited = counts->limited / seconds,
		.missed_unknown = counts->missed_unknown,
		.missed_at_least = counts->missed_at_least,
		.limited_unknown = counts->limited_unknown,
	};
}

struct text format_rate(double rate)
{
	struct text t;

	snprintf(t.s, sizeof(t.s), rate < 10 && rate > 0 ? "%.1f" : "%.0f", rate);
	return t;
}

struct text format_missed_rate(const struct rates *r)
{
	struct text t = format_rate(r->missed);

	if (r->missed_unknown)
		snprintf(t.s, sizeof(t.s), "unknown");
	else if (r->missed_at_least)
		snprintf(t.s + strlen(t.s), sizeof(t.s) - strlen(t.s), "+");
	return t;
}

int parse_seconds(const char *text, uint64_t *ret)
{
	double v;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	v = strtod(text, &end);
	if (*end || errno || !(v >= 0.001 && v <= 1e6))
		return -EINVAL;
	*ret = (uint64_t)(v * 1e9);
	return 0;
}
