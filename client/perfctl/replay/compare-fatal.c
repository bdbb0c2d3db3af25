// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What ends processes: signals of faults, and the OOM killer. A process that begins another thread afterwards has
 * handled its signal: a virtual machine tries what its CPU can do, and looks for null pointers, in that way.
 */
#include <signal.h>

#include "client/perfctl/replay/compare-records-parts.h"

/* NULL: another one. */
static const char *fault_name(uint32_t sig)
{
	switch (sig) {
	case SIGILL:
		return "SIGILL";
	case SIGABRT:
		return "SIGABRT";
	case SIGBUS:
		return "SIGBUS";
	case SIGFPE:
		return "SIGFPE";
	case SIGSEGV:
		return "SIGSEGV";
	case SIGSYS:
		return "SIGSYS";
	default:
		return NULL;
	}
}

/* enum in include/trace/events/signal.h: 0 delivered, 2 was pending already; others were ignored, or lost. */
static bool is_delivered(const struct compare_source *s)
{
	uint32_t result = compare_field_number(s, 3);

	return result == 0 || result == 2;
}

static int count(struct compare_records *r, const struct compare_fault *fault)
{
	struct compare_item *item;
	int failed =
		compare_find(r->c, COMPARE_FATAL, fault->name, fault->comm, fault->complete, &item);

	return failed ?: compare_count(r->c, item, fault->time, 1, 0);
}

int compare_fatal_add(struct compare_records *r, const struct compare_source *s, uint64_t time)
{
	bool is_signal = s->meaning == SOURCE_SIGNAL;
	const char *what =
		is_signal ? fault_name(compare_field_number(s, 0)) : "SIGKILL: out of memory";
	struct compare_fault fault = { .time = time, .complete = s->complete };
	uint32_t tid = compare_field_number(s, is_signal);
	char fallback[LATENCY_COMM_SIZE] = "?";
	int failed;

	if (!what || (is_signal && !is_delivered(s)) ||
	    !compare_records_want(r, UINT32_MAX, tid, UINT32_MAX))
		return 0;
	if (is_signal)
		compare_field_text(s, 2, fallback);
	fault.pid = compare_process_of(r, UINT32_MAX, tid);
	failed = compare_command(r, UINT32_MAX, tid, fallback, &fault.comm)
			 ?: compare_name(r->c, what, &fault.name);
	if (failed)
		return MIN(failed, 0);
	if (!is_signal)
		return count(r, &fault);
	if (!GROW(r->faults, r->n_faults) || keytable_set(&r->faulty, fault.pid, 1) < 0)
		return -ENOMEM;
	r->faults[r->n_faults++] = fault;
	return 0;
}

void compare_fatal_forked(struct compare_records *r, const struct trace_record *record)
{
	bool is_thread = record->kind == TRACE_FORK && record->pid == record->ppid &&
			 record->pid != record->tid;

	if (!is_thread || keytable_get(&r->faulty, record->pid) < 0)
		return;
	for (size_t i = r->n_faults; i-- > 0;)
		if (r->faults[i].pid == record->pid && r->faults[i].time < record->time)
			r->faults[i] = r->faults[--r->n_faults];
}

int compare_fatal_finish(struct compare_records *r)
{
	int failed = 0;

	for (size_t i = 0; i < r->n_faults && failed >= 0; i++)
		failed = count(r, &r->faults[i]);
	return failed;
}
