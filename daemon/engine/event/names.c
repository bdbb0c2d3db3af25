// SPDX-License-Identifier: LGPL-2.1-or-later
/* The names of events: finds, deletes and adds them, changes their rights, mends them. See
 * names.h. */
#include "daemon/engine/event/names.h"

#include <string.h>

#include "daemon/engine/event/event.h"
#include "daemon/engine/event/trigger.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/name.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* ── finding ────────────────────────────────────────────────────────────────────────────── */

struct search {
	uint64_t id;
	char *ret;
};

static int has_name(const char *path, void *userdata)
{
	const struct search *s = userdata;
	int r = name_exists(path, s->id);

	if (r <= 0)
		return r;
	snprintf(s->ret, PINS_PATH_SIZE, "%s", path);
	return -ECANCELED; /* found */
}

int names_find(uint64_t id, char ret[PINS_PATH_SIZE])
{
	struct search s = { id, ret };
	int r;

	pins_event(id, ret); /* the usual case: the name that it was made with */
	r = name_exists(ret, id);
	if (r == 0)
		r = pins_foreach(has_name, &s);
	if (r > 0 || r == -ECANCELED)
		return 0;
	return r < 0 ? r : -ENOENT;
}

int names_not_found(uint64_t id, int r, struct failure *f)
{
	return fail(f, -r, "Cannot find the event with id %llu in the registry: %s.",
		    (unsigned long long)id, strerror(-r));
}

int names_find_or_fail(uint64_t id, char ret[PINS_PATH_SIZE], struct failure *f)
{
	int r = names_find(id, ret);

	return r < 0 ? names_not_found(id, r, f) : 0;
}

/* An id resolved: the event, as its directory has it, its names, and which of these is meant. */
struct named {
	char path[PINS_PATH_SIZE];
	struct pp_event event;
	struct name *names;
	size_t n, i;
};

static void named_done(struct named *n)
{
	free(n->names);
}

static int resolve(uint64_t id, struct named *ret)
{
	int r = names_find(id, ret->path);

	if (r >= 0)
		r = event_read(ret->path, &ret->event);
	if (r >= 0)
		r = name_list(ret->path, &ret->names, &ret->n);
	if (r < 0)
		return r;
	for (ret->i = 0; ret->i < ret->n; ret->i++)
		if (ret->names[ret->i].id == id)
			return 0;
	return -EBADMSG;
}

/* The event as seen under the name names[i]. */
static void view(const struct name *names, size_t i, struct pp_event *e)
{
	name_view(&names[i], e);
	if (i == 0)
		return;
	e->shares = names[0].id;
	e->memory = 0;
}

int names_read(uint64_t id, struct pp_event *ret)
{
	_cleanup_(named_done) struct named n = {};
	int r = resolve(id, &n);

	if (r < 0)
		return r;
	view(n.names, n.i, &n.event);
	*ret = n.event;
	return 0;
}

struct each {
	int (*fn)(const struct pp_event *event, void *userdata);
	void *userdata;
};

static int each_event(const char *path, void *userdata)
{
	_cleanup_free_ struct name *names = NULL;
	const struct each *each = userdata;
	struct pp_event event;
	size_t n = 0;
	int r;

	r = name_list(path, &names, &n);
	if (r < 0)
		return r;
	r = event_read(path, &event);
	if (r < 0)
		return event_not_understood(n ? names[0].path : path, path, r);
	if (n == 0)
		log_warning("Event %s has no readable name; it is left alone; remove it from the "
			    "registry if you do not need it.",
			    path);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct pp_event seen = event;

		view(names, i, &seen);
		r = each->fn(&seen, each->userdata);
	}
	return r;
}

int names_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata)
{
	struct each each = { fn, userdata };

	return pins_foreach(each_event, &each);
}

/* ── the oldest name ────────────────────────────────────────────────────────────────────── */

/* Only users whom both permit can read the event's texts. */
static int narrow(const char *path, uid_t broker, const struct pp_spec *was,
		  const struct pp_spec *now)
{
	struct pp_spec both = *now;

	both.mode &= was->mode & (both.group == was->group ? 0777 : 04);
	return pins_grant(path, broker, &both);
}

