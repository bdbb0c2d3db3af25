// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Findings: which of the facts stand out, and how much. A finding's weight is the time, in ms, that others
 * lost by it; what ends processes comes before all of these.
 */
#include <signal.h>
#include <string.h>

#include "client/perfctl/replay/findings-parts.h"

#define WEIGHT_CRASH 1e9
#define WEIGHT_KILLED 1e3
#define WEIGHT_ENDED 10 /* by who has its reasons */

/* ── Rows ── */

int findings_tally(struct findings *f, enum finding_kind kind, uint32_t culprit, uint32_t victim,
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

uint32_t findings_process(const struct finding_thread *t)
{
	return t->pid == UINT32_MAX ? t->tid : t->pid;
}

uint32_t findings_first_thread(const struct findings *f, uint32_t thread)
{
	int64_t first = keytable_get(&f->by_tid, findings_process(&f->threads[thread]));

	return first < 0 ? thread : (uint32_t)first;
}

bool findings_same_process(const struct findings *f, uint32_t a, uint32_t b)
{
	return findings_process(&f->threads[a]) == findings_process(&f->threads[b]);
}

static void take_party(struct finding_party *p, const char *comm, uint32_t id, uint32_t process)
{
	if (!p->comm)
		*p = (struct finding_party){ comm, id, process };
	else if (p->process != process)
		p->id = p->process = 0;
	else if (p->id != id)
		p->id = process;
}

void findings_take(const struct findings *f, struct finding_party *p, uint32_t thread)
{
	const struct finding_thread *t = &f->threads[thread];

	take_party(p, f->names[t->name].comm, t->tid, findings_process(t));
}

void findings_count(struct tally *t, const struct stretch *s, uint64_t ns)
{
	struct finding *g = &t->finding;

	g->n++;
	g->sum += ns;
	if (ns <= g->max)
		return;
	g->max = ns;
	g->begin = s->begin;
	g->end = s->end;
	g->is_open = s->is_open;
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)(MIN(part, whole) * 100 / whole) : 0;
}

