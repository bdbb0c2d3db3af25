// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl reopen -f. */
#include "client/perfctl/events/follow.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/print/print-record.h"

struct following {
	const struct call *call;
	struct perfpersist *p;
	struct follower *f;
	struct sources sources;
	bool ended;
	uint64_t told; /* records overwritten unread that have been told of */
};

static void tell_overwritten(struct following *w)
{
	const struct event_name *name = follower_name(w->f);
	uint64_t read, overwritten, n;

	follower_counts(w->f, &read, &overwritten);
	if (overwritten <= w->told)
		return;
	n = overwritten - w->told;
	fflush(stdout);
	fprintf(stderr,
		"perfctl: %" PRIu64 " record%s of %s/%s were overwritten before they could be "
		"read; a larger buffer (`perfctl change -m`) holds more\n",
		n, n == 1 ? "" : "s", name->ns, name->name);
	w->told = overwritten;
}

/* Prints all there is to read just now. 0; -errno. */
static int drain(struct following *w)
{
	struct perfpersist_sample sample;
	int r;

	while ((r = follower_next(w->f, &sample)) > 0) {
		struct source *source = sources_of(&w->sources, &sample);

		if (w->call->json)
			record_json(source, &sample, 0, stdout);
		else
			record_print(source, &sample, 0, stdout);
		if (signals_caught() || ferror(stdout))
			break;
	}
	fflush(stdout);
	tell_overwritten(w);
	return r < 0 ? r : 0;
}

static int open_again(struct following *w)
{
	const struct event_name *name = follower_name(w->f);
	bool gap = false;
	int r;

	/* They are the old event's, which goes. */
	sources_done(&w->sources);
	w->sources = (struct sources){};
	r = follower_open_again(w->f, &gap);
	if (r == FOLLOWER_ENDED)
		w->ended = true;
	if (r < 0 || w->ended)
		return r < 0 ? r : 0;
	fprintf(stderr, "perfctl: %s/%s has new buffers, which are followed from here on%s\n",
		name->ns, name->name,
		gap ? "; there were others in between, and what they held was not read" : "");
	return sources_open(follower_event(w->f), &w->sources);
}

/* Has the event come to an end, or to other rings? */
static int look_around(struct following *w)
{
	int r, state = follower_look_around(w->f);

	if (state <= 0)
		return state;
	r = drain(w);
	if (r < 0)
		return r;
	if (state == FOLLOWER_REPLACED)
		return open_again(w);
	w->ended = true;
	return 0;
}

/* The daemon's end, or one of its notices: either is worth a look, once. */
static void hear(struct following *w)
{
	if (perfpersist_dispatch(w->p) < 0 && follower_deserted(w->f))
		fprintf(stderr, "perfctl: the daemon is gone, and nobody wakes any more; "
				"looking for records instead\n");
}

static void wait_for_more(struct following *w)
{
	bool listens = follower_listens(w->f);

	signals_wait(follower_delay(w->f), follower_wakeup(w->f),
		     listens ? perfpersist_fd(w->p) : -1);
	if (listens)
		hear(w);
	follower_woken(w->f);
}

static void summarize(struct following *w)
{
	const struct event_name *name = follower_name(w->f);
	uint64_t read, overwritten;

	follower_counts(w->f, &read, &overwritten);
	fflush(stdout);
	fprintf(stderr, "%s/%s: %" PRIu64 " record%s printed, %" PRIu64 " overwritten unread%s\n",
		name->ns, name->name, read, read == 1 ? "" : "s", overwritten,
		w->ended ? "; the event is gone" : "");
}

static int run(struct following *w)
{
	int r = 0;

	signals_catch();
	while (r >= 0 && !w->ended && !signals_caught() && !ferror(stdout)) {
		r = drain(w);
		if (r >= 0)
			r = look_around(w);
		if (r >= 0 && !w->ended)
			wait_for_more(w);
	}
	summarize(w);
	return r;
}

int follow(const struct call *call, struct perfpersist *p, struct perfpersist_event *e,
	   const struct event_name *name, const struct follow_options *options, uint64_t newest)
{
	struct following w = { .call = call, .p = p };
	int r = follower_new(p, e, name, options, newest, &w.f);

	if (r < 0)
		return call_failed(p, r);
	r = sources_open(follower_event(w.f), &w.sources);
	if (r >= 0)
		r = run(&w);
	sources_done(&w.sources);
	follower_free(w.f);
	if (r == -EBADMSG) {
		complain("cannot go on reading %s/%s: a ring is damaged", name->ns, name->name);
		return EXIT_FAILED;
	}
	return r < 0 ? call_failed(p, r) : EXIT_OK;
}
