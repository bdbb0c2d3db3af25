/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The crash tests' requests: for each act, the events that exist before and after it, how to
 * request it, and how to see that it is done. Knows nothing of which process dies meanwhile.
 */
#pragma once

#include <signal.h>
#include <string.h>

#include "client/perfpersist.h"
#include "tests/integration/services.h"

#define VICTIM "victim" /* the event that the orders change */
#define SECOND "second" /* its other name */
#define SMALL 65536
#define LARGE 131072
#define MAX_RATE 1000000
#define PERIOD 700000
#define NOBODY "pid == 4194305" /* a filter: no process can have this id */

struct kind {
	const char *name, *event;
	uint64_t period;
	uint32_t flags;
	char leaves[256];    /* the names in a complete event's directory */
	bool missed_unknown; /* from its stat */
	uint64_t memory;     /* its memory charge, if SMALL */
};

static struct kind kinds[] = {
	{ "hot", "raw_syscalls:sys_enter", 0, 0, "", false, 0 },
	{ "generic", "raw_syscalls:sys_enter", 0, PERFPERSIST_GENERIC, "", false, 0 },
	{ "sampling", "cpu-clock", 999, PERFPERSIST_FREQ | PERFPERSIST_CALLCHAIN, "", false, 0 },
	{ "several", "raw_syscalls:sys_*,task:task_rename,cpu-clock", 0, 0, "", false, 0 },
	{ "waking", "task:task_rename", 0, PERFPERSIST_WAKEUP, "", false, 0 },
};

static struct services services;
static const char *ns; /* the instance's name: no other test has it */

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

static int connect_daemon(struct perfpersist **ret)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = services.instance };

	return perfpersist_connect(&opts, ret);
}

static int create_as(struct perfpersist *p, const struct kind *kind, const char *name,
		     uint32_t flags)
{
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = kind->event,
		.period = kind->period,
		.flags = kind->flags | flags,
		.buffer = SMALL,
	};

	return perfpersist_create(p, ns, name, &opts, NULL);
}

static int create_victim(struct perfpersist *p, const struct kind *kind)
{
	return create_as(p, kind, VICTIM, 0);
}

static int delete_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return perfpersist_delete(p, ns, VICTIM, NULL);
}

static int change_filter(struct perfpersist *p, const char *filter)
{
	struct perfpersist_change_options opts = {
		.sz = sizeof(opts),
		.what = PERFPERSIST_CHANGE_FILTER,
		.filter = filter,
	};

	return perfpersist_change(p, ns, VICTIM, &opts, NULL);
}

static int filter_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return change_filter(p, NOBODY);
}

static int unfilter_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return change_filter(p, NULL);
}

static int change_size(struct perfpersist *p, uint64_t size, uint64_t rate)
{
	struct perfpersist_change_options opts = {
		.sz = sizeof(opts),
		.what = PERFPERSIST_CHANGE_BUFFER | PERFPERSIST_CHANGE_MAX_RATE,
		.buffer = size,
		.max_rate = rate,
	};

	return perfpersist_change(p, ns, VICTIM, &opts, NULL);
}

static int resize_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return change_size(p, LARGE, MAX_RATE);
}

static int shrink_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return change_size(p, SMALL, 0);
}

static int change_period(struct perfpersist *p, uint64_t period, uint32_t flags)
{
	struct perfpersist_change_options opts = {
		.sz = sizeof(opts),
		.what = PERFPERSIST_CHANGE_PERIOD,
		.period = period,
		.flags = flags,
	};

	return perfpersist_change(p, ns, VICTIM, &opts, NULL);
}

static int sample_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return change_period(p, PERIOD, 0);
}

static int unsample_victim(struct perfpersist *p, const struct kind *kind)
{
	return change_period(p, kind->period, kind->period ? PERFPERSIST_FREQ : 0);
}

static int pause_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return perfpersist_pause(p, ns, VICTIM, true, NULL);
}

static int resume_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return perfpersist_pause(p, ns, VICTIM, false, NULL);
}

static int create_second(struct perfpersist *p, const struct kind *kind)
{
	return create_as(p, kind, SECOND, PERFPERSIST_SHARE);
}

static int delete_second(struct perfpersist *p, const struct kind *kind _unused_)
{
	return perfpersist_delete(p, ns, SECOND, NULL);
}

static int copy(struct perfpersist *p, const char *name)
{
	struct perfpersist_event *e;
	int r = perfpersist_open_copy(p, ns, name, &e);

	if (r == 0)
		perfpersist_event_free(e);
	return r;
}

static int copy_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	return copy(p, VICTIM);
}

/* ── the current state ──────────────────────────────────────────────────────────────────── */

/* A parsed list. */
struct sight {
	struct perfpersist_info *infos;
	size_t n;
	const struct perfpersist_info *bystander, *victim, *second; /* NULL: absent */
};

static void sight_done(struct sight *s)
{
	free(s->infos);
}

