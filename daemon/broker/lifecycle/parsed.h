/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A parsed event in the queue of orders. It takes as much memory as it needs; struct pp_parsed has
 * room for the largest. */
#pragma once

#include "daemon/order.h"

struct packed_event;

/* The caller frees it with free(3). 0; -ENOMEM. */
int parsed_pack(const struct pp_parsed *parsed, struct packed_event **ret);

/* Fills all of *ret; unused parts are zeroed. NULL: an empty one. */
void parsed_unpack(const struct packed_event *packed, struct pp_parsed *ret);
