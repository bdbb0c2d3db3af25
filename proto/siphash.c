// SPDX-License-Identifier: LGPL-2.1-or-later
/* SipHash-1-3, by Aumasson and Bernstein. */
#include "siphash.h"

#include <endian.h>
#include <string.h>
#include <sys/auxv.h>

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void mix(uint64_t v[static 4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void take(struct siphash *h, uint64_t word)
{
	h->v[3] ^= word;
	mix(h->v);
	h->v[0] ^= word;
}

void siphash_begin(struct siphash *h, const uint8_t key[16])
{
	uint64_t k[2];

	/* Random bytes from the kernel for each program that it starts: no wait, unlike other
	 * random numbers early at boot. */
	memcpy(k, key ? key : (const uint8_t *)getauxval(AT_RANDOM), sizeof(k)); /* NOLINT */
	k[0] = le64toh(k[0]);
	k[1] = le64toh(k[1]);
	*h = (struct siphash){
		.v = { k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
		       k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573 },
	};
}

void siphash_add(struct siphash *h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n > 0) {
		if (h->n % 8 == 0 && n >= 8) {
			uint64_t word;

			memcpy(&word, p, sizeof(word));
			take(h, le64toh(word));
			h->n += 8;
			p += 8;
			n -= 8;
			continue;
		}
		h->word |= (uint64_t)*p++ << h->n % 8 * 8;
		n--;
		if (++h->n % 8 == 0) {
			take(h, h->word);
			h->word = 0;
		}
	}
}

uint64_t siphash_end(struct siphash *h)
{
	take(h, (uint64_t)h->n << 56 | h->word);
	h->v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(h->v);
	return h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3];
}

uint64_t siphash(const void *bytes, size_t n)
{
	struct siphash h;

	siphash_begin(&h, NULL);
	siphash_add(&h, bytes, n);
	return siphash_end(&h);
}
