/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an event's rings had counted when others took their place: `stat` adds it to what its rings
 * count now, so that the numbers of one id only go up.
 */
#pragma once

#include "daemon/engine/event/rings.h"

/* A map for that, with an element for each possible CPU: so few bytes that nobody is charged for
 * them. A descriptor; -errno. */
int earlier_create(void);

/*
 * Makes `map` say what `rings` have counted, and what `before` (-EBADF: nothing) says of those before
 * them; once more when they have counted more. -errno.
 */
int earlier_fill(int map, const struct rings *rings, int before);
