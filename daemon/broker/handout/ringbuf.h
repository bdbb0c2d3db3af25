/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A consumer of a BPF_MAP_TYPE_RINGBUF: maps it and takes records out, in the kernel's layout
 * (kernel/bpf/ringbuf.c). Does not know their contents.
 *
 * Two pages hold a position each: the consumer's (ours to write) and the producers'. The data
 * follows, mapped twice in a row, so that every record is contiguous. A record is a header of 8
 * bytes (its length with two flags; an offset for the kernel's own use) and the length rounded up
 * to 8.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ringbuf {
	uint64_t *consumer;	  /* NULL: not mapped */
	const uint64_t *producer; /* the data follows this page */
	const uint8_t *data;
	size_t size; /* of the data: 2^n */
	size_t page;
};

/* Maps the ring buffer at fd, which stays the caller's. 0; -EINVAL (not a ring buffer); -errno. */
int ringbuf_map(int fd, struct ringbuf *ret);
void ringbuf_unmap(struct ringbuf *ringbuf);

typedef void (*ringbuf_callback)(void *userdata, const void *record, size_t size);

/*
 * Consumes all complete records and calls cb for each that was not discarded; cb NULL: drops them.
 * Returns the number of records; -EBADMSG (the content is impossible; all of it is skipped).
 */
int ringbuf_consume(struct ringbuf *ringbuf, ringbuf_callback cb, void *userdata);
