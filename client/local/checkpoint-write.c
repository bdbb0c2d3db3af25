// SPDX-License-Identifier: LGPL-2.1-or-later
/* A checkpoint: copies the new records of each ring, writes them behind the last ones, and then says
 * so in a slot. */
#include "client/local/checkpoint-write.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "client/rings/memory.h"
#include "client/rings/snapshot.h"
#include "proto/clock.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/ring-live.h"

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

/* Knows of each ring what the slot says of all. */
static void begin_at_slot(struct checkpoint_writer *w)
{
	for (size_t i = 0; i < w->layout.n; i++)
		w->complete[i] = w->slot->mono;
}

static int allocate(struct checkpoint_writer *w)
{
	w->slot = calloc(1, w->layout.slot_size);
	w->next = calloc(1, w->layout.slot_size);
	w->complete = calloc(w->layout.n + 1, sizeof(*w->complete));
	if (!w->slot || !w->next || !w->complete)
		return -ENOMEM;
	w->slot->mono = w->event->header.created_mono;
	begin_at_slot(w);
	return 0;
}

int checkpoint_writer_init(struct checkpoint_writer *w, struct perfpersist_event *e)
{
	int r;

	*w = (struct checkpoint_writer){
		.fd = -EBADF,
		.event = client_event_ref(e),
		.generation = e->generation,
	};
	r = checkpoint_header_make(e, &w->layout);
	return r < 0 ? r : allocate(w);
}

void checkpoint_writer_done(struct checkpoint_writer *w)
{
	free(w->slot);
	free(w->next);
	free(w->complete);
	checkpoint_layout_done(&w->layout);
	perfpersist_event_free(w->event);
	w->fd = close_fd(w->fd);
}

int checkpoint_writer_begin(struct checkpoint_writer *w, int fd)
{
	/* The space is taken now, so that no later checkpoint fails for the lack of it, and none changes
	 * the file's size, which would have to be written, too. */
	int r = -posix_fallocate(fd, 0, (off_t)w->layout.size);

	if (r >= 0)
		r = pp_pwrite_all(fd, w->layout.bytes, w->layout.bytes_size, 0);
	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		return r;
	w->fd = fd;
	return 0;
}

int checkpoint_writer_resume(struct checkpoint_writer *w, int fd)
{
	_cleanup_(checkpoint_layout_done) struct checkpoint_layout there = {};
	struct checkpoint_slot *slot = NULL;
	int r = checkpoint_header_read(fd, &there);

	if (r == -EBADMSG || r == -EPROTONOSUPPORT)
		return 0;
	if (r < 0)
		return r;
	if (there.bytes_size != w->layout.bytes_size ||
	    memcmp(there.bytes, w->layout.bytes, there.bytes_size) != 0)
		return 0;
	r = checkpoint_slot_find(fd, &w->layout, &slot);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	free(w->slot);
	w->slot = slot;
	begin_at_slot(w);
	w->which = !r;
	w->fd = fd;
	return 1;
}

/* ── a ring ─────────────────────────────────────────────────────────────────────────────── */

/* For a copy of any of the rings. */
struct buffer {
	uint8_t *data;
	size_t size, touched;
};

/* Bytes of a checkpoint. */
struct sums {
	uint64_t written;
	uint64_t skipped; /* that no later one writes, either */
};

struct round {
	struct checkpoint_writer *w;
	struct buffer *buffer;
	size_t i;
	const struct client_ring *ring;
	struct checkpoint_ring *at; /* before, then after it */
	struct snapshot_ring copy;
	uint64_t whole;	 /* bytes of records in the copy */
	bool is_next;	 /* they begin where the last checkpoint ended */
	bool is_damaged; /* the newest record is none */
};

static uint64_t load(const void *ring, size_t at)
{
	return client_ring_load(ring, at);
}

/* Walks the copy. The live words were read before it was made: counts what came in between. */
static void measure(struct round *o, struct pp_ring_live *live)
{
	uint64_t since = live->head - o->copy.head, fresh = o->at->live.head - o->copy.head;
	const void *record;
	size_t size;
	int r;

	for (; (r = snapshot_record(&o->copy, o->whole, &record, &size)) > 0; o->whole += size)
		live->records += o->whole < since;
	o->is_damaged = r < 0 && !o->whole;
	live->head = ALIGN_TO(o->copy.head, 8); /* only a damaged one is anything else */
	o->is_next = o->whole == fresh;
}

/* Writes one run of bytes: a part of the copy that is in one piece in the place, too. */
static int write_run(const struct round *o, size_t from, size_t to, size_t n)
{
	return pp_pwrite_all(o->w->fd, o->copy.data + from, n, o->w->layout.rings[o->i].at + to);
}

static int write_records(const struct round *o)
{
	size_t mask = o->copy.header.data_size - 1, there = 2 * mask + 1;
	uint64_t place = o->at->place - o->whole, distance = 0;
	size_t from = o->copy.head & mask, to = place & there, n = 0, size;
	const void *record;
	int r = 0;

	for (; r >= 0 && distance < o->whole; distance += size) {
		size_t record_from = (o->copy.head + distance) & mask;
		size_t record_to = (place + distance) & there;

		if (snapshot_record(&o->copy, distance, &record, &size) <= 0)
			return -EIO;
		/* A record that begins near an end runs on into a spill, here or there; the next one
		 * is elsewhere. */
		if (record_from != from + n || record_to != to + n) {
			r = write_run(o, from, to, n);
			from = record_from;
			to = record_to;
			n = 0;
		}
		n += size;
	}
	return r < 0 ? r : write_run(o, from, to, n);
}

