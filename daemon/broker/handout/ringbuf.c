// SPDX-License-Identifier: LGPL-2.1-or-later
/* Consumes records of a ring buffer map. The broker needs nothing else of libbpf, so it does
 * without. */
#include "daemon/broker/handout/ringbuf.h"

#include <linux/bpf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>

#include "proto/macro.h"

static int ringbuf_size(int fd, size_t *ret)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_RINGBUF || info.max_entries == 0 ||
	    info.max_entries & (info.max_entries - 1))
		return -EINVAL;
	*ret = info.max_entries;
	return 0;
}

int ringbuf_map(int fd, struct ringbuf *ret)
{
	struct ringbuf ringbuf = { .page = sysconf(_SC_PAGESIZE) };
	void *p;
	int r = ringbuf_size(fd, &ringbuf.size);

	if (r < 0)
		return r;
	p = mmap(NULL, ringbuf.page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	ringbuf.consumer = p;
	p = mmap(NULL, ringbuf.page + 2 * ringbuf.size, PROT_READ, MAP_SHARED, fd,
		 (off_t)ringbuf.page);
	if (p == MAP_FAILED) {
		r = -errno;
		munmap(ringbuf.consumer, ringbuf.page);
		return r;
	}
	ringbuf.producer = p;
	ringbuf.data = (const uint8_t *)p + ringbuf.page;
	*ret = ringbuf;
	return 0;
}

void ringbuf_unmap(struct ringbuf *ringbuf)
{
	if (!ringbuf->consumer)
		return;
	munmap(ringbuf->consumer, ringbuf->page);
	munmap((void *)ringbuf->producer, ringbuf->page + 2 * ringbuf->size);
	*ringbuf = (struct ringbuf){ 0 };
}

int ringbuf_consume(struct ringbuf *ringbuf, ringbuf_callback cb, void *userdata)
{
	uint64_t at = __atomic_load_n(ringbuf->consumer, __ATOMIC_RELAXED);
	uint64_t end = __atomic_load_n(ringbuf->producer, __ATOMIC_ACQUIRE);
	int n = 0;

	if (end - at > ringbuf->size) {
		__atomic_store_n(ringbuf->consumer, end, __ATOMIC_RELEASE);
		return -EBADMSG;
	}
	while (at != end) {
		const uint8_t *record = ringbuf->data + (at & (ringbuf->size - 1));
		uint32_t head =
			__atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE);
		uint64_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		uint64_t whole = ALIGN_TO(size + BPF_RINGBUF_HDR_SZ, (uint64_t)8);

		/* A writer still fills this record, and wakes us because we have consumed
		 * everything before it. */
		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (whole > end - at) {
			__atomic_store_n(ringbuf->consumer, end, __ATOMIC_RELEASE);
			return -EBADMSG;
		}
		if (cb && !(head & BPF_RINGBUF_DISCARD_BIT))
			cb(userdata, record + BPF_RINGBUF_HDR_SZ, size);
		at += whole;
		n++;
		/* After each record: the kernel compares this position with the producer's to
		 * decide whether to wake us. */
		__atomic_store_n(ringbuf->consumer, at, __ATOMIC_RELEASE);
	}
	return n;
}
