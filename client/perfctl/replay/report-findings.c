// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl report --findings: one sentence for each finding, the heaviest first. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/replay/findings.h"
#include "client/perfctl/replay/latency-records.h"
#include "client/perfctl/replay/report-latency.h"
#include "proto/printable.h"

/* Enough for any text of one party, and for any time. */
typedef struct {
	char s[64];
} words;

static words time_words(uint64_t ns)
{
	words w;

	if (ns >= 10000000000)
		snprintf(w.s, sizeof(w.s), "%.0f s", (double)ns / 1e9);
	else if (ns >= 1000000000)
		snprintf(w.s, sizeof(w.s), "%.1f s", (double)ns / 1e9);
	else if (ns >= 10000000)
		snprintf(w.s, sizeof(w.s), "%.0f ms", (double)ns / 1e6);
	else
		snprintf(w.s, sizeof(w.s), "%.*f ms", ns >= 1000000 ? 1 : 2, (double)ns / 1e6);
	return w;
}

/* Anybody names his processes. */
static words comm_words(const struct finding_party *p)
{
	words w;

	snprintf(w.s, LATENCY_COMM_SIZE, "%s", p->comm ?: "?");
	make_printable(w.s, '?');
	return w;
}

static words party_words(const struct finding_party *p)
{
	words w = comm_words(p);
	size_t n = strlen(w.s);

	if (p->id)
		snprintf(w.s + n, sizeof(w.s) - n, "[%" PRIu32 "]", p->id);
	else
		snprintf(w.s + n, sizeof(w.s) - n, " (several)");
	return w;
}

static words signal_words(int number)
{
	const char *name = sigabbrev_np(number);
	words w;

	if (name)
		snprintf(w.s, sizeof(w.s), "SIG%s", name);
	else
		snprintf(w.s, sizeof(w.s), "signal %d", number);
	return w;
}

static const char *times(uint64_t n)
{
	return n == 1 ? "once" : "times";
}

/* "3 times", "once" */
static words count_words(uint64_t n)
{
	words w;

	if (n == 1)
		snprintf(w.s, sizeof(w.s), "once");
	else
		snprintf(w.s, sizeof(w.s), "%" PRIu64 " %s", n, times(n));
	return w;
}

/* ── A sentence of each kind ── */

static void crash(FILE *f, const struct finding *g)
{
	if (g->n > 1)
		fprintf(f, "%" PRIu64 " times ", g->n);
	fprintf(f, "%s died of %s", party_words(&g->culprit).s, signal_words(g->number).s);
	if (g->victim.comm)
		fprintf(f, ", which %s sent", party_words(&g->victim).s);
}

static void out_of_memory(FILE *f, const struct finding *g)
{
	fprintf(f, "%s was killed, since the machine or its cgroup had no memory left",
		party_words(&g->culprit).s);
}

static void cpu(FILE *f, const struct finding *g)
{
	fprintf(f,
		"%s kept %s waiting for a CPU: up to %s, %s, %s in all; it ran %u%% of that time",
		party_words(&g->culprit).s, party_words(&g->victim).s, time_words(g->max).s,
		count_words(g->n).s, time_words(g->sum).s, g->percent);
}

static void burst(FILE *f, const struct finding *g)
{
	fprintf(f, "%s ran without a sleep for up to %s, %s, %s in all; mostly it sleeps after %s",
		party_words(&g->culprit).s, time_words(g->max).s, count_words(g->n).s,
		time_words(g->sum).s, time_words(g->usual).s);
}

static void sleeping(FILE *f, const struct finding *g)
{
	fprintf(f, "%s let %s wait%s for up to %s, %s, %s in all; it ran %u%% of that time",
		party_words(&g->culprit).s, party_words(&g->victim).s,
		g->is_blocked ? " (state D)" : "", time_words(g->max).s, count_words(g->n).s,
		time_words(g->sum).s, g->percent);
	if (g->through.comm)
		fprintf(f, "; %s, which woke it, had waited for %s itself",
			party_words(&g->through).s, comm_words(&g->culprit).s);
	if (g->usual)
		fprintf(f, "; mostly %s sleeps %s", comm_words(&g->victim).s,
			time_words(g->usual).s);
}

