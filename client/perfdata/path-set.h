/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of paths, each once, or once for each file found there. Strangers choose the paths, but
 * cannot choose their hash buckets. Does not know the files. */
#pragma once

#include "client/perfdata/perfdata-output.h"

struct path_entry {
	uint64_t hash;
	uint64_t device, inode;	   /* 0: any file */
	uint64_t time, generation; /* the owner's */
	size_t size;		   /* of the entry, with path and padding */
	char path[];
};

struct path_set {
	struct blob entries; /* failed: the set is not whole */
	size_t *places;	     /* in entries, + 1; 0: free */
	size_t n, cap;
};

/* NULL: not in the set. Entries keep their places until the next one is added. */
struct path_entry *path_set_find(const struct path_set *s, const char *path, uint64_t device,
				 uint64_t inode);
/* Adds a path that is not in the set. NULL: no memory. */
struct path_entry *path_set_add(struct path_set *s, const char *path, uint64_t device,
				uint64_t inode);
/* In the order of insertion; after NULL the first one. NULL: the end. */
struct path_entry *path_set_next(const struct path_set *s, const struct path_entry *e);
void path_set_done(struct path_set *s);
