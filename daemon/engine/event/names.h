/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of an event: symlinks to the directory of its pins. That directory has a record of each
 * name (registry/name.h), which is the truth that links are made from. Knows names, not what is
 * recorded under them.
 *
 * The oldest name, with the lowest id, decides which user is charged for the rings, what `info`
 * says, and which namespace's rights the texts have. When it is deleted, the next one takes its
 * place; nothing is moved.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/order.h"

/* The directory of the event that has a name with this id. -ENOENT only if there is none. */
int names_find(uint64_t id, char ret[PINS_PATH_SIZE]);
int names_find_or_fail(uint64_t id, char ret[PINS_PATH_SIZE], struct failure *f);
/* r: why it was not found. Returns it. */
int names_not_found(uint64_t id, int r, struct failure *f);

/* The event under the name of this id, as enumerated. Under the oldest name it is the event itself;
 * under any other it is a copy with name and rights of its own, `shares` set and no memory.
 * -ENOENT, -EBADMSG, -errno. */
int names_read(uint64_t id, struct pp_event *ret);

/* Runs fn for each name of each event; logs those that it cannot read, and leaves them alone. */
int names_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata);

/* Whether the rings would go with that name. */
bool names_end_rings(uint64_t id, const struct pp_allowance *allowance);

/*
 * Deletes a name. *ret is the deleted event; `shares` says which name has the rings now. The rings
 * go with the last name, and with the oldest one if allowance (NULL: no limits) has no room for the
 * next. *ret_orphans then says which of them stay charged for now; else its id is 0. -ENOENT.
 */
int names_delete(uint64_t id, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct pp_orphans *ret_orphans, struct failure *f);

/* The same for an event that somebody else keeps alive from now on, as handout.h has it. -EBUSY: it has
 * other names. */
int names_give_back(uint64_t id, struct pp_event *ret, struct pp_orphans *ret_orphans,
		    struct failure *f);

/* Gives the event that has the name `target` another name. *ret: as enumerated. */
int names_alias(uint64_t target, const struct pp_spec *spec, struct pp_event *ret,
		struct failure *f);

/* Sets the rights of a namespace (spec: ns, owner, group, mode) and of everything in it. */
int names_rights(const struct pp_spec *spec, uid_t broker, struct failure *f);

/* At start: makes links from records, removes links without one, and sets the owners of files.
 * -errno. */
int names_recover(uid_t broker);
