// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings: takes facts. */
#include "client/perfctl/replay/findings.h"

#include <signal.h>
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

int findings_new(struct findings **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void findings_free(struct findings *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_cpus; i++)
		free(f->cpus[i].runs);
	for (size_t i = 0; i < TALLY_KINDS; i++)
		keytable_done(&f->tally_of[i]);
	keytable_done(&f->by_tid);
	hash_done(&f->name_hash);
	free(f->threads);
	free(f->names);
	free(f->cpus);
	free(f->stretches);
	free(f->in_time);
	free(f->disk_times);
	free(f->samples);
	free(f->forks);
	free(f->signals);
	free(f->requests);
	free(f->devices);
	free(f->tallies);
	free(f->result);
	free(f);
}

/* ── Threads and their names ── */

static int name_of(struct findings *f, const char *comm, uint32_t *ret)
{
	uint32_t hash = hash_bytes(comm, strlen(comm)), i;

	for (size_t pos = hash; hash_next(&f->name_hash, hash, &pos, &i);)
		if (!strcmp(f->names[i].comm, comm)) {
			*ret = i;
			return 0;
		}
	if (!GROW(f->names, f->n_names) || hash_add(&f->name_hash, hash, (uint32_t)f->n_names) < 0)
		return -ENOMEM;
	f->names[f->n_names] = (struct finding_name){};
	snprintf(f->names[f->n_names].comm, LATENCY_COMM_SIZE, "%s", comm);
	*ret = (uint32_t)f->n_names++;
	return 0;
}

static int rename_thread(struct findings *f, uint32_t thread, const char *comm)
{
	struct finding_thread *t = &f->threads[thread];

	if (!strcmp(t->comm, comm))
		return 0;
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
	return name_of(f, t->comm, &t->name);
}

static int add_thread(struct findings *f, uint32_t tid, uint32_t *ret)
{
	uint32_t name;

	if (name_of(f, "?", &name) < 0 || !GROW(f->threads, f->n_threads) ||
	    keytable_set(&f->by_tid, tid, (uint32_t)f->n_threads) < 0)
		return -ENOMEM;
	f->threads[f->n_threads] = (struct finding_thread){
		.tid = tid,
		.pid = UINT32_MAX,
		.name = name,
		.last_cpu = UINT32_MAX,
		.parent = FINDINGS_NONE,
		.stopper = FINDINGS_NONE,
	};
	*ret = (uint32_t)f->n_threads++;
	return 0;
}

/* The thread with this id, or a new one. comm "": unknown. pid UINT32_MAX: unknown. */
static int thread_of(struct findings *f, uint32_t tid, uint32_t pid, const char *comm,
		     uint32_t *ret)
{
	int64_t i = keytable_get(&f->by_tid, tid);

	if (i >= 0)
		*ret = (uint32_t)i;
	else if (add_thread(f, tid, ret) < 0)
		return -ENOMEM;
	if (pid != UINT32_MAX)
		f->threads[*ret].pid = pid;
	return *comm ? rename_thread(f, *ret, comm) : 0;
}

static int find(struct findings *f, const struct latency_who *who, uint32_t *ret)
{
	return thread_of(f, who->tid, UINT32_MAX, who->comm, ret);
}

/* ── Running and sleeping ── */

static struct finding_cpu *cpu_of(struct findings *f, uint32_t cpu)
{
	struct finding_cpu *bigger;

	if (cpu < f->n_cpus)
		return &f->cpus[cpu];
	bigger = cpu < AGGREGATE_CPUS ? reallocarray(f->cpus, (size_t)cpu + 1, sizeof(*bigger))
				      : NULL;
	if (!bigger)
		return NULL;
	memset(bigger + f->n_cpus, 0, (cpu + 1 - f->n_cpus) * sizeof(*bigger));
	f->cpus = bigger;
	f->n_cpus = (size_t)cpu + 1;
	return &f->cpus[cpu];
}

