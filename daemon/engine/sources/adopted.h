/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Links that an event's creator has made, between the event's entry and perf events of its own. Pinned as
 * "link0+K", K counting them, or for a tracepoint as "link0": the kernel runs programs on a tracepoint
 * for all CPUs and tasks, whichever perf event carries the link, so one is enough, and with two each record
 * would be there twice. They belong to no CPU: nothing is attached anew when one comes online.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/sources.h"

/* Whether its creator's perf events can be linked to this source, the only one. Messages in *f. */
int adopted_check_source(const struct sources *s, struct failure *f);

/*
 * Pins n links, known by the kernel's ids, in the draft, which has `before` already. Each must be between `entry`
 * and a perf event: only who was given the entry can have made it. Newer kernels (6.6) tell what that
 * counts; it must be the source, and alive. Messages in *f.
 */
int adopted_take_links(const struct sources *s, int entry, const uint64_t *ids, unsigned n,
		       unsigned before, uid_t broker, struct pins_draft *draft, struct failure *f);
