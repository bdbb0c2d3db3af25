/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the tests of limits: connections as any user, the daemon's charges, and checks that a
 * refusal is the right one. Root only. Knows no limit in particular.
 */
#pragma once

#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

#define PATIENCE_SECONDS 60

/* No such users exist, and the tests need none. */
#define FIRST_USER 61101U

static const char *instance;
static struct perfpersist *root; /* the observer's connection */

__attribute__((noreturn)) _printf_(1, 2) static inline void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fflush(stdout);
	fprintf(stderr, "failed: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Evaluates `what` again and again until it is true; fails after a long time. */
#define AWAIT(what, ...)                                                 \
	do {                                                             \
		double await_end = now() + PATIENCE_SECONDS;             \
		while (!(what)) {                                        \
			if (now() > await_end)                           \
				die("waited in vain for: " __VA_ARGS__); \
			poll(NULL, 0, 1);                                \
		}                                                        \
	} while (0)

/* ── people ─────────────────────────────────────────────────────────────────────────────── */

/* Changes the credentials that the daemon sees on a connection. */
static inline void become(uid_t uid)
{
	if (setresuid(-1, 0, -1) < 0 || setresgid(-1, uid, -1) < 0 || setresuid(-1, uid, -1) < 0)
		die("cannot become user %u: %m", uid);
}

/* Returns as root again. */
static inline struct perfpersist *connect_as(uid_t uid)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	struct perfpersist *p;

	become(uid);
	if (perfpersist_connect(&opts, &p) < 0)
		die("user %u cannot connect: %s", uid, perfpersist_error(NULL));
	become(0);
	return p;
}

static inline void begin(const char *name)
{
	instance = name;
	if (setgroups(0, NULL) < 0)
		die("must be root: %m");
	root = connect_as(0);
}

static inline int ping(struct perfpersist *p)
{
	struct perfpersist_daemon_info info = { .sz = sizeof(info) };

	return perfpersist_ping(p, &info);
}

static inline pid_t engine_pid(void)
{
	struct perfpersist_daemon_info info = { .sz = sizeof(info) };

	if (perfpersist_ping(root, &info) < 0)
		die("no answer to a ping: %s", perfpersist_error(root));
	return (pid_t)info.engine_pid;
}

/* ── charges ────────────────────────────────────────────────────────────────────────────── */

/* The line of a user (ns NULL), of a namespace, or (total) of all users; all zeroes if there is
 * none. */
static inline struct perfpersist_limit line_of(uint32_t scope, uint32_t uid, const char *ns)
{
	_cleanup_free_ struct perfpersist_limit *all = NULL;
	size_t n = 0;
	int r = perfpersist_limits(root, &all, &n);

	if (r < 0)
		die("no limits: %s", perfpersist_error(root));
	for (size_t i = 0; i < n; i++)
		if (all[i].scope == scope &&
		    (scope != PERFPERSIST_LIMIT_USER || all[i].uid == uid) &&
		    (scope != PERFPERSIST_LIMIT_NAMESPACE || strcmp(all[i].ns, ns) == 0))
			return all[i];
	return (struct perfpersist_limit){ .scope = scope };
}

static inline struct perfpersist_limit user_line(uint32_t uid)
{
	return line_of(PERFPERSIST_LIMIT_USER, uid, NULL);
}

static inline struct perfpersist_limit namespace_line(const char *ns)
{
	return line_of(PERFPERSIST_LIMIT_NAMESPACE, 0, ns);
}

static inline struct perfpersist_limit total_line(void)
{
	return line_of(PERFPERSIST_LIMIT_TOTAL, 0, NULL);
}

/* Whether the daemon charges only the connection and the request that ask. */
static inline bool nothing_is_charged(void)
{
	_cleanup_free_ struct perfpersist_limit *all = NULL;
	size_t n = 0;

	if (perfpersist_limits(root, &all, &n) < 0)
		die("no limits: %s", perfpersist_error(root));
	for (size_t i = 0; i < n; i++) {
		bool ours = all[i].scope == PERFPERSIST_LIMIT_TOTAL ||
			    (all[i].scope == PERFPERSIST_LIMIT_USER && all[i].uid == 0);

		if (all[i].memory || all[i].held || all[i].events || all[i].copies ||
		    all[i].connections != ours || all[i].requests != ours)
			return false;
	}
	return n > 0;
}

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

