// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events on a real bpffs and this kernel: created, changed under load, paused, while the engine is
 * killed. They record close(-1) calls of processes with a unique name.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/syntax/spec.h"
#include "daemon/cpus.h"
#include "daemon/trigger.h"
#include "daemon/engine/exchange.h"
#include "daemon/engine/orders.h"
#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/rings.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/tapes.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/filter.h"
#include "daemon/log.h"
#include "daemon/totals.h"
#include "dying.h"
#include "proto/catalog.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/task-start.h"

#include "needs.h" /* after these, because check.h has a macro fail() */

#define BROKER 61999
#define NAME "life/event"
#define ENTER "raw_syscalls:sys_enter"
#define BOTH "raw_syscalls:sys_enter,raw_syscalls:sys_exit"
#define MANY "syscalls:sys_*_c*" /* 54 on Linux 6.18 */
#define MINE "comm == \"%s\" && %s == %d"
#define SMALL 65536
#define LARGE 131072

static char registry[] = "/tmp/perfpersist-life-XXXXXX";
static char closer_name[16]; /* unique to this run of the test */

static void setup(void)
{
	umount2(registry, MNT_DETACH); /* left by a failed test */
	ck_assert_int_eq(pins_open(registry), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

/* ── orders ─────────────────────────────────────────────────────────────────────────────── */

/* The request. It is large, so it is not on the stack. */
static struct pp_spec spec;
static struct pp_parsed parsed;
static struct failure failure;

static void ask(const char *event, uint64_t data_size, uint32_t flags)
{
	char sentence[512];
	int n;

	memset(&spec, 0, sizeof(spec));
	memset(&parsed, 0, sizeof(parsed));
	memset(&failure, 0, sizeof(failure));
	strcpy(spec.ns, "life");
	strcpy(spec.name, "event");
	snprintf(spec.event, sizeof(spec.event), "%s", event);
	spec.data_size = data_size;
	spec.flags = flags | PP_EVENT_ALL_CPUS;
	spec.mode = 0640;
	n = *event ? pp_spec_parse(event, parsed.sources, PP_TERMS_MAX, sentence, sizeof(sentence))
		   : 0;
	ck_assert_msg(n >= 0, "%s", sentence);
	parsed.n_sources = n;
	for (int i = 0; i < n; i++)
		if (parsed.sources[i].kind == PP_SOURCE_SAMPLING) {
			spec.period = 1000;
			spec.flags |= PP_EVENT_FREQ;
		}
}

/* For the requested sources [from, …), or for a change. */
static void ask_filter(uint32_t from, const char *filter)
{
	char sentence[512];
	int n = pp_filter_parse(filter, parsed.nodes + parsed.n_nodes,
				PP_FILTER_NODES_MAX - parsed.n_nodes, sentence, sizeof(sentence));

	ck_assert_msg(n > 0, "%s", sentence);
	for (uint32_t i = from; i < parsed.n_sources; i++) {
		parsed.sources[i].filter = parsed.n_nodes;
		parsed.sources[i].n_filter = n;
	}
	parsed.n_nodes += n;
	snprintf(spec.filter, sizeof(spec.filter), "%s", filter);
}

static const char *number = "id"; /* the field with the call's number */

/* A filter that passes the closers' calls, with another text for each i. */
static void ask_mine(int i)
{
	char filter[PP_FILTER_SIZE];

	snprintf(filter, sizeof(filter), MINE " && common_pid != %d", closer_name, number, 3,
		 i + 1);
	ask_filter(0, filter);
}

static struct pp_event create(void)
{
	struct pp_event e;

	ck_assert_int_eq(pp_spec_check(&spec), 0);
	ck_assert_int_eq(pp_parsed_check(&parsed, true), 0);
	ck_assert_msg(event_create(&spec, &parsed, NULL, 0, NULL, NULL, BROKER, &e, &failure) == 0,
		      "%s", failure.sentence);
	ck_assert_int_eq(pp_event_check(&e), 0);
	return e;
}

static struct pp_event created(const char *event, uint32_t flags)
{
	ask(event, SMALL, flags);
	number = strncmp(event, "syscalls:", 9) ? "id" : "__syscall_nr";
	ask_mine(0);
	return create();
}

static struct pp_event change(uint32_t what)
{
	struct pp_orphans orphans;
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_msg(event_change(e.id, what, &spec, &parsed, NULL, BROKER, &orphans, &failure) ==
			      0,
		      "%s", failure.sentence);
	ck_assert_int_eq(orphans.id != 0, (what & PP_CHANGE_BUFFER) != 0);
	ck_assert_int_eq(event_read(NAME, &e), 0);
	return e;
}

static void pause_it(bool pause)
{
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_msg(event_pause(e.id, pause, NULL, BROKER, &failure) == 0, "%s",
		      failure.sentence);
	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_int_eq(e.paused, pause);
}

static void delete (void)
{
	struct pp_orphans orphans;
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_msg(names_delete(e.id, NULL, BROKER, &e, &orphans, &failure) == 0, "%s",
		      failure.sentence);
	reaper_wait(INT_MAX);
}

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

/* Every ring that the event has had, mapped: older sets have other ids. */
static struct held {
	uint32_t id;
	const struct pp_ring_header *ring;
} held[64];
static size_t n_held;

static bool is_held(uint32_t id)
{
	for (size_t i = 0; i < n_held; i++)
		if (held[i].id == id)
			return true;
	return false;
}

static void hold(void)
{
	_cleanup_close_ int meta = pins_get(NAME, "meta");
	_cleanup_free_ struct meta_map *maps = NULL;
	struct pp_event e;
	size_t n;

	ck_assert_int_eq(meta_read_all(meta, &e, NULL, &maps, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		_cleanup_close_ int fd = -EBADF;

		if (maps[i].cpu == UINT32_MAX || is_held(maps[i].id))
			continue;
		ck_assert_uint_lt(n_held, ARRAY_SIZE(held));
		fd = meta_map_open(&maps[i]);
		held[n_held] = (struct held){ maps[i].id, mmap(NULL, PP_RING_PAGE, PROT_READ,
							       MAP_SHARED, fd, 0) };
		ck_assert_ptr_ne(held[n_held].ring, MAP_FAILED);
		ck_assert_uint_eq(held[n_held++].ring->set, e.set);
	}
}

static void let_go(void)
{
	while (n_held > 0)
		munmap((void *)held[--n_held].ring, PP_RING_PAGE);
}

/* Calls recorded in any held ring, and calls missed because another program ran on that CPU. */
static uint64_t accounted(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_held; i++)
		n += held[i].ring->live.records + held[i].ring->live.missed;
	return n;
}

/* The counts in its `stat`. */
struct total {
	unsigned long long records, bytes, missed;
};

static struct total read_total(void)
{
	_cleanup_fclose_ FILE *f = fopen(NAME "/stat", "re");
	struct total t = {};
	char line[256];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "total ", 6))
			ck_assert_int_ge(sscanf(line,
						"total records=%llu bytes=%llu limited=%*u "
						"missed=%llu",
						&t.records, &t.bytes, &t.missed),
					 2);
	return t;
}

/* The broker's way to count many events: at least what `stat` says before, at most what it says
 * after. */
static struct total total(void)
{
	_cleanup_close_ int program = tree_totals_open(".");
	struct total before = read_total(), after;
	struct tree_stat told;
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_int_eq(tree_totals_read(program, e.origin, e.set, &told), 0);
	after = read_total();
	ck_assert_uint_le(before.records, told.records);
	ck_assert_uint_le(told.records, after.records);
	ck_assert_uint_le(before.bytes, told.bytes);
	ck_assert_uint_le(told.bytes, after.bytes);
	ck_assert_uint_le(before.missed, told.missed);
	ck_assert_uint_le(told.missed, after.missed);
	ck_assert_int_eq(told.missed_unknown, e.missed_unknown);
	ck_assert_int_eq(tree_totals_read(program, e.id + 1, e.set, &told), -ENOENT);
	ck_assert_int_eq(tree_totals_read(program, e.origin, e.set + 1, &told), -ENOENT);
	return after;
}

/* ── what is recorded ───────────────────────────────────────────────────────────────────── */

static pid_t start_closer(unsigned n)
{
	pid_t pid = fork();

	if (pid > 0)
		return pid;
	prctl(PR_SET_NAME, closer_name);
	for (unsigned i = 0; i < n; i++)
		syscall(SYS_close, -1);
	_exit(0);
}

/* A thread that calls until it is stopped, and counts. */
static struct closing {
	volatile bool stop;
	volatile uint64_t calls;
} * closing;

