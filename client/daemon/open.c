// SPDX-License-Identifier: LGPL-2.1-or-later
/* The blocking verbs that get rings, or copies of them, over a connection. */
#include <string.h>

#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/request/make.h"
#include "client/rings/event.h"

static int call_for_event(struct perfpersist *p, int made, struct request *req,
			  struct perfpersist_event **ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	*ret = TAKE_PTR(a.event);
	return 0;
}

_public_ int perfpersist_open(struct perfpersist *p, const char *ns, const char *name,
			      struct perfpersist_event **ret)
{
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_OPEN, ns, name, &req);

	return call_for_event(p, made, req, ret);
}

_public_ int perfpersist_open_by_id(struct perfpersist *p, uint64_t id,
				    struct perfpersist_event **ret)
{
	struct request *req = NULL;
	int made = make_by_id(p, PP_OP_OPEN, id, &req);

	return call_for_event(p, made, req, ret);
}

_public_ int perfpersist_open_copy(struct perfpersist *p, const char *ns, const char *name,
				   struct perfpersist_event **ret)
{
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_OPEN, ns, name, &req);

	if (made >= 0)
		req->body.open.flags = PP_OPEN_COPY;
	return call_for_event(p, made, req, ret);
}

_public_ int perfpersist_event_refresh(struct perfpersist_event *e, struct perfpersist *p)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *new = NULL;
	struct request *req = NULL;
	int r;

	r = make_by_id(p, PP_OP_OPEN, e->base.id, &req);
	if (r >= 0 && e->is_copy)
		req->body.open.flags = PP_OPEN_COPY;
	r = call_for_event(p, r, req, &new);
	if (r < 0)
		return r;
	r = client_event_renew(e, new);
	return r < 0 ? connection_fail(p, r) : 0;
}
