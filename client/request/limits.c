// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts limits. */
#include "client/request/limits.h"

#include <string.h>

#include "client/public.h"

_Static_assert((int)PERFPERSIST_LIMIT_TOTAL == (int)PP_LIMIT_TOTAL &&
		       (int)PERFPERSIST_LIMIT_NAMESPACE == (int)PP_LIMIT_NAMESPACE &&
		       (int)PERFPERSIST_LIMIT_USER == (int)PP_LIMIT_USER,
	       "scopes");

void client_limits_done(struct client_limits *l)
{
	free(l->v);
	*l = (struct client_limits){ 0 };
}

static int make_room(struct client_limits *l)
{
	size_t cap = l->cap ? 2 * l->cap : 16;
	struct perfpersist_limit *v;

	if (l->n < l->cap)
		return 0;
	v = reallocarray(l->v, cap, sizeof(*v));
	if (!v)
		return client_fail(-ENOMEM, "cannot hold the limits: out of memory");
	l->v = v;
	l->cap = cap;
	return 0;
}

int client_limits_add(struct client_limits *l, const struct pp_msg_limit *m)
{
	struct perfpersist_limit *limit;
	int r = make_room(l);

	if (r < 0)
		return r;
	limit = &l->v[l->n++];
	*limit = (struct perfpersist_limit){
		.sz = sizeof(*limit),
		.scope = m->scope,
		.uid = m->uid,
		.memory = m->memory,
		.max_memory = m->max_memory,
		.held = m->held,
		.events = m->events,
		.max_events = m->max_events,
		.connections = m->connections,
		.max_connections = m->max_connections,
		.requests = m->requests,
		.max_requests = m->max_requests,
		.copies = m->copies,
		.max_copies = m->max_copies,
		.programs = m->programs,
		.max_programs = m->max_programs,
		.max_on_tracepoint = m->max_on_tracepoint,
		.sample_rate = m->sample_rate,
		.max_sample_rate = m->max_sample_rate,
	};
	_Static_assert(sizeof(limit->ns) == sizeof(m->ns), "fields of one size");
	memcpy(limit->ns, m->ns, sizeof(limit->ns));
	return 0;
}
