// SPDX-License-Identifier: LGPL-2.1-or-later
/* Carries out orders: the limits of the engine's own, and what the parts of the engine do. See orders.h. */
#include "daemon/engine/orders.h"

#include <string.h>

#include "daemon/engine/budget.h"
#include "daemon/engine/event/adopt.h"
#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/auxtrace.h"
#include "daemon/engine/event/describe.h"
#include "daemon/engine/event/ends.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/handout.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/trigger.h"
#include "daemon/engine/sideband.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/log.h"
#include "proto/macro.h"

void order_watch_target(const struct pp_answer *a)
{
	const struct pp_spec *spec = &a->event.spec;
	int r = 0;

	if (spec->flags & PP_EVENT_BOUND && !(a->event.now & PP_NOW_ENDED))
		r = ends_watch(a->event.id, &a->target);
	if (r < 0)
		log_warning("Nobody will be told when the task or cgroup of event %s/%s ends: %s.",
			    spec->ns, spec->name, strerror(-r));
}

static int check_ends(const struct pp_spec *spec, struct failure *f)
{
	if (!(spec->flags & PP_EVENT_BOUND) || ends_have_room())
		return 0;
	return fail(
		f, EBUSY,
		"%d events of tasks and cgroups, of all users, are the most; delete one of those "
		"whose target has ended, or record '%s/%s' everywhere, with a filter.",
		ENDS_MAX, spec->ns, spec->name);
}

static int create(struct exchange *x, struct failure *f)
{
	const struct pp_order *o = &x->order;
	int r = budget_check(&o->spec, f);

	x->answer.target = o->target;
	if (r >= 0)
		r = check_ends(&o->spec, f);
	if (r >= 0)
		r = event_create(&o->spec, &o->parsed, &o->trigger, o->what, &x->answer.target,
				 &o->allowance, x->broker, &x->answer.event, f);
	if (r < 0)
		return r;
	x->answer.trigger = o->trigger;
	order_watch_target(&x->answer);
	budget_add(&x->answer.event);
	crowd_add(&x->answer.event);
	return 0;
}

/* ── adoptions ──────────────────────────────────────────────────────────────────────────── */

static int adopt(struct exchange *x, struct failure *f)
{
	const struct pp_order *o = &x->order;
	int r = budget_check(&o->spec, f);

	if (r >= 0)
		r = event_adopt(&o->spec, &o->parsed, &o->allowance, x->broker, &x->answer.event,
				&x->fds.fd[0], f);
	if (r >= 0)
		x->fds.n = 1;
	return r;
}

static int attach(struct exchange *x, struct failure *f)
{
	const struct pp_order *o = &x->order;
	int r = event_attach(o->id, o->targets, o->what & ~PP_ATTACH_MORE, o->what & PP_ATTACH_MORE,
			     &x->answer.event, f);

	if (r <= 0)
		return r;
	budget_add(&x->answer.event);
	crowd_add(&x->answer.event);
	return 0;
}

/* ── triggers ───────────────────────────────────────────────────────────────────────────── */

/* A second set of rings, beside the first and its catalog. */
static int check_second_set(uint64_t id, struct failure *f)
{
	struct pp_event event;
	int r = names_read(id, &event);

	if (r < 0)
		return names_not_found(id, r, f);
	if (event.now & (PP_NOW_ARMED | PP_NOW_TURNED | PP_NOW_CLOSING))
		return 0;
	event.spec.cpus = event.rings;
	event.spec.flags &= ~PP_EVENT_ALL_CPUS;
	return budget_check(&event.spec, f);
}

static int arm(struct exchange *x, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(x->order.id, path, f);

	if (r >= 0 && x->order.what & PP_ARM_SWAP)
		r = check_second_set(x->order.id, f);
	if (r >= 0)
		r = event_arm(path, x->broker, x->order.what, f);
	budget_recount();
	return r;
}

/* The event itself is the tape. */
static int read_frozen(const char *path, struct tape *ret)
{
	int r = event_read(path, &ret->event);

	ret->id = ret->event.id;
	return r < 0 ? r : event_turned_by(path, &ret->by);
}

/* Told before the order's answer; if that fails, the next enumeration tells it. */
static int tell_tape(struct exchange *x, const char *path, uint64_t id)
{
	struct pp_answer answer = x->answer;
	struct tape tape;
	int r = id ? tapes_read(id, &tape) : read_frozen(path, &tape);

	if (r >= 0) {
		answer_tape(x, 0, &tape);
		if (id)
			x->answer.orphans = answer.orphans;
		r = answer_send(x);
	}
	x->answer = answer;
	return r;
}