static pid_t start_endless_closer(void)
{
	pid_t pid;

	closing = mmap(NULL, sizeof(*closing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	ck_assert_ptr_ne(closing, MAP_FAILED);
	pid = fork();
	if (pid > 0)
		return pid;
	prctl(PR_SET_NAME, closer_name);
	for (; !closing->stop; closing->calls++)
		syscall(SYS_close, -1);
	_exit(0);
}

static void wait_for(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* How many records n calls add to the held rings. */
static uint64_t recorded(unsigned n)
{
	uint64_t before = accounted();

	wait_for(start_closer(n));
	return accounted() - before;
}

/* ── tests ──────────────────────────────────────────────────────────────────────────────── */

static const struct {
	const char *event;
	uint32_t flags;
	unsigned per_call;
} kinds[] = {
	{ ENTER, 0, 1 }, { ENTER, PP_EVENT_GENERIC, 1 },
	{ BOTH, 0, 2 },	 { BOTH, PP_EVENT_GENERIC, 2 },
	{ MANY, 0, 2 },
};

/* Each call is recorded once, by the old or the new program, in the old or the new ring. */
START_TEST(changes_are_exact)
{
	struct pp_event e = created(kinds[_i].event, kinds[_i].flags);
	uint64_t by_rings = 0, records = 0, bytes = 0, shut_out;
	pid_t closer;

	hold();
	closer = start_endless_closer();
	for (int i = 1; i <= 12; i++) {
		uint32_t what = PP_CHANGE_FILTER | (i % 3 ? 0 : PP_CHANGE_BUFFER);

		ask("", i % 2 ? LARGE : SMALL, 0);
		ask_mine(i);
		e = change(what);
		ck_assert_uint_eq(e.spec.data_size, i < 3 ? SMALL : (i / 3) % 2 ? LARGE : SMALL);
		ck_assert_uint_eq(e.set, 1 + i / 3);
		hold();
		/* Each has recorded some. */
		for (uint64_t calls = closing->calls; closing->calls < calls + 100;)
			sched_yield();
	}
	closing->stop = true;
	wait_for(closer);
	for (size_t i = 0; i < n_held; i++) {
		by_rings += held[i].ring->live.missed;
		records += held[i].ring->live.records;
		bytes -= held[i].ring->live.head;
		ck_assert_uint_eq(held[i].ring->live.state,
				  held[i].ring->set == e.set ? PP_RING_RUNNING : PP_RING_RETIRED);
	}
	/* Generic programs: the entry counts those that another program shut out. */
	shut_out = e.missed_unknown ? 0 : total().missed - by_rings;
	ck_assert_uint_eq(accounted() + shut_out, closing->calls * kinds[_i].per_call);
	/* The counts continue. */
	ck_assert_uint_eq(total().records, records);
	ck_assert_uint_eq(total().bytes, bytes);
	munmap(closing, sizeof(*closing));
	let_go();
	delete ();
}
END_TEST

/* ── armed ──────────────────────────────────────────────────────────────────────────────── */

static void hold_ring(uint32_t id)
{
	_cleanup_close_ int fd = -EBADF;

	if (is_held(id))
		return;
	fd = bpf_map_get_fd_by_id(id);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_lt(n_held, ARRAY_SIZE(held));
	held[n_held] = (struct held){ id, mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, fd, 0) };
	ck_assert_ptr_ne(held[n_held++].ring, MAP_FAILED);
}

/* The second set. */
static void hold_spare(void)
{
	_cleanup_close_ int fd = pins_get(NAME, "spare");
	uint32_t id;

	ck_assert_int_ge(fd, 0);
	for (uint32_t cpu = 0; cpu < (uint32_t)pp_cpus_possible(); cpu++)
		if (bpf_map_lookup_elem(fd, &cpu, &id) == 0)
			hold_ring(id);
}

static struct pp_tape *map_tape(void)
{
	_cleanup_close_ int fd = pins_get(NAME, "tape");
	struct pp_tape *tape;

	ck_assert_int_ge(fd, 0);
	tape = mmap(NULL, sizeof(*tape), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(tape, MAP_FAILED);
	return tape;
}

static void wait_for_calls(uint64_t n)
{
	for (uint64_t calls = closing->calls; closing->calls < calls + n;)
		sched_yield();
}

static uint64_t frozen_calls(int fd)
{
	uint64_t sum = 0, n;

	for (uint32_t cpu = 0; cpu < (uint32_t)pp_cpus_possible(); cpu++) {
		ck_assert_int_eq(bpf_map_lookup_elem(fd, &cpu, &n), 0);
		sum += n;
	}
	return sum;
}

/* CPUs of the event have come online. */
static int join_cpus(const struct pp_event *e)
{
	static struct exchange x;

	x = (struct exchange){ .connection = -1, .broker = BROKER };
	x.order.type = PP_ORDER_CPUS;
	x.order.id = e->id;
	x.order.spec.cpus = e->rings;
	return order_carry_out(&x, &failure);
}

/* Arming, a trigger's turn and disarming lose no record: each is in one of the sets, or counted. */
START_TEST(arming_is_exact)
{
	const unsigned kind = _i / 2;
	const bool swap = _i % 2;
	struct pp_event e = created(kinds[kind].event, kinds[kind].flags);
	_cleanup_close_ int frozen = -EBADF;
	uint64_t by_rings = 0, shut_out, n, first;
	struct pp_tape *tape;
	char path[PINS_PATH_SIZE];
	pid_t closer;

	pins_event(e.origin, path);
	hold();
	closer = start_endless_closer();
	wait_for_calls(100);
	ck_assert_msg(event_arm(path, BROKER, swap ? PP_ARM_SWAP : 0, &failure) == 0, "%s",
		      failure.sentence);
	ck_assert_int_eq(event_arm(path, BROKER, swap ? PP_ARM_SWAP : 0, &failure), 0);
	/* It has a ring there already, and stays armed. */
	ck_assert_int_eq(join_cpus(&e), 0);
	ck_assert_int_eq(event_arm_state(path), ARM_READY);
	first = accounted();
	wait_for_calls(100);
	ck_assert_uint_gt(accounted(), first);
	frozen = pins_get(path, "ringless");
	tape = map_tape();
	if (swap)
		hold_spare();
	ck_assert_uint_eq(tape->state.next, swap ? PP_SIDE_B : PP_SIDE_NONE);
	tape->state.side = tape->state.next; /* a trigger */
	wait_for_calls(1000);
	ck_assert_uint_eq(frozen_calls(frozen) > 0, !swap);
	ck_assert_msg(event_disarm(path, BROKER, &failure) == 0, "%s", failure.sentence);
	ck_assert_int_eq(pins_get(path, "tape"), -ENOENT);
	ck_assert_int_eq(pins_get(path, "sides0"), -ENOENT);
	wait_for_calls(100);
	closing->stop = true;
	wait_for(closer);
	for (size_t i = 0; i < n_held; i++)
		by_rings += held[i].ring->live.missed;
	n = accounted() + frozen_calls(frozen);
	shut_out = e.missed_unknown ? 0 : total().missed - by_rings - frozen_calls(frozen);
	ck_assert_uint_eq(n + shut_out, closing->calls * kinds[kind].per_call);
	ck_assert_uint_eq(tape->lost, 0);
	munmap(tape, sizeof(*tape));
	munmap(closing, sizeof(*closing));
	let_go();
	delete ();
}
END_TEST

static int count_counter(const char *path _unused_, const char *leaf, void *userdata)
{
	size_t *n = userdata;

	n[0] += !strncmp(leaf, "link", 4) && strchr(leaf, '-');
	n[1] += !strncmp(leaf, "link", 4) && !strchr(leaf, '-');
	return 0;
}

static void expect_links(const char *path, bool counters, size_t others)
{
	size_t n[2] = {};

	ck_assert_int_eq(pins_foreach_leaf(path, count_counter, n), 0);
	ck_assert_int_eq(n[0] > 0, counters);
	ck_assert_uint_eq(n[1], others);
}

/* The rings that the last turn left to be saved. */
static struct saved {
	uint32_t set;
	uint64_t records;
	unsigned n;
	int fd[8];
} saved;

static uint64_t saved_records(void)
{
	uint64_t records = 0;

	for (unsigned i = 0; i < saved.n; i++) {
		const struct pp_ring_header *h =
			mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, saved.fd[i], 0);

		ck_assert_ptr_ne(h, MAP_FAILED);
		records += h->live.records;
		saved.set = h->set;
		munmap((void *)h, PP_RING_PAGE);
	}
	return records;
}

static int save_ring(const char *path, const char *leaf, void *userdata _unused_)
{
	if (strncmp(leaf, "cpu", 3) != 0)
		return 0;
	ck_assert_uint_lt(saved.n, ARRAY_SIZE(saved.fd));
	saved.fd[saved.n] = pins_get(path, leaf);
	ck_assert_int_ge(saved.fd[saved.n++], 0);
	return 0;
}

static void save(const char *path)
{
	saved.n = 0;
	ck_assert_int_eq(pins_foreach_leaf(path, save_ring, NULL), 0);
	ck_assert_uint_gt(saved.n, 0);
	saved.records = saved_records();
}

static void unsave(void)
{
	while (saved.n > 0)
		close(saved.fd[--saved.n]);
}

static void fire(struct pp_tape *tape, uint64_t count, const struct pp_trigger_spec *window)
{
	const struct pp_fired fired = {
		.trigger = 4711,
		.number = count,
		.time = pp_clock_ns(CLOCK_MONOTONIC),
		.comm = "me",
		.action = window->action,
	};

	ck_assert_int_eq(pp_turn(tape, window), 1);
	ck_assert_int_eq(pp_turn(tape, window), 0);
	pp_sign(tape, &fired, window);
}

/* A window that no record ends: it is over in time, or when somebody ends it early. */
static void fire_until_closed(const char *path, struct pp_tape *tape, uint64_t count)
{
	const struct pp_trigger_spec window = { .after = 60000000000ULL };
	struct pp_orphans orphans;

	fire(tape, count, &window);
	ck_assert_int_eq(event_arm_state(path), ARM_CLOSING);
	ck_assert_int_eq(event_close(path, false), 0);
	ck_assert_int_eq(event_turn(path, BROKER, PP_TURN_AGAIN, &orphans, &failure), 0);
	ck_assert_int_eq(event_arm(path, BROKER, PP_ARM_SWAP | PP_ARM_WINDOWS, &failure), -EBUSY);
	ck_assert_int_eq(event_disarm(path, BROKER, &failure), -EBUSY);
	if (count % 2)
		ck_assert_int_eq(event_close(path, true), 1);
	else
		tape->until = 1; /* long ago: the next record */
}

static int only_tape(const struct tape *tape, void *userdata)
{
	struct tape *ret = userdata;

	ck_assert_uint_eq(ret->id, 0);
	*ret = *tape;
	return 0;
}

/* The turned rings are a tape, and then are no more. */
static void take_tape(uint64_t id, uint32_t count)
{
	struct tape tape = {};
	char path[PINS_PATH_SIZE];

	ck_assert_int_eq(tapes_foreach(only_tape, &tape), 0);
	ck_assert_uint_eq(tape.id, id);
	ck_assert_uint_eq(tape.by.trigger, 4711);
	ck_assert_uint_eq(tape.by.number, count);
	ck_assert_str_eq(tape.by.comm, "me");
	ck_assert_uint_eq(tape.event.set, count);
	pins_tape_path(id, path);
	expect_links(path, false, 0);
	save(path);
	wait_for_calls(100);
	ck_assert_uint_eq(saved_records(), saved.records);
	ck_assert_uint_eq(saved.set, count);
	ck_assert_int_eq(tapes_release(id), 0);
	ck_assert_int_eq(tapes_release(id), -ENOENT);
	ck_assert_int_eq(tapes_foreach(only_tape, &tape), 0);
	unsave();
}

/* One trigger after the other: what is saved does not change any more, recording goes on, and every
 * call is in one of the sets, or counted as frozen. The last turn leaves the event unarmed. */
START_TEST(turns_are_exact)
{
	const unsigned kind = _i / 4;
	const bool swap = _i % 2, windows = _i & 2;
	const struct pp_trigger_spec window = {
		.after = windows ? 60000000000ULL : 0,
		.after_records = 50,
	};
	struct pp_event e = created(kinds[kind].event, kinds[kind].flags);
	const uint64_t memory = e.memory;
	_cleanup_close_ int frozen = -EBADF;
	uint64_t by_rings = 0, shut_out;
	struct pp_orphans orphans;
	struct pp_tape *tape;
	char path[PINS_PATH_SIZE];
	pid_t closer;

	pins_event(e.origin, path);
	closer = start_endless_closer();
	hold();
	ck_assert_msg(event_arm(path, BROKER,
				(swap ? PP_ARM_SWAP : 0) | (windows ? PP_ARM_WINDOWS : 0),
				&failure) == 0,
		      "%s", failure.sentence);
	frozen = pins_get(path, "ringless");
	tape = map_tape();
	ck_assert_int_eq(event_turn(path, BROKER, PP_TURN_AGAIN, &orphans, &failure), 0);
	for (unsigned i = 1; i <= 5; i++) {
		if (swap)
			hold_spare();
		wait_for_calls(100);
		if (windows && i > 3)
			fire_until_closed(path, tape, i);
		else
			fire(tape, i, &window);
		wait_for_calls(100);
		ck_assert_int_eq(event_read(NAME, &e), 0);
		ck_assert_uint_eq(e.now & ~PP_NOW_INCOMPLETE,
				  PP_NOW_TURNED | (windows ? PP_NOW_WINDOWS : 0) |
					  (swap ? PP_NOW_SWAP : PP_NOW_STOPS));
		ck_assert_int_eq(
			event_arm(path, BROKER,
				  (swap ? PP_ARM_SWAP : 0) | (windows ? PP_ARM_WINDOWS : 0),
				  &failure),
			-EBUSY);
		ck_assert_int_eq(event_disarm(path, BROKER, &failure), -EBUSY);
		ck_assert_msg(event_turn(path, BROKER, i < 5, &orphans, &failure) == 1, "%s",
			      failure.sentence);
		hold();
		if (swap) {
			ck_assert_uint_ge(orphans.bytes, saved.n * SMALL);
			take_tape(orphans.id, i);
		} else {
			ck_assert_uint_eq(orphans.id, 0);
			save(path);
			wait_for_calls(100);
			ck_assert_uint_eq(saved_records(), saved.records);
			unsave();
			ck_assert_int_eq(event_thaw(path, BROKER, &failure), 1);
			ck_assert_int_eq(event_thaw(path, BROKER, &failure), 0);
		}
		ck_assert_int_eq(event_read(NAME, &e), 0);
		ck_assert_uint_eq(e.set, swap ? i + 1 : 1);
		ck_assert_uint_eq(e.now & ~PP_NOW_INCOMPLETE,
				  swap && i == 5 ? 0
						 : PP_NOW_ARMED | (windows ? PP_NOW_WINDOWS : 0) |
							   (swap ? PP_NOW_SWAP : PP_NOW_STOPS));
		if (swap && i < 5)
			ck_assert_uint_gt(e.memory, memory);
		else
			ck_assert_uint_eq(e.memory, memory);
		if (swap && i < 5)
			ck_assert_uint_eq(tape->state.next, i % 2 ? PP_SIDE_A : PP_SIDE_B);
	}
	ck_assert_msg(event_disarm(path, BROKER, &failure) == 0, "%s", failure.sentence);
	wait_for_calls(100);
	closing->stop = true;
	wait_for(closer);
	for (size_t i = 0; i < n_held; i++)
		by_rings += held[i].ring->live.missed;
	shut_out = e.missed_unknown ? 0 : total().missed - by_rings - frozen_calls(frozen);
	ck_assert_uint_eq(tape->lost, 0);
	ck_assert_uint_eq(accounted() + frozen_calls(frozen) + shut_out,
			  closing->calls * kinds[kind].per_call);
	ck_assert_uint_eq(tape->lost, 0);
	munmap(tape, sizeof(*tape));
	munmap(closing, sizeof(*closing));
	let_go();
	delete ();
}
END_TEST

static const struct pp_trigger_spec pause_spec = { .action = PP_ACTION_PAUSE };

static void expect_stopped(const char *path, uint64_t count)
{
	struct pp_fired by;
	struct pp_event e;

	ck_assert_int_eq(event_read(path, &e), 0);
	ck_assert_uint_eq(e.paused, 1);
	ck_assert_uint_eq(e.now & ~PP_NOW_INCOMPLETE, PP_NOW_STOPPED);
	ck_assert_int_eq(event_stopped_by(path, &by), 0);
	ck_assert_uint_eq(by.trigger, 4711);
	ck_assert_uint_eq(by.number, count);
	ck_assert_int_eq(pins_get(path, "tape"), -ENOENT);
	ck_assert_int_eq(pins_get(path, "spare"), -ENOENT);
}

/* A trigger stops it: each call is in the rings it had, or counted, and then it is paused, until
 * somebody resumes it. */
START_TEST(stops_are_exact)
{
	const unsigned kind = _i / 2;
	const bool swap = _i % 2;
	struct pp_event e = created(kinds[kind].event, kinds[kind].flags);
	_cleanup_close_ int frozen = -EBADF;
	uint64_t by_rings = 0, shut_out, records;
	struct pp_orphans orphans;
	struct pp_tape *tape;
	struct pp_fired by;
	char path[PINS_PATH_SIZE];
	pid_t closer;

	pins_event(e.origin, path);
	closer = start_endless_closer();
	hold();
	ck_assert_msg(event_arm(path, BROKER, (swap ? PP_ARM_SWAP : 0) | PP_ARM_STOPS, &failure) ==
			      0,
		      "%s", failure.sentence);
	frozen = pins_get(path, "ringless");
	tape = map_tape();
	wait_for_calls(100);
	ck_assert_int_eq(event_turn(path, BROKER, PP_TURN_STOPPED, &orphans, &failure), 0);
	fire(tape, 1, &pause_spec);
	wait_for_calls(100);
	closing->stop = true;
	wait_for(closer);
	for (size_t i = 0; i < n_held; i++)
		by_rings += held[i].ring->live.missed;
	ck_assert_uint_ge(frozen_calls(frozen), 100);
	shut_out = e.missed_unknown ? 0 : total().missed - by_rings - frozen_calls(frozen);
	ck_assert_uint_eq(accounted() + frozen_calls(frozen) + shut_out,
			  closing->calls * kinds[kind].per_call);
	ck_assert_uint_eq(tape->lost, 0);
	ck_assert_int_eq(event_read(path, &e), 0);
	ck_assert_uint_eq(e.now & ~PP_NOW_INCOMPLETE,
			  PP_NOW_TURNED | PP_NOW_STOPPED | PP_NOW_STOPS | (swap ? PP_NOW_SWAP : 0));
	ck_assert_int_eq(event_disarm(path, BROKER, &failure), -EBUSY);
	ck_assert_int_eq(event_thaw(path, BROKER, &failure), 0);
	records = total().records;
	ck_assert_int_eq(event_turn(path, BROKER, PP_TURN_STOPPED, &orphans, &failure), 2);
	ck_assert_uint_eq(orphans.id, 0);
	ck_assert_uint_eq(total().records, records);
	expect_stopped(path, 1);
	ck_assert_uint_eq(recorded(100), 0);
	ask("", LARGE, 0);
	change(PP_CHANGE_BUFFER);
	expect_stopped(path, 1);
	pause_it(false);
	ck_assert_int_eq(event_stopped_by(path, &by), -ENOENT);
	let_go();
	hold();
	ck_assert_uint_eq(recorded(100), 100 * kinds[kind].per_call);
	munmap(tape, sizeof(*tape));
	munmap(closing, sizeof(*closing));
	let_go();
	delete ();
}
END_TEST

START_TEST(a_pause_records_nothing)
{
	created(kinds[_i].event, kinds[_i].flags);
	hold();
	ck_assert_uint_eq(recorded(100), 100 * kinds[_i].per_call);
	pause_it(true);
	ck_assert_uint_eq(recorded(100), 0);
	for (size_t i = 0; i < n_held; i++)
		ck_assert_uint_eq(held[i].ring->live.state, PP_RING_PAUSED);
	/* A paused event stays paused after a change. */
	ask("", LARGE, 0);
	change(PP_CHANGE_BUFFER);
	hold();
	ck_assert_uint_eq(recorded(100), 0);
	pause_it(true);
	pause_it(false);
	ck_assert_uint_eq(recorded(100), 100 * kinds[_i].per_call);
	for (size_t i = 0; i < n_held; i++)
		ck_assert_uint_eq(held[i].ring->live.state,
				  held[i].ring->set == 2 ? PP_RING_RUNNING : PP_RING_RETIRED);
	let_go();
	delete ();
}
END_TEST

static uint64_t limited(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_held; i++)
		n += held[i].ring->limit.limited;
	return n;
}

START_TEST(changes_take_effect)
{
	struct pp_event e = created(kinds[_i].event, kinds[_i].flags);
	char filter[PP_FILTER_SIZE];
	uint64_t n;

	hold();
	ask("", SMALL, 0);
	snprintf(filter, sizeof(filter), MINE, closer_name, number, 4);
	ask_filter(0, filter);
	e = change(PP_CHANGE_FILTER);
	ck_assert_str_eq(e.spec.filter, filter);
	ck_assert_uint_eq(recorded(100), 0);
	ask("", SMALL, 0);
	ask_mine(0);
	spec.max_rate = 3;
	e = change(PP_CHANGE_FILTER | PP_CHANGE_MAX_RATE);
	ck_assert_uint_eq(e.spec.max_rate, 3);
	n = recorded(100);
	ck_assert_uint_lt(n, 100 * kinds[_i].per_call);
	ck_assert_uint_eq(n + limited(), 100 * kinds[_i].per_call);
	ask("", SMALL, 0); /* neither */
	e = change(PP_CHANGE_FILTER | PP_CHANGE_MAX_RATE);
	ck_assert_str_eq(e.spec.filter, "");
	ck_assert_uint_ge(recorded(100), 100 * kinds[_i].per_call);
	ck_assert_uint_eq(e.set, 1);
	let_go();
	delete ();
}
END_TEST

static const struct pp_catalog_header *map_catalog(const struct pp_event *e)
{
	_cleanup_close_ int fd = pins_get(NAME, "catalog");
	const struct pp_catalog_header *c =
		mmap(NULL, e->catalog_size, PROT_READ, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(c, MAP_FAILED);
	ck_assert_int_eq(pp_catalog_check(c, e->catalog_size), 0);
	return c;
}

static bool is_text(const struct pp_catalog_header *c, uint32_t i, const char *text)
{
	const struct pp_catalog_entry *e = pp_catalog_entry(c, i);

	return strlen(text) == e->text_size &&
	       !memcmp((const char *)c + e->text_offset, text, e->text_size);
}

/* The broker keeps the program's descriptor. */
START_TEST(counts_go_on_with_one_program)
{
	_cleanup_close_ int totals = -EBADF;
	struct tree_stat stat;
	struct pp_event e;
	int kept;

	created(ENTER, 0);
	ck_assert_int_eq(event_read(NAME, &e), 0);
	wait_for(start_closer(50));
	ck_assert_int_eq(tree_count(".", e.origin, e.set, &totals, &stat), 0);
	ck_assert_uint_eq(stat.records, read_total().records);
	ck_assert_int_eq(tree_totals_read(totals, e.origin, e.set, &stat), 0);
	kept = totals;
	ck_assert_int_eq(tree_count(".", e.origin, e.set, &totals, &stat), 0);
	ck_assert_uint_eq(stat.records, read_total().records);
	ck_assert_int_eq(totals, kept);

	/* In place of a program of a registry that is gone. */
	ck_assert_int_eq(close(totals), 0);
	totals = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(tree_count(".", e.origin, e.set, &totals, &stat), 0);
	ck_assert_uint_eq(stat.records, read_total().records);
	ck_assert_int_eq(tree_totals_read(totals, e.origin, e.set, &stat), 0);
	delete ();
}
END_TEST

/* Without the program that counts for lists the event still has all its files. */
START_TEST(without_totals)
{
	struct tree_stat stat;
	struct pp_event e;

	ck_assert_int_eq(mkdir(PP_TOTALS_KNOWN, 0700), 0);
	e = created(ENTER, 0);
	ck_assert_int_eq(tree_totals_open("."), -ENOENT);
	wait_for(start_closer(50));
	ck_assert_int_eq(tree_stat_read(".", e.origin, &stat), 0);
	ck_assert_uint_le(stat.records, 50);
	ck_assert_uint_ge(stat.records + stat.missed, 50);
	delete ();
	ck_assert_int_eq(rmdir(PP_TOTALS_KNOWN), 0);
}
END_TEST

/* Another engine's program may have another form; and each CPU has a part of its counts. */
START_TEST(totals_of_another_engine)
{
	_cleanup_close_ int other = bpf_map_create(BPF_MAP_TYPE_ARRAY, "other", 4, 4, 1, NULL);
	_cleanup_close_ int known = -EBADF;
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	ck_assert_int_eq(bpf_obj_pin(other, PP_TOTALS_KNOWN), 0);
	created(ENTER, 0);
	wait_for(start_closer(50));
	total();
	known = bpf_obj_get(PP_TOTALS_KNOWN);
	ck_assert_int_eq(bpf_obj_get_info_by_fd(known, &info, &size), 0);
	ck_assert_uint_ge(info.max_entries, 128 * pp_cpus_possible() + 1000);
	delete ();
}
END_TEST

/* Terms in their order, members of a glob sorted, each tracepoint once. */
START_TEST(several_sources)
{
	const struct pp_catalog_header *c;
	struct pp_event e;

	ask("sched:sched_switch,cpu-clock,sched:sched_s*,sched:sched_switch", SMALL, 0);
	e = create();
	c = map_catalog(&e);
	ck_assert_uint_gt(e.n_sources, 4);
	ck_assert_uint_eq(c->n_sources, e.n_sources);
	ck_assert_uint_eq(c->event_id, e.id);
	ck_assert_uint_eq(e.sample_type, PERF_SAMPLE_IDENTIFIER);
	ck_assert(is_text(c, 0, "sched:sched_switch") && is_text(c, 1, "cpu-clock"));
	for (uint32_t i = 2; i < c->n_sources; i++) {
		const struct pp_catalog_entry *at = pp_catalog_entry(c, i);

		ck_assert(!is_text(c, i, "sched:sched_switch"));
		ck_assert_uint_gt(at->format_size, 100);
		ck_assert(i == 2 || strncmp((const char *)c + at[-1].text_offset,
					    (const char *)c + at->text_offset, at->text_size) < 0);
	}
	/* Later events have the same sources: programs fit their slots. */
	pause_it(true);
	pause_it(false);
	munmap((void *)c, e.catalog_size);
	delete ();
}
END_TEST

/* A glob that matches one tracepoint is that tracepoint, even later. */
START_TEST(a_glob_of_one)
{
	struct pp_event e;

	ask("raw_syscalls:sys_ente?", SMALL, 0);
	ask_mine(0);
	e = create();
	ck_assert_uint_eq(e.n_sources, 1);
	ck_assert_uint_eq(e.catalog_size, 0);
	pause_it(true);
	pause_it(false);
	hold();
	ck_assert_uint_eq(recorded(100), 100);
	let_go();
	delete ();
}
END_TEST

static int count_leaf(const char *path _unused_, const char *leaf, void *userdata)
{
	*(size_t *)userdata += strncmp(leaf, "+new-", 5) == 0 || !strcmp(leaf, "life");
	return 0;
}

static size_t traces(void)
{
	size_t n = 0;

	ck_assert_int_eq(pins_foreach_leaf(".", count_leaf, &n), 0);
	return n;
}

static const struct {
	const char *event, *filter;
	uint64_t data_size;
	int error;
} refusals[] = {
	{ "sched:no_such_thing", NULL, SMALL, -ENOENT },
	{ "no_such_*:*", NULL, SMALL, -ENOENT },
	{ "ftrace:*", NULL, SMALL, -ENOENT }, /* descriptions of ftrace's own records */
	{ "sched:sched_switch,sched:sched_switch", "prev_pid == 1", SMALL, -EINVAL },
	{ "sched:*", NULL, 4096, -EINVAL }, /* a record may be larger */
	{ "sched:sched_switch", "no_such == 1", SMALL, -EINVAL },
	{ "sched:sched_switch,sched:sched_waking", "prev_pid == 1", SMALL, -EINVAL },
};

START_TEST(refused)
{
	struct pp_event e;

	ask(refusals[_i].event, refusals[_i].data_size, 0);
	if (refusals[_i].filter) /* not for the first of two equal ones */
		ask_filter(_i == 3 ? 1 : 0, refusals[_i].filter);
	ck_assert_int_eq(event_create(&spec, &parsed, NULL, 0, NULL, NULL, BROKER, &e, &failure),
			 refusals[_i].error);
	ck_assert_uint_gt(strlen(failure.sentence), 20);
	ck_assert_uint_eq(traces(), 0);
}
END_TEST

/* ── bound to a task ────────────────────────────────────────────────────────────────────── */

static struct pp_msg_target me(void)
{
	struct pp_msg_target t = { .kind = PP_TARGET_PROCESS, .pid = (uint32_t)getpid() };

	ck_assert_int_eq(pp_task_start(t.pid, &t.start, NULL), 0);
	return t;
}

static int bind_to(struct pp_msg_target t, uint32_t perf_events, struct pp_event *ret)
{
	const struct pp_allowance allowance = {
		.sources = UINT32_MAX,
		.creator_there = UINT32_MAX,
		.all_there = UINT32_MAX,
		.work = UINT32_MAX,
		.perf_events = perf_events,
	};

	ask("page-faults,minor-faults", SMALL, PP_EVENT_BOUND);
	return event_create(&spec, &parsed, NULL, 0, &t, &allowance, BROKER, ret, &failure);
}

static unsigned cpus_of(const struct pp_event *e)
{
	unsigned n = 0;

	PP_CPUMASK_FOREACH(cpu, &e->rings)
	n++;
	return n;
}

/* Another start time is another task. Each thread takes a perf event for each of the sources. */
START_TEST(no_such_task)
{
	struct pp_msg_target t = me();
	struct pp_event e;

	t.start++;
	ck_assert_int_eq(bind_to(t, 100, &e), -ESRCH);
	ck_assert_ptr_nonnull(strstr(failure.sentence, "another may have its number"));
	t.kind = PP_TARGET_THREAD;
	ck_assert_int_eq(bind_to(t, 100, &e), -ESRCH);
	ck_assert_int_eq(bind_to(me(), 1, &e), -E2BIG);
	ck_assert_ptr_nonnull(strstr(failure.sentence, "there is room for 1,"));
	t = (struct pp_msg_target){ .kind = PP_TARGET_CGROUP, .cgroup = "/no/such/cgroup" };
	ck_assert_int_lt(bind_to(t, 100, &e), 0);
	ck_assert_uint_eq(traces(), 0);
}
END_TEST

START_TEST(bound_to_a_task)
{
	struct pp_orphans orphans;
	struct pp_msg_target t;
	struct pp_event e, after;
	uint64_t memory;

	ck_assert_int_eq(bind_to(me(), 2, &e), 0);
	ck_assert_uint_eq(e.spec.flags & PP_EVENT_BOUND, PP_EVENT_BOUND);
	ck_assert_uint_eq(e.now & PP_NOW_ENDED, 0);
	ck_assert(pins_has(NAME, "link0+0") && pins_has(NAME, "link1+0"));
	ck_assert_int_eq(event_target(NAME, &t), 0);
	ck_assert_int_eq(memcmp(&t, &(struct pp_msg_target[]){ me() }[0], sizeof(t)), 0);
	memory = e.memory;
	ck_assert_uint_ge(memory, rings_memory(&e) + 2 * PP_PERF_EVENT_MEMORY);
	ck_assert_uint_lt(memory, rings_memory(&e) + 4 * PP_PERF_EVENT_MEMORY);
	spec.data_size = LARGE;
	ck_assert_int_eq(event_change(e.id, PP_CHANGE_BUFFER, &spec, &parsed, NULL, BROKER,
				      &orphans, &failure),
			 0);
	ck_assert_int_eq(event_read(NAME, &after), 0);
	ck_assert_uint_eq(after.memory - memory,
			  (uint64_t)cpus_of(&after) * (LARGE - SMALL)); /* and its perf events */
	ck_assert_int_eq(event_target(NAME, &t), 0);
	ck_assert_uint_eq(t.pid, (uint32_t)getpid());
	spec.period = 2;
	ck_assert_int_eq(event_change(e.id, PP_CHANGE_PERIOD, &spec, &parsed, NULL, BROKER,
				      &orphans, &failure),
			 -EOPNOTSUPP);
	ck_assert_int_eq(event_pause(e.id, true, NULL, BROKER, &failure), 0);
	ck_assert_int_eq(event_pause(e.id, false, NULL, BROKER, &failure), 0);
	ck_assert(pins_has(NAME, "link0+0") && pins_has(NAME, "link1+0"));
	delete ();
	pins_reap(orphans_bury);
	ck_assert_uint_eq(traces(), 0);
}
END_TEST

static unsigned forks_left;
static bool is_late;	 /* after the link */
static pid_t forked[32]; /* they wait */
static size_t n_forked;

static void fork_around(bool is_made)
{
	pid_t pid;

	if (forks_left == 0 || is_made != is_late)
		return;
	forks_left--;
	ck_assert_uint_lt(n_forked, ARRAY_SIZE(forked));
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	forked[n_forked++] = pid;
}

static void end_forked(void)
{
	while (n_forked) {
		kill(forked[--n_forked], SIGKILL);
		waitpid(forked[n_forked], NULL, 0);
	}
}

/* Its child with a perf event and no program could get that one's place. */
START_TEST(bound_to_a_task_that_forks)
{
	struct pp_event e;

	around_link = fork_around;
	is_late = false;
	forks_left = 3; /* there are two links */
	ck_assert_msg(bind_to(me(), 2, &e) == 0, "%s", failure.sentence);
	ck_assert_uint_eq(n_forked, 3);
	ck_assert(pins_has(NAME, "link0+0") && pins_has(NAME, "link1+0"));
	end_forked();
	delete ();

	forks_left = ARRAY_SIZE(forked);
	ck_assert_int_eq(bind_to(me(), 2, &e), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(failure.sentence, "forks so fast"));
	end_forked();

	/* A child that has inherited the program is welcome. */
	is_late = true;
	forks_left = ARRAY_SIZE(forked);
	ck_assert_msg(bind_to(me(), 2, &e) == 0, "%s", failure.sentence);
	ck_assert_uint_eq(n_forked, 2);
	around_link = NULL;
	end_forked();
	delete ();
	pins_reap(orphans_bury);
	ck_assert_uint_eq(traces(), 0);
}
END_TEST

static unsigned steps_until_refused(const char *event)
{
	struct pp_event e;

	ask(event, SMALL, 0);
	for (uint32_t i = 0; i < parsed.n_sources; i++)
		if (parsed.sources[i].kind == PP_SOURCE_SAMPLING)
			parsed.sources[i].config1 |= 1; /* no processor can watch there */
	steps_left = 100000;
	ck_assert_int_lt(event_create(&spec, &parsed, NULL, 0, NULL, NULL, BROKER, &e, &failure),
			 0);
	/* Other processes may have all of the few registers: the kernel reports that first, for the
	 * same system call. */
	ck_assert_msg(strstr(failure.sentence, "cannot watch") ||
			      strstr(failure.sentence, "are in use"),
		      "%s", failure.sentence);
	ck_assert_uint_eq(traces(), 0);
	return 100000 - steps_left;
}

/* The engine knows whether an event is possible before it links a glob's many tracepoints, whatever
 * their order. */
START_TEST(refused_before_much_is_linked)
{
	unsigned first;

	steps_until_refused("mem:0x1000/4:w,sched:*"); /* including the steps done once */
	first = steps_until_refused("mem:0x1000/4:w,sched:*");
	ck_assert_uint_eq(steps_until_refused("sched:*,mem:0x1000/4:w"), first);
	steps_left = 0;
}
END_TEST

/* Many system calls have one link for all entries, and one for all exits, so they are freed as
 * fast. */
START_TEST(many_calls_have_two_links)
{
	created(MANY, 0);
	expect_links(NAME, false, 2);
	delete ();
	created("syscalls:sys_*_clos*", 0);
	expect_links(NAME, false, kernel_preempts_syscalls() ? 2 : 4);
	delete ();
}
END_TEST

/* A processor's registers are free at once, whatever the reaper still has to do. */
START_TEST(counters_go_first)
{
	char path[PINS_PATH_SIZE], gone[PINS_PATH_SIZE];
	struct pp_event e;
	uint64_t id;

	for (unsigned how = 0; how < 3; how++) {
		ask(ENTER ",cpu-clock", SMALL, 0);
		e = create();
		expect_links(NAME, true, 1);
		ck_assert_int_eq(pins_next_id(&id), 0);
		pins_event(e.origin, path);
		if (how == 0) {
			ck_assert_int_eq(pins_remove(path, id, gone), 0);
		} else {
			/* The engine died before the event was complete, or while it deleted it. */
			ck_assert_int_eq(rename(path, how == 1 ? "+new-7" : "+del-7"), 0);
			ck_assert_int_eq(pins_recover(), 0);
			id = how == 1 ? id + 1 : 7;
		}
		pins_orphans_path(id, gone);
		expect_links(gone, false, 1);
		ck_assert_int_eq(reaper_kick(), 0);
		reaper_wait(INT_MAX);
		expect_links(gone, false, 0);
		ck_assert_int_eq(pins_forget(id), 0);
		ck_assert_int_eq(names_recover(BROKER), 0);
	}
}
END_TEST

/* A change that fails leaves everything unchanged. */
START_TEST(a_refused_change)
{
	struct pp_event was = created(BOTH, 0), e;
	struct pp_orphans orphans;

	ask("", SMALL, 0);
	ask_filter(0, "no_such == 1");
	ck_assert_int_eq(event_change(was.id, PP_CHANGE_FILTER, &spec, &parsed, NULL, BROKER,
				      &orphans, &failure),
			 -EINVAL);
	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_mem_eq(&e, &was, sizeof(e));
	ck_assert_uint_eq(traces(), 1);
	hold();
	ck_assert_uint_eq(recorded(100), 200);
	let_go();
	delete ();
}
END_TEST

/* ── another period ─────────────────────────────────────────────────────────────────────── */

#define SAMPLER "cpu-clock," ENTER

/* Samples of all, and calls of the closers. */
static void create_sampler(void)
{
	char filter[PP_FILTER_SIZE];

	ask(SAMPLER, LARGE, 0);
	number = "id";
	snprintf(filter, sizeof(filter), MINE, closer_name, number, 3);
	ask_filter(1, filter);
	create();
}

static struct pp_event set_period(uint64_t period, uint32_t flags)
{
	struct pp_event e;

	ask("", SMALL, flags);
	spec.period = period;
	spec.samples = (uint32_t)period;
	e = change(PP_CHANGE_PERIOD);
	ck_assert_uint_eq(e.spec.period, period);
	ck_assert_uint_eq(e.spec.samples, period);
	ck_assert_uint_eq(e.spec.flags & PP_EVENT_FREQ, flags & PP_EVENT_FREQ);
	ck_assert_uint_eq(e.set, 1);
	return e;
}

struct counters {
	unsigned links, former;
};

static int count_leaves(const char *path _unused_, const char *leaf, void *userdata)
{
	struct counters *n = userdata;

	n->links += !strncmp(leaf, "link0-", 6);
	n->former += !strncmp(leaf, PINS_FORMER, strlen(PINS_FORMER));
	return 0;
}

/* Without what is missed: the recorder tells that from the clock. */
static uint64_t recorded_on(unsigned cpu)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_held; i++)
		if (held[i].ring->cpu == cpu)
			n += __atomic_load_n(&held[i].ring->live.records, __ATOMIC_RELAXED);
	return n;
}

