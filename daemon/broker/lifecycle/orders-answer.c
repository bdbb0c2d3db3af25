// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The engine's answers: receives and checks them, and passes them to the hooks. Must not know how
 * the connection comes and goes, nor how orders are sent.
 */
#include <string.h>
#include <sys/socket.h>

#include "daemon/broker/lifecycle/orders-internal.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/keep.h"
#include "proto/macro.h"

/* Takes the control messages: the sender's credentials, and descriptors, which are ours from here
 * on. */
static int take_control(struct orders *o, struct msghdr *m)
{
	struct ucred sender;
	int r = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t size = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
		    size == sizeof(sender)) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			o->engine_pid = sender.pid;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
			   o->fds.n == 0 && size <= sizeof(o->fds.fd)) {
			memcpy(o->fds.fd, CMSG_DATA(c), size);
			o->fds.n = size / sizeof(int);
		} else {
			r = -EBADMSG;
		}
	}
	return r;
}

/*
 * Receives one answer into o->in, its descriptors into o->fds, and its sender. SO_PEERCRED would
 * name the process that called listen(2), which is systemd or the launcher; the credentials that
 * come with a packet name the engine. Returns 1; 0 (nothing more now); -errno (-ECONNRESET: the
 * engine is gone).
 */
static int receive(struct orders *o)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(o->fds.fd))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = &o->in, .iov_len = sizeof(o->in) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = recvmsg(o->link.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	r = take_control(o, &m);
	if (n == 0)
		return -ECONNRESET;
	if (n != (ssize_t)sizeof(o->in) || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	return r < 0 ? r : 1;
}

/* If they hold nothing any more, only the id counts. */
static bool orphans_are_good(const struct pp_orphans *orphans)
{
	if (!memchr(orphans->ns, 0, sizeof(orphans->ns)))
		return false;
	return orphans->id == 0 ? orphans->bytes == 0 : pp_name_is_valid(orphans->ns);
}

static int take_tape(struct orders *o)
{
	if (pp_event_check(&o->in.event) < 0 || !o->in.orphans.id)
		return -EBADMSG;
	return o->hooks.tape(o->userdata, o->in.orphans.id, &o->in.event, &o->in.by,
			     &o->in.orphans);
}

static int take_enumeration(struct orders *o)
{
	switch (o->in.type) {
	case PP_ANSWER_FOUND:
		if (pp_event_check(&o->in.event) < 0)
			return -EBADMSG;
		if (o->in.event.spec.flags & PP_EVENT_TRIGGER &&
		    pp_trigger_check(&o->in.trigger) < 0)
			return -EBADMSG;
		if (pp_target_check(&o->in.target, &o->in.event.spec) < 0)
			return -EBADMSG;
		return o->hooks.found(o->userdata, &o->in);
	case PP_ANSWER_HELD:
		return o->hooks.held(o->userdata, &o->in.orphans);
	case PP_ANSWER_TAPE:
		return take_tape(o);
	case PP_ANSWER_DONE:
		o->patient = true;
		o->hooks.synced(o->userdata);
		orders_set_link(o, LINK_UP);
		return 0;
	case PP_ANSWER_FAILED:
		log_error("The engine cannot tell which events there are: %s", o->in.sentence);
		return -ECANCELED;
	default:
		return -EBADMSG;
	}
}

/* Whether the event in DONE is a possible result of the order. */
static bool event_is_good(const struct pp_answer *in, const struct order *order)
{
	const struct pp_event *e = &in->event;

	switch (order->type) {
	case PP_ORDER_ATTACH:
		if (order->what & PP_ATTACH_MORE)
			return true;
		return pp_event_check(e) == 0 && e->id == order->id &&
		       strcmp(e->spec.ns, order->spec->ns) == 0 &&
		       strcmp(e->spec.name, order->spec->name) == 0;
	case PP_ORDER_CREATE:
	case PP_ORDER_ADOPT:
	case PP_ORDER_ALIAS:
		if (order->type == PP_ORDER_CREATE && pp_target_check(&in->target, &e->spec) < 0)
			return false;
		return pp_event_check(e) == 0 && strcmp(e->spec.ns, order->spec->ns) == 0 &&
		       strcmp(e->spec.name, order->spec->name) == 0 &&
		       e->shares == (order->type == PP_ORDER_ALIAS ? order->id : 0);
	case PP_ORDER_HANDOUT:
		return pp_event_check(e) == 0 && e->id == order->id;
	default:
		return !pp_order_is_in_place(order->type) ||
		       (pp_event_check(e) == 0 && e->id == order->id);
	}
}

static bool failure_is_good(const struct pp_answer *in, const struct order *order)
{
	const struct pp_event *e = &in->event;

	if (in->error <= 0)
		return false;
	return !pp_order_is_in_place(order->type) || !e->id ||
	       (pp_event_check(e) == 0 && e->id == order->id);
}

/* Only few orders bring descriptors, when they succeed, and as many as order and answer say. */
static bool fds_are_good(const struct orders *o, const struct order *order)
{
	const struct pp_cpumask *cpus = &o->in.event.rings;
	bool is_aux = order->type == PP_ORDER_AUX;

	if (o->in.type == PP_ANSWER_DONE &&
	    (order->type == PP_ORDER_ADOPT || order->type == PP_ORDER_DESCRIBE))
		return o->fds.n == 1;
	if (o->in.type == PP_ANSWER_DONE && order->type == PP_ORDER_HANDOUT)
		return o->fds.n ==
		       MIN(o->in.total - MIN(o->in.total, order->what), (uint32_t)PP_FDS_MAX);
	if ((!is_aux && order->type != PP_ORDER_SIDEBAND) || o->in.type != PP_ANSWER_DONE)
		return o->fds.n == 0;
	for (size_t i = 0; i < ARRAY_SIZE(cpus->bits); i++)
		if (cpus->bits[i] & ~order->spec->cpus.bits[i])
			return false;
	if (is_aux)
		return o->fds.n == pp_cpumask_count(cpus) * order->what;
	return o->fds.n ==
	       pp_cpumask_count(cpus) + (order->what & PP_SIDEBAND_TASKS ? PP_KEEP_ITERATORS : 0);
}

static int take_outcome(struct orders *o)
{
	struct order *order = o->first;

	if (!o->under_way)
		return -EBADMSG;
	if (o->in.type == PP_ANSWER_FAILED) {
		if (!failure_is_good(&o->in, order))
			return -EBADMSG;
	} else if (o->in.type != PP_ANSWER_DONE || !event_is_good(&o->in, order)) {
		return -EBADMSG;
	}
	if (!fds_are_good(o, order))
		return -EBADMSG;
	orders_remove(o, order);
	if (o->fds.n > 0) {
		*order->fds = o->fds;
		o->fds.n = 0;
	}
	o->hooks.answered(o->userdata, order, &o->in);
	return 0;
}

static int take_answer(struct orders *o)
{
	bool unasked = o->in.type == PP_ANSWER_RELEASED || o->in.type == PP_ANSWER_ENDED ||
		       (o->in.type == PP_ANSWER_TAPE && o->state != LINK_SYNCING);

	if (o->fds.n > 0 && (unasked || o->state == LINK_SYNCING))
		return -EBADMSG;
	if (o->in.abi != PP_ORDER_ABI || o->in.serial != (unasked ? 0 : o->serial) ||
	    !memchr(o->in.sentence, 0, sizeof(o->in.sentence)) ||
	    !memchr(o->in.by.comm, 0, sizeof(o->in.by.comm)) || !orphans_are_good(&o->in.orphans))
		return -EBADMSG;
	if (o->in.type == PP_ANSWER_RELEASED)
		o->hooks.released(o->userdata, &o->in.orphans);
	if (o->in.type == PP_ANSWER_ENDED)
		o->hooks.ended(o->userdata, o->in.event.id);
	if (unasked)
		return o->in.type == PP_ANSWER_TAPE ? take_tape(o) : 0;
	return o->state == LINK_SYNCING ? take_enumeration(o) : take_outcome(o);
}

int orders_take_answer(struct orders *o)
{
	int r = receive(o);

	if (r > 0) {
		int err = take_answer(o);

		r = err < 0 ? err : 1;
	}
	pp_fds_close(&o->fds);
	return r;
}
