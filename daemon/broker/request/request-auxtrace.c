// SPDX-License-Identifier: LGPL-2.1-or-later
/* AUXTRACE: a copy of one AUX area, by the keeper. A peer gets one such reply at a time. */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

/* A request that waits for the keeper's answer. */
struct asking_auxtrace {
	struct aux_taking taking; /* first: a taking of ours is one of these */
	struct asking_auxtrace *next, **link;
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
	struct pp_msg_auxtrace_reply reply;
};

/* ── answers ────────────────────────────────────────────────────────────────────────────── */

static void refuse_auxtrace(struct request *r, int err, uint32_t cpu)
{
	char sentence[256];

	switch (err) {
	case -EDQUOT:
		quota_sentence(r->service->lifecycle->charges.quota, sentence, sizeof(sentence));
		refuse(r, EDQUOT, "%s", sentence);
		break;
	case -ENODATA:
		refuse(r, ENODATA,
		       "The event has no AUX area on CPU %u just now; the daemon's log says why, and "
		       "it is tried again.",
		       cpu);
		break;
	case -EAGAIN:
	case -ECANCELED:
	case -ECONNRESET:
		refuse(r, EAGAIN,
		       "The keeper, which holds the AUX areas, did not answer or has ended; look at "
		       "the daemon's log, and try again.");
		break;
	case -ENOBUFS:
		refuse(r, EAGAIN,
		       "Unread replies leave no room on this connection for the trace; read those, and "
		       "try again.");
		break;
	case -ENOSPC:
		refuse(r, EAGAIN,
		       "The daemon cannot watch more copies than it has handed out, and so hands out "
		       "no trace; close some, or have fs.inotify.max_user_watches raised.");
		break;
	case -EMFILE:
	case -ENFILE:
	case -ETOOMANYREFS:
		refuse(r, EAGAIN,
		       "Too many descriptors are open or in flight to pass the trace; try again.");
		break;
	default:
		refuse(r, EIO, "The keeper cannot copy the AUX area of CPU %u: %s.", cpu,
		       strerror(-err));
	}
}

/* 0; -errno: nothing was sent. */
static int send_reply(struct asking_auxtrace *a, int fd, uint64_t size)
{
	int r = copies_hold(a->service->copies, fd, a->taking.uid, size);

	if (r < 0)
		return r;
	a->reply.size = size;
	r = peer_reply(a->claim.peer, &a->header, &a->reply, &fd, 1);
	return r == -EAGAIN ? -ENOBUFS : r;
}

static void done(struct aux_taking *taking, int error, int fd, uint64_t size)
{
	struct asking_auxtrace *a = (struct asking_auxtrace *)taking;
	struct request r = {
		.service = a->service,
		.peer = a->claim.peer,
		.header = &a->header,
	};

	if (r.peer && error >= 0)
		error = send_reply(a, fd, size);
	if (r.peer && error < 0)
		refuse_auxtrace(&r, error, a->reply.cpu);
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	peer_claim_end(&a->claim);
	free(a);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

bool request_has_auxtrace(const struct request *r)
{
	for (const struct asking_auxtrace *a = r->service->auxtraces; a; a = a->next)
		if (a->claim.peer == r->peer)
			return true;
	return false;
}

/* Refuses the request before it returns false. */
static bool find_cpu(struct request *r, const struct event *e, uint32_t first,
		     struct pp_msg_auxtrace_reply *ret)
{
	const struct pp_spec *spec = &e->truth.spec;

	*ret = (struct pp_msg_auxtrace_reply){};
	if (!(spec->flags & PP_EVENT_AUX)) {
		refuse(r, EINVAL, "%s/%s has no AUX areas; it records what its rings have (OPEN).",
		       spec->ns, spec->name);
		return false;
	}
	PP_CPUMASK_FOREACH(cpu, &e->truth.rings)
	if (ret->total++ == first)
		ret->cpu = cpu;
	if (first < ret->total)
		return true;
	refuse(r, EINVAL, "%s/%s traces on %u CPUs, and on none with the index %u.", spec->ns,
	       spec->name, ret->total, first);
	return false;
}

static struct asking_auxtrace *asking_new(struct request *r, const struct event *e,
					  const struct pp_msg_auxtrace_reply *reply)
{
	struct asking_auxtrace *a = calloc(1, sizeof(*a));
	struct service *s = r->service;

	if (!a)
		return NULL;
	a->taking = (struct aux_taking){
		.uid = peer_credentials(r->peer)->uid,
		.origin = e->truth.origin,
		.cpu = reply->cpu,
		.done = done,
	};
	a->service = s;
	a->header = *r->header;
	a->reply = *reply;
	a->next = s->auxtraces;
	a->link = &s->auxtraces;
	if (a->next)
		a->next->link = &a->next;
	s->auxtraces = a;
	return a;
}

void request_auxtrace(struct request *r, const struct pp_msg_auxtrace_request *request)
{
	struct event *e = request_find(r, &request->which, PP_RIGHT_R);
	struct pp_msg_auxtrace_reply reply;
	struct asking_auxtrace *a;

	if (!e || !request_is_made(r, e) || !find_cpu(r, e, request->first, &reply))
		return;
	if (request_has_opening(r) || request_has_sideband(r) || request_has_auxtrace(r)) {
		peer_defer(r->peer);
		return;
	}
	a = asking_new(r, e, &reply);
	if (!a) {
		refuse(r, ENOMEM, "The daemon has no memory for the request; try again.");
		return;
	}
	peer_claim_begin(r->peer, &a->claim);
	auxtrace_take(r->service->auxtrace, &a->taking);
}
