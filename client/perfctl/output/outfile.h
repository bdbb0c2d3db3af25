/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that is there in whole or not at all: it is written without a name where the file system
 * can do that, else under a hidden one, and gets its name when it is done, in place of a file that
 * has it. "-" is stdout.
 */
#pragma once

#include <stdbool.h>

struct outfile {
	int fd;	      /* to be written; -EBADF: none is open */
	char *path;   /* that it will have; NULL: stdout */
	char *hidden; /* that it has; NULL: none */
};
#define OUTFILE_NONE ((struct outfile){ .fd = -EBADF })

/*
 * Mode 0600: what was recorded is not for everybody. -EISDIR, -EACCES, -ENOENT (its directory is not
 * there), -ENOTTY ("-" is a terminal), -EEXIST (there is something that is no file: a device, say),
 * or open(2)'s.
 */
int outfile_open(const char *path, struct outfile *ret);
bool outfile_is_stdout(const struct outfile *f);

/* It will have this name instead, in the same directory: path is f's from now on. */
void outfile_rename(struct outfile *f, char *path);

/* Gives it its name, and closes it. Not synced to the disk. -errno; the file is then gone. */
int outfile_commit(struct outfile *f);

/* Closes it, and what was written is gone. Fine after outfile_commit(), and of OUTFILE_NONE. */
void outfile_done(struct outfile *f);

/* Says in one sentence why it could not be opened or written; returns an exit code. */
int outfile_failed(const char *path, int error);
