// SPDX-License-Identifier: LGPL-2.1-or-later
/* WATCH and WAKEUP: to be told, for as long as the connection lives. */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/text.h"
#include "proto/macro.h"

/* A namespace that is not there yet may come; what of it is told is decided each time. */
void request_watch(struct request *r, const struct pp_msg_watch_request *request)
{
	const struct namespace *ns;
	int err;

	if (!request_is_synced(r))
		return;
	if (request->ns[0] && !pp_name_is_valid(request->ns)) {
		refuse(r, EINVAL,
		       "'%s' cannot be a namespace's name; take letters, digits, '_' and '-', "
		       "beginning with a letter or '_', 63 at most.",
		       request->ns);
		return;
	}
	ns = registry_namespace(&r->service->lifecycle->registry, request->ns);
	if (ns && !request_may(r, ns, PP_RIGHT_R))
		return;
	err = watchers_add(r->service->watchers, r->peer, r->header, request->ns);
	if (err == -EDQUOT)
		refuse(r, EDQUOT,
		       "This connection watches %d times already, which is the limit; watch all "
		       "namespaces at once, or use another connection.",
		       WATCHERS_MAX);
	else if (err < 0)
		refuse(r, -err, "The daemon cannot begin to watch: %s.", strerror(-err));
}

static void refuse_wakeup(struct request *r, const struct event *e, int err)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (err == -EDQUOT)
		refuse(r, EDQUOT,
		       "There are as many descriptors for wakeups as there may be, on this "
		       "connection (%d), of this user or of all; close some, or look at %s/%s "
		       "every now and then.",
		       WAKEUPS_MAX, spec->ns, spec->name);
	else if (err == -EOPNOTSUPP)
		refuse(r, EOPNOTSUPP,
		       "This kernel has no asynchronous I/O, or has none left (fs.aio-max-nr), "
		       "which waking readers of %s/%s takes; look at it every now and then.",
		       spec->ns, spec->name);
	else if (err == -EMFILE || err == -ENFILE || err == -ETOOMANYREFS)
		refuse(r, EAGAIN,
		       "The daemon has too many descriptors in hand or on their way to make one "
		       "for %s/%s; try again.",
		       spec->ns, spec->name);
	else
		refuse(r, EIO, "The daemon cannot have readers of %s/%s woken: %s.", spec->ns,
		       spec->name, strerror(-err));
}

void request_wakeup(struct request *r, const struct pp_msg_name *request)
{
	struct pp_msg_wakeup_reply *reply = &r->service->reply.wakeup_reply;
	const struct event *e = request_find(r, request, PP_RIGHT_R);
	struct peer_guest *guest;
	int fd, err;

	if (!e || !request_is_made(r, e))
		return;
	if (!(e->truth.spec.flags & PP_EVENT_WAKEUP)) {
		refuse(r, EINVAL,
		       "%s/%s wakes no readers; create an event with --wakeup for that, or look at "
		       "this one every now and then.",
		       e->truth.spec.ns, e->truth.spec.name);
		return;
	}
	err = wakeups_add(r->service->wakeups, r->peer, pp_event_origin(&e->truth), &fd, &guest);
	if (err < 0) {
		refuse_wakeup(r, e, err);
		return;
	}
	*reply = (struct pp_msg_wakeup_reply){ .id = e->truth.id };
	err = peer_reply(r->peer, r->header, reply, &fd, 1);
	if (err < 0)
		wakeups_take_back(guest);
	if (err == -EAGAIN)
		peer_defer(r->peer);
	else if (err < 0)
		refuse_wakeup(r, e, err);
}
