/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections and the loop. Knows requests and answers, not what the keeper keeps. */
#pragma once

#include <stdbool.h>

/*
 * Serves the listening SOCK_SEQPACKET socket. 0: told to end, or (exit_idle) idle for good: nobody
 * is connected, and either nothing is kept or nobody can connect because the socket's file is gone.
 * -errno: a permanent failure.
 */
int serve_keeping(int listener, bool exit_idle);
