/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens the rings of an event in a save. Does not know where in the save the event is. */
#pragma once

#include "client/perfpersist.h"

/* dir_fd: the event's directory; path: that of the save. 0 or -errno, with an error message. */
int saved_rings_open(const char *path, int dir_fd, const struct perfpersist_info *info,
		     struct perfpersist_event **ret);
