// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Findings: which of the facts stand out, and how much. A finding's weight is the time, in ms, that others
 * lost by it; what ends processes comes before all of these.
 *
 * What a thread does is judged by what the same thread does mostly: a server that answers in 50 µs and once
 * runs for 300 ms stands out, and a compiler that always runs does not.
 */
#include <signal.h>
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

/* An outlier takes this long at least, and so many times the median of so many at least. */
#define OUTLIER_NS (10 * FINDINGS_MS)
#define OUTLIER_TIMES 20
#define OUTLIER_OF 10

#define WEIGHT_CRASH 1e9
#define WEIGHT_KILLED 1e3

/* ── Rows ── */

static int tally_of(struct findings *f, enum finding_kind kind, uint32_t culprit, uint32_t victim,
		    struct tally **ret)
{
	uint64_t key = (uint64_t)culprit << 32 | victim;
	int64_t i = keytable_get(&f->tally_of[kind], key);

	if (i < 0) {
		i = (int64_t)f->n_tallies;
		if (!GROW(f->tallies, f->n_tallies) ||
		    keytable_set(&f->tally_of[kind], key, (uint32_t)i) < 0)
			return -ENOMEM;
		f->tallies[f->n_tallies++] = (struct tally){ .finding.kind = kind,
							     .culprit = culprit,
							     .victim = victim,
							     .thread = FINDINGS_NONE };
	}
	*ret = &f->tallies[i];
	return 0;
}

static uint32_t process_of(const struct finding_thread *t)
{
	return t->pid == UINT32_MAX ? t->tid : t->pid;
}

/* Of several with one name only the name is told. */
static void take_party(struct finding_party *p, const char *comm, uint32_t id)
{
	if (!p->comm)
		*p = (struct finding_party){ comm, id };
	else if (p->id != id)
		p->id = 0;
}

static void take_thread(const struct findings *f, struct finding_party *p, uint32_t thread)
{
	const struct finding_thread *t = &f->threads[thread];

	take_party(p, f->names[t->name].comm, process_of(t));
}

/* A thread is told by its own id where it matters which one of a process it is. */
static void take_tid(const struct findings *f, struct finding_party *p, uint32_t thread)
{
	const struct finding_thread *t = &f->threads[thread];

	take_party(p, f->names[t->name].comm, t->tid);
}

static void count(struct tally *t, const struct stretch *s, uint64_t ns)
{
	struct finding *g = &t->finding;

	g->n++;
	g->sum += ns;
	if (ns <= g->max)
		return;
	g->max = ns;
	g->begin = s->begin;
	g->end = s->end;
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)(MIN(part, whole) * 100 / whole) : 0;
}

/* Kernel threads do what others have left to them: that they wait hurts nobody at once. They have no mark of
 * their own in records. */
