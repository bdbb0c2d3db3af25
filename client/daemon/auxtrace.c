// SPDX-License-Identifier: LGPL-2.1-or-later
/* The call for a trace. Does not know what the PMU has written: see proto/auxtrace.h. */
#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/public.h"
#include "client/request/make.h"
#include "proto/auxtrace.h"
#include "proto/io.h"

static int read_header(struct perfpersist *p, int fd, struct pp_auxtrace_header *ret)
{
	ssize_t n = pp_pread_all(fd, ret, sizeof(*ret), 0);

	if (n == sizeof(*ret) && ret->magic == PP_AUXTRACE_MAGIC)
		return 0;
	client_fail(-EBADMSG,
		    "the daemon's copy of a trace has no header; its keeper is of another "
		    "version, or damaged");
	return connection_fail(p, -EBADMSG);
}

_public_ int perfpersist_auxtrace(struct perfpersist *p, uint64_t id, uint32_t index,
				  struct perfpersist_auxtrace_info *info, int *ret_fd)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct pp_auxtrace_header header;
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
	if (r >= 0 && info)
		r = read_header(p, a.fd, &header);
	if (r < 0)
		return r;
	if (info)
		*info = (struct perfpersist_auxtrace_info){
			.sz = info->sz,
			.cpus = a.auxtrace.total,
			.cpu = a.auxtrace.cpu,
			.size = a.auxtrace.size,
			.untraced = header.untraced,
		};
	*ret_fd = TAKE_FD(a.fd);
	return 0;
}
