/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who is connected, and the loop around it. Knows requests and answers, not what is kept. */
#pragma once

#include <stdbool.h>

/*
 * Serves the listening SOCK_SEQPACKET socket. 0: it has been told to end, or (exit_idle) is of no
 * use to anybody any more: it keeps nothing and nobody is connected, or nobody is and nobody can
 * be, because the socket's file is gone. -errno: something failed for good.
 */
int serve_keeping(int listener, bool exit_idle);
