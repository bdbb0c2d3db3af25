/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names that an event has: symlinks to the directory of its pins, and in that a record of each
 * (registry/name.h), which is the truth that links are made from. Knows what a name is, not what is
 * recorded under it.
 *
 * The oldest name, that with the lowest id, is whose user is charged for the rings, what `info` says,
 * and whose namespace's rights the texts have. When it is deleted the next one is that; nothing is
 * moved.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/order.h"

/* The directory of the event that has a name with this id. -ENOENT only if there is none. */
int names_find(uint64_t id, char ret[PINS_PATH_SIZE]);

/* The event under the name of this id, as enumerated: but for the oldest one a copy of the event
 * whose rings it has, with name and rights of its own, `shares` set and no memory. -ENOENT,
 * -EBADMSG, -errno. */
int names_read(uint64_t id, struct pp_event *ret);

/* Runs fn for each name of each event; what cannot be understood is logged and left alone. */
int names_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata);

/*
 * Deletes a name. *ret is what it was; `shares` says who has the rings now. The rings go with the
 * last name, and with the oldest one if allowance (NULL: no limits) has no room for the next.
 * *ret_orphans then says which of them stay charged for now; else its id is 0. -ENOENT.
 */
int names_delete(uint64_t id, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct pp_orphans *ret_orphans, struct failure *f);

/* Gives the event that has the name `target` another one. *ret: as enumerated. */
int names_alias(uint64_t target, const struct pp_spec *spec, struct pp_event *ret,
		struct failure *f);

/* The rights of a namespace (spec: ns, owner, group, mode), for all that is in it. */
int names_rights(const struct pp_spec *spec, uid_t broker, struct failure *f);

/* At start: makes links of records, removes those that have none, and gives files to whom they
 * belong. -errno. */
int names_recover(uid_t broker);
