// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl reopen -f. When the event gets other rings (a resize) they are opened and followed from
 * their beginning, after the old ones were read to their end; when it gets more of them, because a
 * CPU came, these are followed, too.
 */
#include "client/perfctl/follow.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/record.h"

/* Between two looks at copies, each of which the daemon has to make. */
#define COPY_INTERVAL 500000000ULL
/* Who is woken looks by himself only this often, for the case that nobody is there to wake. */
#define WOKEN_INTERVAL 10000000000ULL

struct follower {
	const struct call *call;
	const struct event_name *name;
	const struct follow_options *options;
	struct perfpersist *p;
	struct perfpersist_event *e;
	struct perfpersist_follow *f;
	struct sources sources;
	uint32_t set; /* of rings, that is followed */
	int wakeup;   /* an eventfd, or -EBADF */
	bool told_of; /* the daemon tells what happens to the event */
	bool changed; /* and has done so */
	bool ended;   /* the event is gone, or the daemon of copies is */

	uint64_t read, overwritten; /* of rings that were replaced */
	uint64_t told;		    /* overwritten ones, in all */
};

static void close_rings(struct follower *w)
{
	perfpersist_follow_free(w->f);
	sources_done(&w->sources);
	perfpersist_event_free(w->e);
	w->f = NULL;
	w->e = NULL;
}

static int start(struct follower *w, struct perfpersist_event *e, uint64_t newest)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r;

	w->e = e;
	r = perfpersist_event_info(e, &info);
	if (r >= 0)
		r = sources_open(e, &w->sources);
	if (r < 0)
		return r;
	w->set = info.set;
	return perfpersist_follow_new(e, newest, &w->f);
}

/* What was read of the rings that are open, and what was not. */
static void count(struct follower *w, uint64_t *read, uint64_t *overwritten)
{
	*read = w->read;
	*overwritten = w->overwritten;
	for (size_t i = 0; w->f && i < perfpersist_event_rings(w->e); i++) {
		struct perfpersist_follow_stat s = { .sz = sizeof(s) };

		if (perfpersist_follow_stat(w->f, i, &s) < 0)
			continue;
		*read += s.read;
		*overwritten += s.overwritten;
	}
}

static void tell_overwritten(struct follower *w)
{
	uint64_t read, overwritten;

	count(w, &read, &overwritten);
	if (overwritten <= w->told)
		return;
	fflush(stdout);
	fprintf(stderr,
		"perfctl: %" PRIu64 " record%s of %s/%s were overwritten before they could be "
		"read; a larger buffer (`perfctl change -m`) holds more\n",
		overwritten - w->told, overwritten - w->told == 1 ? "" : "s", w->name->ns,
		w->name->name);
	w->told = overwritten;
}

