// SPDX-License-Identifier: LGPL-2.1-or-later
/* Facts become findings: who did it, how often and how long; and what is usual becomes none. */
#include "client/perfctl/replay/compare-findings.h"

#include <signal.h>
#include <string.h>

#include "proto/macro.h"
#include "tests/unit/needs.h"

#define MS UINT64_C(1000000)

static struct findings *f;
static const struct finding *found;
static size_t n_found;
static bool knows_disks;

static void begin(void)
{
	knows_disks = true;
	ck_assert_int_eq(findings_new(&f), 0);
}

static void end(void)
{
	findings_free(f);
}

static struct latency_who who(const char *comm, uint32_t tid)
{
	struct latency_who w = { .tid = tid };

	snprintf(w.comm, sizeof(w.comm), "%s", comm);
	return w;
}

static void ran(const char *comm, uint32_t tid, uint32_t cpu, uint64_t from, uint64_t to,
		bool sleeps)
{
	struct latency_run run = { .begin = from * MS,
				   .end = to * MS,
				   .cpu = cpu,
				   .pid = tid / 10 * 10,
				   .who = who(comm, tid),
				   .sleeps = sleeps };

	ck_assert_int_eq(findings_ran(f, &run), 0);
}

/* Times in ms. */
static void ended(enum latency_kind kind, const char *label, const char *comm, uint32_t tid,
		  uint64_t from, uint64_t to, const char *waker, uint32_t waker_tid)
{
	struct latency_interval one = {
		.begin = from * MS,
		.end = to * MS,
		.who = who(comm, tid),
		.pid = tid / 10 * 10, /* threads of one process differ in their last digit */
		.label = label,
		.was_woken = waker,
		.knows_disks = knows_disks,
		.waker = who(waker ?: "", waker_tid),
	};

	ck_assert_int_eq(findings_ended(f, kind, &one), 0);
}

static void finish(uint64_t until)
{
	ck_assert_int_eq(findings_finish(f, 0, until * MS, &found, &n_found), 0);
}

static const struct finding *find(enum finding_kind kind)
{
	for (size_t i = 0; i < n_found; i++)
		if (found[i].kind == kind)
			return &found[i];
	return NULL;
}

static void is(const struct finding_party *p, const char *comm, uint32_t id)
{
	ck_assert_str_eq(p->comm, comm);
	ck_assert_uint_eq(p->id, id);
}

START_TEST(test_nothing)
{
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
}
END_TEST

/* The hog had 30 of the 40 ms that each of two waits took. */
START_TEST(test_cpu)
{
	const struct finding *g;

	for (uint64_t t = 0; t < 400; t += 200) {
		ran("other", 30, 0, t, t + 10, false);
		ran("hog", 20, 0, t + 10, t + 60, true); /* also when nobody waits any more */
		ended(LATENCY_WAKEUPS, "woken", "loop", 10, t, t + 40, NULL, 0);
		ended(LATENCY_WAKEUPS, "preempted", "loop", 10, t + 41, t + 60, NULL, 0);
	}
	finish(1000);
	g = find(FINDING_CPU);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, "hog", 20);
	is(&g->victim, "loop", 10);
	ck_assert_uint_eq(g->n, 2);
	ck_assert_uint_eq(g->max, 40 * MS);
	ck_assert_uint_eq(g->sum, 80 * MS);
	ck_assert_uint_eq(g->percent, 75);
	ck_assert_uint_eq(g->begin, 0);
}
END_TEST

/* Of another CPU's threads nobody is to blame; nor where the thread that waits runs all the time itself. */
START_TEST(test_cpu_of_others)
{
	ran("hog", 20, 1, 0, 500, true);
	ended(LATENCY_WAKEUPS, "woken", "loop", 10, 0, 400, NULL, 0);
	ran("busy", 40, 0, 0, 400, false);
	ran("busy", 50, 0, 400, 1000, false);
	ran("busy", 50, 2, 0, 400, false);
	ended(LATENCY_WAKEUPS, "woken", "busy", 50, 350, 400, NULL, 0);
	finish(1000);
	for (size_t i = 0; i < n_found; i++)
		if (found[i].kind == FINDING_CPU)
			is(&found[i].victim, "loop", 10);
}
END_TEST

/* What waits for a kernel thread waits for somebody else's work. */
START_TEST(test_cpu_of_the_kernel)
{
	ran("hog", 20, 0, 0, 100, true);
	ended(LATENCY_WAKEUPS, "woken", "loop", 10, 0, 100, NULL, 0);
	ended(LATENCY_WAKEUPS, "woken", "kworker/0:1", 30, 0, 100, NULL, 0);
	ended(LATENCY_WAKEUPS, "woken", "perfctl", 40, 0, 100, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 2);
	is(&found[0].victim, "loop", 10);
	ck_assert(found[0].weight > 99 && found[0].weight < 101);
	is(&found[1].victim, "perfctl", 40);
}
END_TEST

/* _i: how long the long one is, in ms; a steady thread is no finding however long it runs. */
static const struct {
	uint64_t usual, once, n;
	bool stands_out;
} bursts[] = {
	{ 1, 150, 20, true }, { 1, 20, 20, true },    { 1, 19, 20, false },
	{ 0, 9, 20, false },  { 150, 150, 5, false }, { 1, 150, 8, false },
};

