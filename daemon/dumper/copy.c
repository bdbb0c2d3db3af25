// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the reader's half of the protocol in proto/ring.h, into a file in memory. Nothing in a
 * ring is believed: its sizes are checked once, in a private copy of the header, and whatever
 * head and reserve say, offsets are taken modulo those.
 */
#include "daemon/dumper/copy.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/copy.h"
#include "proto/catalog.h"
#include "proto/macro.h"

/* How often a ring is copied again of which more than half was overwritten meanwhile: we were
 * not running for a while. */
#define COPY_TRIES 4
/* How often to look for a moment at which no record is under way. */
#define STILL_TRIES 1000

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct source {
	const uint8_t *map;
	size_t size;
};

static void source_close(struct source *s)
{
	if (s->map)
		munmap((void *)s->map, s->size);
}

/* A BPF map has no end that moves. A file has one: reading behind it would be a SIGBUS. */
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

/* ── the file in memory ─────────────────────────────────────────────────────────────────── */

static int file_new(size_t size, int *ret)
{
	static const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	_cleanup_close_ int fd = memfd_create("perfpersist-copy", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("perfpersist-copy", flags);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

/* What is never written stays a hole, and costs nothing. */
static int file_write(int fd, const void *bytes, size_t n, size_t at)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, bytes, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		bytes = (const char *)bytes + done;
		at += done;
		n -= done;
	}
	return 0;
}

/*
 * Sealed, and opened anew for reading: by no way that was found can whoever gets this
 * descriptor write the file, nor open it again for writing.
 */
static int file_finish(int fd, int *ret)
{
	char path[64];
	int ro;

	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0 || fchmod(fd, 0444) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return -errno;
	*ret = ro;
	return 0;
}

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

static uint64_t live(const struct source *s, size_t member)
{
	return atomic_load_explicit(
		(const _Atomic uint64_t *)(const void *)(s->map + PP_RING_LIVE_OFFSET + member),
		memory_order_acquire);
}
#define LIVE(s, word) live(s, offsetof(struct pp_ring_live, word))

/*
 * Head, and the counts that belong to it: while reserve == head no record is under way, and as
 * head is the same before and after none has come. On a ring that never rests the counts may be
 * ahead of head by the records under way.
 */
static void read_live(const struct source *s, struct pp_ring_live *ret)
{
	for (int i = 0; i < STILL_TRIES; i++) {
		struct pp_ring_live l = { .head = LIVE(s, head) };
		const struct pp_ring_live *now = (const void *)(s->map + PP_RING_LIVE_OFFSET);

		l.records = LIVE(s, records);
		l.missed = LIVE(s, missed);
		l.counter = LIVE(s, counter);
		l.state = __atomic_load_n(&now->state, __ATOMIC_ACQUIRE);
		l.generation = __atomic_load_n(&now->generation, __ATOMIC_ACQUIRE);
		l.reserve = LIVE(s, reserve);
		*ret = l;
		if (l.reserve == l.head && LIVE(s, head) == l.head)
			return;
	}
}

/* The records in [head, head + filled), which may run over the end of the data once. */
static int write_records(const struct source *s, const struct pp_ring_header *h, uint64_t head,
			 uint64_t filled, int fd)
{
	size_t at = head & (h->data_size - 1);
	size_t first = MIN(filled, h->data_size - at), rest = filled - first;
	size_t place = h->header_size + at;
	int r = file_write(fd, s->map + place, rest ? first + h->spill_size : first, place);

	if (r < 0 || rest == 0)
		return r;
	return file_write(fd, s->map + h->header_size, rest, h->header_size);
}

/* How many bytes from head on are whole after the copying; *ret_filled: of how many. */
static int copy_once(const struct source *s, struct pp_ring_header *h, int fd, uint64_t *ret_whole,
		     uint64_t *ret_filled)
{
	uint64_t filled, overwritten;
	int r;

	read_live(s, &h->live);
	if (h->live.head % 8)
		return -EBADMSG;
	filled = MIN(0 - h->live.head, h->data_size);
	r = write_records(s, h, h->live.head, filled, fd);
	if (r < 0)
		return r;
	atomic_thread_fence(memory_order_acquire);
	overwritten = MIN(h->live.head - LIVE(s, reserve), h->data_size);
	/* What a reader of the copy derives from this is what we would have. */
	h->live.reserve = h->live.head - overwritten;
	*ret_whole = MIN(h->data_size - overwritten, filled);
	*ret_filled = filled;
	return 0;
}

static int write_header(const struct source *s, struct pp_ring_header *h, int fd)
{
	const struct pp_ring_limit *limit = (const void *)(s->map + PP_RING_LIMIT_OFFSET);
	int r;

	h->live.nest = 0;
	memcpy(&h->limit, limit, sizeof(h->limit));
	r = file_write(fd, h, sizeof(*h), 0);
	if (r < 0)
		return r;
	return file_write(fd, s->map + sizeof(*h), h->header_size - sizeof(*h), sizeof(*h));
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
	r = file_new(pp_ring_size(h.header_size, h.data_size, h.spill_size), &file);
	if (r < 0)
		return r;
	for (int i = 0; i < COPY_TRIES && (i == 0 || whole < filled / 2); i++) {
		r = copy_once(&s, &h, file, &whole, &filled);
		if (r < 0)
			return r;
	}
	r = write_header(&s, &h, file);
	return r < 0 ? r : file_finish(file, ret);
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
	r = file_new(s.size, &file);
	if (r < 0)
		return r;
	r = file_write(file, s.map, s.size, 0);
	return r < 0 ? r : file_finish(file, ret);
}
