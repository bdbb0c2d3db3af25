// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the gathering of an answer from its pages. */
#include "client/request/request.h"

#include <string.h>

#include "client/public.h"
#include "client/rings/event.h"

/* How often to begin anew when CPUs come online, or the rings become others, between two pages. */
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
	perfpersist_event_free(a->event);
	a->event = NULL;
	a->fd = close_fd(a->fd);
}

struct request *request_new(struct perfpersist *p, enum pp_op op)
{
	size_t body = pp_message_by_opcode((uint16_t)op)->struct_size;
	struct request *r = calloc(1, offsetof(struct request, body) + body);

	if (!r) {
		client_fail(-ENOMEM, "cannot make a request: out of memory");
		return NULL;
	}
	r->p = p;
	r->op = (uint16_t)op;
	answer_init(&r->answer);
	return r;
}

void request_free(struct request *r)
{
	if (!r)
		return;
	answer_done(&r->answer);
	free(r);
}

static int senseless(const char *what)
{
	return client_fail(-EBADMSG, "perfpersistd sent a reply that makes no sense: %s", what);
}

static int add_event(struct request *r, const struct pp_msg_event *m)
{
	struct perfpersist_info info;

	client_info_from_message(m, &info);
	return client_infos_add(&r->answer.infos, &info);
}

/* ── Pages of lists ─────────────────────────────────────────────────────────────────────── */

static int list_reply(struct request *r, const struct pp_msg_list_reply *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		int error;

		if (m->events[i].id <= r->body.list.after)
			return senseless("a list that is not in the order of ids");
		r->body.list.after = m->events[i].id;
		error = add_event(r, &m->events[i]);
		if (error < 0)
			return error;
	}
	if (m->more && m->count == 0)
		return senseless("an empty page of a list that goes on");
	return m->more ? REQUEST_MORE : 0;
}

static int limits_reply(struct request *r, const struct pp_msg_limits_reply *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		int error = client_limits_add(&r->answer.limits, &m->limits[i]);

		if (error < 0)
			return error;
	}
	if (m->more && (m->count == 0 || r->answer.limits.n > CLIENT_LIMITS_MAX))
		return senseless("limits that have no end");
	r->body.limits.first += m->count;
	return m->more ? REQUEST_MORE : 0;
}

static int cpus_reply(struct request *r, const struct pp_msg_cpus_reply *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		int error;

		if (m->cpus[i].cpu < r->body.cpus.first || m->cpus[i].cpu > INT32_MAX)
			return senseless("CPUs that are not in the order of their numbers");
		r->body.cpus.first = m->cpus[i].cpu + 1;
		error = client_away_add(&r->answer.away, m->cpus[i].cpu, m->cpus[i].since);
		if (error < 0)
			return error;
	}
	if (m->more && m->count == 0)
		return senseless("an empty page of CPUs that go on");
	return m->more ? REQUEST_MORE : 0;
}

/* ── Pages of rings ─────────────────────────────────────────────────────────────────────── */

static void ask_for_rings(struct request *r, uint64_t id, uint32_t first)
{
	r->body.open = (struct pp_msg_open_request){
		.which.id = id,
		.first = first,
		.flags = r->body.open.flags,
	};
}

static int begin_open(struct request *r, const struct pp_msg_open_reply *m, struct pp_fds *fds)
{
	struct perfpersist_info info;
	int error;

	r->open.total = m->total;
	r->open.set = m->event.set;
	r->open.copies = m->copies;
	client_info_from_message(&m->event, &info);
	error = client_event_new(&info, &r->answer.event);
	if (error < 0)
		return error;
	r->answer.event->is_copy = m->copies;
	if (!m->catalog_size)
		return 0;
	return client_event_add_catalog(r->answer.event, TAKE_FD(fds->fd[0]), m->catalog_size);
}

/* Other rings than at the first page: they cannot be put together. */
static int restart_open(struct request *r, uint64_t id)
{
	perfpersist_event_free(TAKE_PTR(r->answer.event));
	if (++r->open.restarts > OPEN_RESTARTS_MAX)
		return client_fail(-EAGAIN,
				   "cannot open the event: its CPUs or its rings change all "
				   "the time; try again");
	ask_for_rings(r, id, 0);
	return REQUEST_MORE;
}