START_TEST(test_burst)
{
	uint64_t t = 0, usual = bursts[_i].usual;
	const struct finding *g;

	for (uint64_t i = 0; i < bursts[_i].n; i++, t += 200)
		ran("server", 10, 0, t, t + usual, true);
	/* In two parts: another thread got the CPU meanwhile. */
	ran("server", 10, 0, t, t + bursts[_i].once / 2, false);
	ran("server", 10, 1, t + 100, t + 100 + bursts[_i].once - bursts[_i].once / 2, true);
	finish(t + 100000);
	g = find(FINDING_BURST);
	ck_assert_int_eq(!!g, bursts[_i].stands_out);
	if (!g)
		return;
	is(&g->culprit, "server", 10);
	ck_assert_uint_eq(g->n, 1);
	ck_assert_uint_eq(g->max, bursts[_i].once * MS);
	ck_assert_uint_eq(g->usual, usual * MS);
	ck_assert_uint_eq(g->begin, t * MS);
}
END_TEST

static void sleeps(uint32_t waiter, const char *waker, uint32_t waker_tid)
{
	for (uint64_t t = 0; t < 20; t++)
		ended(LATENCY_OFF_CPU, "S", "waiter", waiter, t, t + 1, "timer", 999);
	ended(LATENCY_OFF_CPU, "S", "waiter", waiter, 100, 150, waker, waker_tid);
}

/* The holder ran for 40 of 50 ms. */
START_TEST(test_sleep)
{
	const struct finding *g;

	sleeps(11, "holder", 12);
	ran("holder", 12, 0, 100, 120, false);
	ran("holder", 12, 1, 130, 150, true);
	finish(1000);
	g = find(FINDING_SLEEP);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, "holder", 12);
	is(&g->victim, "waiter", 11);
	ck_assert_uint_eq(g->max, 50 * MS);
	ck_assert_uint_eq(g->percent, 80);
	ck_assert_uint_eq(g->usual, 1 * MS);
}
END_TEST

/* Another process lets it wait. An interrupt can wake it in any: so not one that ran meanwhile, itself or
 * another one of its name (a loop that begins many), unless it slept as soon as it had woken it; nor a thread
 * of the kernel, nor one whose end it waited for. */
static const struct {
	const char *waker;
	uint32_t runs; /* who runs; 0: nobody */
	uint64_t from, to;
	bool ends, is_told;
} peers[] = {
	{ "peer", 0, 0, 0, false, true },	  { "peer", 72, 100, 151, false, false },
	{ "peer", 72, 20, 150, false, true },	  { "peer", 92, 100, 130, false, false },
	{ "kworker/0:1", 0, 0, 0, false, false }, { "peer", 0, 0, 0, true, false },
	{ "peer", 72, 200, 300, false, true },
};

START_TEST(test_peer)
{
	const char *waker = peers[_i].waker;
	struct latency_now now = { .time = 149 * MS };
	struct latency_who ending = who(waker, 72);
	const struct finding *g;

	if (peers[_i].runs)
		ran(waker, peers[_i].runs, 0, peers[_i].from, peers[_i].to, true);
	if (peers[_i].ends)
		ck_assert_int_eq(findings_exit(f, &now, &ending), 0);
	sleeps(11, waker, 72);
	finish(1000);
	ck_assert_ptr_null(find(FINDING_SLEEP));
	g = find(FINDING_PEER);
	ck_assert_int_eq(!!g, peers[_i].is_told);
	if (!g)
		return;
	is(&g->culprit, "peer", 72);
	is(&g->victim, "waiter", 11);
	ck_assert_ptr_null(g->through.comm);
	ck_assert_uint_eq(g->max, 50 * MS);
}
END_TEST

/* Who mostly wakes it does so however much it runs; but not a thread of the kernel, which hands on what others do. */
START_TEST(test_peer_as_usual)
{
	const char *waker = _i ? "kworker/u8:1" : "server";

	for (uint64_t t = 0; t < 20; t++)
		ended(LATENCY_OFF_CPU, "S", "waiter", 11, t, t + 1, waker, 72);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 100, 160, waker, 72);
	ran(waker, 72, 0, 0, 1000, false);
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_PEER), !_i);
	ck_assert_int_eq(n_found, 2 - _i); /* and who had the CPU */
}
END_TEST

/* Who sleeps so two thirds of the time may be idle: it weighs a ninth. */
START_TEST(test_peer_weighs)
{
	double weight[2];

	for (int i = 0; i < 2; i++) {
		end();
		begin();
		sleeps(11, "peer", 72);
		if (i)
			ended(LATENCY_OFF_CPU, "S", "waiter", 11, 200, 817, "stranger", 52);
		ran("stranger", 52, 0, 0, 1000, false);
		finish(1000);
		weight[i] = find(FINDING_PEER)->weight;
	}
	ck_assert(weight[1] > weight[0] / 9.2 && weight[1] < weight[0] / 7.8);
}
END_TEST

/* Nobody woke it: it can have waited for another machine. Not so who hardly does anything else (1), and a thread of
 * the kernel (2). */
