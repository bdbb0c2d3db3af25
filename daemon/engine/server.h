/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine's loop: takes the broker's orders, in turn, and answers them. */
#pragma once

#include "daemon/accept.h"

/*
 * Serves orders on connections to `listener` from the broker (or root) until SIGTERM or SIGINT
 * arrives by the signalfd `signals`. One connection at a time: a new one replaces the old,
 * whose broker is gone. 0 or -errno.
 */
int serve(int listener, int signals, const struct accept_rule *broker);
