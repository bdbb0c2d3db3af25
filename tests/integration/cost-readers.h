/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For reader-cost.c: the readers on the measured CPU, which do nothing else. Knows no recorders.
 */
#pragma once

#include "tests/integration/burn-calls.h"
#include "tests/integration/cost-victims.h"
#include "tests/integration/reader.h"

#define BULK (16U << 20) /* bytes of the large ring that the readers read */

enum reader { NOBODY, COPIES, LIBRARY, LOOKUP, READERS };

static const char *const reader_names[] = { "nobody", "copies", "library", "lookup" };

static struct perfpersist_event *begin_reading(const char *ns, const char *name, bool copies,
					       struct perfpersist **ret)
{
	char full[160];
	struct perfpersist *p;
	struct perfpersist_event *e;

	become_reader();
	prctl(PR_SET_NAME, "pp-reader");
	pin_to(test.cpu);
	snprintf(full, sizeof(full), "%s/%s", ns, name);
	p = connect_to(test.instance);
	e = open_event(p, full);
	if (perfpersist_event_is_copy(e) != copies)
		die("%s: a reader got %s", full, copies ? "the rings" : "copies");
	*ret = p;
	return e;
}

__attribute__((noreturn)) static void burn_copies(void)
{
	struct perfpersist *p;
	struct perfpersist_event *bulk = begin_reading(test.copies, "bulk", true, &p);
	struct perfpersist_event *victim;
	struct burn b;
	char full[160], folder[256], pin[280];
	int r;

	snprintf(full, sizeof(full), "%s/victim", test.copies);
	victim = open_copies(p, full);
	snprintf(folder, sizeof(folder), "/run/perfpersist-%s/registry/%s", test.instance, full);
	snprintf(pin, sizeof(pin), "%s/cpu%d", folder, test.cpu);
	r = burn_begin(&b, 2 * BULK, folder, pin);
	if (r < 0)
		die("the reader lacks something that it needs: %s", strerror(-r));
	for (bool first = true;; first = false) {
		burn_all(&b, perfpersist_ring_fd(victim, 0));
		burn_all(&b, perfpersist_ring_fd(bulk, 0));
		test.shared->calls += b.calls;
		b.calls = 0;
		test.shared->reading += first;
	}
}

/* Asks for the large ring and the small one, in turn. */
__attribute__((noreturn)) static void ask_for_copies(void)
{
	struct perfpersist *p;
	struct perfpersist_event *e[2];
	char full[160];
	int r;

	e[0] = begin_reading(test.copies, "bulk", true, &p);
	snprintf(full, sizeof(full), "%s/victim", test.copies);
	e[1] = open_copies(p, full);
	for (size_t i = 0;; i++) {
		r = perfpersist_event_refresh(e[i % 2], p);
		if (r < 0 && r != -EAGAIN && r != -EDQUOT)
			die("%s", perfpersist_error(p));
		test.shared->copies += r >= 0;
		test.shared->reading += i == 2;
	}
}

__attribute__((noreturn)) static void take_snapshots(void)
{
	struct perfpersist *p;
	struct perfpersist_event *bulk = begin_reading(test.live, "bulk", false, &p);
	struct perfpersist_snapshot *s = snapshot_of(bulk);

	test.shared->reading++;
	for (;;) {
		if (perfpersist_snapshot_take(s) < 0)
			die("%s", perfpersist_error(NULL));
		test.shared->snapshots++;
	}
}

__attribute__((noreturn)) static void look_up(void)
{
	struct perfpersist *p;
	struct perfpersist_event *bulk = begin_reading(test.live, "bulk", false, &p);
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = (__u32)perfpersist_ring_fd(bulk, 0),
		.key = (uintptr_t)&key,
		.value = (uintptr_t)malloc(2 * BULK),
	};

	test.shared->reading++;
	for (;;) {
		if (syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) < 0)
			die("bpf(BPF_MAP_LOOKUP_ELEM) of a live ring: %m");
		test.shared->lookups++;
	}
}

/* Only takes its share of the CPU. */
__attribute__((noreturn)) static void read_nothing(void)
{
	become_reader();
	prctl(PR_SET_NAME, "pp-reader");
	pin_to(test.cpu);
	test.shared->reading++;
	for (;;)
		;
}

static pid_t start_reader(void (*read_it)(void))
{
	pid_t pid = fork_helper();

	if (pid == 0)
		read_it();
	return pid;
}

/* Returns when all of them are reading. */
static size_t start_readers(enum reader reader, pid_t pids[2])
{
	size_t n = 0;

	test.shared->reading = 0;
	if (reader == NOBODY) {
		pids[n++] = start_reader(read_nothing);
		pids[n++] = start_reader(read_nothing);
	} else if (reader == COPIES) {
		pids[n++] = start_reader(burn_copies);
		pids[n++] = start_reader(ask_for_copies);
	} else if (reader == LIBRARY) {
		pids[n++] = start_reader(take_snapshots);
	} else if (reader == LOOKUP) {
		pids[n++] = start_reader(look_up);
	}
	while (test.shared->reading < n) {
		for (size_t i = 0; i < n; i++)
			if (waitpid(pids[i], NULL, WNOHANG) != 0)
				die("a reader has ended");
		sched_yield();
	}
	return n;
}

static void end_readers(const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (waitpid(pids[i], NULL, WNOHANG) != 0)
			die("a reader has ended");
		end_helper(pids[i]);
	}
}
