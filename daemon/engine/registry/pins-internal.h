/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the three files behind pins.h share: pins.c, pins-names.c, pins-walk.c. */
#pragma once

#include "daemon/engine/registry/pins.h"

#define NEW_PREFIX "+new-"
#define DEL_PREFIX "+del-"
#define SPARE_LINK "+link" /* a symlink that is about to replace another */

#define SPARE_PIN "+pin" /* a pin that is about to come into its place */

/* "dir/leaf". 0 or -ENAMETOOLONG. */
int pins_join(char ret[PINS_PATH_SIZE], const char *dir, const char *leaf);

/* Runs fn for each entry of a directory but "." and "..", until it returns < 0. */
int pins_each_entry(const char *dir, int (*fn)(const char *dir, const char *leaf, void *userdata),
		    void *userdata);

/* Removes a directory of pins. One that is gone is fine. */
int pins_remove_dir(const char *path);

/* Removes of a directory that is on its way out what holds registers of processors, so that the
 * next event can have them: the rest is the reaper's. */
void pins_drop_counters(const char *path);

/* Gives a directory the rights of its namespace. */
int pins_grant_directory(const char *path, gid_t group, mode_t mode);

/* Removes the symlinks that an earlier version had in by-id/. -errno. */
int pins_drop_old_ids(void);