static bool serves_others(const char *comm)
{
	static const char *const names[] = { "kworker/", "jbd2/",     "rcu",	    "ksoftirqd/",
					     "kswapd",	 "kcompactd", "khugepaged", "migration/" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(comm, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_recorder_name(const char *comm)
{
	return !strcmp(comm, "perfctl") || !strncmp(comm, "perfpersist", 11);
}

/* This recorder's own programs work because somebody looks. Others can take their names, so these do not
 * hide more than a tenth of a CPU. */
static bool is_recorder(const struct findings *f, uint32_t name)
{
	return name != FINDINGS_NONE && is_recorder_name(f->names[name].comm) &&
	       10 * f->recorder_ran < f->end - f->begin;
}

/* ── Waiting for a CPU ── */

/* Who ran while a thread waited, of so many threads at most. */
struct wait {
	const struct stretch *s;
	struct part {
		uint32_t thread;
		uint64_t ns;
	} parts[16];
	size_t n;
};

static int add_part(void *arg, uint32_t thread, uint64_t ns)
{
	struct wait *w = arg;
	size_t i = 0;

	if (thread == w->s->thread)
		return 0;
	while (i < w->n && w->parts[i].thread != thread)
		i++;
	if (i == ARRAY_SIZE(w->parts))
		return 0;
	if (i == w->n)
		w->parts[w->n++] = (struct part){ .thread = thread };
	w->parts[i].ns += ns;
	return 0;
}

/* A thread that runs all the time loses nothing but throughput by a wait. */
static double how_it_hurts(const struct findings *f, const struct finding_thread *t)
{
	double idle = 1 - (double)t->ran / (double)MAX(f->end - f->begin, 1);

	if (serves_others(t->comm))
		idle *= 0.3;
	return idle > 0 ? idle * idle : 0;
}

/* The one that ran longest is to blame: of each wait there is one row at most. */
static int judge_wait(struct findings *f, const struct stretch *s)
{
	const struct finding_thread *victim = &f->threads[s->thread];
	const struct part *most = NULL;
	struct wait w = { .s = s };
	struct tally *t;

	findings_who_ran(f, s->cpu, s->begin, s->end, add_part, &w);
	for (size_t i = 0; i < w.n; i++)
		if (!most || w.parts[i].ns > most->ns)
			most = &w.parts[i];
	if (!most)
		return 0;
	if (tally_of(f, FINDING_CPU, f->threads[most->thread].name, victim->name, &t) < 0)
		return -ENOMEM;
	take_thread(f, &t->finding.culprit, most->thread);
	take_thread(f, &t->finding.victim, s->thread);
	t->overlap += most->ns;
	t->weight += how_it_hurts(f, victim) * (double)most->ns / FINDINGS_MS;
	if (s->ns > t->finding.max)
		t->thread = most->thread;
	count(t, s, s->ns);
	return 0;
}

/* ── Outliers of a thread ── */

static int judge_burst(struct findings *f, const struct stretch *s, uint64_t usual)
{
	struct tally *t;

	if (tally_of(f, FINDING_BURST, f->threads[s->thread].name, FINDINGS_NONE, &t) < 0)
		return -ENOMEM;
	take_tid(f, &t->finding.culprit, s->thread);
	if (s->ns > t->finding.max) {
		t->thread = s->thread;
		t->finding.usual = usual;
	}
	count(t, s, s->ns);
	/* Only a server keeps others waiting by it. */
	t->weight += 0.5 * (double)s->ns / FINDINGS_MS;
	return 0;
}

static int judge_sleep(struct findings *f, const struct stretch *s, uint64_t usual)
{
	struct tally *t;

	if (tally_of(f, FINDING_SLEEP, f->threads[s->waker].name, f->threads[s->thread].name, &t) <
	    0)
		return -ENOMEM;
	take_tid(f, &t->finding.culprit, s->waker);
	take_tid(f, &t->finding.victim, s->thread);
	t->overlap += findings_ran_for(f, s->waker, s->begin, s->end);
	if (s->ns > t->finding.max) {
		t->thread = s->waker;
		t->finding.usual = usual;
	}
	count(t, s, s->ns);
	/* It may as well have had nothing to do. */
	t->weight += 0.7 * (double)s->ns / FINDINGS_MS;
	return 0;
}

/* Whether it is that thread which mostly wakes it: an interrupt's wakeup names whoever was interrupted. */
static bool wakes_mostly(const struct stretch *all, size_t n, uint32_t waker)
{
	size_t own = 0;

	for (size_t i = 0; i < n; i++)
		own += all[i].waker == waker;
	return 2 * own > n;
}

static bool is_told(const struct findings *f, const struct stretch *all, size_t n,
		    const struct stretch *s)
{
	const struct finding_thread *t = &f->threads[s->thread], *waker;

	if (s->kind == STRETCH_BURST)
		return true;
	if (s->waker == FINDINGS_NONE || s->waker == s->thread)
		return false;
	waker = &f->threads[s->waker];
	return process_of(t) == process_of(waker) || wakes_mostly(all, n, s->waker);
}

/* all: of one thread and kind, the shortest first. */
static int judge_outliers(struct findings *f, const struct stretch *all, size_t n)
{
	uint64_t usual = all[n / 2].ns;
	int r = 0;

	if (n < OUTLIER_OF)
		return 0;
	for (size_t i = n; r >= 0 && i-- > 0;) {
		const struct stretch *s = &all[i];

		if (s->ns < OUTLIER_NS || s->ns / OUTLIER_TIMES < usual)
			break;
		if (!is_told(f, all, n, s))
			continue;
		r = s->kind == STRETCH_BURST ? judge_burst(f, s, usual) : judge_sleep(f, s, usual);
	}
	return r;
}

/* ── Blocked, and freeing memory ── */

static int judge_sum(struct findings *f, enum finding_kind kind, const struct stretch *s)
{
	struct tally *t;

	if (tally_of(f, kind, FINDINGS_NONE, f->threads[s->thread].name, &t) < 0)
		return -ENOMEM;
	take_thread(f, &t->finding.victim, s->thread);
	count(t, s, s->ns);
	return 0;
}

static int judge_group(struct findings *f, const struct stretch *all, size_t n)
{
	int r = 0;

	switch (all->kind) {
	case STRETCH_BURST:
	case STRETCH_SLEEP:
		return judge_outliers(f, all, n);
	case STRETCH_WAIT:
		for (size_t i = 0; i < n && r >= 0; i++)
			r = judge_wait(f, &all[i]);
		return r;
	default:
		for (size_t i = 0; i < n && r >= 0; i++)
			r = judge_sum(
				f, all->kind == STRETCH_RECLAIM ? FINDING_MEMORY : FINDING_BLOCKED,
				&all[i]);
		return r;
	}
}

static int by_thread(const void *left, const void *right)
{
	const struct stretch *l = left, *r = right;

	if (l->thread != r->thread)
		return l->thread < r->thread ? -1 : 1;
	if (l->kind != r->kind)
		return l->kind < r->kind ? -1 : 1;
	return l->ns < r->ns ? -1 : l->ns > r->ns;
}

static int judge_stretches(struct findings *f)
{
	int r = 0;

	if (f->n_stretches)
		qsort(f->stretches, f->n_stretches, sizeof(*f->stretches), by_thread);
	for (size_t i = 0, next; r >= 0 && i < f->n_stretches; i = next) {
		for (next = i; next < f->n_stretches; next++)
			if (f->stretches[next].thread != f->stretches[i].thread ||
			    f->stretches[next].kind != f->stretches[i].kind)
				break;
		r = judge_group(f, &f->stretches[i], next - i);
	}
	return r;
}

/* ── Disks ── */

struct disk {
	uint64_t n, ns;
	uint32_t most; /* name of who made most requests */
};

/* Of those that were blocked, who lost most; not the culprit, if there is another. */
static struct tally *most_blocked(struct findings *f, uint32_t culprit)
{
	struct tally *most = NULL, *own = NULL;

	for (size_t i = 0; i < f->n_tallies; i++) {
		struct tally *t = &f->tallies[i];

		if (t->finding.kind != FINDING_BLOCKED || serves_others(f->names[t->victim].comm))
			continue;
		if (t->victim == culprit)
			own = t;
		else if (!most || t->finding.sum > most->finding.sum)
			most = t;
	}
	return most ?: own;
}

static int count_requests(struct findings *f, uint32_t device, struct disk *ret)
{
	_cleanup_free_ uint64_t *by_name = calloc(f->n_names, sizeof(*by_name));
	uint64_t most = 0;

	if (!by_name)
		return -ENOMEM;
	*ret = (struct disk){};
	for (size_t i = 0; i < f->n_requests; i++) {
		const struct finding_request *q = &f->requests[i];

		if (q->device != device)
			continue;
		by_name[q->name] += q->ns;
		ret->ns += q->ns;
		ret->n++;
	}
	for (uint32_t i = 0; i < f->n_names; i++) {
		/* They have none of their own. */
		uint64_t weight = by_name[i] * (serves_others(f->names[i].comm) ? 1 : 1000);

		if (weight <= most)
			continue;
		most = weight;
		ret->most = i;
	}
	return 0;
}

/* A disk is a finding if someone was blocked for so long, or so much of the time. */
static bool was_blocked(const struct findings *f, const struct tally *t)
{
	return t->finding.max >= OUTLIER_NS || t->finding.sum > (f->end - f->begin) / 20;
}

static void tell_parties(const struct findings *f, uint32_t device, const struct disk *d,
			 struct finding *g)
{
	uint64_t own = 0;

	for (size_t i = 0; i < f->n_requests; i++) {
		const struct finding_request *q = &f->requests[i];

		if (q->device != device || q->name != d->most)
			continue;
		take_party(&g->culprit, f->names[q->name].comm, q->tid);
		own += q->ns;
	}
	g->percent = percent(own, d->ns);
	g->device = f->devices[device];
}

static int judge_disk(struct findings *f, uint32_t device)
{
	struct tally *blocked, *t;
	struct finding *g;
	struct disk d;

	if (count_requests(f, device, &d) < 0)
		return -ENOMEM;
	blocked = most_blocked(f, d.most);
	if (!blocked || !was_blocked(f, blocked))
		return 0;
	if (tally_of(f, FINDING_DISK, d.most, device, &t) < 0)
		return -ENOMEM;
	blocked = most_blocked(f, d.most); /* the rows may have moved */
	g = &t->finding;
	*g = blocked->finding;
	g->kind = FINDING_DISK;
	tell_parties(f, device, &d, g);
	/* Who waits for its own requests only hurts itself. */
	t->weight = (blocked->victim == d.most ? 0.1 : 1) * (double)g->sum / FINDINGS_MS;
	return 0;
}

/* What disks do not explain. */
static void weigh_blocked(const struct findings *f, struct tally *t)
{
	bool is_explained = f->n_requests > 0;

	if (!is_explained && was_blocked(f, t) && !serves_others(f->names[t->victim].comm))
		t->weight = (double)t->finding.sum / FINDINGS_MS;
}

/* ── Processes that began ── */

#define FORKS 100 /* of one process are many */

static int judge_fork(struct findings *f, const struct finding_fork *fork)
{
	const struct finding_thread *parent = &f->threads[fork->parent],
				    *child = &f->threads[fork->child];
	struct finding *g;
	struct tally *t;

	if (child->pid != UINT32_MAX && child->pid != child->tid)
		return 0; /* a thread */
	if (tally_of(f, FINDING_FORKS, parent->name, child->name, &t) < 0)
		return -ENOMEM;
	g = &t->finding;
	take_thread(f, &g->culprit, fork->parent);
	take_party(&g->victim, f->names[child->name].comm, 0);
	if (!g->n++)
		g->begin = fork->time;
	g->end = fork->time;
	g->sum += child->ran;
	g->max = MAX(g->max, child->ran);
	/* Beside its own time each costs about as much again: fork, exec, page faults, exit. */
	t->weight += 0.5 + (double)child->ran / FINDINGS_MS;
	return 0;
}

/* ── What ended processes ── */

static bool ends_by_fault(int number)
{
	static const int faults[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP };

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i] == number)
			return true;
	return false;
}

/* A signal that did not end its process was handled. */
static int judge_signal(struct findings *f, const struct finding_signal *s)
{
	const struct finding_thread *target = &f->threads[s->target];
	uint32_t sender = s->sender == FINDINGS_NONE ? FINDINGS_NONE : f->threads[s->sender].name;
	enum finding_kind kind = s->out_of_memory ? FINDING_OOM : FINDING_CRASH;
	bool kills = s->number == SIGKILL;
	struct tally *t;

	if (!s->out_of_memory && (!target->exited || (!ends_by_fault(s->number) && !kills)))
		return 0;
	if (tally_of(f, kind, target->name, sender, &t) < 0)
		return -ENOMEM;
	take_thread(f, &t->finding.culprit, s->target);
	if (s->sender != FINDINGS_NONE)
		take_thread(f, &t->finding.victim, s->sender);
	t->finding.n++;
	t->finding.number = s->number;
	t->finding.begin = t->finding.end = s->time;
	if (!kills)
		t->weight += WEIGHT_CRASH;
	else if (s->sender == FINDINGS_NONE ||
		 s->sender != target->parent) /* which has its reasons */
		t->weight += WEIGHT_KILLED;
	return 0;
}

/* ── Who had the CPUs ── */

static int judge_usage(struct findings *f)
{
	uint64_t all = 0, *by_name = calloc(f->n_names + 1, sizeof(*by_name));
	uint32_t most = 0;
	struct tally *t;
	int r = by_name ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < f->n_threads; i++) {
		const struct finding_thread *one = &f->threads[i];

		by_name[one->name] += one->ran;
		all += one->ran;
		if (by_name[one->name] > by_name[most])
			most = one->name;
	}
	/* Half of a CPU at least. */
	if (r >= 0 && f->n_names && 2 * by_name[most] > f->end - f->begin)
		r = tally_of(f, FINDING_USAGE, most, FINDINGS_NONE, &t) ?: 1;
	if (r > 0) {
		uint64_t longest = 0;

		for (uint32_t i = 0; i < f->n_threads; i++) {
			if (f->threads[i].name != most || !f->threads[i].ran)
				continue;
			take_thread(f, &t->finding.culprit, i);
			if (f->threads[i].ran > longest)
				t->thread = i;
			longest = MAX(longest, f->threads[i].ran);
		}
		t->finding.n = 1;
		t->finding.sum = t->finding.max = by_name[most];
		t->finding.percent = percent(by_name[most], all);
		t->finding.begin = f->begin;
		t->finding.end = f->end;
		t->weight = 0.02 * (double)by_name[most] / FINDINGS_MS;
	}
	free(by_name);
	return r;
}

