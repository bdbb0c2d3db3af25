/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record of an alias: a small map, pinned as "alias-ID" in the directory of the event whose
 * rings it has. Knows neither links nor rights of files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/engine/registry/pins.h"
#include "daemon/order.h"

struct alias {
	uint64_t id;
	char path[PINS_PATH_SIZE]; /* "NAMESPACE/EVENT" */
	struct pp_spec spec; /* of it ns, name, owner, group, mode, creator, PP_EVENT_CONFIGURED */
};

/* Pins the record of a new alias in the directory `path`. -errno. */
int alias_create(const char *path, uint64_t id, const struct pp_spec *spec);

/* Writes owner, group and mode anew. */
int alias_update(const char *path, const struct alias *a);

/* Removes the record: with it the alias is none any more. */
int alias_remove(const char *path, uint64_t id);

/* The record of this id; -ENOENT, -EBADMSG, -errno. */
int alias_read(const char *path, uint64_t id, struct alias *ret);

/* All of them, by id; *ret is for free(3). Those that cannot be understood are left out. -errno. */
int alias_list(const char *path, struct alias **ret, size_t *ret_n);

/* What the event `e` is under this name. */
void alias_view(const struct alias *a, struct pp_event *e);
