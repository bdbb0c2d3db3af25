// SPDX-License-Identifier: LGPL-2.1-or-later
/* The names of rings: finding, deleting, adding one, and their rights. See names.h. */
#include "daemon/engine/event/names.h"

#include <string.h>

#include "daemon/engine/event/event.h"
#include "daemon/engine/event/heir.h"
#include "daemon/engine/registry/alias.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* ── finding ────────────────────────────────────────────────────────────────────────────── */

static int find(uint64_t id, char ret[PINS_PATH_SIZE])
{
	char name[PINS_PATH_SIZE];
	int r = pins_find(id, name);

	return r < 0 ? r : pins_directory(name, ret);
}

/* Whoever asks takes -ENOENT for "deleted", so that a lost link alone must not say it. */
int names_find(uint64_t id, char ret[PINS_PATH_SIZE])
{
	int r = find(id, ret);

	if (r != -ENOENT)
		return r;
	r = heir_mend();
	return r < 0 ? r : find(id, ret);
}

/* What an id means: the directory, the event there, and the alias, or its id is 0. */
struct named {
	char path[PINS_PATH_SIZE];
	struct pp_event event;
	struct alias alias;
};

static int resolve(uint64_t id, struct named *ret)
{
	int r = names_find(id, ret->path);

	if (r >= 0)
		r = event_read(ret->path, &ret->event);
	ret->alias.id = 0;
	if (r < 0 || ret->event.id == id)
		return r;
	return alias_read(ret->path, id, &ret->alias);
}

static void view(const struct named *n, struct pp_event *ret)
{
	*ret = n->event;
	if (n->alias.id)
		alias_view(&n->alias, ret);
}

int names_read(uint64_t id, struct pp_event *ret)
{
	struct named n;
	int r = resolve(id, &n);

	if (r < 0)
		return r;
	view(&n, ret);
	return 0;
}

struct each {
	int (*fn)(const struct pp_event *event, void *userdata);
	void *userdata;
};

static int each_name(const struct pp_event *event, void *userdata)
{
	_cleanup_free_ struct alias *aliases = NULL;
	const struct each *each = userdata;
	char path[PINS_PATH_SIZE];
	size_t n = 0;
	int r;

	r = each->fn(event, each->userdata);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", event->spec.ns, event->spec.name);
	r = alias_list(path, &aliases, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct pp_event seen = *event;

		alias_view(&aliases[i], &seen);
		r = each->fn(&seen, each->userdata);
	}
	return r;
}

int names_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata)
{
	struct each each = { fn, userdata };

	return event_foreach(each_name, &each);
}

/* ── deleting ───────────────────────────────────────────────────────────────────────────── */

static int delete_alias(const struct named *n, struct failure *f)
{
	int r = alias_remove(n->path, n->alias.id);

	if (r < 0)
		return fail(f, -r, "Cannot take '%s' out of the registry: %s.", n->alias.path,
			    strerror(-r));
	/* That was it; the links are mended at the next start if they cannot be removed now. */
	r = pins_unalias(n->alias.path);
	if (r < 0)
		log_warning("%s is no event any more, but its link stays: %s", n->alias.path,
			    strerror(-r));
	pins_unlink_id(n->alias.id);
	return 0;
}

static int delete_rings(const struct named *n, struct pp_orphans *ret, struct failure *f)
{
	char gone[PINS_PATH_SIZE];
	uint64_t id;
	int r;

	r = pins_next_id(&id);
	if (r >= 0)
		r = pins_remove(n->path, n->event.id, id);
	if (r < 0)
		return fail(f, -r, "Cannot take '%s' out of the registry: %s.", n->path,
			    strerror(-r));
	pins_orphans_path(id, gone);
	mark_path(gone, PP_RING_DELETED);
	orphans_add(id, NULL, ret);
	reaper_kick();
	return 0;
}

/* Links that lead nowhere: the rings are gone, and the aliases' records with them. */
static void drop_names(const struct alias *aliases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = pins_unalias(aliases[i].path);

		if (r < 0)
			log_warning("%s is no event any more, but its link stays: %s",
				    aliases[i].path, strerror(-r));
		pins_unlink_id(aliases[i].id);
	}
}

