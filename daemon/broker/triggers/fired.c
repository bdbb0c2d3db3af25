// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/broker/triggers/fired.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/printable.h"

#define MESSAGE_TRIGGER_FIRED "c2c64716fe5244309f1e5e54a6f8e074"

/* What the firing did to the event that it is about, or how many more there were. */
static void print_effect(const struct pp_spec *spec, uint64_t action, uint64_t more, char *ret,
			 size_t size)
{
	static const char *const effects[PP_ACTIONS][2] = {
		[PP_ACTION_SNAPSHOT] = { "what ", " had recorded waits to be saved" },
		[PP_ACTION_FREEZE] = { "what ", " had recorded is kept until somebody saves or "
						"releases it" },
		[PP_ACTION_PAUSE] = { "", " is paused until somebody resumes it" },
	};
	const char *const *effect = effects[action < PP_ACTIONS ? action : PP_ACTION_NOTIFY];

	*ret = 0;
	if (effect[0])
		snprintf(ret, size, ", and %s%s/%s%s", effect[0], spec->ns, spec->name, effect[1]);
	else if (more)
		snprintf(ret, size, ", and %" PRIu64 " more firing%s since the last message", more,
			 more == 1 ? "" : "s");
}

/* The fields of the task that fired, or that the missing end is of. */
static void print_who(const struct pp_fired *by, const char *comm, char *ret, size_t size)
{
	int n = 0;

	*ret = 0;
	if (by->by_hand == PP_FIRED_BY_HAND || (by->by_hand && !by->pid))
		return;
	if (!by->by_hand)
		n = snprintf(ret, size, "PERFPERSIST_COMM=%s\nPERFPERSIST_CPU=%u\n", comm, by->cpu);
	snprintf(ret + n, size - (size_t)n, "PERFPERSIST_PID=%u\nPERFPERSIST_TID=%u\n", by->pid,
		 by->tid);
}

static void tell(const struct pp_spec *spec, const struct pp_fired *by, const char *trigger,
		 uint64_t more)
{
	static const char *const actions[] = PP_ACTION_NAMES;
	char comm[sizeof(by->comm)], cause[64] = "by hand", who[128], effect[2 * PP_NAME_SIZE + 80];
	char fields[512];

	trigger = trigger ?: PP_TRIGGER_REMOVED;
	memcpy(comm, by->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = 0;
	make_printable(comm, '?');
	if (by->by_hand == PP_FIRED_BY_TIMER)
		strcpy(cause, "the end of a pair is missing");
	if (!by->by_hand)
		snprintf(cause, sizeof(cause), "CPU %u, %s[%u]", by->cpu, comm, by->pid);
	print_who(by, comm, who, sizeof(who));
	print_effect(spec, by->action, more, effect, sizeof(effect));
	snprintf(fields, sizeof(fields),
		 "MESSAGE_ID=" MESSAGE_TRIGGER_FIRED "\nPERFPERSIST_TRIGGER=%s\n"
		 "PERFPERSIST_ACTION=%s\nPERFPERSIST_NUMBER=%llu\nPERFPERSIST_TIME=%" PRIu64 "\n%s",
		 trigger, actions[by->action < PP_ACTIONS ? by->action : 0], by->number,
		 pp_clock_real(by->time), who);
	log_event_fields(LOG_NOTICE, spec->ns, spec->name, fields,
			 "Trigger %s/%s has fired (number %llu, %s)%s.", spec->ns, trigger,
			 by->number, cause, effect);
}

void fired_log(const struct pp_spec *spec, const struct pp_fired *by, const char *trigger)
{
	tell(spec, by, trigger, 0);
}

static void tell_with(struct event *e, const struct pp_fired *by, uint64_t more)
{
	tell(&e->truth.spec, by, e->truth.spec.name, more);
	e->told = by->time;
	e->n_to_tell = 0;
	free(TAKE_PTR(e->to_tell));
}

/* Signed: one by an order may be told behind a later one. */
bool fired_tell(struct event *e, const struct pp_fired *by)
{
	if ((int64_t)(by->time - e->told) < (int64_t)FIRED_TELL_EVERY &&
	    event_keep_firing(e, by) >= 0) {
		e->n_to_tell++;
		return false;
	}
	tell_with(e, by, e->n_to_tell);
	return true;
}

bool fired_tell_rest(struct event *e, uint64_t unread)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (e->to_tell)
		tell_with(e, e->to_tell, e->n_to_tell - 1 + unread);
	else if (unread)
		log_event(LOG_WARNING, spec->ns, spec->name,
			  "Trigger %s/%s has fired %" PRIu64
			  " times that nothing else is known of: "
			  "more fired than the daemon could read.",
			  spec->ns, spec->name, unread);
	else
		return false;
	return true;
}
