// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the public verbs. Each fills in a request; the asynchronous form hands the outcome to a
 * callback, the blocking form waits for it. Names and texts are the daemon's to judge: here
 * they only have to fit into their fields.
 */
#include <string.h>

#include "client/connection.h"
#include "client/request.h"

/* ── Filling in requests ────────────────────────────────────────────────────────────────── */

static int fill(char *field, size_t size, const char *what, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n >= size)
		return client_fail(-EINVAL,
				   "the %s \"%.40s…\" is too long: it has %zu bytes, %zu "
				   "are allowed",
				   what, text, n, size - 1);
	if (n)
		memcpy(field, text, n);
	return 0;
}
#define FILL(field, what, text) fill(field, sizeof(field), what, text)

static int fill_required(char *field, size_t size, const char *what, const char *text)
{
	if (!text || !*text)
		return client_fail(-EINVAL, "the %s is missing", what);
	return fill(field, size, what, text);
}
#define FILL_REQUIRED(field, what, text) fill_required(field, sizeof(field), what, text)

static void request_cleanup(struct request **r)
{
	request_free(*r);
}
#define _cleanup_request_ _cleanup_(request_cleanup)

/* Of an event by name; the body of an open request begins with the same message. */
static int make_by_name(struct perfpersist *p, enum pp_op op, const char *ns, const char *name,
			struct request **ret)
{
	_cleanup_request_ struct request *r = request_new(p, op);
	struct pp_msg_name *which;
	int error;

	if (!r)
		return -ENOMEM;
	which = op == PP_OP_OPEN ? &r->body.open.which : &r->body.name;
	error = FILL_REQUIRED(which->ns, "namespace", ns);
	if (error < 0)
		return error;
	error = FILL_REQUIRED(which->name, "event's name", name);
	if (error < 0)
		return error;
	*ret = TAKE_PTR(r);
	return 0;
}

static int make_by_id(struct perfpersist *p, enum pp_op op, uint64_t id, struct request **ret)
{
	struct request *r;

	if (id == 0)
		return client_fail(-EINVAL, "no event has the id 0");
	r = request_new(p, op);
	if (!r)
		return -ENOMEM;
	if (op == PP_OP_OPEN)
		r->body.open.which.id = id;
	else
		r->body.name.id = id;
	*ret = r;
	return 0;
}

static int make_list(struct perfpersist *p, const char *ns, struct request **ret)
{
	_cleanup_request_ struct request *r = request_new(p, PP_OP_LIST);
	int error;

	if (!r)
		return -ENOMEM;
	error = FILL(r->body.list.ns, "namespace", ns);
	if (error < 0)
		return error;
	*ret = TAKE_PTR(r);
	return 0;
}

static int fill_create(struct pp_msg_create_request *m, const char *ns, const char *name,
		       const struct perfpersist_create_options *opts)
{
	int error;

	error = FILL_REQUIRED(m->ns, "namespace", ns);
	if (error < 0)
		return error;
	error = FILL_REQUIRED(m->name, "event's name", name);
	if (error < 0)
		return error;
	error = FILL_REQUIRED(m->event, "event's text", opts->event);
	if (error < 0)
		return error;
	if (opts->flags & ~(PERFPERSIST_FREQ | PERFPERSIST_CALLCHAIN | PERFPERSIST_GENERIC))
		return client_fail(-EINVAL, "cannot create %s/%s: unknown flags %#x", ns, name,
				   opts->flags);
	m->data_size = opts->buffer;
	m->period = opts->period;
	m->flags = opts->flags;
	return FILL(m->cpus, "list of CPUs", opts->cpus);
}

static int make_create(struct perfpersist *p, const char *ns, const char *name,
		       const struct perfpersist_create_options *opts, struct request **ret)
{
	_cleanup_request_ struct request *r = NULL;
	int error;

	if (!opts || !SZ_IS_VALID(opts))
		return client_fail(-EINVAL,
				   "cannot create an event with a struct "
				   "perfpersist_create_options of %zu bytes: set its sz "
				   "to its size",
				   opts ? opts->sz : 0);
	r = request_new(p, PP_OP_CREATE);
	if (!r)
		return -ENOMEM;
	error = fill_create(&r->body.create, ns, name, opts);
	if (error < 0)
		return error;
	*ret = TAKE_PTR(r);
	return 0;
}

/* ── Asynchronous ───────────────────────────────────────────────────────────────────────── */

static void call_back(struct request *r, int error)
{
	struct perfpersist_result result = { .sz = sizeof(result), .error = error };

	if (error >= 0) {
		result.infos = r->infos.v;
		result.n = r->infos.n;
		result.event = TAKE_PTR(r->event);
	}
	r->callback(r->p, &result, r->userdata);
}

