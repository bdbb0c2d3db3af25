/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files with code, one for each path and build id, or device and inode. */
#pragma once

#include "client/perfctl/trace/process-table.h"
#include "client/perfctl/trace/process.h"

struct dsos {
	struct dso_entry **entries;
	size_t n;
	struct keytable by_key; /* the newest entry of each hash */
};

/* The file of that path and build id; without a build id: the one with the announced build id, or
 * else the one of that device and inode (0: unknown). *ret lives as long as the dsos. -ENOMEM. */
int dsos_get(struct dsos *d, const char *path, const uint8_t *build_id, size_t size,
	     uint64_t device, uint64_t inode, struct dso **ret);
/* From now on, files of this path without a build id have this one. -ENOMEM. */
int dsos_announce(struct dsos *d, const char *path, const uint8_t *build_id, size_t size);
struct dso *dsos_at(struct dsos *d, size_t i);
void dsos_done(struct dsos *d);
