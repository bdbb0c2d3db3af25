// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl report --off-cpu, --wakeups, --syscalls, --block, --irq, and --findings, which stands on these:
 * what they need, and what they read. */
#include "client/perfctl/replay/report-latency.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/replay/findings.h"
#include "client/perfctl/replay/latency-records.h"

const struct latency_words latency_words[LATENCY_KINDS] = {
	[LATENCY_OFF_CPU] = { "off-cpu", "off_cpu", "Off a CPU, from switch to switch", "STATE",
			      "state",
			      "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new",
			      true },
	[LATENCY_WAKEUPS] = { "wakeups", "wakeups",
			      "Run-queue delay, from wakeup or preemption to running", "CAUSE",
			      "cause",
			      "sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new",
			      true },
	[LATENCY_SYSCALLS] = { "syscalls", "syscalls", "System calls, from entry to exit", "CALL",
			       "call", "raw_syscalls:sys_enter,raw_syscalls:sys_exit", true },
	[LATENCY_BLOCK] = { "block", "block",
			    "Block requests: queue from insertion to issue, device from issue to "
			    "completion",
			    "REQUESTS", "requests",
			    "block:block_rq_insert,block:block_rq_issue,block:block_rq_complete",
			    false },
	[LATENCY_IRQ] = { "irq", "irq", "Interrupt handlers, from entry to exit", "HANDLER",
			  "handler",
			  "irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,"
			  "irq:softirq_exit",
			  false },
};

/* What --pid, --tid and -C select of a window. */
static bool wants(const void *arg, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	const struct selection *s = arg;

	if (cpu != UINT32_MAX && s->cpus && (cpu >= s->n_cpus || !s->cpus[cpu]))
		return false;
	return selection_wants_whose(s, pid, tid);
}

static bool check_recorded(const struct latency_records *records, uint32_t kinds)
{
	bool all = true;

	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct latency_words *w = &latency_words[kind];

		if (!(kinds >> kind & 1) || latency_records_have(records, kind))
			continue;
		complain("--%s: %s does not have the events for it; `perfctl create %s -e %s` "
			 "records them from then on",
			 w->option, records->in->what, w->key, w->needs);
		all = false;
	}
	return all;
}

/* Whether nothing is selected; complains then. */
static bool is_empty(const struct input *in, const struct selection *chosen,
		     const struct aggregate *a, const struct latency *l)
{
	uint64_t n = 0;

	if (!a->samples && input_tell_none(in, chosen))
		return true;
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct latency_sums *s = latency_sums(l, kind);

		n += s->n + s->n_open + s->begun_before + s->missing;
	}
	if (n || !selection_has_ids(chosen))
		return false;
	complain("%s has nothing to report of the threads that --pid and --tid select", in->what);
	return true;
}

static int print(const struct call *call, const struct report *report, const struct latency *l,
		 const struct latency_records *records)
{
	uint32_t kinds = report->o->latency;
	int r = call->json ? report_latency_json(report, l, kinds, records->histories)
			   : report_latency_text(report, l, kinds, records->histories);

	if (r >= 0)
		return EXIT_OK;
	complain("cannot print the report: out of memory");
	return EXIT_FAILED;
}

static int read_records(struct latency_records *records, const struct report_options *o,
			const struct selection *window, struct aggregate *a, struct findings *f,
			struct latency **ret)
{
	const struct latency_watcher watcher = { findings_ran, findings_ended, f };
	struct latency_options options = { .kinds = o->latency,
					   .top = o->top,
					   .wants = wants,
					   .arg = &o->selection,
					   .watcher = f ? &watcher : NULL };
	int r;

	records->findings = f;
	if (f)
		options.kinds = report_findings_kinds(records);
	r = latency_records_read(records, window, &o->selection, &options, a, ret);
	if (r < 0 && r != -EBADMSG) {
		complain("cannot read %s: %s", records->in->what, strerror(-r));
		return r;
	}
	if (records->damaged)
		complain("%s: the fields of %" PRIu64 " records do not fit the formats of their "
			 "events",
			 records->in->what, records->damaged);
	return r;
}

static int report_records(const struct call *call, const struct report_options *o,
			  const struct selection *window, struct latency_records *records,
			  struct aggregate *a)
{
	struct report report = {
		.o = o,
		.in = records->in,
		.info = trace_info(records->in->trace),
		.a = a,
		.width = terminal().ws_col,
	};
	_cleanup_(findings_freep) struct findings *f = NULL;
	_cleanup_(latency_freep) struct latency *l = NULL;
	int r;

	if (o->findings && findings_new(&f) < 0) {
		complain("cannot read %s: out of memory", records->in->what);
		return EXIT_FAILED;
	}
	r = read_records(records, o, window, a, f, &l);
	if (r < 0 && r != -EBADMSG)
		return EXIT_FAILED;
	if (!r && is_empty(records->in, &o->selection, a, l))
		return EXIT_NOT_FOUND;
	return (f ? report_findings(call, &report, records, f) : print(call, &report, l, records))
		       ?: r < 0 ? EXIT_FAILED
				: EXIT_OK;
}

static int report_input(const struct call *call, const struct report_options *o,
			const struct selection *window, struct input *in)
{
	_cleanup_(latency_records_done) struct latency_records records = {};
	_cleanup_(aggregate_freep) struct aggregate *a = NULL;
	_cleanup_(report_cleanup_symbols) struct symbols *symbols = NULL;
	struct aggregate_options how = { .max_stack = o->max_stack };
	int r = latency_records_open(in, &records);

	if (r >= 0 && !check_recorded(&records, o->latency))
		return EXIT_NOT_FOUND;
	if (r >= 0)
		r = symbols_new(trace_info(in->trace), &symbols);
	if (r >= 0)
		r = aggregate_new(in->trace, symbols, &how, &a);
	if (r >= 0)
		return report_records(call, o, window, &records, a);
	complain("cannot read %s: out of memory", in->what);
	return EXIT_FAILED;
}

/* Reads the records of all threads and CPUs of the time that is selected: an interval of one thread
 * has its beginning, its end and its waker on several. */
int report_latency(struct call *call, const struct report_options *o)
{
	_cleanup_(input_done) struct input in = { .fd = -EBADF };
	struct selection window = o->selection;

	window.cpus = NULL;
	window.pids = window.tids = (struct ids){};
	window.owners = NULL;
	return input_open(call, o->file, &window, &in) ?: report_input(call, o, &window, &in);
}
