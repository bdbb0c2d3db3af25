/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attaches one source's entry to the kernel, and explains failures to users. */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/recorders/recorder.h"

/* Like recorder.attach, but waits for places that will be free in a moment. */
int attach_source(const struct source *source, int entry, const struct perf_place *at, int *ret_fd);

/* Whether all places, which all tools share, are in use. */
bool attach_is_used_up(int r);

/* Explains it: returns a suitable -errno, with a message. */
int attach_failure(const struct source *source, int r, const struct perf_place *at,
		   struct failure *f);
