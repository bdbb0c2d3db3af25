/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Emits and loads a source's program, for recorders that emit it. */
#pragma once

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/recorders/recorder.h"

/*
 * emit writes the instructions of the whole program; 0, -errno, or an explained failure, as all
 * recorders' load(). This returns the same, also -EINVAL (the target's spill is too small) and an
 * explained -E2BIG (the filter makes the program too large).
 */
int emitted_load(enum bpf_prog_type type, const char *name, const struct source *source,
		 const struct recorder_target *target,
		 int (*emit)(struct emitter *e, const struct source *source,
			     const struct recorder_target *target, struct failure *f),
		 int *ret_fd, struct failure *f);
