/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of indices into an array of its owner, by the hash of the elements. Does not know the
 * elements; hashes differ from run to run, so that no file can force collisions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_slot {
	uint32_t hash;
	uint32_t index; /* + 1; 0: free */
};

struct hash {
	struct hash_slot *slots;
	size_t n_slots, used; /* n_slots: a power of two, or 0 */
};

uint32_t hash_bytes(const void *bytes, size_t n);
uint32_t hash_numbers(uint64_t a, uint64_t b);

/* Iterates over the indices with this hash: begin with *pos = hash; true with *ret_index. */
bool hash_next(const struct hash *t, uint32_t hash, size_t *pos, uint32_t *ret_index);

/* The owner has checked that it is not in the set. -ENOMEM. */
int hash_add(struct hash *t, uint32_t hash, uint32_t index);
void hash_done(struct hash *t);
