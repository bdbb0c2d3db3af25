// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the blocking verbs that get rings, or copies of them, over a connection. */
#include <string.h>

#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/request/make.h"
#include "client/rings/event.h"

static int call_for_event(struct perfpersist *p, int made, struct request *r,
			  struct perfpersist_event **ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	int error = call(p, made, r, &a);

	if (error < 0)
		return error;
	*ret = TAKE_PTR(a.event);
	return 0;
}

_public_ int perfpersist_open(struct perfpersist *p, const char *ns, const char *name,
			      struct perfpersist_event **ret)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_OPEN, ns, name, &r);

	return call_for_event(p, made, r, ret);
}

_public_ int perfpersist_open_by_id(struct perfpersist *p, uint64_t id,
				    struct perfpersist_event **ret)
{
	struct request *r = NULL;
	int made = make_by_id(p, PP_OP_OPEN, id, &r);

	return call_for_event(p, made, r, ret);
}

_public_ int perfpersist_open_copy(struct perfpersist *p, const char *ns, const char *name,
				   struct perfpersist_event **ret)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_OPEN, ns, name, &r);

	if (made >= 0)
		r->body.open.flags = PP_OPEN_COPY;
	return call_for_event(p, made, r, ret);
}

_public_ int perfpersist_event_refresh(struct perfpersist_event *e, struct perfpersist *p)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *new = NULL;
	struct request *r = NULL;
	int error;

	error = make_by_id(p, PP_OP_OPEN, e->base.id, &r);
	if (error >= 0 && e->is_copy)
		r->body.open.flags = PP_OPEN_COPY;
	error = call_for_event(p, error, r, &new);
	if (error < 0)
		return error;
	error = client_event_renew(e, new);
	return error < 0 ? connection_fail(p, error) : 0;
}