/* made: what making the request returned. */
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
	int made = make_list(p, ns, &r);

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

/* ── Blocking ───────────────────────────────────────────────────────────────────────────── */

struct answer {
	bool done;
	int error;
	struct client_infos infos;
	struct perfpersist_event *event;
	struct pp_msg_ping_reply ping;
};

static void answer_cleanup(struct answer *a)
{
	client_infos_done(&a->infos);
	perfpersist_event_free(a->event);
}
#define _cleanup_answer_ _cleanup_(answer_cleanup)

static void take_answer(struct request *r, int error)
{
	struct answer *a = r->userdata;

	a->done = true;
	a->error = error;
	a->infos = r->infos;
	r->infos = (struct client_infos){ 0 };
	a->event = TAKE_PTR(r->event);
	a->ping = r->ping;
}

static int call(struct perfpersist *p, int made, struct request *r, struct answer *a)
{
	int error;

	if (made < 0)
		return connection_fail(p, made);
	r->done = take_answer;
	r->userdata = a;
	error = connection_submit(p, r);
	if (error < 0)
		return error;
	connection_wait(p, &a->done);
	return a->error;
}

/* A call whose answer is one event, which ret may leave out. */
static int call_for_info(struct perfpersist *p, int made, struct request *r,
			 struct perfpersist_info *ret)
{
	_cleanup_answer_ struct answer a = { 0 };
	int error;

	if (ret && client_info_check(ret) < 0) { /* before anything is done */
		request_free(r);
		return connection_fail(p, -EINVAL);
	}
	error = call(p, made, r, &a);
	if (error < 0)
		return error;
	return ret ? client_info_export(&a.infos.v[0], ret) : 0;
}

static int call_for_event(struct perfpersist *p, int made, struct request *r,
			  struct perfpersist_event **ret)
{
	_cleanup_answer_ struct answer a = { 0 };
	int error = call(p, made, r, &a);

	if (error < 0)
		return error;
	*ret = TAKE_PTR(a.event);
	return 0;
}

_public_ int perfpersist_ping(struct perfpersist *p, struct perfpersist_daemon_info *ret)
{
	_cleanup_answer_ struct answer a = { 0 };
	struct request *r;
	int error;

	if (!SZ_IS_VALID(ret))
		return connection_fail(
			p, client_fail(-EINVAL,
				       "cannot fill in a struct perfpersist_daemon_info of %zu "
				       "bytes: set its sz to its size",
				       ret->sz));
	r = request_new(p, PP_OP_PING);
	error = call(p, r ? 0 : -ENOMEM, r, &a);
	if (error < 0)
		return error;
	*ret = (struct perfpersist_daemon_info){
		.sz = ret->sz,
		.version = a.ping.version,
		.pid = a.ping.pid,
		.engine_pid = a.ping.engine_pid,
		.events = a.ping.events,
		.started = a.ping.started,
	};
	_Static_assert(sizeof(ret->release) == sizeof(a.ping.release) &&
			       sizeof(ret->instance) == sizeof(a.ping.instance),
		       "fields of one size");
	memcpy(ret->release, a.ping.release, sizeof(ret->release));
	memcpy(ret->instance, a.ping.instance, sizeof(ret->instance));
	return 0;
}

_public_ int perfpersist_create(struct perfpersist *p, const char *ns, const char *name,
				const struct perfpersist_create_options *opts,
				struct perfpersist_info *ret)
{
	struct request *r = NULL;
	int made = make_create(p, ns, name, opts, &r);

	return call_for_info(p, made, r, ret);
}

_public_ int perfpersist_delete(struct perfpersist *p, const char *ns, const char *name,
				struct perfpersist_info *ret)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_DELETE, ns, name, &r);

	return call_for_info(p, made, r, ret);
}

_public_ int perfpersist_delete_by_id(struct perfpersist *p, uint64_t id,
				      struct perfpersist_info *ret)
{
	struct request *r = NULL;
	int made = make_by_id(p, PP_OP_DELETE, id, &r);

	return call_for_info(p, made, r, ret);
}

_public_ int perfpersist_show(struct perfpersist *p, const char *ns, const char *name,
			      struct perfpersist_info *ret)
{
	struct request *r = NULL;
	int made = make_by_name(p, PP_OP_SHOW, ns, name, &r);

	return call_for_info(p, made, r, ret);
}

_public_ int perfpersist_list(struct perfpersist *p, const char *ns, struct perfpersist_info **ret,
			      size_t *ret_n)
{
	_cleanup_answer_ struct answer a = { 0 };
	struct request *r = NULL;
	int made = make_list(p, ns, &r);
	int error = call(p, made, r, &a);

	if (error < 0)
		return error;
	*ret = TAKE_PTR(a.infos.v);
	*ret_n = a.infos.n;
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