START_TEST(test_alone)
{
	const struct finding *g;

	for (uint64_t t = 0; t < 20; t++)
		ended(LATENCY_OFF_CPU, "S", _i == 2 ? "ksoftirqd/0" : "client", 11, t, t + 1, NULL,
		      0);
	ended(LATENCY_OFF_CPU, "S", _i == 2 ? "ksoftirqd/0" : "client", 11, 50, _i == 1 ? 951 : 949,
	      NULL, 0);
	finish(1000);
	g = find(FINDING_ALONE);
	ck_assert_int_eq(!!g, _i == 0);
	if (!g)
		return;
	ck_assert_ptr_null(g->culprit.comm);
	is(&g->victim, "client", 11);
	ck_assert_uint_eq(g->max, 899 * MS);
	ck_assert_uint_eq(g->usual, MS);
}
END_TEST

/* Where sched_process_exit is not recorded, its last switch tells. */
START_TEST(test_peer_that_ends)
{
	struct latency_run run = { .begin = 149 * MS,
				   .end = 150 * MS,
				   .pid = 70,
				   .who = who("peer", 72),
				   .sleeps = true,
				   .exits = _i };

	ck_assert_int_eq(findings_ran(f, &run), 0);
	sleeps(11, "peer", 72);
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_PEER), !_i);
}
END_TEST

/* A timer came upon it, as most such sleeps have no known waker (of two like it, none or one has). */
START_TEST(test_peer_by_timer)
{
	sleeps(11, "peer", 72);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 200, 250, _i ? "peer" : NULL, 72);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 300, 350, NULL, 0);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 400, 424, NULL,
	      0); /* too short to be like these */
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_PEER), _i);
}
END_TEST

/* Who does hardly anything else than to sleep has nothing to do. */
START_TEST(test_peer_of_an_idler)
{
	sleeps(11, "peer", 72);
	for (uint64_t t = 200; t < 2000; t += 100)
		ended(LATENCY_OFF_CPU, "S", "waiter", 11, t, t + 100, "peer", 72);
	finish(2000);
	ck_assert_int_eq(!!find(FINDING_PEER), 0);
}
END_TEST

/* A client asks each 100 ms: what it sleeps in between is not what it waits for answers. */
START_TEST(test_peer_of_a_paced_client)
{
	for (uint64_t t = 0; t < 2000; t += 100) {
		ended(LATENCY_OFF_CPU, "S", "client", 11, t, t + 1, "server", 72);
		ended(LATENCY_OFF_CPU, "S", "client", 11, t + 1, t + 100, NULL, 0);
		ended(LATENCY_OFF_CPU, "S", "client", 11, t, t + 98, NULL, 0);
	}
	ended(LATENCY_OFF_CPU, "S", "client", 11, 2000, 2250, "server", 72);
	finish(3000);
	ck_assert_ptr_nonnull(find(FINDING_PEER));
	ck_assert_uint_eq(find(FINDING_PEER)->max, 250 * MS);
	ck_assert_uint_eq(find(FINDING_PEER)->usual, 1 * MS);
}
END_TEST

/* The waker waited itself: for a third one, which kept it sleeping (0), blocked (1), or from the CPU (2, 3); or
 * mostly it did not (4). An interrupt may have come upon another process (5). */
START_TEST(test_root)
{
	const struct finding *g;

	ran("root", 13, 3, 0, 1, true);
	switch (_i) {
	case 0:
	case 1:
		ended(LATENCY_OFF_CPU, _i ? "D" : "S", "holder", 12, 101, 149, "root", 13);
		break;
	case 2:
	case 3:
		ran("root", 13, 0, 90, 160, true);
		ended(LATENCY_WAKEUPS, _i == 2 ? "woken" : "preempted", "holder", 12, 102, 149,
		      NULL, 0);
		break;
	case 5:
		ended(LATENCY_OFF_CPU, "S", "holder", 12, 101, 149, "root", 73);
		break;
	default:
		ended(LATENCY_OFF_CPU, "S", "holder", 12, 101, 120, "root", 13);
	}
	sleeps(11, "holder", 12);
	finish(1000);
	for (g = found; g < found + n_found; g++)
		if (g->kind == FINDING_SLEEP && !strcmp(g->victim.comm, "waiter"))
			break;
	ck_assert(g < found + n_found);
	if (_i >= 4) {
		is(&g->culprit, "holder", 12);
		ck_assert_ptr_null(g->through.comm);
	} else {
		is(&g->culprit, "root", 13);
		is(&g->through, "holder", 12);
	}
}
END_TEST

/* Of a convoy each wakes the next; the first was woken by the one who held what all wait for. Records that go in
 * a circle end. */
START_TEST(test_convoy)
{
	ran("root", 10, 3, 0, 1, true);
	for (uint32_t i = 0; i < 8; i++)
		ended(LATENCY_OFF_CPU, "S", "next", 12 + i, 100, 150 - i,
		      i < 7 || _i ? "next" : "root",
		      i < 7 ? 13 + i
		      : _i  ? 12
			    : 10);
	sleeps(11, "next", 12);
	finish(1000);
	ck_assert_ptr_nonnull(find(FINDING_SLEEP));
	if (!_i)
		is(&find(FINDING_SLEEP)->culprit, "root", 10);
}
END_TEST