bool findings_serves_others(const char *comm)
{
	static const char *const names[] = { "kworker/", "jbd2/",     "rcu",	    "ksoftirqd/",
					     "kswapd",	 "kcompactd", "khugepaged", "migration/",
					     "irq/",	 "napi/",     "ktimers/",   "vhost-",
					     "xfsaild/", "kdamond" };

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

/* ── Disks ── */

struct disk {
	uint64_t ns;
	uint32_t most; /* name of who made most requests */
};

static uint64_t within(const struct finding_request *q, uint64_t begin, uint64_t end)
{
	uint64_t from = MAX(q->begin, begin), to = MIN(q->end, end);

	return to > from ? to - from : 0;
}

/* From begin to end. */
static int count_requests(struct findings *f, uint32_t device, uint64_t begin, uint64_t end,
			  struct disk *ret)
{
	_cleanup_free_ uint64_t *by_name = calloc(f->n_names, sizeof(*by_name));
	uint64_t most = 0;

	if (!by_name)
		return -ENOMEM;
	*ret = (struct disk){};
	for (size_t i = 0; i < f->n_requests; i++) {
		const struct finding_request *q = &f->requests[i];
		uint64_t ns = within(q, begin, end);

		if (q->device != device || !ns)
			continue;
		by_name[q->name] += ns;
		ret->ns += ns;
	}
	for (uint32_t i = 0; i < f->n_names; i++) {
		/* They mostly have none of their own; but who made a small part is not to blame. */
		uint64_t weight = by_name[i] * (findings_serves_others(f->names[i].comm) ? 1 : 4);

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
	return t->finding.max >= FINDINGS_OUTLIER || t->finding.sum > (f->end - f->begin) / 20;
}

static void tell_parties(const struct findings *f, uint32_t device, const struct disk *d,
			 struct finding *g)
{
	uint64_t own = 0;

	for (size_t i = 0; i < f->n_requests; i++) {
		const struct finding_request *q = &f->requests[i];
		uint64_t ns = within(q, g->begin, g->end);

		if (q->device != device || q->name != d->most || !ns)
			continue;
		take_party(&g->culprit, f->names[q->name].comm, q->tid, q->tid);
		own += ns;
	}
	g->percent = percent(own, d->ns);
	g->device = f->devices[device];
}

/* What counts is who had the disk while that one was blocked for longest. It is told of the one that lost most. */
static int judge_blocked_on(struct findings *f, size_t blocked, uint32_t device)
{
	const struct tally *v = &f->tallies[blocked];
	struct tally *t;
	double weight;
	struct disk d;

	if (count_requests(f, device, v->finding.begin, v->finding.end, &d) < 0)
		return -ENOMEM;
	if (2 * d.ns <= v->finding.max)
		return 0; /* it waited for another disk */
	if (findings_tally(f, FINDING_DISK, d.most, device, &t) < 0)
		return -ENOMEM;
	v = &f->tallies[blocked]; /* the rows may have moved */
	/* A thread that waits for its own requests only hurts itself. */
	weight = (v->victim == d.most ? 0.1 : 1) * (double)v->finding.sum / FINDINGS_MS;
	if (weight <= t->weight)
		return 0;
	t->weight = weight;
	t->finding = v->finding;
	t->finding.kind = FINDING_DISK;
	tell_parties(f, device, &d, &t->finding);
	return 0;
}

/* Each takes a look at all requests. */
#define BLOCKED_MAX 64

static int judge_disks(struct findings *f)
{
	size_t n = f->n_tallies, looks = BLOCKED_MAX;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0 && looks; i++) {
		const struct tally *t = &f->tallies[i];

		if (t->finding.kind != TALLY_ON_DISK || !was_blocked(f, t) ||
		    findings_serves_others(f->names[t->victim].comm))
			continue;
		looks--;
		for (uint32_t device = 0; device < f->n_devices && r >= 0; device++)
			r = judge_blocked_on(f, i, device);
	}
	return r;
}

static void weigh_blocked(const struct findings *f, struct tally *t)
{
	if (was_blocked(f, t) && !findings_serves_others(f->names[t->victim].comm))
		t->weight = (double)t->finding.sum / FINDINGS_MS;
}

/* ── Processes that began ── */

#define FORKS 20 /* of one process and name are many, if they begin within so long of each other: */
#define FORKS_APART (1000 * FINDINGS_MS)

static bool is_process(const struct finding_thread *child)
{
	return child->pid == UINT32_MAX || child->pid == child->tid;
}

static int judge_fork(struct findings *f, const struct finding_fork *fork)
{
	const struct finding_thread *parent = &f->threads[fork->parent],
				    *child = &f->threads[fork->child];
	struct finding *g;
	struct tally *t;

	if (!is_process(child))
		return 0;
	if (findings_tally(f, FINDING_FORKS, parent->name, child->name, &t) < 0)
		return -ENOMEM;
	g = &t->finding;
	findings_take(f, &g->culprit, fork->parent);
	take_party(&g->victim, f->names[child->name].comm, 0, 0);
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

/* Who begins another thread afterwards has handled it: a virtual machine tries what its CPU can do, and looks
 * for null pointers in that way. */
static bool goes_on(struct findings *f, const struct finding_signal *s)
{
	for (size_t i = f->n_forks; i-- > 0 && f->forks[i].time > s->time && f->looks; f->looks--) {
		const struct finding_fork *fork = &f->forks[i];

		if (!is_process(&f->threads[fork->child]) &&
		    findings_same_process(f, fork->parent, s->target))
			return true;
	}
	return false;
}

/* A process dies once, and of the first signal that it does not handle. */
static bool has_died(struct findings *f, const struct finding_signal *s)
{
	struct finding_thread *first = &f->threads[findings_first_thread(f, s->target)];
	bool was_dead = first->is_dead;

	first->is_dead = true;
	return was_dead;
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
	if (kills && target->lacked_memory) /* that is told */
		return 0;
	if (!s->out_of_memory && ((!kills && goes_on(f, s)) || has_died(f, s)))
		return 0;
	if (findings_tally(f, kind, target->name, sender, &t) < 0)
		return -ENOMEM;
	/* The process dies, whichever thread took the signal. */
	take_party(&t->finding.culprit, f->names[target->name].comm, findings_process(target),
		   findings_process(target));
	if (s->sender != FINDINGS_NONE)
		findings_take(f, &t->finding.victim, s->sender);
	t->finding.n++;
	/* What ends one that is dying of a fault tells nothing. */
	if (!kills || !t->finding.number) {
		t->finding.number = s->number;
		t->finding.begin = t->finding.end = s->time;
	}
	if (!kills)
		t->weight += WEIGHT_CRASH;
	else if (s->sender == FINDINGS_NONE || s->sender != target->parent)
		t->weight += WEIGHT_KILLED;
	else
		t->weight = MAX(t->weight, WEIGHT_ENDED);
	return 0;
}

/* ── Who had the CPUs ── */

/* Half of a CPU at least; or most of what was used, for seconds, which a longer time hides, but not all of it. */
static bool is_much(const struct findings *f, uint64_t ns, uint64_t all)
{
	uint64_t time = f->end - f->begin;

	return 2 * ns > time || (ns > 2000 * FINDINGS_MS && 20 * ns > time && 2 * ns > all);
}

static int judge_usage(struct findings *f)
{
	uint64_t all = 0, longest = 0, ran;
	uint32_t most = 0;
	struct tally *t;

	for (uint32_t i = 0; i < f->n_names; i++) {
		all += f->names[i].ran;
		if (f->names[i].ran > f->names[most].ran)
			most = i;
	}
	if (!f->n_names || !is_much(f, f->names[most].ran, all))
		return 0;
	ran = f->names[most].ran;
	if (findings_tally(f, FINDING_USAGE, most, FINDINGS_NONE, &t) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		if (f->threads[i].name != most || !f->threads[i].ran)
			continue;
		findings_take(f, &t->finding.culprit, i);
		if (f->threads[i].ran > longest)
			t->thread = i;
		longest = MAX(longest, f->threads[i].ran);
	}
	t->finding.n = 1;
	t->finding.sum = t->finding.max = ran;
	t->finding.percent = percent(ran, all);
	t->finding.begin = f->begin;
	t->finding.end = f->end;
	t->weight = 0.02 * (double)ran / FINDINGS_MS;
	return 0;
}

/* ── All of it ── */

#define PEER_MIN (50 * FINDINGS_MS)
#define HELD_OFTEN 3
#define HELD_LONG (100 * FINDINGS_MS)

/* What is too little, or explained by another finding, weighs nothing. */
static void weigh(const struct findings *f, struct tally *t)
{
	struct finding *g = &t->finding;
	bool is_own = is_recorder(f, t->culprit) ||
		      (t->culprit == FINDINGS_NONE && is_recorder(f, t->victim));

	switch (g->kind) {
	case FINDING_CPU:
		if (!g->n || t->weight < 10)
			t->weight = 0;
		g->percent = percent(t->overlap, g->sum);
		break;
	case FINDING_PEER:
		if (g->sum < PEER_MIN)
			t->weight = 0;
		/* fall through */
	case FINDING_SLEEP:
		g->percent = percent(t->overlap, g->sum);
		break;
	case FINDING_HELD:
		/* Once, it can have been the hypervisor. */
		if (g->n >= HELD_OFTEN || g->max >= HELD_LONG)
			t->weight = (double)g->sum / FINDINGS_MS;
		break;
	case FINDING_BLOCKED:
		weigh_blocked(f, t);
		break;
	case FINDING_MEMORY:
		if (g->max >= FINDINGS_OUTLIER || g->sum > (f->end - f->begin) / 20)
			t->weight = (double)g->sum / FINDINGS_MS;
		break;
	case FINDING_FORKS:
		if (g->n < FORKS || (g->end - g->begin) / g->n > FORKS_APART)
			t->weight = 0;
		break;
	default:
		break;
	}
	g->weight = is_own && g->kind != FINDING_CRASH && g->kind != FINDING_OOM ? 0 : t->weight;
}

int findings_judge(struct findings *f)
{
	int r;

	for (size_t i = 0; i < f->n_threads; i++) {
		f->names[f->threads[i].name].ran += f->threads[i].ran;
		if (is_recorder_name(f->threads[i].comm))
			f->recorder_ran += f->threads[i].ran;
	}
	r = findings_judge_stretches(f);
	for (size_t i = 0; r >= 0 && i < f->n_forks; i++)
		r = judge_fork(f, &f->forks[i]);
	for (size_t i = 0; r >= 0 && i < f->n_signals; i++)
		r = judge_signal(f, &f->signals[i]);
	if (r >= 0)
		r = judge_disks(f);
	if (r >= 0)
		r = judge_usage(f);
	for (size_t i = 0; r >= 0 && i < f->n_tallies; i++)
		weigh(f, &f->tallies[i]);
	return r < 0 ? r : 0;
}
