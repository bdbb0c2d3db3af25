// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the way from rings to a perf.data file. The library knows both formats. */
#include "client/perfctl/events/take.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/decode/sources.h"
#include "client/perfctl/events/take-traces.h"
#include "client/perfctl/output/progress.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/rates.h"
#include "proto/clock.h"

/* Records between two checks of the clock and of signals. */
#define RECORDS_AT_ONCE 1024

struct taking {
	struct call *call;
	struct perfpersist *p;
	struct selection selection; /* settled; what it points to is the caller's */
	bool was_interrupted;	    /* before it began */
	bool progress;
	uint64_t now;	/* CLOCK_MONOTONIC of what is read, ns */
	uint64_t began; /* likewise, before all the work, as --last means it */
	struct chosen chosen;
	const struct take_window *windows; /* of each event; NULL: all */
	struct perfpersist_interleave *records;
	struct perfpersist_perfdata *data;
	int *numbers;		 /* of the events, in the file */
	struct sources *sources; /* of each event, for --about and --event; else NULL */
	struct taken_traces traces;
	struct take_result result;
};

static void taking_done(struct taking *t)
{
	perfpersist_perfdata_free(t->data);
	perfpersist_interleave_free(t->records);
	for (size_t i = 0; t->sources && i < t->chosen.n; i++)
		sources_done(&t->sources[i]);
	free(t->sources);
	taken_traces_done(&t->traces);
	chosen_done(&t->chosen);
	free(t->numbers);
}

/* ── The file's beginning ───────────────────────────────────────────────────────────────── */

static int begin_file(struct taking *t, int fd, bool pipe)
{
	_cleanup_free_ const char **typed = call_typed(t->call);
	struct perfpersist_perfdata_options options = {
		.sz = sizeof(options),
		.pipe = pipe,
		.argv = typed,
		.argc = (size_t)t->call->argc + 1,
		.realtime_offset = perfpersist_event_realtime(t->chosen.events[0], 0),
	};
	int r;

	t->numbers = calloc(t->chosen.n, sizeof(*t->numbers));
	if (!typed || !t->numbers)
		return -ENOMEM;
	r = perfpersist_perfdata_new(fd, &options, &t->data);
	for (size_t i = 0; r >= 0 && i < t->chosen.n; i++) {
		r = t->numbers[i] = perfpersist_perfdata_event(t->data, t->chosen.events[i]);
		if (r >= 0)
			put_traces(&t->traces, i, t->data, t->numbers[i]);
	}
	return r < 0 ? r : 0;
}

/* Processes that exited before that may have no name in the file. */
static void tell_gaps(const struct perfpersist_sideband_info *info, uint64_t since)
{
	if (!info->keeping)
		complain("sideband is not being recorded (%s): exited processes will be unnamed",
			 sideband_reason(info));
	else if (info->complete > since)
		complain(
			"sideband begins %.1f s after the first record (%s): processes that exited "
			"before that will be unnamed",
			(double)(info->complete - since) / 1e9, sideband_reason(info));
	if (info->lost)
		complain("%" PRIu64 " record%s of sideband %s lost: some processes may be unnamed",
			 info->lost, info->lost == 1 ? "" : "s", info->lost == 1 ? "was" : "were");
}

/* A file without sideband is valid; only names are missing. /proc has none for a save: its processes may
 * have the ids of those of another boot. */
static int add_sideband(struct taking *t, uint64_t since)
{
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };
	_cleanup_close_ int fd = -EBADF;
	/* The first record may be newer than a save's time. */
	int r = perfpersist_sideband(t->p, since, MAX(t->now, since), &info, &fd);
	bool is_saved = t->call->connect.saved;

	if (r < 0 && !(r == -EOPNOTSUPP && is_saved))
		complain("%s; %s will be unnamed", perfpersist_error(t->p),
			 is_saved ? "processes" : "exited processes");
	if (r < 0 && is_saved)
		return 0;
	if (r >= 0)
		tell_gaps(&info, since);
	return perfpersist_perfdata_sideband(t->data, fd >= 0 ? fd : -1);
}

