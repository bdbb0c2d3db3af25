// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handlers of interrupts and softirqs. An interrupt can arrive in a softirq, on the same CPU: its
 * time is in both. */
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"

/* The innermost that is this handler, counted from 1; 0: none. */
static size_t find(const struct latency_cpu *c, const struct latency_handler *handler)
{
	size_t i = c->n_handlers;

	while (i && (c->handlers[i - 1].soft != handler->soft ||
		     c->handlers[i - 1].number != handler->number))
		i--;
	return i;
}

/* The ends of those that are deeper are missing. */
static void forget(struct latency *l, const struct latency_now *now, struct latency_cpu *c,
		   size_t depth)
{
	for (; c->n_handlers > depth; c->n_handlers--)
		latency_count(l, LATENCY_IRQ, LATENCY_NOBODY, now, true);
}

/* What must have ended before this begins: an interrupt is not handled within itself, and a softirq begins
 * only when its CPU handles nothing (in_interrupt() in kernel/softirq.c, all versions; with PREEMPT_RT and
 * without its lock, 6.18 and 6.12.57, one can preempt another, which then counts as missing). So an end that was not
 * recorded does not wait for that of a later one. */
static void forget_ended(struct latency *l, const struct latency_now *now, struct latency_cpu *c,
			 const struct latency_handler *handler)
{
	size_t depth = handler->soft ? 1 : find(c, handler);

	if (depth || c->n_handlers == HANDLERS_NESTED)
		forget(l, now, c, depth ? depth - 1 : 0);
}

int latency_entry(struct latency *l, const struct latency_now *now,
		  const struct latency_handler *handler)
{
	struct latency_cpu *c = latency_cpu(l, now->cpu);
	char text[96];
	uint32_t label;

	if (!c)
		return now->cpu < AGGREGATE_CPUS ? -ENOMEM : 0;
	if (handler->soft)
		snprintf(text, sizeof(text), "softirq %s", handler->name);
	else
		snprintf(text, sizeof(text), "irq %u %s", handler->number, handler->name);
	if (latency_label(l, text, &label) < 0)
		return -ENOMEM;
	forget_ended(l, now, c, handler);
	c->handlers[c->n_handlers++] = (struct running_handler){
		.soft = handler->soft,
		.number = handler->number,
		.begin = latency_begin(l, LATENCY_IRQ, now, label),
	};
	return 0;
}

int latency_exit(struct latency *l, const struct latency_now *now,
		 const struct latency_handler *handler)
{
	struct latency_about about = { .thread = LATENCY_NOBODY, .who = &now->who };
	struct latency_cpu *c = latency_cpu(l, now->cpu);
	size_t depth;

	if (!c)
		return now->cpu < AGGREGATE_CPUS ? -ENOMEM : 0;
	depth = find(c, handler);
	if (!depth) {
		latency_count(l, LATENCY_IRQ, LATENCY_NOBODY, now, c->n_handlers > 0);
		return 0;
	}
	forget(l, now, c, depth);
	c->n_handlers--;
	return latency_end(l, LATENCY_IRQ, &c->handlers[depth - 1].begin, now, &about);
}

int latency_irq_finish(struct latency *l, uint64_t end)
{
	static const struct latency_who nobody;
	struct latency_about about = { .thread = LATENCY_NOBODY, .who = &nobody };
	int r = 0;

	for (size_t cpu = 0; cpu < l->n_cpus; cpu++)
		for (size_t i = 0; i < l->cpus[cpu].n_handlers && r >= 0; i++)
			r = latency_still_open(l, LATENCY_IRQ, &l->cpus[cpu].handlers[i].begin, end,
					       &about);
	return r;
}
