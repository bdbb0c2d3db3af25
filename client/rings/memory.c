// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory for copies in snapshots. Knows nothing of rings. */
#include "client/rings/memory.h"

#include <stdatomic.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "client/public.h"

#define HUGE_PAGE (2UL << 20)
#define KEPT_MAX (256UL << 20)
#define KEPT_QUIETLY (4UL << 20) /* the kernel may take back more than this at any time */
#define STREAM_MIN (4UL << 20)

struct piece {
	void *memory;
	size_t size;
};

/* The last returned piece; its pages are populated already. */
static _Atomic(struct piece *) kept;

static void drop(struct piece *p)
{
	if (!p)
		return;
	munmap(p->memory, p->size);
	free(p);
}

static void *take_kept(size_t size, size_t *ret_size)
{
	struct piece *p = atomic_exchange(&kept, NULL);
	void *memory;

	if (!p)
		return NULL;
	if (p->size < size || p->size / 4 > size) {
		drop(p);
		return NULL;
	}
	memory = p->memory;
	*ret_size = p->size;
	free(p);
	return memory;
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Kernels before 6.7 don't align large mappings by themselves: map more, cut both ends. */
static void *map_huge(size_t size)
{
	char *p = map(size + HUGE_PAGE);
	size_t front;

	if (!p)
		return NULL;
	front = ALIGN_TO((uintptr_t)p, HUGE_PAGE) - (uintptr_t)p;
	if (front)
		munmap(p, front);
	munmap(p + front + size, HUGE_PAGE - front);
	madvise(p + front, size, MADV_HUGEPAGE);
	return p + front;
}

void *client_memory_get(size_t size, size_t *ret_size, bool *ret_fresh)
{
	void *p;

	size = ALIGN_TO(MAX(size, 1UL), (size_t)getpagesize());
	p = take_kept(size, ret_size);
	*ret_fresh = !p;
	if (p)
		return p;
	if (size >= HUGE_PAGE / 4) {
		size = ALIGN_TO(size, HUGE_PAGE);
		p = map_huge(size);
	} else {
		p = map(size);
	}
	if (p)
		*ret_size = size;
	return p;
}

void client_memory_put(void *memory, size_t size)
{
	struct piece *p;

	if (!memory)
		return;
	p = size <= KEPT_MAX ? malloc(sizeof(*p)) : NULL;
	if (!p) {
		munmap(memory, size);
		return;
	}
	if (size > KEPT_QUIETLY)
		madvise(memory, size, MADV_FREE);
	*p = (struct piece){ memory, size };
	drop(atomic_exchange(&kept, p));
}

void client_memory_touch(void *begin, void *end)
{
	uintptr_t page = (uintptr_t)getpagesize();
	uintptr_t from = (uintptr_t)begin & ~(page - 1);
	uintptr_t to = ALIGN_TO((uintptr_t)end, page);

	/* An old kernel refuses; then the copy itself touches page after page. */
	madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

#ifdef __SSE2__
/*
 * Non-temporal stores: they need not fetch the lines that they overwrite, which is a third faster,
 * and the recorders' cache lines stay in the cache. libc does the same, but on machines with a
 * large cache only from hundreds of MiB on. n is a multiple of 64, `to` is aligned to 16.
 */
static void stream(__m128i *to, const __m128i *from, size_t n)
{
	for (; n > 0; n -= 64, to += 4, from += 4) {
		__m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
		__m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

		_mm_stream_si128(to, a);
		_mm_stream_si128(to + 1, b);
		_mm_stream_si128(to + 2, c);
		_mm_stream_si128(to + 3, d);
	}
	_mm_sfence();
}

void client_memory_copy(void *to, const void *from, size_t n)
{
	size_t front = -(uintptr_t)to & 15, body;

	if (n < STREAM_MIN) {
		memcpy(to, from, n);
		return;
	}
	memcpy(to, from, front);
	body = (n - front) & ~63UL;
	stream((__m128i *)(void *)((char *)to + front),
	       (const __m128i *)(const void *)((const char *)from + front), body);
	memcpy((char *)to + front + body, (const char *)from + front + body, n - front - body);
}
#else
void client_memory_copy(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}
#endif
