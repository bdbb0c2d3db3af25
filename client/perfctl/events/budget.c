// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/budget.h"

#include "proto/macro.h"

#define SECOND 1000000000ULL
#define AVERAGE 10ULL /* s */

static uint64_t most(const struct budget_part *p)
{
	return p->rate * AVERAGE;
}

/* A limit that is smaller than a write allows one when it has all that it can have. */
static uint64_t least(const struct budget_part *p)
{
	return MIN(BUDGET_WRITE, most(p));
}

void budget_init(struct budget *b, uint64_t rate, uint64_t now)
{
	*b = (struct budget){ .counted = now };
	b->all.rate = MAX(rate, 1U);
	b->others.rate = MAX(rate / 2, 1U);
	b->all.allowed = most(&b->all);
	b->others.allowed = most(&b->others);
}

static void refill(struct budget_part *p, uint64_t elapsed)
{
	double more = (double)elapsed / SECOND * (double)p->rate;
	uint64_t room = most(p) - p->allowed;

	p->allowed += more < (double)room ? (uint64_t)more : room;
}

void budget_refill(struct budget *b, uint64_t now)
{
	refill(&b->all, now - b->counted);
	refill(&b->others, now - b->counted);
	b->counted = now;
}

uint64_t budget_allowed(const struct budget *b, bool of_root)
{
	return of_root ? b->all.allowed : MIN(b->all.allowed, b->others.allowed);
}

uint64_t budget_share(const struct budget *b, bool of_root, uint64_t n)
{
	uint64_t allowed = budget_allowed(b, of_root);

	return MAX(allowed / MAX(n, 1U), MIN(allowed, BUDGET_WRITE));
}

static uint64_t ready(const struct budget *b, const struct budget_part *p)
{
	uint64_t missing = least(p) - MIN(least(p), p->allowed);

	/* Rounded up: it must not be early by a byte. */
	return b->counted + (missing * SECOND + p->rate - 1) / p->rate;
}

uint64_t budget_ready(const struct budget *b, bool of_root)
{
	uint64_t all = ready(b, &b->all);

	return of_root ? all : MAX(all, ready(b, &b->others));
}

static void spend(struct budget_part *p, uint64_t bytes)
{
	p->allowed -= MIN(bytes, p->allowed);
}

void budget_spend(struct budget *b, bool of_root, uint64_t bytes)
{
	bytes = MAX(bytes, BUDGET_WRITE);
	spend(&b->all, bytes);
	if (!of_root)
		spend(&b->others, bytes);
}
