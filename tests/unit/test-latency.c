// SPDX-License-Identifier: LGPL-2.1-or-later
/* Intervals from hand-made records: each kind, with halves that are missing. */
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"
#include "tests/unit/needs.h"

enum { S = 1, D = 2, T = 4, X = 0x10, PREEMPTED = 0x100 };

static struct latency *l;
static struct latency_options options;

static void begin(void)
{
	ck_assert_int_eq(latency_new(&options, &l), 0);
}

static void setup(void)
{
	options = (struct latency_options){ .kinds = 0x1f, .top = 20, .has_wakeups = true };
	begin();
}

static void teardown(void)
{
	latency_free(l);
}

static struct latency_who thread(uint32_t tid)
{
	struct latency_who who = { .tid = tid };

	snprintf(who.comm, sizeof(who.comm), tid ? "t%u" : "swapper/%u", tid);
	return who;
}

static struct latency_now at(uint64_t time, uint32_t cpu, uint32_t tid)
{
	return (struct latency_now){ .time = time, .cpu = cpu, .who = thread(tid) };
}

static void switches(uint64_t time, uint32_t cpu, uint32_t prev, uint64_t state, uint32_t next)
{
	struct latency_now now = at(time, cpu, prev);
	struct latency_who from = thread(prev), to = thread(next);

	ck_assert_int_eq(latency_switch(l, &now, state, &from, &to), 0);
}

static void wakes(uint64_t time, uint32_t by, uint32_t tid)
{
	struct latency_now now = at(time, 0, by);
	struct latency_who wakee = thread(tid);

	ck_assert_int_eq(latency_wakeup(l, &now, &wakee, false), 0);
}

static void calls(uint64_t time, uint32_t tid, const char *name)
{
	struct latency_now now = at(time, 0, tid);

	ck_assert_int_eq(latency_call(l, &now, name), 0);
}

static void returns(uint64_t time, uint32_t tid, const char *name)
{
	struct latency_now now = at(time, 1, tid);

	ck_assert_int_eq(latency_return(l, &now, name), 0);
}

/* The sums, as text: each row, then what was not counted. */
static void expect(enum latency_kind kind, uint64_t end, const char *expected)
{
	const struct latency_sums *s = latency_sums(l, kind);
	char text[512] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	ck_assert_int_eq(latency_finish(l, end), 0);
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct latency_row *r = &s->rows[i];

		fprintf(f, "%s/%u %s:", r->comm, r->pid, r->label);
		for (size_t k = 0; k < r->n; k++)
			fprintf(f, " %u", (unsigned)r->all[k]);
		fputs("; ", f);
	}
	fprintf(f, "before %u open %u missing %u", (unsigned)s->begun_before, (unsigned)s->n_open,
		(unsigned)s->missing);
	fclose(f);
	ck_assert_str_eq(text, expected);
}

/* ── the scheduler ── */

/* 7 sleeps from 100 to 150, is woken at 140 by 8, and ran before. */
static void sleep_once(void)
{
	switches(90, 0, 0, 0, 7);
	switches(100, 0, 7, S, 0);
	wakes(140, 8, 7);
	switches(150, 1, 0, 0, 7);
}

/* A watcher is told each run and interval, and at the end what has not ended: in `told`. */
static char told[256];

static void tell(const char *what, uint64_t begin, uint64_t end, uint32_t tid, bool is_open)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s t%u %u-%u%s; ", what, tid, (unsigned)begin,
		 (unsigned)end, is_open ? "+" : "");
}

static int tell_run(void *arg _unused_, const struct latency_run *run)
{
	tell("ran", run->begin, run->end, run->who.tid, !run->sleeps);
	return 0;
}

static int tell_end(void *arg _unused_, enum latency_kind kind _unused_,
		    const struct latency_interval *one)
{
	tell(one->label, one->begin, one->end, one->who.tid, one->is_open);
	return 0;
}

START_TEST(watched)
{
	const struct latency_watcher watcher = { tell_run, tell_end, NULL };

	teardown();
	options.watcher = &watcher;
	begin();
	told[0] = '\0';
	switches(90, 0, 0, 0, 7);
	switches(100, 0, 7, D, 8);
	switches(100, 1, 0, 0, 9);
	switches(120, 1, 9, PREEMPTED, 0);
	expect(LATENCY_OFF_CPU, 200, "before 3 open 2 missing 0");
	ck_assert_str_eq(told, "ran t7 90-100; ran t9 100-120+; ran t8 100-200+; D t7 100-200+; "
			       "R+ t9 120-200+; preempted t9 120-200+; ");
}
END_TEST

