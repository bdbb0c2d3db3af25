/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The counts of an event's replaced rings: `stat` adds them to those of its present rings, so that
 * the numbers of one id only increase.
 */
#pragma once

#include "daemon/engine/event/rings.h"

/* A map for that, with an element for each possible CPU: too few bytes to be charged. A descriptor;
 * -errno. */
int earlier_create(void);

/*
 * Stores in `map` the counts of `rings` and those that `before` (-EBADF: none) has of the rings
 * before them. Callable again when the rings have counted more. -errno.
 */
int earlier_fill(int map, const struct rings *rings, int before);
