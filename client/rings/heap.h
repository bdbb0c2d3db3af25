/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A heap of ring numbers; the first one in the caller's order is on top. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does ring a come before ring b? */
typedef bool (*heap_before)(const void *context, uint32_t a, uint32_t b);

/* Inlined with a known order, it costs no more than a specialized heap. */
static inline void heap_sift(uint32_t *heap, size_t n, size_t i, heap_before before,
			     const void *context)
{
	for (;;) {
		size_t child = 2 * i + 1, first = i;
		uint32_t ring = heap[i];

		for (size_t c = child; c < child + 2 && c < n; c++)
			if (before(context, heap[c], heap[first]))
				first = c;
		if (first == i)
			return;
		heap[i] = heap[first];
		heap[first] = ring;
		i = first;
	}
}

/* Makes a heap of n numbers in any order. */
static inline void heap_make(uint32_t *heap, size_t n, heap_before before, const void *context)
{
	for (size_t i = n / 2; i-- > 0;)
		heap_sift(heap, n, i, before, context);
}
