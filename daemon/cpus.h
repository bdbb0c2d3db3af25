/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This machine's CPUs, as sysfs lists them. */
#pragma once

#include "daemon/order.h"

/* which: "online", "possible" or "present". 0 or -errno. */
int pp_cpus_read(const char *which, struct pp_cpumask *ret);

/* Highest possible CPU number + 1, or -errno. */
int pp_cpus_possible(void);
