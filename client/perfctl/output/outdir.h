/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory and an archive of it that appear whole or not at all: both are made in a hidden directory
 * beside their place, and get their names when they are complete.
 *
 * The place may be a stranger's, who can rename and replace what is in it at any time. So everything goes
 * through descriptors of directories that only we may write to, never again through a path.
 */
#pragma once

#include <stdio.h>

struct outdir {
	int parent;		/* the place; -EBADF: nothing is open */
	int top;		/* the hidden directory, mode 0700; it gets the archive, too */
	int dir;		/* NAME in it, mode 0700 */
	char *name;		/* last part of the path */
	char *hidden, *archive; /* last parts of the others: NAME.tar.gz */
};
#define OUTDIR_NONE ((struct outdir){ .parent = -EBADF, .top = -EBADF, .dir = -EBADF })

/* -EEXIST: path or its archive is there already; -EINVAL: path names no directory; or an error of open(2),
 * mkdir(2). */
int outdir_open(const char *path, struct outdir *ret);

/* A file of the directory, mode 0600, to append to. -errno. */
int outdir_append(const struct outdir *o, const char *name);
/* The same for fclose(3). NULL with errno. */
FILE *outdir_append_stream(const struct outdir *o, const char *name);
/* The archive, empty. -errno. */
int outdir_archive(const struct outdir *o);

/* -EEXIST: somebody has made one of the two meanwhile; -errno. Nothing of it is there then. */
int outdir_commit(struct outdir *o);

/* Removes what was not committed. Also for OUTDIR_NONE. */
void outdir_done(struct outdir *o);
