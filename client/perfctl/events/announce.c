// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/announce.h"

#include <inttypes.h>
#include <string.h>
#include <syslog.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "client/perfctl/perfctl.h"
#include "proto/journal.h"
#include "proto/printable.h"

#define MESSAGE_SNAPSHOT_WRITTEN "b3491d9232fa4f10902cba48fc0d33ba"

/* The last three are not of who fires by hand; 0 is the idle task, where a record fired. */
static int to_journal(const char *line, const char *path, const struct spooled *file,
		      const struct perfpersist_tape *by, const struct take_result *result)
{
	char comm[sizeof(file->comm)];

	memcpy(comm, file->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = 0;
	make_printable(comm, '?');
	return sd_journal_send(
		"MESSAGE_ID=" MESSAGE_SNAPSHOT_WRITTEN, "PRIORITY=%d", LOG_NOTICE,
		"SYSLOG_IDENTIFIER=perfctl", "MESSAGE=%s", line, "PERFPERSIST_NAMESPACE=%s",
		file->ns, "PERFPERSIST_EVENT=%s", file->trigger, "PERFPERSIST_TRIGGER=%s",
		file->trigger, "PERFPERSIST_NUMBER=%" PRIu64, file->number, "PERFPERSIST_FILE=%s",
		path, "PERFPERSIST_BYTES=%" PRIu64, result->bytes, "PERFPERSIST_RECORDS=%" PRIu64,
		result->records, "PERFPERSIST_EVENTS=%" PRIu64, result->events,
		"PERFPERSIST_TIME=%" PRIu64, file->time, "PERFPERSIST_COMM=%s", comm,
		by->by_hand || (by->overdue && !by->pid) ? NULL : "PERFPERSIST_PID=%u", by->pid,
		"PERFPERSIST_TID=%u", by->tid, by->overdue ? NULL : "PERFPERSIST_CPU=%u", by->cpu,
		NULL);
}

void announce(const char *path, const struct spooled *file, const struct perfpersist_tape *by,
	      const struct take_result *result)
{
	char line[1280];

	snprintf(line, sizeof(line),
		 "%s: %" PRIu64 " record%s of %" PRIu64 " event%s, %" PRIu64 " bytes", path,
		 result->records, result->records == 1 ? "" : "s", result->events,
		 result->events == 1 ? "" : "s", result->bytes);
	if (pp_is_journal(STDOUT_FILENO) && to_journal(line, path, file, by, result) >= 0)
		return;
	puts(line);
	fflush(stdout);
}
