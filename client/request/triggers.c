// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts triggers and tapes. */
#include "client/request/triggers.h"

#include <string.h>

#include "client/public.h"
#include "proto/fired.h"

#define COPY_FIELD(to, from)                                                      \
	do {                                                                      \
		_Static_assert(sizeof(to) == sizeof(from), "fields of one size"); \
		memcpy(to, from, sizeof(to));                                     \
	} while (0)

/* One more element; *v may move. */
static int make_room(void **v, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 16;
	void *bigger;

	if (n < *cap)
		return 0;
	bigger = reallocarray(*v, more, size);
	if (!bigger)
		return client_fail(-ENOMEM, "cannot hold the list: out of memory");
	*v = bigger;
	*cap = more;
	return 0;
}

void client_triggers_done(struct client_triggers *t)
{
	free(t->v);
	*t = (struct client_triggers){ 0 };
}

int client_triggers_add(struct client_triggers *t, const struct pp_msg_trigger *m)
{
	int r = make_room((void **)&t->v, t->n, &t->cap, sizeof(*t->v));
	struct perfpersist_trigger *to;

	if (r < 0)
		return r;
	to = &t->v[t->n++];
	*to = (struct perfpersist_trigger){
		.sz = sizeof(*to),
		.id = m->id,
		.hold_off = m->hold_off,
		.max_per_day = m->max_per_day,
		.after = m->after,
		.after_records = m->after_records,
		.state = m->state,
		.creator = m->creator,
		.n_targets = m->n_targets,
		.n_armed = m->n_armed,
		.fired = m->fired,
		.held = m->held,
		.spent = m->spent,
		.missed = m->missed,
		.missed_unknown = m->missed_unknown == PP_MISSED_UNKNOWN,
		.missed_at_least = m->missed_unknown == PP_MISSED_AT_LEAST,
		.late = m->late,
		.last = m->last,
		.longer_than = m->longer_than,
		.unkept = m->unkept,
		.overdue = m->overdue,
		.ended = m->ended,
		.action = m->action,
		.tapes = m->tapes,
	};
	COPY_FIELD(to->ns, m->ns);
	COPY_FIELD(to->name, m->name);
	COPY_FIELD(to->event, m->event);
	COPY_FIELD(to->filter, m->filter);
	COPY_FIELD(to->targets, m->targets);
	COPY_FIELD(to->until, m->until);
	COPY_FIELD(to->key, m->key);
	COPY_FIELD(to->rate, m->rate);
	return 0;
}

void client_tapes_done(struct client_tapes *t)
{
	free(t->v);
	*t = (struct client_tapes){ 0 };
}

int client_tapes_add(struct client_tapes *t, const struct pp_msg_tape *m)
{
	int r = make_room((void **)&t->v, t->n, &t->cap, sizeof(*t->v));
	struct perfpersist_tape *to;

	if (r < 0)
		return r;
	to = &t->v[t->n++];
	*to = (struct perfpersist_tape){
		.sz = sizeof(*to),
		.id = m->id,
		.event = m->event,
		.trigger = m->trigger,
		.number = m->number,
		.fired = m->fired,
		.cpu = m->cpu,
		.pid = m->pid,
		.tid = m->tid,
		.by_hand = m->by_hand == PP_FIRED_BY_HAND,
		.overdue = m->by_hand == PP_FIRED_BY_TIMER,
		.action = m->action,
	};
	COPY_FIELD(to->ns, m->ns);
	COPY_FIELD(to->name, m->name);
	COPY_FIELD(to->trigger_name, m->trigger_name);
	COPY_FIELD(to->comm, m->comm);
	return 0;
}