/* Where all switches are there from 80 on, the first one of a CPU ends a run from then on. What began before
 * wakeups are known is not told. */
START_TEST(watched_from_the_beginning)
{
	const struct latency_watcher watcher = { tell_run, tell_end, NULL };

	teardown();
	options.watcher = &watcher;
	options.complete[LATENCY_OFF_CPU] = 80;
	options.complete[LATENCY_WAKEUPS] = 95;
	begin();
	told[0] = '\0';
	switches(90, 0, 7, S, 8);
	switches(100, 0, 8, X, 0);
	expect(LATENCY_OFF_CPU, 200, "before 1 open 1 missing 0");
	ck_assert_str_eq(told, "ran t7 80-90; ran t8 90-100; ");
}
END_TEST

/* Switches are known until 150, and calls until 180: so long lasts what has not ended. */
START_TEST(each_until_its_end)
{
	const struct latency_watcher watcher = { tell_run, tell_end, NULL };

	teardown();
	options.watcher = &watcher;
	options.until[LATENCY_OFF_CPU] = options.until[LATENCY_WAKEUPS] = 150;
	options.until[LATENCY_SYSCALLS] = 180;
	begin();
	told[0] = '\0';
	switches(90, 0, 0, 0, 7);
	calls(95, 7, "read");
	switches(100, 0, 7, S, 8);
	wakes(160, 8, 7);
	expect(LATENCY_SYSCALLS, 200, "before 0 open 1 missing 0");
	ck_assert_str_eq(told, "ran t7 90-100; ran t8 100-150+; read t7 95-180+; S t7 100-150+; ");
}
END_TEST

START_TEST(sleeps)
{
	const struct latency_sums *s = latency_sums(l, LATENCY_OFF_CPU);

	sleep_once();
	expect(LATENCY_OFF_CPU, 200, "t7/7 S: 50; before 1 open 0 missing 0");
	ck_assert_uint_eq(s->worst.n, 1);
	ck_assert_uint_eq(s->worst.all[0].cpu, 1);
	ck_assert_uint_eq(s->worst.all[0].waker.tid, 8);
	ck_assert_uint_eq(s->worst.all[0].woken, 140);
}
END_TEST

START_TEST(waits)
{
	sleep_once();
	wakes(155, 8, 7); /* it runs: this is no wait */
	switches(160, 1, 7, PREEMPTED, 9);
	wakes(170, 8, 7); /* nor does this begin one: it waits already */
	switches(190, 0, 0, 0, 7);
	wakes(195, 8, 7); /* nor does it wait at the end */
	expect(LATENCY_WAKEUPS, 200,
	       "t7/7 preempted: 30; t7/7 woken: 10; before 2 open 0 missing 0");
}
END_TEST

/* That a thread yields in the state R is no sleep. */
START_TEST(preemption_is_off_cpu)
{
	switches(100, 0, 7, PREEMPTED, 9);
	switches(120, 0, 9, 0, 7);
	switches(130, 0, 7, D, 9);
	wakes(150, 9, 7);
	switches(170, 0, 9, S, 7);
	expect(LATENCY_OFF_CPU, 200,
	       "t7/7 D: 40; t7/7 R+: 20; t9/9 R: 10; before 1 open 1 missing 0");
}
END_TEST

START_TEST(idle_is_no_thread)
{
	switches(100, 0, 7, S, 0);
	switches(110, 0, 0, 0, 9);
	switches(120, 0, 9, S, 0);
	expect(LATENCY_OFF_CPU, 200, "before 1 open 2 missing 0");
}
END_TEST

START_TEST(only_waking)
{
	struct latency_now now = at(140, 0, 8);
	struct latency_who wakee = thread(7);

	latency_free(l);
	options.has_wakeups = false;
	begin();
	switches(100, 0, 7, S, 0);
	ck_assert_int_eq(latency_waking(l, &now, &wakee), 0);
	switches(150, 0, 0, 0, 7);
	expect(LATENCY_WAKEUPS, 200, "t7/7 woken: 10; before 0 open 0 missing 0");
}
END_TEST

