// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SIDEBAND: the names and maps of processes, for a peer that may read an event; or only their
 * numbers. The keeper makes the file. It is charged as a copy, and the broker has it open no longer
 * than a packet takes.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

/* A request that waits for the keeper. */
struct asking_sideband {
	struct taking taking; /* first: a taking of ours is one who asks */
	struct asking_sideband *next, **link;
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
};

/* ── answers ────────────────────────────────────────────────────────────────────────────── */

static void refuse_sideband(struct request *r, int err)
{
	char sentence[256];

	switch (err) {
	case -EDQUOT:
		quota_sentence(r->service->lifecycle->charges.quota, sentence, sizeof(sentence));
		refuse(r, EDQUOT, "%s", sentence);
		break;
	case -EAGAIN:
	case -ECANCELED:
	case -ECONNRESET:
		refuse(r, EAGAIN,
		       "The keeper, which knows the names and mappings of processes, did not "
		       "answer or has ended; look at the daemon's log, and try again.");
		break;
	case -ENOBUFS:
		refuse(r, EAGAIN,
		       "Unread replies leave no room on this connection for the sideband; read "
		       "those, and try again.");
		break;
	case -ENOSPC:
		refuse(r, EAGAIN,
		       "The daemon cannot watch more copies than it has handed out, and so hands "
		       "out no sideband; close some, or have fs.inotify.max_user_watches raised.");
		break;
	case -ENOMEM:
		refuse(r, ENOMEM,
		       "There is no memory for the sideband; try again later, or ask for a shorter "
		       "time.");
		break;
	case -EMFILE:
	case -ENFILE:
	case -ETOOMANYREFS:
		refuse(r, EAGAIN,
		       "Too many descriptors are open or in flight to pass the sideband; try "
		       "again.");
		break;
	default:
		refuse(r, EIO, "The daemon cannot get the sideband: %s.", strerror(-err));
	}
}

/* pid: of a keeper without sideband. */
static void fill(const struct pp_keep_answer *a, uint32_t pid, struct pp_msg_sideband_reply *ret)
{
	if (a)
		pp_keep_describe(a, ret);
	else
		*ret = (struct pp_msg_sideband_reply){ .pid = pid };
}

/* 0; -errno: nothing was sent. */
static int send_reply(struct asking_sideband *a, const struct pp_keep_answer *answer, int fd)
{
	struct pp_msg_sideband_reply reply;
	size_t n = fd >= 0 ? 1 : 0;
	int r = 0;

	fill(answer, a->service->sideband->pid, &reply);
	reply.why = sideband_why(a->service->sideband, reply.keeping);
	if (n == 0)
		reply.size = 0;
	if (n > 0)
		r = copies_hold(a->service->copies, fd, a->taking.uid, reply.size);
	if (r < 0)
		return r;
	r = peer_reply(a->claim.peer, &a->header, &reply, &fd, n);
	return r == -EAGAIN ? -ENOBUFS : r;
}

static void done(struct taking *taking, int error, const struct pp_keep_answer *answer, int fd)
{
	struct asking_sideband *a = (struct asking_sideband *)taking;
	struct request r = {
		.service = a->service,
		.peer = a->claim.peer,
		.header = &a->header,
	};

	if (r.peer) {
		if (error >= 0)
			error = send_reply(a, answer, fd);
		if (error < 0)
			refuse_sideband(&r, error);
	}
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	peer_claim_end(&a->claim);
	free(a);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

bool request_has_sideband(const struct request *r)
{
	for (const struct asking_sideband *a = r->service->sidebands; a; a = a->next)
		if (a->claim.peer == r->peer)
			return true;
	return false;
}

static bool check(struct request *r, const struct pp_msg_sideband_request *request)
{
	if (request->flags & ~PP_SIDEBAND_STATUS || request->reserved)
		refuse(r, EINVAL,
		       "The request has flags (0x%x) that this daemon (" PP_VERSION
		       ") does not know; use a client of its version.",
		       request->flags);
	else if (request->until && request->until < request->since)
		refuse(r, EINVAL, "The time of the sideband ends before it begins; swap the two.");
	else if (request->flags & PP_SIDEBAND_STATUS && (request->since || request->until))
		refuse(r, EINVAL,
		       "The numbers of the sideband are the present ones; leave out the time.");
	else
		return true;
	return false;
}

static bool may(struct request *r)
{
	const struct registry *registry = &r->service->lifecycle->registry;

	if (policy_may_have_sideband(peer_credentials(r->peer), registry->namespaces,
				     registry->n_namespaces))
		return true;
	refuse(r, EACCES,
	       "User %u may not read any event, and so not which processes ran; ask for an event "
	       "in a namespace of yours, or for membership of the group of one.",
	       peer_credentials(r->peer)->uid);
	return false;
}

void request_sideband(struct request *r, const struct pp_msg_sideband_request *request)
{
	struct service *s = r->service;
	struct asking_sideband *a;

	if (!request_is_synced(r) || !check(r, request) || !may(r))
		return;
	if (request_has_opening(r) || request_has_sideband(r) || request_has_auxtrace(r)) {
		peer_defer(r->peer);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		refuse(r, ENOMEM, "The daemon has no memory for the request; try again.");
		return;
	}
	a->taking = (struct taking){
		.uid = peer_credentials(r->peer)->uid,
		.numbers = request->flags & PP_SIDEBAND_STATUS,
		.since = request->since,
		.until = request->until,
		.done = done,
	};
	a->service = s;
	a->header = *r->header;
	a->next = s->sidebands;
	a->link = &s->sidebands;
	if (a->next)
		a->next->link = &a->next;
	s->sidebands = a;
	peer_claim_begin(r->peer, &a->claim);
	sideband_take(s->sideband, &a->taking);
}
