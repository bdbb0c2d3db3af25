// SPDX-License-Identifier: LGPL-2.1-or-later
/* What all kinds of intervals share: threads, CPUs, names, and the way from beginning to end. */
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"

int latency_new(const struct latency_options *o, struct latency **ret)
{
	struct latency *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->o = *o;
	*ret = l;
	return 0;
}

void latency_free(struct latency *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < LATENCY_KINDS; i++)
		latency_counts_done(&l->counts[i]);
	for (size_t i = 0; i < l->n_labels; i++)
		free(l->labels[i]);
	free(l->labels);
	hash_done(&l->label_hash);
	free(l->threads);
	keytable_done(&l->by_tid);
	free(l->cpus);
	free(l->requests);
	hash_done(&l->request_hash);
	free(l);
}

bool latency_has(const struct latency *l, enum latency_kind kind)
{
	return l->o.kinds >> kind & 1;
}

int latency_label(struct latency *l, const char *text, uint32_t *ret)
{
	uint32_t hash = hash_bytes(text, strlen(text));
	char *copy;

	for (size_t pos = hash; hash_next(&l->label_hash, hash, &pos, ret);)
		if (!strcmp(l->labels[*ret], text))
			return 0;
	copy = strdup(text);
	if (!copy || !GROW(l->labels, l->n_labels) ||
	    hash_add(&l->label_hash, hash, (uint32_t)l->n_labels) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*ret = (uint32_t)l->n_labels;
	l->labels[l->n_labels++] = copy;
	return 0;
}

struct latency_cpu *latency_cpu(struct latency *l, uint32_t cpu)
{
	if (cpu >= AGGREGATE_CPUS)
		return NULL;
	if (cpu >= l->n_cpus) {
		size_t n = (size_t)cpu + 1;
		struct latency_cpu *bigger = reallocarray(l->cpus, n, sizeof(*bigger));

		if (!bigger)
			return NULL;
		memset(bigger + l->n_cpus, 0, (n - l->n_cpus) * sizeof(*bigger));
		l->cpus = bigger;
		l->n_cpus = n;
	}
	return &l->cpus[cpu];
}

/* ── Threads ── */

static int add_thread(struct latency *l, uint32_t tid, uint32_t *ret)
{
	if (!GROW(l->threads, l->n_threads) ||
	    keytable_set(&l->by_tid, tid, (uint32_t)l->n_threads) < 0)
		return -ENOMEM;
	l->threads[l->n_threads] =
		(struct latency_thread){ .pid = UINT32_MAX, .who = { .tid = tid } };
	*ret = (uint32_t)l->n_threads++;
	return 0;
}

int latency_find_thread(struct latency *l, uint32_t tid, const struct latency_who *who,
			uint32_t *ret)
{
	int64_t i = keytable_get(&l->by_tid, tid);
	int r = 0;

	if (i >= 0)
		*ret = (uint32_t)i;
	else
		r = add_thread(l, tid, ret);
	if (r == 0 && who && *who->comm)
		l->threads[*ret].who = *who;
	return r;
}

uint32_t latency_process(const struct latency *l, uint32_t thread)
{
	const struct latency_thread *t = &l->threads[thread];

	return t->pid == UINT32_MAX ? t->who.tid : t->pid;
}

int latency_thread(struct latency *l, uint32_t pid, uint32_t tid, const char *comm)
{
	struct latency_who who = { .tid = tid };
	uint32_t i;

	if (strcmp(comm, "?"))
		snprintf(who.comm, sizeof(who.comm), "%s", comm);
	if (latency_find_thread(l, tid, &who, &i) < 0)
		return -ENOMEM;
	if (pid != UINT32_MAX)
		l->threads[i].pid = pid;
	return 0;
}

static void close_all(struct latency_thread *t)
{
	t->off.open = t->wait.open = t->call.open = false;
}

int latency_born(struct latency *l, uint32_t pid, uint32_t tid)
{
	int64_t before = keytable_get(&l->by_tid, tid);
	uint32_t i;

	if (before >= 0 && l->threads[before].fresh)
		return 0; /* it was told already */
	if (before >= 0)
		close_all(&l->threads[before]);
	if (add_thread(l, tid, &i) < 0)
		return -ENOMEM;
	l->threads[i].pid = pid;
	l->threads[i].fresh = l->threads[i].has_never_called = true;
	return 0;
}

/* It still runs, until a switch. */
void latency_died(struct latency *l, uint32_t tid)
{
	int64_t i = keytable_get(&l->by_tid, tid);

	if (i < 0)
		return;
	close_all(&l->threads[i]);
	l->threads[i].fresh = false; /* the next one of this id is another */
}

void latency_lost(struct latency *l, enum latency_kind kind)
{
	l->counts[kind].lost++;
}

/* ── System calls ── */

int latency_call(struct latency *l, const struct latency_now *now, const char *name)
{
	struct latency_thread *t;
	uint32_t i, label;

	if (latency_find_thread(l, now->who.tid, &now->who, &i) < 0 ||
	    latency_label(l, name, &label) < 0)
		return -ENOMEM;
	t = &l->threads[i];
	if (t->call.open)
		latency_count(l, LATENCY_SYSCALLS, i, now, true);
	t->call = latency_begin(l, LATENCY_SYSCALLS, now, label);
	t->has_never_called = false;
	return 0;
}

/* Without a name (rt_sigreturn, whose frame says that it is no call) it ends what there is. */
int latency_return(struct latency *l, const struct latency_now *now, const char *name)
{
	struct latency_about about = { .who = &now->who };
	struct latency_thread *t;

	if (latency_find_thread(l, now->who.tid, &now->who, &about.thread) < 0)
		return -ENOMEM;
	t = &l->threads[about.thread];
	if (!name) {
		t->call.open = false;
		return 0;
	}
	if (t->call.open && !strcmp(l->labels[t->call.label], name))
		return latency_end(l, LATENCY_SYSCALLS, &t->call, now, &about);
	/* A new thread returns from its parent's clone. */
	if (!t->has_never_called)
		latency_count(l, LATENCY_SYSCALLS, about.thread, now, t->call.open);
	t->has_never_called = t->call.open = false;
	return 0;
}

/* ── The end ── */

int latency_finish(struct latency *l, uint64_t end)
{
	int r = latency_sched_finish(l, end);

	if (r >= 0)
		r = latency_block_finish(l, end);
	if (r >= 0)
		r = latency_irq_finish(l, end);
	for (unsigned kind = 0; kind < LATENCY_KINDS && r >= 0; kind++)
		r = latency_sort(l, kind);
	return r;
}

const struct latency_sums *latency_sums(const struct latency *l, enum latency_kind kind)
{
	return &l->counts[kind].sums;
}

uint64_t latency_percentile(const struct latency_row *row, unsigned per_1000)
{
	size_t rank = (row->n * per_1000 + 999) / 1000; /* 1: the shortest */

	return row->all[MAX(rank, 1) - 1];
}
