// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arms and disarms events. See arm.h. */
#include "daemon/engine/event/arm.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/bpf/tape.h"
#include "daemon/engine/event/parts.h"
#include "proto/macro.h"

struct arming {
	struct parts p;
	struct rings spare;
	struct sides sides;
	int tape, frozen, nowhere; /* nowhere: rings of no CPU */
};

static void arming_done(struct arming *a)
{
	parts_done(&a->p);
	rings_done(&a->spare);
	sides_done(&a->sides);
	close_fd(a->tape);
	close_fd(a->frozen);
	close_fd(a->nowhere);
}

#define ARMING_NONE                                                                               \
	{                                                                                         \
		.p = PARTS_NONE, .spare.outer = -EBADF, .tape = -EBADF, .frozen = -EBADF,         \
		.nowhere = -EBADF                                                                 \
	}

static int no_maps(const struct arming *a, int r, struct failure *f)
{
	return fail(f, -r, "Cannot make the maps for the trigger of '%s': %s.", a->p.name,
		    strerror(-r));
}

static int make_tape(bool swap, int *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const struct pp_tape tape = {
		.side = PP_SIDE_A,
		.next = swap ? PP_SIDE_B : PP_SIDE_NONE,
	};
	uint32_t zero = 0;

	*ret = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_tape", 4, sizeof(tape), 1, &opts);
	if (*ret < 0)
		return *ret;
	return bpf_map_update_elem(*ret, &zero, &tape, BPF_ANY) < 0 ? -errno : 0;
}

static int make_maps(struct arming *a, bool swap)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)a->p.rings.fd[0]);
	int possible = pp_cpus_possible(), r;

	if (possible < 0)
		return possible;
	r = make_tape(swap, &a->tape);
	if (r >= 0)
		r = a->frozen = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_frozen", 4, 8,
					       (uint32_t)possible, NULL);
	if (r >= 0)
		r = a->nowhere = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_nowhere", 4, 4,
						(uint32_t)possible, &opts);
	return r < 0 ? r : sides_create(&a->p.programs, &a->sides);
}

/* The second set: what the next change of the rings would make. */
static int make_spare(struct arming *a, struct failure *f)
{
	struct rings first = a->p.rings;
	int r;

	a->p.rings = (struct rings){ .outer = -EBADF };
	a->p.event.set++;
	r = parts_make_rings(&a->p, f);
	a->p.event.set--;
	a->spare = a->p.rings;
	a->p.rings = first;
	if (r >= 0)
		memcpy(a->spare.generation, first.generation,
		       first.n * sizeof(*first.generation));
	return r;
}

static int fill_side(struct arming *a, uint32_t side, struct failure *f)
{
	const struct rings *rings = side == PP_SIDE_B ? &a->spare : &a->p.rings;
	struct recorder_target target;
	int r = parts_target(&a->p, &target, f);

	if (r < 0)
		return r;
	target.fd = rings->outer;
	target.ring_fd = rings->fd;
	if (side == PP_SIDE_NONE) {
		target.fd = a->nowhere;
		target.n = 0;
		target.ringless_fd = a->frozen;
	}
	return sides_fill(&a->sides, &a->p.programs, &a->p.sources, &target, a->tape, side, f);
}

static int pin_all(const struct arming *a, const char *path)
{
	int r = sides_pin(&a->sides, path);

	if (r >= 0)
		r = pins_put(path, a->frozen, "frozen", 0, 0, 0600);
	if (r >= 0 && a->spare.outer >= 0)
		r = pins_put(path, a->spare.outer, "spare", 0, 0, 0600);
	return r < 0 ? r : pins_put(path, a->tape, "tape", 0, 0, 0600);
}

static void unpin_all(const char *path, size_t n_sides)
{
	char leaf[32];

	pins_drop(path, "tape");
	pins_drop(path, "spare");
	pins_drop(path, "frozen");
	for (size_t i = 0; i < n_sides; i++) {
		snprintf(leaf, sizeof(leaf), SIDES_PIN "%zu", i);
		pins_drop(path, leaf);
	}
}

/* The slots last: from then on the tape decides. */
static int begin(struct arming *a, const char *path, struct failure *f)
{
	struct recorder_target target;
	int r = pin_all(a, path);

	if (r < 0)
		return fail(f, -r, "Cannot pin the trigger's maps of '%s': %s.", a->p.name,
			    strerror(-r));
	r = parts_target(&a->p, &target, f);
	if (r >= 0)
		r = programs_load_guarded(&a->p.programs, &a->p.sources, &target, &a->sides,
					  a->tape, PP_SIDE_A, f);
	if (r < 0)
		return r;
	r = programs_fill(&a->p.programs);
	return r < 0 ? fail(f, -r, "Cannot put the programs of '%s' into their slots: %s.",
			    a->p.name, strerror(-r))
		     : 0;
}

static int open_event(struct arming *a, const char *path, uid_t broker, struct failure *f)
{
	bool pending;
	int r = parts_open(path, broker, &a->p, &pending, f);

	return r < 0 ? r : parts_restore(&a->p, path, f);
}

int event_arm(const char *path, uid_t broker, bool swap, struct failure *f)
{
	_cleanup_(arming_done) struct arming a = ARMING_NONE;
	int r = open_event(&a, path, broker, f);

	if (r < 0)
		return r;
	a.tape = pins_get(path, "tape");
	if (a.tape != -ENOENT)
		return a.tape < 0 ? no_maps(&a, a.tape, f)
				  : fail(f, EALREADY, "'%s' is armed already.", a.p.name);
	r = make_maps(&a, swap);
	if (r < 0)
		return no_maps(&a, r, f);
	if (swap)
		r = make_spare(&a, f);
	for (uint32_t side = 0; r >= 0 && side < PP_SIDES; side++)
		if (side != PP_SIDE_B || swap)
			r = fill_side(&a, side, f);
	if (r >= 0)
		r = begin(&a, path, f);
	if (r < 0)
		event_disarm(path, broker, &(struct failure){});
	return r;
}

int event_disarm(const char *path, uid_t broker, struct failure *f)
{
	_cleanup_(arming_done) struct arming a = ARMING_NONE;
	struct recorder_target target;
	int r = open_event(&a, path, broker, f);

	if (r >= 0 && !a.p.event.paused) {
		r = parts_target(&a.p, &target, f);
		if (r >= 0)
			r = programs_start(&a.p.programs, &a.p.sources, &target, f);
	}
	if (r >= 0)
		unpin_all(path, a.p.programs.n_arrays);
	return r;
}
