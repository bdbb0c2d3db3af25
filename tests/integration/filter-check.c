// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares generated filters on one tracepoint with an evaluation of the unfiltered stream:
 *
 *   filter-check INSTANCE NS EVENT mine|childrens tp_btf|generic EXPRESSIONS SEED
 *
 * Records the tracepoint once without a filter and, at the same time, under several names with
 * filters of their own, which change in every round. A worker fires the tracepoint. Then each
 * filtered name must have exactly the records that match its expression, in order, byte for byte.
 * mine: checks the worker's own records; childrens: checks those of the programs that it executes.
 *
 * If the worker keeps its name, a COMM in front of each filter keeps all other processes out: on a
 * busy machine they would overwrite its records.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/perfpersist.h"
#include "tests/integration/exact-worker.h"
#include "tests/integration/filter-expression.h"

#define COMM "pp-filter"
#define OURS "/proc/self/root/" /* starts the path of a program that only this test executes */
#define BUFFER (1 << 20)
#define ROUND_TRIES 50
#define ONLY_US "COMM == \"" COMM "\""
#define FILTERED 24 /* names with a filter; all users of a tracepoint share 64 programs */

/* A name's records of one round, copied. */
struct stream {
	struct perfpersist_sample *samples;
	size_t n, cap;
};

struct name {
	char name[16];
	struct perfpersist_event *e;
	struct perfpersist_snapshot *s;
	struct stream stream;
	struct expression expression;
};

struct check {
	struct perfpersist *p;
	const char *ns, *event;
	bool mine, generic;
	struct tp_format format;
	struct name plain, filtered[FILTERED];
	struct vocabulary vocabulary;
	uint64_t judged, fitted, nothing; /* expressions; records; expressions without a match */
};

/* ── the worker ─────────────────────────────────────────────────────────────────────────── */

static void exec_something(int i)
{
	static const char *const programs[] = { OURS "bin/true", OURS "usr/bin/env",
						OURS "bin/sh" };
	pid_t pid = fork();

	if (pid == 0) {
		close(STDERR_FILENO);
		execl(programs[i % 3], "pp-exec", "-c", ":", NULL);
		_exit(1);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void rename_self(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "%s-%d", i % 3 ? "work/er" : "long-name", i * 7);
	prctl(PR_SET_NAME, name);
}

/* Sends ignored signals: their codes are 4-byte numbers, some of them negative. */
static void signal_self(int i)
{
	if (i % 3 == 0)
		kill(getpid(), SIGURG);
	else if (i % 3 == 1)
		syscall(SYS_tgkill, getpid(), getpid(), SIGWINCH);
	else
		sigqueue(getpid(), SIGURG, (union sigval){ .sival_int = i });
}

/* Fires each tracepoint of this test. */
static void be_busy(const char *event)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	for (int i = 0; i < 24; i++) {
		syscall(SYS_lseek, -1 - i % 3, (long)i * i * 1000 - 4000, i % 5);
		syscall(SYS_getpgid, i % 4 ? 0 : -1);
		syscall(SYS_dup3, i, -1, 0);
		syscall(SYS_umask, 022 + i % 2);
		if (i % 6 == 0)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		if (i % 8 == 1 && strstr(event, "exec"))
			exec_something(i);
		if (strstr(event, "rename"))
			rename_self(i);
		if (strstr(event, "signal"))
			signal_self(i);
	}
}

/* wait() returns before the process leaves its CPU for the last time, and that switch is recorded
 * too. Running on the process's CPU ensures that the switch is over. */
static void see_it_off(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		die("sched_getaffinity: %m");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

static pid_t work_once(const char *event)
{
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		die("pipe: %m");
	pid = fork();
	if (pid < 0)
		die("fork: %m");
	if (pid == 0) {
		be_busy(event);
		_exit(0);
	}
	close(fds[0]);
	close(fds[1]);
	if (waitpid(pid, &status, 0) < 0 || status)
		die("the worker ended with %#x", status);
	see_it_off();
	return pid;
}

/* ── streams ────────────────────────────────────────────────────────────────────────────── */

/* For an executed program: whether this test executed it. */
static bool is_called_ours(const struct check *c, const struct perfpersist_sample *s)
{
	char text[256];

	for (size_t i = 0; i < c->format.n; i++)
		if (!strcmp(c->format.fields[i].name, "filename")) {
			text_in(&c->format.fields[i], s, text, sizeof(text));
			return !strncmp(text, OURS, strlen(OURS));
		}
	return false;
}

/* The last switch of a task: its state is EXIT_ZOMBIE until its parent, on another CPU, has waited for it, then EXIT_DEAD,
 * and the parent may come between two programs. */
static bool is_last_switch(const struct check *c, const struct perfpersist_sample *s)
{
	for (size_t i = 0; i < c->format.n; i++)
		if (!strcmp(c->format.fields[i].name, "prev_state"))
			return number_in(&c->format.fields[i], s->raw) & 0x30;
	return false;
}

static bool is_judged(const struct check *c, const struct perfpersist_sample *s, pid_t worker,
		      uint64_t from)
{
	return s->time >= from && !is_last_switch(c, s) &&
	       (c->mine ? s->tid == (uint32_t)worker : is_called_ours(c, s));
}

static void collect(const struct check *c, struct name *n, pid_t worker, uint64_t from)
{
	struct perfpersist_merge *m;
	struct perfpersist_sample s;
	int r;

	n->stream.n = 0;
	if (perfpersist_snapshot_take(n->s) < 0 ||
	    perfpersist_merge_new(n->s, PERFPERSIST_OLDEST_FIRST, 0, &m) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_merge_next(m, &s)) > 0) {
		if (!is_judged(c, &s, worker, from))
			continue;
		if (n->stream.n == n->stream.cap) {
			n->stream.cap = n->stream.cap ? n->stream.cap * 2 : 512;
			n->stream.samples = reallocarray(n->stream.samples, n->stream.cap,
							 sizeof(*n->stream.samples));
			if (!n->stream.samples)
				die("out of memory");
		}
		n->stream.samples[n->stream.n++] = s;
	}
	if (r < 0 || perfpersist_merge_damaged(m))
		die("%s: its rings cannot be read", n->name);
	perfpersist_merge_free(m);
}

