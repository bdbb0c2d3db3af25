// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the watchers; each goes with its peer. Must not know why a notice is sent. */
#include "daemon/broker/request/watchers.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/broker/request/describe.h"
#include "daemon/text.h"
#include "proto/macro.h"

struct watcher {
	struct peer_guest guest; /* first: a guest of ours is a watcher */
	struct watcher *next, **link;
	struct pp_header request;
	char ns[PP_NAME_SIZE]; /* "": all */
	uint64_t lost;	       /* notices since the last one sent */
};

static void on_gone(struct peer_guest *guest)
{
	struct watcher *watcher = (struct watcher *)guest;

	*watcher->link = watcher->next;
	if (watcher->next)
		watcher->next->link = watcher->link;
	free(watcher);
}

/* ── sending ────────────────────────────────────────────────────────────────────────────── */

/* Sends the number of lost notices first, in a notice of its own: w->notice stays unchanged. */
static bool tell_lost(struct watcher *watcher)
{
	struct pp_msg_notice *notice;

	if (peer_is_backlogged(watcher->guest.peer))
		return false;
	if (watcher->lost == 0)
		return true;
	notice = calloc(1, sizeof(*notice));
	if (!notice)
		return false;
	notice->kind = PP_NOTICE_LOST;
	notice->lost = watcher->lost;
	watcher->lost = 0;
	peer_notify(watcher->guest.peer, &watcher->request, notice);
	free(notice);
	return !peer_is_backlogged(watcher->guest.peer);
}

static void tell(struct watchers *w, struct watcher *watcher)
{
	if (tell_lost(watcher))
		peer_notify(watcher->guest.peer, &watcher->request, &w->notice);
	else
		watcher->lost++;
}

static void begin_notice(struct watchers *w, enum pp_notice_kind kind)
{
	w->notice = (struct pp_msg_notice){ .kind = kind };
}

/* Checks the present rights, which may differ from those at the beginning of the watch. */
static bool concerns(const struct watcher *watcher, const struct event *e)
{
	if (watcher->ns[0] && strcmp(watcher->ns, e->truth.spec.ns) != 0)
		return false;
	return policy_allows(peer_credentials(watcher->guest.peer), e->ns, PP_RIGHT_R);
}

void watchers_tell_event(struct watchers *w, enum pp_notice_kind kind, const struct event *e)
{
	if (!w->first)
		return;
	begin_notice(w, kind);
	event_describe(e, NULL, &w->notice.event);
	for (struct watcher *i = w->first; i; i = i->next)
		if (concerns(i, e))
			tell(w, i);
}

void watchers_tell_cpu(struct watchers *w, enum pp_notice_kind kind, unsigned cpu)
{
	begin_notice(w, kind);
	w->notice.cpu = cpu;
	for (struct watcher *i = w->first; i; i = i->next)
		tell(w, i);
}

void watchers_drained(const struct peer *peer)
{
	const struct peer_guest *next;

	for (const struct peer_guest *g = peer_guests(peer); g; g = next) {
		next = g->next;
		if (g->gone == on_gone)
			tell_lost((struct watcher *)g);
	}
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int watchers_add(struct watchers *w, struct peer *peer, const struct pp_header *request,
		 const char *ns)
{
	struct watcher *watcher;
	size_t n = 0;

	for (const struct watcher *i = w->first; i; i = i->next)
		n += i->guest.peer == peer;
	if (n >= WATCHERS_MAX)
		return -EDQUOT;
	watcher = calloc(1, sizeof(*watcher));
	if (!watcher)
		return -ENOMEM;
	if (pp_copy_text(watcher->ns, sizeof(watcher->ns), ns) < 0) {
		free(watcher);
		return -EINVAL;
	}
	watcher->guest.gone = on_gone;
	watcher->request = *request;
	watcher->next = w->first;
	watcher->link = &w->first;
	if (watcher->next)
		watcher->next->link = &watcher->next;
	w->first = watcher;
	peer_attach(peer, &watcher->guest);
	/* Sent like any reply, regardless of room: it answers the request. */
	begin_notice(w, PP_NOTICE_STARTED);
	peer_reply(peer, request, &w->notice, NULL, 0);
	return 0;
}
