// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes a ring at rest: copies the ring into memory as a snapshot does, then writes the whole
 * records to the file, at their places in the ring. All else is a hole. */
#include <fcntl.h>
#include <string.h>

#include "client/local/saved-write.h"
#include "client/rings/memory.h"
#include "client/rings/snapshot.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/ring-live.h"

struct image {
	struct snapshot_ring copy;
	void *memory;
	size_t memory_size;
	struct pp_ring_header header; /* with the live words of the copy */
	uint64_t whole;		      /* bytes of whole records, from head on */
	uint64_t n_whole;
	int fd;
};

static void image_done(struct image *m)
{
	client_memory_put(m->memory, m->memory_size);
	close_fd(m->fd);
}

static uint64_t load(const void *ring, size_t at)
{
	return client_ring_load(ring, at);
}

/* Walks the copy: counts the bytes of whole records, and the records after `before`. */
static uint64_t measure(struct image *m, uint64_t before)
{
	uint64_t distance = 0, came = 0, since = before - m->copy.head;
	const void *record;
	size_t size;
	int r;

	while ((r = snapshot_record(&m->copy, distance, &record, &size)) > 0) {
		came += distance < since;
		distance += size;
		m->n_whole++;
	}
	if (r < 0)
		m->copy.damaged = true;
	m->whole = distance;
	return came;
}

static int take(struct image *m, const struct client_ring *ring, const struct client_catalog *c)
{
	const struct pp_ring_header *h = &ring->header;
	bool fresh;

	m->memory = client_memory_get(h->data_size + h->spill_size, &m->memory_size, &fresh);
	if (!m->memory)
		return -ENOMEM;
	m->header = *h;
	m->copy = (struct snapshot_ring){
		.header = *h,
		.catalog = c,
		.data = m->memory,
		.touched = fresh ? h->data_size + h->spill_size : 0,
	};
	m->header.live.nest = pp_ring_read_live(load, ring, &m->header.live) ? 0 : 1;
	m->header.live.state = client_ring_state(ring);
	m->header.live.generation = 0;
	snapshot_ring_take(&m->copy, ring);
	return 0;
}

/* Sets the live words of a ring at rest that holds exactly these records: `reserve` says that
 * everything behind them was overwritten. */
static void settle(struct image *m, const struct client_ring *ring)
{
	struct pp_ring_header *h = &m->header;
	uint64_t head = m->copy.head;

	h->live.records += measure(m, h->live.head);
	h->live.head = head;
	h->live.reserve = m->whole == 0 - head ? head : head - (h->data_size - m->whole);
	h->limit = (struct pp_ring_limit){ .limited = CLIENT_RING_LIMIT(ring, limited) };
}

/* ── The file ───────────────────────────────────────────────────────────────────────────── */

static int write_run(const struct image *m, size_t at, size_t n)
{
	return pp_pwrite_all(m->fd, m->copy.data + at, n, m->header.header_size + at);
}

/* Writes one piece or two: the record that begins near the end of the data runs into the spill, and
 * the next older one begins where its end would have been. */
static int write_records(const struct image *m)
{
	size_t mask = m->header.data_size - 1, start = m->copy.head & mask, n = 0, size;
	const void *record;
	uint64_t distance;
	int r = 0;

	for (distance = 0; r >= 0 && distance < m->whole; distance += size) {
		size_t at = (m->copy.head + distance) & mask;

		if (snapshot_record(&m->copy, distance, &record, &size) <= 0)
			return -EIO;
		if (at != start + n) {
			r = write_run(m, start, n);
			start = at;
			n = 0;
		}
		n += size;
	}
	return r < 0 ? r : write_run(m, start, n);
}

/* The static part and the format behind it. */
static int write_header(const struct image *m, const struct client_ring *ring)
{
	const struct pp_ring_header *h = &m->header;
	size_t rest = h->format_size;
	_cleanup_free_ char *bytes = malloc(rest + 1);
	int r;

	if (!bytes)
		return -ENOMEM;
	r = client_ring_read(ring, sizeof(*h), bytes, rest);
	if (r >= 0)
		r = pp_pwrite_all(m->fd, bytes, rest, sizeof(*h));
	return r < 0 ? r : pp_pwrite_all(m->fd, h, sizeof(*h), 0);
}

static int write_image(struct image *m, const struct client_ring *ring, int dir_fd,
		       const char *name, const struct saved_rights *rights)
{
	const struct pp_ring_header *h = &m->header;
	off_t size = (off_t)pp_ring_size(h->header_size, h->data_size, h->spill_size);
	int r;

	m->fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (m->fd < 0 || ftruncate(m->fd, size) < 0)
		return -errno;
	r = write_records(m);
	if (r >= 0)
		r = write_header(m, ring);
	if (r >= 0)
		r = saved_give(m->fd, rights, rights->mode);
	if (r < 0)
		return r;
	/* Some file systems report errors only here. */
	return close(TAKE_FD(m->fd)) < 0 ? -errno : 0;
}

int saved_write_ring(int dir_fd, const char *name, const struct client_ring *ring,
		     const struct client_catalog *catalog, const struct saved_rights *rights,
		     struct saved_ring_counts *ret)
{
	_cleanup_(image_done) struct image m = { .fd = -EBADF };
	int r = take(&m, ring, catalog);

	if (r < 0)
		return r;
	settle(&m, ring);
	r = write_image(&m, ring, dir_fd, name, rights);
	if (r < 0)
		return r;
	*ret = (struct saved_ring_counts){
		.held = m.n_whole,
		.held_bytes = m.whole,
		.records = m.header.live.records,
		.bytes = 0 - m.header.live.head,
		.limited = m.header.limit.limited,
		.missed = m.header.live.missed,
		.damaged = m.copy.damaged,
	};
	return 0;
}