/* The next sample of that CPU from index i on; the stream's end if there is none. */
static size_t next_on(const struct stream *s, size_t i, uint32_t cpu)
{
	while (i < s->n && s->samples[i].cpu != cpu)
		i++;
	return i;
}

static void tell(const struct check *c, const char *what, const struct perfpersist_sample *s)
{
	fprintf(stderr, "%s: CPU %u, pid %u, tid %u, time %" PRIu64 ", fields", what, s->cpu,
		s->pid, s->tid, s->time);
	for (size_t i = 0; i < c->format.n; i++) {
		const struct tp_format_field *f = &c->format.fields[i];
		char text[256];

		if (field_is_text(f)) {
			text_in(f, s, text, sizeof(text));
			fprintf(stderr, " %s=\"%s\"", f->name, text);
		} else if (f->size <= 8) {
			fprintf(stderr, " %s=%" PRIu64, f->name, number_in(f, s->raw));
		}
	}
	fputc('\n', stderr);
}

static void wrong(const struct check *c, const struct name *n, const char *what,
		  const struct perfpersist_sample *s, const struct perfpersist_sample *other)
{
	fprintf(stderr, "%s, filter %s\n", c->event, n->expression.text);
	tell(c, what, s);
	if (other)
		tell(c, "there is", other);
	exit(1);
}

/* On one CPU the name has exactly those records of the unfiltered stream that match the
 * expression. */
static void compare_on(struct check *c, const struct name *n, uint32_t cpu)
{
	const struct stream *all = &c->plain.stream, *some = &n->stream;
	size_t j = next_on(some, 0, cpu);

	for (size_t i = next_on(all, 0, cpu); i < all->n; i = next_on(all, i + 1, cpu)) {
		const struct perfpersist_sample *a = &all->samples[i];

		if (!judge(&n->expression.nodes[0], a, COMM))
			continue;
		if (j == some->n)
			wrong(c, n, "not recorded, though it fits", a, NULL);
		if (tp_format_compare(&c->format, a->raw, a->raw_size, some->samples[j].raw,
				      some->samples[j].raw_size))
			wrong(c, n, "in its place there is something else", a, &some->samples[j]);
		c->fitted++;
		j = next_on(some, j + 1, cpu);
	}
	if (j < some->n)
		wrong(c, n, "recorded, though it does not fit", &some->samples[j], NULL);
}

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

static void open_name(struct check *c, struct name *n, const char *name)
{
	struct perfpersist_create_options o = {
		.sz = sizeof(o),
		.event = c->event,
		.filter = c->vocabulary.comm ? ONLY_US : NULL,
		.buffer = BUFFER,
		.flags = PERFPERSIST_NO_SHARE | (c->generic ? PERFPERSIST_GENERIC : 0),
	};
	struct perfpersist_info info = { .sz = sizeof(info) };

	snprintf(n->name, sizeof(n->name), "%s", name);
	if (perfpersist_create(c->p, c->ns, name, &o, &info) < 0 ||
	    perfpersist_open(c->p, c->ns, name, &n->e) < 0)
		die("%s", perfpersist_error(c->p));
	if ((info.recorder == PERFPERSIST_RECORDER_GENERIC) != c->generic)
		die("%s is not recorded by the recorder that was to be tested", c->event);
	if (perfpersist_snapshot_new(n->e, &n->s) < 0)
		die("%s", perfpersist_error(NULL));
}

static void close_name(struct check *c, struct name *n)
{
	perfpersist_snapshot_free(n->s);
	perfpersist_event_free(n->e);
	free(n->stream.samples);
	if (perfpersist_delete(c->p, c->ns, n->name, NULL) < 0)
		die("%s", perfpersist_error(c->p));
}

static void open_names(struct check *c)
{
	const char *format;
	size_t size;

	open_name(c, &c->plain, "plain");
	for (int i = 0; i < FILTERED; i++) {
		char name[16];

		snprintf(name, sizeof(name), "filtered%d", i);
		open_name(c, &c->filtered[i], name);
	}
	format = perfpersist_event_format(c->plain.e, &size);
	if (!format || !tp_format_parse(format, size, &c->format))
		die("%s: its format cannot be understood", c->event);
}

