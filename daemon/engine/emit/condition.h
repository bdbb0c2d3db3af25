/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Emits a trigger's condition (struct pp_condition in daemon/trigger.h), which stands behind the filter
 * and in front of the record: an occurrence that does not fire makes no record. So the ring of a trigger
 * on each system call has the few that were slow, and not all.
 *
 * Reads fields as filters do. Knows nothing of rings.
 */
#pragma once

#include "daemon/engine/emit/filter-emit.h"

#define CONDITION_STACK 16 /* bytes of stack, of the filter's */

/*
 * Emits the filter and then the condition: falls through if the source's occurrence is to make a
 * record, and fires the target's trigger before that; else takes one of the jumps added to *no. R0..R5 are
 * lost. The caller ends its program with emit_function(). As filter_emit(); also -EINVAL, with a message, if
 * a key is no number.
 */
int condition_emit(struct emitter *e, const struct source *source,
		   const struct recorder_target *target, const struct filter_view *view,
		   struct emit_labels *no, struct failure *f);
