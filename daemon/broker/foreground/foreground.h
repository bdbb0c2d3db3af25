/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where there is no systemd: makes, as root, what the units would have made. The instance's
 * directory and lock, all sockets, and the launcher that runs engine, dumper and keeper.
 */
#pragma once

#include <sys/types.h>

struct foreground {
	int lock;    /* held while anything of this instance runs */
	int control; /* listening; the caller takes it */
	int alive;   /* closing it ends the launcher */
	pid_t launcher;
};

#define FOREGROUND_NONE                                            \
	{                                                          \
		.lock = -EBADF, .control = -EBADF, .alive = -EBADF \
	}

struct foreground_options {
	const char *instance;		      /* "": the system's own */
	const char *engine, *dumper, *keeper; /* paths, or NULL to look for them */
	uid_t uid;			      /* the broker's, the dumper's and the keeper's */
	gid_t gid;
};

/* 0; -errno (logged, with what to do). */
int foreground_start(const struct foreground_options *options, struct foreground *ret);

/* Ends the launcher and waits for it; a keeper that has something to keep goes on. Does nothing to
 * an empty one. */
void foreground_done(struct foreground *f);
