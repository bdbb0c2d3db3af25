// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pinned events: reads, pauses, resumes and mends them. See event.h. */
#include "daemon/engine/event/event.h"

#include <string.h>

#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/earlier.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/parts.h"
#include "daemon/engine/event/trigger.h"
#include "daemon/engine/event/missing.h"
#include "daemon/engine/kernel/target.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/tapes.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* An armed event may have a second set of rings. */
static int read_arming(const char *path, struct pp_event *e)
{
	_cleanup_close_ int spare = -EBADF;
	int state = event_arm_state(path);

	if (state <= ARM_NONE)
		return state;
	e->now |= state == ARM_READY	 ? PP_NOW_ARMED
		  : state == ARM_CLOSING ? PP_NOW_CLOSING
		  : state == ARM_STOPPED ? PP_NOW_TURNED | PP_NOW_STOPPED
					 : PP_NOW_TURNED;
	e->now |= event_arm_facts(path);
	spare = pins_get(path, "spare");
	if (spare < 0 && spare != -ENOENT)
		return spare;
	if (spare >= 0) {
		e->memory += rings_memory(e);
		e->now |= PP_NOW_SWAP;
	}
	return 0;
}

int event_stopped_by(const char *path, struct pp_fired *ret)
{
	return tapes_read_mark(path, PINS_STOPPED, ret);
}

/* A trigger may have a table of pairs. */
static int read_pairs(const char *path, struct pp_event *e)
{
	_cleanup_close_ int pairs =
		e->spec.flags & PP_EVENT_TRIGGER ? pins_get(path, "pairs") : -ENOENT;

	if (pairs >= 0)
		e->memory += PP_PAIRS_SIZE;
	return pairs == -ENOENT ? 0 : pairs;
}

int event_target(const char *path, struct pp_msg_target *ret)
{
	_cleanup_close_ int meta = pins_get(path, "meta");

	return meta < 0 ? meta : meta_read_target(meta, ret);
}

int event_read(const char *path, struct pp_event *ret)
{
	_cleanup_free_ struct pp_parsed *parsed = NULL;
	_cleanup_free_ struct meta_map *maps = NULL;
	_cleanup_close_ int fd = pins_get(path, "meta");
	struct pp_msg_target target;
	struct missing missing;
	size_t n;
	int r;

	if (fd < 0)
		return fd;
	r = meta_read_all(fd, ret, &parsed, &maps, &n, NULL);
	if (r >= 0)
		r = meta_read_target(fd, &target);
	if (r < 0)
		return r;
	/* If this cannot be found out now, nothing is reported as missing. */
	ret->now = 0;
	if (missing_find(ret, parsed, &target, maps, n, NULL, &missing) >= 0 &&
	    !missing_nothing(&missing))
		ret->now |= PP_NOW_INCOMPLETE;
	if (target.kind && target_has_ended(&target))
		ret->now |= PP_NOW_ENDED;
	r = read_pairs(path, ret);
	if (ret->paused && pins_has(path, PINS_STOPPED))
		ret->now |= PP_NOW_STOPPED;
	return r < 0 ? r : read_arming(path, ret);
}

int event_not_understood(const char *name, const char *path, int r)
{
	if (!meta_is_strange(r))
		return r;
	if (r == -EPROTONOSUPPORT)
		log_warning("Event %s was made by a newer perfpersist and is left alone; delete it "
			    "with that version.",
			    name);
	else if (r == -ESTALE)
		log_warning(
			"Event %s was made by an older perfpersist, and this version cannot use "
			"it; it still records and is left alone; remove %s from the registry.",
			name, path);
	else
		log_warning("Cannot read event %s (%s); it is left alone; remove %s from the "
			    "registry if you do not need it.",
			    name, strerror(-r), path);
	return 0;
}

/* ── pausing and resuming ───────────────────────────────────────────────────────────────── */

/* Tells readers the state; readers that miss it see it when they open the event again. */
static void tell(const struct parts *p, enum pp_ring_state state)
{
	int r = mark_rings(p->rings.fd, p->rings.n, state);

	if (r < 0)
		log_debug("Cannot tell readers of event %s/%s its new state: %s.", p->event.spec.ns,
			  p->event.spec.name, strerror(-r));
}

