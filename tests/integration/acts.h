/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the crash tests ask of the daemon: each act knows which events must be there before it and
 * are there after it, how it is asked for, and how to see that it is done. Knows nothing of who
 * dies meanwhile.
 */
#ifndef PP_TEST_ACTS_H
#define PP_TEST_ACTS_H

#include <signal.h>
#include <string.h>

#include "client/perfpersist.h"
#include "tests/integration/services.h"

#define VICTIM "victim" /* the event that orders are about */
#define SECOND "second" /* its other name */
#define SMALL 65536
#define LARGE 131072
#define NOBODY "pid == 4194305" /* a filter: no process can have this id */

struct kind {
	const char *name, *event;
	uint64_t period;
	uint32_t flags;
	char leaves[256];    /* what a whole event's directory holds */
	bool missed_unknown; /* what its stat says */
};

static struct kind kinds[] = {
	{ "hot", "raw_syscalls:sys_enter", 0, 0, "", false },
	{ "generic", "raw_syscalls:sys_enter", 0, PERFPERSIST_GENERIC, "", false },
	{ "sampling", "cpu-clock", 999, PERFPERSIST_FREQ | PERFPERSIST_CALLCHAIN, "", false },
	{ "several", "raw_syscalls:sys_*,task:task_rename,cpu-clock", 0, 0, "", false },
	{ "waking", "task:task_rename", 0, PERFPERSIST_WAKEUP, "", false },
};

static struct services services;
static const char *ns; /* the instance's name, so that it is nobody else's */

/* ── asking ─────────────────────────────────────────────────────────────────────────────── */

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

static int filter_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	struct perfpersist_change_options opts = {
		.sz = sizeof(opts),
		.what = PERFPERSIST_CHANGE_FILTER,
		.filter = NOBODY,
	};

	return perfpersist_change(p, ns, VICTIM, &opts, NULL);
}

static int resize_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	struct perfpersist_change_options opts = {
		.sz = sizeof(opts),
		.what = PERFPERSIST_CHANGE_BUFFER | PERFPERSIST_CHANGE_MAX_RATE,
		.buffer = LARGE,
		.max_rate = 1000000,
	};

	return perfpersist_change(p, ns, VICTIM, &opts, NULL);
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

static int copy_victim(struct perfpersist *p, const struct kind *kind _unused_)
{
	struct perfpersist_event *e;
	int r = perfpersist_open_copy(p, ns, VICTIM, &e);

	if (r == 0)
		perfpersist_event_free(e);
	return r;
}

/* ── what is there ──────────────────────────────────────────────────────────────────────── */

/* What a list tells, taken apart. */
struct sight {
	struct perfpersist_info *infos;
	size_t n;
	const struct perfpersist_info *bystander, *victim, *second; /* NULL: not there */
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

/* False: not just now. */
static bool look(struct sight *ret)
{
	struct sight s = { .n = 0 };
	struct perfpersist *p;
	int r;

	if (connect_daemon(&p) < 0)
		return false;
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

/* All of the change or nothing of it. */
static bool is_resized(const struct sight *s)
{
	bool large = s->victim && s->victim->buffer == LARGE;

	if (s->victim &&
	    (s->victim->set != (large ? 2 : 1) || s->victim->max_rate != (large ? 1000000 : 0)))
		die("the event is half changed: set %u, %llu bytes, rate %llu", s->victim->set,
		    (unsigned long long)s->victim->buffer, (unsigned long long)s->victim->max_rate);
	return large;
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

struct presence {
	bool victim, second, idle; /* idle: records nothing */
};

static const struct act {
	const char *name;
	int (*order)(struct perfpersist *p, const struct kind *kind);
	bool (*is_done)(const struct sight *s);
	struct presence before, after;
} acts[] = {
	{ "create", create_victim, has_victim, { false, false, false }, { true, false, false } },
	{ "delete", delete_victim, has_no_victim, { true, false, false }, { false, false, false } },
	{ "filter", filter_victim, is_filtered, { true, false, false }, { true, false, true } },
	{ "resize", resize_victim, is_resized, { true, false, false }, { true, false, false } },
	{ "pause", pause_victim, is_paused, { true, false, false }, { true, false, true } },
	{ "resume", resume_victim, is_running, { true, false, true }, { true, false, false } },
	{ "alias", create_second, has_second, { true, false, false }, { true, true, false } },
	{ "unalias", delete_second, has_no_second, { true, true, false }, { true, false, false } },
	/* The rings go to the other name. */
	{ "bequeath", delete_victim, has_no_victim, { true, true, false }, { false, true, false } },
	{ "copy", copy_victim, is_nothing, { true, false, false }, { true, false, false } },
};

/* Asks for it on a connection of its own; why (512 bytes): what the daemon says, if it refuses. */
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

static void ask_in_peace(int (*order)(struct perfpersist *p, const struct kind *kind),
			 const struct kind *kind)
{
	char why[512];

	if (ask(order, kind, why) < 0)
		die("undisturbed, and yet: %s", why);
}

#endif
