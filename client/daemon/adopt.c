// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Handing perf events over, and taking an event back. The daemon gets no descriptor: this process attaches the
 * program that it hands out, and sends the links' ids.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/request/make.h"
#include "client/rings/bpf.h"

/* ── handing over ───────────────────────────────────────────────────────────────────────── */

struct adoption {
	uint64_t id;
	int program;
	int *links; /* of the perf events, in their order */
	size_t n;
};

static void adoption_done(struct adoption *a)
{
	for (size_t i = 0; i < a->n; i++)
		close_fd(a->links[i]);
	free(a->links);
	close_fd(a->program);
}

static const char *explain(int error)
{
	switch (-error) {
	case EBADF:
		return "it is not a perf event";
	case EEXIST:
		return "a BPF program is attached to this perf event already";
	case EINVAL:
		return "this perf event is of another kind than the event that was named";
	case EPROTO:
		return "it is a precise one, and has no call chain that a program can read; open it "
		       "with PERF_SAMPLE_CALLCHAIN, or do not ask for call chains";
	case E2BIG:
		return "its tracepoint runs 64 BPF programs already, the most that the kernel "
		       "allows";
	default:
		return strerror(-error);
	}
}

/* The kernel refuses what is no perf event, and what has a program. */
static int attach(struct adoption *a, int fd, bool is_sampling)
{
	int link = client_bpf_link_perf(a->program, fd);

	/* Each as one of those that were given: the descriptor's number is not the one that it had where it was
	 * opened. */
	if (link < 0)
		return client_fail(link == -EEXIST ? -EBUSY : link,
				   "cannot adopt perf event %zu of those given: %s", a->n + 1,
				   explain(link));
	a->links[a->n++] = link;
	/* On a tracepoint programs run however its perf events are. */
	if (is_sampling && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return client_fail(-errno, "cannot enable perf event %zu of those given: %m", a->n);
	return 0;
}

/* The program of a tracepoint runs for all CPUs and tasks, whichever perf event it is attached to. */
static int attach_all(struct adoption *a, const int *fds, size_t n)
{
	bool is_sampling = client_bpf_is_sampling(a->program);
	int r = 0;

	a->links = calloc(n, sizeof(*a->links));
	if (!a->links)
		return client_fail(-ENOMEM, "cannot adopt perf events: out of memory");
	for (size_t i = 0; r >= 0 && i < (is_sampling ? n : 1); i++)
		r = attach(a, fds[i], is_sampling);
	return r;
}

static int begin(struct perfpersist *p, const char *ns, const char *name,
		 const struct perfpersist_create_options *opts, struct adoption *ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r = make_create(p, ns, name, opts, &req);

	if (r >= 0)
		req->op = PP_OP_ADOPT;
	r = call(p, r, req, &a);
	if (r < 0)
		return r;
	ret->id = a.adoption;
	ret->program = TAKE_FD(a.fd);
	return 0;
}

/* A page of links; the last one makes the event. */
static int hand_over(struct perfpersist *p, const struct adoption *a, size_t first,
		     struct answer *ret)
{
	struct pp_msg_attach_request *m;
	struct request *req = NULL;
	int r = make_plain(p, PP_OP_ATTACH, &req);

	if (r < 0)
		return connection_fail(p, r);
	m = &req->body.attach;
	m->adoption = a->id;
	for (size_t i = first; i < a->n && m->count < PP_LINKS_MAX; i++)
		m->links[m->count++].id = client_bpf_link_id(a->links[i]);
	m->more = first + m->count < a->n;
	return call(p, 0, req, ret);
}

/* The error that led here stays the connection's. */
static void give_up(struct perfpersist *p, struct adoption *a)
{
	_cleanup_answer_ struct answer answer = { .fd = -EBADF };
	char why[CLIENT_SENTENCE_SIZE];

	memcpy(why, p->error, sizeof(why));
	hand_over(p, a, a->n, &answer);
	memcpy(p->error, why, sizeof(why));
}

static int hand_over_all(struct perfpersist *p, const struct adoption *a,
			 struct perfpersist_info *ret)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < a->n; i += PP_LINKS_MAX) {
		_cleanup_answer_ struct answer answer = { .fd = -EBADF };

		r = hand_over(p, a, i, &answer);
		if (r >= 0 && ret && i + PP_LINKS_MAX >= a->n)
			r = client_info_export(&answer.infos.v[0], ret);
	}
	return r;
}

