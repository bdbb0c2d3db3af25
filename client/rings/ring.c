// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Maps one ring. A frozen BPF map cannot shrink and is mapped; so is a memfd sealed against
 * shrinking. Any other file could be truncated under a mapping, which would be a SIGBUS in the
 * caller's process: it is read with pread(2).
 */
#include "client/rings/ring.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "client/public.h"
#include "client/rings/bpf.h"
#include "client/rings/memory.h"
#include "proto/io.h"

static int not_a_ring(int fd)
{
	return client_fail(-EBADMSG,
			   "descriptor %d is not a ring of perfpersist, or it is damaged: its "
			   "header does not hold",
			   fd);
}

static int check(const struct client_ring *ring, const void *header, size_t size,
		 struct pp_ring_header *ret)
{
	int r = pp_ring_check(header, size, ret);

	if (r == -EPROTONOSUPPORT)
		return client_fail(r,
				   "cannot read the ring in descriptor %d: it was made by a "
				   "newer version of perfpersist; update libperfpersist",
				   ring->fd);
	if (r < 0 || ret->cpu > INT_MAX)
		return not_a_ring(ring->fd);
	return 0;
}

static int map(struct client_ring *ring, size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED | flags, ring->fd, 0);

	if (p == MAP_FAILED) {
		if (errno == ENOMEM || errno == EAGAIN)
			return client_fail(-ENOMEM,
					   "cannot map %zu bytes of the ring in descriptor %d: %m",
					   size, ring->fd);
		return client_fail(-EBADMSG,
				   "descriptor %d is not a ring of perfpersist: %zu bytes of it "
				   "cannot be mapped for reading (%m)",
				   ring->fd, size);
	}
	ring->map = p;
	ring->map_size = size;
	return 0;
}

static void unmap(struct client_ring *ring)
{
	if (ring->map)
		munmap((void *)ring->map, ring->map_size);
	ring->map = NULL;
}

/* The whole ring, once its size is known; the header is checked again in its final place. */
static int map_whole(struct client_ring *ring, size_t size, int flags)
{
	int r = map(ring, size, flags);

	return r < 0 ? r : check(ring, ring->map, size, &ring->header);
}

static size_t whole_size(const struct pp_ring_header *h)
{
	return pp_ring_size(h->header_size, h->data_size, h->spill_size);
}

/* Only its first page tells its size. */
static int open_by_header(struct client_ring *ring)
{
	int r = map(ring, PP_RING_PAGE, 0);

	if (r < 0)
		return r;
	r = check(ring, ring->map, SIZE_MAX, &ring->header);
	unmap(ring);
	return r < 0 ? r : map_whole(ring, whole_size(&ring->header), 0);
}

/* The given size may be that of a ring that was replaced a moment ago. */
static int open_map(struct client_ring *ring, size_t said)
{
	size_t size = said ? said : client_bpf_value_size(ring->fd);
	int r = size ? map_whole(ring, size, 0) : -EBADMSG;

	if (r != -EBADMSG)
		return r;
	unmap(ring);
	return open_by_header(ring);
}

static int open_file(struct client_ring *ring, off_t file_size)
{
	size_t size = file_size > 0 ? (size_t)file_size : 0;
	struct pp_ring_header raw;
	int r, seals;

	if (pread(ring->fd, &raw, sizeof(raw), 0) != sizeof(raw))
		return not_a_ring(ring->fd);
	r = check(ring, &raw, size, &ring->header);
	if (r < 0)
		return r;
	seals = fcntl(ring->fd, F_GET_SEALS);
	if (seals >= 0 && seals & F_SEAL_SHRINK)
		return map_whole(ring, whole_size(&ring->header), MAP_POPULATE);
	return 0;
}

int client_ring_open(int fd, size_t size, struct client_ring *ret)
{
	struct client_ring ring = { .fd = fd };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		r = client_fail(-errno, "cannot look at descriptor %d: %m", fd);
	else if ((ring.is_file = S_ISREG(st.st_mode)))
		r = open_file(&ring, st.st_size);
	else
		r = open_map(&ring, size);
	if (r < 0) {
		client_ring_close(&ring);
		return r;
	}
	*ret = ring;
	return 0;
}

void client_ring_close(struct client_ring *ring)
{
	unmap(ring);
	ring->fd = close_fd(ring->fd);
}

int client_ring_read(const struct client_ring *ring, size_t offset, void *buf, size_t n)
{
	if (ring->map) {
		client_memory_copy(buf, (const char *)ring->map + offset, n);
		return 0;
	}
	return pp_pread_all(ring->fd, buf, n, offset) == (ssize_t)n ? 0 : -EIO;
}

uint64_t client_ring_load(const struct client_ring *ring, size_t member)
{
	uint64_t v;

	if (ring->map)
		return atomic_load_explicit(
			(const _Atomic uint64_t *)(const void *)((const char *)ring->map + member),
			memory_order_acquire);
	return client_ring_read(ring, member, &v, sizeof(v)) < 0 ? 0 : v;
}

enum pp_ring_state client_ring_state(const struct client_ring *ring)
{
	const size_t at = PP_RING_LIVE_OFFSET + offsetof(struct pp_ring_live, state);
	uint32_t state;

	if (ring->map)
		state = atomic_load_explicit(
			(const _Atomic uint32_t *)(const void *)((const char *)ring->map + at),
			memory_order_acquire);
	else if (client_ring_read(ring, at, &state, sizeof(state)) < 0)
		return PP_RING_RUNNING;
	return state <= PP_RING_DELETED ? (enum pp_ring_state)state : PP_RING_RUNNING;
}
