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
		       "There are as many descriptors for wakeups as there may be, on this "
		       "connection (%d), of this user or of all; close some, or look at %s/%s "
		       "every now and then.",
		       WAKEUPS_MAX, spec->ns, spec->name);
	else if (err == -EOPNOTSUPP)
		refuse(req, EOPNOTSUPP,
		       "This kernel has no asynchronous I/O, or has none left (fs.aio-max-nr), "
		       "which waking readers of %s/%s takes; look at it every now and then.",
		       spec->ns, spec->name);
	else if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS)
		refuse(req, EAGAIN,
		       "The daemon has too many descriptors in hand or on their way to make one "
		       "for %s/%s; try again.",
		       spec->ns, spec->name);
	else
		refuse(req, EIO, "The daemon cannot have readers of %s/%s woken: %s.", spec->ns,
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
		       "%s/%s wakes no readers; create an event with --wakeup for that, or look at "
		       "this one every now and then.",
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
