/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An event's CPUs that are offline, since when, and those that do not record yet, and why. */
#pragma once

#include "client/perfctl/output/output.h"
#include "client/perfpersist.h"

/* Whether a list such as "0-3,8" has the CPU. */
bool list_has_cpu(const char *list, unsigned cpu);

/* Why online CPUs have no rings; "" if none is lacking. */
const char *lacking_why(const struct perfpersist_info *info);

/* v, n: from perfpersist_cpus_away(); n may be 0. */
void away_print(FILE *f, const struct perfpersist_info *info, const struct perfpersist_cpu_away *v,
		size_t n);
void away_json(struct json *j, const struct perfpersist_info *info,
	       const struct perfpersist_cpu_away *v, size_t n);