static int add_stretch(struct findings *f, const struct stretch *s)
{
	if (!GROW(f->stretches, f->n_stretches))
		return -ENOMEM;
	f->stretches[f->n_stretches++] = *s;
	return 0;
}

static int end_burst(struct findings *f, uint32_t thread, uint64_t end, bool is_open)
{
	struct finding_thread *t = &f->threads[thread];
	struct stretch s = {
		.begin = t->burst_begin,
		.end = end,
		.ns = t->burst,
		.thread = thread,
		.waker = FINDINGS_NONE,
		.kind = STRETCH_BURST,
		.is_open = is_open,
	};

	t->burst = 0;
	return add_stretch(f, &s);
}

int findings_ran(void *arg, const struct latency_run *run)
{
	struct findings *f = arg;
	struct finding_cpu *c = cpu_of(f, run->cpu);
	struct finding_thread *t;
	uint32_t thread;

	if (!c)
		return run->cpu < AGGREGATE_CPUS ? -ENOMEM : 0;
	if (thread_of(f, run->who.tid, run->pid, run->who.comm, &thread) < 0 ||
	    !GROW(c->runs, c->n))
		return -ENOMEM;
	c->runs[c->n++] = (struct finding_run){ run->begin, run->end, thread };
	t = &f->threads[thread];
	if (!t->burst)
		t->burst_begin = run->begin;
	t->last_cpu = run->cpu;
	if (run->exits && !t->exited)
		t->exited = MAX(run->end, 1U);
	t->burst += run->end - run->begin;
	t->ran += run->end - run->begin;
	return run->sleeps ? end_burst(f, thread, run->end, false) : 0;
}

/* What others lost to a wait that is shorter does not show. */
#define SHORTEST_WAIT FINDINGS_MS

static int device_of(struct findings *f, const char *label, uint32_t *ret)
{
	size_t n = strcspn(label, " ");
	char name[sizeof(*f->devices)];

	snprintf(name, sizeof(name), "%.*s", (int)n, label);
	for (size_t i = 0; i < f->n_devices; i++)
		if (!strcmp(f->devices[i], name)) {
			*ret = (uint32_t)i;
			return 0;
		}
	*ret = FINDINGS_NONE;
	if (f->n_devices == FINDINGS_DEVICES)
		return 0;
	if (!GROW(f->devices, f->n_devices))
		return -ENOMEM;
	snprintf(f->devices[f->n_devices], sizeof(name), "%s", name);
	*ret = (uint32_t)f->n_devices++;
	return 0;
}

static int add_request(struct findings *f, const struct latency_interval *one)
{
	struct finding_request q = { .begin = one->begin, .end = one->end, .tid = one->who.tid };
	size_t n = strlen(one->label);

	/* "8:0 write device"; the other one of a request is "… queue" */
	if (n < 7 || strcmp(one->label + n - 7, " device") != 0)
		return 0;
	if (one->is_open) /* it is as likely that the record of its end is missing */
		return 0;
	if (device_of(f, one->label, &q.device) < 0 || name_of(f, one->who.comm, &q.name) < 0 ||
	    !GROW(f->requests, f->n_requests))
		return -ENOMEM;
	f->requests[f->n_requests++] = q;
	return 0;
}

/* Which kind of stretch an interval is; false: none. */
static bool is_stretch(enum latency_kind kind, const struct latency_interval *one, uint8_t *ret)
{
	uint64_t ns = one->end - one->begin;

	if (kind == LATENCY_WAKEUPS) {
		*ret = strcmp(one->label, "preempted") ? STRETCH_WAIT : STRETCH_PREEMPTED;
		return ns >= SHORTEST_WAIT;
	}
	if (kind != LATENCY_OFF_CPU)
		return false;
	switch (*one->label) {
	case 'S':
		*ret = one->is_open ? STRETCH_ASLEEP : STRETCH_SLEEP;
		return true;
	case 'D':
		*ret = STRETCH_BLOCKED;
		return true;
	case 'T':
		*ret = STRETCH_STOPPED;
		return ns >= FINDINGS_OUTLIER;
	default:
		return false;
	}
}

