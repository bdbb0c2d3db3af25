/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a command for each snapshot in the spool, once; again where it failed. Which snapshots are done
 * is remembered by an empty file of the same name in a directory of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hook_options {
	const char *directory; /* the spool */
	char **command;	       /* gets the path as one more argument */
	uint64_t timeout;      /* ns; then it is killed, with its process group */
	bool once;	       /* for the snapshots that are there, and no more */
};

/*
 * Until a signal comes (SIGINT, SIGTERM). New snapshots come before those whose command has failed, so
 * each waits for one command at most, and for new ones before it. Returns an exit code; has complained
 * if it is not EXIT_OK.
 */
int hook(const struct hook_options *options);
