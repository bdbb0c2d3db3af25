/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Start of a server that gets its socket by the LISTEN_FDS convention. Does not know what it
 * serves. */
#pragma once

#include <getopt.h>
#include <stdint.h>

struct start {
	const char *program; /* "perfpersist-NOUN" */
	const char *usage;
	const struct option *options; /* its own, and `version` (V) and `help` (h) */
	/* Handles an own option: 0, or -EINVAL, logged. */
	int (*take)(int option, const char *argument, void *context);
};

/* Returns 0 to go on, 1 to exit with success, or -EINVAL. */
int start_options(const struct start *start, int argc, char **argv, void *context);

/* The argument of --broker-pid: 0, or -EINVAL, logged. */
int start_broker_pid(const char *text, uint32_t *ret);

/* The listening SOCK_SEQPACKET socket; -EINVAL: there is none, logged. */
int start_socket(const char *program);

/* For a server without rights: gives up gaining any, and keeps others from looking into it. `name`:
 * its name in the process list; started from a descriptor, it would have a number for a name. */
void start_without_rights(const char *name);
