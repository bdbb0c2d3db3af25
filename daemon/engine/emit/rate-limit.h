/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Emits the rate limit in front of a record, and the wakeup behind it. Emits nothing if the target
 * requests neither.
 */
#pragma once

#include "daemon/engine/emit/ring-emit.h"

/* With RING found: takes *limited, and counts that, if the CPU has used up its records of this
 * second. R0..R5 are lost. */
void emit_rate_limit(struct emitter *e, const struct recorder_target *target,
		     struct emit_labels *limited);

/* With the record at POS committed, whose time is `time` bytes into it: wakes readers, at most once
 * an interval. R0..R5 are lost. */
void emit_wakeup(struct emitter *e, const struct recorder_target *target, int time);
