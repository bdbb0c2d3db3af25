/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts for the tests of findings, in ms, and what has been found. */
#pragma once

#include <string.h>

#include "client/perfctl/replay/findings.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define MS UINT64_C(1000000)

static struct findings *f;
static const struct finding *found;
static size_t n_found;
static bool knows_disks;

static inline void begin(void)
{
	knows_disks = true;
	ck_assert_int_eq(findings_new(&f), 0);
}

static inline void end(void)
{
	findings_free(f);
}

static inline struct latency_who who(const char *comm, uint32_t tid)
{
	struct latency_who w = { .tid = tid };

	snprintf(w.comm, sizeof(w.comm), "%s", comm);
	return w;
}

static inline void ran(const char *comm, uint32_t tid, uint32_t cpu, uint64_t from, uint64_t to,
		       bool sleeps)
{
	struct latency_run run = { .begin = from * MS,
				   .end = to * MS,
				   .cpu = cpu,
				   .pid = tid / 10 * 10,
				   .who = who(comm, tid),
				   .sleeps = sleeps };

	ck_assert_int_eq(findings_ran(f, &run), 0);
}

/* Times in ms. */
static inline void ended(enum latency_kind kind, const char *label, const char *comm, uint32_t tid,
			 uint64_t from, uint64_t to, const char *waker, uint32_t waker_tid)
{
	struct latency_interval one = {
		.begin = from * MS,
		.end = to * MS,
		.who = who(comm, tid),
		.pid = tid / 10 * 10, /* threads of one process differ in their last digit */
		.label = label,
		.was_woken = waker,
		.knows_disks = knows_disks,
		.waker = who(waker ?: "", waker_tid),
	};

	ck_assert_int_eq(findings_ended(f, kind, &one), 0);
}

static inline void finish(uint64_t until)
{
	ck_assert_int_eq(findings_finish(f, 0, until * MS, &found, &n_found), 0);
}

static inline const struct finding *find(enum finding_kind kind)
{
	for (size_t i = 0; i < n_found; i++)
		if (found[i].kind == kind)
			return &found[i];
	return NULL;
}

static inline void is(const struct finding_party *p, const char *comm, uint32_t id)
{
	ck_assert_str_eq(p->comm, comm);
	ck_assert_uint_eq(p->id, id);
}

static inline void request(const char *comm, uint32_t tid, uint64_t from, uint64_t to)
{
	ended(LATENCY_BLOCK, "254:0 write queue", comm, tid, from, from + 1, NULL, 0);
	ended(LATENCY_BLOCK, "254:0 write device", comm, tid, from + 1, to, NULL, 0);
}
