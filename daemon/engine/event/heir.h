/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What keeps the names of rings true while they come and go one by one: links are made from the
 * aliases' records, and an event whose first name goes is handed down to its successor. Every step is
 * one that heir_recover() can go on from.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/alias.h"

/* Makes the links of an alias whose record is in the directory `path`. -errno. */
int heir_link(const char *path, const struct alias *a);

/* The event at `path` loses its name to successors[0], to whose place the directory moves. */
int heir_succeed(const char *path, const struct pp_event *event, const struct alias *successors,
		 size_t n, uid_t broker, struct failure *f);

/* Makes the links that are missing: by-id, and those of aliases. -errno. */
int heir_mend(void);

/* Finishes what was left half-done; then makes links as heir_mend() does, removes those that lead
 * nowhere, and gives files to whom they belong. -errno. */
int heir_recover(uid_t broker);
