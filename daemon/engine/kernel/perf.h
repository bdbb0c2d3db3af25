/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* perf_event_open(2) for the recorders. */
#pragma once

#include <linux/perf_event.h>

#include "daemon/engine/kernel/tracefs.h"

/* Opens the event on one CPU, for all processes. Returns the fd or -errno. */
int perf_open(struct perf_event_attr *attr, unsigned cpu);

/* The attributes of a tracepoint's carrier event; the rings' headers hold them, too. */
void perf_tracepoint_attr(const struct tracepoint *tp, struct perf_event_attr *ret);
