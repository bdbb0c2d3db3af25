/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One table of the keys of perfpersistd.conf and events.d: name, type, member and default. Reading,
 * writing for --boot and the defaults all use it; tests/check-man.sh compares perfpersistd.conf and
 * its manual page with it. Must not know files.
 */
#pragma once

#include <stdio.h>

struct settings;

/* [daemon] fills a struct config, [namespace] a struct config_namespace, [event] and [trigger] a
 * struct dropin_draft. */
struct keys;
extern const struct keys daemon_keys, namespace_keys, event_keys, trigger_keys;

/* Sets all defaults; the caller owns texts. */
void keys_default(const struct keys *keys, void *into);

/* Stores a value. On a bad value or an unknown key, reports it and changes nothing. */
void keys_take(struct settings *s, const struct keys *keys, const char *key, const char *value,
	       void *into);

/* Prints a line for each key that differs from its default, except user names in [daemon]. */
void keys_print(FILE *f, const struct keys *keys, const void *from);