/* It may have another name since, and be known by that. */
static int find_waker(struct findings *f, const struct latency_who *who, uint32_t *ret)
{
	int64_t i = keytable_get(&f->by_tid, who->tid);

	if (i < 0 || !*f->threads[i].comm)
		return find(f, who, ret);
	*ret = (uint32_t)i;
	return 0;
}

int findings_ended(void *arg, enum latency_kind kind, const struct latency_interval *one)
{
	struct stretch s = {
		.begin = one->begin,
		.end = one->end,
		.cpu = one->cpu,
		.waker = FINDINGS_NONE,
		.stopper = FINDINGS_NONE,
		.is_open = one->is_open,
		.knows_disks = one->knows_disks,
	};
	struct findings *f = arg;

	if (kind == LATENCY_BLOCK)
		return add_request(f, one);
	if (!is_stretch(kind, one, &s.kind))
		return 0;
	/* Sleep ends with the wakeup; what follows is a wait for a CPU. */
	if (kind == LATENCY_OFF_CPU && one->woken && one->woken >= one->begin &&
	    one->woken < one->end) {
		s.end = one->woken;
		s.is_open = false;
		if (s.kind == STRETCH_ASLEEP)
			s.kind = STRETCH_SLEEP;
	}
	s.ns = s.end - s.begin;
	if (thread_of(f, one->who.tid, one->pid, one->who.comm, &s.thread) < 0)
		return -ENOMEM;
	if (s.kind == STRETCH_STOPPED) /* the signal is the process's */
		s.stopper = f->threads[findings_first_thread(f, s.thread)].stopper;
	/* Who frees memory sleeps in state D only: its end is not recorded. */
	if (*one->label == 'S' && kind == LATENCY_OFF_CPU)
		f->threads[s.thread].reclaims = 0;
	if (one->was_woken && one->waker.tid && find_waker(f, &one->waker, &s.waker) < 0)
		return -ENOMEM;
	s.cpu_before = f->threads[s.thread].last_cpu;
	if (s.is_open)
		s.cpu = s.cpu_before;
	return add_stretch(f, &s);
}

/* ── Other facts ── */

int findings_sample(struct findings *f, const struct latency_now *now)
{
	struct finding_sample s = { .time = now->time, .leaf = now->chain };

	if (!now->who.tid || !now->chain)
		return 0;
	if (find(f, &now->who, &s.thread) < 0 || !GROW(f->samples, f->n_samples))
		return -ENOMEM;
	f->samples[f->n_samples++] = s;
	return 0;
}

int findings_fork(struct findings *f, const struct latency_now *now,
		  const struct latency_who *parent, const struct latency_who *child)
{
	struct finding_fork fork = { .time = now->time };

	if (find(f, parent, &fork.parent) < 0 || add_thread(f, child->tid, &fork.child) < 0 ||
	    rename_thread(f, fork.child, child->comm) < 0 || !GROW(f->forks, f->n_forks))
		return -ENOMEM;
	f->threads[fork.child].parent = fork.parent;
	f->forks[f->n_forks++] = fork;
	return 0;
}

int findings_exit(struct findings *f, const struct latency_now *now, const struct latency_who *who)
{
	uint32_t thread;

	if (find(f, who, &thread) < 0)
		return -ENOMEM;
	f->threads[thread].exited = MAX(now->time, 1U);
	return 0;
}