/*
 * The samples of a perf event of ours at this rate, on a CPU: PERF_RECORD_SAMPLE with its header alone. It has a program,
 * too, which always agrees: where the kernel runs none (another one is at work, or a task preempted in bpf(2)), it has no
 * sample.
 */
#define REFERENCE_PAGES 16

static int attach_agreeing(int fd)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	_cleanup_close_ int program =
		bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, NULL, "GPL", code, ARRAY_SIZE(code), NULL);

	return program < 0 ? program : ioctl(fd, PERF_EVENT_IOC_SET_BPF, program);
}

static volatile struct perf_event_mmap_page *start_reference(unsigned cpu, uint64_t hz, int *ret_fd)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
		.watermark = 1,
		.wakeup_watermark = REFERENCE_PAGES * 4096,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map;

	*ret_fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	ck_assert_int_ge(*ret_fd, 0);
	ck_assert_int_eq(attach_agreeing(*ret_fd), 0);
	map = mmap(NULL, (1 + REFERENCE_PAGES) * page, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd,
		   0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	return map;
}

/* The event's samples of this CPU, which this process keeps busy meanwhile, in Hz: beside those that perf
 * takes there at the rate that is expected. A machine that stands still has neither. */
static double sampled_rate(uint64_t expected)
{
	volatile struct perf_event_mmap_page *reference;
	const uint64_t sample = sizeof(struct perf_event_header), samples = 40;
	unsigned cpu = sched_getcpu();
	uint64_t first, until, n, head;
	cpu_set_t mine, all;
	int fd;

	CPU_ZERO(&mine);
	CPU_SET(cpu, &mine);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(mine), &mine), 0);
	reference = start_reference(cpu, expected, &fd);
	do {
		first = recorded_on(cpu);
		head = reference->data_head;
	} while (recorded_on(cpu) != first);
	/* Another process may come between the two; then both are read again. */
	do {
		n = recorded_on(cpu);
		until = reference->data_head;
		reference->data_tail = until; /* or it would be full at the end */
	} while (until < head + samples * sample || recorded_on(cpu) != n);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
	munmap((void *)reference, (1 + REFERENCE_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
	close(fd);
	return (double)expected * (double)(n - first) * sample / (double)(until - head);
}

/* One counter on each CPU records, at the event's rate, and so do the closers' calls. */
static void check_sampler(const char *operation, unsigned at)
{
	_cleanup_close_ int meta = pins_get(NAME, "meta");
	struct counters n = {};
	struct pp_event e;
	bool pending;
	double rate;

	ck_assert_int_eq(meta_read_all(meta, &e, NULL, NULL, NULL, &pending), 0);
	ck_assert(!pending && !e.paused);
	ck_assert_int_eq(pins_foreach_leaf(NAME, count_leaves, &n), 0);
	ck_assert_uint_eq(n.former, 0);
	hold();
	ck_assert_uint_eq(n.links, n_held);
	rate = sampled_rate(e.spec.period);
	ck_assert_msg(rate > 0.7 * (double)e.spec.period && rate < 1.3 * (double)e.spec.period,
		      "%s, killed at step %u: %.0f Hz of %llu", operation, at, rate,
		      (unsigned long long)e.spec.period);
	ck_assert_uint_ge(recorded(50), 50);
	let_go();
}

START_TEST(other_periods_take_effect)
{
	struct pp_event e;

	create_sampler();
	check_sampler("none", 0);
	e = set_period(4000, PP_EVENT_FREQ);
	ck_assert_int_eq(e.missed_unknown, PP_MISSED_COUNTED);
	check_sampler("faster", 0);
	/* The same again, and nothing. */
	set_period(4000, PP_EVENT_FREQ);
	check_sampler("as before", 0);
	/* With another filter and other buffers; while paused, too. */
	pause_it(true);
	ask("", SMALL, PP_EVENT_FREQ);
	spec.period = 500;
	e = change(PP_CHANGE_PERIOD | PP_CHANGE_BUFFER);
	ck_assert_uint_eq(e.set, 2);
	ck_assert_uint_eq(e.spec.period, 500);
	hold();
	ck_assert_uint_eq((unsigned)sampled_rate(500), 0);
	let_go();
	pause_it(false);
	check_sampler("while paused", 0);
	delete ();
}
END_TEST

/* With a frequency nobody knows how many page faults were missed; with a period only those from before
 * are unknown. */
START_TEST(a_period_counts_what_is_missed)
{
	struct pp_event e;

	ask("page-faults", SMALL, 0);
	e = create();
	ck_assert_int_eq(e.missed_unknown, PP_MISSED_UNKNOWN);
	e = set_period(100, 0);
	ck_assert_int_eq(e.missed_unknown, PP_MISSED_AT_LEAST);
	e = set_period(200, 0);
	ck_assert_int_eq(e.missed_unknown, PP_MISSED_AT_LEAST);
	delete ();
}
END_TEST

START_TEST(nothing_samples)
{
	struct pp_event was = created(BOTH, 0), e;
	struct pp_orphans orphans;

	ask("", SMALL, PP_EVENT_FREQ);
	spec.period = 100;
	ck_assert_int_eq(event_change(was.id, PP_CHANGE_PERIOD, &spec, &parsed, NULL, BROKER,
				      &orphans, &failure),
			 -EINVAL);
	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_mem_eq(&e, &was, sizeof(e));
	ck_assert_uint_eq(traces(), 1);
	delete ();
}
END_TEST

/* ── killed at each step ────────────────────────────────────────────────────────────────── */

static void op_create(void)
{
	created(BOTH, PP_EVENT_GENERIC);
}

/* Changes back and forth. */
static void op_filter(void)
{
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ask("", SMALL, 0);
	ask_mine(strstr(e.spec.filter, "!= 1") ? 1 : 0);
	change(PP_CHANGE_FILTER);
}

static void op_resize(void)
{
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ask("", e.spec.data_size == SMALL ? LARGE : SMALL, 0);
	change(PP_CHANGE_BUFFER);
}

static void op_pause(void)
{
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	pause_it(!e.paused);
}

/* An engine that is killed while it arms an event leaves it armed, or not; both can be armed. */
static void op_arm(void)
{
	char path[PINS_PATH_SIZE];
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	pins_event(e.origin, path);
	ck_assert_msg(event_disarm(path, BROKER, &failure) == 0, "%s", failure.sentence);
	ck_assert_msg(event_arm(path, BROKER, PP_ARM_SWAP, &failure) == 0, "%s", failure.sentence);
}

static void op_period(void)
{
	struct pp_event e;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	set_period(e.spec.period == 2000 ? 6000 : 2000, PP_EVENT_FREQ);
}

#define RESIZE 2
#define PERIOD 5

static const struct {
	const char *name;
	void (*run)(void);
	unsigned rounds; /* how often in all, killed at each step */
} operations[] = {
	{ "create", op_create, 1 },
	{ "change the filter", op_filter, 1 },
	[RESIZE] = { "resize", op_resize, 1 },
	{ "pause and resume", op_pause, 2 },
	{ "arm", op_arm, 2 },
	[PERIOD] = { "change the period", op_period, 1 },
};

static bool run_until(size_t i, unsigned at)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		steps_left = at;
		operations[i].run();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
	return WEXITSTATUS(status) == 0;
}

