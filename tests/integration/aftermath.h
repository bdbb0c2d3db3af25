/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks the state after a crash: asks the daemon, looks at the registry and at the kernel, and
 * ends the test at any fault. Knows nothing of how the crash came about.
 */
#pragma once

#include <limits.h>
#include <poll.h>
#include <time.h>

#include "tests/integration/acts.h"
#include "tests/integration/census.h"

#define PATIENCE_SECONDS 30
#define BURN_NS 10000000

static char registry[128];
static unsigned broker_fds;	  /* of an idle broker that is connected to its dumper */
static uint64_t bystander, count; /* its id, and its records at the last look */
static unsigned bystander_rings;
static uint64_t rings_id; /* the id in the victim's rings, whichever name has them now */
static const char *step;  /* the current wait, named if it times out */

/* ── waiting ────────────────────────────────────────────────────────────────────────────── */

/* Tasks that wait inside the kernel, and where: they may be what the test waited for. */
__attribute__((noreturn)) static void waited_in_vain(const char *what)
{
	if (system("for t in /proc/[0-9]*/task/[0-9]*; do"
		   " grep -qs '^State:.D' $t/status && cat $t/comm $t/stack; done >&2") < 0)
		die("cannot look who waits in the kernel: %m");
	die("waited %d s in vain: %s", PATIENCE_SECONDS, what);
}

/* Evaluates cond again and again until it holds. */
#define WAIT_UNTIL(what, cond)                               \
	do {                                                 \
		time_t _end = time(NULL) + PATIENCE_SECONDS; \
		step = what;                                 \
		while (!(cond)) {                            \
			services_check(&services);           \
			if (time(NULL) > _end)               \
				waited_in_vain(what);        \
			poll(NULL, 0, 2);                    \
		}                                            \
	} while (0)

/* The next engine is there. On a busy machine that takes longer than clients wait. */
static bool has_engine(void)
{
	_cleanup_(sight_done) struct sight s = { .n = 0 };

	return look(&s);
}

static void ask_in_peace(int (*order)(struct perfpersist *p, const struct kind *kind),
			 const struct kind *kind)
{
	char why[512];

	WAIT_UNTIL("an engine", has_engine());
	if (ask(order, kind, why) < 0)
		die("undisturbed, and yet: %s", why);
}

/* The test's processes end with it, whatever happens. */
static void end_services(void)
{
	for (enum service i = 0; i < SERVICES; i++)
		if (services.pid[i] > 0)
			kill(services.pid[i], SIGTERM);
}

static void on_alarm(int signal_number _unused_)
{
	dprintf(STDERR_FILENO, "failed: stuck at: %s\n", step ?: "the start");
	end_services();
	_exit(1);
}

/* ── looking at the registry ────────────────────────────────────────────────────────────── */

static int compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The names in a directory of the registry, sorted, each followed by a blank. */
static void names_in(const char *dir, char *buf, size_t size)
{
	char path[PATH_MAX];
	struct dirent **e;
	size_t used = 0;
	int n;

	buf[0] = 0;
	snprintf(path, sizeof(path), "%s/%s", registry, dir);
	n = scandir(path, &e, NULL, compare);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		/* The permanent files do not count: the wakeups, the states of CPUs, the program
		 * counts, and the maps.debug that some kernels put there. */
		if (!strchr(e[i]->d_name, '.') && strcmp(e[i]->d_name, "+wakeups") != 0 &&
		    strcmp(e[i]->d_name, "+sending") != 0 &&
		    strncmp(e[i]->d_name, "+cpus", 5) != 0 &&
		    strncmp(e[i]->d_name, "+totals", 7) != 0)
			used += snprintf(buf + used, size - MIN(used, size), "%s ", e[i]->d_name);
		free(e[i]);
	}
	free(e);
	if (used >= size)
		die("too many names in %s", path);
}

static bool holds(const char *dir, const char *expected)
{
	char names[1024];

	names_in(dir, names, sizeof(names));
	return strcmp(names, expected) == 0;
}

