/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an event consists of, for people and programs that ask. */
#pragma once

#include <sys/types.h>

#include "daemon/engine/failure.h"

/* Makes a sealed file of struct pp_descriptor (proto/descriptor.h): *ret is the caller's. Messages in *f. */
int event_describe_parts(const char *path, uid_t broker, int *ret, struct failure *f);
