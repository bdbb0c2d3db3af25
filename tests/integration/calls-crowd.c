// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many tasks on few CPUs make numbered system calls while an event records them; then the test
 * searches for each record:
 *
 *   calls-crowd INSTANCE NS NAME TASKS ROUNDS CALLS [fifo]
 *
 * The event records the first CALLS of the calls below, by raw_syscalls:sys_enter or by
 * syscalls:sys_enter_*. A round makes each call once; every call fails at once. fifo: tasks have
 * real-time priorities and sleep now and then, so that a waking task preempts a running one at any
 * place.
 *
 * Prints how many calls were made, how many are present, how many the event counts as missed
 * (including other processes' calls), and how many are neither. Exit 1: a call is neither, or is
 * present twice, or is torn, or the times in a ring go backward.
 */
#include "tests/integration/observe.h"

#define FIRST (1 << 20) /* no descriptor and no process has such numbers */

static const struct call {
	const char *name;
	long nr;
} calls[] = {
	{ "close", SYS_close },		{ "dup", SYS_dup },	    { "fsync", SYS_fsync },
	{ "fchdir", SYS_fchdir },	{ "getpgid", SYS_getpgid }, { "syncfs", SYS_syncfs },
	{ "fdatasync", SYS_fdatasync }, { "getsid", SYS_getsid },
};

struct crowd {
	uint64_t tasks, rounds, n_calls;
	bool fifo;
	uint8_t *seen; /* [call][task][round] */
	uint64_t present, twice, torn, backward;
};

static void work(const struct crowd *c, uint64_t task, int start)
{
	char byte;

	if (c->fifo) {
		struct sched_param p = { .sched_priority = 1 + (int)(task % 8) };

		if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
			die("sched_setscheduler: %m");
	}
	if (read(start, &byte, 1) < 0)
		die("read: %m");
	for (uint64_t i = 0; i < c->rounds; i++) {
		for (uint64_t k = 0; k < c->n_calls; k++)
			syscall(calls[k].nr, (long)(FIRST + task * c->rounds + i));
		if (c->fifo && i % 64 == task % 64)
			usleep(200 + 50 * (useconds_t)task);
	}
	_exit(0);
}

static void run(const struct crowd *c)
{
	int ends[2];

	if (pipe(ends) < 0)
		die("pipe: %m");
	fflush(stdout);
	for (uint64_t task = 0; task < c->tasks; task++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork: %m");
		if (pid == 0) {
			close(ends[1]);
			work(c, task, ends[0]);
		}
	}
	close(ends[0]);
	close(ends[1]); /* all tasks begin */
	for (uint64_t task = 0; task < c->tasks; task++) {
		int status;

		if (wait(&status) < 0 || status)
			die("a task did not end as it should");
	}
}

static void see(struct crowd *c, const struct perfpersist_sample *s)
{
	uint64_t number, all = c->tasks * c->rounds;
	uint8_t *seen;
	int nr;

	if (s->raw_size < 24) {
		c->torn++;
		return;
	}
	memcpy(&nr, (const uint8_t *)s->raw + 8, sizeof(nr));
	memcpy(&number, (const uint8_t *)s->raw + 16, sizeof(number));
	number -= FIRST;
	for (uint64_t k = 0; k < c->n_calls; k++) {
		if (nr != calls[k].nr || number >= all)
			continue;
		seen = &c->seen[k * all + number];
		c->present++;
		c->twice += (*seen)++ > 0;
	}
}

static void look(struct crowd *c, struct perfpersist_event *e)
{
	struct perfpersist_snapshot *snapshot;

	if (perfpersist_snapshot_new(e, &snapshot) < 0 || perfpersist_snapshot_take(snapshot) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
		struct perfpersist_cursor *cursor;
		struct perfpersist_sample s;
		uint64_t newer = UINT64_MAX, n = 0;
		int r;

		if (perfpersist_cursor_new(snapshot, i, &cursor) < 0 ||
		    perfpersist_ring_stat(e, i, &stat) < 0)
			die("%s", perfpersist_error(NULL));
		while ((r = perfpersist_cursor_next(cursor, &s)) > 0) {
			c->backward += s.time > newer;
			newer = s.time;
			see(c, &s);
			n++;
		}
		c->torn += r < 0;
		perfpersist_cursor_free(cursor);
		if (n + 1000 < stat.records)
			die("%" PRIu64 " records of %" PRIu64
			    " are there: the buffers are too small, or "
			    "records have disappeared",
			    n, stat.records);
	}
	perfpersist_snapshot_free(snapshot);
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	struct perfpersist_info before = { .sz = sizeof(before) }, after = { .sz = sizeof(after) };
	struct perfpersist_event *e;
	struct perfpersist *p;
	struct crowd c = {};
	uint64_t made, missed, neither;

	if (argc != 7 && argc != 8)
		die("usage: calls-crowd INSTANCE NS NAME TASKS ROUNDS CALLS [fifo]");
	o.instance = *argv[1] ? argv[1] : NULL;
	c.tasks = parse_count(argv[4]);
	c.rounds = parse_count(argv[5]);
	c.n_calls = parse_count(argv[6]);
	c.fifo = argc == 8;
	made = c.tasks * c.rounds * c.n_calls;
	c.seen = calloc(1, made);
	if (c.n_calls > ARRAY_SIZE(calls) || !c.seen)
		die("too many calls");
	if (perfpersist_connect(&o, &p) < 0 || perfpersist_open(p, argv[2], argv[3], &e) < 0 ||
	    perfpersist_show(p, argv[2], argv[3], &before) < 0)
		die("%s", perfpersist_error(NULL));
	run(&c);
	look(&c, e);
	if (perfpersist_show(p, argv[2], argv[3], &after) < 0)
		die("%s", perfpersist_error(NULL));
	missed = after.missed - before.missed;
	neither = c.present + missed < made ? made - c.present - missed : 0;
	printf("made %" PRIu64 " present %" PRIu64 " missed %" PRIu64 " neither %" PRIu64 "\n",
	       made, c.present, missed, neither);
	if (neither || c.twice || c.torn || c.backward)
		die("%" PRIu64 " are neither there nor missed, %" PRIu64 " there twice, %" PRIu64
		    " torn; %" PRIu64 " times go backward",
		    neither, c.twice, c.torn, c.backward);
	perfpersist_event_free(e);
	perfpersist_free(p);
	return 0;
}
