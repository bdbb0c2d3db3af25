// SPDX-License-Identifier: LGPL-2.1-or-later
/* What an event consists of: reads the daemon's file. */
#include <string.h>

#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/request/make.h"
#include "proto/descriptor.h"
#include "proto/io.h"

/* Far above what an event can have on the largest machine. */
#define SIZE_MAX_ALL (64ULL << 20)

_Static_assert((int)PERFPERSIST_DESCRIPTOR_RING == (int)PP_DESCRIPTOR_RING &&
		       (int)PERFPERSIST_DESCRIPTOR_CATALOG == (int)PP_DESCRIPTOR_CATALOG &&
		       (int)PERFPERSIST_DESCRIPTOR_PROGRAMS == (int)PP_DESCRIPTOR_PROGRAMS &&
		       (int)PERFPERSIST_DESCRIPTOR_LINK == (int)PP_DESCRIPTOR_LINK &&
		       (int)PERFPERSIST_DESCRIPTOR_COUNTER == (int)PP_DESCRIPTOR_COUNTER,
	       "kinds");

static struct perfpersist_descriptor export(const struct pp_descriptor *d)
{
	return (struct perfpersist_descriptor){
		.kind = d->kind,
		.cpu = d->cpu,
		.id = d->id,
		.tid = d->tid,
		.generation = d->generation,
		.perf_id = d->perf_id,
		.alive = d->alive == PP_ALIVE_UNKNOWN ? -1 : d->alive == PP_ALIVE_YES,
	};
}

static int read_file(int fd, uint64_t size, struct perfpersist_descriptor **ret, size_t *ret_n)
{
	_cleanup_free_ struct pp_descriptor *all = NULL;
	struct perfpersist_descriptor *v;
	size_t n = size / sizeof(*all);

	if (size > SIZE_MAX_ALL || size % sizeof(*all))
		return client_fail(-EBADMSG, "perfpersistd sent a list of descriptors that makes "
					     "no sense");
	all = calloc(n + 1, sizeof(*all));
	v = calloc(n + 1, sizeof(*v));
	if (!all || !v) {
		free(v);
		return client_fail(-ENOMEM, "cannot list descriptors: out of memory");
	}
	if (pp_pread_all(fd, all, size, 0) != (ssize_t)size) {
		free(v);
		return client_fail(-EBADMSG, "perfpersistd sent a list of descriptors that is too "
					     "short");
	}
	for (size_t i = 0; i < n; i++)
		v[i] = export(&all[i]);
	*ret = v;
	*ret_n = n;
	return 0;
}

_public_ int perfpersist_descriptors(struct perfpersist *p, const char *ns, const char *name,
				     struct perfpersist_descriptor **ret, size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_DESCRIPTORS, ns, name, &req);
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	r = read_file(a.fd, a.size, ret, ret_n);
	return r < 0 ? connection_fail(p, r) : 0;
}
