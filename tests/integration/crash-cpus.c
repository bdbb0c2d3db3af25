// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kills the engine at each step of handling a CPU that comes online, lets its successor discover
 * the remaining state, and checks that state each time: the event has the CPU's ring or not, keeps
 * recording, and the next order completes it.
 *
 *   crash-cpus INSTANCE BUILD BROKER-UID FIRST CPU NAMESPACE/EVENT=ID…
 *
 * Each event records sched_getscheduler, and cpu-clock as its second source, on CPU FIRST, and
 * has no ring yet on CPU. There is no broker. Each step needs an event of its own.
 */
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "tests/integration/hotplug.h"
#include "tests/integration/tracer.h"

#define PATIENCE 30 /* seconds from one thing that happens to the next */
#define CALLS 20

static struct services services;
static unsigned first, last;
static struct tally kills;

struct victim {
	char path[160];
	unsigned long long id;
};

/* ── the engine ─────────────────────────────────────────────────────────────────────────── */

static void on_alarm(int signal_number _unused_)
{
	if (services.pid[ENGINE] > 0)
		kill(services.pid[ENGINE], SIGKILL);
	dprintf(STDERR_FILENO, "failed: stuck\n");
	_exit(1);
}

static void start_engine(void)
{
	services.pid[ENGINE] = services_spawn(&services, ENGINE, -1);
}

static void bury_engine(void)
{
	int status;

	kill(services.pid[ENGINE], SIGKILL);
	if (waitpid(services.pid[ENGINE], &status, __WALL) < 0)
		die("no engine to bury: %m");
	services.pid[ENGINE] = 0;
}

static bool is_answered(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, 0) > 0;
}

/* The links to ids exist for every event already. */
static bool is_step(int call)
{
#ifdef SYS_symlink
	if (call == SYS_symlink)
		return false;
#endif
	return call_counts(call) && call != SYS_symlinkat;
}

/* Lets the engine run to its n-th step, and kills it there. Returns false if it answered before. */
static bool hunt(unsigned n, int fd)
{
	pid_t pid = services.pid[ENGINE], news;
	unsigned seen = 0;
	int status, call;

	while (!is_answered(fd)) {
		news = tracer_wait(&status);
		if (news == 0)
			continue;
		alarm(PATIENCE);
		if (news != pid || !WIFSTOPPED(status))
			die("process %d ended by itself with status 0x%x", news, status);
		call = tracer_entry(pid, status);
		if (is_step(call) && ++seen == n) {
			tally_add(&kills, call);
			bury_engine();
			return true;
		}
		tracer_go_on(pid, status, true);
	}
	tracer_end(pid);
	return false;
}

/* ── the state ──────────────────────────────────────────────────────────────────────────── */

static unsigned long long records_on(const struct victim *v, unsigned cpu)
{
	char path[512], line[256];
	unsigned long long n, found = 0;
	_cleanup_fclose_ FILE *f = NULL;
	unsigned of;

	if (pp_place(services.instance, "/registry/", path, sizeof(path)) < 0)
		die("no registry");
	strncat(path, v->path, sizeof(path) - strlen(path) - 1);
	strncat(path, "/stat", sizeof(path) - strlen(path) - 1);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%u records=%llu", &of, &n) == 2 && of == cpu)
			found = n;
	return found;
}

static void expect_records(const struct victim *v, unsigned cpu)
{
	unsigned long long before = records_on(v, cpu);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("not on CPU %u: %m", cpu);
	for (unsigned i = 0; i < CALLS; i++)
		sched_getscheduler(0);
	if (records_on(v, cpu) < before + CALLS / 2)
		die("%s does not record on CPU %u", v->path, cpu);
}

static bool has_pin(const struct victim *v, const char *leaf, unsigned cpu)
{
	char path[512];

	if (pp_place(services.instance, "/registry/", path, sizeof(path)) < 0)
		die("no registry");
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s/%s", v->path, leaf);
	if (cpu != UINT32_MAX)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "%u", cpu);
	return access(path, F_OK) == 0;
}