static void request(const char *comm, uint32_t tid, uint64_t from, uint64_t to)
{
	ended(LATENCY_BLOCK, "254:0 write queue", comm, tid, from, from + 1, NULL, 0);
	ended(LATENCY_BLOCK, "254:0 write device", comm, tid, from + 1, to, NULL, 0);
}

START_TEST(test_disk)
{
	const struct finding *g;

	for (uint64_t t = 0; t < 100; t += 10) {
		request("dd", 20, t, t + 10);
		ended(LATENCY_OFF_CPU, "D", "dd", 20, t, t + 10, NULL, 0);
	}
	request("small", 30, 0, 4);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 40, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "jbd2/vda-8", 90, 0, 80, NULL, 0);
	finish(1000);
	g = find(FINDING_DISK);
	ck_assert_ptr_nonnull(g);
	ck_assert_str_eq(g->device, "254:0");
	is(&g->culprit, "dd", 20);
	is(&g->victim, "small", 30);
	ck_assert_uint_eq(g->percent, 96); /* 90 of 93 ms */
	ck_assert_uint_eq(g->max, 40 * MS);
	ck_assert_ptr_null(find(FINDING_BLOCKED));
}
END_TEST

/* Without block requests. */
START_TEST(test_blocked)
{
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 40, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "quick", 40, 0, 4, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "perfpersist-eng", 50, 0, 40, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&find(FINDING_BLOCKED)->victim, "small", 30);
}
END_TEST

static void forks(uint64_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++) {
		struct latency_now now = { .time = i * MS };
		struct latency_who parent = who("sh", 10), child = who("sh", 1000 + 10 * i);

		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
		ran(name, 1000 + 10 * i, 0, i, i + 1, true);
		child = who(name, 1000 + i);
		ck_assert_int_eq(findings_exit(f, &now, &child), 0);
	}
}

START_TEST(test_forks)
{
	const struct finding *g;

	forks(_i ? 20 : 19, "true");
	finish(1000);
	g = find(FINDING_FORKS);
	ck_assert_int_eq(!!g, _i);
	if (!g)
		return;
	is(&g->culprit, "sh", 10);
	is(&g->victim, "true", 0);
	ck_assert_uint_eq(g->n, 20);
	ck_assert_uint_eq(g->sum, 20 * MS);
	ck_assert_uint_eq(g->begin, 0);
	ck_assert_uint_eq(g->end, 19 * MS);
}
END_TEST

/* One a minute is nothing. */
START_TEST(test_forks_apart)
{
	for (uint32_t i = 0; i < 30; i++) {
		struct latency_now now = { .time = i * 60000 * MS };
		struct latency_who parent = who("sh", 10), child = who("sleep", 1000 + 10 * i);

		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
	}
	finish(1800000);
	ck_assert_uint_eq(n_found, 0);
}
END_TEST

/* Threads are no processes. */
START_TEST(test_threads)
{
	for (uint32_t i = 0; i < 200; i++) {
		struct latency_now now = { .time = i * MS };
		struct latency_who parent = who("sh", 10), child = who("sh", 11);

		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
		ended(LATENCY_OFF_CPU, "S", "sh", 11, i, i, NULL, 0);
	}
	finish(1000);
	ck_assert_ptr_null(find(FINDING_FORKS));
}
END_TEST

static const struct {
	int number, code;
	bool exits, by_itself, stands_out;
	uint32_t sender; /* as told; 0: nobody */
} signals[] = {
	{ SIGSEGV, 1, true, true, true, 0 },	{ SIGSEGV, 1, false, true, false, 0 },
	{ SIGABRT, -6, true, true, true, 0 },	{ SIGTERM, 0, true, false, false, 0 },
	{ SIGKILL, 0, true, false, true, 50 },	{ SIGSEGV, 0, true, false, true, 50 },
	{ SIGKILL, 128, true, false, true, 0 },
};

START_TEST(test_crash)
{
	struct latency_who victim = who("victim", 20);
	struct latency_now now = { .time = 5 * MS, .who = who("sender", 50) };
	const struct finding *g;

	if (signals[_i].by_itself)
		now.who = victim;
	ck_assert_int_eq(findings_signal(f, &now, &victim, signals[_i].number, signals[_i].code),
			 0);
	if (signals[_i].exits)
		ck_assert_int_eq(findings_exit(f, &now, &victim), 0);
	finish(1000);
	g = find(FINDING_CRASH);
	ck_assert_int_eq(!!g, signals[_i].stands_out);
	if (!g)
		return;
	is(&g->culprit, "victim", 20);
	ck_assert_int_eq(g->number, signals[_i].number);
	ck_assert_uint_eq(g->begin, 5 * MS);
	if (signals[_i].sender)
		is(&g->victim, "sender", signals[_i].sender);
	else
		ck_assert_ptr_null(g->victim.comm);
}
END_TEST

/* It woke another thread when it had another name, and that one runs only now. */
START_TEST(test_crash_of_a_waker)
{
	struct latency_who victim = who("victim", 20);
	struct latency_now now = { .time = 5 * MS, .who = victim };

	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGSEGV, 1), 0);
	ended(LATENCY_OFF_CPU, "S", "other", 11, 1, 6, "parent", 20);
	ck_assert_int_eq(findings_exit(f, &now, &(struct latency_who){ .tid = 20 }), 0);
	finish(1000);
	ck_assert_ptr_nonnull(find(FINDING_CRASH));
	is(&find(FINDING_CRASH)->culprit, "victim", 20);
}
END_TEST

