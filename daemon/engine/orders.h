/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each kind of order does. */
#pragma once

#include "daemon/engine/exchange.h"
#include "daemon/engine/failure.h"

/* Carries out any order but ENUMERATE, and fills the answer in. -errno, with a sentence. */
int order_carry_out(struct exchange *x, struct failure *f);
