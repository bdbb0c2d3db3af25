/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * perfctl record --overwrite: waits, and writes a snapshot to FILE.DATE on each SIGUSR2 and at the
 * end, as perf record --overwrite does.
 */
#pragma once

#include "client/perfctl/events/selection.h"
#include "client/perfctl/workload.h"

struct call;
struct perfpersist;

/* Runs until a signal, the workload's end, or `until` (CLOCK_MONOTONIC, ns). Returns an exit
 * code. */
int overwrite(struct call *call, struct perfpersist *p, char **names, size_t n_names,
	      struct selection *selection, const char *output, uint64_t until, struct workload *w);