static void alone(FILE *f, const struct finding *g)
{
	fprintf(f,
		"%s slept for up to %s, %s, %s in all, until a timer, a device or the network woke it; mostly "
		"it sleeps %s",
		party_words(&g->victim).s, time_words(g->max).s, count_words(g->n).s,
		time_words(g->sum).s, time_words(g->usual).s);
}

static void hang(FILE *f, const struct finding *g)
{
	fprintf(f, "%s sleeps for %s now", party_words(&g->victim).s, time_words(g->max).s);
	if (g->n > 1)
		fprintf(f, " (%" PRIu64 " threads)", g->n);
	fprintf(f, "; before it slept %s at most", time_words(g->usual).s);
}

static void stopped(FILE *f, const struct finding *g)
{
	fprintf(f, "%s was stopped for up to %s, %s, %s in all", party_words(&g->victim).s,
		time_words(g->max).s, count_words(g->n).s, time_words(g->sum).s);
	if (g->culprit.comm)
		fprintf(f, g->number ? ", by %s" : "; %s let it go on", party_words(&g->culprit).s);
}

static void held(FILE *f, const struct finding *g)
{
	fprintf(f,
		"%s was ready to run and did not, though its CPU was idle: up to %s, %s, %s in all (a CPU "
		"quota of its cgroup, or a hypervisor)",
		party_words(&g->victim).s, time_words(g->max).s, count_words(g->n).s,
		time_words(g->sum).s);
}

static void disk(FILE *f, const struct finding *g)
{
	fprintf(f,
		"%s kept disk %s busy, with %u%% of its time; %s was blocked for up to %s, %s, %s in all",
		party_words(&g->culprit).s, g->device, g->percent, party_words(&g->victim).s,
		time_words(g->max).s, count_words(g->n).s, time_words(g->sum).s);
}

static void blocked(FILE *f, const struct finding *g)
{
	fprintf(f, "%s was blocked (state D) for up to %s, %s, %s in all",
		party_words(&g->victim).s, time_words(g->max).s, count_words(g->n).s,
		time_words(g->sum).s);
}

static void memory(FILE *f, const struct finding *g)
{
	fprintf(f, "%s had to free memory before it got some: up to %s, %s, %s in all",
		party_words(&g->victim).s, time_words(g->max).s, count_words(g->n).s,
		time_words(g->sum).s);
}

/* Times the mean. */
#define FAR_ABOVE 10

static void forks(FILE *f, const struct finding *g)
{
	uint64_t ns = g->end - g->begin;

	fprintf(f, "%s began %" PRIu64 " processes in %s, as %s; they ran %s in all",
		party_words(&g->culprit).s, g->n, time_words(ns).s, comm_words(&g->victim).s,
		time_words(g->sum).s);
	if (g->max > FAR_ABOVE * (g->sum / g->n))
		fprintf(f, ", one of them %s", time_words(g->max).s);
}

static void usage(FILE *f, const struct finding *g)
{
	fprintf(f, "%s had %u%% of the CPU time that was used: %s", party_words(&g->culprit).s,
		g->percent, time_words(g->sum).s);
}

static const struct {
	const char *key;
	void (*say)(FILE *f, const struct finding *g);
} kinds[FINDING_KINDS] = {
	[FINDING_CRASH] = { "crash", crash },
	[FINDING_OOM] = { "out_of_memory", out_of_memory },
	[FINDING_CPU] = { "cpu", cpu },
	[FINDING_BURST] = { "burst", burst },
	[FINDING_SLEEP] = { "sleep", sleeping },
	[FINDING_PEER] = { "peer", sleeping },
	[FINDING_ALONE] = { "alone", alone },
	[FINDING_HANG] = { "hang", hang },
	[FINDING_STOPPED] = { "stopped", stopped },
	[FINDING_HELD] = { "held", held },
	[FINDING_DISK] = { "disk", disk },
	[FINDING_BLOCKED] = { "blocked", blocked },
	[FINDING_MEMORY] = { "memory", memory },
	[FINDING_FORKS] = { "forks", forks },
	[FINDING_USAGE] = { "usage", usage },
};

