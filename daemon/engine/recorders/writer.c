// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loads recording programs in C: replaces the maps and constants of ring.bpf.h, and the hook by the
 * event's filter.
 */
#include "daemon/engine/recorders/writer.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/emit/filter-emit.h"
#include "daemon/engine/emit/guard.h"
#include "daemon/engine/kernel/kernel.h"
#include "proto/macro.h"

#define BASE_MAPS 8 /* those of ring.bpf.h */

static void tell(struct ring_constants *c, const struct source *source,
		 const struct recorder_target *target)
{
	c->data_mask = target->data_size - 1;
	c->header_size = target->header_size;
	c->source_id = source->id;
	c->max_rate = target->max_rate;
	c->tick = kernel_tick();
	c->event_id = target->event_id;
	c->identified = source->id != 0;
	c->nests = target->nests;
	c->limited = target->max_rate != 0;
	c->wakes = target->wakeup_fd >= 0;
	c->filtered = recorder_hooks(source, target);
	c->everywhere = target->ringless_fd >= 0;
	c->tells = target->tell_fd != NULL;
	c->closes = target->guard && target->guard->closes;
	c->sides_base = target->guard ? target->guard->base : 0;
	c->extended = c->identified || c->nests || c->limited || c->wakes || c->filtered ||
		      c->tells || c->closes;
}

int writer_load(const struct writer *w, const struct source *source,
		const struct recorder_target *target, int *ret_fd, struct failure *f)
{
	const struct recorder_guard *closes =
		target->guard && target->guard->closes ? target->guard : NULL;
	_cleanup_(emit_done) struct emitter filter = {}, guard = {};
	struct template_map maps[WRITER_MAPS_MAX + BASE_MAPS] = {
		{ .template_fd = bpf_map__fd(w->rings), .fd = target->fd },
		{ .template_fd = bpf_map__fd(w->wakeups), .fd = target->wakeup_fd },
		{ .template_fd = bpf_map__fd(w->sending),
		  .fd = closes			 ? closes->sending_fd
			: target->wakeup_fd >= 0 ? target->sending_fd
						 : -EBADF },
		{ .template_fd = bpf_map__fd(w->ringless), .fd = target->ringless_fd },
		{ -EBADF, target->tell_fd ? *target->tell_fd : -EBADF, RING_TELL_MARK },
		{ .template_fd = bpf_map__fd(w->tape), .fd = closes ? closes->tape_fd : -EBADF },
		{ .template_fd = bpf_map__fd(w->firings),
		  .fd = closes ? closes->firings_fd : -EBADF },
		{ -EBADF, closes ? closes->sides_fd : -EBADF, RING_SIDES_MARK },
	};
	struct template_changes changes = {
		.maps = maps,
		.n_maps = BASE_MAPS + w->n_maps,
		.rodata_fd = bpf_map__fd(w->rodata),
		.constants = w->constants,
		.constants_size = bpf_map__value_size(w->rodata),
	};
	int r;

	if (target->spill_size < source->spill_size)
		return -EINVAL;
	memcpy(maps + BASE_MAPS, w->maps, w->n_maps * sizeof(*maps));
	tell(w->ring, source, target);
	if (recorder_hooks(source, target)) {
		r = filter_subprogram(source, target, w->payload_size, &filter, f);
		if (r >= 0)
			r = filter.error;
		if (r < 0)
			return r;
		changes.hook = filter.insns;
		changes.n_hook = filter.n;
	}
	if (target->guard) {
		emit_guard(&guard, target->guard, 0);
		if (guard.error)
			return guard.error;
		changes.head = guard.insns;
		changes.n_head = guard.n;
	}
	return template_load(w->prog, &changes, source->spec->name, ret_fd);
}

void *writer_constants(const struct bpf_map *rodata, const void *initial)
{
	size_t size = bpf_map__value_size(rodata);
	void *copy = malloc(size);

	return copy ? memcpy(copy, initial, size) : NULL;
}

int writer_scratch(uint32_t size, int *ret_fd)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "pp_scratch", 4, ALIGN_TO(size, 8U), 1,
				NULL);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
