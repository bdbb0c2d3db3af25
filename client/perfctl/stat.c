// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl stat: prints the rates of events, interval by interval. Counts of one CPU come from its
 * ring, which does not know what a tracepoint missed; counts of all CPUs come from the daemon or
 * the registry.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/find.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/away.h"
#include "client/perfctl/print/history.h"
#include "client/perfctl/print/rates.h"
#include "client/perfctl/replay/saved-stat.h"
#include "proto/clock.h"

struct subject {
	struct event_name name;
	struct perfpersist_event *e; /* NULL: it was deleted */
	struct history history;
	struct counts before;
	struct counts *ring_before; /* of each ring */
	uint32_t set;
	char cpus[1024]; /* that had rings when these were opened */
};

struct stat {
	struct call *call;
	struct perfpersist *p;
	uint64_t interval; /* ms */
	uint64_t left;	   /* 0: no end */
	bool per_cpu;
	uint64_t began, looked;
	unsigned turn;
	struct subject *subjects;
	size_t n;
};

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

static void subject_close(struct subject *s)
{
	history_done(&s->history);
	free(s->ring_before);
	s->ring_before = NULL;
	perfpersist_event_free(s->e);
	s->e = NULL;
}

/* Tracepoints and probes count what they miss for all CPUs together. */
static struct counts ring_counts(struct perfpersist_event *e, size_t ring,
				 const struct perfpersist_info *info)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	if (perfpersist_ring_stat(e, ring, &stat) < 0)
		return (struct counts){ .missed_unknown = true, .limited_unknown = true };
	return (struct counts){
		.records = stat.records,
		.bytes = stat.bytes,
		.missed = stat.missed,
		.missed_unknown =
			info->recorder != PERFPERSIST_RECORDER_OVERFLOW || info->sources > 1,
		.limited = stat.limited,
	};
}

static int subject_open(struct stat *st, struct subject *s)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = perfpersist_open(st->p, s->name.ns, s->name.name, &s->e);

	if (r < 0)
		return r;
	s->history.e = s->e;
	s->ring_before = calloc(perfpersist_event_rings(s->e) + 1, sizeof(*s->ring_before));
	r = s->ring_before ? perfpersist_show(st->p, s->name.ns, s->name.name, &info) : -ENOMEM;
	if (r < 0)
		return r;
	s->before = counts_of(&info);
	s->set = info.set;
	memcpy(s->cpus, info.cpus, sizeof(s->cpus));
	for (size_t i = 0; i < perfpersist_event_rings(s->e); i++)
		s->ring_before[i] = ring_counts(s->e, i, &info);
	return 0;
}

static int find_subjects(struct stat *st)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	int r = find_events(st->call, st->p, st->call->operands, st->call->n_operands, &infos,
			    &st->n);

	if (r)
		return r;
	st->subjects = calloc(st->n + 1, sizeof(*st->subjects));
	if (!st->subjects)
		return EXIT_FAILED;
	for (size_t i = 0; i < st->n; i++) {
		memcpy(st->subjects[i].name.ns, infos[i].ns, sizeof(infos[i].ns));
		memcpy(st->subjects[i].name.name, infos[i].name, sizeof(infos[i].name));
	}
	return EXIT_OK;
}

/* ── printing ───────────────────────────────────────────────────────────────────────────── */

static void print_title(const struct stat *st)
{
	printf("# %10s  %11s %9s %9s %9s %9s  %s%s\n", "TIME", "RECORDS/S", "MB/S", "MISSED/S",
	       "LIMITED/S", "HISTORY", st->per_cpu ? "CPU   " : "", "NAME");
}

static void print_human(const struct stat *st, const struct subject *s, int cpu, bool away,
			const struct rates *rates, double history)
{
	char back[24] = "-";

	if (history >= 0)
		snprintf(back, sizeof(back), "%.1fs", history);
	printf("  %10.3f  %11s %9.3f %9s %9s %9s  ", (st->looked - st->began) / 1e9,
	       format_rate(rates->records).s, rates->megabytes, format_missed_rate(rates).s,
	       rates->limited_unknown ? "-" : format_rate(rates->limited).s, back);
	if (st->per_cpu)
		printf("%-5d ", cpu);
	printf("%s/%s%s\n", s->name.ns, s->name.name, away ? " (away)" : "");
}

static void print_json(const struct stat *st, const struct subject *s, int cpu, bool away,
		       const struct counts *c, double history)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	json_string(&j, "namespace", s->name.ns);
	json_string(&j, "name", s->name.name);
	if (cpu >= 0) {
		json_unsigned(&j, "cpu", (unsigned)cpu);
		json_bool(&j, "away", away);
	}
	json_unsigned(&j, "time_ns", st->looked - st->began);
	json_unsigned(&j, "records", c->records);
	json_unsigned(&j, "bytes", c->bytes);
	if (c->missed_unknown)
		json_null(&j, "missed");
	else
		json_unsigned(&j, "missed", c->missed);
	json_bool(&j, "missed_at_least", c->missed_at_least);
	if (c->limited_unknown)
		json_null(&j, "limited");
	else
		json_unsigned(&j, "limited", c->limited);
	if (history >= 0)
		json_unsigned(&j, "history_ns", (uint64_t)(history * 1e9));
	else
		json_null(&j, "history_ns");
	json_end(&j, '}');
	putchar('\n');
}

