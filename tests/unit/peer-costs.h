/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the tests of costs that peers cause: a user's place in the fair queue, and a descriptor
 * that is expensive to wake. */
#pragma once

#include <fcntl.h>
#include <sys/epoll.h>

#include "daemon/broker/edge/peer-internal.h"
#include "proto/clock.h"
#include "tests/unit/broker-fixture.h"

#define COSTLY_SETS 300

/* COSTLY_SETS epoll sets, each with many copies of a descriptor: a wakeup wakes them all. The broker
 * measures what that costs it. */
struct costly {
	int set[COSTLY_SETS], copy[COSTLY_SETS];
};

static inline uint64_t real_clock(void)
{
	return pp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void costly_begin(struct costly *c, struct broker *b, int fd, uint32_t of)
{
	struct epoll_event events = { .events = of | EPOLLET };

	b->peers.clock = real_clock;
	for (unsigned i = 0; i < COSTLY_SETS; i++) {
		c->copy[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		ck_assert_int_ge(c->copy[i], 0);
	}
	for (unsigned i = 0; i < COSTLY_SETS; i++) {
		c->set[i] = epoll_create1(EPOLL_CLOEXEC);
		ck_assert_int_ge(c->set[i], 0);
		for (unsigned j = 0; j < COSTLY_SETS; j++)
			ck_assert_int_eq(epoll_ctl(c->set[i], EPOLL_CTL_ADD, c->copy[j], &events),
					 0);
	}
}

static inline void costly_end(struct costly *c)
{
	for (unsigned i = 0; i < COSTLY_SETS; i++) {
		close(c->set[i]);
		close(c->copy[i]);
	}
}

/* The fair queue's member for a user with a connection. */
static inline struct fair_queue_member *turn_of(struct broker *b, uid_t uid)
{
	struct peer *p = b->peers.first;

	while (p && p->credentials.uid != uid)
		p = p->next;
	ck_assert_ptr_nonnull(p);
	return &p->turn;
}
