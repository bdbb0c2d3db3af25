/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts and rates of an event between two readings, the same for stat and top. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/perfctl/print/info.h"

struct counts {
	uint64_t records, bytes, missed, limited;
	bool missed_unknown, missed_at_least, limited_unknown;
};

/* counts over `seconds`. */
struct rates {
	double records, megabytes, missed, limited;
	bool missed_unknown, missed_at_least, limited_unknown;
};

struct counts counts_of(const struct perfpersist_info *info);

/* The difference from `before` to `now`; `now` itself if the rings were replaced. */
struct counts counts_since(const struct counts *now, const struct counts *before);
struct rates rates_of(const struct counts *counts, double seconds);

struct text format_rate(double rate);
struct text format_missed_rate(const struct rates *rates); /* "12", "12+" (at least), "unknown" */

/* "1", "0.5": seconds; in nanoseconds. 0 or -EINVAL. */
int parse_seconds(const char *text, uint64_t *ret);
