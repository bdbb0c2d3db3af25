// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Follows an event, or takes snapshots of it, while a worker on each CPU makes known calls at full
 * speed, and accounts for every call, per CPU:
 *
 *   follow-check INSTANCE NS/NAME burst N    N calls on each CPU: read + overwritten + missed =
 * made follow-check INSTANCE NS/NAME resize N   the same over all sets of rings, for as long as the
 *                                            buffer is changed N times: each call in one set
 *   follow-check INSTANCE NS/NAME filter N   the same, while the filter is
 *   follow-check INSTANCE NS/NAME snapshot N nobody follows; N snapshots are taken while the
 * workers make calls (follow-snapshot.h): written + missed = made
 *
 * The event must record only the workers' calls: `id == 3 && COMM == "f-INSTANCE"`; the first 15
 * bytes of the name count. No other process on the machine has that name.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/perfpersist.h"
#include "tests/integration/follow-snapshot.h"

/* The account of one CPU's calls. */
struct account {
	int cpu;
	uint64_t read, overwritten,
		written; /* of all sets of rings; written comes from the rings' headers */
	uint64_t gaps;	 /* numbers that are absent */
	int64_t last;	 /* number of the last call in the ring */
};

struct check {
	const char *ns, *name;
	struct perfpersist *p; /* the follower's; the changer has its own */
	struct account accounts[CPUS_MAX];
	size_t n_accounts;
	unsigned sets; /* of rings that were followed */
};

static struct account *account_of(struct check *c, int cpu)
{
	for (size_t i = 0; i < c->n_accounts; i++)
		if (c->accounts[i].cpu == cpu)
			return &c->accounts[i];
	if (c->n_accounts == CPUS_MAX)
		die("more CPUs than this test can count");
	c->accounts[c->n_accounts] = (struct account){ .cpu = cpu, .last = -1 };
	return &c->accounts[c->n_accounts++];
}

/* ── the workers ────────────────────────────────────────────────────────────────────────── */

struct shared {
	atomic_int ready, done;
	atomic_int sets; /* of rings that the follower has opened */
	atomic_int changes;
	atomic_bool go, over;	 /* over: all changes are made, all snapshots taken */
	uint64_t made[CPUS_MAX]; /* calls, by worker */
	int cpu[CPUS_MAX];	 /* … and the worker's CPU */
};

static char worker_comm[16];

/* Makes n calls, or calls until it is over. */
static pid_t start_worker(struct shared *s, int number, int cpu, long n, bool until_told)
{
	pid_t pid = fork();
	long i = 0;

	if (pid < 0)
		die("fork: %m");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	prctl(PR_SET_NAME, worker_comm);
	atomic_fetch_add(&s->ready, 1);
	while (!atomic_load(&s->go))
		sched_yield();
	for (; until_told ? !atomic_load(&s->over) : i < n; i++)
		telling_call(i, 0, cpu);
	s->made[number] = (uint64_t)i;
	s->cpu[number] = cpu;
	atomic_fetch_add(&s->done, 1);
	_exit(0);
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

static void take(struct check *c, const struct perfpersist_sample *s)
{
	struct account *a = account_of(c, (int)s->cpu);
	int64_t call = call_of(s);

	if (call <= a->last)
		die("CPU %u: call %" PRId64 " after call %" PRId64, s->cpu, call, a->last);
	a->gaps += (uint64_t)(call - a->last - 1);
	a->last = call;
	a->read++;
}

static void drain(struct check *c, struct perfpersist_follow *f)
{
	struct perfpersist_sample s;
	int r;

	while ((r = perfpersist_follow_next(f, &s)) > 0)
		take(c, &s);
	if (r < 0)
		die("the follower: %s", strerror(-r));
}

/* A set of rings has ended: adds the counts from its headers. */
static void settle(struct check *c, struct perfpersist_event *e, struct perfpersist_follow *f,
		   const uint64_t *begin)
{
	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		struct account *a = account_of(c, perfpersist_ring_cpu(e, i));
		struct perfpersist_follow_stat fs = { .sz = sizeof(fs) };
		struct perfpersist_ring_stat rs = { .sz = sizeof(rs) };

		if (perfpersist_follow_stat(f, i, &fs) < 0 || perfpersist_ring_stat(e, i, &rs) < 0)
			die("%s", perfpersist_error(NULL));
		if (begin[i] + fs.read + fs.overwritten != rs.records)
			die("CPU %d: %" PRIu64 " at the beginning + %" PRIu64 " read + %" PRIu64
			    " overwritten, and %" PRIu64 " written",
			    a->cpu, begin[i], fs.read, fs.overwritten, rs.records);
		a->overwritten += fs.overwritten + begin[i];
		a->written += rs.records;
	}
	c->sets++;
}

static void begin_set(struct perfpersist_event *e, struct perfpersist_follow *f, uint64_t *begin)
{
	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		struct perfpersist_follow_stat fs = { .sz = sizeof(fs) };

		if (perfpersist_follow_stat(f, i, &fs) < 0)
			die("%s", perfpersist_error(NULL));
		begin[i] = fs.begin;
	}
}

