/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry on disk: a bpffs in which each event is a directory of pins. Owns names,
 * modes and the order of steps that makes creation and deletion atomic; what is pinned is
 * not its business.
 *
 * All paths are relative to the registry: pins_open() makes it the working directory.
 *   +new-N/            being made: N counts up, nobody looks inside
 *   NAMESPACE/EVENT/   there; arrives and leaves by one rename
 *   +del-N/            being reaped
 *   by-id/ID           a convenience; made anew by pins_link_id() if it is missing
 */
#ifndef PP_PINS_H
#define PP_PINS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/order.h"

#define PINS_PATH_SIZE (2 * PP_NAME_SIZE + 64)

/* An event that is being made. */
struct pins_draft {
	char path[PINS_PATH_SIZE]; /* "+new-N"; empty: none */
	gid_t group;
	mode_t mode; /* of the namespace */
};

/* Mounts a bpffs there if there is none, and goes in. -errno. */
int pins_open(const char *registry);

/* Sweeps away what was half-made, ids that lead nowhere and empty namespaces. -errno. */
int pins_recover(void);

/* A new id: above all that were ever given in this registry. -errno. */
int pins_next_id(uint64_t *ret);

/* Starts a draft: its directory is there, and invisible to all but root. */
int pins_begin(const struct pp_spec *spec, struct pins_draft *ret);

/* Pins fd in the draft as leaf, with this owner, group and mode. */
int pins_add(struct pins_draft *d, int fd, const char *leaf, uid_t owner, gid_t group, mode_t mode);

/*
 * The one step that makes it an event: renamed into its namespace (made if it is not there).
 * -EEXIST: the name is taken. On success the draft is empty.
 */
int pins_commit(struct pins_draft *d, const struct pp_spec *spec, uint64_t id);

/* Removes a draft that was not committed; nothing of it stays. */
void pins_abandon(struct pins_draft *d);

/* The directory of the event with this id: "NAMESPACE/EVENT". -ENOENT. */
int pins_find(uint64_t id, char ret[PINS_PATH_SIZE]);

/* Makes an event findable by its id, if it is not. -errno. */
int pins_link_id(uint64_t id, const char *path);

bool pins_exists(const char *ns, const char *name);

/*
 * The one step that makes it none: renamed out of sight. Removing what is left, which may
 * block for long, is the reaper's work. -ENOENT.
 */
int pins_remove(const char *path, uint64_t id);

/* Runs fn for the directory of each event, until it returns < 0; returns that, or 0. */
int pins_foreach(int (*fn)(const char *path, void *userdata), void *userdata);

/*
 * Removes all "+del-*" directories, after `first` was called with each; may block (a
 * tracepoint's link: an RCU grace period).
 */
int pins_reap(void (*first)(const char *path));

#endif