/*
 * Sets the readers of the event's texts: the oldest name decides. When another name becomes the
 * oldest, only users whom both names permit can read them for a moment.
 */
static int settle(const char *path, const struct name *oldest, uid_t broker)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	struct pp_event event, was;
	bool pending;
	int r = meta < 0 ? meta : meta_read_all(meta, &was, NULL, NULL, NULL, &pending);

	if (meta_is_strange(r)) /* an event that this version cannot read */
		return pins_grant(path, broker, &oldest->spec);
	if (r < 0)
		return r;
	event = was;
	name_view(oldest, &event);
	if (memcmp(&event, &was, sizeof(event)) != 0) {
		r = narrow(path, broker, &was.spec, &event.spec);
		if (r >= 0)
			r = meta_update(meta, &event, pending);
	}
	return r < 0 ? r : pins_grant(path, broker, &event.spec);
}

/* ── deleting ───────────────────────────────────────────────────────────────────────────── */

/* The record is gone, and with it the name; the next start removes the link if that fails now. */
static void drop_link(const struct name *name)
{
	int r = pins_unlink(name->path);

	if (r < 0)
		log_warning("Cannot remove the link of the deleted name %s: %s; the engine's next "
			    "start does that.",
			    name->path, strerror(-r));
}

static int delete_name(const struct named *n, uid_t broker, struct failure *f)
{
	const struct name *name = &n->names[n->i];
	int r = name_remove(n->path, name->id);

	if (r < 0)
		return fail(f, -r, "Cannot take '%s' out of the registry: %s.", name->path,
			    strerror(-r));
	drop_link(name);
	r = n->i > 0 ? 0 : settle(n->path, &n->names[1], broker);
	if (r < 0)
		log_error("Event %s has inherited the rings of %s, but not all of its files show "
			  "that: %s; restart the engine.",
			  n->names[1].path, name->path, strerror(-r));
	return 0;
}

/* Any pin does: what counts is the name, which goes with the directory when that is renamed. */
static int mark_claimed(const char *path)
{
	_cleanup_close_ int meta = pins_get(path, "meta");

	return meta < 0 ? meta : pins_put(path, meta, PINS_CLAIMED, 0, 0, 0600);
}

/* claimed: somebody else keeps the event alive, and reads its rings. */
static int delete_rings(const struct named *n, bool claimed, struct pp_orphans *ret,
			struct failure *f)
{
	char gone[PINS_PATH_SIZE];
	uint64_t id;
	int r;

	r = pins_next_id(&id);
	if (r >= 0 && claimed)
		r = mark_claimed(n->path);
	if (r >= 0)
		r = pins_remove(n->path, id, gone);
	if (r < 0) {
		pins_drop(n->path, PINS_CLAIMED);
		return fail(f, -r, "Cannot take '%s' out of the registry: %s.", n->names[n->i].path,
			    strerror(-r));
	}
	for (size_t i = 0; i < n->n; i++)
		drop_link(&n->names[i]);
	if (n->event.spec.flags & PP_EVENT_TRIGGER)
		trigger_disown(gone);
	if (n->event.spec.flags & PP_EVENT_PROGRAM && programs_forget_at(gone) < 0)
		log_error("Cannot take the recording programs of '%s' out of its creator's map: "
			  "its memory is given back when that is closed.",
			  n->names[n->i].path);
	if (!claimed)
		mark_path(gone, PP_RING_DELETED);
	orphans_add(id, NULL, ret);
	reaper_kick();
	return 0;
}

/* Whether the rings outlive the name. */
static bool is_kept(const struct named *n, const struct pp_allowance *allowance)
{
	return n->i > 0 ||
	       (n->n > 1 && crowd_may_inherit(&n->event, n->names[1].spec.creator, allowance));
}

/* A name that this version cannot read may be in use: its rings stay. */
static int check_left_out(const struct named *n, struct failure *f)
{
	int r = name_left_out(n->path);

	if (r < 0)
		return fail(f, -r, "Cannot read the names of '%s': %s.", n->names[n->i].path,
			    strerror(-r));
	if (r > 0)
		return fail(f, EBUSY,
			    "The rings of '%s' have another name, which this version cannot read; "
			    "delete that name with the version that made it, or remove its record "
			    "from %s in the registry.",
			    n->names[n->i].path, n->path);
	return 0;
}

