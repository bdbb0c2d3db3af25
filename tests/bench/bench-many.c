// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures, with a thousand events in fifty namespaces, how long a list takes, and how long another
 * client waits for an answer while syscalls:* is created and deleted.
 *
 *   bench-many INSTANCE TRACEFS
 */
#include <dirent.h>
#include <poll.h>
#include <sys/wait.h>

#include "measure.h"

#define EVENTS 1000
#define NAMESPACES 50
#define UNDER_WAY 16 /* requests; a daemon reads no more of one client by default */
#define LISTS 50
#define LARGE 5
#define REQUESTS_MAX 100000

static unsigned under_way;

static void on_made(struct perfpersist *p, const struct perfpersist_result *result,
		    void *userdata _unused_)
{
	if (result->error < 0)
		die("%s", perfpersist_error(p));
	under_way--;
}

static void await_room(struct perfpersist *p, unsigned most)
{
	while (under_way > most) {
		struct pollfd fd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };

		if (poll(&fd, 1, -1) < 0 || perfpersist_dispatch(p) < 0)
			die("%s", perfpersist_error(p));
	}
}

static void make_one(struct perfpersist *p, unsigned i, const char *tracepoint)
{
	char event[300], ns[32], name[32], cpu[16];
	struct perfpersist_create_options o = {
		.sz = sizeof(o), .event = event, .cpus = cpu, .buffer = 4096
	};
	int first;

	if (usable_cpus(&first, 1) == 0)
		die("there is no CPU to record on");
	snprintf(cpu, sizeof(cpu), "%d", first);
	snprintf(event, sizeof(event), "syscalls:%s", tracepoint);
	snprintf(ns, sizeof(ns), "many%u", i % NAMESPACES);
	snprintf(name, sizeof(name), "e%u", i);
	await_room(p, UNDER_WAY - 1);
	if (perfpersist_create_async(p, ns, name, &o, on_made, NULL) < 0)
		die("%s", perfpersist_error(p));
	under_way++;
}

/* Every event records all system calls. */
static void make_events(struct perfpersist *p, const char *tracefs)
{
	char path[256];
	unsigned n = 0, before;

	snprintf(path, sizeof(path), "%s/events/syscalls", tracefs);
	do {
		_cleanup_closedir_ DIR *d = opendir(path);
		const struct dirent *e;

		if (!d)
			die("cannot read %s: %m", path);
		before = n;
		while (n < EVENTS && (e = readdir(d)))
			if (strncmp(e->d_name, "sys_", 4) == 0)
				make_one(p, n++, e->d_name);
	} while (n > before && n < EVENTS);
	await_room(p, 0);
	if (n < EVENTS)
		die("there are no tracepoints in %s", path);
}

static void measure_lists(struct perfpersist *p)
{
	double us[LISTS];

	for (unsigned i = 0; i < LISTS; i++) {
		uint64_t begun = now(CLOCK_MONOTONIC);
		struct perfpersist_info *all;
		size_t n;

		if (perfpersist_list(p, NULL, &all, &n) < 0)
			die("%s", perfpersist_error(p));
		us[i] = (double)(now(CLOCK_MONOTONIC) - begun) / 1e3;
		free(all);
		if (n != EVENTS)
			die("%zu events are listed, and there are %d", n, EVENTS);
	}
	print_result("list_us", us, LISTS);
}

static pid_t create_and_delete(const char *instance)
{
	struct perfpersist_create_options o = { .sz = sizeof(o), .event = "syscalls:*" };
	struct perfpersist *p;
	double ms[LARGE];
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork: %m");
	if (pid > 0)
		return pid;
	p = connect_to(instance);
	for (unsigned i = 0; i < LARGE; i++) {
		uint64_t begun = now(CLOCK_MONOTONIC);

		if (perfpersist_create(p, NAMESPACE, "large", &o, NULL) < 0)
			die("%s", perfpersist_error(p));
		ms[i] = (double)(now(CLOCK_MONOTONIC) - begun) / 1e6;
		if (perfpersist_delete(p, NAMESPACE, "large", NULL) < 0)
			die("%s", perfpersist_error(p));
	}
	print_result("create_large_ms", ms, LARGE);
	fflush(stdout);
	_exit(0);
}

static double one_request(struct perfpersist *p, unsigned which)
{
	struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t begun = now(CLOCK_MONOTONIC);
	struct perfpersist_event *e = NULL;
	int r = which == 0   ? perfpersist_ping(p, &daemon)
		: which == 1 ? perfpersist_show(p, "many0", "e0", &info)
			     : perfpersist_open(p, "many0", "e0", &e);

	if (r < 0)
		die("%s", perfpersist_error(p));
	begun = now(CLOCK_MONOTONIC) - begun;
	perfpersist_event_free(e);
	return (double)begun / 1e3;
}

/* Prints the 99th percentile, the median and the maximum. */
static void measure_beside(struct perfpersist *p, const char *instance)
{
	_cleanup_free_ double *us = calloc(REQUESTS_MAX, sizeof(*us));
	pid_t pid = create_and_delete(instance);
	size_t n = 0;
	int status = 0;

	for (; us && waitpid(pid, &status, WNOHANG) == 0 && n < REQUESTS_MAX; n++) {
		us[n] = one_request(p, n % 3);
		poll(NULL, 0, 1); /* without a pause it would keep a CPU from the daemon */
	}
	if (n == 0 || status != 0)
		die("syscalls:* cannot be created");
	qsort(us, n, sizeof(*us), compare_doubles);
	printf("beside_p99_us %.2f %.2f %.2f\n", quantile(us, n, 0.99), quantile(us, n, 0.5),
	       quantile(us, n, 1));
}

int main(int argc, char **argv)
{
	struct perfpersist *p;

	if (argc != 3)
		die("usage: bench-many INSTANCE TRACEFS");
	p = connect_to(argv[1]);
	make_events(p, argv[2]);
	measure_lists(p);
	fflush(stdout);
	measure_beside(p, argv[1]);
	perfpersist_free(p);
	return 0;
}
