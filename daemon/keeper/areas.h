/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * AUX areas, each with the perf event that traces into it and perf's ring beside it. Owns the
 * mappings, without which the kernel ends the tracing. Must not know what a trace says, nor who
 * asks for it.
 */
#pragma once

#include "daemon/keeper/area.h"

struct areas {
	struct area **area; /* by event and CPU */
	size_t n;
	struct area_busy busy;
};

/* busy is called from long operations, at least once for each area and each MiB of a copy. */
void areas_init(struct areas *a, void (*busy)(void *context), void *context);

/* Unmaps and closes all. */
void areas_done(struct areas *a);

/*
 * Maps an AUX area of aux_size bytes for the event on this CPU, in place of the one that it has,
 * and a ring as large for the samples of those beside it, and starts the tracing unless it is paused.
 * fds: the event that traces, and n_beside of its group; those that it takes become -EBADF there.
 * -EBADMSG: not a perf event, or an impossible size; -ENOSPC: there are PP_KEEP_AREAS_MAX;
 * -EOPNOTSUPP: its PMU has no AUX area; another -errno of the kernel's.
 */
int areas_put(struct areas *a, uint64_t event, const struct pp_keep_cpu *cpu, uint64_t aux_size,
	      uint32_t paused, int *fds, uint32_t n_beside);

/* Stops or resumes the tracing of all areas of the event. */
int areas_pause(struct areas *a, uint64_t event, uint32_t pause);

/* cpu UINT32_MAX: all of the event's. */
void areas_drop(struct areas *a, uint64_t event, uint32_t cpu);

/* The page behind that area. */
void areas_held(const struct areas *a, uint64_t event, uint32_t cpu, struct pp_keep_answer *ret);

/* A copy, for which the tracing stops. *ret_fd is the caller's. -ENODATA: there is no such area. */
int areas_take(struct areas *a, uint64_t event, uint32_t cpu, int *ret_fd, uint64_t *ret_size);
