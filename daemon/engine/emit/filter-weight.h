/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a filter costs whoever passes there, in programs: one without a filter is 1, and takes up to
 * 0.3 us. Comparisons of numbers are lost in that; text is not, since each comparison reads its
 * own, and a glob walks all of it. 256 bytes walked are another program.
 */
#pragma once

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/filter.h"

/* Of n checked nodes, where all are looked at. tp NULL: an event without fields. */
uint32_t filter_weight(const struct tracepoint *tp, const struct pp_filter_node *nodes, size_t n);