static void print(const struct stat *st, const struct subject *s, int cpu, bool away,
		  const struct counts *c, double seconds, double history)
{
	struct rates rates = rates_of(c, seconds);

	if (st->call->json)
		print_json(st, s, cpu, away, c, history);
	else
		print_human(st, s, cpu, away, &rates, history);
}

/* ── looking ────────────────────────────────────────────────────────────────────────────── */

/* How far back all CPUs reach: as far as the CPU with the shortest history. */
static double shortest_history(const struct subject *s, uint64_t now)
{
	double shortest = -1;

	for (size_t i = 0; i < perfpersist_event_rings(s->e); i++) {
		double one = history_of(&s->history, i, now);

		if (one >= 0 && (shortest < 0 || one < shortest))
			shortest = one;
	}
	return shortest;
}

static void print_rings(const struct stat *st, struct subject *s,
			const struct perfpersist_info *info, double seconds)
{
	for (size_t i = 0; i < perfpersist_event_rings(s->e); i++) {
		struct counts now = ring_counts(s->e, i, info);
		struct counts diff = counts_since(&now, &s->ring_before[i]);
		int cpu = perfpersist_ring_cpu(s->e, i);

		print(st, s, cpu, list_has_cpu(info->away, (unsigned)cpu), &diff, seconds,
		      history_of(&s->history, i, st->looked));
		s->ring_before[i] = now;
	}
}

/* Opens the event again, because it was deleted or has other or more rings. 0; -errno. */
static int renew(struct stat *st, struct subject *s)
{
	int r;

	subject_close(s);
	r = subject_open(st, s);
	if (r < 0)
		subject_close(s);
	return r == -ENOENT ? 0 : r;
}

static int look_at(struct stat *st, struct subject *s, double seconds)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct counts now, diff;
	int r = perfpersist_show(st->p, s->name.ns, s->name.name, &info);

	if (r >= 0 && perfpersist_event_is_copy(s->e))
		r = perfpersist_event_refresh(s->e, st->p);
	if (r == -ENOENT || r == -ESTALE ||
	    (r >= 0 && (info.set != s->set || strcmp(info.cpus, s->cpus) != 0)))
		return renew(st, s);
	if (r >= 0)
		r = history_look(&s->history, st->turn);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	now = counts_of(&info);
	diff = counts_since(&now, &s->before);
	s->before = now;
	if (st->per_cpu)
		print_rings(st, s, &info, seconds);
	else
		print(st, s, -1, false, &diff, seconds, shortest_history(s, st->looked));
	return 0;
}

static int look(struct stat *st)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	double seconds = (now - st->looked) / 1e9;
	size_t there = 0;

	st->looked = now;
	for (size_t i = 0; i < st->n; i++) {
		struct subject *s = &st->subjects[i];
		int r = s->e ? look_at(st, s, seconds) : 0;

		if (r < 0)
			return call_failed(st->p, r);
		there += s->e != NULL;
	}
	st->turn++;
	fflush(stdout);
	if (there || !st->n)
		return EXIT_OK;
	complain("nothing left to show: the events were deleted");
	return EXIT_NOT_FOUND;
}

static int run_stat(struct stat *st)
{
	int r = find_subjects(st);

	allow_descriptors();
	for (size_t i = 0; !r && i < st->n; i++) {
		int error = subject_open(st, &st->subjects[i]);

		if (error < 0)
			r = call_failed(st->p, error);
	}
	if (r)
		return r;
	if (!st->call->json)
		print_title(st);
	fflush(stdout);
	st->began = st->looked = pp_clock_ns(CLOCK_MONOTONIC);
	signals_catch();
	while (!r && !signals_caught() && !ferror(stdout)) {
		signals_wait(st->interval * 1000000, -1);
		if (signals_caught())
			break;
		r = look(st);
		if (st->left && --st->left == 0)
			break;
	}
	return r;
}

static const struct verb_option options[] = {
	{ 'I', "interval-print", "MSEC", "the time between two lines; default: 1000",
	  TAKE_NUMBER(struct stat, interval, "not a number of milliseconds"), .min = 1,
	  .max = 1000000000 },
	{ 0, "per-cpu", NULL, "print a line for each CPU", TAKE_FLAG(struct stat, per_cpu) },
	{ 0, "interval-count", "N", "end after N intervals",
	  TAKE_NUMBER(struct stat, left, "not a number above 0"), .min = 1 },
	{},
};

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct stat st = { .call = call, .interval = 1000 };
	int r;

	if (!options_read(call, &st))
		return call->code;
	r = call_connect(call, &p);
	if (r)
		return r;
	if (call->connect.saved)
		return stat_saved(call, p, st.per_cpu);
	st.p = p;
	r = run_stat(&st);
	for (size_t i = 0; st.subjects && i < st.n; i++)
		subject_close(&st.subjects[i]);
	free(st.subjects);
	return r;
}

const struct verb verb_stat = {
	.name = "stat",
	.synopsis = "[NAME...] [-I MSEC] [--per-cpu] [--interval-count N]",
	.summary = "show what events record, interval by interval",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "HISTORY is how far back the buffers reach, on the CPU with the shortest history, or\n"
		"with --per-cpu on each. NAME is an event, NAMESPACE/ or a glob of these; without NAME,\n"
		"shows all events that you may read. --json\n"
		"prints an object a line, with the counts of the interval. `away` marks a CPU that is\n"
		"offline. --saved prints one line with the counts up to the save; HISTORY is then the\n"
		"time from the oldest record to the newest.\n"
		"\n"
		"Examples:\n"
		"  perfctl stat switches\n"
		"  perfctl stat switches --per-cpu -I 500\n",
};
