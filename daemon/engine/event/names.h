/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names that an event's rings have. The first one is the directory of its pins; others are
 * aliases: symlinks to it, and beside its pins a record of each ("alias-ID", see alias.h), which
 * is the truth that links are made from. Knows what a name is, not what is recorded under it.
 *
 * When the first name is deleted and others are there, the directory moves to the place of the
 * alias with the lowest id, its successor: from then on it is that event, in one step, whose
 * pp_event.origin is the id that its rings and records have.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/order.h"

/* The directory with the rings of the event with this id, which may be an alias. -ENOENT only if
 * there is none. */
int names_find(uint64_t id, char ret[PINS_PATH_SIZE]);

/* The event of this id, as enumerated: an alias is a copy of the event whose rings it has, with
 * names and rights of its own, `shares` set and no memory. -ENOENT, -EBADMSG, -errno. */
int names_read(uint64_t id, struct pp_event *ret);

/* Runs fn for each event and alias; what cannot be understood is logged and left alone. */
int names_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata);

/*
 * Deletes a name. *ret is what it was; `shares` says who has the rings now. The rings go with the
 * last name, and with the first one if allowance (NULL: no limits) has no room for the successor.
 * *ret_orphans then says which of them stay charged for now; else its id is 0. -ENOENT.
 */
int names_delete(uint64_t id, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct pp_orphans *ret_orphans, struct failure *f);

/* Gives the event `target` (or whose rings that has) another name. *ret: as enumerated. */
int names_alias(uint64_t target, const struct pp_spec *spec, struct pp_event *ret,
		struct failure *f);

/* The rights of a namespace (spec: ns, owner, group, mode), for all that is in it. */
int names_rights(const struct pp_spec *spec, uid_t broker, struct failure *f);
