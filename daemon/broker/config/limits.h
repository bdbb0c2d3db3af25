/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The limits that the configuration sets, made those of the quota. */
#pragma once

#include "daemon/broker/config/config.h"
#include "daemon/broker/state/quota.h"

/* Also anew, while things are charged: who is over a limit by then keeps what it has, and gets
 * no more. 0; -ENOMEM. */
int limits_apply(const struct config *config, struct quota *q);
