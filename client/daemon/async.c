// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verbs that return at once and pass the outcome to a callback. */
#include "client/daemon/connection.h"
#include "client/request/make.h"

static void call_back(struct request *r, int error)
{
	struct perfpersist_result result = { .sz = sizeof(result), .error = error };

	if (error >= 0) {
		result.infos = r->answer.infos.v;
		result.n = r->answer.infos.n;
		result.event = TAKE_PTR(r->answer.event);
	}
	r->callback(r->p, &result, r->userdata);
}

/* made: the result of making the request. */
static int start(struct perfpersist *p, int made, struct request *r, perfpersist_callback cb,
		 void *userdata)
{
	if (made < 0)
		return connection_fail(p, made);
	r->done = call_back;
	r->callback = cb;
	r->userdata = userdata;
	return connection_submit(p, r);
}

_public_ int perfpersist_create_async(struct perfpersist *p, const char *ns, const char *name,
				      const struct perfpersist_create_options *opts,
				      perfpersist_callback cb, void *userdata)
{
	struct request *r = NULL;
	int made = make_create(p, ns, name, opts, &r);

	return start(p, made, r, cb, userdata);
}

_public_ int perfpersist_delete_async(struct perfpersist *p, const char *ns, const char *name,
				      perfpersist_callback cb, void *userdata)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_DELETE, ns, name, &r);

	return start(p, made, r, cb, userdata);
}

_public_ int perfpersist_list_async(struct perfpersist *p, const char *ns, perfpersist_callback cb,
				    void *userdata)
{
	struct request *r = NULL;
	int made = make_list(p, PP_OP_LIST, ns, &r);

	return start(p, made, r, cb, userdata);
}

_public_ int perfpersist_show_async(struct perfpersist *p, const char *ns, const char *name,
				    perfpersist_callback cb, void *userdata)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_SHOW, ns, name, &r);

	return start(p, made, r, cb, userdata);
}

_public_ int perfpersist_open_async(struct perfpersist *p, const char *ns, const char *name,
				    perfpersist_callback cb, void *userdata)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_OPEN, ns, name, &r);

	return start(p, made, r, cb, userdata);
}
