/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attaching one source's entry to the kernel; and in people's words why that could not be done. */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/recorders/recorder.h"

/* As recorder.attach; but what will be free in a moment is waited for. */
int attach_source(const struct source *source, int entry, unsigned cpu, int *ret_fd);

/* Whether what there are few of, for all tools together, is all in use. */
bool attach_is_used_up(int r);

/* Why: returns an -errno that fits, with a sentence. */
int attach_failure(const struct source *source, int r, unsigned cpu, struct failure *f);
