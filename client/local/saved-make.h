/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A save that is being made: a directory under a temporary name, until it is complete and on the
 * disk. Knows nothing of events. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "client/local/saved-write.h"

struct saving {
	char path[PATH_MAX]; /* final path */
	const char *name;    /* in path */
	char temp[NAME_MAX + 1];
	int parent_fd;
	int fd; /* of temp; locked */
	bool done;
	bool is_fixed; /* no other place can be chosen */
};

/* Begins a save in the instance's place, named by the time; removes leftovers of others. 0 or
 * -errno. */
int saving_begin(const char *instance, struct saving *ret);

/* Likewise in another directory of that kind. */
int saving_begin_in(const char *place, struct saving *ret);

/* Begins a save at a path that must not exist. */
int saving_begin_at(const char *path, struct saving *ret);

/* Makes the directory of an event; the caller closes *ret_fd. -EEXIST: it was made before. */
int saving_event_dir(struct saving *s, const struct perfpersist_info *info, int *ret_fd);

/* Syncs everything to the disk and gives the directory its name. */
int saving_finish(struct saving *s);

/* Sets the error message for a failed write; returns error. */
int saving_failed(const struct saving *s, const char *what, int error);

/* Removes an unfinished save. */
void saving_done(struct saving *s);
