/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the programs of targets and triggers do besides recording (daemon/trigger.h).
 *
 * The guard is in front of a recording program of an armed event. It lets the program run if the tape
 * is on its side, and otherwise goes on to the program of the side that it is on. On the program's own
 * side it is a load and a jump (0.4 to 1.5 ns of 20, Linux 6.18). Programs of other events have none.
 */
#pragma once

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/recorders/recorder.h"

/* Appends it: at the program's beginning, R1 is the context, and stays so. ret_value: the class's result. */
void emit_guard(struct emitter *e, const struct recorder_guard *guard, int32_t ret_value);

/* The same, where the program's own side is no more: R1 is the context; does not go on. */
void emit_next_side(struct emitter *e, const struct recorder_guard *guard, int32_t ret_value);

/* In front of a record: fires the target's trigger, if it has one. R0..R5 are lost. The program ends with
 * emit_function(). */
void emit_fire(struct emitter *e, const struct recorder_target *target);

/* When that record is written, or has no place: goes on to the program that tells of the firing. `context` is the
 * register with the program's context. */
void emit_tell(struct emitter *e, const struct recorder_target *target, int context);