bool names_end_rings(uint64_t id, const struct pp_allowance *allowance)
{
	_cleanup_(named_done) struct named n = {};

	return resolve(id, &n) >= 0 && !is_kept(&n, allowance) && name_left_out(n.path) == 0;
}

int names_delete(uint64_t id, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct pp_orphans *ret_orphans, struct failure *f)
{
	_cleanup_(named_done) struct named n = {};
	struct pp_orphans orphans = {};
	bool kept;
	int r;

	r = resolve(id, &n);
	if (r < 0)
		return names_not_found(id, r, f);
	kept = is_kept(&n, allowance);
	r = kept ? 0 : check_left_out(&n, f);
	if (r < 0)
		return r;
	r = kept ? delete_name(&n, broker, f) : delete_rings(&n, false, &orphans, f);
	if (r < 0)
		return r;
	view(n.names, n.i, &n.event);
	if (kept && n.i == 0)
		n.event.shares = n.names[1].id;
	*ret = n.event;
	*ret_orphans = orphans;
	return 0;
}

int names_give_back(uint64_t id, struct pp_event *ret, struct pp_orphans *ret_orphans,
		    struct failure *f)
{
	_cleanup_(named_done) struct named n = {};
	int r = resolve(id, &n);

	if (r < 0)
		return names_not_found(id, r, f);
	r = check_left_out(&n, f);
	if (r >= 0 && n.event.paused) /* also by a trigger, just now */
		r = fail(f, EBUSY,
			 "'%s' is paused, and nobody could resume it any more; resume it first.",
			 n.names[n.i].path);
	if (r >= 0 && n.n > 1)
		r = fail(f, EBUSY,
			 "'%s' has other names, whose events would go with it; delete these first.",
			 n.names[n.i].path);
	if (r >= 0)
		r = delete_rings(&n, true, ret_orphans, f);
	if (r < 0)
		return r;
	view(n.names, n.i, &n.event);
	*ret = n.event;
	return 0;
}

/* ── another name ───────────────────────────────────────────────────────────────────────── */

int names_alias(uint64_t target, const struct pp_spec *spec, struct pp_event *ret,
		struct failure *f)
{
	_cleanup_(named_done) struct named n = {};
	char path[PINS_PATH_SIZE];
	struct name made;
	uint64_t id;
	int r;

	snprintf(path, sizeof(path), "%s/%s", spec->ns, spec->name);
	if (pins_exists(spec->ns, spec->name))
		return fail(f, EEXIST,
			    "'%s' is already there; delete it first, or choose another name.",
			    path);
	r = resolve(target, &n);
	if (r < 0)
		return fail(f, -r, "Cannot find the event with id %llu, to share it: %s.",
			    (unsigned long long)target, strerror(-r));
	r = pins_next_id(&id);
	if (r >= 0)
		r = name_create(n.path, id, spec);
	if (r >= 0) {
		r = pins_link(spec, n.path);
		if (r < 0)
			name_remove(n.path, id);
	}
	if (r < 0)
		return fail(f, -r, "Cannot put '%s' into the registry, beside '%s': %s.", path,
			    n.names[n.i].path, strerror(-r));
	/* The name is there: nothing may fail now. */
	made = (struct name){ .id = id, .spec = *spec };
	made.spec.flags &= PP_EVENT_CONFIGURED;
	name_view(&made, &n.event);
	n.event.shares = n.names[0].id;
	n.event.memory = 0;
	*ret = n.event;
	return 0;
}

/* ── rights ─────────────────────────────────────────────────────────────────────────────── */

struct rights {
	const struct pp_spec *spec;
	uid_t broker;
	int error; /* the first */
};

