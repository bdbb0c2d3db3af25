/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the broker takes from the registry's tree of pins: rings and the like as descriptors, and
 * the counts that the stat file shows. Both as they are at the moment of asking; nothing is
 * kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/hotplug.h"
#include "proto/protocol.h"

/* Descriptor of the frozen map that is the ring of this CPU, CLOEXEC, the caller's. origin: of
 * pp_event. -errno. */
int tree_ring_open(const char *registry, uint64_t origin, unsigned cpu);

/* Bytes to map of that descriptor, as the map itself says. 0; -EBADMSG (not a ring's); -errno. */
int tree_ring_size(int fd, uint32_t *ret);

/* As tree_ring_open, of the catalog of an event of several sources. */
int tree_catalog_open(const char *registry, uint64_t origin);

/* Likewise of the ring buffer of wakeups. -ENOENT: no event wakes readers yet. */
int tree_wakeups_open(const char *registry);

/* The map of CPUs' states (daemon/hotplug.h), which we may look into and no more. -ENOENT: this
 * kernel has no such thing. */
int tree_cpus_open(const char *registry);

/* What it says of a CPU. 0; -ENOENT (it has no such CPU); -errno. */
int tree_cpus_read(int fd, unsigned cpu, struct pp_cpu_state *ret);

struct tree_stat {
	uint64_t records, bytes, limited, missed;
	enum pp_missed missed_unknown;
};

/* The program that counts many events (daemon/totals.h), the caller's. -ENOENT: there is no event
 * yet; -errno. */
int tree_totals_open(const char *registry);

/* By that program, of the event's rings of this set; no other file is opened. -ENOENT: it knows
 * nothing of them, and will, once the stat file was read; -errno. */
int tree_totals_read(int program, uint64_t origin, uint32_t set, struct tree_stat *ret);

/* The totals. 0; -EBADMSG (not what a stat file says); another -errno of opening or reading. */
int tree_stat_read(const char *registry, uint64_t origin, struct tree_stat *ret);