static const struct perfpersist_info *sight_find(const struct sight *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->infos[i].ns, ns) == 0 && strcmp(s->infos[i].name, name) == 0)
			return &s->infos[i];
	return NULL;
}

/* Returns false if the daemon cannot answer just now. Without an engine it lists what it knew: an order whose
 * client was answered meanwhile may yet prove to be carried out. */
static bool look(struct sight *ret)
{
	struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };
	struct sight s = { .n = 0 };
	struct perfpersist *p;
	int r;

	if (connect_daemon(&p) < 0)
		return false;
	r = perfpersist_ping(p, &daemon);
	if (r == 0 && daemon.engine_pid != (uint32_t)services.pid[ENGINE])
		r = -EAGAIN;
	if (r == 0)
		r = perfpersist_list(p, NULL, &s.infos, &s.n);
	perfpersist_free(p);
	if (r < 0)
		return false;
	s.bystander = sight_find(&s, "bystander");
	s.victim = sight_find(&s, VICTIM);
	s.second = sight_find(&s, SECOND);
	*ret = s;
	return true;
}

static bool has_victim(const struct sight *s)
{
	return s->victim;
}

static bool has_no_victim(const struct sight *s)
{
	return !s->victim;
}

static bool has_second(const struct sight *s)
{
	return s->second;
}

static bool has_no_second(const struct sight *s)
{
	return !s->second;
}

static bool is_filtered(const struct sight *s)
{
	return s->victim && strcmp(s->victim->filter, NOBODY) == 0;
}

/* The change is complete or did not happen. It goes to and fro: each second set is large. */
static bool is_resized(const struct sight *s)
{
	bool large = s->victim && s->victim->buffer == LARGE;

	if (s->victim && (s->victim->set % 2 != (large ? 0 : 1) ||
			  s->victim->max_rate != (large ? MAX_RATE : 0)))
		die("the event is half changed: set %u, %llu bytes, rate %llu", s->victim->set,
		    (unsigned long long)s->victim->buffer, (unsigned long long)s->victim->max_rate);
	return large;
}

static bool is_sampled(const struct sight *s)
{
	bool often = s->victim && s->victim->period == PERIOD;

	if (s->victim && often != !(s->victim->flags & PERFPERSIST_FREQ))
		die("the event is half changed: period %llu, flags %#x",
		    (unsigned long long)s->victim->period, s->victim->flags);
	return often;
}

static bool is_paused(const struct sight *s)
{
	return s->victim && s->victim->state == PERFPERSIST_PAUSED;
}

static bool is_running(const struct sight *s)
{
	return s->victim && s->victim->state == PERFPERSIST_RUNNING;
}

static bool is_nothing(const struct sight *s _unused_)
{
	return false;
}

/* ── the acts ───────────────────────────────────────────────────────────────────────────── */

enum {
	IS_THERE = 1,  /* the victim exists */
	IS_SHARED = 2, /* it has a second name, or only that is left */
	IS_IDLE = 4    /* records nothing */
};

static const struct act {
	const char *name;
	int (*order)(struct perfpersist *p, const struct kind *kind);
	int (*undo)(struct perfpersist *p, const struct kind *kind); /* NULL: create everything
								      * anew */
	bool (*is_done)(const struct sight *s);
	unsigned before, after;
} acts[] = {
	{ "create", create_victim, delete_victim, has_victim, 0, IS_THERE },
	{ "delete", delete_victim, create_victim, has_no_victim, IS_THERE, 0 },
	{ "filter", filter_victim, unfilter_victim, is_filtered, IS_THERE, IS_THERE | IS_IDLE },
	{ "resize", resize_victim, shrink_victim, is_resized, IS_THERE, IS_THERE },
	{ "sample", sample_victim, unsample_victim, is_sampled, IS_THERE, IS_THERE },
	{ "pause", pause_victim, resume_victim, is_paused, IS_THERE, IS_THERE | IS_IDLE },
	{ "resume", resume_victim, pause_victim, is_running, IS_THERE | IS_IDLE, IS_THERE },
	{ "alias", create_second, delete_second, has_second, IS_THERE, IS_THERE | IS_SHARED },
	{ "unalias", delete_second, create_second, has_no_second, IS_THERE | IS_SHARED, IS_THERE },
	/* The second name inherits the rings. */
	{ "bequeath", delete_victim, NULL, has_no_victim, IS_THERE | IS_SHARED, IS_SHARED },
	{ "copy", copy_victim, NULL, is_nothing, IS_THERE, IS_THERE },
};

/* Makes the request on a connection of its own; why (512 bytes) receives the daemon's message if it
 * refuses. */
static int ask(int (*order)(struct perfpersist *p, const struct kind *kind),
	       const struct kind *kind, char *why)
{
	struct perfpersist *p;
	int r;

	if (connect_daemon(&p) < 0)
		return -ECONNREFUSED;
	r = order(p, kind);
	snprintf(why, 512, "%s", r < 0 ? perfpersist_error(p) : "");
	perfpersist_free(p);
	return r;
}
