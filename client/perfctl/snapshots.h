/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by `perfctl snapshots` and `perfctl coredump`: where the snapshots are, and one of them. */
#pragma once

#include "client/perfctl/events/spool.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"

/* The options of all of these. */
struct snapshots {
	const char *directory;
	char path[256]; /* of the directory */
};
extern const struct verb_option snapshots_options[];

/* Fills path. Returns an exit code; has complained if it is not EXIT_OK, like the next one. */
int snapshots_place(struct call *call, struct snapshots *s);

/* All of them, the oldest first; *ret is for free(3). */
int snapshots_list(const struct snapshots *s, struct spooled **ret, size_t *ret_n);

/* The path of a file; the caller frees it. NULL: no memory. */
char *snapshots_path(const struct snapshots *s, const struct spooled *f);

/* An object with all that its name tells. */
void snapshots_json(struct json *j, const struct snapshots *s, const struct spooled *f);

/* snapshots-services.c */
extern const struct verb verb_collect_snapshots, verb_exec_snapshots;
