/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A registry as the versions before left it: NAMESPACE/EVENT, an event's first name, is its
 * directory, the records of other names are "alias-ID", by-id/ID is a symlink to a name. Whole, or as
 * it was when the engine died in a succession, by which the directory came to the place of another name.
 */
#pragma once

#include "names-fixture.h"

enum old_state {
	OLD_WHOLE,
	OLD_INHERITED, /* web/a is gone, and all is done */
	OLD_MOVED,     /* its directory is at db/b, and that is all */
	OLD_SETTLED,   /* that is written down, and the alias' record is there still */
	OLD_FORGOTTEN, /* the record is gone, the links of web/a are not */
	OLD_UNLINKED,  /* before Linux 5.16: the link of db/b is gone, nothing else */
	OLD_UNNAMED,   /* the records of aliases are there, their links are not yet */
	OLD_STATES,
};

struct old_alias {
	uint64_t magic;
	uint32_t version, size;
	uint64_t id;
	struct pp_spec spec;
};

static void old_point(const char *link, const char *path)
{
	char target[PINS_PATH_SIZE + 8];

	unlink(link);
	snprintf(target, sizeof(target), "../%s", path);
	ck_assert_int_eq(symlink(target, link), 0);
}

static void old_link_id(uint64_t id, const char *path)
{
	char link[PINS_PATH_SIZE];

	pins_event(id, link);
	old_point(link, path);
}

static void old_namespace(const char *ns, uint32_t group)
{
	ck_assert(mkdir(ns, 0700) == 0 || errno == EEXIST);
	ck_assert_int_eq(chmod(ns, 0751), 0);
	ck_assert_int_eq(chown(ns, 0, group), 0);
}

static void write_meta(const char *path, uint64_t id, uint64_t origin, const struct pp_spec *name)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	struct pp_event e;

	ck_assert_int_eq(meta_read_all(meta, &e, NULL, NULL, NULL, NULL), 0);
	e.id = id;
	e.origin = origin;
	strcpy(e.spec.ns, name->ns);
	strcpy(e.spec.name, name->name);
	e.spec.group = e.spec.creator = name->group;
	e.spec.flags |= name->flags;
	ck_assert_int_eq(meta_update(meta, &e, false), 0);
}

static uint64_t old_event(const char *ns, const char *name, uint32_t group)
{
	char path[PINS_PATH_SIZE];
	struct pins_draft d;
	struct pp_event e = make_draft(ns, name, group, &d);

	old_namespace(ns, group);
	snprintf(path, sizeof(path), "%s/%s", ns, name);
	write_meta(d.path, e.id, 0, &e.spec);
	ck_assert_int_eq(chmod(d.path, 0751), 0);
	ck_assert_int_eq(rename(d.path, path), 0);
	old_link_id(e.id, path);
	return e.id;
}

static uint64_t old_alias(const char *path, const char *ns, const char *name, uint32_t group)
{
	struct old_alias record = { 0x7361696c612d702bULL, 1, sizeof(record), 0, {} };
	char pin[PINS_PATH_SIZE + 32], link[PINS_PATH_SIZE];
	_cleanup_close_ int fd = -EBADF;
	uint32_t zero = 0;

	make_spec(&record.spec, ns, name, group);
	record.spec.flags = PP_EVENT_CONFIGURED;
	ck_assert_int_eq(pins_next_id(&record.id), 0);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_alias", 4, sizeof(record), 1, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bpf_map_update_elem(fd, &zero, &record, BPF_ANY), 0);
	snprintf(pin, sizeof(pin), "%s/alias-%llu", path, (unsigned long long)record.id);
	ck_assert_int_eq(bpf_obj_pin(fd, pin), 0);
	old_namespace(ns, group);
	snprintf(link, sizeof(link), "%s/%s", ns, name);
	old_point(link, path);
	old_link_id(record.id, link);
	return record.id;
}

/* The succession of web/a: to db/b, step by step, as far as that. */
static void old_succeed(enum old_state state, uint64_t id_a, uint64_t id_b)
{
	char pin[PINS_PATH_SIZE];
	struct pp_spec spec;

	old_point("web/c", "db/b");
	ck_assert_int_eq(renameat2(AT_FDCWD, "web/a", AT_FDCWD, "db/b", RENAME_EXCHANGE), 0);
	if (state == OLD_MOVED)
		return;
	make_spec(&spec, "db", "b", 200);
	spec.flags = PP_EVENT_CONFIGURED;
	write_meta("db/b", id_b, id_a, &spec);
	if (state == OLD_SETTLED)
		return;
	snprintf(pin, sizeof(pin), "db/b/alias-%llu", (unsigned long long)id_b);
	ck_assert_int_eq(unlink(pin), 0);
	if (state == OLD_FORGOTTEN)
		return;
	ck_assert_int_eq(unlink("web/a"), 0);
	pins_event(id_a, pin);
	ck_assert_int_eq(unlink(pin), 0);
}

/* web/a, web/z; and for web/a's rings db/b and web/c. */
static void make_old_world(enum old_state state, uint64_t *id_a, uint64_t *id_b, uint64_t *id_c)
{
	ck_assert_int_eq(chmod("by-id", 0700), 0);
	*id_a = old_event("web", "a", 100);
	old_event("web", "z", 100);
	*id_b = old_alias("web/a", "db", "b", 200);
	*id_c = old_alias("web/a", "web", "c", 100);
	if (state == OLD_UNLINKED || state == OLD_UNNAMED)
		ck_assert_int_eq(unlink("db/b"), 0);
	if (state == OLD_UNNAMED) {
		ck_assert_int_eq(unlink("web/c"), 0);
		ck_assert_int_eq(rmdir("db"), 0);
	}
	if (state >= OLD_INHERITED && state <= OLD_FORGOTTEN)
		old_succeed(state, *id_a, *id_b);
}
