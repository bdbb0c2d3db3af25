/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of settings, as systemd and many others have them: [SECTION], KEY=VALUE, and comments that
 * begin with # or ;. A comment may also follow a value, with a blank and a ; that are not within
 * quotes. Must not know which sections and keys there are.
 */
#pragma once

#include <stdio.h>

#include "proto/macro.h"

#define SETTINGS_FILE_MAX (1UL << 20) /* bytes of a file */
#define SETTINGS_LINE_MAX 4095	      /* bytes of a line */

struct settings {
	const char *path; /* for people */
	FILE *complaints;
	/* A section begins, if only to say that one with no name that can be read does (NULL). */
	void (*section)(struct settings *s, const char *name);
	void (*key)(struct settings *s, const char *key, const char *value);
	void *userdata;

	char in[SETTINGS_LINE_MAX + 1]; /* the section, for people */
	unsigned line;			/* that is being read */
	unsigned faults;		/* complaints so far */
	int error;			/* -ENOMEM: of section or key */
};

/* "PATH:LINE: …", for people. */
void settings_complain(struct settings *s, const char *fmt, ...) _printf_(2, 3);

/* Goes through a text. What is wrong with its form is complained about and passed over. */
void settings_parse(struct settings *s, const char *text, size_t size);

/* Reads a whole file, which must be a regular one. 0; -EINVAL (it is none); -EFBIG; -errno. */
int settings_read(int fd, char **ret, size_t *ret_size);
