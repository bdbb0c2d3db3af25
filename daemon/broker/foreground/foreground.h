/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Without systemd: creates, as root, everything the units would create. These are the instance's
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
	const char *instance;		      /* "": the default instance */
	const char *engine, *dumper, *keeper; /* paths, or NULL to look for them */
	uid_t uid;			      /* for the broker, the dumper and the keeper */
	gid_t gid;
};

/* 0; -errno (logged, with advice). */
int foreground_start(const struct foreground_options *options, struct foreground *ret);

/* Ends the launcher and waits for it; a keeper with sideband in it goes on. No effect on an empty
 * struct. */
void foreground_done(struct foreground *f);