/* Loads the programs into their slots. */
static int start(struct parts *p, struct failure *f)
{
	struct recorder_target target;
	int r = parts_target(p, &target, f);

	/* Pairs that began before a pause may have ended in it. */
	if (r >= 0)
		r = trigger_forget_pairs(p, f);
	return r < 0 ? r : programs_start(&p->programs, &p->sources, &target, f);
}

static int write_down(struct parts *p, bool pending, struct failure *f)
{
	int r = meta_update(p->meta, &p->event, pending);

	return r < 0 ? fail(f, -r, "Cannot write down the state of '%s': %s.", p->name,
			    strerror(-r))
		     : 0;
}

/* Saves the counts of rings that a change has replaced, and that are orphans now. */
static int carry_counts(const char *path, uint64_t id _unused_, void *userdata)
{
	_cleanup_close_ int meta = pins_get(path, "meta"), before = pins_get(path, "earlier");
	_cleanup_(rings_done) struct rings old = { .outer = -EBADF };
	_cleanup_free_ struct meta_map *maps = NULL;
	const struct parts *p = userdata;
	struct pp_event event;
	size_t n = 0;
	int outer, r;

	if (meta < 0 || meta_read_all(meta, &event, NULL, &maps, &n, NULL) < 0 ||
	    event.origin != p->event.origin || event.set + 1 != p->event.set)
		return 0;
	outer = pins_get(path, "rings");
	if (outer < 0)
		return 0;
	/* The rings are half reaped: the counts from before the exchange stay. */
	if (before < 0 && event.set > 1) {
		close_fd(outer);
		return 0;
	}
	r = rings_open(outer, maps, n, &old);
	if (r >= 0)
		r = rings_settle(&old);
	return r < 0 ? r : earlier_fill(p->earlier, &old, before);
}

/*
 * All slots are complete. The last step of an interrupted change may be left to do: of the counters,
 * that those before go; of the rings, that the old ones were written to until then, and they are not
 * reaped yet.
 */
static int finish(struct parts *p, const char *path, struct failure *f)
{
	int r = parts_drop_former(path);

	if (r < 0)
		return fail(f, -r, "Cannot end the counters that '%s' had before: %s.", p->name,
			    strerror(-r));
	if (p->earlier >= 0 && pins_foreach_orphans(carry_counts, p) < 0)
		log_warning("Some counts of event %s from before the change of its buffers are "
			    "lost.",
			    p->name);
	return write_down(p, false, f);
}

/* Removes rings that are pinned but not in meta; fills the slots of those that are in it. */
static int mend_rings(struct parts *p, const char *path, struct failure *f)
{
	int r = pins_keep_cpus(path, &p->event.rings);

	if (r >= 0)
		r = rings_fill(&p->rings);
	return r < 0 ? fail(f, -r, "Cannot put the rings of '%s' into their slots: %s.", p->name,
			    strerror(-r))
		     : 0;
}

/* An event can be stopped even if its sources cannot be restored. */
static int idle(struct parts *p, const char *path, int restored)
{
	int r = restored < 0 ? restored : programs_idle(&p->programs, &p->sources);

	return r < 0 ? programs_stop(path) : 0;
}

/*
 * restored: the result of parts_restore(). Writes the new state first: recovery then knows how to
 * finish a half-done step.
 */
static int stop(struct parts *p, const char *path, int restored, struct failure *f)
{
	int r;

	p->event.paused = 1;
	r = write_down(p, true, f);
	if (r < 0)
		return r;
	r = idle(p, path, restored);
	if (r < 0)
		return fail(f, -r, "Cannot empty the slots of the programs of '%s': %s.", p->name,
			    strerror(-r));
	tell(p, PP_RING_PAUSED);
	return finish(p, path, f);
}

int event_stop(struct parts *p, const char *path, struct failure *f)
{
	return stop(p, path, 0, f);
}

/* restored: the same, with a message in *f. After a failure the slots are empty. */
static int resume(struct parts *p, const char *path, int restored, struct failure *f)
{
	int r;

	p->event.paused = 0;
	r = write_down(p, true, f);
	if (r < 0)
		return r;
	r = restored < 0 ? restored : start(p, f);
	if (r < 0) {
		programs_stop(path);
		p->event.paused = 1;
		finish(p, path, &(struct failure){});
		return r;
	}
	pins_drop(path, PINS_STOPPED);
	tell(p, PP_RING_RUNNING);
	return finish(p, path, f);
}

