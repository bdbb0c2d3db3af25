// SPDX-License-Identifier: LGPL-2.1-or-later
/* See heap.h. */
#include "daemon/engine/heap.h"

#include <malloc.h>
#include <stdbool.h>

#define BLOCK_MAX (32 << 20) /* the largest that mallopt(3) allows, on 64 bits */
#define SPARE_MAX (2 << 20)  /* free bytes that are not worth giving back */
#define TRIM_MSEC 1000	     /* one order follows the other */

/* Free bytes alone do not tell: they count as free, too, when they have been given back. */
static bool used = true;

void heap_prepare(void)
{
	mallopt(M_MMAP_THRESHOLD, BLOCK_MAX);
	mallopt(M_TRIM_THRESHOLD, 4 * BLOCK_MAX);
}

void heap_used(void)
{
	used = true;
}

int heap_timeout(void)
{
	return used && mallinfo2().fordblks > SPARE_MAX ? TRIM_MSEC : -1;
}

void heap_trim(void)
{
	if (heap_timeout() >= 0)
		malloc_trim(0);
	used = false;
}
