/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Applies the configuration's limits to the quota. */
#pragma once

#include "daemon/broker/config/config.h"
#include "daemon/broker/state/quota.h"

/* May be called again while things are charged: a user above a new limit keeps what is charged and
 * gets nothing more. incomplete: a part could not be read, so that namespaces that are not in it keep their limits.
 * 0; -ENOMEM. */
int limits_apply(const struct config *config, struct quota *q, bool incomplete);
