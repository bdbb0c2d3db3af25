/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sideband.c and sideband-take.c share, and nobody else sees. */
#pragma once

#include "daemon/broker/sideband/sideband.h"

bool sideband_is_wanted(const struct sideband *s);

/* The keeper has all it needs. */
void sideband_is_whole(struct sideband *s);

/* Orders the next thing that it lacks, if there is one and the engine is at nothing else for us. */
void sideband_order(struct sideband *s);

/* Asks the keeper, which is idle, for the next one that is wanted. Returns whether it did; settled:
 * what is not kept by now will not be kept soon. */
bool takings_ask(struct sideband *s, bool settled);

/* The keeper's answer to it. */
void takings_answered(struct sideband *s, const struct pp_keep_answer *answer, struct pp_fds *fds);

/* The one that the keeper was at, if there is one, ends with this error. */
void takings_break(struct sideband *s, int error);

/* All that wait end: error, or 0: nothing is kept. */
void takings_end(struct sideband *s, int error);
