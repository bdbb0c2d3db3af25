/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration: what perfpersistd.conf says, checked, with defaults for what it does
 * not say. Names of users and groups become numbers here.
 */
#ifndef PP_BROKER_CONFIG_H
#define PP_BROKER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon/broker/policy.h"

struct config_namespace {
	char name[PP_NAME_SIZE];
	uint32_t owner, group, mode;
	bool has_group; /* else the daemon's */
};

struct config {
	char *path;
	char *user, *group; /* as written */
	uid_t uid;	    /* the broker's own; config_resolve sets these three */
	gid_t gid;
	gid_t ns_group; /* of namespaces made on demand */
	uint64_t max_connections, max_connections_per_user, max_requests, max_events;
	uint64_t max_buffer; /* bytes of one CPU's ring */
	enum policy_makers makers;
	struct config_namespace *namespaces;
	size_t n_namespaces;
};

/* "/etc/perfpersist[-INSTANCE]/perfpersistd.conf". 0; -EINVAL; -ENAMETOOLONG. */
int config_path(const char *instance, char *buf, size_t size);

/*
 * Reads the file; one that is not there is an empty one, unless required. Everything wrong
 * with it is told to `complaints`, a sentence a line, with file and line.
 * 0; -EINVAL (told); another -errno (told) of reading; -ENOMEM.
 */
int config_load(const char *path, bool required, FILE *complaints, struct config **ret);

/* Finds User= and Group=. 0; -EINVAL (told: no such user or group, or root). */
int config_resolve(struct config *c, FILE *complaints);

void config_free(struct config *c);
void cleanup_config(struct config **c);

#endif
