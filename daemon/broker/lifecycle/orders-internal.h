/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by orders.c and orders-answer.c only. */
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
	struct order *walk; /* orders_next returns this one */
	uint64_t round;	    /* of the last order sent */
	bool under_way;	    /* the first order has been sent on this connection */
	uint64_t serial;    /* of the order under way */

	struct pp_order out;
	struct pp_answer in;
	struct pp_fds fds; /* received with it */
};

/* The only place where the link's state changes; calls hooks.changed. */
void orders_set_link(struct orders *o, enum link_state to);

/*
 * Takes one answer. 1; 0: there is none; -EBADMSG: the packet is no answer; -ECONNRESET: the engine
 * is gone; another -errno. After a failure the connection is useless.
 */
int orders_take_answer(struct orders *o);
