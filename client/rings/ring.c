// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the mapping of one ring. A frozen BPF map cannot shrink and is mapped; so is a memfd
 * sealed against it. Any other file could be truncated under a mapping, which would be a
 * SIGBUS in our caller's process: it is read with pread(2).
 */
#include "client/rings/ring.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "client/public.h"
#include "client/rings/bpf.h"
#include "client/rings/memory.h"

static int not_a_ring(int fd)
{
	return client_fail(-EBADMSG,
			   "descriptor %d is not a ring of perfpersist, or it is damaged: its "
			   "header does not hold",
			   fd);
}

static int check(const struct client_ring *r, const void *header, size_t size,
		 struct pp_ring_header *ret)
{
	int error = pp_ring_check(header, size, ret);

	if (error == -EPROTONOSUPPORT)
		return client_fail(error,
				   "cannot read the ring in descriptor %d: it was made by a "
				   "newer version of perfpersist; update libperfpersist",
				   r->fd);
	if (error < 0 || ret->cpu > INT_MAX)
		return not_a_ring(r->fd);
	return 0;
}

static int map(struct client_ring *r, size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED | flags, r->fd, 0);

	if (p == MAP_FAILED) {
		if (errno == ENOMEM || errno == EAGAIN)
			return client_fail(-ENOMEM,
					   "cannot map %zu bytes of the ring in descriptor %d: %m",
					   size, r->fd);
		return client_fail(-EBADMSG,
				   "descriptor %d is not a ring of perfpersist: %zu bytes of it "
				   "cannot be mapped for reading (%m)",
				   r->fd, size);
	}
	r->map = p;
	r->map_size = size;
	return 0;
}

static void unmap(struct client_ring *r)
{
	if (r->map)
		munmap((void *)r->map, r->map_size);
	r->map = NULL;
}

/* The whole ring, once its size is known; the header is checked again in its final place. */
static int map_whole(struct client_ring *r, size_t size, int flags)
{
	int error = map(r, size, flags);

	return error < 0 ? error : check(r, r->map, size, &r->header);
}

static size_t whole_size(const struct pp_ring_header *h)
{
	return pp_ring_size(h->header_size, h->data_size, h->spill_size);
}

/* Nobody can tell how large it is but its first page. */
static int open_by_header(struct client_ring *r)
{
	int error = map(r, PP_RING_PAGE, 0);

	if (error < 0)
		return error;
	error = check(r, r->map, SIZE_MAX, &r->header);
	unmap(r);
	return error < 0 ? error : map_whole(r, whole_size(&r->header), 0);
}

/* What was said of its size may be true of the ring that was in its place a moment ago. */
static int open_map(struct client_ring *r, size_t said)
{
	size_t size = said ? said : client_bpf_value_size(r->fd);
	int error = size ? map_whole(r, size, 0) : -EBADMSG;

	if (error != -EBADMSG)
		return error;
	unmap(r);
	return open_by_header(r);
}

static int open_file(struct client_ring *r, off_t file_size)
{
	size_t size = file_size > 0 ? (size_t)file_size : 0;
	struct pp_ring_header raw;
	int error, seals;

	if (pread(r->fd, &raw, sizeof(raw), 0) != sizeof(raw))
		return not_a_ring(r->fd);
	error = check(r, &raw, size, &r->header);
	if (error < 0)
		return error;
	seals = fcntl(r->fd, F_GET_SEALS);
	if (seals >= 0 && seals & F_SEAL_SHRINK)
		return map_whole(r, whole_size(&r->header), MAP_POPULATE);
	return 0;
}

int client_ring_open(int fd, size_t size, struct client_ring *ret)
{
	struct client_ring r = { .fd = fd };
	struct stat st;
	int error;

	if (fstat(fd, &st) < 0)
		error = client_fail(-errno, "cannot look at descriptor %d: %m", fd);
	else if ((r.is_file = S_ISREG(st.st_mode)))
		error = open_file(&r, st.st_size);
	else
		error = open_map(&r, size);
	if (error < 0) {
		client_ring_close(&r);
		return error;
	}
	*ret = r;
	return 0;
}

void client_ring_close(struct client_ring *r)
{
	unmap(r);
	r->fd = close_fd(r->fd);
}

int client_ring_read(const struct client_ring *r, size_t offset, void *buf, size_t n)
{
	if (r->map) {
		client_memory_copy(buf, (const char *)r->map + offset, n);
		return 0;
	}
	while (n > 0) {
		ssize_t got = pread(r->fd, buf, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EIO;
		buf = (char *)buf + got;
		offset += (size_t)got;
		n -= (size_t)got;
	}
	return 0;
}

uint64_t client_ring_load(const struct client_ring *r, size_t member)
{
	uint64_t v;

	if (r->map)
		return atomic_load_explicit(
			(const _Atomic uint64_t *)(const void *)((const char *)r->map + member),
			memory_order_acquire);
	return client_ring_read(r, member, &v, sizeof(v)) < 0 ? 0 : v;
}

enum pp_ring_state client_ring_state(const struct client_ring *r)
{
	const size_t at = PP_RING_LIVE_OFFSET + offsetof(struct pp_ring_live, state);
	uint32_t state;

	if (r->map)
		state = atomic_load_explicit(
			(const _Atomic uint32_t *)(const void *)((const char *)r->map + at),
			memory_order_acquire);
	else if (client_ring_read(r, at, &state, sizeof(state)) < 0)
		return PP_RING_RUNNING;
	return state <= PP_RING_DELETED ? (enum pp_ring_state)state : PP_RING_RUNNING;
}