static int mend(const char *path, void *userdata _unused_)
{
	return event_recover_one(path, BROKER);
}

static void start_again(void)
{
	ck_assert_int_eq(pins_recover(), 0);
	ck_assert_int_eq(names_recover(BROKER), 0);
	ck_assert_int_eq(orphans_recover(), 0);
	ck_assert_int_eq(pins_foreach(mend, NULL), 0);
	ck_assert_int_eq(reaper_kick(), 0);
	reaper_wait(INT_MAX);
}

/* It records everything that it should, or it is paused and records nothing. */
static void check_event(const char *operation, unsigned at)
{
	_cleanup_close_ int meta = pins_get(NAME, "meta");
	uint64_t n, wanted;
	struct pp_event e;
	bool pending;

	ck_assert_int_eq(meta_read_all(meta, &e, NULL, NULL, NULL, &pending), 0);
	ck_assert(!pending);
	hold();
	n = recorded(50);
	wanted = e.paused ? 0 : 100;
	ck_assert_msg(n == wanted, "%s, killed at step %u: %llu of %llu recorded", operation, at,
		      (unsigned long long)n, (unsigned long long)wanted);
	for (size_t i = 0; i < n_held; i++)
		ck_assert_uint_eq(held[i].ring->live.state,
				  e.paused ? PP_RING_PAUSED : PP_RING_RUNNING);
	let_go();
}

