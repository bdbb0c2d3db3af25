/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry: a bpffs in which each event is a directory of pins. Owns names, modes and the order
 * of steps that makes creation and deletion atomic; does not know what is pinned.
 *
 * All paths are relative to the registry: pins_open() makes it the working directory.
 *   +new-N/            a draft: N counts up, nobody looks inside
 *   by-id/ID/          an event; one rename adds, replaces or removes it
 *   NAMESPACE/EVENT    a symlink to it: a name, whose record is in the directory (name.h)
 *   +tape-ID/          rings that a trigger's firing replaced, to be saved (tapes.h)
 *   +kept-ID/          likewise, to be saved if somebody asks for it
 *   +frozen-ID         an event that a trigger has frozen, to be saved
 *   +del-ID/           being reaped; keeps `meta`, and `claimed`, as long as somebody has its rings
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/order.h"

#define PINS_PATH_SIZE (2 * PP_NAME_SIZE + 64)

/* A new event that is being made. */
struct pins_draft {
	char path[PINS_PATH_SIZE]; /* "+new-N"; empty: none */
	gid_t group;
	mode_t mode; /* of the namespace */
};

/* Mounts a bpffs there if none is mounted, and makes it the working directory. -errno. */
int pins_open(const char *registry);

/*
 * At start: drafts become orphans. (One with `meta` may have been an event whose change was
 * interrupted.) Orphans keep no counters or breakpoints. -errno.
 */
int pins_recover(void);

/* Removes empty namespaces. -errno. */
int pins_sweep(void);

/* A new id, above all earlier ones of this registry. -errno. */
int pins_next_id(uint64_t *ret);

/* An fd of a pin in a directory, the caller's; or -errno. */
int pins_get(const char *path, const char *leaf);
/* The same for a map of which user space may only look at elements. */
int pins_get_to_read(const char *path, const char *leaf);

/* Starts a draft: makes its directory, invisible to all but root. */
int pins_begin(const struct pp_spec *spec, struct pins_draft *ret);

/* Pins fd in the draft as leaf, with this owner, group and mode. */
int pins_add(struct pins_draft *d, int fd, const char *leaf, uid_t owner, gid_t group, mode_t mode);

/*
 * The step that makes it an event: renamed to by-id/ID. Then it gets the link of its name, whose
 * record is in the draft. -EEXIST: the name is taken. On success the draft is empty.
 */
int pins_commit(struct pins_draft *d, const struct pp_spec *spec, uint64_t id);

/* Removes a draft that was not committed, completely. May take a grace period for each tracepoint
 * that it has a link on. */
void pins_abandon(struct pins_draft *d);

/* The same for a draft with links of others: it becomes "+del-ID" with these alone, for the reaper. */
void pins_discard(struct pins_draft *d);

/*
 * Pins fd atomically in the directory of an existing event, or in the registry itself ("."),
 * replacing a pin of that name.
 */
int pins_put(const char *path, int fd, const char *leaf, uid_t owner, gid_t group, mode_t mode);

/* Gives one of the instance's pins to that user, and to root's group, so that the engine finds it
 * again without CAP_DAC_OVERRIDE. -errno. */
int pins_own(const char *leaf, uid_t owner, mode_t mode);

/* Removes a pin, and frees the processor registers that only it held (see pins-walk.c). */
void pins_drop(const char *path, const char *leaf);

/* Removes from an event's directory the pins of all other CPUs ("cpuN", "linkS-N"), and what an
 * interrupted pins_put() left. -errno. */
int pins_keep_cpus(const char *path, const struct pp_cpumask *cpus);

/*
 * The step of a change: the draft and the event's directory at `path` change places; then the old
 * directory becomes "+del-<orphans_id>", for orphans_add() and the reaper, or, if it has PINS_FIRED,
 * "+tape-<orphans_id>", or with PINS_KEPT, too, "+kept-<orphans_id>". The records of names and
 * PINS_STOPPED stay with the event; the new directory gets the namespace's rights. On success the draft
 * is empty. -errno.
 */
int pins_replace(struct pins_draft *d, const char *path, uint64_t orphans_id);

/* Whether there is a pin of that name in the directory. */
bool pins_has(const char *path, const char *leaf);

/* Pins of a map with a firing (tapes_mark()). */
#define PINS_FIRED "fired"     /* makes a replaced or removed directory a tape, */
#define PINS_KEPT "kept"       /* and this one that is to be saved if somebody asks for it */
#define PINS_STOPPED "stopped" /* of an event that a trigger has paused */

