/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Templates among the files of events.d, as systemd has them among units: NAME@INSTANCE.conf, mostly
 * a symlink to NAME@.conf, in whose text %i stands for INSTANCE and %% for a percent sign. The
 * daemon expands them, and perfctl preset to know which events a file makes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PP_INSTANCE_SIZE 256 /* of a file's name */

/* The instance in a file's name, or path. False: it has none, or too long a one, and *buf is "". */
bool pp_file_instance(const char *path, char *buf, size_t size);

/*
 * Expands text. as_name: in the form that names of events have: each character that cannot be in one
 * becomes '_'. 0; -EINVAL: another character behind a %; -ENAMETOOLONG.
 */
int pp_expand(const char *text, const char *instance, bool as_name, char *buf, size_t size);
