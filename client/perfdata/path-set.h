/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Paths, each once, or once for each file that was there. Strangers choose them: they cannot choose
 * where they are looked for. Knows nothing of what they lead to. */
#pragma once

#include "client/perfdata/perfdata-output.h"

struct path_entry {
	uint64_t hash;
	uint64_t device, inode; /* 0: whatever is there */
	uint64_t time;		/* the owner's */
	size_t size;		/* of all, with the path and padding */
	char path[];
};

struct path_set {
	struct blob entries; /* failed: the set is not whole */
	size_t *places;	     /* in entries, + 1; 0: free */
	size_t n, cap;
};

/* NULL: it is not there. Entries stay in their places until the next one is added. */
struct path_entry *path_set_find(const struct path_set *s, const char *path, uint64_t device,
				 uint64_t inode);
/* One that is not there. NULL: no memory. */
struct path_entry *path_set_add(struct path_set *s, const char *path, uint64_t device,
				uint64_t inode);
/* In the order in which they came; after NULL the first one. NULL: there is no more. */
struct path_entry *path_set_next(const struct path_set *s, const struct path_entry *e);
void path_set_done(struct path_set *s);
