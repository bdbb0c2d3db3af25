/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much memory rings may take in all, whatever the broker orders: the engine's own ceiling,
 * far above what the broker's limits should be. Counts what its events and their orphan rings have.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/* bytes 0: half of the machine's memory. */
void budget_set(uint64_t bytes);

/* May an event with these rings be made? -ENOMEM with a sentence; -errno. */
int budget_check(const struct pp_spec *spec, struct failure *f);

/* An event was made, or deleted (its orphan rings are counted as such). */
void budget_add(const struct pp_event *event);
void budget_subtract(const struct pp_event *event);

/* Events have changed: they are counted anew when it matters. */
void budget_recount(void);
