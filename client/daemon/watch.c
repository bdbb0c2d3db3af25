// SPDX-License-Identifier: LGPL-2.1-or-later
/* The verbs for notifications: watching events, and wakeups. */
#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/request/make.h"

_Static_assert((int)PERFPERSIST_NOTICE_STARTED == (int)PP_NOTICE_STARTED &&
		       (int)PERFPERSIST_NOTICE_CREATED == (int)PP_NOTICE_CREATED &&
		       (int)PERFPERSIST_NOTICE_CHANGED == (int)PP_NOTICE_CHANGED &&
		       (int)PERFPERSIST_NOTICE_PAUSED == (int)PP_NOTICE_PAUSED &&
		       (int)PERFPERSIST_NOTICE_RESUMED == (int)PP_NOTICE_RESUMED &&
		       (int)PERFPERSIST_NOTICE_DELETED == (int)PP_NOTICE_DELETED &&
		       (int)PERFPERSIST_NOTICE_CPU_ONLINE == (int)PP_NOTICE_CPU_ONLINE &&
		       (int)PERFPERSIST_NOTICE_CPU_OFFLINE == (int)PP_NOTICE_CPU_OFFLINE &&
		       (int)PERFPERSIST_NOTICE_LOST == (int)PP_NOTICE_LOST,
	       "notices");

/* The state of perfpersist_watch() until the first notice. */
struct start {
	bool done;
	int error;
};

static void end_start(struct request *req, int error)
{
	struct start *s = req->waiter;

	if (!s)
		return;
	s->done = true;
	s->error = error;
	req->waiter = NULL;
}

static void pass_on(struct request *req, const struct perfpersist_notice *notice)
{
	end_start(req, 0);
	req->watch(req->p, notice, req->userdata);
}

_public_ int perfpersist_watch(struct perfpersist *p, const char *ns, perfpersist_watch_callback cb,
			       void *userdata)
{
	struct request *req = NULL;
	struct start s = { .done = false };
	int r = make_watch(p, ns, &req);

	if (r < 0)
		return connection_fail(p, r);
	req->notice = pass_on;
	req->done = end_start;
	req->watch = cb;
	req->userdata = userdata;
	req->waiter = &s;
	r = connection_submit(p, req);
	if (r < 0)
		return r;
	connection_wait(p, &s.done);
	return s.error;
}

_public_ int perfpersist_wakeup(struct perfpersist *p, const char *ns, const char *name,
				int *ret_fd)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_WAKEUP, ns, name, &req);
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(a.fd);
	return 0;
}
