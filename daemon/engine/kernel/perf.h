/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* perf_event_open(2) as the recorders use it. */
#pragma once

#include <linux/perf_event.h>

#include "daemon/engine/kernel/tracefs.h"

/* Opens the event on one CPU, for all processes. Returns the fd or -errno. */
int perf_open(struct perf_event_attr *attr, unsigned cpu);

/* What carries a tracepoint's link; also what the rings' headers say of it. */
void perf_tracepoint_attr(const struct tracepoint *tp, struct perf_event_attr *ret);
