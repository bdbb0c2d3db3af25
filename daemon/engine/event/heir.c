// SPDX-License-Identifier: LGPL-2.1-or-later
/* Links, and who has the rings once their first name is gone. See heir.h. */
#include "daemon/engine/event/heir.h"

#include <string.h>

#include "daemon/engine/event/event.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* The id first: an event that is there can always be found by it. */
int heir_link(const char *path, const struct alias *a)
{
	int r = pins_link_id(a->id, a->path);

	return r < 0 ? r : pins_alias(a->path, path, &a->spec);
}

/* ── being the successor ─────────────────────────────────────────────────────────────────────── */

static void take_over(struct pp_event *e, const struct alias *a)
{
	if (e->id != a->id) {
		e->origin = pp_event_origin(e);
		e->id = a->id;
	}
	memcpy(e->spec.ns, a->spec.ns, sizeof(e->spec.ns));
	memcpy(e->spec.name, a->spec.name, sizeof(e->spec.name));
	e->spec.owner = a->spec.owner;
	e->spec.group = a->spec.group;
	e->spec.mode = a->spec.mode;
	e->spec.creator = a->spec.creator;
	e->spec.flags = (e->spec.flags & ~PP_EVENT_CONFIGURED) | a->spec.flags;
}

/*
 * A directory that stands in the place of an alias that it has a record of: the record says what
 * it is now. Then meta says so, too, and the record goes.
 */
static int settle(const char *path, const struct alias *a, uid_t broker)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	struct pp_event event;
	bool pending;
	int r;

	if (meta < 0)
		return meta;
	r = meta_read_all(meta, &event, NULL, NULL, NULL, &pending);
	if (r >= 0)
		r = pins_grant(path, broker, &a->spec);
	if (r < 0)
		return r;
	take_over(&event, a);
	r = meta_update(meta, &event, pending);
	return r < 0 ? r : alias_remove(path, a->id);
}

int heir_succeed(const char *path, const struct pp_event *event, const struct alias *successors,
		 size_t n, uid_t broker, struct failure *f)
{
	const char *place = successors[0].path;
	int r, others = 0;

	/* The others by way of the successor, which is a link as yet: they are there at any time. */
	r = heir_link(path, &successors[0]);
	for (size_t i = 1; r >= 0 && others >= 0 && i < n; i++)
		others = heir_link(place, &successors[i]);
	if (r >= 0)
		r = pins_move(path, place);
	if (r < 0)
		return fail(f, -r, "Cannot hand '%s' down to '%s', which shares its rings: %s.",
			    path, place, strerror(-r));
	/* That was it: what fails from here on is done at the next start. */
	r = settle(place, &successors[0], broker);
	r = MIN(r, others);
	if (r >= 0)
		r = pins_unalias(path); /* what it was exchanged with */
	pins_unlink_id(event->id);
	if (r < 0)
		log_error("'%s' has the rings of '%s' now, but its files do not all say so: %s; "
			  "restart the engine",
			  place, path, strerror(-r));
	return 0;
}

/* ── mending ────────────────────────────────────────────────────────────────────────────── */

/* The names that are rightly symlinks; sorted once they are all there. */
struct names {
	char (*name)[PINS_PATH_SIZE];
	size_t n, room;
};

static int add_name(struct names *l, const char *path)
{
	if (l->n == l->room) {
		size_t room = MAX(l->room * 2, (size_t)64);
		void *more = reallocarray(l->name, room, PINS_PATH_SIZE);

		if (!more)
			return -ENOMEM;
		l->name = more;
		l->room = room;
	}
	snprintf(l->name[l->n++], PINS_PATH_SIZE, "%s", path);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool has_name(const struct names *l, const char *path)
{
	return l->n && bsearch(path, l->name, l->n, PINS_PATH_SIZE, by_name);
}

struct mending {
	struct names names;
	bool settle;
	uid_t broker;
};

static void mending_done(struct mending *m)
{
	free(m->names.name);
}

static int mend_alias(const char *path, const struct alias *a, struct mending *m)
{
	int r;

	if (!strcmp(a->path, path))
		return m->settle ? settle(path, a, m->broker) : 0;
	r = heir_link(path, a);
	if (r == -EEXIST) {
		log_warning("%s is another event, and no name for the rings of %s any more",
			    a->path, path);
		return alias_remove(path, a->id);
	}
	if (r >= 0 && m->settle)
		r = pins_grant_namespace(&a->spec); /* it may have been made and no more */
	return r < 0 ? r : add_name(&m->names, a->path);
}

static int mend_event(const char *path, void *userdata)
{
	_cleanup_free_ struct alias *aliases = NULL;
	struct mending *m = userdata;
	struct pp_event event;
	size_t n = 0;
	int r;

	r = alias_list(path, &aliases, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = mend_alias(path, &aliases[i], m);
	if (r < 0)
		return r;
	/* What cannot be understood is told of by who enumerates. */
	if (event_read(path, &event) < 0)
		return 0;
	r = pins_link_id(event.id, path);
	if (r >= 0 && m->settle)
		r = pins_grant(path, m->broker, &event.spec);
	if (r < 0)
		log_warning("not all of %s in the registry is as it should be: %s", path,
			    strerror(-r));
	return 0;
}

int heir_mend(void)
{
	_cleanup_(mending_done) struct mending m = {};

	return pins_foreach(mend_event, &m);
}

static int drop_alias(const char *path, void *userdata)
{
	const struct mending *m = userdata;

	return has_name(&m->names, path) ? 0 : pins_unalias(path);
}

int heir_recover(uid_t broker)
{
	_cleanup_(mending_done) struct mending m = { .settle = true, .broker = broker };
	int r = pins_foreach(mend_event, &m);

	if (r < 0)
		return r;
	if (m.names.n)
		qsort(m.names.name, m.names.n, PINS_PATH_SIZE, by_name);
	r = pins_foreach_alias(drop_alias, &m);
	return r < 0 ? r : pins_sweep();
}
