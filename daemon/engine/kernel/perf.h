/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* perf_event_open(2) for the recorders. */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/order.h"

/* Where a perf event counts. */
struct perf_place {
	int cpu;      /* -1: wherever the task runs */
	pid_t tid;    /* of the task; -1: in all */
	int cgroup;   /* the directory of one, in which alone it counts; -EBADF: in all */
	bool inherit; /* also in what the task creates from then on */
	int group;    /* its leader; 0: none */
};

int perf_open_at(struct perf_event_attr *attr, const struct perf_place *at);

/* Opens the event on one CPU, for all processes. Returns the fd or -errno. */
int perf_open(struct perf_event_attr *attr, unsigned cpu);

/* What perf counts and where not, of a source that it counts: disabled, with CLOCK_MONOTONIC. */
void perf_source_attr(const struct pp_source *source, struct perf_event_attr *ret);

/* The attributes of a tracepoint's carrier event; the rings' headers hold them, too. */
void perf_tracepoint_attr(const struct tracepoint *tp, struct perf_event_attr *ret);
