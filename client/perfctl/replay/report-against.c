// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl report --against: the moment that is selected, and the time before it that is compared. */
#include "client/perfctl/replay/report-against.h"

#include <inttypes.h>
#include <string.h>

const struct against_words against_words[COMPARE_CLASSES] = {
	[COMPARE_FATAL] = { "fatal", "%s" },
	[COMPARE_EVENT] = { "event", "%s" },
	[COMPARE_CPU_TIME] = { "cpu_time", "on a CPU" },
	[COMPARE_SAMPLED] = { "sampled", "on a CPU, by samples" },
	[COMPARE_BEGUN] = { "begun", "processes begun" },
	[COMPARE_RECORDS] = { "records", "%s" },
	[COMPARE_SELF] = { "function", "in %s" },
	[COMPARE_TOTAL] = { "function_total", "in %s and what it calls" },
	[COMPARE_BLOCKED] = { "blocked", "blocked (state %s)" },
	[COMPARE_BLOCKED_WORST] = { "blocked_longest", "longest block (state %s)" },
	[COMPARE_WAITED] = { "waited", "waited for a CPU%s" },
	[COMPARE_WAITED_WORST] = { "waited_longest", "longest wait for a CPU%s" },
	[COMPARE_REQUESTS] = { "block", "requests to %s" },
	[COMPARE_REQUESTS_WORST] = { "block_longest", "longest request to %s" },
	[COMPARE_HANDLERS] = { "irq", "%s" },
	[COMPARE_HANDLERS_WORST] = { "irq_longest", "longest %s" },
	[COMPARE_CALLS_WORST] = { "syscall_longest", "longest %s" },
};

/* Most of the change, if the event has records on others, too. */
#define STANDS_OUT 0.8

/* The part of a command's change that a function has which is named for it; and that of others with
 * about as much. */
#define MOST 0.5
#define ALIKE 0.75

uint32_t against_cpu(const struct report_against *a, const struct compare_change *change)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	size_t n;
	const struct compare_source *sources = compare_records_sources(a->records, &n);
	double best = 0, sum = 0, scale;
	uint32_t cpu = UINT32_MAX, used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct compare_source *s = &sources[i];
		uint64_t begin = MAX(s->complete, compare_begin(g));

		if (s->name != change->item->what || begin >= g->since)
			continue;
		scale = (double)(g->until - g->since) / (double)(g->since - begin);
		for (uint32_t c = 0; c < s->n_cpus; c++) {
			uint64_t now = cpu_counts_get(&s->now, c);
			uint64_t before = cpu_counts_get(&s->before, c);
			double by = (double)now - (double)before * scale;

			by = change->excess < 0 ? -by : by;
			used += now || before;
			sum += by;
			if (by > best) {
				best = by;
				cpu = c;
			}
		}
	}
	return used > 1 && best >= STANDS_OUT * sum ? cpu : UINT32_MAX;
}

/* ── Lines ── */

static const struct compare_change *find(const struct report_against *a, enum compare_class class,
					 const struct compare_change *like, bool same_what)
{
	for (size_t i = 0; i < a->n_changes; i++) {
		const struct compare_change *c = &a->changes[i];

		if (c->item->class == class && c->item->comm == like->item->comm &&
		    (!same_what || c->item->what == like->item->what) &&
		    (c->excess < 0) == (like->excess < 0))
			return c;
	}
	return NULL;
}

static bool has_longest(enum compare_class class)
{
	return class == COMPARE_BLOCKED || class == COMPARE_WAITED || class == COMPARE_REQUESTS ||
	       class == COMPARE_HANDLERS;
}

const struct compare_change *against_longest(const struct report_against *a,
					     const struct compare_change *change)
{
	enum compare_class class = change->item->class;

	return has_longest(class) ? find(a, class + 1, change, true) : NULL;
}

/* Of functions with as much, the one that the others call. */
static const struct compare_change *deepest(const struct report_against *a,
					    const struct compare_change *most)
{
	const struct compare_change *best = most;
	double depth = -1;

	for (size_t i = 0; most && i < a->n_changes; i++) {
		const struct compare_change *c = &a->changes[i];
		uint64_t samples = 0;

		if (c->item->class != most->item->class || c->item->comm != most->item->comm ||
		    c->excess < ALIKE * most->excess)
			continue;
		for (size_t k = 0; k < c->item->series.n; k++)
			samples += c->item->series.cells[k].n;
		if (samples && (double)c->item->depth / (double)samples > depth) {
			depth = (double)c->item->depth / (double)samples;
			best = c;
		}
	}
	return best;
}

/* The function with most of a command's change: itself, or else with those that it calls. */
static const struct compare_change *hottest(const struct report_against *a,
					    const struct compare_change *change)
{
	const struct compare_change *self = find(a, COMPARE_SELF, change, false);
	const struct compare_change *total = find(a, COMPARE_TOTAL, change, false);

	return self && (!total || self->excess >= MOST * total->excess) ? self : deepest(a, total);
}

const struct compare_change *against_function(const struct report_against *a,
					      const struct compare_change *change)
{
	enum compare_class class = change->item->class;

	return change->excess > 0 && (class == COMPARE_CPU_TIME || class == COMPARE_SAMPLED)
		       ? hottest(a, change)
		       : NULL;
}

