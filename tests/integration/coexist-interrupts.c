// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares perf's count of a tracepoint in interrupts with our event on the same tracepoint, on a
 * CPU that only makes system calls:
 *
 *   coexist-interrupts INSTANCE NAMESPACE/EVENT CPU MILLISECONDS told|untouched
 *
 * The event is on irq_vectors:local_timer_entry, on that CPU alone. The true count is the number of
 * local timer interrupts in /proc/interrupts. untouched: perf counts all of them. told: where the
 * kernel shuts our program out it hides the event from perf too, so that perf's count and our
 * missed count add up to all of them. Exit 0, 1 or 2 (could not run).
 *
 * The three counts cannot be read at the same time: perf's count and ours are read before and after
 * the true count, which must lie between the two sums.
 */
#include "tests/integration/observe.h"

static uint64_t timer_interrupts(int cpu)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/interrupts", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int column = -1;

	/* The first line names the CPUs, because there may be gaps. */
	for (char *at, *word; f && getline(&line, &size, f) > 0;) {
		word = strtok_r(line, " \n", &at);
		if (column < 0) {
			for (int i = 0; word; i++, word = strtok_r(NULL, " \n", &at))
				if (!strncmp(word, "CPU", 3) && atoi(word + 3) == cpu)
					column = i;
		} else if (word && !strcmp(word, "LOC:")) {
			for (int i = 0; i <= column && word; i++)
				word = strtok_r(NULL, " \n", &at);
			if (word)
				return parse_count(word);
		}
	}
	die("/proc/interrupts has no local timer interrupts of CPU %d", cpu);
}

struct told {
	uint64_t perf, missed;
};

struct edge {
	struct told before, behind;
	uint64_t truth;
};

static struct told read_told(struct perfpersist *p, const char *name, int counter)
{
	return (struct told){ .perf = read_counter(counter), .missed = missed_of(p, name) };
}

static struct edge read_edge(struct perfpersist *p, const char *name, int cpu, int counter)
{
	struct edge e;

	e.before = read_told(p, name, counter);
	e.truth = timer_interrupts(cpu);
	e.behind = read_told(p, name, counter);
	return e;
}

static void call_forever(int cpu)
{
	pin_to(cpu);
	for (;;)
		syscall(SYS_close, -1L);
}

int main(int argc, char **argv)
{
	const struct perf_event_attr *attr;
	struct perfpersist_event *e;
	struct perfpersist *p;
	uint64_t truth, perf, ours, missed, since, length, least, most;
	struct edge begin, end;
	size_t attr_size;
	int cpu, counter, failed = 0;
	bool told;
	pid_t child;

	if (argc != 6)
		die("usage: coexist-interrupts INSTANCE NAMESPACE/EVENT CPU MILLISECONDS "
		    "told|untouched");
	cpu = (int)parse_count(argv[3]);
	length = parse_count(argv[4]) * 1000000;
	told = !strcmp(argv[5], "told");
	p = connect_to(argv[1]);
	e = open_event(p, argv[2]);
	attr = perfpersist_event_attr(e, &attr_size);
	counter = open_counter(PERF_TYPE_TRACEPOINT, attr->config, -1, cpu);
	child = fork_helper();
	if (child == 0)
		call_forever(cpu);

	usleep(10000); /* not on that CPU: the pause only lets the CPU get busy */
	ours = ring_stat(e, 0).records;
	begin = read_edge(p, argv[2], cpu, counter);
	since = now();
	while (now() - since < length)
		usleep(10000);
	end = read_edge(p, argv[2], cpu, counter);
	ours = ring_stat(e, 0).records - ours;
	end_helper(child);

	truth = end.truth - begin.truth;
	perf = end.before.perf - begin.behind.perf;
	missed = end.before.missed - begin.behind.missed;
	least = perf + (told ? missed : 0);
	most = end.behind.perf - begin.before.perf;
	if (told)
		most += end.behind.missed - begin.before.missed;
	printf("%s: %" PRIu64 " timer interrupts, %" PRIu64 " counted by perf; %" PRIu64
	       " recorded, %" PRIu64 " missed\n",
	       argv[2], truth, perf, ours, missed);
	fflush(stdout);
	if (most * 100 < truth * 98 || least * 98 > truth * 100) {
		fprintf(stderr, "%s: perf's count%s is not within 2 %% of the truth\n", argv[2],
			told ? ", with what is missed," : "");
		failed = 1;
	}
	perfpersist_event_free(e);
	perfpersist_free(p);
	return failed;
}
