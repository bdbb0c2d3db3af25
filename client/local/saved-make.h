/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A save that is being made: a directory under another name, until it is whole and on the disk.
 * Knows nothing of events.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "client/local/saved-write.h"

struct saving {
	char path[PATH_MAX]; /* what it will be */
	const char *name;    /* in path */
	char temp[NAME_MAX + 1];
	int parent_fd;
	int fd; /* of temp; locked */
	bool done;
};

/* In the place of an instance, by the time; sweeps up what others left there. 0 or -errno. */
int saving_begin(const char *instance, struct saving *ret);

/* At a path where nothing is yet. */
int saving_begin_at(const char *path, struct saving *ret);

/* The directory of an event; *ret_fd is the caller's to close. -EEXIST: it was made before. */
int saving_event_dir(struct saving *s, const struct perfpersist_info *info, int *ret_fd);

/* Writes everything to the disk and gives the directory its name. */
int saving_finish(struct saving *s);

/* One sentence on what could not be written; returns error. */
int saving_failed(const struct saving *s, const char *what, int error);

/* What was not finished is removed. */
void saving_done(struct saving *s);
