// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * OPEN: the rings of an event, opened from their pins for this one reply and closed again.
 * Without room for the reply the request is handled anew later, rather than descriptors kept.
 */
#include <string.h>

#include "daemon/broker/machine.h"
#include "daemon/broker/request-internal.h"
#include "daemon/broker/tree.h"
#include "proto/macro.h"
#include "proto/packet.h"

static bool check_holder(struct request *r, const struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (!request_is_made(r, e))
		return false;
	if (policy_may_hold_rings(peer_credentials(r->peer), machine_unprivileged_bpf()))
		return true;
	refuse(r, EACCES,
	       "Only root may open events on this machine, because "
	       "kernel.unprivileged_bpf_disabled "
	       "is 0 and any user's program could write the rings of %s/%s; have it set to 2.",
	       spec->ns, spec->name);
	return false;
}

/* Opens one page of rings. 0; -errno, with nothing left open. */
static int open_page(const struct service *s, const struct event *e, uint32_t first,
		     struct pp_msg_open_reply *reply, struct pp_fds *fds)
{
	const struct pp_event *t = &e->truth;
	uint64_t map_size = pp_ring_size(t->header_size, t->spec.data_size, t->spill_size);

	reply->total = reply->count = 0;
	PP_CPUMASK_FOREACH(cpu, &t->rings)
	{
		int fd;

		if (reply->total++ < first || reply->count == PP_FDS_MAX)
			continue;
		fd = tree_ring_open(s->registry, t->spec.ns, t->spec.name, cpu);
		if (fd < 0) {
			pp_fds_close(fds);
			return fd;
		}
		fds->fd[fds->n++] = fd;
		reply->cpus[reply->count++] = (struct pp_msg_cpu){
			.cpu = cpu,
			.map_size = map_size,
		};
	}
	return 0;
}

static void refuse_open(struct request *r, const struct event *e, int err)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (err == -ENOENT)
		refuse(r, ENOENT, "%s/%s is %s.", spec->ns, spec->name,
		       e->state == PP_EVENT_DELETING ? "being deleted"
						     : "not in the registry any more");
	else if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS)
		refuse(r, EAGAIN,
		       "The daemon has too many descriptors in hand or on their way to open %s/%s; "
		       "try again.",
		       spec->ns, spec->name);
	else
		refuse(r, EIO, "The daemon cannot open the rings of %s/%s: %s.", spec->ns,
		       spec->name, strerror(-err));
}

void request_open(struct request *r, const struct pp_msg_open_request *request)
{
	const struct event *e = request_find(r, &request->which, PP_RIGHT_R);
	struct pp_msg_open_reply *reply = &r->service->reply.open_reply;
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	struct tree_stat stat;
	int err;

	if (!e || !check_holder(r, e))
		return;
	err = open_page(r->service, e, request->first, reply, &fds);
	if (err < 0) {
		refuse_open(r, e, err);
		return;
	}
	if (request->first > 0 && request->first >= reply->total) {
		refuse(r, EINVAL, "%s/%s has %u rings, and none with the index %u.",
		       e->truth.spec.ns, e->truth.spec.name, reply->total, request->first);
		return;
	}
	event_count(r->service->registry, e, &stat);
	event_describe(e, &stat, &reply->event);
	err = peer_reply(r->peer, r->header, reply, fds.fd, fds.n);
	if (err == -EAGAIN)
		peer_defer(r->peer);
	else if (err < 0)
		refuse_open(r, e, err);
}
