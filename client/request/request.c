// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects an answer from its pages. */
#include "client/request/request.h"

#include <string.h>

#include "client/public.h"
#include "client/rings/event.h"
#include "proto/clock.h"

/* How often to restart if CPUs come online, or the rings are replaced, between two pages. */
#define OPEN_RESTARTS_MAX 5

void answer_init(struct answer *a)
{
	*a = (struct answer){ .fd = -EBADF };
}

void answer_done(struct answer *a)
{
	client_infos_done(&a->infos);
	client_limits_done(&a->limits);
	client_away_done(&a->away);
	client_triggers_done(&a->triggers);
	client_tapes_done(&a->tapes);
	perfpersist_event_free(a->event);
	a->event = NULL;
	a->fd = close_fd(a->fd);
	for (size_t i = 0; i < a->n_fds; i++)
		close_fd(a->fds[i]);
	free(a->fds);
	a->fds = NULL;
	a->n_fds = 0;
}

struct request *request_new(struct perfpersist *p, enum pp_op op)
{
	size_t body = pp_message_by_opcode((uint16_t)op)->struct_size;
	struct request *req = calloc(1, offsetof(struct request, body) + body);

	if (!req) {
		client_fail(-ENOMEM, "cannot make a request: out of memory");
		return NULL;
	}
	req->p = p;
	req->op = (uint16_t)op;
	req->made = pp_clock_ns(CLOCK_MONOTONIC);
	answer_init(&req->answer);
	return req;
}

void request_free(struct request *req)
{
	if (!req)
		return;
	answer_done(&req->answer);
	free(req);
}

static int senseless(const char *what)
{
	return client_fail(-EBADMSG, "perfpersistd sent a reply that makes no sense: %s", what);
}

static int add_event(struct request *req, const struct pp_msg_event *m)
{
	struct perfpersist_info info;

	client_info_from_message(m, &info);
	return client_infos_add(&req->answer.infos, &info);
}

/* ── Pages of lists ─────────────────────────────────────────────────────────────────────── */

static int go_on(struct request *req, uint64_t id)
{
	if (id <= req->body.list.after)
		return senseless("a list that is not in the order of ids");
	req->body.list.after = id;
	return 0;
}

static int end_page(uint32_t count, uint32_t more)
{
	if (more && count == 0)
		return senseless("an empty page of a list that goes on");
	return more ? REQUEST_MORE : 0;
}

static int list_reply(struct request *req, const struct pp_msg_list_reply *m)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < m->count; i++) {
		r = go_on(req, m->events[i].id);
		if (r >= 0)
			r = add_event(req, &m->events[i]);
	}
	return r < 0 ? r : end_page(m->count, m->more);
}

static int triggers_reply(struct request *req, const struct pp_msg_triggers_reply *m)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < m->count; i++) {
		r = go_on(req, m->triggers[i].id);
		if (r >= 0)
			r = client_triggers_add(&req->answer.triggers, &m->triggers[i]);
	}
	return r < 0 ? r : end_page(m->count, m->more);
}

static int tapes_reply(struct request *req, const struct pp_msg_tapes_reply *m)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < m->count; i++) {
		r = go_on(req, m->tapes[i].id);
		if (r >= 0)
			r = client_tapes_add(&req->answer.tapes, &m->tapes[i]);
	}
	return r < 0 ? r : end_page(m->count, m->more);
}

static int limits_reply(struct request *req, const struct pp_msg_limits_reply *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		int r = client_limits_add(&req->answer.limits, &m->limits[i]);

		if (r < 0)
			return r;
	}
	if (m->more && (m->count == 0 || req->answer.limits.n > CLIENT_LIMITS_MAX))
		return senseless("limits that have no end");
	req->body.limits.first += m->count;
	return m->more ? REQUEST_MORE : 0;
}

static int cpus_reply(struct request *req, const struct pp_msg_cpus_reply *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		int r;

		if (m->cpus[i].cpu < req->body.cpus.first || m->cpus[i].cpu > INT32_MAX)
			return senseless("CPUs that are not in the order of their numbers");
		req->body.cpus.first = m->cpus[i].cpu + 1;
		r = client_away_add(&req->answer.away, m->cpus[i].cpu, m->cpus[i].since);
		if (r < 0)
			return r;
	}
	if (m->more && m->count == 0)
		return senseless("an empty page of CPUs that go on");
	return m->more ? REQUEST_MORE : 0;
}

