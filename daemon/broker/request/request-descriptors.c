// SPDX-License-Identifier: LGPL-2.1-or-later
/* DESCRIPTORS: what an event consists of, for who may read it. The engine makes the file, which is charged as a
 * copy. */
#include <string.h>
#include <sys/stat.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"
#include "proto/packet.h"

static int send_file(struct request *req, int fd)
{
	struct pp_msg_descriptors_reply *reply = &req->service->reply.descriptors_reply;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	*reply = (struct pp_msg_descriptors_reply){ .size = (uint64_t)st.st_size };
	r = copies_hold(req->service->copies, fd, peer_credentials(req->peer)->uid, reply->size);
	return r < 0 ? r : peer_reply(req->peer, req->header, &req->service->reply, &fd, 1);
}

static bool answer(struct request *req, struct pending *p, const struct event *e)
{
	struct pp_fds *fds = p->data;
	char sentence[256];
	int r = req->peer ? send_file(req, fds->fd[0]) : 0;

	pp_fds_close(fds);
	if (r == -EDQUOT) {
		quota_sentence(p->service->lifecycle->charges.quota, sentence, sizeof(sentence));
		refuse(req, EDQUOT, "%s", sentence);
	} else if (r < 0) {
		refuse(req, EAGAIN, "The daemon cannot pass what %s/%s consists of: %s; try again.",
		       e->truth.spec.ns, e->truth.spec.name, strerror(-r));
	}
	return true;
}

void request_descriptors(struct request *req, const struct pp_msg_name *request)
{
	struct event *e = request_find(req, request, PP_RIGHT_R);
	struct pp_fds *fds;
	struct pending *p;
	int r = -ENOMEM;

	if (!e || !request_is_made(req, e))
		return;
	p = request_wait(req);
	if (!p)
		return;
	p->answer = answer;
	p->data = fds = calloc(1, sizeof(*fds));
	if (fds)
		r = lifecycle_describe(req->service->lifecycle, e, fds, &p->waiter);
	request_ordered(req, p, r, e->truth.spec.ns, e->truth.spec.name);
}
