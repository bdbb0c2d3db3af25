/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records of the registry's names (proto/name-record.h). Knows nothing of events. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/name-record.h"

/* All records, read when they are first asked for; one array. */
struct ids {
	struct pp_name_record *v;
	size_t n, cap;
	int read; /* 1: already read */
};

void ids_done(struct ids *ids);

/* The record of the name NS/NAME, or of that with an id; *ret points into ids: 0; -ENOENT; -errno. */
int ids_by_name(struct ids *ids, const char *registry, const char *ns, const char *name,
		const struct pp_name_record **ret);
int ids_by_id(struct ids *ids, const char *registry, uint64_t id,
	      const struct pp_name_record **ret);
