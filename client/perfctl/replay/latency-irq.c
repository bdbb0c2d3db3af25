// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handlers of interrupts and softirqs. An interrupt can arrive in a softirq, on the same CPU: its
 * time is in both. */
#include <string.h>

#include "client/perfctl/replay/latency-parts.h"

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
	/* They do not nest so deep: their ends are missing. */
	if (c->n_handlers == HANDLERS_NESTED) {
		for (size_t i = 0; i < HANDLERS_NESTED; i++)
			latency_count(l, LATENCY_IRQ, LATENCY_NOBODY, now->cpu, true);
		c->n_handlers = 0;
	}
	c->handlers[c->n_handlers++] = (struct running_handler){
		.soft = handler->soft,
		.number = handler->number,
		.begin = latency_begin(l, LATENCY_IRQ, now, label),
	};
	return 0;
}

/* The innermost that it can be the end of, counted from 1; 0: none. */
static size_t find(const struct latency_cpu *c, const struct latency_handler *handler)
{
	size_t i = c->n_handlers;

	while (i && (c->handlers[i - 1].soft != handler->soft ||
		     c->handlers[i - 1].number != handler->number))
		i--;
	return i;
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
		latency_count(l, LATENCY_IRQ, LATENCY_NOBODY, now->cpu, c->n_handlers > 0);
		return 0;
	}
	for (; c->n_handlers > depth; c->n_handlers--)
		latency_count(l, LATENCY_IRQ, LATENCY_NOBODY, now->cpu, true);
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
