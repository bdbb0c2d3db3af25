/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A registry of the test's own, with events that have rings and record nothing. */
#pragma once

#include <bpf/bpf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/engine/event/names.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/name.h"
#include "daemon/engine/registry/pins.h"
#include "dying.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define BROKER 61999
#define RING_BYTES 65536
#define CATALOG_BYTES 4096
#define EVENT_BYTES (2 * RING_BYTES + CATALOG_BYTES)

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

static void make_spec(struct pp_spec *s, const char *ns, const char *name, uint32_t group)
{
	memset(s, 0, sizeof(*s));
	strcpy(s->ns, ns);
	strcpy(s->name, name);
	strcpy(s->event, "sched:sched_switch");
	s->data_size = 4096;
	s->group = group;
	s->creator = group;
	s->mode = 0640;
	s->flags = PP_EVENT_ALL_CPUS;
}

static int make_map(const char *name, uint32_t bytes)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, name, 4, bytes, 1, &opts);
}

/* Two rings and a catalog: those in `maps` if they exist, or new ones. */
static void add_maps(struct pins_draft *d, struct meta_map maps[3], bool are_there)
{
	static const struct {
		const char *leaf, *name;
		uint32_t cpu, bytes;
	} kinds[] = {
		{ "cpu0", "pp_ring", 0, RING_BYTES },
		{ "cpu1", "pp_ring", 1, RING_BYTES },
		{ "catalog", "pp_catalog", UINT32_MAX, CATALOG_BYTES },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_close_ int fd = are_there ? meta_map_open(&maps[i])
						   : make_map(kinds[i].name, kinds[i].bytes);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(meta_map_describe(fd, kinds[i].cpu, kinds[i].bytes, 0, &maps[i]),
				 0);
		ck_assert_int_eq(pins_add(d, fd, kinds[i].leaf, BROKER, 0, 0600), 0);
	}
}

static void add_files(struct pins_draft *d, const struct pp_event *e, const struct meta_map maps[3])
{
	static struct pp_parsed parsed = { .n_sources = 1 };
	_cleanup_close_ int meta = -EBADF;

	parsed.sources[0].kind = PP_SOURCE_TRACEPOINT;
	strcpy(parsed.sources[0].system, "sched");
	strcpy(parsed.sources[0].name, "sched_switch");
	ck_assert_int_eq(meta_create(e, &parsed, maps, 3, NULL, false, &meta), 0);
	ck_assert_int_eq(pins_add(d, meta, "meta", 0, 0, 0600), 0);
	ck_assert_int_eq(pins_add(d, meta, "info", BROKER, d->group, 0440), 0);
	ck_assert_int_eq(pins_add(d, meta, "stat", BROKER, d->group, 0440), 0);
}

/* A draft with all but the record of a name. */
static struct pp_event make_draft(const char *ns, const char *name, uint32_t group,
				  struct pins_draft *ret)
{
	struct pp_event e = {
		.recorder = PP_RECORDER_GENERIC,
		.header_size = PP_RING_PAGE,
		.spill_size = 64,
		.n_sources = 1,
		.set = 1,
		.memory = EVENT_BYTES,
	};
	struct meta_map maps[3];

	make_spec(&e.spec, ns, name, group);
	ck_assert_int_eq(pins_next_id(&e.id), 0);
	e.origin = e.id;
	ck_assert_int_eq(pins_begin(&e.spec, ret), 0);
	add_maps(ret, maps, false);
	add_files(ret, &e, maps);
	return e;
}

static struct pp_event make_event(const char *ns, const char *name, uint32_t group)
{
	struct pins_draft d;
	struct pp_event e = make_draft(ns, name, group, &d);

	ck_assert_int_eq(name_create(d.path, e.id, &e.spec), 0);
	ck_assert_int_eq(pins_commit(&d, &e.spec, e.id), 0);
	return e;
}

static struct meta_map *read_event_maps(const char *path, struct pp_event *ret)
{
	_cleanup_close_ int fd = pins_get(path, "meta");
	struct meta_map *maps;
	size_t n;

	ck_assert_int_eq(meta_read_all(fd, ret, NULL, &maps, &n, NULL), 0);
	ck_assert_uint_eq(n, 3);
	return maps;
}

static struct pp_event make_alias(uint64_t target, const char *ns, const char *name, uint32_t group)
{
	struct failure f = {};
	struct pp_spec spec;
	struct pp_event e;

	make_spec(&spec, ns, name, group);
	spec.flags = PP_EVENT_CONFIGURED;
	ck_assert_msg(names_alias(target, &spec, &e, &f) == 0, "%s", f.sentence);
	return e;
}

/* ── what is there ──────────────────────────────────────────────────────────────────────── */

static struct pp_event found[16];
static size_t n_found;

static int note_found(const struct pp_event *e, void *userdata _unused_)
{
	ck_assert_uint_lt(n_found, ARRAY_SIZE(found));
	found[n_found++] = *e;
	return 0;
}

static void enumerate(void)
{
	n_found = 0;
	ck_assert_int_eq(names_foreach(note_found, NULL), 0);
}

/* From the last enumeration; or NULL. */
static const struct pp_event *by_path(const char *path)
{
	char is[PINS_PATH_SIZE];

	for (size_t i = 0; i < n_found; i++) {
		snprintf(is, sizeof(is), "%s/%s", found[i].spec.ns, found[i].spec.name);
		if (!strcmp(is, path))
			return &found[i];
	}
	return NULL;
}

static void delete_path(const char *path, struct pp_orphans *ret)
{
	struct failure f = {};
	struct pp_event was;
	uint64_t id;

	enumerate();
	ck_assert_ptr_nonnull(by_path(path));
	id = by_path(path)->id;
	ck_assert_msg(names_delete(id, NULL, BROKER, &was, ret, &f) == 0, "%s", f.sentence);
	ck_assert_uint_eq(was.id, id);
}
