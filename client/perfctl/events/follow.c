// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl reopen -f: prints records as they arrive. */
#include "client/perfctl/events/follow.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/print/print-record.h"
#include "proto/clock.h"

/* An event, in the order of the stream. */
struct followed {
	struct event_name name;
	struct sources sources;
	uint64_t printed, overwritten;
	bool is_gone;
};

struct following {
	const struct call *call;
	struct perfpersist *p; /* the stream's */
	const struct follow_options *options;
	const struct selection *selection;
	struct perfpersist_stream *stream;
	struct followed *all;
	size_t n;
	bool ended;
	int code; /* of an event that ended before its time, which was told */
};

static void following_done(struct following *w)
{
	for (size_t i = 0; i < w->n; i++)
		sources_done(&w->all[i].sources);
	free(w->all);
	perfpersist_stream_free(w->stream);
}

static int print_record(struct following *w, struct followed *e,
			const struct perfpersist_sample *sample)
{
	struct source *source = sources_of(&e->sources, sample);

	/* After a signal, records that are already read are not printed; overwritten ones still
	 * count. */
	if (signals_caught() || ferror(stdout))
		return 0;
	if (selection_learn(w->selection, sample->pid, sample->tid) < 0)
		return -ENOMEM;
	if (!selection_wants(w->selection, sample, source))
		return 0;
	if (w->call->json)
		record_json(source, sample, 0, stdout);
	else
		record_print(source, sample, 0, stdout);
	e->printed++;
	return 0;
}

static void tell_overwritten(struct followed *e, uint64_t n)
{
	fflush(stdout);
	fprintf(stderr,
		"perfctl: %" PRIu64 " record%s of %s/%s were overwritten before they could be "
		"read; a larger buffer (`perfctl change -m`) holds more\n",
		n, n == 1 ? "" : "s", e->name.ns, e->name.name);
	e->overwritten += n;
}

static int open_again(struct following *w, size_t event, bool gap)
{
	struct followed *e = &w->all[event];

	/* They belong to the old event, which is about to be freed. */
	sources_done(&e->sources);
	fprintf(stderr, "perfctl: %s/%s has new buffers; following those from here on%s\n",
		e->name.ns, e->name.name, gap ? "; records in between were not read" : "");
	return sources_open(perfpersist_stream_event(w->stream, event), &e->sources);
}

static int take_item(struct following *w, const struct perfpersist_stream_item *item)
{
	switch (item->kind) {
	case PERFPERSIST_STREAM_RECORD:
		return print_record(w, &w->all[item->event], &item->sample);
	case PERFPERSIST_STREAM_OVERWRITTEN:
		tell_overwritten(&w->all[item->event], item->count);
		break;
	case PERFPERSIST_STREAM_RESIZED:
	case PERFPERSIST_STREAM_REPLACED:
		return open_again(w, item->event, item->gap);
	case PERFPERSIST_STREAM_DELETED:
		w->all[item->event].is_gone = true;
		break;
	case PERFPERSIST_STREAM_UNATTENDED:
		if (w->options->wakeup)
			fprintf(stderr, "perfctl: the daemon is gone and wakes no readers; "
					"polling for records instead\n");
		break;
	case PERFPERSIST_STREAM_END:
		w->ended = true;
		break;
	default:
		break;
	}
	return 0;
}

/* Prints what can be read now. 0; 1: there is more; -errno. */
static int go_round(struct following *w)
{
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	int taken = 0, r = perfpersist_stream_dispatch(w->stream);

	if (r == -EBADMSG || r == -ECONNRESET) { /* that is one event's end, and the others go on */
		w->code = call_failed(w->p, r);
		if (r == -EBADMSG)
			w->code = EXIT_FAILED;
		r = 1;
	}
	while (taken >= 0 && perfpersist_stream_next(w->stream, &item) > 0)
		taken = take_item(w, &item);
	fflush(stdout);
	return taken < 0 ? taken : r;
}

static void summarize(const struct following *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct followed *e = &w->all[i];

		fprintf(stderr,
			"%s/%s: %" PRIu64 " record%s printed, %" PRIu64 " overwritten unread%s\n",
			e->name.ns, e->name.name, e->printed, e->printed == 1 ? "" : "s",
			e->overwritten, e->is_gone ? "; the event is gone" : "");
	}
}

static int run(struct following *w)
{
	int r = 0;

	signals_catch();
	while (r >= 0 && !w->ended && !signals_caught() && !ferror(stdout)) {
		r = go_round(w);
		if (r == 0 && !w->ended)
			signals_wait(perfpersist_stream_delay(w->stream),
				     perfpersist_stream_fd(w->stream));
	}
	summarize(w);
	return r;
}

static int add_events(struct following *w, const struct chosen *events, uint64_t newest)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = 0;

	w->all = calloc(events->n, sizeof(*w->all));
	if (!w->all)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < events->n; i++) {
		struct followed *e = &w->all[w->n++];

		r = perfpersist_event_info(events->events[i], &info);
		memcpy(e->name.ns, info.ns, sizeof(e->name.ns));
		memcpy(e->name.name, info.name, sizeof(e->name.name));
		if (r >= 0)
			r = perfpersist_stream_add(w->stream, events->events[i], newest);
		if (r >= 0)
			r = sources_open(events->events[i], &e->sources);
	}
	return r;
}

int follow(const struct call *call, struct perfpersist *p, const struct chosen *events,
	   struct selection *selection, const struct follow_options *options, uint64_t newest)
{
	struct perfpersist_stream_options o = {
		.sz = sizeof(o),
		.wakeup = options->wakeup,
		.at_once = true,
	};
	_cleanup_(following_done) struct following w = {
		.call = call,
		.p = p,
		.options = options,
		.selection = selection,
		.code = EXIT_OK,
	};
	int r = perfpersist_stream_new(p, &o, &w.stream);

	if (r < 0) {
		r = call_failed(p, r);
		perfpersist_free(p);
		return r;
	}
	selection_settle(selection, 0, pp_clock_ns(CLOCK_MONOTONIC));
	selection_learn_threads(selection, p);
	r = add_events(&w, events, newest);
	if (r >= 0)
		r = run(&w);
	if (r < 0)
		return call_failed(p, r);
	return w.code;
}
