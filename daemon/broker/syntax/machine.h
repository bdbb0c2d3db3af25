/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the machine says of itself at the moment of asking: its CPUs, and the kernel's
 * settings that decide what may be asked of it.
 */
#pragma once

#include <stdbool.h>

#include "daemon/order.h"

struct machine {
	struct pp_cpumask online, possible;
	uint64_t max_sample_rate; /* Hz; UINT64_MAX where the kernel does not say */
};

/* 0; -errno of reading the CPUs. */
int machine_read(struct machine *ret);

/* Whether users without rights may load programs, or it is not known. */
bool machine_unprivileged_bpf(void);
