// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes messages from arguments. */
#include "client/request/make.h"

#include <string.h>

#include "client/public.h"
#include "proto/task-start.h"

_Static_assert(PERFPERSIST_CHANGE_FILTER == PP_CHANGE_FILTER &&
		       PERFPERSIST_CHANGE_BUFFER == PP_CHANGE_BUFFER &&
		       PERFPERSIST_CHANGE_MAX_RATE == PP_CHANGE_MAX_RATE &&
		       PERFPERSIST_CHANGE_CHECKPOINT == PP_CHANGE_CHECKPOINT &&
		       PERFPERSIST_CHANGE_PERIOD == PP_CHANGE_PERIOD,
	       "changes");

#define _cleanup_request_ _cleanup_(request_cleanup)

#define CREATE_FLAGS                                                                     \
	(PERFPERSIST_FREQ | PP_EVENT_CHAINS | PERFPERSIST_GENERIC | PERFPERSIST_WAKEUP | \
	 PERFPERSIST_SHARE | PERFPERSIST_NO_SHARE | PERFPERSIST_BOOT |                   \
	 PERFPERSIST_CHECKPOINT(0xfff))
#define CHANGES                                                                                \
	(PERFPERSIST_CHANGE_FILTER | PERFPERSIST_CHANGE_BUFFER | PERFPERSIST_CHANGE_MAX_RATE | \
	 PERFPERSIST_CHANGE_CHECKPOINT | PERFPERSIST_CHANGE_PERIOD)

static int fill(char *field, size_t size, const char *what, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n >= size)
		return client_fail(-EINVAL,
				   "the %s \"%.40s…\" is too long: it has %zu bytes, %zu "
				   "are allowed",
				   what, text, n, size - 1);
	if (text)
		memcpy(field, text, n + 1);
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

static int fill_names(struct pp_msg_name *which, const char *ns, const char *name)
{
	int r = FILL_REQUIRED(which->ns, "namespace", ns);

	return r < 0 ? r : FILL_REQUIRED(which->name, "event's name", name);
}

int make_plain(struct perfpersist *p, enum pp_op op, struct request **ret)
{
	*ret = request_new(p, op);
	return *ret ? 0 : -ENOMEM;
}

/* The event's name, with which some operations' messages begin. */
static struct pp_msg_name *which_of(struct request *req)
{
	switch (req->op) {
	case PP_OP_OPEN:
		return &req->body.open.which;
	case PP_OP_CHANGE:
		return &req->body.change.which;
	case PP_OP_PAUSE:
		return &req->body.pause.which;
	case PP_OP_CLAIM:
		return &req->body.claim.which;
	default:
		return &req->body.name;
	}
}

int make_by_name(struct perfpersist *p, enum pp_op op, const char *ns, const char *name,
		 struct request **ret)
{
	_cleanup_request_ struct request *req = request_new(p, op);
	int r = req ? fill_names(which_of(req), ns, name) : -ENOMEM;

	if (r < 0)
		return r;
	*ret = TAKE_PTR(req);
	return 0;
}

int make_by_id(struct perfpersist *p, enum pp_op op, uint64_t id, struct request **ret)
{
	struct request *req;

	if (id == 0)
		return client_fail(-EINVAL, "no event has the id 0");
	req = request_new(p, op);
	if (!req)
		return -ENOMEM;
	which_of(req)->id = id;
	*ret = req;
	return 0;
}

static int make_of_namespace(struct perfpersist *p, enum pp_op op, const char *ns,
			     struct request **ret)
{
	_cleanup_request_ struct request *req = request_new(p, op);
	int r;

	if (!req)
		return -ENOMEM;
	if (op == PP_OP_WATCH)
		r = FILL(req->body.watch.ns, "namespace", ns);
	else
		r = FILL(req->body.list.ns, "namespace", ns);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(req);
	return 0;
}

int make_list(struct perfpersist *p, enum pp_op op, const char *ns, struct request **ret)
{
	return make_of_namespace(p, op, ns, ret);
}

int make_watch(struct perfpersist *p, const char *ns, struct request **ret)
{
	return make_of_namespace(p, PP_OP_WATCH, ns, ret);
}

/* ── Creating ───────────────────────────────────────────────────────────────────────────── */

static int fill_selection(struct pp_msg_selection *m, const char *event, const char *filter)
{
	int r = FILL_REQUIRED(m->event, "event's text", event);

	return r < 0 ? r : FILL(m->filter, "filter", filter);
}

