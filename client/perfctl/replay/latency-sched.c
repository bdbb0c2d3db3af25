// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads off a CPU, from switch to switch, and waiting for one: from the wakeup, or from the switch
 * away of a thread that could have run on, to the switch to it. A CPU's switches must agree on which
 * thread runs; where they do not, records are missing.
 */
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"

/* The bits of sched_switch's prev_state, since Linux 4.14: what task_state_index() can return, and
 * one bit above these for a thread that did not want to sleep. */
#define STATE_EXITED 0x30
#define STATE_SLEEPS 0xff
#define STATE_PREEMPTED 0x100

/* perf's letters. */
static const char *state_name(uint64_t state)
{
	static const char names[][2] = { "S", "D", "T", "t", "X", "Z", "P", "I" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (state >> i & 1)
			return names[i];
	return state & STATE_PREEMPTED ? "R+" : "R";
}

static void missing(struct latency *l, enum latency_kind kind, uint32_t thread,
		    const struct latency_now *now)
{
	if (latency_has(l, kind))
		latency_count(l, kind, thread, now, true);
}

static void before(struct latency *l, enum latency_kind kind, uint32_t thread,
		   const struct latency_now *now)
{
	if (latency_has(l, kind))
		latency_count(l, kind, thread, now, false);
}

static uint64_t lost_switches(const struct latency *l)
{
	return l->counts[LATENCY_OFF_CPU].lost + l->counts[LATENCY_WAKEUPS].lost;
}

/* The CPU ran another thread than its last switch said: that one's switch away is missing. */
static int check_running(struct latency *l, const struct latency_now *now, uint32_t prev)
{
	struct latency_cpu *c = latency_cpu(l, now->cpu);
	struct latency_thread *t;
	uint32_t i;

	if (!c->known || c->lost != lost_switches(l) || c->tid == prev || !c->tid)
		return 0;
	if (latency_find_thread(l, c->tid, NULL, &i) < 0)
		return -ENOMEM;
	t = &l->threads[i];
	if (t->sched != SCHED_RUNNING)
		return 0;
	t->sched = SCHED_UNKNOWN;
	missing(l, LATENCY_OFF_CPU, i, now);
	missing(l, LATENCY_WAKEUPS, i, now);
	return 0;
}

static int switch_out(struct latency *l, const struct latency_now *now, uint64_t state,
		      const struct latency_who *who)
{
	bool runs_on = !(state & STATE_SLEEPS);
	const char *name = state_name(state);
	struct latency_thread *t;
	uint32_t i, label;

	if (latency_find_thread(l, who->tid, who, &i) < 0 || latency_label(l, name, &label) < 0)
		return -ENOMEM;
	t = &l->threads[i];
	if (t->off.open)
		missing(l, LATENCY_OFF_CPU, i, now);
	if (t->sched == SCHED_OFF && t->wait.open)
		missing(l, LATENCY_WAKEUPS, i, now);
	t->off = latency_begin(l, LATENCY_OFF_CPU, now, label);
	t->wait = latency_begin(l, LATENCY_WAKEUPS, now, 0);
	t->wait.open = runs_on;
	if (runs_on && latency_label(l, "preempted", &t->wait.label) < 0)
		return -ENOMEM;
	t->sched = SCHED_OFF;
	t->was_woken = t->fresh = false;
	t->woken = 0;
	if (state & STATE_EXITED) {
		latency_died(l, who->tid);
		t->sched = SCHED_UNKNOWN;
	}
	return 0;
}

static int end_wait(struct latency *l, const struct latency_now *now, struct latency_thread *t,
		    const struct latency_about *about)
{
	if (t->wait.open)
		return latency_has(l, LATENCY_WAKEUPS)
			       ? latency_end(l, LATENCY_WAKEUPS, &t->wait, now, about)
			       : 0;
	if (t->sched == SCHED_UNKNOWN)
		before(l, LATENCY_WAKEUPS, about->thread, now);
	else
		missing(l, LATENCY_WAKEUPS, about->thread, now);
	return 0;
}

static int end_off(struct latency *l, const struct latency_now *now, struct latency_thread *t,
		   const struct latency_about *about)
{
	if (t->off.open)
		return latency_has(l, LATENCY_OFF_CPU)
			       ? latency_end(l, LATENCY_OFF_CPU, &t->off, now, about)
			       : 0;
	if (t->fresh) /* it has never run before */
		return 0;
	if (t->sched == SCHED_UNKNOWN)
		before(l, LATENCY_OFF_CPU, about->thread, now);
	else
		missing(l, LATENCY_OFF_CPU, about->thread, now);
	return 0;
}

/*
 * sched_waking comes as soon as the state is that of a sleeper, and the switch away may come behind it: another CPU
 * wakes a thread that still runs. (6.1 to 7.x: try_to_wake_up() then waits for p->on_cpu.) So a sleep that nothing
 * else ended was over before it began. (What comes long before is another matter: the record of a wakeup is missing.)
 */
#define EARLY 1000000 /* ns: an interrupt may come in between */

static int take_early(struct latency *l, struct latency_thread *t)
{
	if (l->o.has_wakeups || !t->early_at || !t->off.open || t->wait.open || t->was_woken ||
	    t->off.time - t->early_at > EARLY)
		return 0;
	t->waker = t->early;
	t->was_woken = true;
	t->woken = t->off.time;
	t->wait.open = true; /* since the switch away */
	return latency_label(l, "woken", &t->wait.label);
}

static int switch_in(struct latency *l, const struct latency_now *now,
		     const struct latency_who *who)
{
	struct latency_about about = { .who = who };
	struct latency_thread *t;
	int r;

	if (latency_find_thread(l, who->tid, who, &about.thread) < 0)
		return -ENOMEM;
	t = &l->threads[about.thread];
	if (take_early(l, t) < 0)
		return -ENOMEM;
	about.waker = t->was_woken ? &t->waker : NULL;
	about.woken = t->woken;
	r = end_off(l, now, t, &about);
	if (r >= 0)
		r = end_wait(l, now, t, &about);
	t->off.open = t->wait.open = t->fresh = t->was_woken = false;
	t->early_at = 0;
	t->sched = SCHED_RUNNING;
	return r;
}

static int tell_run(struct latency *l, const struct latency_cpu *c, const struct latency_now *now,
		    uint64_t prev_state, const struct latency_who *prev)
{
	struct latency_run run = {
		.begin = c->since,
		.end = now->time,
		.cpu = now->cpu,
		.who = *prev,
		.sleeps = prev_state & STATE_SLEEPS,
		.exits = prev_state & STATE_EXITED,
	};
	uint32_t i;

	if (!l->o.watcher || !c->known || c->lost != lost_switches(l) || c->tid != prev->tid)
		return 0;
	/* The rings of other CPUs may begin later. */
	if (run.end <= l->o.complete[LATENCY_OFF_CPU])
		return 0;
	run.begin = MAX(run.begin, l->o.complete[LATENCY_OFF_CPU]);
	if (latency_find_thread(l, prev->tid, NULL, &i) < 0)
		return -ENOMEM;
	run.pid = latency_process(l, i);
	return l->o.watcher->ran(l->o.watcher->arg, &run);
}

/* Where all switches are known to be there, what a CPU's first one ends has run from the beginning on. */
static void note_first(const struct latency *l, struct latency_cpu *c,
		       const struct latency_now *now, uint32_t prev)
{
	uint64_t from = l->o.complete[LATENCY_OFF_CPU];

	if (c->known || lost_switches(l) || !from || from > now->time)
		return;
	c->known = true;
	c->lost = 0;
	c->tid = prev;
	c->since = from;
}

int latency_switch(struct latency *l, const struct latency_now *now, uint64_t prev_state,
		   const struct latency_who *prev, const struct latency_who *next)
{
	struct latency_cpu *c = latency_cpu(l, now->cpu);
	int r;

	if (!c)
		return now->cpu < AGGREGATE_CPUS ? -ENOMEM : 0;
	note_first(l, c, now, prev->tid);
	r = check_running(l, now, prev->tid);
	if (r >= 0 && prev->tid)
		r = tell_run(l, c, now, prev_state, prev);
	if (r >= 0 && prev->tid)
		r = switch_out(l, now, prev_state, prev);
	if (r >= 0 && next->tid)
		r = switch_in(l, now, next);
	c->known = true;
	c->lost = lost_switches(l);
	c->tid = next->tid;
	c->since = now->time;
	return r;
}

/* A wakeup of a thread that runs, or has not left the CPU yet, is no wait; nor is a second one. */
static int begin_wait(struct latency *l, const struct latency_now *now, uint32_t thread,
		      const char *cause)
{
	struct latency_thread *t = &l->threads[thread];
	uint32_t label;

	if (t->sched == SCHED_RUNNING || t->wait.open)
		return 0;
	if (latency_label(l, cause, &label) < 0)
		return -ENOMEM;
	t->wait = latency_begin(l, LATENCY_WAKEUPS, now, label);
	t->woken = now->time;
	return 0;
}

static void note_waker(struct latency *l, const struct latency_now *now, struct latency_thread *t)
{
	int64_t waker = keytable_get(&l->by_tid, now->who.tid);
	const struct latency_who *who =
		*now->who.comm || waker < 0 ? &now->who : &l->threads[waker].who;

	if (t->sched == SCHED_RUNNING) {
		t->early_at = now->time;
		t->early = *who;
		return;
	}
	if (t->wait.open || t->was_woken)
		return;
	t->was_woken = true;
	t->waker = *who;
}

int latency_wakeup(struct latency *l, const struct latency_now *now,
		   const struct latency_who *wakee, bool is_new)
{
	uint32_t i;

	if (is_new && latency_born(l, UINT32_MAX, wakee->tid) < 0)
		return -ENOMEM;
	if (latency_find_thread(l, wakee->tid, wakee, &i) < 0)
		return -ENOMEM;
	note_waker(l, now, &l->threads[i]);
	return begin_wait(l, now, i, is_new ? "new" : "woken");
}

int latency_waking(struct latency *l, const struct latency_now *now,
		   const struct latency_who *wakee)
{
	uint32_t i;

	if (latency_find_thread(l, wakee->tid, wakee, &i) < 0)
		return -ENOMEM;
	note_waker(l, now, &l->threads[i]);
	return l->o.has_wakeups ? 0 : begin_wait(l, now, i, "woken");
}

/* Those that end their thread. */
static bool never_returns(const char *call)
{
	return !strcmp(call, "exit") || !strcmp(call, "exit_group");
}

static int finish_thread(struct latency *l, const struct latency_thread *t, uint64_t end)
{
	struct latency_about about = { .thread = (uint32_t)(t - l->threads), .who = &t->who };
	int r = 0;

	if (t->call.open && !never_returns(l->labels[t->call.label]))
		r = latency_still_open(l, LATENCY_SYSCALLS, &t->call, end, &about);
	about.waker = t->was_woken ? &t->waker : NULL;
	about.woken = t->woken;
	if (r >= 0)
		r = latency_still_open(l, LATENCY_OFF_CPU, &t->off, end, &about);
	if (r >= 0)
		r = latency_still_open(l, LATENCY_WAKEUPS, &t->wait, end, &about);
	return r;
}

/* What runs at the end has run since its CPU's last switch. */
static int finish_run(struct latency *l, uint32_t cpu, uint64_t end)
{
	const struct latency_cpu *c = &l->cpus[cpu];
	struct latency_now now = { .time = end, .cpu = cpu };
	uint32_t i;

	if (!c->known || !c->tid || end < c->since)
		return 0;
	if (latency_find_thread(l, c->tid, NULL, &i) < 0)
		return -ENOMEM;
	return tell_run(l, c, &now, 0, &l->threads[i].who);
}

int latency_sched_finish(struct latency *l, uint64_t end)
{
	uint64_t switches = latency_until(l, LATENCY_OFF_CPU, end);
	int r = 0;

	for (uint32_t cpu = 0; cpu < l->n_cpus && r >= 0; cpu++)
		r = finish_run(l, cpu, switches);
	for (size_t i = 0; i < l->n_threads && r >= 0; i++)
		r = finish_thread(l, &l->threads[i], end);
	return r;
}
