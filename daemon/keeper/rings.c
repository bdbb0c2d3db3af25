// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The mappings of the perf rings, and the kernel's protocol for them: the kernel owns data_head, we
 * own data_tail, and the records between them are whole.
 *
 * One CPU's records are in order of its clock. A heap finds the CPU with the oldest record.
 */
#include "daemon/keeper/rings.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"

/*
 * A ring must hold the records of the longest pause (keep.c). On large machines all rings together
 * take no more than DATA_OF_ALL, unless a ring would then be smaller than perf_event_mlock_kb
 * allows an ordinary user: 512 KiB and a page.
 */
#define DATA_MAX (4U << 20)
#define DATA_LARGE (512U << 10)
#define DATA_MIN (64U << 10)
#define DATA_OF_ALL (64U << 20)
/* Limit for one CPU's collected, not yet merged records. The rest stays in the ring; if the ring
 * fills up, the kernel counts what is lost. */
#define PENDING_MAX (16U << 20)
#define PENDING_KEEP (1U << 20)

struct ring {
	int fd;
	uint32_t cpu;
	uint64_t generation;
	uint8_t *map;
	size_t page, data; /* bytes */
	uint64_t tail;
	uint8_t *pending; /* collected: [begin, end) of `room` bytes */
	size_t begin, end, room;
	uint64_t next;	 /* time of the record at begin */
	uint64_t last;	 /* of the one before */
	uint64_t filled; /* bytes, since last asked */
};

static struct perf_event_mmap_page *control(const struct ring *ring)
{
	return (struct perf_event_mmap_page *)(void *)ring->map;
}

static void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	if (ring->map)
		munmap(ring->map, ring->page + ring->data);
	close_fd(ring->fd);
	free(ring->pending);
	free(ring);
}

static void cleanup_ring(struct ring **ring)
{
	ring_free(*ring);
}

static size_t data_wanted(void)
{
	size_t cpus = (size_t)MAX(sysconf(_SC_NPROCESSORS_CONF), 1L), data = DATA_MAX;

	while (data > DATA_LARGE && data * cpus > DATA_OF_ALL)
		data /= 2;
	return data;
}

