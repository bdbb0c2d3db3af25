// SPDX-License-Identifier: LGPL-2.1-or-later
/* Carries out the requests, and decides when to empty the rings into the table. */
#include "daemon/keeper/keep.h"

#include <malloc.h>
#include <string.h>
#include <time.h>

#include "daemon/keeper/emit.h"
#include "daemon/keeper/pump.h"
#include "daemon/keeper/tasks.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define MEMORY_MIN (1UL << 20)
/* A record that a CPU is writing when we look is complete a moment later. Records newer than this
 * stay for the next time, so that no older one arrives behind them. */
#define UNSETTLED 1000000 /* ns */

int keep_init(struct keep *k)
{
	*k = (struct keep){ 0 };
	rings_init(&k->rings);
	loaded_init(&k->loaded);
	return table_init(&k->table, MEMORY_MAX_DEFAULT);
}

void keep_done(struct keep *k)
{
	rings_unmap(&k->rings);
	loaded_done(&k->loaded);
	table_clear(&k->table);
}

/* ── pauses ─────────────────────────────────────────────────────────────────────────────── */

/*
 * The keeper never polls the rings' descriptors. The kernel wakes pollers from perf_pending_irq(),
 * which holds perf's recursion context meanwhile: other users who record wakeups
 * (sched:sched_waking and all that follows from it) by perf or by a generic recorder would lose
 * each of these wakeups, uncounted.
 *
 * At the recent rate, a pause fills a sixteenth of a ring: on a busy machine the keeper may have to
 * wait as long again, and longer, for a CPU. The rate can grow suddenly: one CPU can end 30,000
 * processes a second, which are 7 MB of records, and a ring of 4 MiB (rings.c) has room for half a
 * second of that. Pauses get longer only where nearly nothing happens. A CPU that runs anyway looks
 * sooner.
 */
#define PAUSE_MIN 5000000ULL /* ns */
#define PAUSE_SOON 50000000ULL
#define PAUSE_LATE 100000000ULL
#define PAUSE_MAX 250000000ULL
#define FILL (1 / 16.0)
#define FILL_IDLE (1 / 256.0)

static void set_pause(struct keep *k)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	double filled = rings_take_filled(&k->rings), wanted = PAUSE_LATE;

	if (filled < FILL_IDLE)
		wanted = 2.0 * (double)k->pause.most;
	else
		wanted = MIN(wanted, FILL / filled * (double)(now - k->looked));
	k->pause.most = (uint64_t)MAX(MIN(wanted, (double)PAUSE_MAX), (double)PAUSE_MIN);
	k->pause.least = MIN(k->pause.most, PAUSE_SOON);
	k->looked = now;
}

bool keep_is_due(const struct keep *k)
{
	return k->keeping &&
	       (k->behind || pp_clock_ns(CLOCK_MONOTONIC) - k->looked >= k->pause.least);
}

/* ── emptying ───────────────────────────────────────────────────────────────────────────── */

static void apply(void *context, const uint8_t *bytes, size_t size)
{
	struct keep *k = context;

	k->table.last = k->rings.now + RINGS_CLOCK_SLACK;
	table_apply_bytes(&k->table, bytes, size);
}

static void tell_untimed(struct keep *k)
{
	if (k->table.untimed == 0 || k->told_untimed)
		return;
	k->told_untimed = true;
	log_warning("The kernel reports processes with an impossible time; their records get the "
		    "time of their arrival, and are counted.");
}

void keep_busy(void *context)
{
	struct keep *k = context;

	rings_collect(&k->rings);
}

static void look_for_programs(struct keep *k)
{
	int r = loaded_look(&k->loaded, &k->table, keep_busy, k);

	if (r < 0 && !k->told_programs)
		log_warning("Cannot list the BPF programs: %s; samples in them have no names.",
			    strerror(-r));
	k->told_programs |= r < 0;
}

static void merge(struct keep *k, uint64_t until)
{
	k->behind = !rings_merge(&k->rings, until, apply, k);
	k->table.lost += k->rings.bad;
	k->rings.bad = 0;
	tell_untimed(k);
}

/* For callers that need every record that has arrived. This is a third of the time after which the
 * broker gives the keeper up as stuck (daemon/broker/link/keeper.c). */
#define DRAIN_MAX 10000000000ULL /* ns */

static int drain(struct keep *k)
{
	uint64_t begun = pp_clock_ns(CLOCK_MONOTONIC);

	do
		merge(k, begun);
	while (k->behind && pp_clock_ns(CLOCK_MONOTONIC) - begun < DRAIN_MAX);
	if (!k->behind)
		return 0;
	log_warning("Cannot apply the records of processes in %llu seconds: too many.",
		    DRAIN_MAX / 1000000000);
	return -EAGAIN;
}