/* ── Records ────────────────────────────────────────────────────────────────────────────── */

static bool is_interrupted(const struct taking *t)
{
	return !t->was_interrupted && signals_caught();
}

static struct source *source_of(struct taking *t, size_t event, const struct perfpersist_sample *s)
{
	return t->sources ? sources_of(&t->sources[event], s) : NULL;
}

static int open_sources(struct taking *t)
{
	int r = 0;

	selection_learn_threads(&t->selection, t->p);
	if (!t->selection.event && !(t->selection.about && selection_has_ids(&t->selection)))
		return 0;
	t->sources = calloc(t->chosen.n, sizeof(*t->sources));
	if (!t->sources)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < t->chosen.n; i++)
		r = sources_open(t->chosen.events[i], &t->sources[i]);
	return r;
}

static bool is_in_window(const struct taking *t, size_t event, uint64_t time)
{
	const struct take_window *w = t->windows ? &t->windows[event] : NULL;

	return !w || !w->until || (time <= w->until && (time >= w->since || t->result.records));
}

static int write_sample(struct taking *t, size_t event, const struct perfpersist_sample *s)
{
	struct take_result *result = &t->result;
	int r;

	if (!is_in_window(t, event, s->time))
		return 0;
	r = selection_learn(&t->selection, s->pid, s->tid);
	if (r < 0)
		return r;
	if (!selection_wants(&t->selection, s, source_of(t, event, s)))
		return 0;
	/* The first record tells from when on sideband is needed. */
	if (!result->records++) {
		result->first = s->time;
		r = add_sideband(t, s->time);
		if (r < 0)
			return r;
	}
	result->last = MAX(result->last, s->time);
	return perfpersist_perfdata_sample(t->data, t->numbers[event], s);
}

/* 0; -EINTR: a signal came. */
static int write_samples(struct taking *t)
{
	struct perfpersist_sample s;
	struct progress progress = {};
	uint64_t begin = 0, n = 0;
	size_t event;
	int r;

	progress_start(&progress, t->progress ? "snapshot" : NULL);
	while ((r = perfpersist_interleave_next(t->records, &s, &event)) > 0) {
		begin = begin ?: s.time;
		if (++n % RECORDS_AT_ONCE == 0) {
			progress_tell(&progress, s.time - begin, MAX(t->now, s.time) - begin);
			if (is_interrupted(t)) {
				r = -EINTR;
				break;
			}
		}
		r = write_sample(t, event, &s);
		if (r < 0)
			break;
	}
	progress_end(&progress);
	return r;
}

/* ── What is missing ────────────────────────────────────────────────────────────────────── */

/* Whether an event may have missed records since then: only sampling events know when. */
static bool missed_since(const struct taking *t, size_t event, const struct perfpersist_info *info,
			 uint64_t begin)
{
	struct perfpersist_event *e = t->chosen.events[event];
	uint64_t newest = 0;

	if (!info->missed || info->recorder != PERFPERSIST_RECORDER_OVERFLOW)
		return info->missed;
	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

		/* An older recorder does not store the time of its misses. */
		if (perfpersist_ring_stat(e, i, &stat) < 0 || (stat.missed && !stat.missed_time))
			newest = UINT64_MAX;
		newest = MAX(newest, stat.missed_time);
	}
	return newest >= begin;
}

/*
 * Whether an event's missed records are worth a message: not if it missed all of them before the
 * records that are read, nor if a sampling event missed less than a hundredth of its samples, which
 * does not change the result.
 */
static bool missed_matters(const struct taking *t, size_t event,
			   const struct perfpersist_info *info)
{
	uint64_t begin = MAX(perfpersist_interleave_begin(t->records, event), t->selection.since);
	bool samples = info->recorder == PERFPERSIST_RECORDER_OVERFLOW;

	return missed_since(t, event, info, begin) &&
	       !(samples && info->missed < info->records / 100);
}

/* Missed records have no time. They count as lost in the file only if it has all that was ever
 * recorded: what earlier sets of rings held is not there, nor what is not in the window. */
