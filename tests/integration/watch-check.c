// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Watches an event through the library, while another connection pauses and resumes it:
 *
 *   watch-check INSTANCE NAMESPACE/EVENT follows N   it gets all notices, one by one, in order
 *   watch-check INSTANCE NAMESPACE/EVENT lags N      another watcher reads nothing until it is
 *                                                    over: the notices that it gets + those reported
 *                                                    lost = all of them; the other one gets all
 *
 * The watcher that follows reads each notice before the next pause or resume: it never falls
 * behind, however busy the machine is, so it may not lose any.
 *
 * Exit 0: everything is correct; 1: something is not, and it prints what; 2: it could not run.
 */
#include <poll.h>

#include "tests/integration/observe.h"

struct seen {
	const char *ns, *name;
	uint64_t started, paused, resumed, other, lost, losses, faults;
	bool is_paused, in_doubt; /* after a loss it may be either */
};

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *n,
		      void *userdata)
{
	struct seen *s = userdata;
	bool paused = n->kind == PERFPERSIST_NOTICE_PAUSED;

	switch (n->kind) {
	case PERFPERSIST_NOTICE_STARTED:
		s->started++;
		return;
	case PERFPERSIST_NOTICE_LOST:
		s->lost += n->lost;
		s->losses++;
		s->in_doubt = true;
		return;
	case PERFPERSIST_NOTICE_PAUSED:
	case PERFPERSIST_NOTICE_RESUMED:
		break;
	default:
		s->other++;
		return;
	}
	if (paused)
		s->paused++;
	else
		s->resumed++;
	if (!n->info || strcmp(n->info->ns, s->ns) || strcmp(n->info->name, s->name) ||
	    n->info->state != (paused ? PERFPERSIST_PAUSED : PERFPERSIST_RUNNING) ||
	    (!s->in_doubt && s->is_paused == paused))
		s->faults++;
	s->is_paused = paused;
	s->in_doubt = false;
}

struct watcher {
	struct perfpersist *p;
	struct seen seen;
};

static void watch(struct watcher *w, const char *instance, const char *ns, const char *name)
{
	w->seen = (struct seen){ .ns = ns, .name = name };
	w->p = connect_to(instance);
	if (perfpersist_watch(w->p, ns, on_notice, &w->seen) < 0)
		die("%s", perfpersist_error(w->p));
	if (w->seen.started != 1)
		die("perfpersist_watch() returned before it had begun");
}

static uint64_t known(const struct watcher *w)
{
	return w->seen.paused + w->seen.resumed + w->seen.lost;
}

/* Reads until so many notices are known. */
static void take(struct watcher *w, uint64_t n)
{
	while (known(w) < n) {
		struct pollfd fd = { .fd = perfpersist_fd(w->p),
				     .events = perfpersist_events(w->p) };

		int r = poll(&fd, 1, 20000);

		if (r == 0)
			die("%" PRIu64 " notices are known of, %" PRIu64
			    " were to come, and no more comes",
			    known(w), n);
		if (r < 0 || perfpersist_dispatch(w->p) < 0)
			die("%s", perfpersist_error(w->p));
	}
}

static void toggle(struct perfpersist *p, const struct seen *s, bool pause)
{
	size_t n;

	if (perfpersist_pause(p, s->ns, s->name, pause, &n) < 0 || n != 1)
		die("%s/%s cannot be %s: %s", s->ns, s->name, pause ? "paused" : "resumed",
		    perfpersist_error(p));
}

/* Returns whether it got the right notices. */
static bool judge(const struct watcher *w, const char *who, uint64_t n, bool lags)
{
	const struct seen *s = &w->seen;

	printf("%s/%s, %s: %" PRIu64 " paused + %" PRIu64 " resumed + %" PRIu64
	       " lost (told %" PRIu64 " times) = %" PRIu64 "\n",
	       s->ns, s->name, who, s->paused, s->resumed, s->lost, s->losses, n);
	if (known(w) == n && !s->other && !s->faults && lags == (s->lost > 0))
		return true;
	fprintf(stderr,
		"%s: %" PRIu64 " notices are known of, of %" PRIu64 "; %" PRIu64 " lost, %" PRIu64
		" of another kind, %" PRIu64 " wrong\n",
		who, known(w), n, s->lost, s->other, s->faults);
	return false;
}

int main(int argc, char **argv)
{
	struct watcher follower = { .p = NULL }, laggard = { .p = NULL };
	struct perfpersist *changer;
	const char *name;
	char ns[64];
	bool lags = argc == 5 && strcmp(argv[3], "lags") == 0, good;
	uint64_t n, lost = 0;

	if (!lags && !(argc == 5 && strcmp(argv[3], "follows") == 0))
		die("usage: watch-check INSTANCE NAMESPACE/EVENT follows|lags N");
	name = split_name(argv[2], ns);
	n = parse_count(argv[4]);
	watch(&follower, argv[1], ns, name);
	if (lags)
		watch(&laggard, argv[1], ns, name);
	changer = connect_to(argv[1]);

	/* Two more than n: a watcher that has caught up loses no more. */
	for (uint64_t i = 0; i < n + 2; i++) {
		if (lags && i >= n) {
			take(&laggard, i);
			lost = i == n ? laggard.seen.lost : lost;
		}
		toggle(changer, &follower.seen, i % 2 == 0);
		take(&follower, i + 1);
	}
	good = judge(&follower, "follows", n + 2, false);
	if (lags) {
		take(&laggard, n + 2);
		good &= judge(&laggard, "lags", n + 2, true) && laggard.seen.lost == lost;
	}
	perfpersist_free(follower.p);
	perfpersist_free(laggard.p);
	perfpersist_free(changer);
	return good ? 0 : 1;
}