/* It is woken when it has not left its CPU yet. (0: and was before that, as it went to sleep, which is over; 2: long before, so that a record is missing.) */
START_TEST(woken_early)
{
	struct latency_now now = at(101, 0, 8);
	struct latency_who wakee = thread(7);

	latency_free(l);
	options.has_wakeups = false;
	begin();
	switches(90, 0, 0, 0, 7);
	ck_assert_int_eq(latency_waking(l, &now, &wakee), 0);
	switches(_i == 2 ? 2000000 : 102, 0, 7, S, 0);
	if (_i == 0) {
		now = at(120, 0, 9);
		ck_assert_int_eq(latency_waking(l, &now, &wakee), 0);
	}
	switches(_i == 2 ? 2000030 : 130, 1, 0, 0, 7);
	expect(LATENCY_WAKEUPS, 3000000,
	       _i == 2 ? "before 1 open 0 missing 1"
	       : _i    ? "t7/7 woken: 28; before 1 open 0 missing 0"
		       : "t7/7 woken: 10; before 1 open 0 missing 0");
	if (_i == 2)
		return;
	ck_assert_uint_eq(latency_sums(l, LATENCY_WAKEUPS)->worst.all[0].waker.tid, _i ? 8 : 9);
}
END_TEST

/* sched_waking knows who wakes; sched_wakeup is written on another CPU, by whoever runs there. */
START_TEST(waking_names_the_waker)
{
	struct latency_now now = at(130, 1, 8);
	struct latency_who wakee = thread(7);

	switches(100, 0, 7, S, 9);
	ck_assert_int_eq(latency_waking(l, &now, &wakee), 0);
	wakes(140, 9, 7);
	switches(150, 0, 9, S, 7);
	expect(LATENCY_WAKEUPS, 200, "t7/7 woken: 10; before 1 open 0 missing 0");
	ck_assert_uint_eq(latency_sums(l, LATENCY_WAKEUPS)->worst.all[0].waker.tid, 8);
}
END_TEST

/* 9's own beginning is before the records, here and below. 7 was switched to and away in records that are missing: its first sleep has no known end. */
START_TEST(missing_switch)
{
	switches(100, 0, 7, S, 9);
	wakes(110, 9, 7);
	switches(180, 1, 7, S, 0);
	expect(LATENCY_OFF_CPU, 200, "before 1 open 1 missing 1");
	ck_assert_uint_eq(latency_sums(l, LATENCY_WAKEUPS)->n, 0);
	ck_assert_uint_eq(latency_sums(l, LATENCY_WAKEUPS)->missing, 1);
}
END_TEST

/* CPU 0 ran 9, its next record says 5: 9's switch away is missing, and 9's next sleep begins then. */
START_TEST(missing_switch_away)
{
	switches(100, 0, 7, S, 9);
	switches(150, 0, 5, S, 7);
	wakes(160, 7, 9);
	switches(170, 0, 7, S, 9);
	expect(LATENCY_OFF_CPU, 200, "t7/7 S: 50; before 2 open 2 missing 1");
}
END_TEST

START_TEST(missing_wakeup)
{
	switches(100, 0, 7, S, 0);
	switches(150, 0, 0, 0, 7);
	expect(LATENCY_WAKEUPS, 200, "before 0 open 0 missing 1");
}
END_TEST

/* What began before a loss may have ended in it. */
START_TEST(lost)
{
	switches(100, 0, 7, S, 9);
	calls(100, 7, "read");
	latency_lost(l, LATENCY_OFF_CPU);
	latency_lost(l, LATENCY_SYSCALLS);
	switches(150, 0, 5, S, 7);
	returns(160, 7, "read");
	calls(170, 7, "read");
	returns(175, 7, "read");
	expect(LATENCY_OFF_CPU, 200, "before 1 open 1 missing 1");
	ck_assert_uint_eq(latency_sums(l, LATENCY_SYSCALLS)->n, 1);
	ck_assert_uint_eq(latency_sums(l, LATENCY_SYSCALLS)->missing, 1);
}
END_TEST

/* Records of another CPU begin only at 120. */
START_TEST(incomplete)
{
	latency_free(l);
	options.complete[LATENCY_OFF_CPU] = options.complete[LATENCY_SYSCALLS] = 120;
	begin();
	/* A return that is missing, before and after that. */
	calls(100, 7, "read");
	calls(110, 7, "read");
	calls(130, 7, "read");
	calls(140, 7, "read");
	switches(100, 0, 7, S, 9);
	switches(150, 0, 9, S, 7);
	switches(160, 0, 7, S, 9);
	switches(190, 0, 9, S, 7);
	expect(LATENCY_OFF_CPU, 200, "t7/7 S: 30; t9/9 S: 10; before 2 open 1 missing 0");
	ck_assert_uint_eq(latency_sums(l, LATENCY_SYSCALLS)->begun_before, 1);
	ck_assert_uint_eq(latency_sums(l, LATENCY_SYSCALLS)->missing, 2);
}
END_TEST