/* Only root may pause an event that nobody can restore: others could not resume it. */
static int pause_or_resume(struct parts *p, const char *path, bool pause,
			   const struct pp_allowance *allowance, struct failure *f)
{
	int restored = parts_restore(p, path, f), r;

	if (restored >= 0)
		r = crowd_check_work(sources_work(&p->sources), allowance, f);
	else
		r = pause && allowance && allowance->work != UINT32_MAX ? restored : 0;
	if (r < 0)
		return r;
	return pause ? stop(p, path, restored, f) : resume(p, path, restored, f);
}

int event_pause(uint64_t id, bool pause, const struct pp_allowance *allowance, uid_t broker,
		struct failure *f)
{
	_cleanup_(parts_done) struct parts p = PARTS_NONE;
	char path[PINS_PATH_SIZE];
	bool pending;
	int r;

	r = names_find_or_fail(id, path, f);
	if (r < 0)
		return r;
	r = parts_open(path, broker, &p, &pending, f);
	if (r >= 0 && pending)
		r = mend_rings(&p, path, f);
	if (r >= 0 && (pending || p.event.paused != pause))
		r = pause_or_resume(&p, path, pause, allowance, f);
	return r;
}

/* ── mending ────────────────────────────────────────────────────────────────────────────── */

/* 1: a step of it is half done; 0. An error about a strange event is none: names_foreach() logs
 * those, and it has no origin then. */
static int read_pending(const char *path, struct pp_event *ret)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	bool pending;
	int r = meta < 0 ? meta : meta_read_all(meta, ret, NULL, NULL, NULL, &pending);

	if (r >= 0)
		return pending;
	ret->origin = 0;
	return meta_is_strange(r) ? 0 : r;
}

/* The step stays half done, but no slot leads into rings that another step reaps, and all can see
 * that nothing is recorded. -errno: neither is sure. */
static int put_off(const char *path, struct pp_event *event)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	int r = programs_stop(path);

	event->paused = 1;
	if (r >= 0)
		r = parts_drop_former(path);
	if (r >= 0)
		r = meta < 0 ? meta : meta_update(meta, event, true);
	if (r < 0)
		log_error("Cannot pause event %s/%s, which is half changed: %s; restart the "
			  "engine.",
			  event->spec.ns, event->spec.name, strerror(-r));
	return r;
}

static int finish_step(const char *path, uid_t broker, struct failure *f)
{
	_cleanup_(parts_done) struct parts p = PARTS_NONE;
	bool pending;
	int r = parts_open(path, broker, &p, &pending, f);

	if (r >= 0)
		r = mend_rings(&p, path, f);
	if (r >= 0)
		r = pause_or_resume(&p, path, p.event.paused, NULL, f);
	if (r >= 0) /* its slots have programs without a tape now */
		event_forget_arming(path);
	if (r >= 0)
		log_notice("Event %s was being changed when the engine died; the change is "
			   "complete now.",
			   p.name);
	return r;
}

int event_finish(const char *path, uid_t broker, struct failure *f)
{
	struct pp_event event;
	int r = read_pending(path, &event);

	if (r < 0)
		return fail(f, -r, "Cannot read the event in '%s': %s.", path, strerror(-r));
	if (r == 0)
		return 0;
	r = finish_step(path, broker, f);
	if (r < 0)
		put_off(path, &event);
	return r;
}

/* A dead engine may have left a second set of rings of an event that it disarmed. */
static void finish_disarming(const char *path)
{
	_cleanup_close_ int tape = pins_get(path, "tape");

	if (tape == -ENOENT)
		event_forget_arming(path);
}

int event_recover_one(const char *path, uid_t broker)
{
	struct failure f = {};
	struct pp_event event;
	int r = read_pending(path, &event);

	if (r == 0 && event.origin)
		finish_disarming(path);
	if (r <= 0)
		return r;
	if (finish_step(path, broker, &f) >= 0)
		return 0;
	log_error("Event %s/%s was being changed when the engine died, and does not record: %s",
		  event.spec.ns, event.spec.name, f.sentence);
	return put_off(path, &event);
}
