// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the gathering of an answer from its pages. */
#include "client/request.h"

#include <string.h>

#include "client/event.h"
#include "client/public.h"

/* How often to begin anew when CPUs come online between two pages of rings. */
#define OPEN_RESTARTS_MAX 8

struct request *request_new(struct perfpersist *p, enum pp_op op)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r) {
		client_fail(-ENOMEM, "cannot make a request: out of memory");
		return NULL;
	}
	r->p = p;
	r->op = (uint16_t)op;
	return r;
}

void request_free(struct request *r)
{
	if (!r)
		return;
	perfpersist_event_free(r->event);
	client_infos_done(&r->infos);
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
	return client_infos_add(&r->infos, &info);
}

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

static void ask_for_rings(struct request *r, uint64_t id, uint32_t first)
{
	r->body.open = (struct pp_msg_open_request){ .which.id = id, .first = first };
}

static int begin_open(struct request *r, const struct pp_msg_open_reply *m)
{
	struct perfpersist_info info;

	r->total = m->total;
	client_info_from_message(&m->event, &info);
	return client_event_new(&info, &r->event);
}

/* A ring more than at the first page: it may have come in anywhere. */
static int restart_open(struct request *r, uint64_t id)
{
	perfpersist_event_free(TAKE_PTR(r->event));
	if (++r->restarts > OPEN_RESTARTS_MAX)
		return client_fail(-EAGAIN, "cannot open the event: its CPUs change all the time; "
					    "try again");
	ask_for_rings(r, id, 0);
	return REQUEST_MORE;
}

static int open_reply(struct request *r, const struct pp_msg_open_reply *m, struct pp_fds *fds)
{
	int error;

	if (m->count != fds->n)
		return senseless("not one descriptor per ring");
	if (r->event && m->total != r->total)
		return restart_open(r, m->event.id);
	error = r->event ? 0 : begin_open(r, m);
	for (uint32_t i = 0; error >= 0 && i < m->count; i++) {
		if (m->cpus[i].cpu > INT32_MAX || m->cpus[i].map_size == 0)
			return senseless("a ring of no CPU, or of no size");
		error = client_event_add(r->event, TAKE_FD(fds->fd[i]), (int)m->cpus[i].cpu,
					 m->cpus[i].map_size);
	}
	if (error < 0)
		return error;
	if (r->event->n >= r->total)
		return 0;
	if (m->count == 0)
		return senseless("an empty page of rings before the last ring");
	ask_for_rings(r, m->event.id, (uint32_t)r->event->n);
	return REQUEST_MORE;
}

int request_reply(struct request *r, const union pp_body *body, struct pp_fds *fds)
{
	switch (r->op) {
	case PP_OP_PING:
		r->ping = body->ping_reply;
		return 0;
	case PP_OP_LIST:
		return list_reply(r, &body->list_reply);
	case PP_OP_OPEN:
		return open_reply(r, &body->open_reply, fds);
	default: /* show, create, delete */
		return add_event(r, &body->event);
	}
}
