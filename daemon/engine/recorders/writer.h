/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads recording programs in C for an event, from their templates and the constants of
 * bpf/ring.bpf.h. Knows no recorder.
 */
#pragma once

#include <bpf/libbpf.h>

#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/emit/template.h"
#include "daemon/engine/recorders/recorder.h"

#define WRITER_MAPS_MAX 4 /* of the recorder's own */

struct writer {
	const struct bpf_program *prog;
	const struct bpf_map *rings, *wakeups, *sending, *ringless, *tape, *firings,
		*rodata; /* of its skeleton */

	/* A copy of all of the template's .rodata; `ring` is the part that is filled in here, the
	 * recorder fills in the rest. */
	void *constants;
	struct ring_constants *ring;

	/* Maps that the recorder has made for this program. */
	struct template_map maps[WRITER_MAPS_MAX];
	size_t n_maps;

	uint32_t payload_size; /* visible to the filter */
};

/* Like recorder.load. */
int writer_load(const struct writer *w, const struct source *source,
		const struct recorder_target *target, int *ret_fd, struct failure *f);

/* A copy of all of .rodata, which is more than the skeleton shows; for free(3). NULL: no memory. */
void *writer_constants(const struct bpf_map *rodata, const void *initial);

/* A map with one element per CPU, for this program alone. *ret_fd is the caller's. -errno. */
int writer_scratch(uint32_t size, int *ret_fd);