static bool has_all(const struct taking *t, size_t i, const struct perfpersist_info *info)
{
	const struct selection *s = &t->selection;

	if (t->windows && t->windows[i].until)
		return false;
	return info->set <= 1 && !perfpersist_interleave_begin(t->records, i) && !s->since &&
	       !s->until && !s->cpus && !s->event && !selection_has_ids(s);
}

static int write_missed(struct taking *t, size_t i, const struct perfpersist_info *info)
{
	bool at_least = info->missed_unknown || info->missed_at_least;

	t->result.missed += info->missed;
	t->result.missed_unknown |= at_least;
	if (!info->missed)
		return 0;
	if (missed_matters(t, i, info))
		complain("%s/%s has missed %s%" PRIu64 " record%s since it began", info->ns,
			 info->name, at_least ? "at least " : "", info->missed,
			 info->missed == 1 ? "" : "s");
	if (!has_all(t, i, info))
		return 0;
	return perfpersist_perfdata_lost(t->data, t->numbers[i], UINT32_MAX, t->result.last,
					 info->missed);
}

/* The history of what was to be written: not of other CPUs, and of the selected times. What was frozen when a
 * trigger fired ends with its last record. A window takes what is before it only from the
 * first record of the file on. */
static void cut_history(const struct taking *t, size_t i, struct perfpersist_history *h)
{
	const struct selection *s = &t->selection;
	const struct take_window *w = t->windows ? &t->windows[i] : NULL;

	h->from = MAX(h->from, s->since);
	if (s->until)
		h->to = MIN(h->to, s->until);
	if (w)
		h->to = MIN(h->to, t->result.last);
	if (w && w->until)
		h->from = MAX(h->from, MIN(w->since, t->result.first ?: w->since));
	h->from = MIN(h->from, h->to);
}

/* Writes those of each source that --event selects, or (usually) of all of them. */
static int write_source_histories(struct taking *t, size_t i, const struct perfpersist_history *h)
{
	const struct sources *s = t->sources ? &t->sources[i] : NULL;
	int r = 0;

	if (!t->selection.event)
		return perfpersist_perfdata_history(t->data, t->numbers[i], UINT32_MAX, h);
	for (size_t k = 0; r >= 0 && k < s->n; k++)
		if (selection_wants_event(&t->selection, s->all[k].name))
			r = perfpersist_perfdata_history(t->data, t->numbers[i], (uint32_t)k, h);
	return r;
}

/* When the history of the first CPU begins. */
static uint64_t earliest(const struct taking *t, size_t i)
{
	uint64_t from = UINT64_MAX;

	for (size_t ring = 0; ring < perfpersist_event_rings(t->chosen.events[i]); ring++) {
		struct perfpersist_history h = { .sz = sizeof(h) };

		if (perfpersist_interleave_history(t->records, i, ring, &h) >= 0)
			from = MIN(from, h.from);
	}
	return from;
}

/* From when on each CPU's records are complete; what was missed, unless write_missed() has said it. */
static int write_history(struct taking *t, size_t i, const struct perfpersist_info *info)
{
	const struct selection *s = &t->selection;
	size_t n = perfpersist_event_rings(t->chosen.events[i]);
	bool missed =
		!has_all(t, i, info) && missed_since(t, i, info, MAX(earliest(t, i), s->since));
	int r = 0;

	for (size_t ring = 0; r >= 0 && ring < n; ring++) {
		struct perfpersist_history h = { .sz = sizeof(h) };

		r = perfpersist_interleave_history(t->records, i, ring, &h);
		if (r < 0 || (s->cpus && (h.cpu >= s->n_cpus || !s->cpus[h.cpu])))
			continue;
		h.missed = missed ? h.missed : 0;
		cut_history(t, i, &h);
		r = write_source_histories(t, i, &h);
	}
	return r;
}