/* ── Where ── */

/* The functions that are told: the innermost with a name, and who called it. */
#define FUNCTIONS 3

static bool has_name(const struct flame_node *node)
{
	return strcmp(node->frame->symbol, "[unknown]") != 0;
}

static size_t named(const struct flame_node *where, const struct frame *ret[FUNCTIONS])
{
	size_t n = 0;

	for (; where && where->frame && n < FUNCTIONS; where = where->parent)
		if (has_name(where))
			ret[n++] = where->frame;
	return n;
}

static void print_where(FILE *f, const struct finding *g)
{
	const struct frame *frames[FUNCTIONS];
	size_t n = named(g->where, frames);

	for (size_t i = 0; i < n; i++) {
		fputs(i ? " <- " : "; in ", f);
		print_text(f, frames[i]->symbol, strlen(frames[i]->symbol));
	}
}

void report_finding_text(FILE *f, const struct finding *g, size_t number, uint64_t end)
{
	uint64_t ago = end - MIN(g->begin, end);

	fprintf(f, "%2zu. ", number);
	kinds[g->kind].say(f, g);
	if (g->is_open && g->kind != FINDING_HANG)
		fputs(" (it had not ended)", f);
	print_where(f, g);
	if (g->kind != FINDING_USAGE)
		fprintf(f, " (%s %" PRIu64 ".%06" PRIu64 ", %s before the end)",
			g->kind == FINDING_FORKS ? "from" : "at", g->begin / 1000000000,
			g->begin / 1000 % 1000000, time_words(ago).s);
	fputc('\n', f);
}

/* ── All of them ── */

static const struct {
	uint32_t facts;
	const char *what, *events;
} needs[] = {
	{ UINT32_C(1) << FACT_SWITCH | UINT32_C(1) << FACT_WAKING,
	  "who waits for a CPU, and who woke it",
	  "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new" },
	{ UINT32_C(1) << FACT_ISSUE | UINT32_C(1) << FACT_COMPLETE, "disks",
	  "block:block_rq_insert,block:block_rq_issue,block:block_rq_complete" },
	{ UINT32_C(1) << FACT_SIGNAL | UINT32_C(1) << FACT_END, "crashes",
	  "signal:signal_generate,sched:sched_process_exit" },
	{ UINT32_C(1) << FACT_FORK, "processes that begin", "sched:sched_process_fork" },
	{ UINT32_C(1) << FACT_RECLAIM | UINT32_C(1) << FACT_RECLAIMED, "memory",
	  "vmscan:mm_vmscan_direct_reclaim_begin,vmscan:mm_vmscan_direct_reclaim_end" },
};

static bool is_recorded(const struct latency_records *records, size_t need)
{
	if (need == 0) /* whichever event says who was woken */
		return latency_records_have(records, LATENCY_WAKEUPS);
	return (records->recorded & needs[need].facts) == needs[need].facts;
}

static void print_unrecorded(const struct latency_records *records)
{
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (!is_recorded(records, i))
			printf("Not recorded: %s (-e %s)\n", needs[i].what, needs[i].events);
}

/* What threads did is known from then on; records of other events may reach back further. */
static uint64_t begin_of(const struct report *r, const struct latency_records *records)
{
	uint64_t from = MAX(records->histories[LATENCY_OFF_CPU].from,
			    records->histories[LATENCY_WAKEUPS].from);

	return MIN(MAX(r->a->first, from), r->a->last);
}

/* One kind must not hide the others. */
#define OF_ONE_KIND 3

