/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A list of offline CPUs: from the daemon's messages, or without a daemon from sysfs and the
 * registry's map of CPU hotplug. */
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

/* The offline CPUs of an instance's registry. 0 or a negative errno value. */
int client_away_direct(const char *registry, struct client_away *ret);

/* Sets `away`: the CPUs with rings of the event that sysfs does not list as online. Leaves it empty
 * if sysfs cannot be read. */
void client_away_fill(struct perfpersist_info *info);
