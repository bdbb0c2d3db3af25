// SPDX-License-Identifier: LGPL-2.1-or-later
/* AUXTRACE: a copy of one AUX area, by the keeper. A peer gets one such reply at a time. */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

/* A request that waits for the keeper's answer. */
struct asking_auxtrace {
	struct aux_taking taking; /* first: a taking of ours is one of these */
	struct asking asking;
	struct pp_msg_auxtrace_reply reply;
	uint64_t reserved; /* bytes that are charged for the copy until it is there */
};

/* ── answers ────────────────────────────────────────────────────────────────────────────── */

static void refuse_auxtrace(struct request *r, int err, uint32_t cpu)
{
	if (asking_refuse(r, err, "holds the AUX areas", "trace"))
		return;
	if (err == -ENODATA)
		refuse(r, ENODATA,
		       "The event has no AUX area on CPU %u just now; the daemon's log says why, and "
		       "it is tried again.",
		       cpu);
	else
		refuse(r, EIO, "The keeper cannot copy the AUX area of CPU %u: %s.", cpu,
		       strerror(-err));
}

/* The keeper stops the PMU for the copy and fills memory: for nobody, it does not. */
static int prepare(struct aux_taking *taking, uint64_t bytes)
{
	struct asking_auxtrace *a = (struct asking_auxtrace *)taking;
	struct copies *copies = a->asking.service->copies;
	int r = a->asking.claim.peer ? copies_reserve(copies, taking->uid, bytes) : -ECANCELED;

	a->reserved = r < 0 ? 0 : bytes;
	return r;
}

static void done(struct aux_taking *taking, int error, int fd, uint64_t size)
{
	struct asking_auxtrace *a = (struct asking_auxtrace *)taking;
	struct request r = {
		.service = a->asking.service,
		.peer = a->asking.claim.peer,
		.header = &a->asking.header,
	};

	if (a->reserved)
		copies_unreserve(r.service->copies, taking->uid, a->reserved);
	a->reply.size = size;
	if (r.peer && error >= 0)
		error = asking_reply(&a->asking, taking->uid, &a->reply, fd, size);
	if (r.peer && error < 0)
		refuse_auxtrace(&r, error, a->reply.cpu);
	asking_end(&a->asking);
	free(a);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

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

void request_auxtrace(struct request *r, const struct pp_msg_auxtrace_request *request)
{
	struct pp_msg_auxtrace_reply reply;
	struct asking_auxtrace *a;
	struct event *e;

	if (request->reserved) {
		refuse(r, EINVAL,
		       "The request has fields that this daemon (" PP_VERSION
		       ") does not know; use a client of its version.");
		return;
	}
	e = request_find(r, &request->which, PP_RIGHT_R);
	if (!e || !request_is_made(r, e) || !find_cpu(r, e, request->first, &reply))
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
	a->taking = (struct aux_taking){
		.uid = peer_credentials(r->peer)->uid,
		.origin = e->truth.origin,
		.cpu = reply.cpu,
		.prepare = prepare,
		.done = done,
	};
	a->reply = reply;
	asking_begin(&a->asking, r);
	auxtrace_take(r->service->auxtrace, &a->taking);
}
