// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A load for presets.sh, on each CPU at once, of as many operations as one can count:
 *
 *   bench-presets switches|calls|programs|connections|disk OPERATIONS DIRECTORY
 *
 * Prints how many operations there were on all CPUs, nanoseconds of CPU time of each, and seconds.
 * CPU time and not the clock, because others may use the machine.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "measure.h"

#define BLOCK 4096

static const char *directory;

/* ── one CPU's load ─────────────────────────────────────────────────────────────────────── */

/* Two tasks wake each other: an operation is a switch to one of them, which is woken for it. */
static void switches(uint64_t n)
{
	int to[2], back[2];
	char c = 0;
	pid_t other;

	if (pipe(to) < 0 || pipe(back) < 0 || (other = fork()) < 0)
		die("cannot make two tasks: %m");
	for (uint64_t i = 0; i < n / 2; i++) {
		int in = other ? back[0] : to[0], out = other ? to[1] : back[1];

		if ((other && write(out, &c, 1) != 1) || read(in, &c, 1) != 1 ||
		    (!other && write(out, &c, 1) != 1))
			die("a pipe is broken: %m");
	}
	if (!other)
		_exit(0);
	waitpid(other, NULL, 0);
}

static void calls(uint64_t n)
{
	while (n--)
		call();
}

static void programs(uint64_t n)
{
	char *const argv[] = { "true", NULL }, *const envp[] = { NULL };
	pid_t pid;

	while (n--) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, envp) != 0)
			die("cannot run /bin/true");
		waitpid(pid, NULL, 0);
	}
}

static void connections(uint64_t n)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger reset = { .l_onoff = 1 }; /* no port stays in TIME_WAIT */
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(at);

	if (server < 0 || bind(server, (void *)&at, size) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (void *)&at, &size) < 0)
		die("cannot listen: %m");
	while (n--) {
		int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), accepted;

		if (connect(client, (void *)&at, size) < 0 ||
		    (accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC)) < 0)
			die("cannot connect: %m");
		setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(client);
		close(accepted);
	}
}

static void disk(uint64_t n)
{
	static char block[BLOCK] __attribute__((aligned(BLOCK)));
	int fd = open(directory, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0)
		die("cannot write past the page cache in %s: %m", directory);
	while (n--)
		if (pwrite(fd, block, sizeof(block), (off_t)(n % 256) * BLOCK) != sizeof(block))
			die("cannot write: %m");
}

static const struct load {
	const char *name;
	void (*run)(uint64_t n);
} loads[] = {
	{ "switches", switches },	{ "calls", calls }, { "programs", programs },
	{ "connections", connections }, { "disk", disk },   {},
};

/* ── all CPUs ───────────────────────────────────────────────────────────────────────────── */

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	const struct load *l = loads;
	int cpus[CPUS_MAX], status;
	size_t n_cpus = usable_cpus(cpus, CPUS_MAX);
	uint64_t n = argc == 4 ? strtoull(argv[2], NULL, 10) : 0, begin = now(CLOCK_MONOTONIC);
	struct rusage used;

	while (argc == 4 && l->name && strcmp(l->name, argv[1]) != 0)
		l++;
	if (n == 0 || !l->name)
		die("usage: bench-presets LOAD OPERATIONS DIRECTORY");
	directory = argv[3];
	for (size_t i = 0; i < n_cpus; i++) {
		if (fork() != 0)
			continue;
		stay_on(cpus[i]);
		l->run(n);
		_exit(0);
	}
	while (wait(&status) > 0)
		if (status != 0)
			return 1;
	getrusage(RUSAGE_CHILDREN, &used);
	printf("%llu %.1f %.3f\n", (unsigned long long)n * n_cpus,
	       (seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime)) * 1e9 / (double)n /
		       (double)n_cpus,
	       (double)(now(CLOCK_MONOTONIC) - begin) / 1e9);
	return 0;
}