static void open_set(struct check *c, struct shared *s, struct perfpersist_event **e,
		     struct perfpersist_follow **f, uint64_t *begin)
{
	if (perfpersist_open(c->p, c->ns, c->name, e) < 0)
		die("%s", perfpersist_error(c->p));
	if (perfpersist_event_rings(*e) > CPUS_MAX)
		die("more CPUs than this test can count");
	if (perfpersist_follow_new(*e, SIZE_MAX, f) < 0)
		die("%s", perfpersist_error(NULL));
	begin_set(*e, *f, begin);
	atomic_fetch_add(&s->sets, 1);
}

static void follow(struct check *c, struct shared *s, int workers)
{
	uint64_t begin[CPUS_MAX];
	struct perfpersist_event *e;
	struct perfpersist_follow *f;
	bool last = false;

	open_set(c, s, &e, &f, begin);
	atomic_store(&s->go, true);
	for (;;) {
		bool retired;

		last = atomic_load(&s->done) == workers;
		retired = perfpersist_event_state(e) == PERFPERSIST_RINGS_RETIRED;
		drain(c, f);
		if (retired) {
			settle(c, e, f, begin);
			perfpersist_follow_free(f);
			perfpersist_event_free(e);
			open_set(c, s, &e, &f, begin);
		} else if (last) {
			break;
		}
	}
	settle(c, e, f, begin);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
}

/* ── snapshots ──────────────────────────────────────────────────────────────────────────── */

static uint64_t take_snapshots(struct check *c, struct shared *s, int workers, size_t n)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_event *e;
	uint64_t gaps;

	if (perfpersist_open(c->p, c->ns, c->name, &e) < 0)
		die("%s", perfpersist_error(c->p));
	if (perfpersist_event_info(e, &info) < 0)
		die("%s", perfpersist_error(NULL));
	if (perfpersist_event_rings(e) > CPUS_MAX)
		die("more CPUs than this test can count");
	atomic_store(&s->go, true);
	gaps = snapshots_check(e, info.buffer, n);
	atomic_store(&s->over, true);
	while (atomic_load(&s->done) < workers)
		sched_yield();
	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		struct perfpersist_ring_stat rs = { .sz = sizeof(rs) };

		if (perfpersist_ring_stat(e, i, &rs) < 0)
			die("%s", perfpersist_error(NULL));
		account_of(c, perfpersist_ring_cpu(e, i))->written = rs.records;
	}
	perfpersist_event_free(e);
	return gaps;
}

/* ── changing ───────────────────────────────────────────────────────────────────────────── */

/* The changer is a process of its own, like another client. */
static void change_often(const char *instance, const struct check *c, bool resize, struct shared *s,
			 long n)
{
	char filters[2][64];
	struct perfpersist_options o = { .sz = sizeof(o), .instance = instance };
	struct perfpersist *p;

	if (perfpersist_connect(&o, &p) < 0)
		die("%s", perfpersist_error(NULL));
	snprintf(filters[0], sizeof(filters[0]), "id == 3 && COMM == \"%s\"", worker_comm);
	snprintf(filters[1], sizeof(filters[1]), "COMM ~ \"*%s\" && id < 4 && id != 2",
		 worker_comm + 1);
	for (int i = 0; i < n; i++) {
		struct perfpersist_change_options change = {
			.sz = sizeof(change),
			.what = resize ? PERFPERSIST_CHANGE_BUFFER : PERFPERSIST_CHANGE_FILTER,
			.buffer = i % 2 ? 8 << 20 : 4 << 20,
			.filter = filters[i % 2],
		};

		if (perfpersist_change(p, c->ns, c->name, &change, NULL) < 0)
			die("%s", perfpersist_error(p));
		atomic_fetch_add(&s->changes, 1);
		/* Rings that nobody has opened vanish with their records: that loss does not
		 * count. */
		while (resize && atomic_load(&s->sets) <= i + 1)
			sched_yield();
	}
	perfpersist_free(p);
}

static pid_t start_changer(const char *instance, const struct check *c, const char *mode,
			   struct shared *s, long n)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %m");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&s->go))
		sched_yield();
	change_often(instance, c, !strcmp(mode, "resize"), s, n);
	atomic_store(&s->over, true);
	_exit(0);
}

/* ── accounting ─────────────────────────────────────────────────────────────────────────── */

/* The registry's missed count for that CPU. */
static uint64_t missed_on(const char *instance, const struct check *c, int cpu)
{
	char path[256], line[256], key[32];
	uint64_t missed = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/run/perfpersist-%s/registry/%s/%s/stat", instance, c->ns,
		 c->name);
	snprintf(key, sizeof(key), "cpu%d ", cpu);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "missed=");

		if (strncmp(line, key, strlen(key)) == 0 && at)
			found = sscanf(at, "missed=%" SCNu64, &missed) == 1;
	}
	if (!f || !found)
		die("%s does not say what CPU %d missed", path, cpu);
	fclose(f);
	return missed;
}

