/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Settings files in the style of systemd: [SECTION], KEY=VALUE, and comments that begin with # or
 * ;. A comment may also follow a value, after a blank and a ; outside quotes. Must not know which
 * sections and keys exist.
 */
#pragma once

#include <stdio.h>

#include "proto/macro.h"

#define SETTINGS_FILE_MAX (1UL << 20) /* bytes of a file */
#define SETTINGS_LINE_MAX 4095	      /* bytes of a line */

struct settings {
	const char *path; /* for messages */
	FILE *complaints;
	/* A section begins. NULL: its name cannot be read. */
	void (*section)(struct settings *s, const char *name);
	void (*key)(struct settings *s, const char *key, const char *value);
	void *userdata;

	char in[SETTINGS_LINE_MAX + 1]; /* the section, for messages */
	unsigned line;			/* the current line */
	unsigned faults;		/* complaints so far */
	int error;			/* -ENOMEM: from section or key */
};

/* Reports "PATH:LINE: …". */
void settings_complain(struct settings *s, const char *fmt, ...) _printf_(2, 3);

/* Parses a text. Malformed lines are reported and skipped. */
void settings_parse(struct settings *s, const char *text, size_t size);

/* Reads a whole file, which must be a regular one. 0; -EINVAL (not a regular file); -EFBIG;
 * -errno. */
int settings_read(int fd, char **ret, size_t *ret_size);