/* Reads pp_meta_head.deleted: an existing event must not carry the mark. */
static unsigned deleted_mark(const char *name)
{
	struct bpf_map_info info = { 0 };
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *value = NULL;
	char path[PATH_MAX + 256];
	union bpf_attr attr;
	unsigned key = 0, mark;

	snprintf(path, sizeof(path), "%s/%s/%s/meta", registry, ns, name);
	attr = (union bpf_attr){ .pathname = (uintptr_t)path };
	fd = census_bpf(BPF_OBJ_GET, &attr);
	attr = (union bpf_attr){
		.info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (uintptr_t)&info },
	};
	if (fd < 0 || census_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0)
		die("%s cannot be read: %m", path);
	value = calloc(1, info.value_size + 8);
	attr = (union bpf_attr){ .map_fd = fd, .key = (uintptr_t)&key, .value = (uintptr_t)value };
	if (!value || census_bpf(BPF_MAP_LOOKUP_ELEM, &attr) < 0)
		die("%s cannot be read: %m", path);
	memcpy(&mark, value + 20, sizeof(mark));
	return mark;
}

/* The kernel keeps firing events of each kind. Returns false if the event cannot be read just
 * now. */
static bool read_records(const char *name, uint64_t *ret)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist *p;
	int r;

	prctl(PR_SET_NAME, "pp-crash");
	if (connect_daemon(&p) < 0)
		return false;
	r = perfpersist_show(p, ns, name, &info);
	perfpersist_free(p);
	if (r == 0)
		*ret = info.records;
	return r == 0;
}

static bool has_more_records(const char *name, uint64_t than, uint64_t *ret)
{
	uint64_t records;

	if (!read_records(name, &records) || records <= than)
		return false;
	*ret = records;
	return true;
}

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

/* What a directory of this kind holds, with the records of the names that are there. */
static void expected_leaves(const struct kind *kind, const struct sight *s, char *buf, size_t size)
{
	const struct perfpersist_info *names[] = { s->victim, s->second };
	const char *info = strstr(kind->leaves, "info "),
		   *behind = strstr(kind->leaves, "meta ") + 5;
	/* Since other rings took the place of the first. */
	bool is_resized = (s->victim ?: s->second)->set > 1;
	int n;

	n = snprintf(buf, size, "%.*s%s%.*s", (int)(info - kind->leaves), kind->leaves,
		     is_resized ? "earlier " : "", (int)(behind - info), info);
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i])
			n += snprintf(buf + n, size - n, "name-%llu ",
				      (unsigned long long)names[i]->id);
	snprintf(buf + n, size - n, "%s", behind);
}

/* The id of the event that the ring was made for, from the ring's header. */
static uint64_t id_in_ring(struct perfpersist_event *e)
{
	const struct pp_ring_header *h =
		mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, perfpersist_ring_fd(e, 0), 0);
	uint64_t id;

	if (h == MAP_FAILED)
		die("a ring cannot be mapped: %m");
	id = h->event_id;
	munmap((void *)h, PP_RING_PAGE);
	return id;
}

static void check_rings(const struct perfpersist_info *info)
{
	struct perfpersist_info opened = { .sz = sizeof(opened) };
	struct perfpersist_event *e;
	struct perfpersist *p;

	if (connect_daemon(&p) < 0 || perfpersist_open(p, ns, info->name, &e) < 0)
		die("%s is there, and cannot be opened", info->name);
	if (perfpersist_event_info(e, &opened) < 0 || opened.id != info->id ||
	    opened.buffer != info->buffer || id_in_ring(e) != rings_id)
		die("%s has rings of another event", info->name);
	perfpersist_event_free(e);
	perfpersist_free(p);
}

/* Keeps a CPU busy for several sampling periods. */
static void burn(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	for (int64_t end = t.tv_sec * 1000000000LL + t.tv_nsec + BURN_NS;
	     t.tv_sec * 1000000000LL + t.tv_nsec < end;)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
}

static void check_records(const struct kind *kind, const struct perfpersist_info *info, bool idle)
{
	uint64_t before = 0, after = 0;

	if (!idle) {
		WAIT_UNTIL("records of the event",
			   has_more_records(info->name, info->records, &after));
		return;
	}
	WAIT_UNTIL("its records", read_records(info->name, &before));
	if (kind->period)
		burn();
	for (unsigned i = 0; i < 5; i++)
		WAIT_UNTIL("its records once more", read_records(info->name, &after));
	if (after != before)
		die("%s records %llu more, though it shall not", info->name,
		    (unsigned long long)(after - before));
}

/* Checks that the event is complete: listed, all its pins there, its rings readable, recording or
 * idle as expected. */