bool against_is_line(const struct report_against *a, const struct compare_change *change)
{
	enum compare_class class = change->item->class;
	bool has_time = find(a, COMPARE_CPU_TIME, change, false);
	bool has_samples = find(a, COMPARE_SAMPLED, change, false);

	switch (class) {
	case COMPARE_SAMPLED:
		return !has_time;
	case COMPARE_SELF:
	case COMPARE_TOTAL:
		return !has_time && !has_samples && change == hottest(a, change);
	case COMPARE_RECORDS:
		return !has_time && !has_samples && !find(a, COMPARE_BEGUN, change, false);
	default:
		return !(class > 0 && has_longest(class - 1) && find(a, class - 1, change, true));
	}
}

/* ── The two times ── */

static uint64_t first_sample(const struct input *in)
{
	struct trace_record record;
	size_t pos = 0;

	while (trace_peek(in->trace, &pos, &record) > 0)
		if (record.kind == TRACE_SAMPLE)
			return record.time;
	return 0;
}

/* Reads the records of all threads and CPUs from the beginning of the time before on. */
static struct selection widen(const struct report_options *o)
{
	struct selection window = o->selection;

	window.cpus = NULL;
	window.pids = window.tids = (struct ids){};
	window.owners = NULL;
	if (window.last && __builtin_add_overflow(window.last, o->against, &window.last))
		window.last = UINT64_MAX;
	if (window.since)
		window.since = window.since > o->against ? window.since - o->against : 1;
	return window;
}

/* "the records begin 3.1 s before the time that is compared" */
static int tell_nothing_before(const struct input *in, const struct report_against *a)
{
	const struct compare_grid *g = compare_grid_of(a->compared);

	complain("%s has too little to compare with: its records are complete from %.3f s before "
		 "the %.3f s that are selected; larger buffers (`perfctl change -m`) hold more, "
		 "and a shorter time needs less",
		 in->what, (double)a->recorded / 1e9, (double)(g->until - g->since) / 1e9);
	return EXIT_NOT_FOUND;
}

static bool find_moment(const struct input *in, const struct report_options *o,
			struct compare_grid *ret, uint64_t *ret_first)
{
	const struct trace_info *info = trace_info(in->trace);
	struct selection moment = o->selection;
	uint64_t first = first_sample(in), since, until;

	selection_settle(&moment, info->realtime_offset, info->last_time);
	since = moment.since;
	until = moment.until ? MIN(moment.until, info->last_time) : info->last_time;
	*ret_first = first;
	if (!first || since >= until)
		return false;
	*ret = compare_grid(since, until, first < since ? MIN(o->against, since - first) : 0);
	return true;
}

/* ── Reading ── */

static bool has_history(const struct compare_records *records, const struct compare_grid *g)
{
	size_t n;
	const struct compare_source *sources = compare_records_sources(records, &n);
	uint64_t width;

	for (size_t i = 0; i < n; i++)
		if ((sources[i].history.known || sources[i].n_cpus) &&
		    compare_history(g, sources[i].complete, &width))
			return true;
	return false;
}

static int print(const struct call *call, const struct report_against *a)
{
	int r = call->json ? report_against_json(a) : report_against_text(a);

	if (r >= 0)
		return EXIT_OK;
	complain("cannot print the report: out of memory");
	return EXIT_FAILED;
}

static int read_records(const struct call *call, const struct report_options *o,
			const struct selection *window, struct input *in,
			struct compare_records *records, uint64_t first)
{
	struct report report = {
		.o = o, .in = in, .info = trace_info(in->trace), .width = report_width()
	};
	struct report_against a = { .report = &report, .records = records, .asked = o->against };
	int r = compare_records_read(records, window);
	uint64_t since;

	if (r < 0 && r != -EBADMSG) {
		complain("cannot read %s: %s", in->what, strerror(-r));
		return EXIT_FAILED;
	}
	if (compare_records_damaged(records))
		complain("%s: the fields of %" PRIu64 " records do not fit the formats of their "
			 "events",
			 in->what, compare_records_damaged(records));
	if (!r && !compare_records_n(records) && input_tell_none(in, &o->selection))
		return EXIT_NOT_FOUND;
	a.compared = compare_records_compared(records);
	since = compare_grid_of(a.compared)->since;
	a.recorded = first < since ? since - first : 0;
	if (!has_history(records, compare_grid_of(a.compared)))
		return tell_nothing_before(in, &a);
	a.findings = compare_records_findings(records, &a.n_findings);
	a.changes = compare_changes(a.compared, &a.n_all);
	for (size_t i = 0; i < a.n_all && a.changes[i].is_unusual; i++)
		*(i < AGAINST_MAX ? &a.n_changes : &a.n_more) += 1;
	return print(call, &a) ?: r < 0 ? EXIT_FAILED : EXIT_OK;
}

static int report_input(const struct call *call, const struct report_options *o,
			const struct selection *window, struct input *in)
{
	_cleanup_(compare_records_freep) struct compare_records *records = NULL;
	_cleanup_(report_cleanup_symbols) struct symbols *symbols = NULL;
	struct compare_grid grid;
	uint64_t first;
	int r;

	if (!find_moment(in, o, &grid, &first)) {
		input_tell_none(in, &o->selection);
		return EXIT_NOT_FOUND;
	}
	r = input_look_ahead(in, &o->selection);
	if (r >= 0)
		r = symbols_new(trace_info(in->trace), &symbols);
	if (r >= 0)
		r = compare_records_new(in, &grid, &o->selection, symbols, &records);
	if (r < 0) {
		complain("cannot read %s: out of memory", in->what);
		return EXIT_FAILED;
	}
	return read_records(call, o, window, in, records, first);
}

int report_against(struct call *call, const struct report_options *o)
{
	_cleanup_(input_done) struct input in = { .fd = -EBADF };
	struct selection window = widen(o);

	return input_open(call, o->file, &window, &in) ?: report_input(call, o, &window, &in);
}