/* Maps the largest ring that the limits for locked memory allow. */
static int map_ring(struct ring *ring, int fd)
{
	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	for (ring->data = data_wanted(); ring->data >= DATA_MIN; ring->data /= 2) {
		void *p = mmap(NULL, ring->page + ring->data, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, 0);

		if (p != MAP_FAILED) {
			ring->map = p;
			return 0;
		}
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return -errno;
}

static int ring_new(uint32_t cpu, uint64_t generation, int fd, struct ring **ret)
{
	_cleanup_(cleanup_ring) struct ring *ring = calloc(1, sizeof(*ring));
	uint64_t id;
	int r;

	if (!ring)
		return -ENOMEM;
	ring->fd = -EBADF;
	ring->cpu = cpu;
	ring->generation = generation;
	/* A plain file could be cut short under us, so the descriptor must be a perf event. */
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return -EBADMSG;
	r = map_ring(ring, fd);
	if (r < 0)
		return r;
	if (control(ring)->data_offset != ring->page || control(ring)->data_size != ring->data)
		return -EBADMSG;
	/* An earlier owner may have read some of it. */
	ring->tail = control(ring)->data_tail;
	*ret = TAKE_PTR(ring);
	return 0;
}

void rings_init(struct rings *rings)
{
	*rings = (struct rings){ 0 };
}

void rings_unmap(struct rings *rings)
{
	for (size_t i = 0; i < rings->n; i++)
		ring_free(rings->ring[i]);
	free(rings->ring);
	rings_init(rings);
}

/* The index of the CPU's ring, or where to insert it. */
static size_t place(const struct rings *rings, uint32_t cpu)
{
	size_t i = 0;

	while (i < rings->n && rings->ring[i]->cpu < cpu)
		i++;
	return i;
}

uint32_t ring_cpu(const struct ring *ring)
{
	return ring->cpu;
}

uint64_t ring_generation(const struct ring *ring)
{
	return ring->generation;
}

/* ── collecting ─────────────────────────────────────────────────────────────────────────── */

static bool make_room(struct ring *ring, size_t more)
{
	size_t room = ring->room ? ring->room : DATA_MIN;
	uint8_t *p;

	if (ring->begin == ring->end)
		ring->begin = ring->end = 0;
	if (ring->end + more <= ring->room)
		return true;
	if (ring->begin > 0) {
		memmove(ring->pending, ring->pending + ring->begin, ring->end - ring->begin);
		ring->end -= ring->begin;
		ring->begin = 0;
	}
	while (room < ring->end + more)
		room *= 2;
	if (room > PENDING_MAX)
		return false;
	if (room == ring->room)
		return true;
	p = realloc(ring->pending, room);
	if (!p)
		return false;
	ring->pending = p;
	ring->room = room;
	return true;
}

static void collect(struct rings *rings, struct ring *ring)
{
	const uint8_t *data = ring->map + ring->page;
	uint64_t head = __atomic_load_n(&control(ring)->data_head, __ATOMIC_ACQUIRE);
	size_t n = head - ring->tail, at = ring->tail & (ring->data - 1), first;

	if (n == 0)
		return;
	if (n > ring->data) { /* the kernel never does that */
		rings->bad++;
		n = 0;
	}
	if (!make_room(ring, n))
		return;
	first = MIN(n, ring->data - at);
	memcpy(ring->pending + ring->end, data + at, first);
	memcpy(ring->pending + ring->end + first, data, n - first);
	ring->end += n;
	ring->filled += n;
	ring->tail = head;
	__atomic_store_n(&control(ring)->data_tail, head, __ATOMIC_RELEASE);
}

void rings_collect(struct rings *rings)
{
	for (size_t i = 0; i < rings->n; i++)
		collect(rings, rings->ring[i]);
	rings->now = pp_clock_ns(CLOCK_MONOTONIC);
}

static bool can_be(const struct rings *rings, uint64_t time)
{
	return time > 0 && time <= rings->now + RINGS_CLOCK_SLACK;
}

/* Bytes and time of the record at an offset of the collected bytes. 0: there is none. */
static size_t record_at(const struct ring *ring, size_t at, uint64_t *ret_time)
{
	const uint8_t *record = ring->pending + at;
	size_t size = pp_record_extent(record, ring->end - at, PP_SIDEBAND_SAMPLE_TYPE);

	if (size > 0)
		*ret_time = pp_record_time(record, size, PP_SIDEBAND_SAMPLE_TYPE);
	return size;
}

/* ── merging ────────────────────────────────────────────────────────────────────────────── */

/* Whether the ring has a next record; sets its time. */
static bool look(struct rings *rings, struct ring *ring)
{
	if (record_at(ring, ring->begin, &ring->next) > 0) {
		if (!can_be(rings, ring->next))
			ring->next = ring->last;
		ring->last = ring->next;
		return true;
	}
	if (ring->begin < ring->end)
		rings->bad++; /* including everything behind it */
	ring->begin = ring->end = 0;
	if (ring->room > PENDING_KEEP) {
		free(ring->pending);
		ring->pending = NULL;
		ring->room = 0;
	}
	return false;
}

static void sink(struct ring **heap, size_t n, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		struct ring *ring = heap[i];

		if (child + 1 < n && heap[child + 1]->next < heap[child]->next)
			child++;
		if (ring->next <= heap[child]->next)
			return;
		heap[i] = heap[child];
		heap[child] = ring;
	}
}

static size_t heap_of(struct rings *rings, struct ring **heap)
{
	size_t n = 0;

	for (size_t i = 0; i < rings->n; i++)
		if (rings->ring[i]->end > rings->ring[i]->begin && look(rings, rings->ring[i]))
			heap[n++] = rings->ring[i];
	for (size_t i = n / 2; i-- > 0;)
		sink(heap, n, i);
	return n;
}

