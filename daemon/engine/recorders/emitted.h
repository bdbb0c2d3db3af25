/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder's program of a source, where it is emitted: from its instructions into the kernel. */
#pragma once

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/recorders/recorder.h"

/*
 * emit writes the instructions of the whole program; 0, -errno, or an explained failure, as all
 * recorders' load(). The same are the results of this one: -EINVAL (the target's spill is too
 * small), and, of a filter that makes it too large, an explained -E2BIG.
 */
int emitted_load(enum bpf_prog_type type, const char *name, const struct source *source,
		 const struct recorder_target *target,
		 int (*emit)(struct emitter *e, const struct source *source,
			     const struct recorder_target *target, struct failure *f),
		 int *ret_fd, struct failure *f);