/* Pinned in an event that is given back: its rings are not retired. Stays with `meta`. */
#define PINS_CLAIMED "claimed"

/* In front of the pins of counters that others are about to replace, and of their slots. */
#define PINS_FORMER "former-"

/* What a pin of an event is, by its name. "linkS-CPU" and "linkS+K" hold a counter or breakpoint; all other links
 * are for all CPUs (links.c, adopted.h). */
bool pins_is_link(const char *leaf);
bool pins_is_counter(const char *leaf); /* also a former one */
bool pins_is_programs(const char *leaf);

/* "by-id/ID", the directory of the event whose rings have this id. */
void pins_event(uint64_t id, char ret[PINS_PATH_SIZE]);

/* Whether the name is taken. */
bool pins_exists(const char *ns, const char *name);

/*
 * The step of a deletion: renamed out of sight, to "+del-<orphans_id>", or to that of a tape, as in
 * pins_replace(). Its counters and breakpoints are gone then; the reaper removes the rest, which may block for
 * long. -ENOENT.
 */
int pins_remove(const char *path, uint64_t orphans_id, char ret_gone[PINS_PATH_SIZE]);

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

/* Makes a name a symlink to the directory `path`, replacing another symlink; makes its namespace if
 * necessary. -EEXIST: something else has the name; -errno. */
int pins_link(const struct pp_spec *name, const char *path);

/* Removes the symlink "NAMESPACE/EVENT", and its namespace with the last one. Leaves anything but
 * symlinks. -errno. */
int pins_unlink(const char *name);

/* Gives an event's files and directory the rights of a namespace: `broker` owns info and stat. */
int pins_grant(const char *path, uid_t broker, const struct pp_spec *rights);

/* The same for the namespace's own directory. -ENOENT. */
int pins_grant_namespace(const struct pp_spec *rights);

/* ── walking ────────────────────────────────────────────────────────────────────────────── */

/* Runs fn for the directory of each event, until it returns < 0; returns that, or 0. */
int pins_foreach(int (*fn)(const char *path, void *userdata), void *userdata);

/* The same for each symlink in a namespace. */
int pins_foreach_link(int (*fn)(const char *path, void *userdata), void *userdata);

/* The same for each pin ("meta", …) in a directory. */
int pins_foreach_leaf(const char *path,
		      int (*fn)(const char *path, const char *leaf, void *userdata),
		      void *userdata);

/* ── orphans ────────────────────────────────────────────────────────────────────────────── */

void pins_orphans_path(uint64_t id, char ret[PINS_PATH_SIZE]);

/* Runs fn for each "+del-ID", until it returns < 0; returns that, or 0. */
int pins_foreach_orphans(int (*fn)(const char *path, uint64_t id, void *userdata), void *userdata);

/* The same for each "+tape-ID" and "+kept-ID". */
int pins_foreach_tape(int (*fn)(const char *path, uint64_t id, void *userdata), void *userdata);

void pins_tape_path(uint64_t id, char ret[PINS_PATH_SIZE]);

/* The tape becomes "+del-ID", for the reaper. -ENOENT; -errno. */
int pins_release_tape(uint64_t id);

/*
 * A symlink "+frozen-ID" to the event at `path`, so that what watches the registry sees that there is
 * something to save: see event_thaw(). A new engine begins without any, and the broker has the events
 * turned again. 0, also if it is there; -errno. The other also if it is not there.
 */
int pins_mark_frozen(const char *path);
void pins_unmark_frozen(const char *path);

/* Removes the meta of orphans, with the directory once it is empty. -errno. */
int pins_forget(uint64_t id);

/*
 * Removes everything in "+del-*" except `meta`, after calling `first` for each; may block (a
 * tracepoint's link: an RCU grace period). A directory without `meta` is removed, too. -errno: of one that
 * could not be removed; the others are.
 */
int pins_reap(void (*first)(const char *path));

/* ── earlier versions, whose directories had the place of the event's first name ─────────── */

/* Likewise for each directory in a namespace. */
int pins_foreach_old(int (*fn)(const char *path, void *userdata), void *userdata);

/* Makes the directory "NAMESPACE/EVENT" by-id/ID, and its name a link to that. -errno. */
int pins_move(const char *name, uint64_t id);
