/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What orders.c and orders-answer.c share, and nobody else sees. */
#pragma once

#include "daemon/broker/lifecycle/orders.h"
#include "daemon/broker/link/link.h"

enum link_state {
	LINK_DOWN,    /* the retry timer runs */
	LINK_SYNCING, /* connected; ENUMERATE is under way */
	LINK_UP,
};

struct orders {
	struct link link;
	sd_event_source *retry, *patience;
	struct orders_hooks hooks;
	void *userdata;

	enum link_state state;
	pid_t engine_pid;
	uint64_t backoff;
	bool patient;

	struct order *first;
	struct order *walk; /* what orders_next returns next */
	uint64_t round;	    /* of the order that was sent last */
	bool under_way;	    /* the first of the queue has been sent on this connection */
	uint64_t serial;    /* of what is under way */

	struct pp_order out;
	struct pp_answer in;
	struct pp_fds fds; /* that came with it */
};

/* The one transition of the link's state; tells who must know. */
void orders_set_link(struct orders *o, enum link_state to);

/*
 * One answer, if there is one. 1; 0: there is none; -EBADMSG: what came is no answer; -ECONNRESET:
 * the engine is gone; another -errno. On failure the connection is of no more use.
 */
int orders_take_answer(struct orders *o);
