// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Does a fixed amount of work for counting: N times each a system call that nothing else makes
 * (sched_get_priority_max), a change of its own name (task:task_rename) and a signal to itself
 * (signal:signal_generate).
 *
 *   coexist-calls N [INSTANCE NAMESPACE/EVENT...]
 *
 * With events (on raw_syscalls and on the two other tracepoints) it checks that each recorded
 * exactly this work, in its order. Exit 0, 1 or 2 (could not run).
 */
#include "tests/integration/observe.h"

static int failed;

static void work(uint64_t n)
{
	char name[16];

	for (uint64_t i = 0; i < n; i++) {
		syscall(SYS_sched_get_priority_max, i);
		snprintf(name, sizeof(name), "call-%u", (unsigned)i & 0xffff);
		prctl(PR_SET_NAME, name);
		raise(SIGUSR1);
	}
}

/* Whether this record of our process shows a step of work(): not another system call, nor a signal
 * that a timer sent us meanwhile. */
static bool is_work(struct perfpersist_event *e, const uint8_t *raw)
{
	int id_at = field_offset(e, "long id"), sig_at = field_offset(e, "int sig");
	int sig;

	if (id_at >= 0)
		return load_u64(raw + id_at) == SYS_sched_get_priority_max;
	if (sig_at < 0)
		return true;
	memcpy(&sig, raw + sig_at, sizeof(sig));
	return sig == SIGUSR1;
}

/* All records of this process, oldest first: as many as it did steps, and in their order. */
static void check(struct perfpersist_event *e, struct perfpersist_snapshot *s, const char *name,
		  uint64_t n, uint64_t since)
{
	int args_at = field_offset(e, "unsigned long args[6]");
	struct perfpersist_merge *merge;
	struct perfpersist_sample sample;
	uint32_t self = (uint32_t)getpid();
	uint64_t found = 0, disorder = 0;
	int r;

	if (perfpersist_merge_new(s, PERFPERSIST_OLDEST_FIRST, 0, &merge) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_merge_next(merge, &sample)) > 0) {
		const uint8_t *raw = sample.raw;

		if (sample.pid != self || sample.time < since)
			continue;
		if (!is_work(e, raw))
			continue;
		disorder += args_at >= 0 && load_u64(raw + args_at) != found;
		found++;
	}
	if (r < 0 || perfpersist_merge_damaged(merge))
		die("%s: the rings are damaged", name);
	perfpersist_merge_free(merge);
	printf("%s=%" PRIu64 " ", name, found);
	if (found != n || disorder) {
		fprintf(stderr,
			"%s: %" PRIu64 " made, %" PRIu64 " recorded, %" PRIu64
			" not in their place\n",
			name, n, found, disorder);
		failed = 1;
	}
}

int main(int argc, char **argv)
{
	int n_events = argc > 3 ? argc - 3 : 0;
	struct perfpersist_event *events[16];
	struct perfpersist_snapshot *snapshots[ARRAY_SIZE(events)];
	struct perfpersist *p = NULL;
	uint64_t n, since;

	if (argc < 2 || argc == 3 || n_events > (int)ARRAY_SIZE(events))
		die("usage: coexist-calls N [INSTANCE NAMESPACE/EVENT...]");
	n = parse_count(argv[1]);
	signal(SIGUSR1, SIG_IGN);
	if (n_events)
		p = connect_to(argv[2]);
	for (int i = 0; i < n_events; i++) {
		events[i] = open_event(p, argv[3 + i]);
		snapshots[i] = snapshot_of(events[i]); /* allocates the memory in advance */
	}
	since = now();
	work(n);
	/* All at once: other processes may be filling the rings. */
	for (int i = 0; i < n_events; i++)
		if (perfpersist_snapshot_take(snapshots[i]) < 0)
			die("%s", perfpersist_error(NULL));
	for (int i = 0; i < n_events; i++) {
		check(events[i], snapshots[i], argv[3 + i], n, since);
		perfpersist_snapshot_free(snapshots[i]);
		perfpersist_event_free(events[i]);
	}
	if (n_events)
		putchar('\n');
	perfpersist_free(p);
	return failed;
}