/* A shell that ends what it began has its reasons: that weighs little. */
START_TEST(test_killed_by_parent)
{
	struct latency_who parent = who("sh", 10), child = who("sh", 20);
	struct latency_now now = { .time = 5 * MS, .who = parent };

	ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
	ck_assert_int_eq(findings_signal(f, &now, &child, SIGKILL, 0), 0);
	ck_assert_int_eq(findings_exit(f, &now, &child), 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	ck_assert(found[0].weight <= 10);
}
END_TEST

START_TEST(test_memory)
{
	struct latency_now now = { .time = 10 * MS, .who = who("eater", 20) };
	struct latency_who victim = who("", 20);
	const struct finding *g;

	ck_assert_int_eq(findings_reclaim(f, &now, false), 0); /* began before the records */
	ck_assert_int_eq(findings_reclaim(f, &now, true), 0);
	now.time = 40 * MS;
	ck_assert_int_eq(findings_reclaim(f, &now, false), 0);
	now.time = 60 * MS;
	ck_assert_int_eq(findings_reclaim(f, &now, false), 0); /* its beginning is missing */
	ck_assert_int_eq(findings_victim(f, &now, &victim), 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 2);
	ck_assert_int_eq(found[0].kind, FINDING_OOM);
	is(&found[0].culprit, "eater", 20);
	g = find(FINDING_MEMORY);
	is(&g->victim, "eater", 20);
	ck_assert_uint_eq(g->n, 1);
	ck_assert_uint_eq(g->max, 30 * MS);
}
END_TEST

/* No disk explains it: another thread of the process (0), or a process (1), woke it. While a disk had requests it may
 * have been an interrupt (2, 3). Nobody is known (4). */
START_TEST(test_blocked_by)
{
	bool on_disk = _i == 2 || _i == 3, own = _i == 0 || _i == 2;
	enum finding_kind kind = own ? FINDING_SLEEP : FINDING_PEER;

	if (own)
		ran("waker", 31, 1, 0, 60, false);
	request("dd", 90, 0, on_disk ? 90 : 12);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 60, _i == 4 ? NULL : "waker", own ? 31 : 72);
	finish(1000);
	ck_assert_int_eq(!!find(kind), _i < 2);
	ck_assert_int_eq(!!find(FINDING_DISK), on_disk);
	ck_assert_int_eq(!!find(FINDING_BLOCKED), _i == 4);
	if (find(kind)) {
		ck_assert(find(kind)->is_blocked);
		ck_assert_uint_eq(find(kind)->usual, 0);
	}
}
END_TEST

/* A short vfork(), which is no finding (0), and a long one (1); and what began before the requests are known (2). */
START_TEST(test_blocked_or_not)
{
	struct latency_now now = { .time = 0 };
	struct latency_who parent = who("sh", 30), child = who("sh", 50);
	uint64_t ms = _i == 1 ? 100 : 99;

	request("dd", 90, 900, 960);
	if (_i < 2)
		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
	knows_disks = _i != 2;
	ended(LATENCY_OFF_CPU, "D", "sh", 30, 0, ms, "sh", 50);
	finish(1000);
	ck_assert_uint_eq(n_found, _i == 1);
}
END_TEST

/* Times with requests are counted once, however many overlap. */
START_TEST(test_disks)
{
	request("dd", 90, 0, 9);
	request("dd", 90, 2, 5);
	request("dd", 90, 30, 40);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 36, NULL, 0); /* 8 + 5 of 36 ms */
	finish(1000);
	ck_assert_ptr_nonnull(find(FINDING_BLOCKED));
	end();
	begin();
	request("dd", 90, 0, 9);
	request("dd", 90, 25, 40);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 36, NULL, 0); /* 8 + 10 */
	finish(1000);
	ck_assert_ptr_null(find(FINDING_DISK)); /* half of it */
	end();
	begin();
	request("dd", 90, 0, 10);
	request("dd", 90, 25, 40);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 36, NULL, 0);
	finish(1000);
	ck_assert_ptr_nonnull(find(FINDING_DISK));
}
END_TEST

static void stays_until(enum latency_kind kind, const char *label, const char *comm, uint32_t tid,
			uint64_t from, uint64_t to)
{
	struct latency_interval one = {
		.begin = from * MS,
		.end = to * MS,
		.is_open = true,
		.cpu = UINT32_MAX,
		.who = who(comm, tid),
		.pid = tid,
		.label = label,
	};

	ck_assert_int_eq(findings_ended(f, kind, &one), 0);
}

static void stays(enum latency_kind kind, const char *label, const char *comm, uint32_t tid,
		  uint64_t from)
{
	stays_until(kind, label, comm, tid, from, 1000);
}

/* It went to sleep each 10 ms for at least a second, and sleeps for a second now. Not so who does not sleep 20 times as
 * long as ever, nor who has only just begun (or is not known for longer), nor who has slept but a few times. */
static const struct {
	uint64_t step, n, longest, until;
	bool is_told;
} hangs[] = {
	{ 10, 110, 5, 2200, true }, { 10, 110, 5, 2099, false }, { 10, 110, 60, 2200, false },
	{ 10, 90, 5, 2200, false }, { 200, 9, 5, 3000, false },
};

