// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests that the keeper answers with a file. It is charged as a copy, and the broker has it open no
 * longer than a packet takes. */
#include <string.h>

#include "daemon/broker/request/request-internal.h"

bool request_has_asking(const struct request *r)
{
	for (const struct asking *a = r->service->askings; a; a = a->next)
		if (a->claim.peer == r->peer)
			return true;
	return false;
}

void asking_begin(struct asking *a, struct request *r)
{
	struct service *s = r->service;

	a->service = s;
	a->header = *r->header;
	a->next = s->askings;
	a->link = &s->askings;
	if (a->next)
		a->next->link = &a->next;
	s->askings = a;
	peer_claim_begin(r->peer, &a->claim);
}

void asking_end(struct asking *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	peer_claim_end(&a->claim);
}

int asking_reply(struct asking *a, uint32_t uid, const void *reply, int fd, uint64_t size)
{
	int r = fd < 0 ? 0 : copies_hold(a->service->copies, fd, uid, size);

	if (r < 0)
		return r;
	r = peer_reply(a->claim.peer, &a->header, reply, &fd, fd < 0 ? 0 : 1);
	return r == -EAGAIN ? -ENOBUFS : r;
}

bool asking_refuse(struct request *r, int err, const char *has, const char *what)
{
	char sentence[256];

	switch (err) {
	case -EDQUOT:
		quota_sentence(r->service->lifecycle->charges.quota, sentence, sizeof(sentence));
		refuse(r, EDQUOT, "%s", sentence);
		return true;
	case -EAGAIN:
	case -ECANCELED:
	case -ECONNRESET:
		refuse(r, EAGAIN,
		       "The keeper, which %s, did not answer or has ended; look at the daemon's "
		       "log, and try again.",
		       has);
		return true;
	case -ENOBUFS:
		refuse(r, EAGAIN,
		       "Unread replies leave no room on this connection for the %s; read those, "
		       "and try again.",
		       what);
		return true;
	case -ENOSPC:
		refuse(r, EAGAIN,
		       "The daemon cannot watch more copies than it has handed out, and so hands "
		       "out no %s; close some, or have fs.inotify.max_user_watches raised.",
		       what);
		return true;
	case -EMFILE:
	case -ENFILE:
	case -ETOOMANYREFS:
		refuse(r, EAGAIN,
		       "Too many descriptors are open or in flight to pass the %s; try again.",
		       what);
		return true;
	default:
		return false;
	}
}