/* The first CPU that this process may run on, as a list of CPUs. */
static inline const char *first_cpu(void)
{
	static char text[16];
	cpu_set_t set;

	if (text[0])
		return text;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		die("cannot tell which CPUs there are: %m");
	for (int cpu = 0; cpu < CPU_SETSIZE && !text[0]; cpu++)
		if (CPU_ISSET(cpu, &set))
			snprintf(text, sizeof(text), "%d", cpu);
	return text;
}

/* Creates an event that never fires, with a small ring on one CPU, unless o says otherwise. */
static inline int create(struct perfpersist *p, const char *ns, const char *name,
			 struct perfpersist_create_options o)
{
	o.sz = sizeof(o);
	if (!o.event)
		o.event = "alignment-faults";
	if (!o.buffer)
		o.buffer = 4096;
	if (!o.period && strchr(o.event, ':') == NULL)
		o.period = 1;
	o.cpus = first_cpu();
	return perfpersist_create(p, ns, name, &o, NULL);
}

#define CREATE(p, ns, name, ...) \
	create(p, ns, name, (struct perfpersist_create_options){ __VA_ARGS__ })

static inline void must(struct perfpersist *p, int err, const char *what)
{
	if (err < 0)
		die("%s: %s", what, perfpersist_error(p));
}

/* ── refusals ───────────────────────────────────────────────────────────────────────────── */

/* A limit and how often the test reached it. */
struct limit {
	const char *name;
	const char *says; /* part of the message that refuses */
	unsigned reached;
	char sentence[512];
};

static inline void refused(struct limit *l, int err, const char *sentence)
{
	if (err != -EDQUOT)
		die("%s: expected to be refused, got %s (%s)", l->name,
		    err < 0 ? strerrorname_np(-err) : "it", sentence);
	if (!strstr(sentence, l->says))
		die("%s: refused with another sentence: %s", l->name, sentence);
	l->reached++;
	snprintf(l->sentence, sizeof(l->sentence), "%s", sentence);
}

/* The same for perfctl, run as that user: exit 1, and the same message. */
static inline void perfctl_refused(const struct limit *l, uid_t uid, const char *const args[])
{
	char program[256], said[2048], *argv[16] = { program, (char *)"--instance" };
	int out[2], status;
	size_t n = 0;
	ssize_t got = readlink("/proc/self/exe", program, sizeof(program) - sizeof("perfctl"));
	pid_t pid;

	if (got < 0 || pipe(out) < 0)
		die("cannot run perfctl: %m");
	program[got] = '\0';
	strcpy(strrchr(program, '/') + 1, "perfctl");
	argv[2] = (char *)instance;
	for (size_t i = 0; args[i] && i + 4 < ARRAY_SIZE(argv); i++)
		argv[i + 3] = (char *)args[i];
	pid = fork();
	if (pid == 0) {
		if (dup2(out[1], 1) < 0 || dup2(1, 2) < 0 || setresgid(uid, uid, uid) < 0 ||
		    setresuid(uid, uid, uid) < 0)
			_exit(126);
		execv(program, argv);
		_exit(127);
	}
	close(out[1]);
	while (n + 1 < sizeof(said) && (got = read(out[0], said + n, sizeof(said) - n - 1)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(out[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("cannot run perfctl: %m");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || !strstr(said, l->says))
		die("%s: perfctl %s ended with 0x%x and said: %s", l->name, args[0], status, said);
}

#define PERFCTL_REFUSED(l, uid, ...) \
	perfctl_refused(l, uid, (const char *const[]){ __VA_ARGS__, NULL })

static inline void tell(const struct limit *l)
{
	printf("%-24s reached %u times: %s\n", l->name, l->reached, l->sentence);
	fflush(stdout);
}
