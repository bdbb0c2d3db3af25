/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which tapes can be saved: the tapes of one firing are saved together. For triggers.c only, which has what others
 * ask. */
#pragma once

#include "daemon/broker/triggers/triggers.h"

/* Sets the `tape` of each event, its oldest, for a look at all events. */
void ready_find_tapes(const struct triggers *t);

/* Tells of those that have become ready. No turn is under way. */
void ready_tell(struct triggers *t);
