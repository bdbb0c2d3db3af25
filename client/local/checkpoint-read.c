// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes an event of a checkpoint's file, as one would open it from its rings. */
#include <string.h>

#include "client/local/checkpoint-file.h"
#include "client/local/direct.h"
#include "client/local/textfile.h"
#include "client/rings/event.h"
#include "client/rings/memory.h"
#include "client/rings/snapshot.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/memfile.h"

struct reading {
	int fd;
	const struct checkpoint_layout *layout;
	const struct checkpoint_slot *slot;
	struct perfpersist_event *event;
};

/* The bytes of a place that hold records, each at its offset there. */
static int read_place(const struct reading *in, size_t i, uint8_t *data)
{
	const struct pp_ring_header *h = &in->layout->rings[i].header;
	const struct checkpoint_ring *r = &in->slot->rings[i];
	uint64_t size = 2 * h->data_size, at = r->place & (size - 1);
	uint64_t end = at + r->held, first = MIN(end, size + h->spill_size) - at;
	uint64_t base = in->layout->rings[i].at;
	ssize_t n = pp_pread_all(in->fd, data + at, first, base + at);

	if (n < 0 || (size_t)n != first)
		return n < 0 ? (int)n : -EBADMSG;
	if (end <= size)
		return 0;
	n = pp_pread_all(in->fd, data, end - size, base);
	return n < 0 ? (int)n : (uint64_t)n != end - size ? -EBADMSG : 0;
}

/* Writes the records into a ring, at their old positions. Returns how many bytes they are. */
static uint64_t put_records(const struct snapshot_ring *from, uint8_t *data, uint64_t head,
			    uint64_t data_size)
{
	uint64_t distance = 0;
	const void *record;
	size_t size;

	for (; snapshot_record(from, distance, &record, &size) > 0; distance += size)
		memcpy(data + ((head + distance) & (data_size - 1)), record, size);
	return distance;
}

/* Like saved-write-ring.c: `reserve` says that all else was overwritten. */
static int put_ring(const struct reading *in, size_t i, const struct snapshot_ring *from, int fd)
{
	const struct checkpoint_ring *r = &in->slot->rings[i];
	struct pp_ring_header h = in->layout->rings[i].header;
	uint64_t size = pp_ring_size(h.header_size, h.data_size, h.spill_size), whole;
	uint8_t *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (ring == MAP_FAILED)
		return -ENOMEM;
	whole = put_records(from, ring + h.header_size, r->live.head, h.data_size);
	h.live = r->live;
	h.live.generation = 0;
	h.live.nest = 0;
	h.live.reserve = h.live.head;
	if (whole != 0 - h.live.head)
		h.live.reserve -= h.data_size - whole;
	h.limit = (struct pp_ring_limit){ .limited = r->limited };
	memcpy(ring, &h, sizeof(h));
	memcpy(ring + sizeof(h), in->layout->rings[i].format, h.format_size);
	munmap(ring, size);
	return 0;
}

static int read_ring(struct reading *in, size_t i, int fd)
{
	struct snapshot_ring from = { .header = in->layout->rings[i].header };
	size_t size = checkpoint_place_size(&from.header), memory_size;
	bool fresh;
	int r;

	from.data = client_memory_get(size, &memory_size, &fresh);
	if (!from.data)
		return -ENOMEM;
	from.header.data_size *= 2;
	from.head = in->slot->rings[i].place;
	from.limit = in->slot->rings[i].held;
	r = read_place(in, i, from.data);
	if (r >= 0)
		r = put_ring(in, i, &from, fd);
	client_memory_put(from.data, memory_size);
	return r;
}

static int add_ring(struct reading *in, size_t i)
{
	const struct pp_ring_header *h = &in->layout->rings[i].header;
	_cleanup_close_ int fd = -EBADF;
	int r = pp_memfile_new("pp-checkpoint",
			       pp_ring_size(h->header_size, h->data_size, h->spill_size), &fd);

	if (r >= 0)
		r = read_ring(in, i, fd);
	if (r >= 0)
		r = pp_memfile_seal(fd);
	return r < 0 ? r : client_event_add(in->event, TAKE_FD(fd), (int)h->cpu, 0);
}

static int add_catalog(struct reading *in)
{
	const struct checkpoint_layout *l = in->layout;
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (!l->catalog)
		return 0;
	r = pp_memfile_new("pp-checkpoint", l->catalog_size, &fd);
	if (r >= 0)
		r = pp_pwrite_all(fd, l->catalog, l->catalog_size, 0);
	if (r >= 0)
		r = pp_memfile_seal(fd);
	return r < 0 ? r : client_event_add_catalog(in->event, TAKE_FD(fd), 0);
}

/* What has been missed is not in the rings, except of sampling events. */
static void complete_info(const struct checkpoint_slot *slot, struct perfpersist_info *info)
{
	info->saved = slot->real;
	info->saved_mono = slot->mono;
	info->skipped = slot->skipped;
	info->missed_unknown = true;
}

static int read_event(struct reading *in, struct perfpersist_info *info)
{
	int r = textfile_parse_info(in->layout->info, info);

	if (r < 0)
		return r;
	complete_info(in->slot, info);
	r = client_event_new(info, &in->event);
	if (r >= 0)
		r = add_catalog(in);
	for (size_t i = 0; r >= 0 && i < in->layout->n; i++)
		r = add_ring(in, i);
	return r < 0 ? r : direct_complete(in->event);
}

int checkpoint_read(int fd, struct perfpersist_event **ret, struct perfpersist_info *ret_info)
{
	_cleanup_(checkpoint_layout_done) struct checkpoint_layout l = {};
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	_cleanup_free_ struct checkpoint_slot *slot = NULL;
	struct reading in = { .fd = fd, .layout = &l };
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = checkpoint_header_read(fd, &l);

	if (r >= 0)
		r = checkpoint_slot_find(fd, &l, &slot);
	if (r < 0)
		return r;
	in.slot = slot;
	r = read_event(&in, &info);
	e = in.event;
	if (r < 0)
		return r;
	e->is_copy = true;
	*ret = TAKE_PTR(e);
	*ret_info = info;
	return 0;
}
