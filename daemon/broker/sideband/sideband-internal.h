/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the sideband*.c files only. */
#pragma once

#include "daemon/broker/sideband/sideband.h"

bool sideband_is_wanted(const struct sideband *s);

/* The keeper has all it needs. */
void sideband_is_whole(struct sideband *s);

/* Orders the next missing part, unless the engine is already at an order of ours. */
void sideband_order(struct sideband *s);

/* Asks the idle keeper for the next sideband request. Returns whether it did; settled: sideband
 * that is not recorded by now will not be recorded soon. */
bool takings_ask(struct sideband *s, bool settled);

/* Handles the keeper's answer to it. */
void takings_answered(struct sideband *s, const struct pp_keep_answer *answer, struct pp_fds *fds);

/* Ends the sideband request at the keeper, if there is one, with this error. */
void takings_break(struct sideband *s, int error);

/* Ends all waiting requests with `error`; 0: no sideband is recorded. */
void takings_end(struct sideband *s, int error);