/* The cost of a record depends on its process, so a number of records would be no bound. */
bool rings_merge(struct rings *rings, uint64_t until,
		 void (*apply)(void *context, const uint8_t *record, size_t size), void *context)
{
	_cleanup_free_ struct ring **heap = calloc(rings->n + 1, sizeof(struct ring *));
	/* The rings are copied one after another. What caused a record, such as a child's fork on another CPU, was
	 * written before it: it is found if the record is of before this moment, and may be missing otherwise. */
	uint64_t end, begun = pp_clock_ns(CLOCK_MONOTONIC);
	size_t n;

	until = MIN(until, begun);
	rings_collect(rings);
	if (!heap)
		return true; /* they wait in the rings */
	end = rings->now + RINGS_STEP;
	n = heap_of(rings, heap);
	while (n > 0 && heap[0]->next <= until) {
		struct ring *ring = heap[0];
		const uint8_t *record = ring->pending + ring->begin;
		uint64_t time;
		size_t size = record_at(ring, ring->begin, &time);

		ring->begin += size;
		apply(context, record, size);
		if (!look(rings, ring))
			heap[0] = heap[--n];
		sink(heap, n, 0);
		if (pp_clock_ns(CLOCK_MONOTONIC) >= end)
			return n == 0 || heap[0]->next > until;
	}
	return true;
}

double rings_take_filled(struct rings *rings)
{
	double most = 0;

	for (size_t i = 0; i < rings->n; i++) {
		struct ring *ring = rings->ring[i];

		most = MAX(most, (double)ring->filled / (double)ring->data);
		ring->filled = 0;
	}
	return most;
}

bool rings_pressed(const struct rings *rings)
{
	for (size_t i = 0; i < rings->n; i++)
		if (rings->ring[i]->end - rings->ring[i]->begin > rings->ring[i]->data / 2)
			return true;
	return false;
}

/* ── replacing a ring ───────────────────────────────────────────────────────────────────── */

/* Bytes of the records up to a time. */
static size_t bytes_before(const struct rings *rings, const struct ring *ring, uint64_t time)
{
	size_t at = ring->begin, size;
	uint64_t when;

	while ((size = record_at(ring, at, &when)) > 0) {
		if (can_be(rings, when) && when >= time)
			break;
		at += size;
	}
	return at - ring->begin;
}

/* Moves over the records that the new ring lacks; for a moment the kernel wrote into both. The old
 * ring is collected first, so that every later record is in the new one. */
static void take_over(struct rings *rings, struct ring *old, struct ring *new)
{
	size_t n, rest;
	uint8_t *both;

	collect(rings, old);
	collect(rings, new);
	rings->now = pp_clock_ns(CLOCK_MONOTONIC);
	n = bytes_before(rings, old, look(rings, new) && new->next ? new->next : UINT64_MAX);
	new->last = old->last;
	rest = new->end - new->begin;
	if (n == 0)
		return;
	both = malloc(n + rest);
	if (!both) {
		rings->bad++;
		return;
	}
	memcpy(both, old->pending + old->begin, n);
	if (rest > 0)
		memcpy(both + n, new->pending + new->begin, rest);
	free(new->pending);
	new->pending = both;
	new->begin = 0;
	new->end = new->room = n + rest;
}

int rings_put(struct rings *rings, uint32_t cpu, uint64_t generation, int fd)
{
	_cleanup_(cleanup_ring) struct ring *new = NULL;
	size_t i = place(rings, cpu);
	bool has = i < rings->n && rings->ring[i]->cpu == cpu;
	int r = ring_new(cpu, generation, fd, &new);

	if (r < 0)
		return r;
	if (!has) {
		struct ring **more = realloc(rings->ring, (rings->n + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		rings->ring = more;
	}
	new->fd = fd;
	if (has) {
		take_over(rings, rings->ring[i], new);
		ring_free(rings->ring[i]);
	} else {
		memmove(rings->ring + i + 1, rings->ring + i,
			(rings->n - i) * sizeof(*rings->ring));
		rings->n++;
	}
	rings->ring[i] = TAKE_PTR(new);
	return 0;
}