/* ── Pages of rings ─────────────────────────────────────────────────────────────────────── */

static void ask_for_rings(struct request *req, uint64_t id, uint32_t first)
{
	req->body.open = (struct pp_msg_open_request){
		.which.id = id,
		.first = first,
		.flags = req->body.open.flags,
	};
}

static int begin_open(struct request *req, const struct pp_msg_open_reply *m, struct pp_fds *fds)
{
	struct perfpersist_info info;
	int r;

	req->open.total = m->total;
	req->open.set = m->event.set;
	req->open.copies = m->copies;
	client_info_from_message(&m->event, &info);
	r = client_event_new(&info, &req->answer.event);
	if (r < 0)
		return r;
	req->answer.event->is_copy = m->copies;
	req->answer.event->copied = m->copies ? req->made : 0;
	if (!m->catalog_size)
		return 0;
	return client_event_add_catalog(req->answer.event, TAKE_FD(fds->fd[0]), m->catalog_size);
}

/* The rings differ from the first page's: the pages do not fit together. */
static int restart_open(struct request *req, uint64_t id)
{
	perfpersist_event_free(TAKE_PTR(req->answer.event));
	if (++req->open.restarts > OPEN_RESTARTS_MAX)
		return client_fail(-EAGAIN,
				   "cannot open the event: its CPUs or its rings change all "
				   "the time; try again");
	ask_for_rings(req, id, 0);
	return REQUEST_MORE;
}

static int add_ring(struct request *req, const struct pp_msg_cpu *m, int fd)
{
	if (m->cpu > INT32_MAX || m->map_size == 0) {
		close_fd(fd);
		return senseless("a ring of no CPU, or of no size");
	}
	return client_event_add(req->answer.event, fd, (int)m->cpu, m->map_size);
}

static bool is_as_first_page(const struct request *req, const struct pp_msg_open_reply *m)
{
	return m->total == req->open.total && m->event.set == req->open.set &&
	       m->copies == req->open.copies;
}

static int open_reply(struct request *req, const struct pp_msg_open_reply *m, struct pp_fds *fds)
{
	size_t catalogs = m->catalog_size ? 1 : 0;
	int r = 0;

	if (m->count + catalogs != fds->n)
		return senseless("not one descriptor per ring");
	if (m->copies > 1 || (req->answer.event && catalogs))
		return senseless("rings of no known kind, or a second catalog");
	if (req->answer.event && !is_as_first_page(req, m))
		return restart_open(req, m->event.id);
	if (!req->answer.event)
		r = begin_open(req, m, fds);
	for (uint32_t i = 0; r >= 0 && i < m->count; i++)
		r = add_ring(req, &m->cpus[i], TAKE_FD(fds->fd[catalogs + i]));
	if (r == -ESTALE) /* the rings of this very page */
		return restart_open(req, m->event.id);
	if (r < 0)
		return r;
	if (req->answer.event->n >= req->open.total)
		return client_event_complete(req->answer.event);
	if (m->count == 0)
		return senseless("an empty page of rings before the last ring");
	ask_for_rings(req, m->event.id, (uint32_t)req->answer.event->n);
	return REQUEST_MORE;
}

/* ── The others ─────────────────────────────────────────────────────────────────────────── */

