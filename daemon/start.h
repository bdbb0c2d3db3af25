/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a server begins that is handed its socket in the LISTEN_FDS convention. Knows nothing of what
 * is served. */
#pragma once

#include <getopt.h>
#include <stdint.h>

struct start {
	const char *program; /* "perfpersist-NOUN" */
	const char *usage;
	const struct option *options; /* its own, and `version` (V) and `help` (h) */
	/* One of its own: 0, or -EINVAL, which the log was told of. */
	int (*take)(int option, const char *argument, void *context);
};

/* Returns 0 to go on, 1 to exit with success, or -EINVAL. */
int start_options(const struct start *start, int argc, char **argv, void *context);

/* The argument of --broker-pid: 0, or -EINVAL, which the log was told of. */
int start_broker_pid(const char *text, uint32_t *ret);

/* The listening SOCK_SEQPACKET socket; -EINVAL: there is none, which the log was told of. */
int start_socket(const char *program);

/* Of a server that has no rights and needs none: never any more, and nobody looks into it. `name`:
 * in the list of processes; started from a descriptor it would be called by its number. */
void start_without_rights(const char *name);
