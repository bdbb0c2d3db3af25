/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of an event's checkpoints: what its rings hold, on a disk that may lose its power at any
 * moment.
 *
 *   header     struct checkpoint_header, the event's text as in `info`, its catalog, and the static
 *              header of each ring with the format behind it; written once
 *   2 slots    struct checkpoint_slot: how far each ring is on the disk
 *   a place for each ring: twice its data, then its spill
 *
 * A place is a ring as in proto/ring.h, but twice as large, and with positions of its own, which go
 * on where the last checkpoint ended. What the last slot describes is at most as large as the
 * ring's data, and so is what the next checkpoint writes: it overwrites nothing of that. The order
 * of writing: data; sync; the older one of the slots; sync. So the slot with the higher sequence
 * number and a good checksum is always true, wherever the writing ended, even in the middle of a
 * slot.
 *
 * Knows the file's format, not how it is written.
 */
#pragma once

#include "client/perfpersist.h"
#include "proto/ring.h"

#define CHECKPOINT_MAGIC 0x74706b632d70702bULL /* "+pp-ckpt" in memory on little endian */
#define CHECKPOINT_VERSION 1
#define CHECKPOINT_RINGS_MAX 4096
#define CHECKPOINT_PAGE 4096U

struct checkpoint_header {
	uint64_t magic;
	uint32_t version;
	uint32_t n_rings;
	uint32_t info_size; /* bytes of the text, without a NUL */
	uint32_t catalog_size;
	uint64_t size;	   /* of all of the header: the slots begin at the next page */
	uint64_t checksum; /* of all of it, this word being 0 */
};

/* A ring at a checkpoint. */
struct checkpoint_ring {
	struct pp_ring_live live; /* as of then, with the position of the newest record in `head` */
	uint64_t limited;
	uint64_t place; /* position of the newest record in the place */
	uint64_t held;	/* bytes of records there, from that position on; at most the data's size */
};

/* A page or more, and checkpoint_ring for each ring. */
struct checkpoint_slot {
	uint64_t checksum; /* of the slot behind this word */
	uint64_t sequence; /* of the checkpoint; from 1; 0: there was none yet */
	/* CLOCK_MONOTONIC and CLOCK_REALTIME, ns: what was recorded by then has been written, but for
	 * what the limit left out for good */
	uint64_t mono;
	uint64_t real;
	/* bytes since the file was made, without those that wait for the next checkpoint */
	uint64_t skipped;
	struct checkpoint_ring rings[];
};

/* What a header says. */
struct checkpoint_layout {
	size_t n;
	const uint8_t *catalog; /* these lead into `bytes`; NULL: no catalog */
	size_t catalog_size;
	struct {
		struct pp_ring_header header; /* checked */
		const uint8_t *format;	      /* header.format_size bytes */
		uint64_t at;		      /* offset of its place */
	} * rings;
	uint64_t slot_at[2];
	size_t slot_size;
	uint64_t size; /* of the file */
	char *info;    /* the text, with a NUL */
	uint8_t *bytes;
	size_t bytes_size;
};

static inline uint64_t checkpoint_place_size(const struct pp_ring_header *h)
{
	return 2 * h->data_size + h->spill_size;
}

/* The header of an event's file. -ENOMEM or another -errno. */
int checkpoint_header_make(struct perfpersist_event *e, struct checkpoint_layout *ret);

/* Reads and checks the header of a file, which has all of its size. -EBADMSG: it is none, or damaged;
 * -EPROTONOSUPPORT: a newer version wrote it; another -errno. */
int checkpoint_header_read(int fd, struct checkpoint_layout *ret);
void checkpoint_layout_done(struct checkpoint_layout *l);

/* Reads a slot into memory of l->slot_size bytes. -EBADMSG: it is not true; another -errno. */
int checkpoint_slot_read(int fd, const struct checkpoint_layout *l, unsigned which,
			 struct checkpoint_slot *ret);

/* The newest of both; *ret is for free(3). The number of its slot; -ENOENT: there was no checkpoint
 * yet; another -errno. */
int checkpoint_slot_find(int fd, const struct checkpoint_layout *l, struct checkpoint_slot **ret);

void checkpoint_slot_seal(const struct checkpoint_layout *l, struct checkpoint_slot *slot);

/*
 * Makes an event of the newest checkpoint in a file: its rings are copies in memory, its
 * description says when that was. -ENOENT: there was none; -EBADMSG: damaged; -EPROTONOSUPPORT: a
 * newer version wrote it; another -errno.
 */
int checkpoint_read(int fd, struct perfpersist_event **ret, struct perfpersist_info *ret_info);
