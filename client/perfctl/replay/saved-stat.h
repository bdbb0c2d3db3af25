/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `stat` for a save, whose counts do not change. */
#pragma once

#include "client/perfctl/perfctl.h"

/* Prints the events that the operands name, or all. Returns an exit code. */
int stat_saved(struct call *call, struct perfpersist *p, bool per_cpu);
