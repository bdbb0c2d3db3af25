/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The broker's view of the registry's tree of pins: rings and the like as descriptors, and the
 * counts in the stat file. Every call reads the present state; nothing is cached.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/hotplug.h"
#include "daemon/trigger.h"
#include "proto/protocol.h"

/* The directory of the pins of an event (origin: from pp_event), or of a tape, in the registry. */
#define TREE_DIRECTORY_SIZE 64
const char *tree_event(uint64_t origin, char buf[TREE_DIRECTORY_SIZE]);
const char *tree_tape(uint64_t id, bool kept, char buf[TREE_DIRECTORY_SIZE]);

/* A CLOEXEC descriptor for the caller: the frozen map that is this CPU's ring, in that directory.
 * -errno. */
int tree_ring_open(const char *registry, const char *directory, unsigned cpu);

/* Size to map of that descriptor, from the map itself. 0; -EBADMSG (not a ring); -errno. */
int tree_ring_size(int fd, uint32_t *ret);

/* As tree_ring_open, for the catalog of an event with several sources. */
int tree_catalog_open(const char *registry, const char *directory);

/* As tree_ring_open, for the ring buffer of wakeups. -ENOENT: no event wakes readers yet. */
int tree_wakeups_open(const char *registry);

/* The same for the ring buffer of firings. -ENOENT: there was no trigger yet. */
int tree_firings_open(const char *registry);

/* What a trigger has done. 0; -errno. */
int tree_trigger_read(const char *registry, uint64_t origin, struct pp_trigger *ret);

/* As tree_ring_open, for a trigger's pairs: PP_PAIRS_SIZE bytes to be mapped. -ENOENT: it has none. */
int tree_pairs_open(const char *registry, uint64_t origin);

/* The map of CPU states (daemon/hotplug.h), which the broker can only look up. -ENOENT: this kernel
 * has no such map. */
int tree_cpus_open(const char *registry);

/* The state of a CPU. 0; -ENOENT (no such CPU in the map); -errno. */
int tree_cpus_read(int fd, unsigned cpu, struct pp_cpu_state *ret);

/* Its generation. The same for all CPUs if there is no such map: fd < 0. */
uint64_t tree_cpus_generation(int fd, unsigned cpu);

struct tree_stat {
	uint64_t records, bytes, limited, missed;
	enum pp_missed missed_unknown;
};

/* A descriptor for the caller: the program that counts events (daemon/totals.h). -ENOENT:
 * there is no event yet; -errno. */
int tree_totals_open(const char *registry);

/* Counts the event's rings of this set with that program, without opening another file. -ENOENT:
 * the program does not know the rings until the stat file is read once; -errno. */
int tree_totals_read(int program, uint64_t origin, uint32_t set, struct tree_stat *ret);

/*
 * The totals. 0; -EBADMSG (malformed stat file); another -errno of opening or reading. tree_count() asks the
 * program and keeps its descriptor in *totals, which the caller closes (negative at first). If that
 * does not know the event, the file is read, and the registry's present program kept: nobody has counted the event
 * yet, or an older engine made it, or the program was that of a registry that is gone.
 */
int tree_count(const char *registry, uint64_t origin, uint32_t set, int *totals,
	       struct tree_stat *ret);
int tree_stat_read(const char *registry, uint64_t origin, struct tree_stat *ret);
