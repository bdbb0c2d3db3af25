// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the input as a checkpoint's file. The first byte says whether it is all of it, or begins
 * behind a valid header, with the slot. Checksums are made right, because they would keep everything
 * out; damage that they find is not what this is about.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "client/local/checkpoint-file.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/siphash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_MAX (1U << 20)

static const char info[] = "id=1\nnamespace=space\nname=name\ncpus=0\nsources=1\n";
static int file = -EBADF;
static volatile uint64_t sink;

static void put(const void *bytes, size_t n, uint64_t at)
{
	if (pp_pwrite_all(file, bytes, n, at) < 0)
		abort();
}

static void begin(void)
{
	if (file < 0)
		file = memfd_create("checkpoint", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, 0) < 0 || ftruncate(file, FILE_MAX) < 0)
		abort();
}

/* The header's size is at most what is there. */
static void put_header(uint8_t *bytes, size_t n)
{
	static const uint8_t key[16];
	struct checkpoint_header h;
	struct siphash sum;

	if (n >= sizeof(h)) {
		memcpy(&h, bytes, sizeof(h));
		h.magic = CHECKPOINT_MAGIC;
		h.version = CHECKPOINT_VERSION;
		h.size = MIN(h.size, n);
		h.checksum = 0;
		memcpy(bytes, &h, sizeof(h));
		siphash_begin(&sum, key);
		siphash_add(&sum, bytes, h.size);
		h.checksum = siphash_end(&sum);
		memcpy(bytes, &h, sizeof(h));
	}
	put(bytes, n, 0);
}

static void put_valid_header(void)
{
	const struct pp_ring_header ring = {
		.magic = PP_RING_MAGIC,
		.version = PP_RING_VERSION,
		.header_size = PP_RING_PAGE,
		.data_size = PP_DATA_SIZE_MIN,
		.spill_size = 64,
		.event_id = 1,
		.n_sources = 1,
		.sample_type = 1U << 16,
	};
	struct checkpoint_header h = {
		.n_rings = 1,
		.info_size = sizeof(info) - 1,
		.size = UINT64_MAX,
	};
	uint8_t bytes[sizeof(h) + sizeof(info) - 1 + sizeof(ring)];

	memcpy(mempcpy(mempcpy(bytes, &h, sizeof(h)), info, sizeof(info) - 1), &ring, sizeof(ring));
	put_header(bytes, sizeof(bytes));
}

/* Makes the checksums of both slots right. -errno: there is no room for them. */
static void seal_slots(const struct checkpoint_layout *l)
{
	struct checkpoint_slot *slot = malloc(l->slot_size);

	for (unsigned i = 0; slot && i < 2; i++) {
		if (pp_pread_all(file, slot, l->slot_size, l->slot_at[i]) != (ssize_t)l->slot_size)
			break;
		checkpoint_slot_seal(l, slot);
		put(slot, l->slot_size, l->slot_at[i]);
	}
	free(slot);
}

static void look(void)
{
	struct perfpersist_info event_info = { .sz = sizeof(event_info) };
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;
	struct perfpersist_info found;

	if (checkpoint_read(file, &e, &found) < 0)
		return;
	if (strnlen(found.ns, sizeof(found.ns)) == sizeof(found.ns) ||
	    strnlen(found.name, sizeof(found.name)) == sizeof(found.name) ||
	    strchr(found.name, '/'))
		abort();
	if (perfpersist_event_info(e, &event_info) < 0 || perfpersist_snapshot_new(e, &s) < 0 ||
	    perfpersist_snapshot_take(s) < 0)
		abort();
	sink += event_info.records;
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkpoint_layout l = {};
	uint8_t *copy;

	if (size < 1)
		return 0;
	begin();
	copy = malloc(size);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (data[0] % 2)
		put_header(copy + 1, size - 1);
	else
		put_valid_header();
	if (checkpoint_header_read(file, &l) >= 0) {
		if (l.size > FILE_MAX)
			abort();
		if (data[0] % 2 == 0)
			put(copy + 1, size - 1, l.slot_at[0]);
		/* As much as such a file has; the rest is holes. */
		if (ftruncate(file, (off_t)l.size) < 0)
			abort();
		seal_slots(&l);
		look();
	}
	checkpoint_layout_done(&l);
	free(copy);
	return 0;
}
