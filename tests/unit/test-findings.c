// SPDX-License-Identifier: LGPL-2.1-or-later
/* Facts become findings: who did it, how often and how long; and what is usual becomes none. */
#include <signal.h>

#include "tests/unit/findings-fixture.h"

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
	ck_assert_uint_eq(g->percent, 92); /* 36 of 39 ms: while it was blocked */
	ck_assert_uint_eq(g->max, 40 * MS);
	ck_assert_ptr_null(find(FINDING_BLOCKED));
}
END_TEST

/* Another disk was idle nearly all the time (0), somebody had this one long before (1), or made a small part of
 * what the kernel wrote for others (2). */
START_TEST(test_disk_of_others)
{
	const struct finding *g;

	for (uint64_t t = 500; t < 600; t += 10)
		request(_i == 2 ? "kworker/u4:1" : "dd", 20, t, t + 10);
	if (_i == 0)
		ended(LATENCY_BLOCK, "8:16 write device", "logger", 40, 510, 511, NULL, 0);
	for (uint64_t t = 0; _i == 1 && t < 300; t += 10)
		request("tar", 40, t, t + 10);
	if (_i == 2)
		request("small", 30, 510, 514);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 500, 600, NULL, 0);
	finish(1000);
	g = find(FINDING_DISK);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, _i == 2 ? "kworker/u4:1" : "dd", 20);
	is(&g->victim, "small", 30);
	ck_assert_uint_eq(n_found, 1);
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

/* A virtual machine handles its faults (0), and dies of one, however often that is sent (1). */
START_TEST(test_handled)
{
	struct latency_who thread = who("java", 21), other = who("java", 22);
	struct latency_now now = { .time = 5 * MS, .who = thread };

	ran("java", 21, 0, 1, 2, true); /* which tells its process */
	ck_assert_int_eq(findings_signal(f, &now, &thread, SIGSEGV, 1), 0);
	now.time = 6 * MS;
	if (_i == 0) {
		ck_assert_int_eq(findings_fork(f, &now, &thread, &other), 0);
		ran("java", 22, 0, 6, 7, true);
	} else {
		ck_assert_int_eq(findings_signal(f, &now, &thread, SIGSEGV, 1), 0);
		ck_assert_int_eq(findings_signal(f, &now, &thread, SIGABRT, -6), 0);
	}
	now.time = 900 * MS;
	ck_assert_int_eq(findings_exit(f, &now, &thread), 0);
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_CRASH), _i);
	if (!_i)
		return;
	ck_assert_uint_eq(find(FINDING_CRASH)->n, 1);
	ck_assert_int_eq(find(FINDING_CRASH)->number, SIGSEGV);
	ck_assert_uint_eq(find(FINDING_CRASH)->begin, 5 * MS);
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

/* A thread dies of a fault, and the process is killed while it is dying: that is its fault still. */
START_TEST(test_killed_while_dying)
{
	struct latency_who thread = who("service", 21), process = who("service", 20);
	struct latency_now now = { .time = 5 * MS, .who = thread };

	ran("service", 21, 0, 1, 2, true); /* which tells its process */
	ck_assert_int_eq(findings_signal(f, &now, &thread, SIGABRT, -6), 0);
	now.time = 9 * MS;
	ck_assert_int_eq(findings_signal(f, &now, &process, SIGKILL, 128), 0);
	ck_assert_int_eq(findings_exit(f, &now, &thread), 0);
	ck_assert_int_eq(findings_exit(f, &now, &process), 0);
	finish(1000);
	ck_assert_int_eq(found[0].kind, FINDING_CRASH);
	is(&found[0].culprit, "service", 20);
	ck_assert_int_eq(found[0].number, SIGABRT);
	ck_assert_uint_eq(found[0].begin, 5 * MS);
}
END_TEST