static int wakeup_reply(struct request *req, struct pp_fds *fds)
{
	if (fds->n != 1)
		return senseless("a wakeup without its descriptor");
	req->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int sideband_reply(struct request *req, const struct pp_msg_sideband_reply *m,
			  struct pp_fds *fds)
{
	if (fds->n != (m->size ? 1 : 0))
		return senseless("sideband without its descriptor, or one without sideband");
	req->answer.sideband = *m;
	if (fds->n)
		req->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int adopt_reply(struct request *req, const struct pp_msg_adopt_reply *m, struct pp_fds *fds)
{
	if (fds->n != 1)
		return senseless("an adoption without its program");
	req->answer.adoption = m->adoption;
	req->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int take_fds(struct request *req, struct pp_fds *fds)
{
	struct answer *a = &req->answer;
	int *more = reallocarray(a->fds, a->n_fds + fds->n, sizeof(*more));

	if (!more)
		return client_fail(-ENOMEM, "cannot claim the event: out of memory");
	a->fds = more;
	for (size_t i = 0; i < fds->n; i++)
		a->fds[a->n_fds++] = TAKE_FD(fds->fd[i]);
	return 0;
}

static int claim_reply(struct request *req, const struct pp_msg_claim_reply *m, struct pp_fds *fds)
{
	struct answer *a = &req->answer;
	int r = req->body.claim.done ? add_event(req, &m->event) : 0;

	if (r < 0 || req->body.claim.done)
		return r;
	if (a->n_fds && (m->total != a->claim.total || m->event.set != a->claim.event.set))
		return client_fail(
			-EAGAIN, "cannot claim the event: its CPUs or its rings change; try again");
	if (!fds->n || m->rings > m->total || fds->n > m->total - a->n_fds)
		return senseless("a page of descriptors that ends nothing");
	a->claim = *m;
	r = take_fds(req, fds);
	if (r < 0 || a->n_fds == m->total)
		return r < 0 ? r : add_event(req, &m->event);
	/* Another event may get the name. */
	req->body.claim.which = (struct pp_msg_name){ .id = m->event.id };
	req->body.claim.first = (uint32_t)a->n_fds;
	return REQUEST_MORE;
}

static int descriptors_reply(struct request *req, const struct pp_msg_descriptors_reply *m,
			     struct pp_fds *fds)
{
	if (fds->n != 1)
		return senseless("descriptors without their file");
	req->answer.size = m->size;
	req->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int auxtrace_reply(struct request *req, const struct pp_msg_auxtrace_reply *m,
			  struct pp_fds *fds)
{
	if (fds->n != 1)
		return senseless("a trace without its descriptor");
	req->answer.auxtrace = *m;
	req->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int take_notice(struct request *req, const struct pp_msg_notice *m)
{
	struct perfpersist_notice notice = {
		.sz = sizeof(notice),
		.kind = m->kind,
		.cpu = m->cpu,
		.lost = m->lost,
	};
	struct perfpersist_info info;

	if (req->goes_on == (m->kind == PP_NOTICE_STARTED))
		return senseless("notices before the first one, or after it once more");
	req->goes_on = true;
	if (m->event.id) {
		client_info_from_message(&m->event, &info);
		notice.info = &info;
	}
	req->notice(req, &notice);
	return REQUEST_GOES_ON;
}

int request_reply(struct request *req, const union pp_body *body, struct pp_fds *fds)
{
	switch (req->op) {
	case PP_OP_PING:
		req->answer.ping = body->ping_reply;
		return 0;
	case PP_OP_LIST:
		return list_reply(req, &body->list_reply);
	case PP_OP_OPEN:
		return open_reply(req, &body->open_reply, fds);
	case PP_OP_CPUS:
		return cpus_reply(req, &body->cpus_reply);
	case PP_OP_LIMITS:
		return limits_reply(req, &body->limits_reply);
	case PP_OP_PAUSE:
		req->answer.count = body->pause_reply.count;
		return 0;
	case PP_OP_RELOAD:
		req->answer.reload = body->reload_reply;
		return 0;
	case PP_OP_SIDEBAND:
		return sideband_reply(req, &body->sideband_reply, fds);
	case PP_OP_AUXTRACE:
		return auxtrace_reply(req, &body->auxtrace_reply, fds);
	case PP_OP_WAKEUP:
		return wakeup_reply(req, fds);
	case PP_OP_WATCH:
		return take_notice(req, &body->notice);
	case PP_OP_TRIGGERS:
		return triggers_reply(req, &body->triggers_reply);
	case PP_OP_TAPES:
		return tapes_reply(req, &body->tapes_reply);
	case PP_OP_FIRE:
	case PP_OP_RELEASE:
		return 0;
	case PP_OP_ADOPT:
		return adopt_reply(req, &body->adopt_reply, fds);
	case PP_OP_CLAIM:
		return claim_reply(req, &body->claim_reply, fds);
	case PP_OP_DESCRIPTORS:
		return descriptors_reply(req, &body->descriptors_reply, fds);
	default: /* show, create, delete, change, trigger, attach */
		return add_event(req, &body->event);
	}
}