static int fill_selections(struct pp_msg_create_request *m,
			   const struct perfpersist_create_options *opts)
{
	if (opts->n_selections == 0) {
		m->count = 1;
		return fill_selection(&m->selections[0], opts->event, opts->filter);
	}
	if (opts->event || opts->filter)
		return client_fail(-EINVAL, "give an event or selections, not both");
	if (opts->n_selections > PP_SELECTIONS_MAX)
		return client_fail(-EINVAL,
				   "%zu selections are too many for one event: %d are allowed; "
				   "those with the same filter can be one, with commas between",
				   opts->n_selections, PP_SELECTIONS_MAX);
	for (; m->count < opts->n_selections; m->count++) {
		const struct perfpersist_selection *s = &opts->selections[m->count];
		int r = fill_selection(&m->selections[m->count], s->event, s->filter);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The task that has the number now is meant, and no later one. */
static int fill_task(struct pp_msg_target *t, const char *what)
{
	int r = pp_task_start(t->pid, &t->start, NULL);

	if (r == -ESRCH)
		return client_fail(r, "there is no %s %u", what, t->pid);
	return r < 0 ? client_fail(r, "cannot read when %s %u began: %s", what, t->pid,
				   strerror(-r))
		     : 0;
}

static int fill_target(struct pp_msg_target *t, const struct perfpersist_create_options *opts)
{
	t->kind = opts->target;
	t->flags = opts->target_flags;
	t->pid = opts->target_pid;
	switch (opts->target) {
	case PERFPERSIST_TARGET_PROCESS:
		return fill_task(t, "process");
	case PERFPERSIST_TARGET_THREAD:
		return fill_task(t, "thread");
	case PERFPERSIST_TARGET_CGROUP:
		return FILL_REQUIRED(t->cgroup, "cgroup", opts->target_cgroup);
	case PERFPERSIST_TARGET_NONE:
		if (!t->flags && !t->pid && !opts->target_cgroup)
			return 0;
		/* fall through */
	default:
		return client_fail(-EINVAL,
				   "cannot create an event with a target of kind %u: it is a "
				   "process, a thread or a cgroup, or there is none",
				   opts->target);
	}
}

static int fill_create(struct pp_msg_create_request *m, const char *ns, const char *name,
		       const struct perfpersist_create_options *opts)
{
	int r;

	r = FILL_REQUIRED(m->ns, "namespace", ns);
	if (r < 0)
		return r;
	r = FILL_REQUIRED(m->name, "event's name", name);
	if (r < 0)
		return r;
	r = fill_selections(m, opts);
	if (r < 0)
		return r;
	if (opts->flags & ~CREATE_FLAGS)
		return client_fail(-EINVAL, "cannot create %s/%s: unknown flags %#x", ns, name,
				   opts->flags);
	m->data_size = opts->buffer;
	m->period = opts->period;
	m->max_rate = opts->max_rate;
	m->flags = opts->flags | (opts->program ? PP_EVENT_PROGRAM : 0);
	m->program = opts->program;
	m->max_stack = opts->max_stack;
	m->stack_user = opts->stack_user;
	r = fill_target(&m->target, opts);
	if (r < 0)
		return r;
	return FILL(m->cpus, "list of CPUs", opts->cpus);
}

static int check_options(const struct perfpersist_create_options *opts)
{
	if (opts && SZ_IS_VALID(opts))
		return 0;
	return client_fail(-EINVAL,
			   "cannot create an event with a struct perfpersist_create_options of "
			   "%zu bytes: set its sz to its size",
			   opts ? opts->sz : 0);
}

static int fill_until(struct pp_msg_create_request *m, const char *event, const char *filter)
{
	if (m->count == PP_SELECTIONS_MAX)
		return client_fail(
			-EINVAL,
			"%u selections are too many for an event that another one ends: %d "
			"are allowed",
			m->count, PP_SELECTIONS_MAX - 1);
	return fill_selection(&m->selections[m->count++], event, filter);
}

static int fill_condition(struct pp_msg_trigger_request *m,
			  const struct perfpersist_trigger_options *opts)
{
	int r = FILL(m->key, "key", opts->key);

	if (r >= 0)
		r = FILL(m->rate, "rate", opts->rate);
	if (r < 0)
		return r;
	if (opts->until_filter && !opts->until)
		return client_fail(-EINVAL, "a filter is given for an end, and no end");
	m->longer_than = opts->longer_than;
	m->until = opts->until != NULL;
	return opts->until ? fill_until(&m->event, opts->until, opts->until_filter) : 0;
}

#define HOLD_OFF_DEFAULT 10000000000ULL /* ns */

int make_trigger(struct perfpersist *p, const char *ns, const char *name,
		 const struct perfpersist_trigger_options *opts, struct request **ret)
{
	_cleanup_request_ struct request *req = NULL;
	struct pp_msg_trigger_request *m;
	int r;

	if (!opts || !SZ_IS_VALID(opts))
		return client_fail(-EINVAL,
				   "cannot create a trigger with a struct "
				   "perfpersist_trigger_options of %zu bytes: set its sz to its "
				   "size",
				   opts ? opts->sz : 0);
	r = check_options(opts->event);
	if (r < 0)
		return r;
	req = request_new(p, PP_OP_TRIGGER);
	if (!req)
		return -ENOMEM;
	m = &req->body.trigger;
	m->hold_off = opts->hold_off ?: HOLD_OFF_DEFAULT;
	m->max_per_day = opts->max_per_day;
	m->after = opts->after;
	m->after_records = opts->after_records;
	m->action = opts->action;
	r = opts->action == PERFPERSIST_ACTION_NOTIFY
		    ? FILL(m->targets, "list of targets", opts->targets)
		    : FILL_REQUIRED(m->targets, "list of targets", opts->targets);
	if (r >= 0)
		r = fill_create(&m->event, ns, name, opts->event);
	if (r >= 0)
		r = fill_condition(m, opts);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(req);
	return 0;
}

int make_create(struct perfpersist *p, const char *ns, const char *name,
		const struct perfpersist_create_options *opts, struct request **ret)
{
	_cleanup_request_ struct request *req = NULL;
	int r = check_options(opts);

	if (r < 0)
		return r;
	req = request_new(p, PP_OP_CREATE);
	r = req ? fill_create(&req->body.create, ns, name, opts) : -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(req);
	return 0;
}

/* ── Changing ───────────────────────────────────────────────────────────────────────────── */

static int fill_change(struct pp_msg_change_request *m,
		       const struct perfpersist_change_options *opts)
{
	m->what = opts->what;
	if (opts->what & PERFPERSIST_CHANGE_BUFFER)
		m->data_size = opts->buffer;
	if (opts->what & PERFPERSIST_CHANGE_MAX_RATE)
		m->max_rate = opts->max_rate;
	if (opts->what & PERFPERSIST_CHANGE_CHECKPOINT && opts->checkpoint > PP_CHECKPOINT_MAX)
		return client_fail(-EINVAL,
				   "cannot change an event: checkpoints every %u s are given; "
				   "%d s are the most",
				   opts->checkpoint, PP_CHECKPOINT_MAX);
	if (opts->what & PERFPERSIST_CHANGE_CHECKPOINT)
		m->flags = pp_checkpoint_flags(opts->checkpoint);
	if (opts->what & PERFPERSIST_CHANGE_PERIOD) {
		m->period = opts->period;
		m->flags |= opts->flags & PERFPERSIST_FREQ;
	}
	if (opts->what & PERFPERSIST_CHANGE_FILTER)
		return FILL(m->filter, "filter", opts->filter);
	return 0;
}

int make_change(struct perfpersist *p, const char *ns, const char *name,
		const struct perfpersist_change_options *opts, struct request **ret)
{
	_cleanup_request_ struct request *req = NULL;
	int r;

	if (!opts || !SZ_IS_VALID(opts))
		return client_fail(-EINVAL,
				   "cannot change an event by a struct "
				   "perfpersist_change_options of %zu bytes: set its sz to its "
				   "size",
				   opts ? opts->sz : 0);
	if (!opts->what || opts->what & ~CHANGES)
		return client_fail(-EINVAL,
				   "cannot change an event: what to change is given as %#x; it is "
				   "any of filter, buffer, max_rate, checkpoint and period",
				   opts->what);
	r = make_by_name(p, PP_OP_CHANGE, ns, name, &req);
	if (r >= 0)
		r = fill_change(&req->body.change, opts);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(req);
	return 0;
}

int make_pause(struct perfpersist *p, const char *ns, const char *name, bool pause,
	       struct request **ret)
{
	_cleanup_request_ struct request *req = request_new(p, PP_OP_PAUSE);
	int r;

	if (!req)
		return -ENOMEM;
	if (name)
		r = fill_names(&req->body.pause.which, ns, name);
	else
		r = FILL_REQUIRED(req->body.pause.which.ns, "namespace", ns);
	if (r < 0)
		return r;
	req->body.pause.pause = pause;
	*ret = TAKE_PTR(req);
	return 0;
}
