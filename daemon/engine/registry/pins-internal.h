/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the three files of pins.h: pins.c, pins-names.c, pins-walk.c. */
#pragma once

#include "daemon/engine/registry/pins.h"

#define NEW_PREFIX "+new-"
#define DEL_PREFIX "+del-"
#define TAPE_PREFIX "+tape-"
#define KEPT_PREFIX "+kept-"
#define FROZEN_PREFIX "+frozen-"
#define SPARE_LINK "+link" /* a symlink that is about to replace another */

#define SPARE_PIN "+pin" /* a pin that is about to be renamed to its place */

/* "dir/leaf". 0 or -ENAMETOOLONG. */
int pins_join(char ret[PINS_PATH_SIZE], const char *dir, const char *leaf);

/* Runs fn for each entry of a directory, except "." and "..", until it returns < 0. */
int pins_each_entry(const char *dir, int (*fn)(const char *dir, const char *leaf, void *userdata),
		    void *userdata);

/* Removes a directory of pins. A missing one is fine. */
int pins_remove_dir(const char *path);

/* Removes the pins that hold processor registers from a directory that is being deleted, so that
 * the next event can have them; the reaper removes the rest. */
void pins_drop_counters(const char *path);

/* A directory that was an event becomes an orphan, or a tape. -errno. */
int pins_put_aside(const char *path, uint64_t id);

/* Leaves of a tape's directory only the rings and what describes them. */
void pins_strip_tape(const char *path);

/* Gives a directory the rights of its namespace. */
int pins_grant_directory(const char *path, gid_t group, mode_t mode);

/* Removes the symlinks that an earlier version had in by-id/. -errno. */
int pins_drop_old_ids(void);
