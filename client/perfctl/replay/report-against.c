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

/* The function that the others call, among those with as much. */
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

size_t against_lines(const struct report_against *a, const struct compare_change **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_changes; i++)
		if (against_is_line(a, &a->changes[i]) && n++ < max)
			ret[n - 1] = &a->changes[i];
	return n;
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

/* All threads and CPUs from the beginning of the time before on. */
struct selection against_window(const struct report_options *o)
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

static bool find_moment(const struct input *in, const struct report_options *o,
			struct compare_grid *ret, uint64_t *ret_recorded)
{
	const struct trace_info *info = trace_info(in->trace);
	struct selection moment = o->selection;
	uint64_t first = first_sample(in), since, until;

	selection_settle(&moment, info->realtime_offset, info->last_time);
	since = moment.since;
	until = moment.until ? MIN(moment.until, info->last_time) : info->last_time;
	if (!first || since >= until)
		return false;
	*ret_recorded = first < since ? since - first : 0;
	*ret = compare_grid(since, until, MIN(o->against, *ret_recorded));
	return true;
}

/* ── From the first record to the last ── */

int against_begin(struct input *in, const struct report_options *o, struct symbols *symbols,
		  struct report_against *ret)
{
	struct report_against a = {
		.report = { .o = o,
			    .in = in,
			    .info = trace_info(in->trace),
			    .width = terminal().ws_col },
		.asked = o->against,
	};
	struct compare_grid grid;

	if (!find_moment(in, o, &grid, &a.recorded)) {
		input_tell_none(in, &o->selection);
		return EXIT_NOT_FOUND;
	}
	if (input_look_ahead(in, &o->selection) < 0 ||
	    compare_records_new(in, &grid, &o->selection, symbols, &a.records) < 0) {
		complain("cannot read %s: out of memory", in->what);
		return EXIT_FAILED;
	}
	a.compared = compare_records_compared(a.records);
	*ret = a;
	return EXIT_OK;
}

void against_done(struct report_against *a)
{
	compare_records_free(a->records);
	*a = (struct report_against){};
}

static bool has_history(const struct report_against *a)
{
	size_t n;
	const struct compare_source *sources = compare_records_sources(a->records, &n);
	uint64_t width;

	for (size_t i = 0; i < n; i++)
		if ((sources[i].history.known || sources[i].n_cpus) &&
		    compare_history(compare_grid_of(a->compared), sources[i].complete, &width))
			return true;
	return false;
}

/* "the records begin 3.1 s before the time that is compared" */
static int tell_nothing_before(const struct report_against *a)
{
	const struct compare_grid *g = compare_grid_of(a->compared);

	complain("%s has too little to compare with: its records are complete from %.3f s before "
		 "the %.3f s that are selected; larger buffers (`perfctl change -m`) hold more, "
		 "and a shorter time needs less",
		 a->report.in->what, (double)a->recorded / 1e9,
		 (double)(g->until - g->since) / 1e9);
	return EXIT_NOT_FOUND;
}

int against_judge(struct report_against *a, bool damaged)
{
	const struct input *in = a->report.in;

	if (compare_records_damaged(a->records))
		complain("%s: the fields of %" PRIu64 " records do not fit the formats of their "
			 "events",
			 in->what, compare_records_damaged(a->records));
	if (!damaged && !compare_records_n(a->records) &&
	    input_tell_none(in, &a->report.o->selection))
		return EXIT_NOT_FOUND;
	if (!has_history(a))
		return tell_nothing_before(a);
	a->findings = compare_records_findings(a->records, &a->n_findings);
	a->changes = compare_changes(a->compared, &a->n_all);
	for (size_t i = 0; i < a->n_all && a->changes[i].is_unusual; i++)
		*(i < AGAINST_MAX ? &a->n_changes : &a->n_more) += 1;
	return EXIT_OK;
}

/* ── The report ── */

static int print(const struct call *call, const struct report_against *a)
{
	int r = call->json ? report_against_json(a) : report_against_text(a);

	if (r >= 0)
		return EXIT_OK;
	complain("cannot print the report: out of memory");
	return EXIT_FAILED;
}

static int report_input(const struct call *call, const struct report_options *o,
			const struct selection *window, struct input *in)
{
	_cleanup_(against_done) struct report_against a = {};
	_cleanup_(report_cleanup_symbols) struct symbols *symbols = NULL;
	int code, r = symbols_new(trace_info(in->trace), &symbols);

	if (r >= 0) {
		code = against_begin(in, o, symbols, &a);
		if (code)
			return code;
		r = compare_records_read(a.records, window);
	}
	if (r < 0 && r != -EBADMSG) {
		complain("cannot read %s: %s", in->what, strerror(-r));
		return EXIT_FAILED;
	}
	code = against_judge(&a, r < 0) ?: print(call, &a);
	return code ?: r < 0 ? EXIT_FAILED : EXIT_OK;
}

int report_against(struct call *call, const struct report_options *o)
{
	_cleanup_(input_done) struct input in = { .fd = -EBADF };
	struct selection window = against_window(o);

	return input_open(call, o->file, &window, &in) ?: report_input(call, o, &window, &in);
}