/* ── All of it ── */

/* What is too little, or explained by another finding, weighs nothing. */
static void weigh(const struct findings *f, struct tally *t)
{
	struct finding *g = &t->finding;

	if (is_recorder(f, t->culprit) && g->kind != FINDING_CRASH && g->kind != FINDING_OOM)
		t->weight = 0;
	switch (g->kind) {
	case FINDING_CPU:
		if (!g->n || t->weight < 10)
			t->weight = 0;
		g->percent = percent(t->overlap, g->sum);
		break;
	case FINDING_SLEEP:
		g->percent = percent(t->overlap, g->sum);
		break;
	case FINDING_BLOCKED:
		weigh_blocked(f, t);
		break;
	case FINDING_MEMORY:
		if (g->max >= OUTLIER_NS || g->sum > (f->end - f->begin) / 20)
			t->weight = (double)g->sum / FINDINGS_MS;
		break;
	case FINDING_FORKS:
		if (g->n < FORKS)
			t->weight = 0;
		break;
	default:
		break;
	}
	g->weight = t->weight;
}

int findings_judge(struct findings *f)
{
	int r;

	for (size_t i = 0; i < f->n_threads; i++)
		if (is_recorder_name(f->threads[i].comm))
			f->recorder_ran += f->threads[i].ran;
	r = judge_stretches(f);
	for (size_t i = 0; r >= 0 && i < f->n_forks; i++)
		r = judge_fork(f, &f->forks[i]);
	for (size_t i = 0; r >= 0 && i < f->n_signals; i++)
		r = judge_signal(f, &f->signals[i]);
	for (uint32_t i = 0; r >= 0 && i < f->n_devices; i++)
		r = judge_disk(f, i);
	if (r >= 0)
		r = judge_usage(f);
	for (size_t i = 0; r >= 0 && i < f->n_tallies; i++)
		weigh(f, &f->tallies[i]);
	return r < 0 ? r : 0;
}