static int turn_at(struct exchange *x, const char *path, uint32_t what, struct failure *f)
{
	struct pp_orphans *orphans = &x->answer.orphans;
	int r = event_turn(path, x->broker, what, orphans, f);

	budget_recount();
	/* A tape may be there although what came after it failed. */
	if ((r == 1 || orphans->id) && tell_tape(x, path, orphans->id) < 0)
		return fail(f, EIO, "Cannot tell the broker of a tape.");
	return r;
}

static int turn(struct exchange *x, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(x->order.id, path, f);

	return r < 0 ? r : turn_at(x, path, x->order.what, f);
}

static int release(struct exchange *x, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = tapes_release(x->order.id);

	if (r == -ENOENT && names_find(x->order.id, path) >= 0)
		return event_thaw(path, x->broker, f);
	return r < 0 ? fail(f, -r, "Cannot release the tape with id %llu: %s.",
			    (unsigned long long)x->order.id, strerror(-r))
		     : 0;
}

/* What changes an event loads programs without a tape: a window ends, and a turn that is due comes
 * first. */
static int disarm(struct exchange *x, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(x->order.id, path, f), state;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < 4; i++) {
		state = event_arm_state(path);
		if (state == ARM_CLOSING) {
			r = event_close(path, true);
			if (r >= 0 || r == -ENOENT)
				continue;
			return fail(f, -r, "Cannot end the window of '%s': %s.", path,
				    strerror(-r));
		}
		if (state == ARM_TURNED || state == ARM_STOPPED)
			r = turn_at(x, path, 0, f);
		else if (state == ARM_READY)
			r = event_disarm(path, x->broker, f);
		else if (state == ARM_FROZEN)
			return fail(
				f, EBUSY,
				"A trigger has frozen the event with id %llu, which has no second "
				"set of buffers; it can be changed when that is saved.",
				(unsigned long long)x->order.id);
		else
			return state < 0 ? fail(f, -state, "Cannot read the pins of '%s': %s.",
						path, strerror(-state))
					 : 0;
		if (r != -EBUSY) /* that: it fired meanwhile */
			break;
	}
	budget_recount();
	return MIN(r, 0);
}

/* Its descriptors are another's now. No trigger may turn it any more. */
static int give_back(struct exchange *x, struct failure *f)
{
	struct pp_answer *a = &x->answer;
	int r = disarm(x, f);

	return r < 0 ? r : names_give_back(x->order.id, &a->event, &a->orphans, f);
}

/* What a trigger has turned becomes a tape before its event goes, and what it has frozen with it, if it can: deleting
 * must not fail for that. An event that lives on under another name stays as it is. */
static void keep_turned(struct exchange *x)
{
	struct failure f = {};
	char path[PINS_PATH_SIZE];
	int state, r = 0;

	if (names_find(x->order.id, path) < 0 || !names_end_rings(x->order.id, &x->order.allowance))
		return;
	state = event_arm_state(path);
	if (state == ARM_TURNED || state == ARM_CLOSING)
		r = disarm(x, &f);
	if (event_arm_state(path) == ARM_FROZEN) /* perhaps since its window was ended */
		r = event_keep_frozen(path, x->broker, &f);
	if (r < 0)
		log_warning(
			"What a trigger has frozen of the deleted event with id %llu is lost: %s",
			(unsigned long long)x->order.id, f.sentence);
}

static int delete (struct exchange *x, struct failure *f)
{
	struct pp_answer *a = &x->answer;
	int r;

	if (event_forget_adoption(x->order.id))
		return 0;
	if (!(x->order.what & PP_DELETE_CLAIMED))
		keep_turned(x);
	r = x->order.what & PP_DELETE_CLAIMED ? give_back(x, f)
					      : names_delete(x->order.id, &x->order.allowance,
							     x->broker, &a->event, &a->orphans, f);
	if (r < 0) {
		crowd_recount();
		return r;
	}
	crowd_remove(a->event.id);
	ends_forget(a->event.id);
	if (a->orphans.id) {
		int told = tell_tape(x, NULL, a->orphans.id);

		if (told < 0 && told != -ENOENT) /* that: it is no tape */
			log_warning(
				"Cannot tell the broker of the tape with id %llu: %s; it learns of it when it connects again.",
				(unsigned long long)a->orphans.id, strerror(-told));
		budget_subtract(&a->event);
	} else if (a->event.memory) { /* a successor has it now */
		budget_recount();
		crowd_recount();
	}
	return r;
}

