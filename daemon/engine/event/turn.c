// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a trigger has done to an event is completed: a turned one gets the set that it records to as its
 * own, as by a change, and the other becomes a tape; one without a second set, or a stopped one, is
 * written down as such.
 */
#include <string.h>

#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/armed.h"
#include "daemon/engine/event/change-internal.h"
#include "daemon/engine/event/earlier.h"
#include "daemon/engine/registry/tapes.h"
#include "proto/macro.h"

/* A change whose new rings record already. */
struct turn {
	struct change c;
	struct armed armed;
	struct pp_tape tape; /* as the trigger left it */
	struct rings spare;  /* for the next one */
};

#define TURN_NONE                                                            \
	{                                                                    \
		.c = CHANGE_NONE, .armed = ARMED_NONE, .spare.outer = -EBADF \
	}

static void turn_done(struct turn *t)
{
	change_done(&t->c);
	armed_done(&t->armed);
	rings_done(&t->spare);
}

/* The set that records already becomes the event's. */
static int take_spare(struct turn *t)
{
	struct parts *p = &t->c.new;
	int outer = pins_get(t->c.path, "spare"), r;

	if (outer < 0)
		return fail(t->c.f, -outer, "Cannot open the second set of rings of '%s': %s.",
			    p->name, strerror(-outer));
	t->c.old = p->rings;
	p->rings = (struct rings){ .outer = -EBADF };
	r = rings_open_like(outer, &t->c.old, &p->rings);
	if (r < 0)
		return fail(t->c.f, -r, "Cannot open the second set of rings of '%s': %s.", p->name,
			    strerror(-r));
	p->event.set++;
	t->c.before = p->earlier;
	p->earlier = earlier_create();
	if (p->earlier < 0)
		return fail(t->c.f, -p->earlier, "Cannot make a map for the counts of '%s': %s.",
			    p->name, strerror(-p->earlier));
	return 0;
}

/* Programs of the side that records, and another second set; or programs without a tape. */
static int load_turned(struct turn *t, bool again)
{
	struct parts *p = &t->c.new;
	int r = again ? armed_make_spare(p, &t->spare, t->c.f) : 0;

	if (r < 0)
		return r;
	return again ? armed_load(&t->armed, p, t->tape.state.side, t->c.f) : change_load(&t->c);
}

static int prepare_turn(struct turn *t, bool again)
{
	struct parts *p = &t->c.new;
	struct pp_fired by;
	int r = take_spare(t);

	if (r >= 0)
		r = load_turned(t, again);
	if (r >= 0)
		r = change_make_draft(&t->c);
	if (r >= 0 && again)
		r = armed_carry(&t->armed, &t->spare, p, t->c.f);
	if (r < 0)
		return r;
	r = armed_read_by(&t->armed, &by, t->c.f);
	if (r < 0)
		return r;
	r = tapes_mark_fired(t->c.path, &by);
	return r < 0 ? fail(t->c.f, -r, "Cannot write down what fired, for '%s': %s.", p->name,
			    strerror(-r))
		     : 0;
}

/* The slots have the new side's programs: now the other side can get other rings. */
static int arm_again(struct turn *t)
{
	uint32_t side = t->tape.state.side;
	uint32_t other = side == PP_SIDE_A ? PP_SIDE_B : PP_SIDE_A;
	int r = armed_fill(&t->armed, &t->c.new, &t->spare, other, t->c.f);

	return r < 0 ? r : armed_set(&t->armed, side, other, t->c.f);
}

/* 1: a trigger has turned it; 0: none has. */
static int open_turned(struct turn *t, const char *path, uid_t broker, struct failure *f)
{
	struct change *c = &t->c;
	bool pending;
	int r;

	c->f = f;
	snprintf(c->path, sizeof(c->path), "%s", path);
	r = parts_open(c->path, broker, &c->new, &pending, c->f);
	if (r >= 0)
		r = parts_restore(&c->new, c->path, c->f);
	if (r >= 0)
		r = armed_open(c->path, &c->new, &t->armed, &t->tape, c->f);
	return r < 0 ? r : t->tape.state.next == PP_SIDES || t->tape.state.next == PP_SIDES_STOPPED;
}

/* The second set takes the place of the first, which becomes a tape. If the engine dies after the
 * exchange, the event is not armed (event_finish()). */
