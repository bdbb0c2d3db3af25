/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads recording programs that are written in C, for an event: from their templates and from
 * what all that include bpf/ring.bpf.h want to be told. Knows no recorder.
 */
#pragma once

#include <bpf/libbpf.h>

#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/emit/template.h"
#include "daemon/engine/recorders/recorder.h"

#define WRITER_MAPS_MAX 4 /* of the recorder's own */

struct writer {
	const struct bpf_program *prog;
	const struct bpf_map *rings, *wakeups, *ringless, *rodata; /* of its skeleton */

	/* All of .rodata, a copy of the template's; the part that is told here; the rest is the
	 * recorder's to fill in. */
	void *constants;
	struct ring_constants *ring;

	/* Maps that the recorder has made for this program. */
	struct template_map maps[WRITER_MAPS_MAX];
	size_t n_maps;

	uint32_t payload_size; /* of what the filter looks at */
};

/* As recorder.load. */
int writer_load(const struct writer *w, const struct source *source,
		const struct recorder_target *target, int *ret_fd, struct failure *f);

/* A copy of all of .rodata, more than the skeleton shows; to be freed. NULL: no memory. */
void *writer_constants(const struct bpf_map *rodata, const void *initial);

/* A map of one element for each CPU, of this program alone. *ret_fd is the caller's. -errno. */
int writer_scratch(uint32_t size, int *ret_fd);