void keep_wake(struct keep *k)
{
	merge(k, pp_clock_ns(CLOCK_MONOTONIC) - UNSETTLED);
	if (!k->behind && rings_pressed(&k->rings))
		merge(k, UINT64_MAX);
	set_pause(k);
	if (loaded_is_due(&k->loaded, k->looked))
		look_for_programs(k);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

static int put_rings(struct keep *k, const struct pp_keep_cpu *cpus, size_t n, int *fds)
{
	for (size_t i = 0; i < n; i++) {
		int r = rings_put(&k->rings, cpus[i].cpu, cpus[i].generation, fds[i]);

		if (r < 0)
			return r;
		fds[i] = -EBADF;
	}
	return 0;
}

int keep_rings(struct keep *k, const struct pp_keep_cpu *cpus, size_t n, int *fds)
{
	int r;

	if (n == 0)
		return -EINVAL;
	if (!k->keeping)
		k->table.first = pp_clock_ns(CLOCK_MONOTONIC) - RINGS_CLOCK_SLACK;
	merge(k, UINT64_MAX); /* the remaining records go to the new rings */
	/* A CPU that was offline has run tasks since, without a ring: these are told once more. */
	k->table.lacking |= k->keeping;
	k->untold |= k->keeping;
	r = put_rings(k, cpus, n, fds);
	if (r < 0) {
		if (!k->keeping)
			rings_unmap(&k->rings);
		return r;
	}
	k->table.since_rings = pp_clock_ns(CLOCK_MONOTONIC);
	if (k->keeping) { /* what ended meanwhile is missing */
		k->table.complete = MAX(k->table.complete, k->table.since_rings);
	} else {
		k->table.began = k->table.since_rings;
		k->pause = (struct keep_pause){ PAUSE_SOON, PAUSE_LATE };
	}
	k->keeping = true;
	return 0;
}

/* Of one iterator. With both, and what else a request does, the keeper answers before the broker gives
 * it up as stuck (daemon/broker/link/keeper.c). */
#define LIST_MAX 20000000000ULL /* ns */

static int read_list(struct keep *k, int iterator, const char *what, struct tasks *ret)
{
	struct pump *pump;
	int fd, stopped, r = pump_start(iterator, &pump, &fd);

	if (r < 0)
		return r;
	r = tasks_read(fd, TASKS_SIZE_MAX, pp_clock_ns(CLOCK_MONOTONIC) + LIST_MAX, keep_busy, k,
		       ret);
	stopped = pump_stop(pump);
	if (r < 0)
		return r;
	if (ret->unfinished)
		log_warning(
			"The kernel has not listed all %s in %llu seconds: a process makes it slow "
			"or holds its lock. The rest is missing, and counted.",
			what, LIST_MAX / 1000000000);
	return ret->unfinished ? 0 : stopped;
}

int keep_tasks(struct keep *k, int fds[static PP_KEEP_ITERATORS])
{
	_cleanup_(tasks_free) struct tasks of_tasks = { 0 }, of_maps = { 0 };
	uint64_t time = pp_clock_ns(CLOCK_MONOTONIC);
	int r;

	if (!k->keeping)
		return -ENODATA;
	loaded_put(&k->loaded, fds[2]);
	fds[2] = -EBADF;
	look_for_programs(k);
	r = read_list(k, fds[0], "threads", &of_tasks);
	if (r == 0)
		r = read_list(k, fds[1], "mappings", &of_maps);
	if (r == 0)
		r = drain(k);
	if (r < 0)
		return r;
	k->told = pp_clock_ns(CLOCK_MONOTONIC);
	r = table_tell(&k->table, time, &of_tasks, &of_maps);
	if (r == 0)
		k->untold = false;
	return r;
}

/* A user who fills the table can do so again at once, and telling costs the engine as much
 * as us. */
#define TELL_AGAIN 60000000000ULL /* ns */

static bool is_told(const struct keep *k)
{
	return k->table.told && !k->untold &&
	       (!k->table.lacking || pp_clock_ns(CLOCK_MONOTONIC) - k->told < TELL_AGAIN);
}

int keep_limit(struct keep *k, uint64_t max_memory)
{
	if (max_memory < MEMORY_MIN)
		return -EINVAL;
	k->table.memory.max = max_memory;
	table_make_room(&k->table);
	return 0;
}

int keep_take(struct keep *k, uint64_t since, uint64_t until, int *ret_fd, uint64_t *ret_size)
{
	int r;

	if (!k->keeping)
		return -ENODATA;
	if (until != 0 && until < since)
		return -EINVAL;
	r = drain(k);
	if (r < 0)
		return r;
	look_for_programs(k);
	if (until == 0)
		until = pp_clock_ns(CLOCK_MONOTONIC);
	return table_emit(&k->table, since, until, keep_busy, k, ret_fd, ret_size);
}

int keep_drop(struct keep *k)
{
	uint64_t max_memory = k->table.memory.max;
	int r;

	rings_unmap(&k->rings);
	loaded_done(&k->loaded);
	table_clear(&k->table);
	k->keeping = k->behind = k->untold = false;
	r = table_init(&k->table, max_memory);
	malloc_trim(0);
	return r;
}

void keep_status(struct keep *k, struct pp_keep_status *ret)
{
	const struct table *t = &k->table;

	merge(k, UINT64_MAX); /* one step, so that the answer comes soon */
	*ret = (struct pp_keep_status){
		.keeping = k->keeping,
		.tasks = is_told(k),
		.began = t->began,
		.complete = MAX(t->began, t->complete),
		.lost = t->lost,
		.forgotten = t->forgotten,
		.processes = t->n_processes,
		.ended = t->n_ended,
		.memory = t->memory.used,
		.max_memory = t->memory.max,
		.untimed = t->untimed,
		.unseen = t->unseen,
		.cpu_time = pp_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	};
}

void keep_cpus(const struct keep *k, uint32_t first, struct pp_keep_answer *ret)
{
	for (size_t i = 0; i < k->rings.n; i++) {
		const struct ring *r = k->rings.ring[i];

		if (ring_cpu(r) < first)
			continue;
		if (ret->n_cpus == PP_KEEP_CPUS) {
			ret->more = 1;
			return;
		}
		ret->cpus[ret->n_cpus++] = (struct pp_keep_cpu){
			.cpu = ring_cpu(r),
			.generation = ring_generation(r),
		};
	}
}