static int add_signal(struct findings *f, const struct latency_now *now,
		      const struct latency_who *target, const struct latency_who *sender,
		      struct finding_signal *s)
{
	s->time = now->time;
	s->sender = FINDINGS_NONE;
	if (find(f, target, &s->target) < 0 || (sender && find(f, sender, &s->sender) < 0) ||
	    !GROW(f->signals, f->n_signals))
		return -ENOMEM;
	f->signals[f->n_signals++] = *s;
	return 0;
}

/* from: the target itself, if it was the terminal. */
static int note_stopper(struct findings *f, const struct latency_who *from,
			const struct latency_who *target)
{
	uint32_t thread, sender;

	if (find(f, target, &thread) < 0 || find(f, from, &sender) < 0)
		return -ENOMEM;
	f->threads[thread].stopper = sender;
	return 0;
}

int findings_signal(struct findings *f, const struct latency_now *now,
		    const struct latency_who *target, int number, int code)
{
	struct finding_signal s = { .number = number };
	/* si_code is above 0 for a fault, and for what the kernel sends. */
	bool is_sent = code <= 0 && now->who.tid != target->tid;

	if (number == SIGSTOP || number == SIGTSTP)
		return note_stopper(f, is_sent ? &now->who : target, target);
	return add_signal(f, now, target, is_sent ? &now->who : NULL, &s);
}

int findings_victim(struct findings *f, const struct latency_now *now,
		    const struct latency_who *victim)
{
	struct finding_signal s = { .out_of_memory = true };

	if (add_signal(f, now, victim, NULL, &s) < 0)
		return -ENOMEM;
	f->threads[s.target].lacked_memory = true;
	return 0;
}

int findings_reclaim(struct findings *f, const struct latency_now *now, bool begins)
{
	struct stretch s = { .end = now->time, .waker = FINDINGS_NONE, .kind = STRETCH_RECLAIM };
	struct finding_thread *t;

	if (find(f, &now->who, &s.thread) < 0)
		return -ENOMEM;
	t = &f->threads[s.thread];
	s.begin = t->reclaims;
	t->reclaims = begins ? now->time : 0;
	if (begins || !s.begin)
		return 0;
	s.ns = s.end - s.begin;
	return add_stretch(f, &s);
}

/* ── The end ── */

static int by_weight(const void *left, const void *right)
{
	const struct finding *l = &((const struct tally *)left)->finding;
	const struct finding *r = &((const struct tally *)right)->finding;

	if (l->weight != r->weight)
		return l->weight > r->weight ? -1 : 1;
	return l->begin < r->begin ? -1 : l->begin > r->begin;
}

/* The first of them tell where. */
#define WITH_PLACE 100

static uint64_t n_looks(const struct findings *f)
{
	uint64_t n = f->n_stretches + f->n_cpus;

	for (size_t i = 0; i < f->n_cpus; i++)
		n += f->cpus[i].n;
	return 256 * n;
}

int findings_finish(struct findings *f, uint64_t begin, uint64_t end, const struct finding **ret,
		    size_t *ret_n)
{
	f->begin = begin;
	f->end = end;
	f->looks = n_looks(f);
	for (uint32_t i = 0; i < f->n_threads; i++)
		if (f->threads[i].burst && end_burst(f, i, end, true) < 0)
			return -ENOMEM;
	if (findings_judge(f) < 0)
		return -ENOMEM;
	f->result = calloc(f->n_tallies + 1, sizeof(*f->result));
	if (!f->result)
		return -ENOMEM;
	if (f->n_tallies)
		qsort(f->tallies, f->n_tallies, sizeof(*f->tallies), by_weight);
	for (*ret_n = 0; *ret_n < f->n_tallies && f->tallies[*ret_n].finding.weight > 0; ++*ret_n) {
		struct tally *t = &f->tallies[*ret_n];

		if (*ret_n < WITH_PLACE && t->thread != FINDINGS_NONE)
			t->finding.where =
				findings_where(f, t->thread, t->finding.begin, t->finding.end);
		f->result[*ret_n] = t->finding;
	}
	*ret = f->result;
	return 0;
}
