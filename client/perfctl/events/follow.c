// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl reopen -f: prints records as they arrive. */
#include "client/perfctl/events/follow.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/print/print-record.h"

struct following {
	const struct call *call;
	const struct event_name *name;
	const struct follow_options *options;
	struct perfpersist_stream *stream;
	struct sources sources;
	uint64_t printed, overwritten;
	bool is_gone, ended;
};

static void print_record(struct following *w, const struct perfpersist_sample *sample)
{
	struct source *source = sources_of(&w->sources, sample);

	/* After a signal, records that are already read are not printed; overwritten ones still
	 * count. */
	if (signals_caught() || ferror(stdout))
		return;
	if (w->call->json)
		record_json(source, sample, 0, stdout);
	else
		record_print(source, sample, 0, stdout);
	w->printed++;
}

static void tell_overwritten(struct following *w, uint64_t n)
{
	fflush(stdout);
	fprintf(stderr,
		"perfctl: %" PRIu64 " record%s of %s/%s were overwritten before they could be "
		"read; a larger buffer (`perfctl change -m`) holds more\n",
		n, n == 1 ? "" : "s", w->name->ns, w->name->name);
	w->overwritten += n;
}

static int open_again(struct following *w, bool gap)
{
	/* They belong to the old event, which is about to be freed. */
	sources_done(&w->sources);
	fprintf(stderr, "perfctl: %s/%s has new buffers; following those from here on%s\n",
		w->name->ns, w->name->name,
		gap ? "; it had others in between, whose records were not read" : "");
	return sources_open(perfpersist_stream_event(w->stream, 0), &w->sources);
}

static int take_item(struct following *w, const struct perfpersist_stream_item *item)
{
	switch (item->kind) {
	case PERFPERSIST_STREAM_RECORD:
		print_record(w, &item->sample);
		break;
	case PERFPERSIST_STREAM_OVERWRITTEN:
		tell_overwritten(w, item->count);
		break;
	case PERFPERSIST_STREAM_RESIZED:
	case PERFPERSIST_STREAM_REPLACED:
		return open_again(w, item->gap);
	case PERFPERSIST_STREAM_DELETED:
		w->is_gone = true;
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

	while (taken >= 0 && perfpersist_stream_next(w->stream, &item) > 0)
		taken = take_item(w, &item);
	fflush(stdout);
	return taken < 0 ? taken : r;
}

static void summarize(const struct following *w)
{
	fprintf(stderr, "%s/%s: %" PRIu64 " record%s printed, %" PRIu64 " overwritten unread%s\n",
		w->name->ns, w->name->name, w->printed, w->printed == 1 ? "" : "s", w->overwritten,
		w->is_gone ? "; the event is gone" : "");
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

int follow(const struct call *call, struct perfpersist *p, struct perfpersist_event *e,
	   const struct event_name *name, const struct follow_options *options, uint64_t newest)
{
	struct perfpersist_stream_options o = {
		.sz = sizeof(o),
		.wakeup = options->wakeup,
		.at_once = true,
	};
	struct following w = { .call = call, .name = name, .options = options };
	int code = EXIT_OK, r = perfpersist_stream_new(p, &o, &w.stream);

	if (r < 0) {
		code = call_failed(p, r);
		perfpersist_free(p);
		return code;
	}
	r = perfpersist_stream_add(w.stream, e, newest);
	if (r >= 0)
		r = sources_open(e, &w.sources);
	if (r >= 0)
		r = run(&w);
	if (r < 0)
		code = call_failed(p, r);
	sources_done(&w.sources);
	perfpersist_stream_free(w.stream);
	return r == -EBADMSG ? EXIT_FAILED : code;
}