static void set_filter(struct check *c, struct name *n)
{
	struct perfpersist_change_options o = { .sz = sizeof(o),
						.what = PERFPERSIST_CHANGE_FILTER };
	char text[sizeof(n->expression.text) + sizeof(ONLY_US " && ()")];

	make_expression(&c->vocabulary, &n->expression);
	snprintf(text, sizeof(text), c->vocabulary.comm ? ONLY_US " && (%s)" : "%s",
		 n->expression.text);
	o.filter = text;
	if (perfpersist_change(c->p, c->ns, n->name, &o, NULL) < 0)
		die("%s, filter %s\n%s", c->event, text, perfpersist_error(c->p));
}

/* ── rounds ─────────────────────────────────────────────────────────────────────────────── */

/* Bytes that the busiest ring of a name has received since it was created. */
static uint64_t written(struct name *n, size_t ring)
{
	struct perfpersist_ring_stat s = { .sz = sizeof(s) };

	if (perfpersist_ring_stat(n->e, ring, &s) < 0)
		die("%s", perfpersist_error(NULL));
	return s.bytes;
}

/*
 * Lets the worker run, and copies the records. Returns -EAGAIN if other processes fired so many
 * events that a ring may have wrapped.
 */
static int record_round(struct check *c, size_t n, pid_t *ret_worker)
{
	uint64_t before[64], from;
	size_t rings = MIN(perfpersist_event_rings(c->plain.e), (size_t)64);

	/* No name writes more than the unfiltered one. */
	for (size_t ring = 0; ring < rings; ring++)
		before[ring] = written(&c->plain, ring);
	from = (uint64_t)now();
	*ret_worker = work_once(c->event);
	collect(c, &c->plain, *ret_worker, from);
	for (size_t i = 0; i < n; i++)
		collect(c, &c->filtered[i], *ret_worker, from);
	for (size_t ring = 0; ring < rings; ring++)
		if (written(&c->plain, ring) - before[ring] > BUFFER * 3 / 4)
			return -EAGAIN;
	return 0;
}

/* The expressions take their values from the records of a first run without filters. */
static void learn(struct check *c)
{
	pid_t worker;
	int tries = 0;

	while (record_round(c, 0, &worker) < 0 || !c->plain.stream.n)
		if (++tries == ROUND_TRIES)
			die("%s did not happen, or others make too many of it", c->event);
	c->vocabulary.format = &c->format;
}

static void run_round(struct check *c, size_t n)
{
	pid_t worker;
	int tries = 0;

	/* The next snapshot replaces the one that holds these samples. */
	c->vocabulary.seen = c->plain.stream.samples;
	c->vocabulary.n_seen = c->plain.stream.n;
	for (size_t i = 0; i < n; i++)
		set_filter(c, &c->filtered[i]);
	while (record_round(c, n, &worker) < 0)
		if (++tries == ROUND_TRIES)
			die("%s: other processes' records overwrite the worker's", c->event);
	for (size_t i = 0; i < n; i++) {
		uint64_t before = c->fitted;

		for (size_t ring = 0; ring < perfpersist_event_rings(c->plain.e); ring++)
			compare_on(c, &c->filtered[i],
				   (uint32_t)perfpersist_ring_cpu(c->plain.e, ring));
		c->judged++;
		c->nothing += c->fitted == before;
	}
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	static struct check c;
	size_t wanted;

	if (argc != 8)
		die("usage: filter-check INSTANCE NS EVENT mine|childrens tp_btf|generic N SEED");
	o.instance = argv[1];
	c.ns = argv[2];
	c.event = argv[3];
	c.mine = !strcmp(argv[4], "mine");
	c.generic = !strcmp(argv[5], "generic");
	/* The worker has its name from the start, and keeps it except where the test is about
	 * renaming. */
	c.vocabulary.comm = c.mine && !strstr(c.event, "rename") ? COMM : NULL;
	wanted = strtoul(argv[6], NULL, 10);
	c.vocabulary.state = strtoull(argv[7], NULL, 10) * 2 + 1;
	prctl(PR_SET_NAME, COMM); /* inherited by the worker */
	if (perfpersist_connect(&o, &c.p) < 0)
		die("%s", perfpersist_error(NULL));
	open_names(&c);
	learn(&c);
	while (c.judged < wanted)
		run_round(&c, MIN(wanted - c.judged, (size_t)FILTERED));
	printf("%s (%s): %" PRIu64 " filters, %" PRIu64 " records fitted, %" PRIu64
	       " filters fitted nothing\n",
	       c.event, argv[5], c.judged, c.fitted, c.nothing);
	if (c.nothing == c.judged)
		die("no filter fitted anything: this test says nothing");
	for (int i = 0; i < FILTERED; i++)
		close_name(&c, &c.filtered[i]);
	close_name(&c, &c.plain);
	perfpersist_free(c.p);
	return 0;
}
