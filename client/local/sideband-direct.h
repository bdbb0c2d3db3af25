/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sideband without a daemon: asked of the keeper itself, which listens to root. */
#pragma once

#include "client/request/request.h"

/* The keeper is the one beside this registry. Fills in sideband and fd. 0; -errno, with a
 * sentence. Where nobody listens nothing is kept, and that is no failure. */
int sideband_direct(const char *registry, const struct pp_msg_sideband_request *request,
		    struct answer *ret);
