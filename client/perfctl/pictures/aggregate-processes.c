// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts by process, and from sched_switch each task's time on CPUs. Time counts only between two
 * switches that agree on the task: if records are missing in between, it is unknown. Parents come from
 * sideband, or from sched_process_fork. */
#include <string.h>

#include "client/perfctl/pictures/aggregate-parts.h"

struct task_fields {
	struct decoder *decoder; /* one of `decoders`; NULL: another event, or unexpected fields */
	const struct tep_format_field *prev_pid, *next_pid; /* of sched_switch */
	const struct tep_format_field *child_pid;	    /* of sched_process_fork */
};

static const struct tep_format_field *number_field(const struct decoder *d, const char *name)
{
	const struct tep_format_field *f = decoder_field(d, name);

	return f && f->size == sizeof(uint32_t) ? f : NULL;
}

static int find_fields(struct aggregate_parts *p, const struct trace_event *e,
		       struct task_fields *ret)
{
	bool is_fork = !strcmp(e->name, "sched:sched_process_fork");
	int r;

	if (!is_fork && strcmp(e->name, "sched:sched_switch") != 0)
		return 0;
	r = decoders_get(&p->decoders, e, &ret->decoder);
	if (r < 0 || !ret->decoder)
		return r;
	if (is_fork) {
		ret->child_pid = number_field(ret->decoder, "child_pid");
	} else {
		ret->prev_pid = number_field(ret->decoder, "prev_pid");
		ret->next_pid = number_field(ret->decoder, "next_pid");
	}
	if (!ret->child_pid && (!ret->prev_pid || !ret->next_pid))
		ret->decoder = NULL;
	return 0;
}

