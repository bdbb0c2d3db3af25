/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recipe as it waits in the queue of orders: as short as it is, where struct pp_recipe is as
 * large as one may be. */
#pragma once

#include "daemon/order.h"

struct packed_recipe;

/* One for free(3). 0; -ENOMEM. */
int recipe_pack(const struct pp_recipe *recipe, struct packed_recipe **ret);

/* All of *ret: what is not used is zeroed. NULL: an empty one. */
void recipe_unpack(const struct packed_recipe *packed, struct pp_recipe *ret);
