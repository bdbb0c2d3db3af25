/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each kind of order does. */
#pragma once

#include "daemon/engine/exchange.h"
#include "daemon/engine/failure.h"

/* Carries out any order but ENUMERATE, and fills the answer in. -errno, with a sentence. */
int order_carry_out(struct exchange *x, struct failure *f);

/* The broker is told when the target of the event ends. */
void order_watch_target(const struct pp_answer *a);
