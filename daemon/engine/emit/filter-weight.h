/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost of a filter for each hit of its event, counted in programs: one without a filter is 1,
 * and takes up to 0.3 us. Comparisons of numbers are negligible. Text is not: each comparison reads
 * its own, and a glob walks all of it. 256 bytes walked count as another program.
 */
#pragma once

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/filter.h"

/* The cost of n checked nodes, if all are evaluated. tp NULL: an event without fields. */
uint32_t filter_weight(const struct tracepoint *tp, const struct pp_filter_node *nodes, size_t n);
