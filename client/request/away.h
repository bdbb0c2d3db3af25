/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CPUs that are away, gathered one by one: from messages of the daemon, or with none of it from
 * sysfs and what the kernel's steps of hotplug left in the registry.
 */
#pragma once

#include "client/perfpersist.h"
#include "proto/protocol.h"

/* v is one array for free(3). */
struct client_away {
	struct perfpersist_cpu_away *v;
	size_t n, cap;
};

void client_away_done(struct client_away *a);
int client_away_add(struct client_away *a, uint32_t cpu, uint64_t since);

/* Those of an instance's registry. 0 or a negative errno value. */
int client_away_direct(const char *registry, struct client_away *ret);

/* Of the CPUs that an event has rings on, those that sysfs does not have online: fills in `away`;
 * where sysfs cannot be read, nothing. */
void client_away_fill(struct perfpersist_info *info);