static void advance(struct round *o, const struct pp_ring_live *live)
{
	uint64_t held = o->is_next ? o->at->held + o->whole : o->whole;

	o->at->live = *live;
	o->at->live.reserve = live->head;
	o->at->live.nest = 0;
	o->at->live.state = client_ring_state(o->ring);
	o->at->limited = CLIENT_RING_LIMIT(o->ring, limited);
	o->at->place -= o->whole;
	o->at->held = MIN(held, o->copy.header.data_size);
}

/* Writes the newest `max` bytes of what is new in a ring, and adds up what it left out. 1; 0: what is
 * new waits, because not even the newest record has room. */
static int write_ring(struct round *o, uint64_t max, struct sums *sums)
{
	uint64_t fresh, size = o->ring->header.data_size;
	struct pp_ring_live live;
	int r;

	pp_ring_read_live(load, o->ring, &live);
	if (live.head == o->at->live.head)
		return 1;
	o->copy = (struct snapshot_ring){
		.header = o->ring->header,
		.catalog = &o->w->event->catalog,
		.data = o->buffer->data,
		.touched = o->buffer->touched,
	};
	snapshot_ring_take_newer(&o->copy, o->ring, o->at->live.head, max & ~7ULL);
	o->buffer->touched = o->copy.touched;
	measure(o, &live);
	fresh = MIN(o->at->live.head - live.head, size);
	/* Waiting does not mend a ring, and holds back the time of all others. */
	if (o->whole == 0 && !o->is_damaged)
		return 0;
	if (max < fresh || o->is_damaged)
		sums->skipped += fresh - o->whole;
	r = o->whole ? write_records(o) : 0;
	if (r < 0)
		return r;
	sums->written += o->whole;
	advance(o, &live);
	return 1;
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static int write_slot(struct checkpoint_writer *w)
{
	struct checkpoint_slot *done = w->next;
	int r;

	done->sequence++;
	checkpoint_slot_seal(&w->layout, done);
	r = pp_pwrite_all(w->fd, done, w->layout.slot_size, w->layout.slot_at[w->which]);
	if (r < 0)
		return r;
	if (fdatasync(w->fd) < 0)
		return -errno;
	w->next = w->slot;
	w->slot = done;
	w->which = !w->which;
	return 0;
}

/* Only while one writes: a process may have many writers. */
static int get_buffer(const struct checkpoint_layout *l, struct buffer *ret)
{
	size_t size = 0;
	bool fresh;

	for (size_t i = 0; i < l->n; i++)
		size = MAX(size, l->rings[i].header.data_size + l->rings[i].header.spill_size);
	ret->data = client_memory_get(size, &ret->size, &fresh);
	ret->touched = fresh ? size : 0;
	return ret->data ? 0 : -ENOMEM;
}

/* A ring gets its equal part of what is left of the limit; what it does not need is for those behind it.
 * If not one record has room in that, it gets room for the largest one, as far as there is. */
static int write_part(struct round *o, uint64_t max_bytes, size_t n, struct sums *sums)
{
	uint64_t left = max_bytes - MIN(sums->written, max_bytes), part = left / n;
	uint64_t largest = MIN(left, o->ring->header.spill_size);
	int r = write_ring(o, part, sums);

	return r || largest <= part ? r : write_ring(o, largest, sums);
}

/* The next checkpoint begins with the first ring that waits, which has the whole limit then. The one that
 * begins this time had it: if it waits, it does not hold up the others. */
static int write_rings(struct checkpoint_writer *w, uint64_t max_bytes, uint64_t now,
		       struct sums *sums)
{
	size_t n = w->layout.n, first = w->first;
	struct buffer buffer;
	int r = get_buffer(&w->layout, &buffer);

	if (r < 0)
		return r;
	for (size_t k = 0; r >= 0 && k < n; k++) {
		size_t i = (first + k) % n;
		struct round o = {
			.w = w,
			.buffer = &buffer,
			.i = i,
			.ring = &w->event->rings[i],
			.at = &w->next->rings[i],
		};

		r = write_part(&o, max_bytes, n - k, sums);
		if (r > 0)
			w->complete[i] = now;
		else if (w->first == first)
			w->first = i;
	}
	client_memory_put(buffer.data, buffer.size);
	return r;
}

/* Readers take a checkpoint as complete until its time. */
static void note(struct checkpoint_writer *w, uint64_t now, uint64_t now_real,
		 const struct sums *sums)
{
	struct checkpoint_slot *next = w->next;

	next->mono = now;
	for (size_t i = 0; i < w->layout.n; i++)
		next->mono = MIN(next->mono, w->complete[i]);
	next->real = now_real - (now - next->mono);
	next->skipped += sums->skipped;
}

int checkpoint_writer_write(struct checkpoint_writer *w, uint64_t max_bytes,
			    struct perfpersist_checkpoint_stat *ret)
{
	/* Before any of the rings is copied. */
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), real = pp_clock_real(now);
	struct sums sums = { .written = 0 };
	bool is_new = !w->slot->sequence;
	int r;

	if (w->event->generation != w->generation)
		return -ESTALE;
	memcpy(w->next, w->slot, w->layout.slot_size);
	r = write_rings(w, max_bytes, now, &sums);
	if (r >= 0 && sums.written && fdatasync(w->fd) < 0)
		r = -errno;
	/* A new file without a record says that there was none. */
	is_new |= sums.written || sums.skipped;
	if (r >= 0 && is_new) {
		note(w, now, real, &sums);
		r = write_slot(w);
	}
	if (r < 0) {
		begin_at_slot(w);
		return r;
	}
	if (ret) {
		ret->written = is_new ? sums.written + w->layout.slot_size : 0;
		ret->skipped = sums.skipped;
	}
	return 0;
}
