/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A keeper that keeps this kernel's records, and its answers.
 */
#pragma once

#include "daemon/engine/sideband.h" /* before check.h, which has a fail() as well */

#include <fcntl.h>
#include <time.h>

#include "daemon/cpus.h"
#include "daemon/order.h"
#include "tests/unit/keeper-process.h"

static inline uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Other processes' programs and mappings, of any amount, must not displace ours. */
static inline void make_roomy(int fd)
{
	struct pp_keep_request r = { .type = PP_KEEP_LIMIT, .max_memory = 2ULL << 30 };

	ck_assert_int_eq(keeper_ask(fd, &r, NULL, 0, NULL).error, 0);
}

static inline void order_sideband(const struct pp_cpumask *cpus, uint32_t what,
				  struct pp_cpumask *opened, struct pp_fds *fds)
{
	struct failure f;

	ck_assert_int_ge(sideband_open(cpus, what, KEEPER_USER, opened, fds, &f), 0);
}

static inline void keep_all(int fd, bool tasks)
{
	struct pp_keep_request r = { .type = PP_KEEP_RINGS };
	struct pp_cpumask online, opened;
	struct pp_fds fds;
	struct pp_keep_answer a;

	make_roomy(fd);
	ck_assert_int_ge(pp_cpus_read("online", &online), 0);
	order_sideband(&online, tasks ? PP_SIDEBAND_TASKS : 0, &opened, &fds);
	PP_CPUMASK_FOREACH(cpu, &opened)
	{
		r.cpus[r.n_cpus].cpu = cpu;
		r.cpus[r.n_cpus++].generation = 10 + cpu;
	}
	a = keeper_ask(fd, &r, fds.fd, r.n_cpus, NULL);
	ck_assert_int_eq(a.error, 0);
	ck_assert_uint_eq(a.status.keeping, 1);
	ck_assert_uint_gt(a.status.began, 0);
	if (tasks) {
		struct pp_keep_request t = { .type = PP_KEEP_TASKS };

		a = keeper_ask(fd, &t, fds.fd + r.n_cpus, PP_KEEP_ITERATORS, NULL);
		ck_assert_int_eq(a.error, 0);
		ck_assert_uint_eq(a.status.tasks, 1);
	}
	pp_fds_close(&fds);
	a = keeper_ask_for(fd, PP_KEEP_CPUS_HELD);
	ck_assert_uint_eq(a.n_cpus, r.n_cpus);
	ck_assert_uint_eq(a.more, 0);
	ck_assert_mem_eq(a.cpus, r.cpus, r.n_cpus * sizeof(r.cpus[0]));
}

/* The caller closes the descriptor. */
static inline int take(int peer, uint64_t since)
{
	struct pp_keep_request r = { .type = PP_KEEP_TAKE, .since = since };
	int fd = -EBADF;
	struct pp_keep_answer a = keeper_ask(peer, &r, NULL, 0, &fd);

	ck_assert_int_eq(a.error, 0);
	ck_assert_int_ge(fd, 0);
	return fd;
}
