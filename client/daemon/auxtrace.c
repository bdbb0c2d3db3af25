// SPDX-License-Identifier: LGPL-2.1-or-later
/* The call for a trace. Does not know the file's contents: see proto/auxtrace.h. */
#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/public.h"
#include "client/request/make.h"

_public_ int perfpersist_auxtrace(struct perfpersist *p, uint64_t id, uint32_t index,
				  struct perfpersist_auxtrace_info *info, int *ret_fd)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r;

	if (info && !SZ_IS_VALID(info)) {
		client_fail(-EINVAL,
			    "cannot fill in a struct perfpersist_auxtrace_info of %zu bytes: set "
			    "its sz to its size",
			    info->sz);
		return connection_fail(p, -EINVAL);
	}
	r = make_plain(p, PP_OP_AUXTRACE, &req);
	if (r >= 0)
		req->body.auxtrace =
			(struct pp_msg_auxtrace_request){ .which.id = id, .first = index };
	r = call(p, r, req, &a);
	if (r < 0)
		return r;
	if (info)
		*info = (struct perfpersist_auxtrace_info){
			.sz = info->sz,
			.cpus = a.auxtrace.total,
			.cpu = a.auxtrace.cpu,
			.size = a.auxtrace.size,
		};
	*ret_fd = TAKE_FD(a.fd);
	return 0;
}
