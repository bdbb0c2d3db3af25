/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The registry's links from ids to names (by-id/). Knows nothing of what the names lead to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/ring.h"

struct event_id {
	uint64_t id;
	char ns[PP_NAME_SIZE];
	char name[PP_NAME_SIZE];
};

/* All links, read when they are first asked for; one array. */
struct ids {
	struct event_id *v;
	size_t n, cap;
	int read; /* 1: they are there */
};

void ids_done(struct ids *ids);

/* The id that leads to NS/NAME: 0; -ENOENT; -errno. */
int ids_find(struct ids *ids, const char *registry, const char *ns, const char *name,
	     uint64_t *ret);

/* The names that one id leads to: 0; -ENOENT; -EBADMSG (no link of ours); -errno. */
int ids_read_one(const char *registry, uint64_t id, struct event_id *ret);
