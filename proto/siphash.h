/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hash of bytes that a stranger chose. Its key is another one in each process, and without the
 * key nobody can make two texts of one hash, nor many that share a bucket: each other hash of ours
 * is for numbers alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct siphash {
	uint64_t v[4];
	uint64_t word; /* what has come of the next one */
	size_t n;      /* bytes in all */
};

/* key: NULL: this process's own. */
void siphash_begin(struct siphash *h, const uint8_t key[16]);
/* Parts are one text: where one ends does not matter. */
void siphash_add(struct siphash *h, const void *bytes, size_t n);
uint64_t siphash_end(struct siphash *h);

/* Of one text, with this process's key. */
uint64_t siphash(const void *bytes, size_t n);
