// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Watches an event through the library, while another connection pauses and resumes it:
 *
 *   watch-check INSTANCE NAMESPACE/EVENT follows N   all of it is told, one by one, in order
 *   watch-check INSTANCE NAMESPACE/EVENT lags N      nothing is read until it is over: what was
 *                                                    told + what is said to be lost = what was
 *
 * Exit 0: all of it held; 1: not, and it says what; 2: it could not run.
 */
#include <poll.h>

#include "tests/integration/observe.h"

struct seen {
	const char *ns, *name;
	uint64_t started, paused, resumed, other, lost, losses, faults;
	bool is_paused, in_doubt; /* behind a loss it may be either */
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

static void take_one(struct perfpersist *p)
{
	struct pollfd fd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };

	if (poll(&fd, 1, -1) < 0 || perfpersist_dispatch(p) < 0)
		die("%s", perfpersist_error(p));
}

static uint64_t known(const struct seen *s)
{
	return s->paused + s->resumed + s->lost;
}

static void toggle(struct perfpersist *p, const struct seen *s, bool pause)
{
	size_t n;

	if (perfpersist_pause(p, s->ns, s->name, pause, &n) < 0 || n != 1)
		die("%s/%s cannot be %s: %s", s->ns, s->name, pause ? "paused" : "resumed",
		    perfpersist_error(p));
}

int main(int argc, char **argv)
{
	struct perfpersist *watcher, *changer;
	struct seen s = { .ns = NULL };
	char ns[64];
	bool lags = argc == 5 && strcmp(argv[3], "lags") == 0;
	uint64_t n;

	if (!lags && !(argc == 5 && strcmp(argv[3], "follows") == 0))
		die("usage: watch-check INSTANCE NAMESPACE/EVENT follows|lags N");
	s.name = split_name(argv[2], ns);
	s.ns = ns;
	n = parse_count(argv[4]);
	watcher = connect_to(argv[1]);
	changer = connect_to(argv[1]);
	if (perfpersist_watch(watcher, ns, on_notice, &s) < 0)
		die("%s", perfpersist_error(watcher));
	if (s.started != 1)
		die("perfpersist_watch() returned before it had begun");

	for (uint64_t i = 0; i < n; i++) {
		toggle(changer, &s, i % 2 == 0);
		while (!lags && known(&s) < i + 1)
			take_one(watcher);
	}
	while (known(&s) < n)
		take_one(watcher);
	printf("%s, %s: %" PRIu64 " paused + %" PRIu64 " resumed + %" PRIu64 " lost (told %" PRIu64
	       " times) = %" PRIu64 "\n",
	       argv[2], argv[3], s.paused, s.resumed, s.lost, s.losses, n);
	/* Whoever has caught up loses nothing more. */
	n += 2;
	toggle(changer, &s, n % 2 == 0);
	toggle(changer, &s, n % 2 != 0);
	while (known(&s) < n)
		take_one(watcher);
	perfpersist_free(watcher);
	perfpersist_free(changer);
	if (known(&s) != n || s.other || s.faults || lags != (s.lost > 0)) {
		fprintf(stderr,
			"%" PRIu64 " notices are known of, of %" PRIu64 "; %" PRIu64
			" lost, %" PRIu64 " of another kind, %" PRIu64 " wrong\n",
			known(&s), n, s.lost, s.other, s.faults);
		return 1;
	}
	return 0;
}
