/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the broker takes from the registry's tree of pins: a CPU's ring as a descriptor, and
 * the counts that the stat file shows. Both as they are at the moment of asking; nothing is
 * kept.
 */
#ifndef PP_BROKER_TREE_H
#define PP_BROKER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptor of the frozen map that is the ring of this CPU, CLOEXEC, the caller's. -errno. */
int tree_ring_open(const char *registry, const char *ns, const char *name, unsigned cpu);

struct tree_stat {
	uint64_t records, bytes, missed;
	bool missed_unknown;
};

/* The totals. 0; -EBADMSG (not what a stat file says); another -errno of opening or reading. */
int tree_stat_read(const char *registry, const char *ns, const char *name, struct tree_stat *ret);

#endif
