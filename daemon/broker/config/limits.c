// SPDX-License-Identifier: LGPL-2.1-or-later
/* From configuration to quota. Must not know what is charged. */
#include "daemon/broker/config/limits.h"

#include <string.h>

#include "proto/macro.h"

#define COPIES_USERS 4 /* users that may have their full limit at the same time */

/* Namespaces that are no longer configured get the general limits. */
static void forget_others(const struct config *c, struct quota *q)
{
	for (size_t i = q->namespaces.n; i > 0; i--) {
		char ns[PP_NAME_SIZE];

		memcpy(ns, q->namespaces.all[i - 1].ns, sizeof(ns));
		if (q->namespaces.all[i - 1].limited && !config_namespace(c, ns))
			quota_limit(q, ns, NULL);
	}
}

int limits_apply(const struct config *config, struct quota *q, bool incomplete)
{
	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
		q->total.max[k] = q->per_namespace.max[k] = q->per_user.max[k] = q->root.max[k] =
			QUOTA_UNLIMITED;
	q->total.max[QUOTA_CONNECTIONS] = config->max_connections;
	q->per_user.max[QUOTA_CONNECTIONS] = config->max_connections_per_user;
	q->per_user.max[QUOTA_REQUESTS] = config->max_requests_per_user;
	q->total.max[QUOTA_EVENTS] = config->max_events;
	q->per_namespace.max[QUOTA_EVENTS] = config->max_events_per_namespace;
	q->per_user.max[QUOTA_EVENTS] = config->max_events_per_user;
	q->total.max[QUOTA_MEMORY] = config->max_memory;
	q->per_namespace.max[QUOTA_MEMORY] = config->max_memory_per_namespace;
	q->per_user.max[QUOTA_MEMORY] = config->max_memory_per_user;
	/* One person can be many users (of a user namespace): the total needs a limit. */
	q->total.max[QUOTA_COPIES] = config->max_copies > QUOTA_UNLIMITED / COPIES_USERS
					     ? QUOTA_UNLIMITED
					     : config->max_copies * COPIES_USERS;
	q->per_user.max[QUOTA_COPIES] = config->max_copies;
	q->root.max[QUOTA_COPIES] = config->max_copies;
	q->total.max[QUOTA_PROGRAMS] = config->max_programs;
	q->per_user.max[QUOTA_PROGRAMS] = config->max_programs_per_user;
	q->per_user.max[QUOTA_SAMPLES] = config->max_sample_rate_per_user;
	q->on_tracepoint = config->max_on_tracepoint;
	q->on_tracepoint_of_user = config->max_on_tracepoint_per_user;
	/* Root may use the whole total; limits that would lock the administrator out do not
	 * apply. */
	q->root.max[QUOTA_EVENTS] = config->max_events;
	q->root.max[QUOTA_MEMORY] = config->max_memory;
	q->root.max[QUOTA_PROGRAMS] = config->max_programs;

	if (!incomplete)
		forget_others(config, q);
	for (size_t i = 0; i < config->n_namespaces; i++) {
		const struct config_namespace *ns = &config->namespaces[i];
		struct quota_limits own;
		int r;

		if (ns->faulty)
			continue;
		for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
			own.max[k] = QUOTA_UNLIMITED;
		own.max[QUOTA_MEMORY] = ns->max_memory;
		own.max[QUOTA_EVENTS] = ns->max_events;
		r = quota_limit(q, ns->name, &own);
		if (r < 0)
			return r;
	}
	return 0;
}
