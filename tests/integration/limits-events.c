// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reaches each limit on events and their memory, gets refused, releases, and reaches it again, many
 * times. In the end the daemon charges nothing.
 *
 *   limits-events INSTANCE events|memory ROUNDS
 *
 * The numbers below come from the daemon's configuration in test-limits.sh.
 */
#include "limits-engine.h"

#define USER (FIRST_USER + 0)
#define OTHER (FIRST_USER + 1)
#define THIRD (FIRST_USER + 2)

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

static const char *slot_name(unsigned slot)
{
	static char name[2];

	name[0] = (char)('a' + slot);
	return name;
}

#define NAMED(p, ns, name) CREATE(p, ns, name, .flags = PERFPERSIST_SHARE)

static void delete_it(struct perfpersist *p, const char *ns, const char *name)
{
	must(p, perfpersist_delete(p, ns, name, NULL), "deleting");
}

/*
 * 4 per user, 6 per namespace, 10 in all, including root's in the end. They are second names for
 * one event, if this machine gives users live rings; else events of their own.
 */
static void events(unsigned rounds)
{
	struct limit of_user = { .name = "events of a user", .says = "MaxEventsPerUser=" };
	struct limit of_ns = { .name = "events of a namespace", .says = "MaxEventsPerNamespace=" };
	struct limit of_all = { .name = "events in all", .says = "MaxEvents=" };
	struct perfpersist *user = connect_as(USER), *other = connect_as(OTHER);
	struct perfpersist *third = connect_as(THIRD);

	must(root, CREATE(root, "e1", "e", .event = NULL), "creating");
	must(root, NAMED(root, "e1", "r"), "naming");
	must(user, NAMED(user, "e2", "a"), "naming");
	must(user, NAMED(user, "e2", "b"), "naming");
	must(user, NAMED(user, "e2", "c"), "naming");
	must(other, NAMED(other, "e2", "d"), "naming");
	for (unsigned i = 0; i < rounds; i++) {
		must(user, NAMED(user, "e2", "f"), "a user's last");
		refused(&of_user, NAMED(user, "e1", "none"), perfpersist_error(user));
		must(other, NAMED(other, "e2", "g"), "a namespace's last");
		refused(&of_ns, NAMED(other, "e2", "none"), perfpersist_error(other));
		must(root, NAMED(root, "e1", "h"), "root's");
		must(root, NAMED(root, "e1", "last"), "the last");
		refused(&of_all, NAMED(third, "e1", "none"), perfpersist_error(third));
		if (i == 0)
			PERFCTL_REFUSED(&of_all, 0, "create", "e1/none", "-e", "alignment-faults");
		delete_it(root, "e1", "h");
		delete_it(root, "e1", "last");
		if (i == 0)
			PERFCTL_REFUSED(&of_ns, OTHER, "create", "e2/none", "-e", "page-faults");
		delete_it(other, "e2", "g");
		if (i == 0)
			PERFCTL_REFUSED(&of_user, USER, "create", "e1/none", "-e", "page-faults");
		delete_it(user, "e2", "f");
	}
	for (unsigned i = 0; i < 4; i++)
		delete_it(root, "e2", slot_name(i));
	delete_it(root, "e1", "e");
	delete_it(root, "e1", "r");
	perfpersist_free(user);
	perfpersist_free(other);
	perfpersist_free(third);
	tell(&of_user);
	tell(&of_ns);
	tell(&of_all);
}

/* ── memory ─────────────────────────────────────────────────────────────────────────────── */

/* The limits have room for this many events with this buffer, but not for the estimate of one
 * more. */
#define SLOTS 4
#define BUFFER (256 * 1024)

static int fill(struct perfpersist *p, const char *ns, unsigned slot)
{
	return CREATE(p, ns, slot_name(slot), .event = "oom:mark_victim", .buffer = BUFFER);
}

/* Takes the slot if its memory is free: the event is gone at once, its memory only when the kernel
 * has freed it. */
static bool take(struct perfpersist *p, const char *ns, unsigned slot, struct limit *l)
{
	int r = fill(p, ns, slot);

	if (r == 0)
		return true;
	refused(l, r, perfpersist_error(p));
	l->reached--; /* it is the same hit of the limit */
	return false;
}