/* The kernel kills it, and says why before or afterwards: that is one finding. */
START_TEST(test_out_of_memory)
{
	struct latency_who victim = who("victim", 20);
	struct latency_now now = { .time = 5 * MS, .who = victim };

	if (_i)
		ck_assert_int_eq(findings_victim(f, &now, &victim), 0);
	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGKILL, 128), 0);
	if (!_i)
		ck_assert_int_eq(findings_victim(f, &now, &victim), 0);
	ck_assert_int_eq(findings_exit(f, &now, &victim), 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	ck_assert_int_eq(found[0].kind, FINDING_OOM);
	is(&found[0].culprit, "victim", 20);
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

/* It slept, as nobody does who frees memory: the record of an end is missing. */
START_TEST(test_memory_without_end)
{
	struct latency_now now = { .time = 10 * MS, .who = who("eater", 20) };

	ck_assert_int_eq(findings_reclaim(f, &now, true), 0);
	ended(LATENCY_OFF_CPU, "S", "eater", 20, 20, 500, NULL, 0);
	now.time = 600 * MS;
	ck_assert_int_eq(findings_reclaim(f, &now, false), 0);
	finish(1000);
	ck_assert_ptr_null(find(FINDING_MEMORY));
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

/* Each stop has its own. */
START_TEST(test_stopped_twice)
{
	struct latency_now now = { .time = 99 * MS, .who = who("first", 50) };
	struct latency_who victim = who("victim", 20);
	const struct finding *g;

	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGSTOP, 0), 0);
	ended(LATENCY_OFF_CPU, "T", "victim", 20, 100, 400, "other", 60);
	now.who = _i ? victim : who("second", 70);
	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGSTOP, 0), 0);
	ended(LATENCY_OFF_CPU, "T", "victim", 20, 500, 520, "other", 60);
	finish(1000);
	ck_assert_uint_eq(n_found, 2 - _i);
	g = find(FINDING_STOPPED);
	is(&g->culprit, "first", 50);
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

/* Several of one name, in turn, are one row with the time of all. */
START_TEST(test_cpu_of_several)
{
	const struct finding *g;

	for (uint32_t i = 0; i < 5; i++)
		ran(i ? "cc1" : "make", 30 + i, 0, 4 * i, 4 * i + 4, true);
	ran("make", 30, 0, 20, 25, true); /* the longest */
	ended(LATENCY_WAKEUPS, "woken", "loop", 11, 4, 20, NULL, 0);
	finish(1000);
	g = find(FINDING_CPU);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, "cc1", 30);
	ck_assert_uint_eq(g->percent, 100);
	ck_assert_uint_eq(g->max, 16 * MS);
}
END_TEST

/* Two threads of one process have its number. */
START_TEST(test_several_threads)
{
	ran("cc1", 31, 0, 0, 1, true); /* which tells the process */
	ran("cc1", 32, 0, 1, 2, true);
	ended(LATENCY_OFF_CPU, "D", "cc1", 31, 2, 42, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "cc1", 32, 2, 32, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&found[0].victim, "cc1", 30);
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

int main(void)
{
	Suite *s = suite_create("findings");
	TCase *tc = tcase_create("findings");

	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, test_nothing);
	tcase_add_test(tc, test_cpu);
	tcase_add_test(tc, test_cpu_of_others);
	tcase_add_test(tc, test_cpu_of_the_kernel);
	tcase_add_loop_test(tc, test_burst, 0, ARRAY_SIZE(bursts));
	tcase_add_test(tc, test_disk);
	tcase_add_loop_test(tc, test_disk_of_others, 0, 3);
	tcase_add_test(tc, test_blocked);
	tcase_add_loop_test(tc, test_forks, 0, 2);
	tcase_add_test(tc, test_forks_apart);
	tcase_add_test(tc, test_threads);
	tcase_add_loop_test(tc, test_crash, 0, ARRAY_SIZE(signals));
	tcase_add_loop_test(tc, test_handled, 0, 2);
	tcase_add_test(tc, test_crash_of_a_waker);
	tcase_add_test(tc, test_killed_while_dying);
	tcase_add_loop_test(tc, test_out_of_memory, 0, 2);
	tcase_add_test(tc, test_killed_by_parent);
	tcase_add_test(tc, test_memory);
	tcase_add_test(tc, test_memory_without_end);
	tcase_add_test(tc, test_disks);
	tcase_add_loop_test(tc, test_hang, 0, ARRAY_SIZE(hangs));
	tcase_add_loop_test(tc, test_open, 0, 8);
	tcase_add_loop_test(tc, test_open_and_woken, 0, 2);
	tcase_add_loop_test(tc, test_stopped, 0, 2);
	tcase_add_loop_test(tc, test_stopped_twice, 0, 2);
	tcase_add_test(tc, test_stopped_by_the_terminal);
	tcase_add_loop_test(tc, test_held, 0, 3);
	tcase_add_loop_test(tc, test_held_long, 0, 4);
	tcase_add_test(tc, test_taken_over);
	tcase_add_loop_test(tc, test_preempted, 0, 3);
	tcase_add_test(tc, test_several);
	tcase_add_test(tc, test_several_threads);
	tcase_add_test(tc, test_cpu_of_several);
	tcase_add_test(tc, test_usage);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
