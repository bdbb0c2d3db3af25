// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SIDEBAND: the names and maps of processes, for a peer that may read an event; or only their
 * numbers. The keeper makes the file.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

/* A request that waits for the keeper. */
struct asking_sideband {
	struct taking taking; /* first: a taking of ours is one who asks */
	struct asking asking;
};

/* ── answers ────────────────────────────────────────────────────────────────────────────── */

static void refuse_sideband(struct request *r, int err)
{
	if (asking_refuse(r, err, "knows the names and mappings of processes", "sideband"))
		return;
	if (err == -ENOMEM)
		refuse(r, ENOMEM,
		       "There is no memory for the sideband; try again later, or ask for a shorter "
		       "time.");
	else
		refuse(r, EIO, "The daemon cannot get the sideband: %s.", strerror(-err));
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
	const struct sideband *sideband = a->asking.service->sideband;
	struct pp_msg_sideband_reply reply;

	fill(answer, sideband->pid, &reply);
	reply.why = sideband_why(sideband, reply.keeping);
	if (fd < 0)
		reply.size = 0;
	return asking_reply(&a->asking, a->taking.uid, &reply, fd, reply.size);
}

static void done(struct taking *taking, int error, const struct pp_keep_answer *answer, int fd)
{
	struct asking_sideband *a = (struct asking_sideband *)taking;
	struct request r = {
		.service = a->asking.service,
		.peer = a->asking.claim.peer,
		.header = &a->asking.header,
	};

	if (r.peer) {
		if (error >= 0)
			error = send_reply(a, answer, fd);
		if (error < 0)
			refuse_sideband(&r, error);
	}
	asking_end(&a->asking);
	free(a);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

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
	struct asking_sideband *a;

	if (!request_is_synced(r) || !check(r, request) || !may(r))
		return;
	if (request_has_opening(r) || request_has_asking(r)) {
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
	asking_begin(&a->asking, r);
	sideband_take(r->service->sideband, &a->taking);
}
