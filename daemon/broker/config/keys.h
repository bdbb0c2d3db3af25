/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keys of perfpersistd.conf and events.d, as one table: what each is named, what its value can
 * be, where that is kept, and what it is if nothing is said. What is read, what --boot writes and
 * what there is without a file come from it; tests/check-man.sh holds perfpersistd.conf and its
 * manual page against it. Must not know files.
 */
#pragma once

#include <stdio.h>

struct settings;

/* Those of [daemon] go into a struct config, those of [namespace] into a struct config_namespace,
 * those of [event] into a struct dropin_draft. */
struct keys;
extern const struct keys daemon_keys, namespace_keys, event_keys;

/* What there is without a word; texts are the caller's. */
void keys_default(const struct keys *keys, void *into);

/* Takes a value; or complains of it, or that the section has no such key, and changes nothing. */
void keys_take(struct settings *s, const struct keys *keys, const char *key, const char *value,
	       void *into);

/* A line for each that is not as it is without a word; names of users in [daemon] are left out. */
void keys_print(FILE *f, const struct keys *keys, const void *from);
