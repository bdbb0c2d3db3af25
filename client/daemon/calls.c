// SPDX-License-Identifier: LGPL-2.1-or-later
/* The blocking verbs about events and the daemon; open.c has those that open rings. */
#include <string.h>

#include "client/daemon/call.h"
#include "client/daemon/connection.h"
#include "client/request/make.h"

struct waiter {
	bool done;
	int error;
	struct answer *answer;
};

static void take_answer(struct request *req, int error)
{
	struct waiter *w = req->waiter;

	w->done = true;
	w->error = error;
	*w->answer = req->answer;
	w->answer->was_asked = req->sent;
	answer_init(&req->answer);
}

int call(struct perfpersist *p, int made, struct request *req, struct answer *ret)
{
	struct waiter w = { .answer = ret };
	int r;

	if (made < 0)
		return connection_fail(p, made);
	req->done = take_answer;
	req->waiter = &w;
	r = connection_submit(p, req);
	if (r < 0)
		return r;
	connection_wait(p, &w.done);
	return w.error;
}

/* A call whose answer is one event; ret may be NULL. */
static int call_for_info(struct perfpersist *p, int made, struct request *req,
			 struct perfpersist_info *ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	int r;

	if (ret && client_info_check(ret) < 0) { /* before the request is sent */
		request_free(req);
		return connection_fail(p, -EINVAL);
	}
	r = call(p, made, req, &a);
	if (r < 0)
		return r;
	return ret ? client_info_export(&a.infos.v[0], ret) : 0;
}

static int bad_size(struct perfpersist *p, const char *type, size_t sz)
{
	client_fail(-EINVAL, "cannot fill in a struct %s of %zu bytes: set its sz to its size",
		    type, sz);
	return connection_fail(p, -EINVAL);
}

#define COPY_FIELD(to, from)                                                      \
	do {                                                                      \
		_Static_assert(sizeof(to) == sizeof(from), "fields of one size"); \
		memcpy(to, from, sizeof(to));                                     \
	} while (0)

/* ── The daemon ─────────────────────────────────────────────────────────────────────────── */

_public_ int perfpersist_ping(struct perfpersist *p, struct perfpersist_daemon_info *ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r;

	if (!SZ_IS_VALID(ret))
		return bad_size(p, "perfpersist_daemon_info", ret->sz);
	r = make_plain(p, PP_OP_PING, &req);
	r = call(p, r, req, &a);
	if (r < 0)
		return r;
	*ret = (struct perfpersist_daemon_info){
		.sz = ret->sz,
		.version = a.ping.version,
		.pid = a.ping.pid,
		.engine_pid = a.ping.engine_pid,
		.events = a.ping.events,
		.started = a.ping.started,
	};
	COPY_FIELD(ret->release, a.ping.release);
	COPY_FIELD(ret->instance, a.ping.instance);
	return 0;
}

_public_ int perfpersist_reload(struct perfpersist *p, struct perfpersist_reload_result *ret)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r;

	if (ret && !SZ_IS_VALID(ret))
		return bad_size(p, "perfpersist_reload_result", ret->sz);
	r = make_plain(p, PP_OP_RELOAD, &req);
	r = call(p, r, req, &a);
	if (r < 0 || !ret)
		return r;
	*ret = (struct perfpersist_reload_result){
		.sz = ret->sz,
		.created = a.reload.created,
		.changed = a.reload.changed,
		.deleted = a.reload.deleted,
		.failed = a.reload.failed,
	};
	COPY_FIELD(ret->message, a.reload.message);
	return 0;
}

_public_ int perfpersist_limits(struct perfpersist *p, struct perfpersist_limit **ret,
				size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r = make_plain(p, PP_OP_LIMITS, &req);

	r = call(p, r, req, &a);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(a.limits.v);
	*ret_n = a.limits.n;
	return 0;
}

_public_ int perfpersist_cpus_away(struct perfpersist *p, struct perfpersist_cpu_away **ret,
				   size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int r = make_plain(p, PP_OP_CPUS, &req);

	r = call(p, r, req, &a);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(a.away.v);
	*ret_n = a.away.n;
	return 0;
}

/* ── Events ─────────────────────────────────────────────────────────────────────────────── */

_public_ int perfpersist_create(struct perfpersist *p, const char *ns, const char *name,
				const struct perfpersist_create_options *opts,
				struct perfpersist_info *ret)
{
	struct request *req = NULL;
	int made = make_create(p, ns, name, opts, &req);

	return call_for_info(p, made, req, ret);
}

_public_ int perfpersist_delete(struct perfpersist *p, const char *ns, const char *name,
				struct perfpersist_info *ret)
{
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_DELETE, ns, name, &req);

	return call_for_info(p, made, req, ret);
}

_public_ int perfpersist_delete_by_id(struct perfpersist *p, uint64_t id,
				      struct perfpersist_info *ret)
{
	struct request *req = NULL;
	int made = make_by_id(p, PP_OP_DELETE, id, &req);

	return call_for_info(p, made, req, ret);
}

_public_ int perfpersist_show(struct perfpersist *p, const char *ns, const char *name,
			      struct perfpersist_info *ret)
{
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_SHOW, ns, name, &req);

	return call_for_info(p, made, req, ret);
}

_public_ int perfpersist_list(struct perfpersist *p, const char *ns, struct perfpersist_info **ret,
			      size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_list(p, PP_OP_LIST, ns, &req);
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	*ret = TAKE_PTR(a.infos.v);
	*ret_n = a.infos.n;
	return 0;
}

_public_ int perfpersist_change(struct perfpersist *p, const char *ns, const char *name,
				const struct perfpersist_change_options *opts,
				struct perfpersist_info *ret)
{
	struct request *req = NULL;
	int made = make_change(p, ns, name, opts, &req);

	return call_for_info(p, made, req, ret);
}

_public_ int perfpersist_pause(struct perfpersist *p, const char *ns, const char *name, bool pause,
			       size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_pause(p, ns, name, pause, &req);
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	if (ret_n)
		*ret_n = a.count;
	return 0;
}

/* ── Triggers ───────────────────────────────────────────────────────────────────────────── */

_public_ int perfpersist_trigger_add(struct perfpersist *p, const char *ns, const char *name,
				     const struct perfpersist_trigger_options *opts,
				     struct perfpersist_info *ret)
{
	struct request *req = NULL;
	int made = make_trigger(p, ns, name, opts, &req);

	return call_for_info(p, made, req, ret);
}

_public_ int perfpersist_triggers(struct perfpersist *p, const char *ns,
				  struct perfpersist_trigger **ret, size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_list(p, PP_OP_TRIGGERS, ns, &req);
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	*ret = TAKE_PTR(a.triggers.v);
	*ret_n = a.triggers.n;
	return 0;
}

_public_ int perfpersist_trigger_fire(struct perfpersist *p, const char *ns, const char *name)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_by_name(p, PP_OP_FIRE, ns, name, &req);

	return call(p, made, req, &a);
}

_public_ int perfpersist_tapes(struct perfpersist *p, const char *ns, struct perfpersist_tape **ret,
			       size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_list(p, PP_OP_TAPES, ns, &req);
	int r = call(p, made, req, &a);

	if (r < 0)
		return r;
	*ret = TAKE_PTR(a.tapes.v);
	*ret_n = a.tapes.n;
	return 0;
}

_public_ int perfpersist_tape_release(struct perfpersist *p, uint64_t id)
{
	_cleanup_answer_ struct answer a = { .fd = -EBADF };
	struct request *req = NULL;
	int made = make_by_id(p, PP_OP_RELEASE, id, &req);

	return call(p, made, req, &a);
}