static int hand_out(struct exchange *x, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(x->order.id, path, f);

	if (r >= 0)
		r = event_hand_out(path, x->order.what, &x->fds, &x->answer.total, f);
	if (r < 0)
		return r;
	r = names_read(x->order.id, &x->answer.event);
	if (r < 0)
		pp_fds_close(&x->fds);
	return r < 0 ? names_not_found(x->order.id, r, f) : 0;
}

static int describe(struct exchange *x, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(x->order.id, path, f);

	if (r >= 0)
		r = event_describe_parts(path, x->broker, &x->fds.fd[0], f);
	if (r >= 0)
		x->fds.n = 1;
	return r;
}

/* The new rings exist before the old ones go: both must fit. */
static int check_change(const struct pp_order *o, struct failure *f)
{
	struct pp_event event;
	int r;

	if (!(o->what & PP_CHANGE_BUFFER))
		return 0;
	r = names_read(o->id, &event);
	if (r < 0)
		return fail(f, -r, "Cannot find the event with id %llu in the registry: %s.",
			    (unsigned long long)o->id, strerror(-r));
	event.spec.cpus = event.rings;
	event.spec.flags &= ~PP_EVENT_ALL_CPUS;
	event.spec.data_size = o->spec.data_size;
	return budget_check(&event.spec, f);
}

static int change(struct exchange *x, struct failure *f)
{
	const struct pp_order *o = &x->order;
	int r = check_change(o, f);

	if (r >= 0)
		r = disarm(x, f);
	if (r >= 0)
		r = event_change(o->id, o->what, &o->spec, &o->parsed, &o->allowance, x->broker,
				 &x->answer.orphans, f);
	budget_recount();
	crowd_recount();
	return r;
}

/* Where nothing is to be done no trigger finds the event disarmed. */
static int join_cpus(struct exchange *x, struct failure *f)
{
	const struct pp_order *o = &x->order;
	int r;

	if (!event_lacks_cpus(o->id, &o->spec.cpus))
		return 0;
	r = disarm(x, f);
	budget_recount();
	return r < 0 ? r : event_cpus(o->id, &o->spec.cpus, x->broker, f);
}

int order_carry_out(struct exchange *x, struct failure *f)
{
	const struct pp_order *o = &x->order;
	struct pp_event *event = &x->answer.event;
	int r;

	switch (o->type) {
	case PP_ORDER_CREATE:
		return create(x, f);
	case PP_ORDER_DELETE:
		return delete (x, f);
	case PP_ORDER_CHANGE:
		return change(x, f);
	case PP_ORDER_PAUSE:
		r = disarm(x, f);
		return r < 0 ? r : event_pause(o->id, o->what, &o->allowance, x->broker, f);
	case PP_ORDER_ALIAS:
		return names_alias(o->id, &o->spec, event, f);
	case PP_ORDER_CPUS:
		return join_cpus(x, f);
	case PP_ORDER_RIGHTS:
		return names_rights(&o->spec, x->broker, f);
	case PP_ORDER_SIDEBAND:
		return sideband_open(&o->spec.cpus, o->what, x->broker, &event->rings, &x->fds, f);
	case PP_ORDER_AUX:
		return auxtrace_open(o->id, o->what, &o->spec.cpus, &event->rings, &x->fds, f);
	case PP_ORDER_ARM:
		return arm(x, f);
	case PP_ORDER_DISARM:
		return disarm(x, f);
	case PP_ORDER_AIM:
		return trigger_aim(o->id, o->targets, o->what, f);
	case PP_ORDER_TURN:
		return turn(x, f);
	case PP_ORDER_FIRE:
		return trigger_fire(o->id, o->what, &x->answer.by, f);
	case PP_ORDER_RELEASE:
		return release(x, f);
	case PP_ORDER_ADOPT:
		return adopt(x, f);
	case PP_ORDER_ATTACH:
		return attach(x, f);
	case PP_ORDER_HANDOUT:
		return hand_out(x, f);
	case PP_ORDER_DESCRIBE:
		return describe(x, f);
	default:
		return fail(f, EOPNOTSUPP, "The engine does not know orders of type %u.", o->type);
	}
}
