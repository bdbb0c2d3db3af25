/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine's present state: its CPUs, and the kernel settings that limit requests. */
#pragma once

#include <stdbool.h>

#include "daemon/order.h"

struct machine {
	struct pp_cpumask online, possible;
	uint64_t max_sample_rate; /* Hz; UINT64_MAX: unlimited or unknown */
	uint64_t max_stack;	  /* entries of a call chain; UINT64_MAX: unknown */
};

/* 0; -errno if the CPUs cannot be read. */
int machine_read(struct machine *ret);

/* Whether unprivileged users may load programs, or the answer is unknown. */
bool machine_unprivileged_bpf(void);
