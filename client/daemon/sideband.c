// SPDX-License-Identifier: LGPL-2.1-or-later
/* The call for sideband. Does not know the file's contents: see proto/sideband.h. */
#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/public.h"
#include "client/request/make.h"

static int make_sideband(struct perfpersist *p, uint64_t since, uint64_t until, bool numbers_alone,
			 struct request **ret)
{
	struct request *req;
	int r;

	if (until && until < since)
		return client_fail(-EINVAL,
				   "cannot have the sideband of a time that ends before it begins");
	r = make_plain(p, PP_OP_SIDEBAND, &req);
	if (r < 0)
		return r;
	req->body.sideband = (struct pp_msg_sideband_request){
		.since = numbers_alone ? 0 : since,
		.until = numbers_alone ? 0 : until,
		.flags = numbers_alone ? PP_SIDEBAND_STATUS : 0,
	};
	*ret = req;
	return 0;
}

static void export(const struct pp_msg_sideband_reply *m, struct perfpersist_sideband_info *ret)
{
	*ret = (struct perfpersist_sideband_info){
		.sz = ret->sz,
		.keeping = m->keeping,
		.pid = m->pid,
		.size = m->size,
		.began = m->began,
		.complete = m->complete,
		.lost = m->lost,
		.forgotten = m->forgotten,
		.processes = m->processes,
		.ended = m->ended,
		.memory = m->memory,
		.max_memory = m->max_memory,
		.cpu_time = m->cpu_time,
		.why = m->why,
		.unseen = m->unseen,
	};
}

_public_ int perfpersist_sideband(struct perfpersist *p, uint64_t since, uint64_t until,
				  struct perfpersist_sideband_info *info, int *ret_fd)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r;

	if (info && !SZ_IS_VALID(info)) {
		client_fail(-EINVAL,
			    "cannot fill in a struct perfpersist_sideband_info of %zu bytes: set "
			    "its sz to its size",
			    info->sz);
		return connection_fail(p, -EINVAL);
	}
	r = make_sideband(p, since, until, !ret_fd, &req);
	r = call(p, r, req, &a);
	if (r < 0)
		return r;
	if (info)
		export(&a.sideband, info);
	if (ret_fd)
		*ret_fd = a.fd >= 0 ? TAKE_FD(a.fd) : -1;
	return 0;
}