_public_ int perfpersist_adopt(struct perfpersist *p, const char *ns, const char *name,
			       const struct perfpersist_create_options *opts, const int *fds,
			       size_t n, struct perfpersist_info *ret)
{
	_cleanup_(adoption_done) struct adoption a = { .program = -EBADF };
	int r = ret ? client_info_check(ret) : 0;

	if (r >= 0 && n == 0)
		r = client_fail(-EINVAL, "cannot adopt perf events: no descriptors were given");
	if (r < 0)
		return connection_fail(p, r);
	r = begin(p, ns, name, opts, &a);
	if (r < 0)
		return r;
	r = attach_all(&a, fds, n);
	r = r < 0 ? connection_fail(p, r) : hand_over_all(p, &a, ret);
	if (r < 0)
		give_up(p, &a);
	return r;
}

/* ── taking back ────────────────────────────────────────────────────────────────────────── */

_public_ int perfpersist_claim(struct perfpersist *p, const char *ns, const char *name,
			       int **ret_fds, size_t *ret_n, size_t *ret_rings,
			       struct perfpersist_info *ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r = client_info_check(ret);

	if (r < 0)
		return connection_fail(p, r);
	r = make_by_name(p, PP_OP_CLAIM, ns, name, &req);
	r = call(p, r, req, &a);
	if (r >= 0)
		r = client_info_export(&a.infos.v[0], ret);
	if (r < 0)
		return r;
	*ret_fds = TAKE_PTR(a.fds);
	*ret_n = a.n_fds;
	*ret_rings = a.claim.rings;
	a.n_fds = 0;
	return 0;
}

/* The connection broke: whether the daemon that answers now, or the next one, has the event. It knows what became
 * of the orders of its predecessor. */
static int find_owner(struct perfpersist *p, uint64_t id)
{
	const struct perfpersist_options opts = { .sz = sizeof(opts), .socket = p->socket };
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct perfpersist *other = NULL;
	struct request *req = NULL;
	int r = perfpersist_connect(&opts, &other);
	bool is_ending = false;

	if (r >= 0) {
		r = make_by_id(other, PP_OP_SHOW, id, &req);
		r = call(other, r, req, &a);
		is_ending = r >= 0 && a.infos.v[0].state == PP_EVENT_DELETING;
		perfpersist_free(other);
	}
	if (r == -ENOENT)
		return 0;
	if (r >= 0 && !is_ending)
		return client_fail(-ECONNRESET,
				   "perfpersistd at %s was restarted, and still has the event; "
				   "claim it again",
				   p->socket);
	client_fail(-ECONNRESET,
		    "perfpersistd at %s was stopped during the claim, and cannot tell whether it "
		    "still has the event; when it runs, look for the id %" PRIu64,
		    p->socket, id);
	return 1;
}

_public_ int perfpersist_claim_end(struct perfpersist *p, const struct perfpersist_info *claimed)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r = make_by_id(p, PP_OP_CLAIM, claimed->id, &req);

	if (r >= 0) {
		req->body.claim.done = 1;
		req->body.claim.set = claimed->set;
	}
	r = call(p, r, req, &a);
	if (r != -ECONNRESET)
		return r == -EINPROGRESS ? 1 : r;
	if (!a.was_asked)
		return connection_fail(
			p,
			client_fail(-ECONNRESET,
				    "perfpersistd at %s was stopped or restarted during the claim, "
				    "and the event is not the caller's; claim it again",
				    p->socket));
	r = find_owner(p, claimed->id);
	if (r)
		connection_fail(p, r);
	return r;
}
