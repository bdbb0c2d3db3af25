/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `stat` says of a save, in which nothing changes any more. */
#pragma once

#include "client/perfctl/perfctl.h"

/* Of the events that the operands name, or of all. Returns an exit code. */
int stat_saved(struct call *call, struct perfpersist *p, bool per_cpu);