static uint64_t made_on(const struct shared *s, int workers, int cpu)
{
	for (int i = 0; i < workers; i++)
		if (s->cpu[i] == cpu)
			return s->made[i];
	die("records of CPU %d, which had no worker", cpu);
}

/*
 * Whether the records and the missed count match the calls. The kernel counts a miss before any
 * filter: where it shut the program out on that CPU, the count includes other processes' calls.
 */
static bool is_all(uint64_t recorded, uint64_t missed, uint64_t made)
{
	return recorded <= made && made <= recorded + missed;
}

/* gaps: in n snapshots, each of which may lack the missed calls. */
static void judge_snapshots(const char *instance, struct check *c, const struct shared *s,
			    int workers, uint64_t gaps, uint64_t n)
{
	uint64_t all_missed = 0;

	for (size_t i = 0; i < c->n_accounts; i++) {
		struct account *a = &c->accounts[i];
		uint64_t missed = missed_on(instance, c, a->cpu);
		uint64_t made = made_on(s, workers, a->cpu);

		all_missed += missed;
		if (!is_all(a->written, missed, made))
			die("CPU %d: %" PRIu64 " written + %" PRIu64 " missed are not the %" PRIu64
			    " that were made",
			    a->cpu, a->written, missed, made);
		printf("snapshot, CPU %d: %" PRIu64 " written + %" PRIu64 " missed: %" PRIu64
		       " made\n",
		       a->cpu, a->written, missed, made);
	}
	if (gaps > all_missed * n)
		die("%" PRIu64 " are missing in snapshots, and %" PRIu64 " are told as missed",
		    gaps, all_missed);
}

static void judge(const char *instance, struct check *c, const char *mode, const struct shared *s,
		  int workers)
{
	for (size_t i = 0; i < c->n_accounts; i++) {
		struct account *a = &c->accounts[i];
		uint64_t missed = missed_on(instance, c, a->cpu);
		uint64_t made = made_on(s, workers, a->cpu);

		if (!is_all(a->read + a->overwritten, missed, made))
			die("CPU %d: %" PRIu64 " read + %" PRIu64 " overwritten + %" PRIu64
			    " missed are not the %" PRIu64 " that were made",
			    a->cpu, a->read, a->overwritten, missed, made);
		if (!is_all(a->written, missed, made))
			die("CPU %d: %" PRIu64 " written + %" PRIu64 " missed are not the %" PRIu64
			    " that were made",
			    a->cpu, a->written, missed, made);
		a->gaps += made - 1 - a->last;
		if (!is_all(a->overwritten, missed, a->gaps))
			die("CPU %d: %" PRIu64 " calls did not come, and %" PRIu64
			    " overwritten + %" PRIu64 " missed were told",
			    a->cpu, a->gaps, a->overwritten, missed);
		printf("%s, CPU %d: %" PRIu64 " read + %" PRIu64 " overwritten + %" PRIu64
		       " missed: %" PRIu64 " made",
		       mode, a->cpu, a->read, a->overwritten, missed, made);
		if (atomic_load(&s->changes))
			printf("; %d changes, %u sets of rings", atomic_load(&s->changes), c->sets);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	struct check c = {};
	struct shared *s;
	bool changing, snapshots;
	uint64_t gaps = 0;
	pid_t pids[CPUS_MAX + 1];
	int workers = 0, status;
	cpu_set_t online;
	char *slash;
	long n;

	if (argc != 5 || !(slash = strchr(argv[2], '/')) || (n = atol(argv[4])) <= 0)
		die("usage: follow-check INSTANCE NS/NAME burst|resize|filter|snapshot N");
	*slash = 0;
	c.ns = argv[2];
	c.name = slash + 1;
	o.instance = argv[1];
	snprintf(worker_comm, sizeof(worker_comm), "f-%.13s", argv[1]);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED || sched_getaffinity(0, sizeof(online), &online) < 0)
		die("%m");
	snapshots = strcmp(argv[3], "snapshot") == 0;
	changing = !snapshots && strcmp(argv[3], "burst") != 0;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (CPU_ISSET(cpu, &online)) {
			pids[workers] = start_worker(s, workers, cpu, n, changing || snapshots);
			workers++;
		}
	while (atomic_load(&s->ready) < workers)
		sched_yield();
	if (changing)
		pids[workers] = start_changer(argv[1], &c, argv[3], s, n);
	if (perfpersist_connect(&o, &c.p) < 0)
		die("%s", perfpersist_error(NULL));
	if (snapshots)
		gaps = take_snapshots(&c, s, workers, (size_t)n);
	else
		follow(&c, s, workers);
	for (int i = 0; i < workers + changing; i++)
		if (waitpid(pids[i], &status, 0) < 0 || status)
			die("a worker ended with %#x", status);
	if (snapshots)
		judge_snapshots(argv[1], &c, s, workers, gaps, (uint64_t)n);
	else
		judge(argv[1], &c, argv[3], s, workers);
	perfpersist_free(c.p);
	return 0;
}
