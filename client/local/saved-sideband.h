/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sideband in a save: the file +sideband, as in proto/sideband.h; no namespace can have this name.
 * It describes all users' processes, so only the save's owner may read it. */
#pragma once

#include "client/request/request.h"

/* from: a sealed file of `size` bytes. 0; -errno. */
int saved_write_sideband(int dir_fd, int from, uint64_t size);

/* Copies the save's sideband into a sealed memfd, because the file on disk may change. Sets
 * sideband and fd. 0; -EOPNOTSUPP: the save has none; another -errno, with an error message. */
int saved_sideband(const char *path, int dir_fd, const struct pp_msg_sideband_request *request,
		   struct answer *ret);
