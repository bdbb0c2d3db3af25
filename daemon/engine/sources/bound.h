/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Links of counters in the threads of a process, pinned as "linkS+K": source S, K counting them. They belong to no
 * CPU. What the threads create later inherits the perf events, with their programs, unless the target says
 * otherwise; so nothing is attached again, and nothing could be: who has inherited one already?
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/sources.h"

/*
 * Attaches each source's entry to each thread, and pins the links in the draft; counts them in s->binding, whose
 * maximum they must not exceed. Messages in *f: -E2BIG; -ESRCH: the task has ended; -EAGAIN: it made threads
 * meanwhile, of which nobody can tell whether they have inherited the perf events, or forked between a perf event and
 * its link. The links of this try go with the draft, and another try may succeed.
 */
int bound_link_threads(const struct sources *s, const int *entries, struct pins_draft *draft,
		       struct failure *f);
