// SPDX-License-Identifier: LGPL-2.1-or-later
/* What intervals between records count for: the time that all threads of a command spent so, and the
 * longest one. */
#include <string.h>

#include "client/perfctl/replay/compare-records-parts.h"

/* Sleep and calls that sleep are what a thread does that has nothing to do: only a longer one than
 * ever tells something, and of what sleeps regularly. */
static bool classify(const struct compare_records *r, enum latency_kind kind,
		     const struct latency_interval *one, enum compare_class *ret, const char **what)
{
	*what = one->label;
	switch (kind) {
	case LATENCY_OFF_CPU:
		if (one->label[0] == 'R') {
			*what = "";
			*ret = COMPARE_WAITED;
			return !latency_records_have(&r->pairs, LATENCY_WAKEUPS);
		}
		*ret = one->label[0] == 'S' ? COMPARE_SLEPT_WORST : COMPARE_BLOCKED;
		return !strchr("XZI",
			       one->label[0]); /* it has ended, or is an idle kernel thread */
	case LATENCY_WAKEUPS:
		*what = "";
		*ret = COMPARE_WAITED;
		return true;
	case LATENCY_SYSCALLS:
		*ret = COMPARE_CALLS_WORST;
		return true;
	case LATENCY_BLOCK:
		*ret = COMPARE_REQUESTS;
		return true;
	default:
		*ret = COMPARE_HANDLERS;
		return true;
	}
}

static int count(struct compare_records *r, enum compare_class class, uint32_t what, uint32_t comm,
		 uint64_t complete, const struct latency_interval *one)
{
	struct compare_item *item;

	if (compare_find(r->c, class, what, comm, complete, &item) < 0)
		return -ENOMEM;
	if (class == COMPARE_REQUESTS)
		return compare_cover(r->c, item, one->begin, one->end);
	return compare_span(r->c, item, one->begin, one->end);
}

static int count_both(struct compare_records *r, enum compare_class class, uint32_t what,
		      uint32_t comm, uint64_t complete, const struct latency_interval *one)
{
	int failed = count(r, class, what, comm, complete, one);

	if (failed < 0 || compare_kind(class)->is_longest)
		return failed;
	return count(r, class + 1, what, comm, complete, one); /* …_WORST */
}

static uint64_t length_of(const struct compare_records *r)
{
	const struct compare_grid *g = compare_grid_of(r->c);

	return g->until - g->since;
}

/* What sleeps for a tenth of the moment is taken to have nothing to do. */
#define IDLE 10

/* A shorter sleep that another thread ended: it waited for that. A process that waits for its child is told by
 * what the child did. An interrupt has no thread; it can borrow the one that it interrupted. Threads
 * of the kernel for each CPU ("migration/0") wait for work. */
static int count_held(struct compare_records *r, const struct latency_interval *one, uint32_t comm,
		      uint64_t complete)
{
	uint32_t waker = compare_process(r, UINT32_MAX, one->waker.tid), name;
	int failed;

	if (!one->was_woken || strchr(one->who.comm, '/') ||
	    one->end - one->begin > length_of(r) / IDLE ||
	    keytable_get(&r->parent_of, waker) == (int64_t)one->pid)
		return 0;
	failed = compare_command(r, UINT32_MAX, one->waker.tid, one->waker.comm, &name);
	if (failed)
		return MIN(failed, 0);
	return count_both(r, COMPARE_HELD, name, comm, complete, one);
}

/* Of the longest sleep in the moment. */
static int note_waker(struct compare_records *r, const struct latency_interval *one, uint32_t comm,
		      uint64_t complete)
{
	uint32_t by = COMPARE_NO_NAME;
	struct compare_item *item;
	int failed = 0;

	if (one->end < compare_grid_of(r->c)->since)
		return 0;
	if (one->was_woken)
		failed = compare_command(r, UINT32_MAX, one->waker.tid, one->waker.comm, &by);
	if (failed >= 0)
		failed = compare_find(r->c, COMPARE_SLEPT_WORST, COMPARE_NO_NAME, comm, complete,
				      &item);
	if (failed < 0)
		return failed;
	if (one->end - one->begin > item->longest) {
		item->longest = one->end - one->begin;
		item->by = by;
	}
	return 0;
}

static int take_interval(void *to, enum latency_kind kind, const struct latency_interval *one,
			 bool is_open)
{
	struct compare_records *r = to;
	uint64_t complete = r->pairs.histories[kind].from;
	uint32_t name, comm = COMPARE_NO_NAME;
	enum compare_class class;
	const char *what;
	int failed = 0;

	/* Of these it is as likely that the record of their end is missing. */
	if (is_open && (kind == LATENCY_IRQ || kind == LATENCY_BLOCK))
		return 0;
	if (!classify(r, kind, one, &class, &what))
		return 0;
	/* A sleep that is longer than the moment tells of the time before. */
	if (compare_kind(class)->is_regular && one->end - one->begin > length_of(r))
		return 0;
	if (class != COMPARE_HANDLERS)
		failed = compare_command(r, kind == LATENCY_BLOCK ? UINT32_MAX : one->pid,
					 one->who.tid, *one->who.comm ? one->who.comm : "?", &comm);
	if (class == COMPARE_SLEPT_WORST)
		name = COMPARE_NO_NAME;
	else
		failed = failed ?: compare_name(r->c, what, &name);
	if (failed)
		return MIN(failed, 0);
	failed = count_both(r, class, name, comm, complete, one);
	if (failed < 0 || class != COMPARE_SLEPT_WORST || is_open)
		return failed;
	failed = note_waker(r, one, comm, complete);
	return failed ?: count_held(r, one, comm, complete);
}

static bool wants(const void *arg, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	const struct selection *s = arg;

	if (cpu != UINT32_MAX && s->cpus && (cpu >= s->n_cpus || !s->cpus[cpu]))
		return false;
	return selection_wants_whose(s, pid, tid);
}

int compare_latency_begin(struct compare_records *r)
{
	struct latency_options options = {
		.wants = wants, .arg = r->chosen, .take = take_interval, .to = r
	};

	if (latency_records_open(r->in, &r->pairs) < 0)
		return -ENOMEM;
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
		if (latency_records_have(&r->pairs, kind))
			options.kinds |= UINT32_C(1) << kind;
	return latency_records_start(&r->pairs, r->chosen, &options, &r->latency);
}