START_TEST(test_hang)
{
	uint64_t t = 0;

	for (uint64_t i = 0; i < hangs[_i].n; i++, t += hangs[_i].step)
		ended(LATENCY_OFF_CPU, "S", "victim", 30, t, t + (i == 3 ? hangs[_i].longest : 5),
		      NULL, 0);
	ended(LATENCY_OFF_CPU, "S", "other", 10, 0, 1, NULL, 0);
	ended(LATENCY_OFF_CPU, "S", "other", 50, 0, 1, NULL, 0);
	stays_until(LATENCY_OFF_CPU, "S", "victim", 30, t, hangs[_i].until);
	finish(hangs[_i].until);
	ck_assert_uint_eq(n_found, hangs[_i].is_told);
	if (!n_found)
		return;
	ck_assert_int_eq(found[0].kind, FINDING_HANG);
	is(&found[0].victim, "victim", 30);
	ck_assert_uint_eq(found[0].usual, 5 * MS);
	ck_assert_uint_eq(found[0].max, 1100 * MS);
}
END_TEST

/* What has not ended: a hang (0), a stop (1), a thread that is not let run, by one who has its CPU (2) or has it half
 * of the time (3); but not a sleep (4), nor a request whose end may be missing (5), nor a wait for nobody knows which
 * CPU (6, 7). */
START_TEST(test_open)
{
	static const enum finding_kind kinds[] = { FINDING_BLOCKED, FINDING_STOPPED, FINDING_CPU };

	if (_i != 6)
		ran("victim", 30, 1, 0, 1, false);
	if (_i == 2 || _i == 3) {
		ran("hog", 20, 1, 1, _i == 2 ? 1000 : 500, false);
		ran("other", 40, 1, 500, 1000, false);
	}
	switch (_i) {
	case 0:
		stays(LATENCY_OFF_CPU, "D", "victim", 30, 200);
		break;
	case 1:
		stays(LATENCY_OFF_CPU, "T", "victim", 30, 200);
		break;
	case 4:
		stays(LATENCY_OFF_CPU, "S", "victim", 30, 200);
		break;
	case 7:
		stays(LATENCY_WAKEUPS, "woken", "victim", 30, 1);
		break;
	case 5:
		stays(LATENCY_BLOCK, "254:0 write device", "victim", 30, 200);
		break;
	default:
		stays(LATENCY_WAKEUPS, "preempted", "victim", 30, 1);
	}
	finish(1000);
	for (size_t i = 0; i < n_found; i++)
		if (found[i].is_open) {
			ck_assert_int_lt(_i, 3);
			ck_assert_int_eq(found[i].kind, kinds[_i]);
			is(&found[i].victim, "victim", 30);
			if (_i == 2)
				is(&found[i].culprit, "hog", 20);
			return;
		}
	ck_assert_int_ge(_i, 3);
}
END_TEST

/* It has been woken already, and waits for a CPU. */
START_TEST(test_open_and_woken)
{
	struct latency_interval one = {
		.end = 5000 * MS,
		.is_open = true,
		.cpu = UINT32_MAX,
		.who = who("victim", 30),
		.pid = 30,
		.label = _i ? "D" : "S",
		.was_woken = true,
		.woken = 4900 * MS,
	};

	for (uint64_t t = 0; t < 1200; t += 10)
		ended(LATENCY_OFF_CPU, "S", "victim", 30, t, t + 5, NULL, 0);
	one.begin = 1200 * MS;
	ck_assert_int_eq(findings_ended(f, LATENCY_OFF_CPU, &one), 0);
	finish(5000);
	ck_assert_ptr_null(find(FINDING_HANG));
	for (size_t i = 0; i < n_found; i++)
		ck_assert(!found[i].is_open);
}
END_TEST

/* Who stopped it is told before who let it go on. */
START_TEST(test_stopped)
{
	struct latency_now now = { .time = 99 * MS, .who = who("stopper", 50) };
	struct latency_who victim = who("victim", 20);
	const struct finding *g;

	if (_i)
		ck_assert_int_eq(findings_signal(f, &now, &victim, SIGSTOP, 0), 0);
	ended(LATENCY_OFF_CPU, "T", "victim", 20, 100, 400, "other", 60);
	ended(LATENCY_OFF_CPU, "T", "victim", 20, 500, 509, "other", 60);
	ended(LATENCY_OFF_CPU, "t", "traced", 30, 100, 400, "gdb", 70);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	g = find(FINDING_STOPPED);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, _i ? "stopper" : "other", _i ? 50 : 60);
	is(&g->victim, "victim", 20);
	ck_assert_int_eq(g->number, _i ? SIGSTOP : 0);
	ck_assert_uint_eq(g->max, 300 * MS);
	ck_assert_uint_eq(g->n, 1);
}
END_TEST

/* Nor is it told of each thread of a process. */
START_TEST(test_stopped_by_the_terminal)
{
	struct latency_now now = { .time = 50 * MS, .who = who("stopper", 50) };
	struct latency_who victim = who("victim", 20);

	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGSTOP, 0), 0);
	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGTSTP, 128), 0);
	ended(LATENCY_OFF_CPU, "T", "victim", 20, 100, 400, "bash", 60);
	ended(LATENCY_OFF_CPU, "T", "thread", 31, 100, 400, "bash", 60);
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
}
END_TEST

