/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The description of an event, from any source: a daemon's message, a ring's header. Knows neither
 * sockets nor files. */
#pragma once

#include "client/perfpersist.h"
#include "proto/protocol.h"
#include "proto/ring.h"

/* Events gathered one by one; v is one array for free(3). */
struct client_infos {
	struct perfpersist_info *v;
	size_t n;
};

void client_infos_done(struct client_infos *infos);
int client_infos_add(struct client_infos *infos, const struct perfpersist_info *info);

/* Checks the sz that the caller has set: 0 or -EINVAL. */
int client_info_check(const struct perfpersist_info *ret);

/* Copies into the caller's struct and keeps its sz. 0 or -EINVAL. */
int client_info_export(const struct perfpersist_info *info, struct perfpersist_info *ret);

void client_info_from_message(const struct pp_msg_event *m, struct perfpersist_info *ret);
/* The event's description without its counts. */
void client_info_to_message(const struct perfpersist_info *info, struct pp_msg_event *ret);

/* The description that a checked header gives: it lacks owner, group and state. */
void client_info_from_header(const struct pp_ring_header *h, struct perfpersist_info *ret);

/* [a-zA-Z_][a-zA-Z0-9_-]*, at most 63 bytes: safe as one component of a path. */
bool client_name_is_valid(const char *name);

/* Formats n CPU numbers, sorted, as "0-3,8"; ranges that do not fit are left out entirely. */
void client_format_cpus(const uint32_t *cpus, size_t n, char *buf, size_t size);
