/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event's properties, as text and as JSON, the same for list, show and create.
 */
#pragma once

#include "client/perfctl/output/output.h"
#include "client/perfpersist.h"

void info_json(struct json *j, const char *key, const struct perfpersist_info *info);
/* The same without its end, so that the caller can add members: json_end(j, '}'). */
void info_json_begin(struct json *j, const char *key, const struct perfpersist_info *info);
void info_print(FILE *f, const struct perfpersist_info *info);

const char *info_state(const struct perfpersist_info *info);
/* The same for people: "ended" if it runs, and its target has ended. */
const char *info_state_shown(const struct perfpersist_info *info);

struct text {
	char s[32];
};

/* "process 4711", "cgroup /a/b"; empty: it has no target. */
struct target_text {
	char s[280];
};
struct target_text info_target(const struct perfpersist_info *info);

struct text format_size(uint64_t bytes); /* 512K: the largest unit that is exact */
struct text format_missed(const struct perfpersist_info *info);
/* Why names are complete since then, or why no sideband is recorded. */
const char *sideband_reason(const struct perfpersist_sideband_info *info);

struct text format_age(uint64_t since); /* CLOCK_REALTIME ns: "3d 4h" */
struct text format_time(uint64_t time); /* likewise: "2026-11-21 23:40:12 +0000" */
