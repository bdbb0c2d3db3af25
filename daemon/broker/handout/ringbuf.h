/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A consumer of a BPF_MAP_TYPE_RINGBUF: maps it and takes records out, as the kernel lays them
 * out (kernel/bpf/ringbuf.c). Knows nothing of what is in them.
 *
 * Two pages with a position each, the consumer's (ours to write) and the producers'; then the
 * data, mapped twice in a row, so that every record is in one piece. A record is a header of 8
 * bytes (its length with two flags; an offset that is the kernel's own) and the length rounded
 * up to 8.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ringbuf {
	uint64_t *consumer;	  /* NULL: not there */
	const uint64_t *producer; /* with the data behind its page */
	const uint8_t *data;
	size_t size; /* of the data: 2^n */
	size_t page;
};

/* Maps the map behind fd, which stays the caller's. 0; -EINVAL (no ring buffer); -errno. */
int ringbuf_map(int fd, struct ringbuf *ret);
void ringbuf_unmap(struct ringbuf *ringbuf);

typedef void (*ringbuf_callback)(void *userdata, const void *record, size_t size);

/*
 * Takes out all records that are complete, calling back for each that was not discarded; cb
 * NULL: nobody wants them. Returns how many there were; -EBADMSG (what is in it cannot be: all
 * of it is passed over).
 */
int ringbuf_consume(struct ringbuf *ringbuf, ringbuf_callback cb, void *userdata);
