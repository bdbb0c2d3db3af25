// SPDX-License-Identifier: LGPL-2.1-or-later
/* Open addressing, at most half full. */
#include "client/perfctl/trace/process-table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define CAP_MIN 16

uint64_t keytable_seed(void)
{
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)(uintptr_t)&seed; /* at least the randomized address */
	return seed;
}

/* The finalizer of splitmix64: each bit of x changes half of the result's bits. */
uint64_t keytable_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* The key's slot, or the free one for it. */
static struct keytable_slot *find(const struct keytable *t, uint64_t key)
{
	size_t i = (size_t)keytable_mix(key ^ t->seed);

	for (;; i++) {
		struct keytable_slot *s = &t->slots[i & (t->cap - 1)];

		if (!s->value || s->key == key)
			return s;
	}
}

int64_t keytable_get(const struct keytable *t, uint64_t key)
{
	return t->cap ? (int64_t)find(t, key)->value - 1 : -1;
}

static int grow(struct keytable *t)
{
	struct keytable bigger = { .n = t->n,
				   .cap = t->cap ? t->cap * 2 : CAP_MIN,
				   .seed = t->seed };

	if (!t->cap)
		bigger.seed = keytable_seed();
	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++)
		if (t->slots[i].value)
			*find(&bigger, t->slots[i].key) = t->slots[i];
	free(t->slots);
	*t = bigger;
	return 0;
}

int keytable_set(struct keytable *t, uint64_t key, uint32_t value)
{
	struct keytable_slot *s;
	int r;

	if (t->n + 1 > t->cap / 2) {
		r = grow(t);
		if (r < 0)
			return r;
	}
	s = find(t, key);
	if (!s->value)
		t->n++;
	s->key = key;
	s->value = (uint64_t)value + 1;
	return 0;
}

void keytable_done(struct keytable *t)
{
	free(t->slots);
	*t = (struct keytable){ 0 };
}
