// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arms and disarms events. See arm.h. */
#include "daemon/engine/event/arm.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/engine/event/armed.h"
#include "proto/clock.h"
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

static int drop_side(const char *path, const char *leaf, void *userdata _unused_)
{
	if (!strncmp(leaf, "sides", 5) || !strcmp(leaf, "spare") || !strcmp(leaf, "frozen"))
		pins_drop(path, leaf);
	return 0;
}

void event_forget_arming(const char *path)
{
	pins_drop(path, "tape");
	pins_foreach_leaf(path, drop_side, NULL);
}

static int read_tape(const char *path, struct pp_tape *ret)
{
	_cleanup_close_ int fd = pins_get(path, "tape");
	uint32_t zero = 0;

	if (fd < 0)
		return fd;
	return bpf_map_lookup_elem(fd, &zero, ret) < 0 ? -errno : 0;
}

int event_arm_state(const char *path)
{
	struct pp_tape tape;
	int r = read_tape(path, &tape);

	if (r < 0)
		return r == -ENOENT ? ARM_NONE : r;
	if (tape.state.next == PP_SIDES_STOPPED)
		return ARM_STOPPED;
	if (tape.state.next == PP_SIDES)
		return tape.state.side == PP_SIDE_NONE ? ARM_FROZEN : ARM_TURNED;
	if (tape.state.next >= PP_SIDES_CLOSING)
		return ARM_CLOSING;
	return tape.state.next < PP_SIDES ? ARM_READY : ARM_NONE;
}

uint32_t event_arm_facts(const char *path)
{
	struct pp_tape tape;

	if (read_tape(path, &tape) < 0)
		return 0;
	return (tape.windows ? PP_NOW_WINDOWS : 0) | (tape.stops ? PP_NOW_STOPS : 0);
}