/* The clocks of two CPUs differ a little: the switch comes before its wakeup. */
START_TEST(out_of_order)
{
	switches(100, 0, 7, S, 0);
	switches(150, 1, 0, 0, 7);
	wakes(151, 8, 7);
	switches(170, 1, 7, S, 0);
	wakes(180, 8, 7);
	switches(185, 1, 0, 0, 7);
	expect(LATENCY_WAKEUPS, 200, "t7/7 woken: 5; before 0 open 0 missing 1");
	ck_assert_uint_eq(latency_sums(l, LATENCY_OFF_CPU)->n, 2);
}
END_TEST

/* A new thread with the id of an old one, whose sleep and call are not its own, with and without
 * sideband. */
START_TEST(reused_id)
{
	struct latency_now now = at(140, 0, 8);
	struct latency_who child = { .tid = 7, .comm = "new" };

	calls(90, 7, "read");
	switches(100, 0, 7, S, 8);
	ck_assert_int_eq(_i ? latency_born(l, 7, 7) : 0, 0);
	ck_assert_int_eq(latency_wakeup(l, &now, &child, true), 0);
	switches(150, 0, 8, S, 7);
	returns(155, 7, "read");
	calls(160, 7, "write");
	returns(170, 7, "write");
	expect(LATENCY_SYSCALLS, 200, "t7/7 write: 10; before 0 open 0 missing 0");
	ck_assert_uint_eq(latency_sums(l, LATENCY_OFF_CPU)->n, 0);
	ck_assert_uint_eq(latency_sums(l, LATENCY_WAKEUPS)->n, 1);
	ck_assert_str_eq(latency_sums(l, LATENCY_WAKEUPS)->rows[0].label, "new");
}
END_TEST

START_TEST(dead_are_not_off)
{
	switches(100, 0, 7, X, 8);
	switches(150, 0, 8, S, 7); /* another one, whose birth is not recorded */
	expect(LATENCY_OFF_CPU, 200, "before 2 open 1 missing 0");
}
END_TEST

/* A process's threads are one row, with the name of its first thread. */
START_TEST(processes)
{
	ck_assert_int_eq(latency_thread(l, 7, 7, "t7"), 0);
	ck_assert_int_eq(latency_thread(l, 7, 8, "worker"), 0);
	calls(100, 8, "read");
	returns(130, 8, "read");
	calls(140, 7, "read");
	returns(150, 7, "read");
	expect(LATENCY_SYSCALLS, 200, "t7/7 read: 10 30; before 0 open 0 missing 0");
}
END_TEST

/* ── system calls ── */

START_TEST(system_calls)
{
	returns(90, 7, "poll");
	calls(100, 7, "read");
	calls(105, 8, "read");
	returns(120, 7, "read");
	calls(130, 7, "write");
	calls(140, 7, "read");	 /* the end of the write is missing */
	returns(150, 7, "poll"); /* and so are this one's */
	calls(160, 9, "exit_group");
	calls(170, 10, "rt_sigreturn");
	returns(175, 10, NULL);
	expect(LATENCY_SYSCALLS, 200, "t7/7 read: 20; before 1 open 1 missing 2");
	ck_assert_uint_eq(latency_sums(l, LATENCY_SYSCALLS)->open.all[0].who.tid, 8);
	ck_assert_uint_eq(latency_sums(l, LATENCY_SYSCALLS)->open.all[0].end, 200);
}
END_TEST

START_TEST(killed_in_a_call)
{
	calls(100, 7, "read");
	latency_died(l, 7);
	expect(LATENCY_SYSCALLS, 200, "before 0 open 0 missing 0");
}
END_TEST

/* ── block requests ── */

typedef int request_fn(struct latency *l, const struct latency_now *now,
		       const struct latency_request *request);

static void request(request_fn *fn, uint64_t time, uint64_t sector, uint64_t n, const char *rwbs)
{
	struct latency_now now = at(time, 0, 7);
	struct latency_request r = { 8 << 20 | 1, sector, n, rwbs };

	ck_assert_int_eq(fn(l, &now, &r), 0);
}