static int grant_event(const char *path, const struct rights *rights)
{
	_cleanup_free_ struct name *names = NULL;
	bool is_oldest = false;
	size_t n = 0;
	int r;

	r = name_list(path, &names, &n);
	/* The files are narrowed first: they never permit more than the records. */
	if (r >= 0 && n > 0 && !strcmp(names[0].spec.ns, rights->spec->ns))
		r = narrow(path, rights->broker, &names[0].spec, rights->spec);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (strcmp(names[i].spec.ns, rights->spec->ns) != 0)
			continue;
		names[i].spec.owner = rights->spec->owner;
		names[i].spec.group = rights->spec->group;
		names[i].spec.mode = rights->spec->mode;
		is_oldest |= i == 0;
		r = name_update(path, &names[i]);
	}
	return r < 0 || !is_oldest ? r : settle(path, &names[0], rights->broker);
}

/* One event's failure leaves no other event open to those who have lost their rights. */
static int grant_next(const char *path, void *userdata)
{
	struct rights *rights = userdata;
	int r = grant_event(path, rights);

	if (r < 0 && !rights->error)
		rights->error = r;
	return 0;
}

int names_rights(const struct pp_spec *spec, uid_t broker, struct failure *f)
{
	struct rights rights = { spec, broker, 0 };
	int r = pins_grant_namespace(spec);

	if (r == -ENOENT)
		return 0; /* the namespace is empty */
	if (r >= 0)
		r = pins_foreach(grant_next, &rights);
	if (r >= 0)
		r = rights.error;
	if (r < 0)
		return fail(f, -r,
			    "Cannot give all of the namespace '%s' its rights in the registry: "
			    "%s; what was done of it stays, ask again.",
			    spec->ns, strerror(-r));
	return 0;
}

/* ── mending ────────────────────────────────────────────────────────────────────────────── */

/* The existing name records; sorted once all are there. */
struct mending {
	char (*name)[PINS_PATH_SIZE];
	size_t n, room;
	uid_t broker;
};

static void mending_done(struct mending *m)
{
	free(m->name);
}

static int add_name(struct mending *m, const char *path)
{
	if (m->n == m->room) {
		size_t room = MAX(m->room * 2, (size_t)64);
		void *more = reallocarray(m->name, room, PINS_PATH_SIZE);

		if (!more)
			return -ENOMEM;
		m->name = more;
		m->room = room;
	}
	snprintf(m->name[m->n++], PINS_PATH_SIZE, "%s", path);
	return 0;
}

static int mend_name(const char *path, const struct name *name, struct mending *m)
{
	int r = pins_link(&name->spec, path);

	if (r >= 0)
		r = pins_grant_namespace(&name->spec); /* it may be new and still empty */
	if (r == -EEXIST) {
		log_warning("Cannot restore the name %s of the event in %s: something else has its "
			    "place; remove that and restart the engine.",
			    name->path, path);
		return 0;
	}
	return r < 0 ? r : add_name(m, name->path);
}

static int mend_event(const char *path, void *userdata)
{
	_cleanup_free_ struct name *names = NULL;
	struct mending *m = userdata;
	size_t n = 0;
	int r;

	pins_drop(path, PINS_CLAIMED); /* an engine died before it gave the event back */
	r = name_list(path, &names, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = mend_name(path, &names[i], m);
	if (r < 0 || n == 0)
		return r;
	r = settle(path, &names[0], m->broker);
	if (r < 0)
		log_warning("Cannot update the files of event %s in the registry: %s; the engine's "
			    "next start tries again.",
			    names[0].path, strerror(-r));
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int drop_nobodys(const char *path, void *userdata)
{
	const struct mending *m = userdata;
	int r;

	if (m->n && bsearch(path, m->name, m->n, PINS_PATH_SIZE, by_name))
		return 0;
	/* It may be a name whose record only a newer version can read. */
	r = name_left_out(path);
	if (r > 0)
		return 0;
	/* Old engines left links that lead nowhere, or to themselves. */
	return r < 0 && r != -ENOENT && r != -ELOOP ? r : pins_unlink(path);
}

int names_recover(uid_t broker)
{
	_cleanup_(mending_done) struct mending m = { .broker = broker };
	int r = pins_foreach(mend_event, &m);

	if (r < 0)
		return r;
	if (m.n)
		qsort(m.name, m.n, PINS_PATH_SIZE, by_name);
	r = pins_foreach_link(drop_nobodys, &m);
	return r < 0 ? r : pins_sweep();
}
