// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pretends that CPUs go offline and online, and shows how the engine reacts; see hotplug.h. Several
 * verbs, separated by +, run one after the other.
 *
 *   hotplug INSTANCE down|up CPU       the hotplug steps of a CPU
 *   hotplug INSTANCE undone CPU        down, and then the kernel rolls back
 *   hotplug INSTANCE state CPU         "GENERATION AWAY"
 *   hotplug INSTANCE come ID CPU…      tells the engine that these are online; prints its
 *                                      answer: "rings=MASK incomplete=0", or its error (exit 1)
 *   hotplug INSTANCE incomplete ID          0 or 1, as enumerated
 *   hotplug INSTANCE bounce N CPU NAMESPACE/EVENT/LINK:ID…
 *                                      N times down, up, incomplete, told, another link, not incomplete
 *   hotplug INSTANCE link LEAF         a link's id
 *   hotplug INSTANCE call CPU N        on that CPU N times pp_called(), and the system call
 *                                      sched_rr_get_interval
 *   hotplug INSTANCE calls CPU N       the same so often at least, and until SIGTERM; prints how
 *                                      often it was
 */
#include "tests/integration/hotplug.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

static const char *instance;

static unsigned number(const char *text)
{
	unsigned n;

	if (sscanf(text, "%u", &n) != 1)
		die("'%s' is not a number", text);
	return n;
}

static uint64_t id_of(const char *text)
{
	unsigned long long id;

	if (sscanf(text, "%llu", &id) != 1)
		die("'%s' is not an id", text);
	return id;
}

static void go(const char *how, unsigned cpu)
{
	unsigned step = hotplug_perf_step();

	/* Other steps have no effect. */
	hotplug_run(instance, cpu, 0, step + 1);
	if (strcmp(how, "up") != 0)
		hotplug_run(instance, cpu, 0, step);
	if (strcmp(how, "down") != 0)
		hotplug_run(instance, cpu, step + 10, step);
	hotplug_run(instance, cpu, 0, step - 1);
}

static int come(uint64_t id, const struct pp_cpumask *cpus)
{
	static struct pp_answer answer;

	hotplug_order(instance, id, cpus, &answer);
	if (answer.type != PP_ANSWER_DONE) {
		fprintf(stderr, "%s\n", answer.sentence);
		return 1;
	}
	printf("rings=%llx incomplete=%u\n", (unsigned long long)answer.event.rings.bits[0],
	       (answer.event.now & PP_NOW_INCOMPLETE));
	return 0;
}

static unsigned is_incomplete(uint64_t id)
{
	static struct pp_event event;

	if (!hotplug_find(instance, id, &event))
		die("there is no event %llu", (unsigned long long)id);
	return event.now & PP_NOW_INCOMPLETE;
}

/* ── offline and online again ───────────────────────────────────────────────────────────── */

static void bounce_event(unsigned cpu, const char *leaf, uint64_t id)
{
	static struct pp_answer answer;
	struct pp_cpumask cpus = { 0 };
	unsigned before = hotplug_link(instance, leaf).id;

	pp_cpumask_set(&cpus, cpu);
	if (!is_incomplete(id))
		die("%s: nothing is incomplete, although the CPU was offline", leaf);
	hotplug_order(instance, id, &cpus, &answer);
	if (answer.type != PP_ANSWER_DONE)
		die("%s: %s", leaf, answer.sentence);
	if ((answer.event.now & PP_NOW_INCOMPLETE) || is_incomplete(id))
		die("%s is still incomplete", leaf);
	if (hotplug_link(instance, leaf).id == before)
		die("%s is the same link as before", leaf);
}

static void bounce(unsigned times, unsigned cpu, char **events, int n)
{
	uint64_t generation = hotplug_state(instance, cpu).generation;

	for (unsigned t = 0; t < times; t++) {
		struct pp_cpu_state state;

		go("down", cpu);
		state = hotplug_state(instance, cpu);
		if (!state.away || state.generation != ++generation)
			die("a CPU went offline, and generation is %llu, offline since %llu",
			    (unsigned long long)state.generation, (unsigned long long)state.away);
		go("up", cpu);
		if (hotplug_state(instance, cpu).away)
			die("the CPU is online again, and reported as offline");
		for (int i = 0; i < n; i++) {
			char leaf[256];
			unsigned long long id;

			if (sscanf(events[i], "%255[^:]:%llu", leaf, &id) != 2)
				die("'%s' is not LEAF:ID", events[i]);
			bounce_event(cpu, leaf, id);
		}
	}
}

/* A place for a uprobe. */
__attribute__((noinline, used)) static void pp_called(unsigned i)
{
	__asm__ volatile("" : : "r"(i) : "memory");
}

static void stay_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("not on CPU %u: %m", cpu);
}

static void call_once(unsigned i)
{
	struct timespec t;

	pp_called(i);
	if (sched_rr_get_interval(0, &t) < 0)
		die("sched_rr_get_interval: %m");
}

static void call(unsigned cpu, unsigned times)
{
	stay_on(cpu);
	for (unsigned i = 0; i < times; i++)
		call_once(i);
}

static atomic_bool stop;

static void on_term(int number)
{
	(void)number;
	stop = true;
}

static void calls(unsigned cpu, unsigned times)
{
	unsigned n = 0;

	signal(SIGTERM, on_term);
	stay_on(cpu);
	for (; n < times || !stop; n++)
		call_once(n);
	printf("%u\n", n);
}

static int act(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[0] : "";
	struct pp_cpumask cpus = { 0 };

	for (int i = 2; i < argc && !strcmp(verb, "come"); i++)
		pp_cpumask_set(&cpus, number(argv[i]));
	if (!strcmp(verb, "down") || !strcmp(verb, "up") || !strcmp(verb, "undone"))
		go(verb, number(argv[1]));
	else if (!strcmp(verb, "come"))
		return come(id_of(argv[1]), &cpus);
	else if (!strcmp(verb, "incomplete"))
		printf("%u\n", is_incomplete(id_of(argv[1])));
	else if (!strcmp(verb, "link"))
		printf("%u\n", hotplug_link(instance, argv[1]).id);
	else if (!strcmp(verb, "state"))
		printf("%llu %llu\n",
		       (unsigned long long)hotplug_state(instance, number(argv[1])).generation,
		       (unsigned long long)hotplug_state(instance, number(argv[1])).away);
	else if (!strcmp(verb, "call") && argc == 3)
		call(number(argv[1]), number(argv[2]));
	else if (!strcmp(verb, "calls") && argc == 3)
		calls(number(argv[1]), number(argv[2]));
	else if (!strcmp(verb, "bounce") && argc > 3)
		bounce(number(argv[1]), number(argv[2]), argv + 3, argc - 3);
	else
		die("no such verb: %s", verb);
	return 0;
}

int main(int argc, char **argv)
{
	int first = 2, r = 0;

	if (argc < 4)
		die("usage: hotplug INSTANCE VERB … [+ VERB …]…, see its source");
	instance = argv[1];
	for (int i = 2; i <= argc && !r; i++)
		if (i == argc || !strcmp(argv[i], "+")) {
			r = act(i - first, argv + first);
			first = i + 1;
		}
	return r;
}