static int add_ring(struct request *r, const struct pp_msg_cpu *m, int fd)
{
	if (m->cpu > INT32_MAX || m->map_size == 0) {
		close_fd(fd);
		return senseless("a ring of no CPU, or of no size");
	}
	return client_event_add(r->answer.event, fd, (int)m->cpu, m->map_size);
}

static bool is_as_first_page(const struct request *r, const struct pp_msg_open_reply *m)
{
	return m->total == r->open.total && m->event.set == r->open.set &&
	       m->copies == r->open.copies;
}

static int open_reply(struct request *r, const struct pp_msg_open_reply *m, struct pp_fds *fds)
{
	size_t catalogs = m->catalog_size ? 1 : 0;
	int error = 0;

	if (m->count + catalogs != fds->n)
		return senseless("not one descriptor per ring");
	if (m->copies > 1 || (r->answer.event && catalogs))
		return senseless("rings of no known kind, or a second catalog");
	if (r->answer.event && !is_as_first_page(r, m))
		return restart_open(r, m->event.id);
	if (!r->answer.event)
		error = begin_open(r, m, fds);
	for (uint32_t i = 0; error >= 0 && i < m->count; i++)
		error = add_ring(r, &m->cpus[i], TAKE_FD(fds->fd[catalogs + i]));
	if (error == -ESTALE) /* the rings of this very page */
		return restart_open(r, m->event.id);
	if (error < 0)
		return error;
	if (r->answer.event->n >= r->open.total)
		return client_event_complete(r->answer.event);
	if (m->count == 0)
		return senseless("an empty page of rings before the last ring");
	ask_for_rings(r, m->event.id, (uint32_t)r->answer.event->n);
	return REQUEST_MORE;
}

/* ── The others ─────────────────────────────────────────────────────────────────────────── */

static int wakeup_reply(struct request *r, struct pp_fds *fds)
{
	if (fds->n != 1)
		return senseless("a wakeup without its descriptor");
	r->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int sideband_reply(struct request *r, const struct pp_msg_sideband_reply *m,
			  struct pp_fds *fds)
{
	if (fds->n != (m->size ? 1 : 0))
		return senseless("sideband without its descriptor, or one without sideband");
	r->answer.sideband = *m;
	if (fds->n)
		r->answer.fd = TAKE_FD(fds->fd[0]);
	return 0;
}

static int take_notice(struct request *r, const struct pp_msg_notice *m)
{
	struct perfpersist_notice notice = {
		.sz = sizeof(notice),
		.kind = m->kind,
		.cpu = m->cpu,
		.lost = m->lost,
	};
	struct perfpersist_info info;

	if (r->goes_on == (m->kind == PP_NOTICE_STARTED))
		return senseless("notices before the first one, or after it once more");
	r->goes_on = true;
	if (m->event.id) {
		client_info_from_message(&m->event, &info);
		notice.info = &info;
	}
	r->notice(r, &notice);
	return REQUEST_GOES_ON;
}

int request_reply(struct request *r, const union pp_body *body, struct pp_fds *fds)
{
	switch (r->op) {
	case PP_OP_PING:
		r->answer.ping = body->ping_reply;
		return 0;
	case PP_OP_LIST:
		return list_reply(r, &body->list_reply);
	case PP_OP_OPEN:
		return open_reply(r, &body->open_reply, fds);
	case PP_OP_CPUS:
		return cpus_reply(r, &body->cpus_reply);
	case PP_OP_LIMITS:
		return limits_reply(r, &body->limits_reply);
	case PP_OP_PAUSE:
		r->answer.count = body->pause_reply.count;
		return 0;
	case PP_OP_RELOAD:
		r->answer.reload = body->reload_reply;
		return 0;
	case PP_OP_SIDEBAND:
		return sideband_reply(r, &body->sideband_reply, fds);
	case PP_OP_WAKEUP:
		return wakeup_reply(r, fds);
	case PP_OP_WATCH:
		return take_notice(r, &body->notice);
	default: /* show, create, delete, change */
		return add_event(r, &body->event);
	}
}