/* Kills at each step or, at the short length, at some. */
START_TEST(killed)
{
	bool is_creation = operations[_i].run == op_create;
	struct pp_event e;

	if (!is_creation)
		op_create();
	for (unsigned round = 0; round < operations[_i].rounds; round++) {
		bool through = false;

		for (unsigned at = 1; !through; at += stride(3)) {
			struct total before = is_creation ? (struct total){} : total();

			through = run_until(_i, at);
			start_again();
			if (!is_creation)
				ck_assert_uint_eq(total().records, before.records);
			if (!is_creation || through || event_read(NAME, &e) == 0)
				check_event(operations[_i].name, at);
			else
				ck_assert_uint_eq(traces(), 0);
			if (is_creation && event_read(NAME, &e) == 0)
				delete ();
		}
	}
	if (!is_creation)
		delete ();
}
END_TEST

/* Whoever dies, there is one set of counters after the next start; and there was one until then, or two
 * for a moment. */
START_TEST(killed_at_a_period)
{
	bool through = false;

	create_sampler();
	set_period(2000, PP_EVENT_FREQ);
	for (unsigned at = 1; !through; at += stride(1)) {
		double rate;

		through = run_until(PERIOD, at);
		hold();
		rate = sampled_rate(2000);
		ck_assert_msg(rate > 1400, "killed at step %u: %.0f Hz until the next start", at,
			      rate);
		let_go();
		start_again();
		check_sampler("change the period", at);
	}
	delete ();
}
END_TEST