static void tell_begin(const struct taking *t, size_t i, const struct perfpersist_info *info)
{
	uint64_t begin = perfpersist_interleave_begin(t->records, i), since = t->selection.since;
	uint64_t first = earliest(t, i);
	double asked = (double)(t->began - MIN(since, t->began)) / 1e9;

	if (!since)
		return;
	if (begin > since)
		complain("%s/%s reaches back %.1f s only, not %.1f s; a larger buffer (`perfctl "
			 "change -m`) holds more",
			 info->ns, info->name, (double)(t->began - MIN(begin, t->began)) / 1e9,
			 asked);
	/* When a later set of rings began to record is not known: not after its first record. */
	else if (info->set > 1 && first > since && first < t->began)
		complain("%s/%s has got new buffers since it began; they are known to reach back "
			 "%.1f s only, not %.1f s",
			 info->ns, info->name, (double)(t->began - first) / 1e9, asked);
}

static int write_end(struct taking *t)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = t->result.records ? 0 : add_sideband(t, t->now);

	for (size_t i = 0; r >= 0 && i < t->chosen.n; i++) {
		r = perfpersist_interleave_info(t->records, i, &info);
		if (r < 0)
			break;
		tell_begin(t, i, &info);
		r = write_missed(t, i, &info);
		if (r >= 0)
			r = write_history(t, i, &info);
	}
	if (r >= 0)
		r = perfpersist_perfdata_finish(t->data);
	t->result.events = t->chosen.n;
	t->result.bytes = perfpersist_perfdata_bytes(t->data);
	t->result.damaged = perfpersist_interleave_damaged(t->records);
	if (t->result.damaged)
		complain("%" PRIu64 " ring%s damaged: the file has the readable records of %s",
			 t->result.damaged, t->result.damaged == 1 ? " is" : "s are",
			 t->result.damaged == 1 ? "it" : "them");
	return r;
}

static void settle(struct taking *t)
{
	t->now = chosen_now(t->records, t->chosen.n, pp_clock_ns(CLOCK_MONOTONIC));
	t->began = chosen_now(t->records, t->chosen.n, t->began);
	selection_settle(&t->selection, perfpersist_event_realtime(t->chosen.events[0], 0),
			 t->began);
}

static int write_file(struct taking *t, int fd, bool pipe, struct take_result *ret)
{
	int r = t->windows ? 0 : take_traces(t->p, &t->chosen, &t->selection, &t->traces);

	t->result.traces = t->traces.n;
	t->result.has_samples = t->traces.has_samples;
	t->result.untraced = t->traces.untraced;
	if (r >= 0)
		r = perfpersist_interleave_new(t->chosen.events, t->chosen.n, &t->records);
	if (r >= 0) {
		settle(t);
		r = begin_file(t, fd, pipe);
	}
	if (r >= 0)
		r = open_sources(t);
	if (r >= 0)
		r = write_samples(t);
	if (r >= 0)
		r = write_end(t);
	*ret = t->result;
	return MIN(r, 0);
}

static int failed(const struct taking *t, int error)
{
	if (error != -EINTR && t->data)
		return call_failed(NULL, error);
	if (error == -EINTR)
		complain("interrupted: no snapshot was written");
	else
		complain("cannot take a snapshot: %s", strerror(-error));
	return EXIT_FAILED;
}

int take(struct call *call, struct perfpersist *p, char **names, size_t n_names,
	 struct selection *selection, int fd, bool pipe, bool progress, struct take_result *ret)
{
	_cleanup_(taking_done) struct taking t = {
		.call = call,
		.p = p,
		.selection = *selection,
		.was_interrupted = signals_caught(),
		.progress = progress,
		.began = pp_clock_ns(CLOCK_MONOTONIC),
	};
	int r = choose_events(call, p, names, n_names, false, &t.chosen);

	if (r)
		return r;
	r = write_file(&t, fd, pipe, ret);
	return r < 0 ? failed(&t, r) : EXIT_OK;
}

int take_opened(struct call *call, struct perfpersist *p, struct chosen *events,
		const struct take_window *windows, int fd, struct take_result *ret)
{
	_cleanup_(taking_done) struct taking t = {
		.call = call,
		.p = p,
		.was_interrupted = signals_caught(),
		.began = pp_clock_ns(CLOCK_MONOTONIC),
		.chosen = *events,
		.windows = windows,
	};

	*events = (struct chosen){};
	return write_file(&t, fd, false, ret);
}