/* Three times, or for long, nobody ran on its CPU, and on that before it (_i 2: somebody did). */
START_TEST(test_held)
{
	for (uint64_t t = 0; t < 300; t += 100) {
		ran("held", 30, 1, t, t + 10, false);
		if (_i == 2)
			ran("hog", 20, 1, t + 10, t + 60, true);
		ended(LATENCY_WAKEUPS, _i == 1 ? "woken" : "preempted", "held", 30, t + 10, t + 60,
		      NULL, 0);
	}
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_HELD), _i < 2);
	if (_i == 2)
		return;
	is(&find(FINDING_HELD)->victim, "held", 30);
	ck_assert_uint_eq(find(FINDING_HELD)->sum, 150 * MS);
}
END_TEST

/* Once for 100 ms, not twice for 60; and where it had run is known. */
START_TEST(test_held_long)
{
	if (_i < 3)
		ran("held", 30, 1, 0, 1, false);
	if (_i != 1)
		ended(LATENCY_WAKEUPS, "preempted", "held", 30, 100, _i == 2 ? 199 : 200, NULL, 0);
	if (_i == 1) {
		ended(LATENCY_WAKEUPS, "preempted", "held", 30, 100, 160, NULL, 0);
		ended(LATENCY_WAKEUPS, "preempted", "held", 30, 200, 260, NULL, 0);
	}
	ended(LATENCY_WAKEUPS, "woken", "kworker/1:0", 40, 100, 300, NULL, 0);
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_HELD), _i == 0);
}
END_TEST

/* An idle CPU has taken it over from the one where it was kept waiting. */
START_TEST(test_taken_over)
{
	struct latency_interval one = {
		.begin = 10 * MS,
		.end = 60 * MS,
		.cpu = 1,
		.who = who("calc", 30),
		.pid = 30,
		.label = "preempted",
	};

	ran("calc", 30, 0, 0, 10, false);
	ran("fifo", 20, 0, 10, 80, true);
	ran("little", 50, 1, 20, 21, true);
	ck_assert_int_eq(findings_ended(f, LATENCY_WAKEUPS, &one), 0);
	finish(100);
	ck_assert_ptr_nonnull(find(FINDING_CPU));
	is(&find(FINDING_CPU)->culprit, "fifo", 20);
}
END_TEST

/* The scheduler lets threads take turns; what takes longer is another matter. */
START_TEST(test_preempted)
{
	ran("calc", 30, 0, 0, 10, false);
	ran("fifo", 20, 0, 10, _i == 1 ? 25 : 60, true);
	if (_i == 1)
		ran("other", 40, 0, 25, 60, true);
	ended(LATENCY_WAKEUPS, "preempted", "calc", 30, 10, _i == 2 ? 39 : 60, NULL, 0);
	finish(100);
	ck_assert_int_eq(!!find(FINDING_CPU), _i == 0);
	if (_i == 0)
		is(&find(FINDING_CPU)->culprit, "fifo", 20);
}
END_TEST

/* Two processes of one name are one row without a number. */
START_TEST(test_several)
{
	ended(LATENCY_OFF_CPU, "D", "cc1", 30, 0, 40, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "cc1", 40, 0, 30, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&found[0].victim, "cc1", 0);
	ck_assert_uint_eq(found[0].n, 2);
	ck_assert_uint_eq(found[0].max, 40 * MS);
}
END_TEST

/* The recorder's own programs, and who had the CPU. */
START_TEST(test_usage)
{
	ran("cc1", 20, 1, 0, 500, false);
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
	end();
	begin();
	ran("perfctl", 10, 0, 0, 900, false); /* a name that anybody can have */
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	end();
	begin();
	ran("cc1", 20, 1, 0, 600, false);
	ran("sh", 30, 1, 600, 800, false);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&found[0].culprit, "cc1", 20);
	ck_assert_uint_eq(found[0].percent, 75);
}
END_TEST

/* ── A moment and the time before it: the second from 10 s on, and the ten before ── */

static struct compare_findings *c;

/* The thread waits for a CPU that the other has. */
static void waited(const char *comm, uint64_t from, uint64_t to, const char *culprit)
{
	struct latency_run run = { .begin = from * MS,
				   .end = to * MS,
				   .pid = 20,
				   .who = who(culprit, 20),
				   .sleeps = true };
	struct latency_interval one = {
		.begin = from * MS,
		.end = to * MS,
		.who = who(comm, 30),
		.pid = 30,
		.label = "woken",
		.waker = who("", 0),
	};

	ck_assert_int_eq(c->watcher.ran(c, &run), 0);
	ck_assert_int_eq(c->watcher.ended(c, LATENCY_WAKEUPS, &one), 0);
}

static void compare_begin_of(uint64_t seconds_before)
{
	ck_assert_int_eq(
		compare_findings_new((10 - seconds_before) * 1000 * MS, 10000 * MS, 11000 * MS, &c),
		0);
}

static void expect_told(const char *victim)
{
	ck_assert_int_eq(compare_findings_finish(c), 0);
	ck_assert_uint_eq(c->n_told, victim != NULL);
	if (victim)
		ck_assert_str_eq(c->told[0]->victim.comm, victim);
	compare_findings_free(c);
}

