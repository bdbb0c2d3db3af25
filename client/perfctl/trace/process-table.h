/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of numbers by 64-bit keys. It only grows; keys are untrusted, so they are mixed with an
 * unpredictable seed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keytable {
	struct keytable_slot {
		uint64_t key;
		uint64_t value; /* + 1; 0: free */
	} * slots;
	size_t n, cap; /* cap: a power of two, or 0 */
	uint64_t seed;
};

/* A number that differs between processes. */
uint64_t keytable_seed(void);
uint64_t keytable_mix(uint64_t x);

/* -1: not found. */
int64_t keytable_get(const struct keytable *t, uint64_t key);
/* Sets the key's value. -ENOMEM. */
int keytable_set(struct keytable *t, uint64_t key, uint32_t value);
void keytable_done(struct keytable *t);