static void check_event(const struct kind *kind, const struct sight *s,
			const struct perfpersist_info *info, bool idle)
{
	char dir[160], found[1024], expected[512];

	snprintf(dir, sizeof(dir), "%s/%s", ns, info->name);
	expected_leaves(kind, s, expected, sizeof(expected));
	if (!holds(dir, expected)) {
		names_in(dir, found, sizeof(found));
		die("%s is there, with: %sand not: %s", dir, found, expected);
	}
	if ((info->state != PERFPERSIST_RUNNING && !(idle && info->state == PERFPERSIST_PAUSED)) ||
	    info->missed_unknown != kind->missed_unknown)
		die("%s is there, and listed in state %u, missed %s", dir, info->state,
		    info->missed_unknown ? "unknown" : "known");
	if (info->buffer == SMALL && !info->shares && info->memory != kind->memory)
		die("%s is charged %llu bytes, and not %llu", dir, (unsigned long long)info->memory,
		    (unsigned long long)kind->memory);
	if (deleted_mark(info->name))
		die("%s is there, and its meta says that it is being deleted", dir);
	check_rings(info);
	check_records(kind, info, idle);
}

/* ── everything ─────────────────────────────────────────────────────────────────────────── */

/* Whether the daemon charges exactly what exists. */
static bool is_charged_for(const struct sight *s)
{
	struct perfpersist_limit *limits = NULL;
	uint64_t memory = 0;
	struct perfpersist *p;
	bool good = false;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		memory += s->infos[i].memory;
	if (connect_daemon(&p) < 0)
		return false;
	if (perfpersist_limits(p, &limits, &n) == 0 && n > 0)
		good = limits[0].scope == PERFPERSIST_LIMIT_TOTAL && limits[0].memory == memory &&
		       limits[0].held == 0 && limits[0].events == s->n && limits[0].copies == 0;
	perfpersist_free(p);
	free(limits);
	return good;
}

static void check_places(const struct sight *s)
{
	char ids[64], top[256];
	int n = snprintf(ids, sizeof(ids), "%llu ", (unsigned long long)bystander);

	if (s->victim || s->second)
		snprintf(ids + n, sizeof(ids) - n, "%llu ", (unsigned long long)rings_id);
	snprintf(top, sizeof(top), "+last-id by-id %s ", ns);
	WAIT_UNTIL("a registry without half-made and half-deleted things", holds(".", top));
	WAIT_UNTIL("by-id with just the events that are there", holds("by-id", ids));
	WAIT_UNTIL("a broker with no more descriptors than before",
		   count_fds(services.pid[BROKER]) <= broker_fds);
	WAIT_UNTIL("charges for just the events that are there", is_charged_for(s));
	WAIT_UNTIL("more records of the other event", has_more_records("bystander", count, &count));
}

/* Checks that exactly the expected events exist. */
static void check_presence(const struct sight *s, unsigned expected)
{
	bool victim = expected & IS_THERE, second = expected & IS_SHARED;

	if (!s->bystander || s->bystander->id != bystander || s->n != 1U + victim + second ||
	    has_victim(s) != victim || has_second(s) != second)
		die("%zu events are listed, %s, %s and %s", s->n,
		    s->bystander ? "the other one" : "not the other one",
		    s->victim ? "the victim" : "no victim",
		    s->second ? "its second name" : "no second name");
	if (s->second && s->second->shares != (s->victim ? s->victim->id : 0))
		die("the second name has the rings of %llu", (unsigned long long)s->second->shares);
}

/*
 * Runs after each kill: the state must match the answer, and nothing else may exist. Returns
 * whether the act is done.
 */
static bool check(const struct kind *kind, const struct act *act, int answer)
{
	_cleanup_(sight_done) struct sight s = { .n = 0 };
	unsigned now;
	bool done;

	WAIT_UNTIL("an answer to a list", look(&s));
	done = act->is_done(&s);
	if (answer == 0 && !done && act->is_done != is_nothing)
		die("the answer was success, and the %s is not done", act->name);
	/* EAGAIN: the engine was away for too long; it may be done all the same. */
	if (answer < 0 && answer != -ECONNRESET && answer != -EAGAIN && done)
		die("the answer was %s, and the %s is done", strerror(-answer), act->name);
	now = done ? act->after : act->before;
	check_presence(&s, now);
	if (s.victim && !(act->before & IS_THERE))
		rings_id = s.victim->id;
	if (s.victim)
		check_event(kind, &s, s.victim, now & IS_IDLE);
	if (s.second)
		check_event(kind, &s, s.second, now & IS_IDLE);
	check_places(&s);
	return done;
}