/* What is always there is not told, even if it is heavier than what is new. */
START_TEST(test_new)
{
	compare_begin_of(10);
	for (uint64_t t = 0; t < 11000; t += 1000)
		waited("make", t, t + 100, "cc1");
	waited("loop", 10500, 10560, "hog");
	expect_told("loop");
}
END_TEST

/* Or as often, or as long, as ever. */
START_TEST(test_more)
{
	compare_begin_of(10);
	for (uint64_t t = 0; t < 11000; t += 500)
		waited("make", t, t + 40, "cc1");
	if (_i == 0)
		waited("make", 10700, 10790, "cc1"); /* longer */
	for (uint64_t t = 10050; t < 10450 && _i == 1; t += 50)
		waited("make", t, t + 40, "cc1"); /* more */
	if (_i == 2)
		waited("make", 10700, 10770, "cc1"); /* neither */
	expect_told(_i < 2 ? "make" : NULL);
}
END_TEST

/* Where somebody is new in every slice, somebody new is nothing. */
START_TEST(test_noise)
{
	char name[8] = "new-0";

	compare_begin_of(10);
	for (uint64_t t = 0; t < 10000; t += 1000) {
		name[4] = (char)('0' + t / 1000);
		waited(name, t, t + 40, "cc1");
	}
	waited("loop", 10500, _i ? 10570 : 10590, "hog");
	expect_told(_i ? NULL : "loop");
}
END_TEST

/* An earlier incident hides no later one; nor does it count what is older than all slices. */
START_TEST(test_incident)
{
	compare_begin_of(10);
	waited("victim", 3000, 3900, "other");
	waited("loop", 10500, 10560, "hog");
	expect_told("loop");
	compare_begin_of(5);
	waited("loop", 3000, 3900, "hog");
	waited("loop", 10500, 10560, "hog");
	expect_told("loop");
}
END_TEST

/* Two slices say nothing; and a wait that is longer than the moment is of the time before. */
START_TEST(test_too_little)
{
	compare_begin_of(2);
	waited("loop", 10500, 10560, "hog");
	expect_told(NULL);
	compare_begin_of(10);
	waited("loop", 9200, 10560, "hog");
	expect_told(NULL);
}
END_TEST

int main(void)
{
	TCase *moments = tcase_create("moments");
	Suite *s = suite_create("findings");
	TCase *tc = tcase_create("findings");

	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, test_nothing);
	tcase_add_test(tc, test_cpu);
	tcase_add_test(tc, test_cpu_of_others);
	tcase_add_test(tc, test_cpu_of_the_kernel);
	tcase_add_loop_test(tc, test_burst, 0, ARRAY_SIZE(bursts));
	tcase_add_test(tc, test_sleep);
	tcase_add_loop_test(tc, test_peer, 0, ARRAY_SIZE(peers));
	tcase_add_loop_test(tc, test_peer_as_usual, 0, 2);
	tcase_add_test(tc, test_peer_weighs);
	tcase_add_loop_test(tc, test_alone, 0, 3);
	tcase_add_loop_test(tc, test_peer_that_ends, 0, 2);
	tcase_add_loop_test(tc, test_peer_by_timer, 0, 2);
	tcase_add_test(tc, test_peer_of_an_idler);
	tcase_add_test(tc, test_peer_of_a_paced_client);
	tcase_add_loop_test(tc, test_root, 0, 6);
	tcase_add_loop_test(tc, test_convoy, 0, 2);
	tcase_add_test(tc, test_disk);
	tcase_add_test(tc, test_blocked);
	tcase_add_loop_test(tc, test_forks, 0, 2);
	tcase_add_test(tc, test_forks_apart);
	tcase_add_test(tc, test_threads);
	tcase_add_loop_test(tc, test_crash, 0, ARRAY_SIZE(signals));
	tcase_add_test(tc, test_crash_of_a_waker);
	tcase_add_test(tc, test_killed_by_parent);
	tcase_add_test(tc, test_memory);
	tcase_add_loop_test(tc, test_blocked_by, 0, 5);
	tcase_add_loop_test(tc, test_blocked_or_not, 0, 3);
	tcase_add_test(tc, test_disks);
	tcase_add_loop_test(tc, test_hang, 0, ARRAY_SIZE(hangs));
	tcase_add_loop_test(tc, test_open, 0, 8);
	tcase_add_loop_test(tc, test_open_and_woken, 0, 2);
	tcase_add_loop_test(tc, test_stopped, 0, 2);
	tcase_add_test(tc, test_stopped_by_the_terminal);
	tcase_add_loop_test(tc, test_held, 0, 3);
	tcase_add_loop_test(tc, test_held_long, 0, 4);
	tcase_add_test(tc, test_taken_over);
	tcase_add_loop_test(tc, test_preempted, 0, 3);
	tcase_add_test(tc, test_several);
	tcase_add_test(tc, test_usage);
	suite_add_tcase(s, tc);
	tcase_add_test(moments, test_new);
	tcase_add_loop_test(moments, test_more, 0, 3);
	tcase_add_loop_test(moments, test_noise, 0, 2);
	tcase_add_test(moments, test_incident);
	tcase_add_test(moments, test_too_little);
	suite_add_tcase(s, moments);
	return run_suite(s);
}