static int print_all(const struct report *r, const struct latency_records *records,
		     const struct finding *all, size_t n)
{
	unsigned told[FINDING_KINDS] = {};
	size_t number = 0;

	printf("What stands out in %s of ", time_words(r->a->last - r->a->first).s);
	print_text(stdout, r->in->what, strlen(r->in->what));
	printf(", %" PRIu64 ".%06" PRIu64 " to %" PRIu64 ".%06" PRIu64 ":\n",
	       r->a->first / 1000000000, r->a->first / 1000 % 1000000, r->a->last / 1000000000,
	       r->a->last / 1000 % 1000000);
	for (size_t i = 0; i < n && number < r->o->top; i++)
		if (told[all[i].kind]++ < OF_ONE_KIND)
			report_finding_text(stdout, &all[i], ++number, r->a->last);
	if (!number)
		puts(" Nothing.");
	if (number < n)
		printf("(%zu more)\n", n - number);
	if (begin_of(r, records) - r->a->first > (r->a->last - r->a->first) / 10)
		printf("What threads did is known for the last %s only\n",
		       time_words(r->a->last - begin_of(r, records)).s);
	if (r->a->lost)
		printf("%" PRIu64 " records are known to be missing\n", r->a->lost);
	print_unrecorded(records);
	return 0;
}

static void party_json(struct json *j, const char *key, const struct finding_party *p)
{
	if (!p->comm)
		return;
	json_begin(j, key, '{');
	json_string(j, "comm", p->comm);
	if (p->id)
		json_unsigned(j, "id", p->id);
	if (p->process)
		json_unsigned(j, "process", p->process);
	json_end(j, '}');
}

void report_finding_json(struct json *j, const struct finding *g)
{
	json_begin(j, NULL, '{');
	json_string(j, "kind", kinds[g->kind].key);
	party_json(j, "culprit", &g->culprit);
	party_json(j, "victim", &g->victim);
	party_json(j, "through", &g->through);
	json_unsigned(j, "count", g->n);
	json_unsigned(j, "max_ns", g->max);
	json_unsigned(j, "sum_ns", g->sum);
	if (g->usual)
		json_unsigned(j, "usual_ns", g->usual);
	json_unsigned(j, "begin", g->begin);
	json_unsigned(j, "end", g->end);
	if (g->is_open)
		json_bool(j, "is_open", true);
	if (g->is_blocked)
		json_bool(j, "is_blocked", true);
	if (g->number)
		json_string(j, "signal", signal_words(g->number).s);
	if (g->device)
		json_string(j, "device", g->device);
	if (g->percent)
		json_unsigned(j, "percent", g->percent);
	json_unsigned(j, "weight", (uint64_t)g->weight);
	if (g->where)
		report_stack_json(j, g->where);
	json_end(j, '}');
}

static void all_json(const struct report *r, const struct latency_records *records,
		     const struct finding *all, size_t n)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	report_head_json(&j, r);
	json_begin(&j, "findings", '[');
	for (size_t i = 0; i < n; i++)
		report_finding_json(&j, &all[i]);
	json_end(&j, ']');
	json_begin(&j, "not_recorded", '[');
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (!is_recorded(records, i))
			json_string(&j, NULL, needs[i].what);
	json_end(&j, ']');
	json_end(&j, '}');
	putchar('\n');
}

uint32_t report_findings_kinds(const struct latency_records *records)
{
	static const enum latency_kind wanted[] = { LATENCY_OFF_CPU, LATENCY_WAKEUPS,
						    LATENCY_BLOCK };
	uint32_t bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (latency_records_have(records, wanted[i]))
			bits |= UINT32_C(1) << wanted[i];
	return bits;
}

int report_findings(const struct call *call, const struct report *report,
		    const struct latency_records *records, struct findings *f)
{
	const struct finding *all;
	size_t n;

	if (findings_finish(f, begin_of(report, records), report->a->last, &all, &n) < 0) {
		complain("cannot print the report: out of memory");
		return EXIT_FAILED;
	}
	if (call->json)
		all_json(report, records, all, n);
	else
		print_all(report, records, all, n);
	return EXIT_OK;
}