START_TEST(block)
{
	request(latency_complete, 90, 50, 8, "R");
	request(latency_insert, 100, 64, 8, "WS");
	request(latency_issue, 110, 64, 16, "WS"); /* another was merged into it */
	request(latency_issue, 115, 128, 8, "RA"); /* past the scheduler */
	request(latency_complete, 140, 64, 8, "WS");
	request(latency_complete, 150, 72, 8, "WS");
	request(latency_complete, 160, 128, 8, "RA");
	request(latency_complete, 165, UINT64_MAX, 0, "FF"); /* part of a flush */
	request(latency_insert, 170, 256, 8, "R");
	request(latency_issue, 180, 64, 8, "FWS");
	request(latency_issue, 190, 64, 8, "FWS"); /* the end of the last is missing */
	expect(LATENCY_BLOCK, 200,
	       "/0 8:1 read device: 45; /0 8:1 write device: 40; /0 8:1 write queue: 10; "
	       "before 1 open 2 missing 1");
}
END_TEST

/* Memory is for those that are under way, and these stay. */
START_TEST(many_requests)
{
	const struct latency_sums *s = latency_sums(l, LATENCY_BLOCK);
	uint64_t n[2] = {};

	request(latency_insert, 100, 0, 8, "R");
	for (uint64_t i = 1; i <= 20000; i++) {
		request(latency_insert, 110, i * 8, 8, "W");
		request(latency_issue, 120, i * 8, 8, "W");
		request(latency_complete, 130, i * 8, 8, "W");
	}
	ck_assert_uint_lt(l->n_requests, 1100);
	for (uint64_t i = 1; i <= 5000; i++)
		request(latency_issue, 200, i * 8, 8, "R");
	for (uint64_t i = 5001; i <= 20000; i++)
		request(latency_complete, 210, i * 8, 8, "R");
	for (uint64_t i = 1; i <= 5000; i++)
		request(latency_complete, 220, i * 8, 8, "R");
	request(latency_issue, 230, 0, 8, "R");
	ck_assert_int_eq(latency_finish(l, 300), 0);
	for (size_t i = 0; i < s->n_rows; i++)
		n[strstr(s->rows[i].label, "read") != NULL] += s->rows[i].n;
	ck_assert_uint_eq(n[0], 2 * 20000);
	ck_assert_uint_eq(n[1], 5000 + 1);
	ck_assert_uint_eq(s->n_open, 1);
	ck_assert_uint_eq(s->begun_before, 15000);
	ck_assert_uint_eq(s->missing, 0);
}
END_TEST

/* ── interrupts ── */

static void enters(uint64_t time, uint32_t cpu, bool soft, uint32_t number, const char *name)
{
	struct latency_now now = at(time, cpu, 7);
	struct latency_handler h = { soft, number, name };

	ck_assert_int_eq(latency_entry(l, &now, &h), 0);
}

static void leaves(uint64_t time, uint32_t cpu, bool soft, uint32_t number)
{
	struct latency_now now = at(time, cpu, 7);
	struct latency_handler h = { soft, number, "" };

	ck_assert_int_eq(latency_exit(l, &now, &h), 0);
}

START_TEST(interrupts)
{
	leaves(90, 0, false, 5);
	enters(100, 0, true, 3, "NET_RX");
	enters(105, 1, true, 3, "NET_RX");
	enters(110, 0, false, 5, "eth0"); /* in the softirq */
	leaves(113, 1, true, 3);
	leaves(115, 0, false, 5);
	leaves(130, 0, true, 3);
	enters(140, 0, true, 1, "TIMER");
	enters(150, 0, false, 5, "eth0"); /* its end is missing */
	leaves(160, 0, true, 1);
	leaves(161, 0, false, 6);
	enters(170, 1, false, 5, "eth0");
	expect(LATENCY_IRQ, 200,
	       "/0 softirq NET_RX: 8 30; /0 softirq TIMER: 20; /0 irq 5 eth0: 5; "
	       "before 2 open 1 missing 1");
}
END_TEST

/* Entries without exits, as of a damaged file. */
START_TEST(endless_nesting)
{
	for (uint64_t i = 0; i < 1000; i++)
		enters(i, 0, false, (uint32_t)i, "x");
	expect(LATENCY_IRQ, 2000, "before 0 open 8 missing 992");
}
END_TEST

/* The end of one is missing, as when recording begins between the two tracepoints; then the beginning of
 * a later one: not one long handler. */
