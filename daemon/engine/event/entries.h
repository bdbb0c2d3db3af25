/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entries that creators of adopted events were given. They can keep one when the adoption or its event
 * has ended, with its PROG_ARRAY, and nobody can take it back; so these count as programs of that user until
 * the kernel has them no more; but only where another is asked for, not where other events are created. An
 * engine that is started again does not know of earlier ones.
 */
#pragma once

#include <stdbool.h>

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/* Whether the user may have another one. is_charged: whether the event with this id counts as a program by itself.
 * -EDQUOT with a message in *f. */
int entries_check(uid_t uid, const struct pp_allowance *allowance, bool (*is_charged)(uint64_t id),
		  struct failure *f);

/* The user is going to be given this one, of that event. 0; -errno, which errno has, too. */
int entries_add(int program, uid_t uid, uint64_t event);