/* What fired writes this at once, unless an interrupt holds it up, or it was an engine that died. */
static uint64_t read_until(const struct pp_tape *tape)
{
	for (int i = 0; i < 1000 && !__atomic_load_n(&tape->until, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	return __atomic_load_n(&tape->until, __ATOMIC_SEQ_CST);
}

static int close_window(struct pp_tape *tape, bool early)
{
	uint64_t until;

	if (__atomic_load_n(&tape->state.next, __ATOMIC_SEQ_CST) < PP_SIDES_CLOSING)
		return 1;
	until = early ? 0 : read_until(tape);
	if (pp_clock_ns(CLOCK_MONOTONIC) <= until)
		return 0;
	pp_close(tape); /* or a record was faster */
	return 1;
}

int event_close(const char *path, bool early)
{
	_cleanup_close_ int fd = pins_get(path, "tape");
	struct pp_tape *tape;
	int r;

	if (fd < 0)
		return fd;
	tape = mmap(NULL, sizeof(*tape), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tape == MAP_FAILED)
		return -errno;
	r = close_window(tape, early);
	munmap(tape, sizeof(*tape));
	return r;
}

int event_turned_by(const char *path, struct pp_fired *ret)
{
	struct pp_tape tape = {};
	int r = read_tape(path, &tape);

	*ret = tape.by;
	return r;
}

/* From when the slots are full the tape decides; it is pinned then, so that no trigger finds it
 * earlier. */
static int begin(struct arming *a, const char *path, struct failure *f)
{
	int r = armed_pin(&a->armed, &a->spare, path);

	if (r < 0)
		return fail(f, -r, "Cannot pin the trigger's maps of '%s': %s.", a->p.name,
			    strerror(-r));
	r = armed_load(&a->armed, &a->p, PP_SIDE_A, f);
	if (r < 0)
		return r;
	r = programs_fill(&a->p.programs);
	if (r >= 0)
		r = armed_pin_tape(&a->armed, path);
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

static int disarm(struct arming *a, const char *path, struct failure *f)
{
	struct recorder_target target;
	int r = 0;

	if (!a->p.event.paused) {
		r = parts_target(&a->p, &target, f);
		if (r >= 0)
			r = programs_start(&a->p.programs, &a->p.sources, &target, f);
	}
	/* Also where no program without a tape can be loaded: those that are there go on, and nobody finds the tape. */
	event_forget_arming(path);
	return r;
}

/* The slots' own programs are of side A. Without a second set the tape is turned back to that while
 * programs of the other side run, which then go on to it. */
static int fill_other(struct arming *a, bool swap, struct failure *f)
{
	int r;

	if (swap)
		return armed_fill(&a->armed, &a->p, &a->spare, PP_SIDE_B, f);
	r = armed_fill(&a->armed, &a->p, &a->p.rings, PP_SIDE_A, f);
	return r < 0 ? r : armed_allow_stop(&a->armed, &a->p, f);
}

static int arm(const char *path, uid_t broker, bool swap, struct failure *f)
{
	_cleanup_(arming_done) struct arming a = ARMING_NONE;
	int r = open_event(&a, path, broker, f);

	if (r >= 0 && a.p.event.paused)
		return fail(f, EAGAIN, "'%s' is paused.", a.p.name);
	if (r >= 0)
		r = armed_create(&a.p, swap, &a.armed, f);
	if (r >= 0 && swap)
		r = armed_make_spare(&a.p, &a.spare, f);
	if (r >= 0)
		r = fill_other(&a, swap, f);
	if (r < 0)
		return r;
	r = begin(&a, path, f);
	if (r < 0)
		disarm(&a, path, &(struct failure){});
	return r;
}

static int open_windows(struct arming *a, const char *path, uint32_t side, struct failure *f)
{
	int r = 0, outer;

	if (a->armed.swap) {
		outer = pins_get(path, "spare");
		r = outer < 0 ? outer : rings_open_like(outer, &a->p.rings, &a->spare);
	}
	if (r < 0)
		return fail(f, -r, "Cannot open the second set of rings of '%s': %s.", a->p.name,
			    strerror(-r));
	return armed_open_windows(&a->armed, &a->p, &a->spare, side, f);
}

/* The tape may turn meanwhile: what it lacks is for later. */
static int add_lacking(const char *path, uid_t broker, uint32_t what, struct failure *f)
{
	_cleanup_(arming_done) struct arming a = ARMING_NONE;
	struct pp_tape tape;
	int r = open_event(&a, path, broker, f);

	if (r >= 0)
		r = armed_open(path, &a.p, &a.armed, &tape, f);
	if (r < 0 || tape.state.next >= PP_SIDES)
		return r;
	if (what & PP_ARM_STOPS && !tape.stops)
		r = armed_allow_stop(&a.armed, &a.p, f);
	if (r >= 0 && what & PP_ARM_WINDOWS && !tape.windows)
		r = open_windows(&a, path, tape.state.side, f);
	return r;
}

int event_arm(const char *path, uid_t broker, uint32_t what, struct failure *f)
{
	int state = event_arm_state(path), r = 0;

	if (state < 0)
		return fail(f, -state, "Cannot find out whether '%s' is armed: %s.", path,
			    strerror(-state));
	if (state > ARM_READY)
		return fail(f, EBUSY, "A trigger has fired, and '%s' is not saved yet.", path);
	if (state != ARM_READY)
		r = arm(path, broker, what & PP_ARM_SWAP, f);
	what &= PP_ARM_WINDOWS | PP_ARM_STOPS;
	return r >= 0 && what ? add_lacking(path, broker, what, f) : r;
}

/* No trigger turns the tape from here on. */
static int hold_tape(struct arming *a, const char *path, struct failure *f)
{
	struct pp_tape tape;
	int r = armed_open(path, &a->p, &a->armed, &tape, f);

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = armed_hold(&a->armed, f);
	return r == 0 ? fail(f, EBUSY, "A trigger has fired, and '%s' is not saved yet.", a->p.name)
		      : r;
}

int event_disarm(const char *path, uid_t broker, struct failure *f)
{
	_cleanup_(arming_done) struct arming a = ARMING_NONE;
	int r = open_event(&a, path, broker, f);

	if (r >= 0)
		r = hold_tape(&a, path, f);
	return r < 0 ? r : disarm(&a, path, f);
}
