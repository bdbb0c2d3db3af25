/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sideband in a save: the file +sideband, which no namespace can be called, as proto/sideband.h has
 * it. It tells of all users' processes, and so is for whoever made the save alone.
 */
#pragma once

#include "client/request/request.h"

/* from: a sealed file of so many bytes. 0; -errno. */
int saved_write_sideband(int dir_fd, int from, uint64_t size);

/* What the save has, as a file in memory, sealed: that on disk may change. Fills in sideband and
 * fd. 0; -EOPNOTSUPP: it has none; another -errno, with a sentence. */
int saved_sideband(const char *path, int dir_fd, const struct pp_msg_sideband_request *request,
		   struct answer *ret);
