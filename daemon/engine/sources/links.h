/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes an event's programs run: the entry of each source, and its links, which hold it. Pinned as
 * "linkS" (source S, all CPUs) or "linkS-CPU"; links that others made: see adopted.h; those of tasks: see
 * bound.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/programs.h"
#include "daemon/engine/sources/sources.h"

/*
 * Loads the entries of all sources, links them on these CPUs, and pins the links in the draft: from
 * then on all sources whose slots are full record. Logs members of globs that cannot be attached,
 * and marks them in `out` (s->n elements): if there are any the event must be made again without
 * them. Messages in *f.
 */
int links_create(const struct sources *s, const struct programs *p, const struct pp_cpumask *cpus,
		 struct pins_draft *draft, bool *out, struct failure *f);

/* Loads the entry of the only source, to be linked by others (adopted.h): *ret is the caller's. */
int links_entry(const struct sources *s, const struct programs *p, int *ret, struct failure *f);

/* Pins the links of the event at `path` in another draft, too. */
int links_carry(const char *path, struct pins_draft *draft);

/* The same for those of counters, beside their successors: with PINS_FORMER. */
int links_carry_former(const char *path, struct pins_draft *draft);

/* Ends these counters, whose slots do nothing any more, if there are any. -errno. */
int links_drop_former(const char *path);

/*
 * Finds out from the pins at `path` whether an earlier engine made them, when each system call had
 * a slot and a link of its own, on syscalls:*. Such events stay that way; the sources say so.
 */
void links_recognize(struct sources *s, const char *path);

/*
 * The kernel's ids of the entries whose misses it counts, from the links at `path`; *ret is for
 * free(3).
 */
int links_counted(const struct sources *s, const char *path, uint32_t **ret, size_t *ret_n);

/*
 * Attaches the counters on these CPUs, again where they were before, and pins the links in the
 * event's directory, or in a draft. Those of tasks stay as they are. Removes the CPUs from *cpus that
 * turn out to be offline, or where a counter cannot be attached: then the others are tried all the
 * same, and -errno is that of the first, with its message in *f.
 */
int links_renew(const struct sources *s, const struct programs *p, const char *path,
		struct pp_cpumask *cpus, struct failure *f);

/*
 * Restricts `cpus` to those on which any of the sources counts (a PMU may count on only one CPU of
 * each package); it may become empty. 0, or -errno with a message.
 */
int links_cpus(const struct sources *s, struct pp_cpumask *cpus, struct failure *f);

/* The same for sources as meta has them: 0 or -errno. */
int links_parsed_cpus(const struct pp_parsed *parsed, struct pp_cpumask *cpus);
