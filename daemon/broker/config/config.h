/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration: the checked contents of perfpersistd.conf, with defaults for the rest. Names
 * of users and groups become numbers here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon/broker/edge/policy.h"

#define CONFIG_GROUP_OF_DAEMON UINT32_MAX /* a namespace's group until config_resolve sets it */

struct settings;

struct config_namespace {
	char name[PP_NAME_SIZE];
	uint32_t owner, group, mode;
	enum namespace_live live;
	enum namespace_fire fire;
	uint64_t max_memory, max_events; /* UINT64_MAX: the limit for any namespace */
	bool faulty;  /* a section of it was left out: its rights and limits stay as they are */
	bool written; /* by the daemon itself: files that people write take precedence */
};

struct config {
	char *path;
	char *user, *group; /* as written */
	uid_t uid;	    /* the broker's own; config_resolve sets these three */
	gid_t gid;
	gid_t ns_group; /* of namespaces made on demand */
	uint64_t max_connections, max_connections_per_user;
	uint64_t max_requests, max_requests_per_user; /* the first: per connection */
	uint64_t max_events, max_events_per_namespace, max_events_per_user;
	uint64_t max_programs, max_programs_per_user;
	uint64_t max_on_tracepoint, max_on_tracepoint_per_user; /* programs; root is exempt */
	uint64_t max_sample_rate_per_user;			/* Hz on a CPU; root is exempt */
	uint64_t max_memory, max_memory_per_namespace, max_memory_per_user; /* bytes */
	uint64_t max_copies;						    /* bytes, per user */
	uint64_t max_buffer; /* bytes of one CPU's ring */
	enum policy_who makers;
	enum policy_who probers;
	enum policy_who programmers;
	enum policy_who stack_users;
	enum policy_who tracers; /* of AUX areas */
	bool share;		 /* share equal events, unless the request says otherwise */
	bool keep_events;	 /* when the daemon ends */
	bool sideband;		 /* record names and maps of processes while anything records */
	uint64_t max_sideband;	 /* bytes of sideband */
	struct config_namespace *namespaces;
	size_t n_namespaces;
};

/* "/etc/perfpersist[-INSTANCE]/perfpersistd.conf". 0; -EINVAL; -ENAMETOOLONG. */
int config_path(const char *instance, char *buf, size_t size);

/*
 * Reads the file. A missing file counts as empty, unless required. Each fault goes to `complaints`
 * as one line, with file and line number. 0; -EINVAL (reported); another -errno (reported) of
 * reading; -ENOMEM.
 */
int config_load(const char *path, bool required, FILE *complaints, struct config **ret);

/* The same for a text in memory. path: for messages. */
int config_parse(const char *path, const char *text, size_t size, FILE *complaints,
		 struct config **ret);

/* Finds User= and Group=. 0; -EINVAL (reported: no such user or group, or root). */
int config_resolve(struct config *c, FILE *complaints);

/* Gives the daemon's group, which config_resolve finds, to namespaces without one. */
void config_resolve_namespaces(struct config *c);

/* The namespace of this name, or NULL. */
struct config_namespace *config_namespace(const struct config *c, const char *name);

/* Adds a namespace with the defaults. name is valid. NULL: no memory. */
struct config_namespace *config_add_namespace(struct config *c, const char *name);

/* Also for the files of events.d. The first returns NAME if the section is [namespace NAME], else
 * NULL; the second says whether a namespace can have this name, and reports it if not. */
const char *config_section_namespace(const char *section);
bool config_take_name(struct settings *s, const char *name);

int config_copy(const struct config *from, struct config **ret); /* 0; -ENOMEM */
void config_free(struct config *c);
void cleanup_config(struct config **c);
