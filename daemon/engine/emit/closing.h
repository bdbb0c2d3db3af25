/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the programs of a closing side (daemon/trigger.h) do besides recording, emitted: the
 * counterpart of the window in bpf/ring.bpf.h, which is in C. Emits nothing for any other program.
 */
#pragma once

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/recorders/recorder.h"

static inline bool target_closes(const struct recorder_target *target)
{
	return target->guard && target->guard->closes;
}

/* R0: the record's time, which stays. Takes *beyond if the window ended before it. R1, R2 are lost. */
void emit_closing_time(struct emitter *e, const struct recorder_target *target,
		       struct emit_labels *beyond);

/* Takes one of the records that the window has left, or *beyond if there is none. Who takes the last
 * one ends the window. R0..R5 are lost. */
void emit_closing_part(struct emitter *e, const struct recorder_target *target,
		       struct emit_labels *beyond);

/* At the end of the program: lands what is beyond, ends the window, and goes on to the program of the
 * side that the tape is on then. `context` is the register with the program's context. */
void emit_closing_end(struct emitter *e, const struct recorder_target *target, int context,
		      int32_t ret_value, struct emit_labels *beyond);
