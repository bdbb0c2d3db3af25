/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record of an event's name: a small map, pinned as "name-ID" in the event's directory
 * (proto/name-record.h). Knows neither links nor rights of files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/engine/registry/pins.h"
#include "daemon/order.h"

struct name {
	uint64_t id;
	char path[PINS_PATH_SIZE]; /* "NAMESPACE/EVENT" */
	struct pp_spec spec; /* only ns, name, owner, group, mode, creator, PP_EVENT_CONFIGURED */
};

/* Pins the record of a new name in the directory `path`. -errno. */
int name_create(const char *path, uint64_t id, const struct pp_spec *spec);

/* Updates owner, group and mode. */
int name_update(const char *path, const struct name *name);

/* Removes the record, and with it the name. */
int name_remove(const char *path, uint64_t id);

/* 1, 0 or -errno. */
int name_exists(const char *path, uint64_t id);

/* All names of an event, by id; *ret is for free(3). Leaves out malformed ones. -errno. */
int name_list(const char *path, struct name **ret, size_t *ret_n);

/* Whether the event has records that name_list() leaves out. 1, 0 or -errno. */
int name_left_out(const char *path);

/* Gives the event `e` the fields that it has under this name. */
void name_view(const struct name *name, struct pp_event *e);
