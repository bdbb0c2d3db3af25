/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What makes an event's programs run: the entry of each source, and its links, which hold it.
 * Pinned as "linkS" (source S, everywhere) or "linkS-CPU".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/programs.h"
#include "daemon/engine/sources/sources.h"

/*
 * Loads the entries of all sources and links them on these CPUs, pinned in the draft: from there
 * on everything records whose slot is full. Members of globs that cannot be attached to are
 * logged and marked in `out`, of s->n elements: if there are any the event must be made anew
 * without them. Sentences in *f.
 */
int links_create(const struct sources *s, const struct programs *p, const struct pp_cpumask *cpus,
		 struct pins_draft *draft, bool *out, struct failure *f);

/* Pins those of the event at `path` in another draft, too. */
int links_carry(const char *path, struct pins_draft *draft);

/*
 * Looks at what is pinned at `path`: before system calls of one event shared an entry each had a
 * slot and a link of its own, on syscalls:*. What was made so stays so, and is told in the sources.
 */
void links_recognize(struct sources *s, const char *path);

/*
 * The kernel's ids of the entries whose misses it counts, of the links pinned at `path`; *ret is
 * for free(3).
 */
int links_counted(const struct sources *s, const char *path, uint32_t **ret, size_t *ret_n);

/*
 * Attaches what counts on these CPUs, anew where it was before, and pins the links in the event's
 * directory. CPUs that turn out to be offline are taken out of *cpus; on failure what was attached
 * stays. Sentences in *f.
 */
int links_renew(const struct sources *s, const struct programs *p, const char *path,
		struct pp_cpumask *cpus, struct failure *f);

/*
 * Narrows `cpus` down to those on which any of the sources counts (a PMU may count on one CPU of
 * each package only); it may become empty. 0, or -errno with a sentence.
 */
int links_cpus(const struct sources *s, struct pp_cpumask *cpus, struct failure *f);

/* The same for what is written down of the sources: 0 or -errno. */
int links_parsed_cpus(const struct pp_parsed *parsed, struct pp_cpumask *cpus);