/* Prints all there is to read just now. 0; -errno. */
static int drain(struct follower *w)
{
	struct perfpersist_sample sample;
	int r;

	while ((r = perfpersist_follow_next(w->f, &sample)) > 0) {
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

/* Records of new rings that were overwritten before we had opened them. */
static void count_begin(struct follower *w)
{
	for (size_t i = 0; i < perfpersist_event_rings(w->e); i++) {
		struct perfpersist_follow_stat s = { .sz = sizeof(s) };

		if (perfpersist_follow_stat(w->f, i, &s) >= 0)
			w->overwritten += s.begin;
	}
}

/* The event has other rings now; what the old ones still had is read first. */
static int open_again(struct follower *w)
{
	struct perfpersist_event *e = NULL;
	uint32_t set;
	int r;

	r = drain(w);
	if (r < 0)
		return r;
	r = w->options->copies ? perfpersist_open_copy(w->p, w->name->ns, w->name->name, &e)
			       : perfpersist_open(w->p, w->name->ns, w->name->name, &e);
	if (r == -ENOENT) {
		w->ended = true;
		return 0;
	}
	if (r < 0)
		return r;
	count(w, &w->read, &w->overwritten);
	close_rings(w);
	set = w->set;
	r = start(w, e, SIZE_MAX);
	if (r >= 0)
		count_begin(w);
	if (r >= 0)
		fprintf(stderr,
			"perfctl: %s/%s has new buffers, which are followed from here on%s\n",
			w->name->ns, w->name->name,
			w->set > set + 1 ? "; there were others in between, and what they held "
					   "was not read"
					 : "");
	return r;
}

/* What is in the way (it was deleted, or replaced) the rings themselves tell at the next look; who
 * is asked to come again does so. */
static int look_for_more_rings(struct follower *w)
{
	w->changed = perfpersist_event_refresh(w->e, w->p) == -EAGAIN;
	return 0;
}

/* Has the event come to an end, or to other rings? */
static int look_around(struct follower *w)
{
	int r;

	if (perfpersist_event_is_copy(w->e)) {
		r = perfpersist_event_refresh(w->e, w->p);
		if (r == -ESTALE)
			return open_again(w);
		if (r == -ENOENT)
			w->ended = true;
		return r == -ENOENT || r == -EAGAIN ? 0 : r;
	}
	switch (perfpersist_event_state(w->e)) {
	case PERFPERSIST_RINGS_RETIRED:
		return open_again(w);
	case PERFPERSIST_RINGS_DELETED:
		w->ended = true;
		return drain(w);
	default:
		return w->changed ? look_for_more_rings(w) : 0;
	}
}

/* The daemon's end, or one of its notices: either is worth a look, once. */
static void hear(struct follower *w)
{
	if (perfpersist_dispatch(w->p) >= 0)
		return;
	w->told_of = false;
	if (w->wakeup >= 0)
		fprintf(stderr, "perfctl: the daemon is gone, and nobody wakes any more; "
				"looking for records instead\n");
	w->wakeup = close_fd(w->wakeup);
}

static void wait_for_more(struct follower *w)
{
	bool is_copy = perfpersist_event_is_copy(w->e);
	int fd = w->told_of && !is_copy ? perfpersist_fd(w->p) : -1;
	uint64_t count;

	if (is_copy)
		signals_wait(COPY_INTERVAL, w->wakeup, -1);
	else
		signals_wait(w->wakeup >= 0 ? WOKEN_INTERVAL : perfpersist_follow_delay(w->f),
			     w->wakeup, fd);
	if (fd >= 0)
		hear(w);
	if (w->wakeup >= 0 && read(w->wakeup, &count, sizeof(count)) < 0 && errno != EAGAIN)
		w->wakeup = close_fd(w->wakeup);
}

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *notice,
		      void *userdata)
{
	struct follower *w = userdata;

	w->changed |= notice->kind == PERFPERSIST_NOTICE_LOST ||
		      (notice->kind == PERFPERSIST_NOTICE_CHANGED &&
		       !strcmp(notice->info->name, w->name->name));
}

/* What is told of the namespace wakes, too: that the event was deleted, say. Who is not told goes
 * on with the rings there are. */
static int be_told(struct follower *w)
{
	int r = w->options->wakeup
			? perfpersist_wakeup(w->p, w->name->ns, w->name->name, &w->wakeup)
			: 0;

	if (r < 0)
		return r;
	r = perfpersist_watch(w->p, w->name->ns, on_notice, w);
	w->told_of = r >= 0;
	return w->options->wakeup ? r : 0;
}

static void summarize(struct follower *w)
{
	uint64_t read, overwritten;

	count(w, &read, &overwritten);
	fflush(stdout);
	fprintf(stderr, "%s/%s: %" PRIu64 " record%s printed, %" PRIu64 " overwritten unread%s\n",
		w->name->ns, w->name->name, read, read == 1 ? "" : "s", overwritten,
		w->ended ? "; the event is gone" : "");
}

static int run(struct follower *w)
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
	struct follower w = {
		.call = call,
		.p = p,
		.name = name,
		.options = options,
		.wakeup = -EBADF,
	};
	int r = start(&w, e, newest);

	if (r >= 0)
		r = be_told(&w);
	if (r < 0) {
		close_rings(&w);
		return call_failed(p, r);
	}
	r = run(&w);
	close_rings(&w);
	close_fd(w.wakeup);
	if (r == -EBADMSG) {
		complain("cannot go on reading %s/%s: a ring is damaged", name->ns, name->name);
		return EXIT_FAILED;
	}
	return r < 0 ? call_failed(p, r) : EXIT_OK;
}