static bool is_half_done(void)
{
	_cleanup_close_ int meta = pins_get(NAME, "meta");
	struct pp_event e;
	bool pending;

	ck_assert_int_eq(meta_read_all(meta, &e, NULL, NULL, NULL, &pending), 0);
	return pending;
}

/* Changes the event back and forth until an engine dies when its slots are half exchanged. */
static void half_resize(void)
{
	static unsigned at = 8; /* the step is found once */

	for (;; at++) {
		ck_assert(!run_until(RESIZE, at));
		if (is_half_done())
			return;
		start_again();
	}
}

static void check_stopped(unsigned at)
{
	struct pp_event e;
	uint64_t n;

	ck_assert_int_eq(event_read(NAME, &e), 0);
	ck_assert_uint_eq(e.paused, 1);
	hold();
	n = recorded(50);
	ck_assert_msg(n == 0, "read %u fails: %llu recorded", at, (unsigned long long)n);
	let_go();
}

/* A read that fails ends the start; or the step is finished, or the event paused: no slot leads into
 * rings that are about to go. */
START_TEST(a_read_fails_at_the_start)
{
	bool through = false;
	struct pp_event e;
	char path[PINS_PATH_SIZE];

	op_create();
	read_error = ENOMEM;
	for (unsigned at = 1; !through; at++) {
		int r;

		half_resize();
		ck_assert_int_eq(pins_recover(), 0);
		ck_assert_int_eq(names_recover(BROKER), 0);
		ck_assert_int_eq(orphans_recover(), 0);
		ck_assert_int_eq(event_read(NAME, &e), 0);
		pins_event(e.origin, path);
		read_fails = at;
		r = event_recover_one(path, BROKER);
		through = read_fails > 0;
		read_fails = 0;
		ck_assert(r >= 0 || is_half_done());
		if (r >= 0 && is_half_done())
			check_stopped(at);
		else if (r >= 0)
			check_event("resize", at);
		start_again();
		ck_assert_int_eq(event_read(NAME, &e), 0);
		if (e.paused)
			op_pause();
	}
	delete ();
}
END_TEST

