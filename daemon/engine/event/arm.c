// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arms and disarms events. See arm.h. */
#include "daemon/engine/event/arm.h"

#include <string.h>

#include "daemon/engine/event/armed.h"
#include "proto/macro.h"

struct arming {
	struct parts p;
	struct armed armed;
	struct rings spare;
};

static void arming_done(struct arming *a)
{
	parts_done(&a->p);
	armed_done(&a->armed);
	rings_done(&a->spare);
}

#define ARMING_NONE                                                         \
	{                                                                   \
		.p = PARTS_NONE, .armed = ARMED_NONE, .spare.outer = -EBADF \
	}

static void unpin_all(const char *path, size_t n_sides)
{
	char leaf[32];

	pins_drop(path, "tape");
	pins_drop(path, "spare");
	pins_drop(path, "frozen");
	for (size_t i = 0; i < n_sides; i++) {
		sides_leaf(i, leaf);
		pins_drop(path, leaf);
	}
}

/* The slots last: from then on the tape decides. */
static int begin(struct arming *a, const char *path, struct failure *f)
{
	struct recorder_target target;
	int r = armed_pin(&a->armed, &a->spare, path);

	if (r < 0)
		return fail(f, -r, "Cannot pin the trigger's maps of '%s': %s.", a->p.name,
			    strerror(-r));
	r = parts_target(&a->p, &target, f);
	if (r >= 0)
		r = programs_load_guarded(&a->p.programs, &a->p.sources, &target, &a->armed.sides,
					  a->armed.tape, PP_SIDE_A, f);
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

static int check_unarmed(const struct arming *a, const char *path, struct failure *f)
{
	_cleanup_close_ int tape = pins_get(path, "tape");

	if (tape == -ENOENT)
		return 0;
	return tape < 0 ? fail(f, -tape, "Cannot find out whether '%s' is armed: %s.", a->p.name,
			       strerror(-tape))
			: fail(f, EALREADY, "'%s' is armed already.", a->p.name);
}

static int fill_all(struct arming *a, bool swap, struct failure *f)
{
	int r = armed_fill(&a->armed, &a->p, &a->p.rings, PP_SIDE_A, f);

	if (r >= 0 && swap)
		r = armed_fill(&a->armed, &a->p, &a->spare, PP_SIDE_B, f);
	return r < 0 ? r : armed_fill(&a->armed, &a->p, &a->p.rings, PP_SIDE_NONE, f);
}

int event_arm(const char *path, uid_t broker, bool swap, struct failure *f)
{
	_cleanup_(arming_done) struct arming a = ARMING_NONE;
	int r = open_event(&a, path, broker, f);

	if (r >= 0)
		r = check_unarmed(&a, path, f);
	if (r >= 0)
		r = armed_create(&a.p, swap, &a.armed, f);
	if (r >= 0 && swap)
		r = armed_make_spare(&a.p, &a.spare, f);
	if (r >= 0)
		r = fill_all(&a, swap, f);
	if (r < 0)
		return r;
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
