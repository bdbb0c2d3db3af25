/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hash for bytes that a stranger chose. Each process has another key, and without the key
 * nobody can make texts that share a hash or a bucket. All other hashes in this tree are for
 * numbers alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct siphash {
	uint64_t v[4];
	uint64_t word; /* the incomplete next word */
	size_t n;      /* bytes so far */
};

/* key: NULL: this process's own. */
void siphash_begin(struct siphash *h, const uint8_t key[16]);
/* Parts form one text: their borders do not matter. */
void siphash_add(struct siphash *h, const void *bytes, size_t n);
uint64_t siphash_end(struct siphash *h);

/* Hashes one text, with this process's key. */
uint64_t siphash(const void *bytes, size_t n);
