// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Implements the reader's half of the protocol in proto/ring.h, into a memfd. Trusts nothing in a
 * ring: sizes are checked once, in a private copy of the header, and offsets are taken modulo
 * these, whatever head and reserve say.
 */
#include "daemon/dumper/copy.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/copy.h"
#include "proto/catalog.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/memfile.h"
#include "proto/ring-live.h"

/* A copy of which more than half was overwritten meanwhile is made again, at most so often: the
 * dumper was preempted for a while. */
#define COPY_TRIES 4
#define RESERVE_OFFSET (PP_RING_LIVE_OFFSET + offsetof(struct pp_ring_live, reserve))

#define NAME "perfpersist-copy" /* the memfd's name */

struct source {
	const uint8_t *map;
	size_t size;
};

static void source_close(struct source *s)
{
	if (s->map)
		munmap((void *)s->map, s->size);
}

/* A BPF map cannot shrink. A file can: reading behind its new end would be a SIGBUS. */
static bool may_shrink(int fd)
{
	struct stat st;
	int seals;

	if (fstat(fd, &st) < 0)
		return true;
	if (!S_ISREG(st.st_mode))
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	return seals < 0 || !(seals & F_SEAL_SHRINK);
}

static bool is_short(int fd, size_t size)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size < size;
}

static int source_open(int fd, size_t size, size_t max, struct source *ret)
{
	void *p;

	if (size == 0 || size > max || may_shrink(fd) || is_short(fd, size))
		return -EBADMSG;
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return errno == ENOMEM || errno == EAGAIN ? -ENOMEM : -EBADMSG;
	*ret = (struct source){ .map = p, .size = size };
	return 0;
}

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

static uint64_t load(const void *map, size_t at)
{
	return atomic_load_explicit(
		(const _Atomic uint64_t *)(const void *)((const char *)map + at),
		memory_order_acquire);
}

/* Writes the records in [head, head + filled), which may wrap around the end of the data once. */
static int write_records(const struct source *s, const struct pp_ring_header *h, uint64_t head,
			 uint64_t filled, int fd)
{
	size_t at = head & (h->data_size - 1);
	size_t first = MIN(filled, h->data_size - at), rest = filled - first;
	size_t place = h->header_size + at;
	int r = pp_pwrite_all(fd, s->map + place, rest ? first + h->spill_size : first, place);

	if (r < 0 || rest == 0)
		return r;
	return pp_pwrite_all(fd, s->map + h->header_size, rest, h->header_size);
}

/* Returns how many bytes from head on are still whole after copying; *ret_filled: how many there
 * were. */
static int copy_once(const struct source *s, struct pp_ring_header *h, int fd, uint64_t *ret_whole,
		     uint64_t *ret_filled)
{
	uint64_t filled, overwritten;
	int r;

	/* `reserve` cannot say it: see below. */
	h->live.nest = pp_ring_read_live(load, s->map, &h->live) ? 0 : 1;
	if (h->live.head % 8)
		return -EBADMSG;
	filled = MIN(0 - h->live.head, h->data_size);
	r = write_records(s, h, h->live.head, filled, fd);
	if (r < 0)
		return r;
	atomic_thread_fence(memory_order_acquire);
	overwritten = MIN(h->live.head - load(s->map, RESERVE_OFFSET), h->data_size);
	/* From this a reader of the copy derives the same `overwritten`. */
	h->live.reserve = h->live.head - overwritten;
	*ret_whole = MIN(h->data_size - overwritten, filled);
	*ret_filled = filled;
	return 0;
}

static int write_header(const struct source *s, struct pp_ring_header *h, int fd)
{
	const struct pp_ring_limit *limit = (const void *)(s->map + PP_RING_LIMIT_OFFSET);
	int r;

	memcpy(&h->limit, limit, sizeof(h->limit));
	r = pp_pwrite_all(fd, h, sizeof(*h), 0);
	if (r < 0)
		return r;
	return pp_pwrite_all(fd, s->map + sizeof(*h), h->header_size - sizeof(*h), sizeof(*h));
}

int copy_ring(int fd, size_t size, int *ret)
{
	const size_t max = PP_COPY_HEADER_MAX + PP_DATA_SIZE_MAX + PP_SPILL_SIZE_MAX;
	_cleanup_(source_close) struct source s = { 0 };
	_cleanup_close_ int file = -EBADF;
	uint64_t whole = 0, filled = 0;
	struct pp_ring_header h;
	int r = source_open(fd, size, max, &s);

	if (r < 0)
		return r;
	r = pp_ring_check(s.map, s.size, &h);
	if (r < 0)
		return r;
	r = pp_memfile_new(NAME, pp_ring_size(h.header_size, h.data_size, h.spill_size), &file);
	if (r < 0)
		return r;
	for (int i = 0; i < COPY_TRIES && (i == 0 || whole < filled / 2); i++) {
		r = copy_once(&s, &h, file, &whole, &filled);
		if (r < 0)
			return r;
	}
	r = write_header(&s, &h, file);
	return r < 0 ? r : pp_memfile_finish(file, ret);
}

/* ── catalogs ───────────────────────────────────────────────────────────────────────────── */

int copy_catalog(int fd, size_t size, int *ret)
{
	_cleanup_(source_close) struct source s = { 0 };
	_cleanup_close_ int file = -EBADF;
	int r = source_open(fd, size, PP_COPY_CATALOG_MAX, &s);

	if (r < 0)
		return r;
	r = pp_catalog_check(s.map, s.size);
	if (r < 0)
		return r;
	r = pp_memfile_new(NAME, s.size, &file);
	if (r < 0)
		return r;
	r = pp_pwrite_all(file, s.map, s.size, 0);
	return r < 0 ? r : pp_memfile_finish(file, ret);
}
