/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is true after a crash: asks the daemon, looks at the registry and at the kernel, and ends
 * the test if anything is not as it must be. Knows nothing of how the crash was brought about.
 */
#ifndef PP_TEST_AFTERMATH_H
#define PP_TEST_AFTERMATH_H

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "client/perfpersist.h"
#include "tests/integration/census.h"
#include "tests/integration/services.h"

#define PATIENCE_SECONDS 30

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
};

static struct services services;
static char registry[128];
static const char *ns;		  /* the instance's name, so that it is nobody else's */
static unsigned broker_fds;	  /* of a broker in peace */
static uint64_t bystander, count; /* its id, and its records when last looked at */
static unsigned bystander_rings;
static const char *step; /* what we wait for, to be told when it does not come */

/* ── waiting ────────────────────────────────────────────────────────────────────────────── */

/* Evaluates cond again and again until it holds. */
#define WAIT_UNTIL(what, cond)                                                          \
	do {                                                                            \
		time_t _end = time(NULL) + PATIENCE_SECONDS;                            \
		step = what;                                                            \
		while (!(cond)) {                                                       \
			services_check(&services);                                      \
			if (time(NULL) > _end)                                          \
				die("waited %d s in vain: %s", PATIENCE_SECONDS, what); \
			poll(NULL, 0, 2);                                               \
		}                                                                       \
	} while (0)

/* Whatever happens, nothing of ours runs on. */
static void end_services(void)
{
	if (services.broker > 0)
		kill(services.broker, SIGTERM);
	if (services.engine > 0)
		kill(services.engine, SIGTERM);
}

static void on_alarm(int signal_number _unused_)
{
	dprintf(STDERR_FILENO, "failed: stuck at: %s\n", step ?: "the start");
	end_services();
	_exit(1);
}

/* ── asking the daemon ──────────────────────────────────────────────────────────────────── */

static int connect_daemon(struct perfpersist **ret)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = services.instance };

	return perfpersist_connect(&opts, ret);
}

/* The list of our events; the caller frees it. False: not just now. */
static bool list(struct perfpersist_info **ret, size_t *ret_n)
{
	struct perfpersist *p;
	int r;

	if (connect_daemon(&p) < 0)
		return false;
	r = perfpersist_list(p, NULL, ret, ret_n);
	perfpersist_free(p);
	return r == 0;
}

static int change(const struct kind *kind, const char *name, bool deleting, char *why)
{
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = kind->event,
		.period = kind->period,
		.flags = kind->flags,
		.buffer = 65536,
	};
	struct perfpersist *p;
	int r;

	if (connect_daemon(&p) < 0)
		return -ECONNREFUSED;
	if (deleting)
		r = perfpersist_delete(p, ns, name, NULL);
	else
		r = perfpersist_create(p, ns, name, &opts, NULL);
	if (why)
		snprintf(why, 512, "%s", r < 0 ? perfpersist_error(p) : "");
	perfpersist_free(p);
	return r;
}

static void change_in_peace(const struct kind *kind, const char *name, bool deleting)
{
	char why[512];
	int r = change(kind, name, deleting, why);

	if (r < 0)
		die("%s %s: %s", deleting ? "deleting" : "creating", name, why);
}

/* ── looking at the registry ────────────────────────────────────────────────────────────── */

static int compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The names in a directory of the registry, sorted, with a blank behind each. */
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
		if (!strchr(e[i]->d_name, '.')) /* nor maps.debug, which some kernels put there */
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

/* What pp_meta_head.deleted says: an event that is there must not be marked as going. */
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

static bool has_more_records(const char *name, uint64_t than, uint64_t *ret)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist *p;
	int r;

	if (connect_daemon(&p) < 0)
		return false;
	r = perfpersist_show(p, ns, name, &info);
	perfpersist_free(p);
	*ret = r == 0 ? info.records : 0;
	return r == 0 && info.records > than;
}

/* That it is whole: listed so, every pin there, its rings to be opened, and recording. */
static void check_event(const struct kind *kind, const struct perfpersist_info *info)
{
	struct perfpersist_info opened = { .sz = sizeof(opened) };
	struct perfpersist_event *e;
	struct perfpersist *p;
	char dir[160], why[512];
	uint64_t records;

	snprintf(dir, sizeof(dir), "%s/%s", ns, info->name);
	if (!holds(dir, kind->leaves)) {
		names_in(dir, why, sizeof(why));
		die("%s is there, with: %s", dir, why);
	}
	if (info->state != PERFPERSIST_RUNNING || info->missed_unknown != kind->missed_unknown)
		die("%s is there, and listed in state %u, missed %s", dir, info->state,
		    info->missed_unknown ? "unknown" : "known");
	if (deleted_mark(info->name))
		die("%s is there, and its meta says that it is being deleted", dir);
	if (connect_daemon(&p) < 0 || perfpersist_open(p, ns, info->name, &e) < 0)
		die("%s is there, and cannot be opened", dir);
	if (perfpersist_event_info(e, &opened) < 0 || opened.id != info->id)
		die("%s has rings of another event", dir);
	perfpersist_event_free(e);
	perfpersist_free(p);
	WAIT_UNTIL("records of the event", has_more_records(info->name, info->records, &records));
}

/* After each kill: what is true now must be what was answered, and nothing else may be there. */
static bool check(const struct kind *kind, bool deleting, int answer)
{
	char ids[256] = "", top[256], id[32];
	struct perfpersist_info *infos = NULL;
	bool there = false;
	size_t n = 0;

	WAIT_UNTIL("an answer to a list", list(&infos, &n));
	if (n == 0 || infos[0].id != bystander || n > 2)
		die("%zu events are listed, the first has id %llu", n,
		    n ? (unsigned long long)infos[0].id : 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "%llu ", (unsigned long long)infos[i].id);
		strcat(ids, id);
	}
	there = n == 2;
	if (answer == 0 && there == deleting)
		die("the answer was success, and the event is %sthere", there ? "" : "not ");
	if (answer < 0 && answer != -ECONNRESET && there != deleting)
		die("the answer was %s, and the event is %sthere", strerror(-answer),
		    there ? "" : "not ");
	if (there)
		check_event(kind, &infos[1]);
	free(infos);

	snprintf(top, sizeof(top), "+last-id by-id %s ", ns);
	WAIT_UNTIL("a registry without half-made and half-deleted things", holds(".", top));
	WAIT_UNTIL("by-id with just the events that are there", holds("by-id", ids));
	WAIT_UNTIL("a broker with no more descriptors than before",
		   count_fds(services.broker) == broker_fds);
	WAIT_UNTIL("more records of the other event", has_more_records("bystander", count, &count));
	return there;
}

#endif