int sums_start(struct aggregate_parts *p)
{
	p->fields = calloc(p->a.n_events + 1, sizeof(*p->fields));
	if (!p->fields || decoders_init(&p->decoders, p->a.n_events) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < p->a.n_events; i++) {
		int r = find_fields(p, p->a.events[i].event, &p->fields[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The index of pid's sums; makes new ones. -ENOMEM. */
static int process_of(struct aggregate_parts *p, uint32_t pid, const char *comm, size_t *ret)
{
	struct aggregate *a = &p->a;
	uint32_t hash = hash_numbers(pid, 0), i;
	struct process_sum *processes;

	for (size_t pos = hash; hash_next(&p->process_hash, hash, &pos, &i);)
		if (a->processes[i].pid == pid) {
			*ret = i;
			return 0;
		}
	processes = grow(a->processes, a->n_processes, &p->cap_processes, sizeof(*processes));
	if (!processes)
		return -ENOMEM;
	a->processes = processes;
	if (hash_add(&p->process_hash, hash, (uint32_t)a->n_processes) < 0)
		return -ENOMEM;
	processes[a->n_processes] = (struct process_sum){ .pid = pid, .comm = comm };
	*ret = a->n_processes++;
	return 0;
}

int aggregate_about(struct aggregate *a, uint32_t pid)
{
	struct aggregate_parts *p = (struct aggregate_parts *)a;
	const char *comm = keep_comm(p, processes_name(trace_processes(p->trace), pid, pid) ?: "?");
	size_t i;

	if (!comm || process_of(p, pid, comm, &i) < 0)
		return -ENOMEM;
	a->processes[i].about++;
	return 0;
}

static int mark_cpu(struct process_sum *s, uint32_t cpu)
{
	size_t word = cpu / 64;

	if (word >= s->n_words) {
		uint64_t *bigger = reallocarray(s->cpus, word + 1, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + s->n_words, 0, (word + 1 - s->n_words) * sizeof(*bigger));
		s->cpus = bigger;
		s->n_words = word + 1;
	}
	s->cpus[word] |= UINT64_C(1) << cpu % 64;
	return 0;
}

/* Stores tid's process, or (remember false) looks it up; pid -1: unknown. */
static int thread_of(struct aggregate_parts *p, uint32_t tid, uint32_t *pid, bool remember)
{
	uint32_t hash = hash_numbers(tid, 1), i;
	struct thread *threads;

	/* Of a thread that has nearly ended the kernel does not even give the tid: so this stands for many. */
	if (tid == UINT32_MAX)
		return 0;
	for (size_t pos = hash; hash_next(&p->thread_hash, hash, &pos, &i);) {
		if (p->threads[i].tid != tid)
			continue;
		if (remember)
			p->threads[i].pid = *pid;
		else
			*pid = p->threads[i].pid;
		return 0;
	}
	if (!remember)
		return 0;
	threads = grow(p->threads, p->n_threads, &p->cap_threads, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	p->threads = threads;
	threads[p->n_threads] = (struct thread){ tid, *pid };
	return hash_add(&p->thread_hash, hash, (uint32_t)p->n_threads++);
}

static int running_on(struct aggregate_parts *p, uint32_t cpu, struct running **ret)
{
	if (cpu >= p->n_running) {
		size_t n = (size_t)cpu + 1;
		struct running *bigger = reallocarray(p->running, n, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + p->n_running, 0, (n - p->n_running) * sizeof(*bigger));
		p->running = bigger;
		p->n_running = n;
	}
	*ret = &p->running[cpu];
	return 0;
}

static uint32_t read_u32(const struct tep_format_field *f, const struct decoder *d)
{
	uint32_t v;

	memcpy(&v, d->raw + f->offset, sizeof(v));
	return v;
}

/* who: the index of the record's process, which leaves the CPU; counts: its time is wanted. */
static int add_switch(struct aggregate_parts *p, const struct task_fields *s, size_t who,
		      bool counts, const struct trace_record *r)
{
	struct aggregate *a = &p->a;
	struct running *on;
	uint32_t prev, next;

	if (decoder_load(s->decoder, r->sample.raw, r->sample.raw_size) < 0 ||
	    r->cpu >= AGGREGATE_CPUS)
		return 0;
	if (running_on(p, r->cpu, &on) < 0)
		return -ENOMEM;
	prev = read_u32(s->prev_pid, s->decoder);
	next = read_u32(s->next_pid, s->decoder);
	if (on->known && on->tid == prev && r->time >= on->since) {
		uint64_t time = r->time - on->since;

		if (prev) {
			a->processes[who].run += counts ? time : 0;
			a->run += time;
		} else {
			a->idle += time;
		}
	}
	a->processes[who].switches += counts;
	a->has_switches = true;
	*on = (struct running){ .known = true, .tid = next, .since = r->time };
	return 0;
}

/* Makes a new one. NULL: no memory. */
static struct lineage *lineage_of(struct aggregate_parts *p, uint32_t pid)
{
	int64_t i = keytable_get(&p->lineage_of, pid);

	if (i >= 0)
		return &p->lineages[i];
	if (!GROW(p->lineages, p->n_lineages) ||
	    keytable_set(&p->lineage_of, pid, (uint32_t)p->n_lineages) < 0)
		return NULL;
	p->lineages[p->n_lineages] = (struct lineage){};
	return &p->lineages[p->n_lineages++];
}

static bool is_named(const char *comm)
{
	return strcmp(comm, "?") != 0;
}

/* The child may be a thread: then nobody looks for it as a process. Until it has a name, it has its
 * parent's. */
static int add_fork(struct aggregate_parts *p, const struct task_fields *s, uint32_t parent,
		    const char *comm, const struct trace_record *r)
{
	struct lineage *l;
	uint32_t child;

	if (parent == UINT32_MAX || decoder_load(s->decoder, r->sample.raw, r->sample.raw_size) < 0)
		return 0;
	child = read_u32(s->child_pid, s->decoder);
	if (child == parent)
		return 0;
	l = lineage_of(p, parent);
	if (!l)
		return -ENOMEM;
	if (!l->comm || is_named(comm))
		l->comm = comm;
	comm = l->comm;
	l = lineage_of(p, child);
	if (!l)
		return -ENOMEM;
	*l = (struct lineage){ .ppid = parent, .comm = comm };
	return 0;
}

int sums_add(struct aggregate_parts *p, const struct trace_record *r, bool wanted)
{
	const struct task_fields *s = &p->fields[r->event->index];
	uint32_t pid = r->pid, tid = r->tid;
	struct process_sum *sum;
	const char *comm;
	size_t who;

	if (!wanted && !s->decoder)
		return thread_of(p, tid, &pid, pid != UINT32_MAX);
	comm = keep_comm(p, r->comm);
	if (!comm)
		return -ENOMEM;
	/* The kernel no longer gives the pid of a task that is exiting. */
	if (thread_of(p, tid, &pid, pid != UINT32_MAX) < 0 || process_of(p, pid, comm, &who) < 0)
		return -ENOMEM;
	sum = &p->a.processes[who];
	/* A process has the name of its first thread. */
	if (tid == pid || !sum->samples)
		sum->comm = comm;
	sum->samples += wanted;
	if (wanted && r->cpu < AGGREGATE_CPUS && mark_cpu(sum, r->cpu) < 0)
		return -ENOMEM;
	if (!s->decoder || !r->sample.raw || r->again)
		return 0;
	return s->child_pid ? add_fork(p, s, pid, comm, r)
			    : add_switch(p, s, who, wanted || !p->threads_alone, r);
}

/* A thread's fork has its own process as parent. */
int sums_lineage(struct aggregate_parts *p, const struct trace_record *r)
{
	struct lineage *l;
	const char *comm;

	if (r->pid != r->tid || (r->kind == TRACE_FORK && r->ppid == r->pid))
		return 0;
	comm = keep_comm(p, r->comm);
	l = comm ? lineage_of(p, r->pid) : NULL;
	if (!l)
		return -ENOMEM;
	l->comm = comm;
	if (r->kind == TRACE_FORK)
		l->ppid = r->ppid == UINT32_MAX ? 0 : r->ppid;
	return 0;
}

uint32_t aggregate_process(const struct aggregate *a, uint32_t pid, uint32_t tid)
{
	const struct aggregate_parts *p = (const struct aggregate_parts *)a;
	uint32_t hash = hash_numbers(tid, 1), i;

	for (size_t pos = hash; pid == UINT32_MAX && hash_next(&p->thread_hash, hash, &pos, &i);)
		if (p->threads[i].tid == tid)
			pid = p->threads[i].pid;
	return pid;
}

const struct lineage *aggregate_lineage(const struct aggregate *a, uint32_t pid)
{
	const struct aggregate_parts *p = (const struct aggregate_parts *)a;
	int64_t i = keytable_get(&p->lineage_of, pid);

	return i < 0 ? NULL : &p->lineages[i];
}

/* Without recorded switches all times on CPUs are 0. */
static int busiest_first(const void *left, const void *right)
{
	const struct process_sum *l = left, *r = right;

	if (l->run != r->run)
		return l->run > r->run ? -1 : 1;
	if (l->samples != r->samples)
		return l->samples > r->samples ? -1 : 1;
	if (l->about != r->about)
		return l->about > r->about ? -1 : 1;
	return l->pid < r->pid ? -1 : l->pid > r->pid;
}

/* Drops processes without a wanted record: they were needed only for the others. */
static void leave_out_others(struct aggregate *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_processes; i++)
		if (a->processes[i].samples || a->processes[i].about)
			a->processes[n++] = a->processes[i];
	a->n_processes = n;
}

void sums_sort(struct aggregate *a)
{
	leave_out_others(a);
	if (a->n_processes)
		qsort(a->processes, a->n_processes, sizeof(*a->processes), busiest_first);
}

void sums_done(struct aggregate_parts *p)
{
	struct aggregate *a = &p->a;

	for (size_t i = 0; i < a->n_processes; i++)
		free(a->processes[i].cpus);
	decoders_done(&p->decoders);
	free(a->processes);
	free(p->threads);
	free(p->running);
	free(p->fields);
	free(p->lineages);
	keytable_done(&p->lineage_of);
	hash_done(&p->process_hash);
	hash_done(&p->thread_hash);
}
