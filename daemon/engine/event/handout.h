/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The descriptors that keep an event alive, for who is to own it. */
#pragma once

#include "daemon/engine/failure.h"
#include "proto/packet.h"

/*
 * Opens up to PP_FDS_MAX of them, from number `first` on: the rings by CPU, the catalog if there is one, the
 * PROG_ARRAYs, which the kernel empties with their last descriptor or pin, and the links. They go into
 * *ret, which is empty; *ret_total: how many there are. Messages in *f.
 */
int event_hand_out(const char *path, uint32_t first, struct pp_fds *ret, uint32_t *ret_total,
		   struct failure *f);