START_TEST(ends_of_others)
{
	enters(100, 0, true, 9, "RCU");
	enters(200, 0, true, 9, "RCU");
	leaves(210, 0, true, 9);
	leaves(500, 0, true, 9);
	enters(600, 0, true, 9, "RCU");
	enters(700, 0, true, 1, "TIMER");
	leaves(705, 0, true, 1);
	leaves(800, 0, true, 9);
	enters(900, 0, false, 5, "eth0");
	enters(910, 0, false, 6, "nmi"); /* as pseudo-NMIs do */
	enters(920, 0, false, 5, "eth0");
	leaves(923, 0, false, 5);
	leaves(990, 0, false, 6);
	expect(LATENCY_IRQ, 1000,
	       "/0 softirq RCU: 10; /0 softirq TIMER: 5; /0 irq 5 eth0: 3; "
	       "before 3 open 0 missing 4");
}
END_TEST

/* ── sums ── */

START_TEST(percentiles)
{
	const struct latency_row *row;

	for (uint64_t i = 0; i < 1000; i++) { /* 1 … 1000 in another order */
		calls(10000 * i, 7, "read");
		returns(10000 * i + 1 + i * 387 % 1000, 7, "read");
	}
	ck_assert_int_eq(latency_finish(l, 20000000), 0);
	row = latency_sums(l, LATENCY_SYSCALLS)->rows;
	ck_assert_uint_eq(row->n, 1000);
	ck_assert_uint_eq(row->sum, 500500);
	ck_assert_uint_eq(latency_percentile(row, 500), 500);
	ck_assert_uint_eq(latency_percentile(row, 900), 900);
	ck_assert_uint_eq(latency_percentile(row, 990), 990);
	ck_assert_uint_eq(latency_percentile(row, 999), 999);
	ck_assert_uint_eq(latency_percentile(row, 1000), 1000);
}
END_TEST

/* The longest `top`, and no more. */
START_TEST(longest)
{
	const struct latency_sums *s = latency_sums(l, LATENCY_SYSCALLS);

	for (uint64_t i = 0; i < 1000; i++) {
		calls(10000 * i, 7, "read");
		returns(10000 * i + 1 + i * 387 % 1000, 7, "read");
		calls(10000 * i + 5000, (uint32_t)(100 + i), "futex");
	}
	ck_assert_int_eq(latency_finish(l, 20000000), 0);
	ck_assert_uint_eq(s->worst.n, 20);
	ck_assert_uint_eq(s->open.n, 20);
	ck_assert_uint_eq(s->n_open, 1000);
	for (uint64_t i = 0; i < 20; i++) {
		ck_assert_uint_eq(s->worst.all[i].end - s->worst.all[i].begin, 1000 - i);
		ck_assert_uint_eq(s->open.all[i].who.tid, 100 + i);
	}
}
END_TEST

static bool wants_7_on_1(const void *arg _unused_, uint32_t pid _unused_, uint32_t tid,
			 uint32_t cpu)
{
	return tid == 7 && cpu == 1;
}

START_TEST(selected)
{
	latency_free(l);
	options.wants = wants_7_on_1;
	begin();
	switches(100, 0, 7, S, 9);
	switches(110, 1, 8, S, 7);
	switches(120, 1, 7, S, 8);
	switches(140, 0, 9, S, 7);
	expect(LATENCY_OFF_CPU, 200, "t7/7 S: 10; before 0 open 0 missing 0");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("latency");
	TCase *t = tcase_create("latency");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, watched);
	tcase_add_test(t, watched_from_the_beginning);
	tcase_add_test(t, each_until_its_end);
	tcase_add_test(t, sleeps);
	tcase_add_test(t, waits);
	tcase_add_test(t, preemption_is_off_cpu);
	tcase_add_test(t, idle_is_no_thread);
	tcase_add_test(t, only_waking);
	tcase_add_loop_test(t, woken_early, 0, 3);
	tcase_add_test(t, waking_names_the_waker);
	tcase_add_test(t, missing_switch);
	tcase_add_test(t, missing_switch_away);
	tcase_add_test(t, missing_wakeup);
	tcase_add_test(t, lost);
	tcase_add_test(t, incomplete);
	tcase_add_test(t, out_of_order);
	tcase_add_loop_test(t, reused_id, 0, 2);
	tcase_add_test(t, dead_are_not_off);
	tcase_add_test(t, processes);
	tcase_add_test(t, system_calls);
	tcase_add_test(t, killed_in_a_call);
	tcase_add_test(t, block);
	tcase_add_test(t, many_requests);
	tcase_add_test(t, interrupts);
	tcase_add_test(t, endless_nesting);
	tcase_add_test(t, ends_of_others);
	tcase_add_test(t, percentiles);
	tcase_add_test(t, longest);
	tcase_add_test(t, selected);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