/* With rings that are made and freed; it begins and ends with no room for a ring. */
static void with_rings(struct perfpersist *p, const char *ns, unsigned slots, unsigned rounds,
		       struct limit *l, void (*meanwhile)(void))
{
	for (unsigned i = 0; i < rounds; i++) {
		unsigned slot = i % slots;

		refused(l, fill(p, ns, slots), perfpersist_error(p));
		meanwhile();
		delete_it(p, ns, slot_name(slot));
		AWAIT(take(p, ns, slot, l), "memory given back");
	}
}

/*
 * With memory that the daemon charges before the rings exist and refunds because the order fails:
 * the kernel takes its time to free real rings. It begins and ends with room for one ring.
 */
static void with_orders(struct perfpersist *p, const char *ns, unsigned slots, unsigned rounds,
			struct limit *l, void (*meanwhile)(void))
{
	uint64_t before = total_line().memory;
	pid_t engine = engine_pid();

	for (unsigned i = 0; i < rounds; i++) {
		memset(&answers, 0, sizeof(answers));
		stop_engine(engine);
		ask_the_engine(p, ns, BUFFER);
		AWAIT(total_line().memory > before, "the charge");
		refused(l, fill(p, ns, slots), perfpersist_error(p));
		meanwhile();
		continue_engine(engine);
		AWAIT(dispatched(p) && answers.nonexistent == 1, "the engine's answer");
		if (total_line().memory != before)
			die("failed orders are still charged");
	}
}

static void memory_of(struct perfpersist *p, const char *ns, unsigned slots, unsigned rounds,
		      struct limit *l, void (*meanwhile)(void))
{
	for (unsigned i = 0; i < slots - 1; i++)
		must(p, fill(p, ns, i), "creating");
	with_orders(p, ns, slots, rounds - rounds / 10, l, meanwhile);
	must(p, fill(p, ns, slots - 1), "creating");
	with_rings(p, ns, slots, rounds / 10, l, meanwhile);
	for (unsigned i = 0; i < slots; i++)
		delete_it(p, ns, slot_name(i));
}

static struct limit memory_of_ns = { .name = "memory of a namespace",
				     .says = "MaxMemory= of its section" };
static struct limit memory_of_user = { .name = "memory of a user", .says = "MaxMemoryPerUser=" };
static struct limit memory_of_all = { .name = "memory in all", .says = "MaxMemory=" };
static struct perfpersist *neighbour;

/* This reaches the user's limit and that of the namespace, which has the same events. */
static void ask_as_neighbour(void)
{
	refused(&memory_of_ns, fill(neighbour, "m", SLOTS), perfpersist_error(neighbour));
	if (memory_of_ns.reached > 1)
		return;
	PERFCTL_REFUSED(&memory_of_ns, OTHER, "create", "m/none", "-e", "page-faults", "-m", "256K",
			"-C", first_cpu());
	PERFCTL_REFUSED(&memory_of_user, USER, "create", "m/none", "-e", "page-faults", "-m",
			"256K", "-C", first_cpu());
}

static void ask_as_anybody(void)
{
	if (memory_of_all.reached == 1)
		PERFCTL_REFUSED(&memory_of_all, OTHER, "create", "n/none", "-e", "page-faults",
				"-C", first_cpu(), "-m", "256K");
}

static void memory(unsigned rounds)
{
	struct perfpersist *user = connect_as(USER);

	neighbour = connect_as(OTHER);
	memory_of(user, "m", SLOTS, rounds, &memory_of_user, ask_as_neighbour);
	tell(&memory_of_user);
	tell(&memory_of_ns);
	AWAIT(total_line().memory == 0, "the memory to be free");
	memory_of(root, "n", SLOTS + 1, rounds, &memory_of_all, ask_as_anybody);
	tell(&memory_of_all);
	perfpersist_free(user);
	perfpersist_free(neighbour);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static const struct {
	const char *name;
	void (*run)(unsigned rounds);
} modes[] = {
	{ "events", events },
	{ "memory", memory },
};

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: limits-events INSTANCE LIMIT ROUNDS\n");
		return 2;
	}
	begin(argv[1]);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(argv[2], modes[i].name) != 0)
			continue;
		modes[i].run((unsigned)atoi(argv[3]));
		AWAIT(nothing_is_charged(), "nothing to be charged");
		perfpersist_free(root);
		return 0;
	}
	die("there is no limit '%s'", argv[2]);
}
