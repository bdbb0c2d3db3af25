// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/broker/triggers/fired.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/printable.h"

#define MESSAGE_TRIGGER_FIRED "c2c64716fe5244309f1e5e54a6f8e074"

void fired_log(const struct tape *tape, const char *trigger)
{
	const struct pp_spec *spec = &tape->event.truth.spec;
	const struct pp_fired *by = &tape->by;
	char comm[sizeof(by->comm)], cause[64] = "by hand", who[128] = "", fields[512];

	trigger = trigger ?: "(removed)";
	memcpy(comm, by->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = 0;
	make_printable(comm, '?');
	if (by->by_hand == PP_FIRED_BY_TIMER) {
		strcpy(cause, "the end of a pair is missing");
		if (by->pid)
			snprintf(who, sizeof(who), "PERFPERSIST_PID=%u\nPERFPERSIST_TID=%u\n",
				 by->pid, by->tid);
	}
	if (!by->by_hand) {
		snprintf(cause, sizeof(cause), "CPU %u, %s[%u]", by->cpu, comm, by->pid);
		snprintf(who, sizeof(who),
			 "PERFPERSIST_COMM=%s\nPERFPERSIST_PID=%u\nPERFPERSIST_TID=%u\n"
			 "PERFPERSIST_CPU=%u\n",
			 comm, by->pid, by->tid, by->cpu);
	}
	snprintf(fields, sizeof(fields),
		 "MESSAGE_ID=" MESSAGE_TRIGGER_FIRED "\nPERFPERSIST_TRIGGER=%s\n"
		 "PERFPERSIST_NUMBER=%llu\nPERFPERSIST_TIME=%" PRIu64 "\n%s",
		 trigger, by->number, pp_clock_real(by->time), who);
	log_event_fields(LOG_NOTICE, spec->ns, spec->name, fields,
			 "Trigger %s/%s has fired (number %llu, %s), and what %s/%s had recorded "
			 "waits to be saved.",
			 spec->ns, trigger, by->number, cause, spec->ns, spec->name);
}