/* The event keeps the counts of old rings, even when a change was interrupted. */
START_TEST(cut_changes_count)
{
	bool through = false;

	op_create();
	for (unsigned at = 1; !through; at += stride(2)) {
		uint64_t records = 0;
		pid_t closer;

		hold();
		closer = start_endless_closer();
		through = run_until(RESIZE, at);
		for (uint64_t calls = closing->calls; closing->calls < calls + 100;)
			sched_yield();
		start_again();
		hold();
		closing->stop = true;
		wait_for(closer);
		munmap(closing, sizeof(*closing));
		for (size_t i = 0; i < n_held; i++)
			records += held[i].ring->live.records;
		ck_assert_msg(total().records == records, "killed at step %u: %llu records of %llu",
			      at, total().records, (unsigned long long)records);
	}
	let_go();
	delete ();
}
END_TEST

static uint64_t records_at(const char *path)
{
	uint64_t records;

	save(path);
	records = saved.records;
	unsave();
	return records;
}

/* An engine that is killed while it completes a turn loses no firing: there is one tape of it, with
 * all that was recorded before, or the turn is still due. The event goes on recording. */
START_TEST(killed_turns)
{
	char path[PINS_PATH_SIZE], gone[PINS_PATH_SIZE];
	struct pp_event e = created(BOTH, PP_EVENT_GENERIC);
	struct pp_orphans orphans;
	bool through = false;
	uint64_t count = 0;

	pins_event(e.origin, path);
	for (unsigned at = 1; !through; at += stride(3)) {
		struct tape tape = {};
		struct pp_tape *armed;
		uint64_t before;
		pid_t pid;
		int status;

		ck_assert_msg(event_arm(path, BROKER, PP_ARM_SWAP, &failure) == 0, "%s",
			      failure.sentence);
		check_event("arm", at);
		before = records_at(path);
		armed = map_tape();
		fire(armed, ++count, &(struct pp_trigger_spec){});
		munmap(armed, sizeof(*armed));
		pid = fork();
		if (pid == 0) {
			steps_left = at;
			_exit(event_turn(path, BROKER, at % 2, &orphans, &failure) < 0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		through = WEXITSTATUS(status) != KILLED;
		ck_assert(!through || WEXITSTATUS(status) == 0);
		start_again();
		if (event_arm_state(path) == ARM_TURNED)
			ck_assert_int_eq(event_turn(path, BROKER, at % 2, &orphans, &failure), 1);
		ck_assert_int_eq(tapes_foreach(only_tape, &tape), 0);
		ck_assert_uint_ne(tape.id, 0);
		ck_assert_uint_eq(tape.by.number, count);
		pins_tape_path(tape.id, gone);
		ck_assert_uint_eq(records_at(gone), before);
		expect_links(gone, false, 0);
		ck_assert_int_eq(tapes_release(tape.id), 0);
		check_event("turn", at);
		ck_assert_int_eq(reaper_kick(), 0);
		reaper_wait(INT_MAX);
	}
	delete ();
}
END_TEST

/* Likewise for a pause by a trigger: it is still due, or done, and what fired is known. */
START_TEST(killed_stops)
{
	char path[PINS_PATH_SIZE];
	struct pp_event e = created(BOTH, PP_EVENT_GENERIC);
	struct pp_orphans orphans;
	bool through = false;
	uint64_t count = 0;

	pins_event(e.origin, path);
	for (unsigned at = 1; !through; at += stride(3)) {
		struct pp_tape *armed;
		uint64_t before;
		pid_t pid;
		int status;

		ck_assert_msg(event_arm(path, BROKER, at % 2 ? PP_ARM_SWAP | PP_ARM_STOPS : 0,
					&failure) == 0,
			      "%s", failure.sentence);
		check_event("arm", at);
		before = records_at(path);
		armed = map_tape();
		fire(armed, ++count, &pause_spec);
		munmap(armed, sizeof(*armed));
		pid = fork();
		if (pid == 0) {
			steps_left = at;
			_exit(event_turn(path, BROKER, 0, &orphans, &failure) < 0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		through = WEXITSTATUS(status) != KILLED;
		ck_assert(!through || WEXITSTATUS(status) == 0);
		start_again();
		if (event_arm_state(path) == ARM_STOPPED)
			ck_assert_int_eq(event_turn(path, BROKER, 0, &orphans, &failure), 2);
		expect_stopped(path, count);
		ck_assert_uint_eq(records_at(path), before);
		pause_it(false);
		check_event("stop", at);
	}
	delete ();
}
END_TEST

/* ── ─────────────────────────────────────────────────────────────────────────────────────── */

int main(void)
{
	const int n_kinds = ARRAY_SIZE(kinds);
	Suite *s = suite_create("event life");
	TCase *t = tcase_create("life");
	int r;

	log_open("test-event-life");
	umask(077);
	need(no_bpffs());
	need(no_btf());
	need(no_tracefs());
	need(no_dir(registry));
	snprintf(closer_name, sizeof(closer_name), "pp-%d", getpid());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, changes_are_exact, 0, n_kinds);
	tcase_add_loop_test(t, arming_is_exact, 0, 2 * n_kinds);
	tcase_add_loop_test(t, turns_are_exact, 0, 4 * n_kinds);
	tcase_add_loop_test(t, stops_are_exact, 0, 2 * n_kinds);
	tcase_add_loop_test(t, changes_take_effect, 0, n_kinds);
	tcase_add_loop_test(t, a_pause_records_nothing, 0, n_kinds);
	tcase_add_test(t, counts_go_on_with_one_program);
	tcase_add_test(t, without_totals);
	tcase_add_test(t, totals_of_another_engine);
	tcase_add_test(t, several_sources);
	tcase_add_test(t, a_glob_of_one);
	tcase_add_loop_test(t, refused, 0, ARRAY_SIZE(refusals));
	tcase_add_test(t, refused_before_much_is_linked);
	tcase_add_test(t, no_such_task);
	tcase_add_test(t, bound_to_a_task);
	if (!no_btf())
		tcase_add_test(t, bound_to_a_task_that_forks);
	tcase_add_test(t, many_calls_have_two_links);
	tcase_add_test(t, counters_go_first);
	tcase_add_test(t, a_refused_change);
	tcase_add_test(t, other_periods_take_effect);
	tcase_add_test(t, a_period_counts_what_is_missed);
	tcase_add_test(t, nothing_samples);
	tcase_add_loop_test(t, killed, 0, PERIOD);
	tcase_add_test(t, killed_at_a_period);
	tcase_add_test(t, a_read_fails_at_the_start);
	tcase_add_test(t, cut_changes_count);
	tcase_add_test(t, killed_turns);
	tcase_add_test(t, killed_stops);
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