int names_delete(uint64_t id, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct pp_orphans *ret_orphans, struct failure *f)
{
	_cleanup_free_ struct alias *successors = NULL;
	struct pp_orphans orphans = {};
	struct named n;
	bool inherited;
	size_t n_heirs = 0;
	int r;

	r = resolve(id, &n);
	if (r >= 0 && !n.alias.id)
		r = alias_list(n.path, &successors, &n_heirs);
	if (r < 0)
		return fail(f, -r, "Cannot find the event with id %llu in the registry: %s.",
			    (unsigned long long)id, strerror(-r));
	inherited = n_heirs && crowd_may_inherit(&n.event, successors[0].spec.creator, allowance);
	if (n.alias.id)
		r = delete_alias(&n, f);
	else if (inherited)
		r = heir_succeed(n.path, &n.event, successors, n_heirs, broker, f);
	else
		r = delete_rings(&n, &orphans, f);
	if (r < 0)
		return r;
	view(&n, ret);
	if (inherited)
		ret->shares = successors[0].id;
	else
		drop_names(successors, n_heirs);
	*ret_orphans = orphans;
	return 0;
}

/* ── another name ───────────────────────────────────────────────────────────────────────── */

int names_alias(uint64_t target, const struct pp_spec *spec, struct pp_event *ret,
		struct failure *f)
{
	struct named n;
	int r;

	if (pins_exists(spec->ns, spec->name))
		return fail(f, EEXIST,
			    "'%s/%s' is already there; delete it first, or choose another name.",
			    spec->ns, spec->name);
	r = resolve(target, &n);
	if (r < 0)
		return fail(f, -r, "Cannot find the event with id %llu, to share it: %s.",
			    (unsigned long long)target, strerror(-r));
	n.alias = (struct alias){ .spec = *spec };
	snprintf(n.alias.path, sizeof(n.alias.path), "%s/%s", spec->ns, spec->name);
	r = pins_next_id(&n.alias.id);
	if (r >= 0)
		r = alias_create(n.path, n.alias.id, spec);
	if (r >= 0) {
		r = heir_link(n.path, &n.alias);
		if (r < 0) {
			alias_remove(n.path, n.alias.id);
			pins_unalias(n.alias.path);
			pins_unlink_id(n.alias.id);
		}
	}
	if (r < 0)
		return fail(f, -r, "Cannot put '%s' into the registry, beside '%s': %s.",
			    n.alias.path, n.path, strerror(-r));
	r = alias_read(n.path, n.alias.id, &n.alias);
	if (r < 0)
		return fail(f, -r, "Cannot read back what '%s' is: %s.", n.alias.path,
			    strerror(-r));
	view(&n, ret);
	return 0;
}

/* ── rights ─────────────────────────────────────────────────────────────────────────────── */

struct rights {
	const struct pp_spec *spec;
	uid_t broker;
};

static bool is_in(const char *path, const char *ns)
{
	size_t n = strlen(ns);

	return !strncmp(path, ns, n) && path[n] == '/';
}

static void take_rights(struct pp_spec *spec, const struct pp_spec *rights)
{
	spec->owner = rights->owner;
	spec->group = rights->group;
	spec->mode = rights->mode;
}

/* The files first: an event whose meta says it has these rights does have them. */
static int grant_event(const char *path, void *userdata)
{
	const struct rights *rights = userdata;
	_cleanup_close_ int meta = -EBADF;
	struct pp_event event;
	bool pending;
	int r;

	if (!is_in(path, rights->spec->ns))
		return 0;
	r = pins_grant(path, rights->broker, rights->spec);
	if (r < 0)
		return r;
	meta = pins_get(path, "meta");
	if (meta < 0)
		return meta;
	r = meta_read_all(meta, &event, NULL, NULL, NULL, &pending);
	if (r == -EBADMSG || r == -EPROTONOSUPPORT || r == -ESTALE)
		return 0; /* not for us to understand */
	if (r < 0)
		return r;
	take_rights(&event.spec, rights->spec);
	return meta_update(meta, &event, pending);
}

static int grant_alias(const char *path, void *userdata)
{
	_cleanup_free_ struct alias *aliases = NULL;
	const struct rights *rights = userdata;
	char dir[PINS_PATH_SIZE];
	size_t n = 0;
	int r;

	if (!is_in(path, rights->spec->ns))
		return 0;
	r = pins_directory(path, dir);
	if (r >= 0)
		r = alias_list(dir, &aliases, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (!strcmp(aliases[i].path, path)) {
			take_rights(&aliases[i].spec, rights->spec);
			r = alias_update(dir, &aliases[i]);
		}
	return r;
}

int names_rights(const struct pp_spec *spec, uid_t broker, struct failure *f)
{
	struct rights rights = { spec, broker };
	int r = pins_grant_namespace(spec);

	if (r == -ENOENT)
		return 0; /* nothing is in it */
	if (r >= 0)
		r = pins_foreach(grant_event, &rights);
	if (r >= 0)
		r = pins_foreach_alias(grant_alias, &rights);
	if (r < 0)
		return fail(f, -r,
			    "Cannot give all of the namespace '%s' its rights in the registry: "
			    "%s; what was done of it stays, ask again.",
			    spec->ns, strerror(-r));
	return 0;
}
