/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that appears complete or not at all: it is written without a name if the file system can
 * do that, otherwise under a hidden one. It gets its name when it is complete, and replaces a file
 * of that name. "-" is stdout.
 */
#pragma once

#include <stdbool.h>

struct outfile {
	int fd;	      /* open for writing; -EBADF: none */
	char *path;   /* final path; NULL: stdout */
	char *hidden; /* present name; NULL: none */
};
#define OUTFILE_NONE ((struct outfile){ .fd = -EBADF })

/*
 * Mode 0600: recorded data is not for everybody. -EISDIR, -EACCES, -ENOENT (its directory does not
 * exist), -ENOTTY ("-" is a terminal), -EEXIST (not a regular file: a device, for example, or a
 * link such as /dev/stdout), or an error of open(2).
 */
int outfile_open(const char *path, struct outfile *ret);
bool outfile_is_stdout(const struct outfile *f);

/* Changes the final name, in the same directory: f takes path over. */
void outfile_rename(struct outfile *f, char *path);

/* Gives the file its name and closes it. Not synced to the disk. -errno: the file is gone. */
int outfile_commit(struct outfile *f);
/* The same, and replaces nothing. -EEXIST: it is still there, and can get another name by outfile_rename(). */
int outfile_commit_new(struct outfile *f);

/* Closes the file and discards it if it was not committed. Also for OUTFILE_NONE. */
void outfile_done(struct outfile *f);

/* Prints why it could not be opened or written; returns an exit code. */
int outfile_failed(const char *path, int error);