static int turn(struct turn *t, bool again, struct pp_orphans *ret)
{
	uint64_t id;
	int r = prepare_turn(t, again);

	if (r >= 0)
		r = change_exchange(&t->c, &id);
	if (r < 0)
		return r;
	if (again)
		r = armed_set(&t->armed, t->tape.state.side, PP_SIDES_TAKEN, t->c.f);
	if (r >= 0)
		r = change_flip(&t->c);
	/* No trigger turns a tape that could not be prepared; its set must not stay. */
	if (r >= 0 && again && (r = arm_again(t)) < 0)
		event_forget_arming(t->c.path);
	change_let_go(&t->c, id, ret);
	return r;
}

/* Waits for the last record, and reads what fired. */
static int read_last(struct turn *t, struct pp_fired *ret)
{
	int r = rings_settle(&t->c.new.rings);

	if (r < 0)
		return fail(t->c.f, -r, "Cannot wait for the last records of '%s': %s.",
			    t->c.new.name, strerror(-r));
	return armed_read_by(&t->armed, ret, t->c.f);
}

/* Without a second set: nothing records until event_thaw(). */
static int freeze(struct turn *t)
{
	struct pp_fired by;
	int r = read_last(t, &by);

	/* By its number the rest is there; somebody else saves what is to be frozen alone. */
	if (r < 0 || by.action != PP_ACTION_SNAPSHOT)
		return MIN(r, 0);
	r = pins_mark_frozen(t->c.path);
	return r < 0 ? fail(t->c.f, -r, "Cannot show in the registry that '%s' is frozen: %s.",
			    t->c.new.name, strerror(-r))
		     : 0;
}

/* If a process dies in between, the event is stopped or paused, and the cause is written down. */
static int pause_stopped(struct turn *t)
{
	struct pp_fired by;
	int r = read_last(t, &by);

	if (r < 0)
		return r;
	r = tapes_mark(t->c.path, PINS_STOPPED, &by);
	if (r < 0)
		return fail(t->c.f, -r, "Cannot write down what paused '%s': %s.", t->c.new.name,
			    strerror(-r));
	r = event_stop(&t->c.new, t->c.path, t->c.f);
	if (r >= 0)
		event_forget_arming(t->c.path);
	return r;
}

int event_turn(const char *path, uid_t broker, uint32_t what, struct pp_orphans *ret,
	       struct failure *f)
{
	_cleanup_(turn_done) struct turn t = TURN_NONE;
	int r;

	*ret = (struct pp_orphans){};
	/* The order is late: another one has turned or disarmed it, and the answer says so. */
	if (event_arm_state(path) == ARM_NONE)
		return 0;
	if (event_close(path, false) == 0)
		return 0;
	r = open_turned(&t, path, broker, f);
	if (r <= 0)
		return r;
	if (t.tape.state.next == PP_SIDES_STOPPED) {
		r = pause_stopped(&t);
		return r < 0 ? r : 2;
	}
	if (what & PP_TURN_STOPPED)
		return 0;
	r = t.tape.state.side == PP_SIDE_NONE ? freeze(&t) : turn(&t, what & PP_TURN_AGAIN, ret);
	return r < 0 ? r : 1;
}

int event_keep_frozen(const char *path, uid_t broker, struct failure *f)
{
	_cleanup_(turn_done) struct turn t = TURN_NONE;
	int r = open_turned(&t, path, broker, f);
	struct pp_fired by;

	if (r <= 0)
		return r;
	r = read_last(&t, &by);
	if (r < 0)
		return r;
	r = tapes_mark_fired(path, &by);
	return r < 0 ? fail(f, -r, "Cannot write down what fired, for '%s': %s.", t.c.new.name,
			    strerror(-r))
		     : 0;
}

/* The programs of the first set still are on their side. */
int event_thaw(const char *path, uid_t broker, struct failure *f)
{
	_cleanup_(turn_done) struct turn t = TURN_NONE;
	int r = open_turned(&t, path, broker, f);

	if (r <= 0 || t.tape.state.side != PP_SIDE_NONE || t.tape.state.next != PP_SIDES)
		return MIN(r, 0);
	/* Of a deletion that was not carried out; else a later change would make a tape of what is recorded next. */
	pins_drop(path, PINS_FIRED);
	pins_drop(path, PINS_KEPT);
	r = armed_set(&t.armed, PP_SIDE_A, PP_SIDE_NONE, f);
	if (r < 0)
		return r;
	pins_unmark_frozen(path);
	return 1;
}
