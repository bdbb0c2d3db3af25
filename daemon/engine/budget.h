/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's own limit on the memory of all rings, whatever the broker orders. The broker's
 * limits should be far lower. Counts events, adoptions under way and orphan rings.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/* bytes 0: half of the machine's memory. */
void budget_set(uint64_t bytes);

/* May an event with these rings be made? -ENOMEM with a message; -errno. */
int budget_check(const struct pp_spec *spec, struct failure *f);

/* An event was made, or deleted (its orphan rings are counted as such). */
void budget_add(const struct pp_event *event);
void budget_subtract(const struct pp_event *event);

/* Events have changed: the next check counts them again. */
void budget_recount(void);
