/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which of an event's CPUs are away, since when, and which do not record yet, and why. */
#pragma once

#include "client/perfctl/output/output.h"
#include "client/perfpersist.h"

/* Whether a list such as "0-3,8" has the CPU. */
bool list_has_cpu(const char *list, unsigned cpu);

/* Why CPUs are lacking, in some words; "" if none are. */
const char *lacking_why(const struct perfpersist_info *info);

/* n of v: what perfpersist_cpus_away() told; may be 0. */
void away_print(FILE *f, const struct perfpersist_info *info, const struct perfpersist_cpu_away *v,
		size_t n);
void away_json(struct json *j, const struct perfpersist_info *info,
	       const struct perfpersist_cpu_away *v, size_t n);
