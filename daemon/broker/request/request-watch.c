// SPDX-License-Identifier: LGPL-2.1-or-later
/* WATCH and WAKEUP: notifications for as long as the connection lives. */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/text.h"
#include "proto/macro.h"

/* A missing namespace may still come; rights are checked at each notice. */
void request_watch(struct request *req, const struct pp_msg_watch_request *request)
{
	const struct namespace *ns;
	int r;

	if (!request_is_synced(req))
		return;
	if (request->ns[0] && !pp_name_is_valid(request->ns)) {
		refuse(req, EINVAL,
		       "'%s' cannot be a namespace's name; take letters, digits, '_' and '-', "
		       "beginning with a letter or '_', 63 at most.",
		       request->ns);
		return;
	}
	ns = registry_namespace(&req->service->lifecycle->registry, request->ns);
	if (ns && !request_may(req, ns, PP_RIGHT_R))
		return;
	r = watchers_add(req->service->watchers, req->peer, req->header, request->ns);
	if (r == -EDQUOT)
		refuse(req, EDQUOT,
		       "This connection watches %d times already, which is the limit; watch all "
		       "namespaces at once, or use another connection.",
		       WATCHERS_MAX);
	else if (r < 0)
		refuse(req, -r, "The daemon cannot begin to watch: %s.", strerror(-r));
}

static void refuse_wakeup(struct request *req, const struct event *e, int err)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (err == -EDQUOT)
		refuse(req, EDQUOT,
		       "The limit of wakeup descriptors is reached, for this connection (%d), this "
		       "user or all users; close some, or read %s/%s periodically.",
		       WAKEUPS_MAX, spec->ns, spec->name);
	else if (err == -EOPNOTSUPP)
		refuse(req, EOPNOTSUPP,
		       "Waking readers of %s/%s needs asynchronous I/O, which this kernel lacks or "
		       "has used up (fs.aio-max-nr); read the event periodically.",
		       spec->ns, spec->name);
	else if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS)
		refuse(req, EAGAIN,
		       "The daemon has too many descriptors open or in flight to create one for "
		       "%s/%s; try again.",
		       spec->ns, spec->name);
	else
		refuse(req, EIO, "The daemon cannot wake readers of %s/%s: %s.", spec->ns,
		       spec->name, strerror(-err));
}

void request_wakeup(struct request *req, const struct pp_msg_name *request)
{
	struct pp_msg_wakeup_reply *reply = &req->service->reply.wakeup_reply;
	const struct event *e = request_find(req, request, PP_RIGHT_R);
	struct peer_guest *guest;
	int fd, r;

	if (!e || !request_is_made(req, e))
		return;
	if (!(e->truth.spec.flags & PP_EVENT_WAKEUP)) {
		refuse(req, EINVAL,
		       "%s/%s wakes no readers; create an event with --wakeup for that, or read "
		       "this one periodically.",
		       e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	r = wakeups_add(req->service->wakeups, req->peer, e->truth.origin, &fd, &guest);
	if (r < 0) {
		refuse_wakeup(req, e, r);
		return;
	}
	*reply = (struct pp_msg_wakeup_reply){ .id = e->truth.id };
	r = peer_reply(req->peer, req->header, reply, &fd, 1);
	if (r < 0)
		wakeups_take_back(guest);
	if (r == -EAGAIN)
		peer_defer(req->peer);
	else if (r < 0)
		refuse_wakeup(req, e, r);
}
