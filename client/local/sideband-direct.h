/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sideband without a daemon: directly from the keeper, which serves root. */
#pragma once

#include "client/request/request.h"

/* Asks the keeper beside this registry. Sets sideband and fd. 0; -errno, with an error message. If
 * no keeper listens, nothing is kept, and that is not an error. */
int sideband_direct(const char *registry, const struct pp_msg_sideband_request *request,
		    struct answer *ret);
