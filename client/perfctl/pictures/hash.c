// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Open addressing, at most half full. Nothing is ever removed.
 */
#include "client/perfctl/pictures/hash.h"
#include "proto/macro.h"
#include "proto/siphash.h"

uint32_t hash_bytes(const void *bytes, size_t n)
{
	return (uint32_t)siphash(bytes, n);
}

uint32_t hash_numbers(uint64_t a, uint64_t b)
{
	const uint64_t both[] = { a, b };

	return (uint32_t)siphash(both, sizeof(both));
}

bool hash_next(const struct hash *t, uint32_t hash, size_t *pos, uint32_t *ret_index)
{
	if (!t->n_slots)
		return false;
	for (;;) {
		const struct hash_slot *slot = &t->slots[*pos & (t->n_slots - 1)];

		if (!slot->index)
			return false;
		(*pos)++;
		if (slot->hash == hash) {
			*ret_index = slot->index - 1;
			return true;
		}
	}
}

static void put(struct hash_slot *slots, size_t n_slots, struct hash_slot slot)
{
	size_t i = slot.hash & (n_slots - 1);

	while (slots[i].index)
		i = (i + 1) & (n_slots - 1);
	slots[i] = slot;
}

int hash_add(struct hash *t, uint32_t hash, uint32_t index)
{
	if ((t->used + 1) * 2 > t->n_slots) {
		size_t n_slots = t->n_slots ? t->n_slots * 2 : 64;
		struct hash_slot *slots = calloc(n_slots, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		for (size_t i = 0; i < t->n_slots; i++)
			if (t->slots[i].index)
				put(slots, n_slots, t->slots[i]);
		free(t->slots);
		t->slots = slots;
		t->n_slots = n_slots;
	}
	put(t->slots, t->n_slots, (struct hash_slot){ hash, index + 1 });
	t->used++;
	return 0;
}

void hash_done(struct hash *t)
{
	free(t->slots);
	*t = (struct hash){};
}
