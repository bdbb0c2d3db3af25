/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Emits the rate limit that stands before a record, and the wakeup behind it. Emits nothing where
 * the target asks for nothing.
 */
#pragma once

#include "daemon/engine/emit/ring-emit.h"

/* With RING found: leaves by *limited if the CPU has had its records of this second; that is
 * counted. R0..R5 are lost. */
void emit_rate_limit(struct emitter *e, const struct recorder_target *target,
		     struct emit_labels *limited);

/* With the record at POS committed, whose time is `time` bytes into it: wakes readers, not too
 * often. R0..R5 are lost. */
void emit_wakeup(struct emitter *e, const struct recorder_target *target, int time);