/* The ring is complete or absent; a link exists only with a ring. */
static void check_whole(const struct victim *v, bool *ret_done)
{
	struct pp_event e;

	if (!hotplug_find(services.instance, v->id, &e))
		die("%s is gone", v->path);
	*ret_done = pp_cpumask_test(&e.rings, last);
	if (!pp_cpumask_test(&e.rings, first) || has_pin(v, "cpu", last) != *ret_done ||
	    (has_pin(v, "link1-", last) && !*ret_done) || has_pin(v, "+pin", UINT32_MAX))
		die("%s is half changed: %s a ring, %s pinned, %s link", v->path,
		    *ret_done ? "it has" : "it has not", has_pin(v, "cpu", last) ? "it is" : "not",
		    has_pin(v, "link1-", last) ? "and a" : "and no");
	if (!*ret_done && !(e.now & PP_NOW_INCOMPLETE))
		die("%s lacks a CPU, and is not incomplete", v->path);
	expect_records(v, first);
	if (*ret_done)
		expect_records(v, last);
}

/* Sends the broker's next order. */
static void make_whole(const struct victim *v)
{
	static struct pp_answer answer;
	struct pp_cpumask cpus = { 0 };
	bool done;

	pp_cpumask_set(&cpus, last);
	hotplug_order(services.instance, v->id, &cpus, &answer);
	if (answer.type != PP_ANSWER_DONE || (answer.event.now & PP_NOW_INCOMPLETE))
		die("%s cannot be made whole: %s", v->path, answer.sentence);
	check_whole(v, &done);
	if (!done || !has_pin(v, "link1-", last))
		die("%s is not whole after the order", v->path);
}

/* ── deaths ─────────────────────────────────────────────────────────────────────────────── */

static void give_order(int fd, const struct victim *v)
{
	static struct pp_order order;
	size_t size = offsetof(struct pp_order, parsed);

	order = (struct pp_order){
		.abi = PP_ORDER_ABI, .type = PP_ORDER_CPUS, .serial = 1, .id = v->id
	};
	pp_cpumask_set(&order.spec.cpus, last);
	if (send(fd, &order, size, MSG_NOSIGNAL) != (ssize_t)size)
		die("the order cannot be sent: %m");
}

/* Returns false if the engine carried out the order before the n-th step. */
static bool die_in_order(const struct victim *v, unsigned n)
{
	_cleanup_close_ int fd = -EBADF;
	struct pp_event e;

	if (!hotplug_find(services.instance, v->id, &e) || !(e.now & PP_NOW_INCOMPLETE))
		die("%s is not as it shall be", v->path);
	tracer_begin(services.pid[ENGINE], true);
	fd = hotplug_connect(services.instance);
	give_order(fd, v);
	return hunt(n, fd);
}

int main(int argc, char **argv)
{
	bool killed = true;
	unsigned done = 0, n = 0;

	if (argc < 7 || sscanf(argv[4], "%u", &first) != 1 || sscanf(argv[5], "%u", &last) != 1)
		die("usage: crash-cpus INSTANCE BUILD BROKER-UID FIRST CPU EVENT=ID…");
	services = (struct services){ .instance = argv[1], .build = argv[2], .uid = argv[3] };
	signal(SIGALRM, on_alarm);
	tracer_block();
	services.listen[ENGINE] = services_listen(&services, "/engine", 0600);
	start_engine();
	for (; killed; n++) {
		struct victim v;
		bool is_done;

		if ((int)n + 6 >= argc) {
			tally_print(&kills);
			die("more events are needed than %u", n);
		}
		if (sscanf(argv[6 + n], "%159[^=]=%llu", v.path, &v.id) != 2)
			die("'%s' is not NAMESPACE/EVENT=ID", argv[6 + n]);
		alarm(PATIENCE);
		killed = die_in_order(&v, n + 1);
		alarm(PATIENCE);
		if (killed)
			start_engine();
		check_whole(&v, &is_done);
		done += killed && is_done;
		alarm(PATIENCE);
		make_whole(&v);
	}
	bury_engine();
	printf("%u deaths, at", kills.n);
	tally_print(&kills);
	printf("; done %u times\n", done);
	return 0;
}
