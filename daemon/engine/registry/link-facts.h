/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts about the perf events of links, which only the kernel's structures have. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "daemon/engine/bpf/links.h"

/* Walks all links of the machine: facts about those with a perf event, by id; *ret is for free(3). -E2BIG: these are
 * more than 65,536; another -errno: among others this kernel does not let them be looked at. */
int link_facts_read(uid_t broker, struct link_fact **ret, size_t *ret_n);

/* The one of this link, or NULL. */
const struct link_fact *link_facts_find(const struct link_fact *facts, size_t n, unsigned id);
