/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The place of an instance's saves, and their names: their times, in a form that sorts. Does not
 * know their contents. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define SAVED_NAME_SIZE 24 /* "2026-11-21T23-40-12Z" with its NUL, rounded up */

/* "/var/lib/perfpersist[-INSTANCE]/saved". 0; -EINVAL and -ENAMETOOLONG, with an error message. */
int saved_place(const char *instance, char *buf, size_t size);

/* "/var/lib/perfpersist[-INSTANCE]/checkpoints": of the checkpoints of this boot and of the saves that
 * those of earlier ones became. */
int checkpoint_place(const char *instance, char *buf, size_t size);

#define SAVED_PREVIOUS_BOOT "previous-boot" /* stands for the newest of these */

/* "2026-11-21T23-40-12Z" */
void saved_name(time_t t, char buf[static SAVED_NAME_SIZE]);
bool saved_name_is_valid(const char *name);
time_t saved_name_time(const char *name); /* of a valid name */

struct saved_name {
	char s[SAVED_NAME_SIZE];
};

/* All saves in an open directory, oldest first; *ret is for free(3). 0 or -errno. */
int saved_names(int dir_fd, struct saved_name **ret, size_t *ret_n);
