/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A registry of real pins for the broker's tests: a private bpffs with maps that look like an
 * event's. Call no_bpffs() first.
 */
#pragma once

#include <linux/bpf.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "tests/unit/broker-fixture.h"
#include "tests/unit/needs.h"

static _unused_ void pins_begin(struct broker *b)
{
	ck_assert_int_eq(mount("bpf", b->registry, "bpf", 0, NULL), 0);
}

static _unused_ void pins_end(struct broker *b)
{
	umount2(b->registry, MNT_DETACH);
}

static _unused_ int pins_call(int command, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	ck_assert_int_ge(r, 0);
	return r;
}

/* Pins fd at registry/leaf. */
static _unused_ void pins_add(struct broker *b, int fd, const char *leaf)
{
	union bpf_attr attr;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", b->registry, leaf);
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.bpf_fd = fd;
	pins_call(BPF_OBJ_PIN, &attr);
}

static _unused_ void pins_mkdir(struct broker *b, const char *leaf)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", b->registry, leaf);
	ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* The directory of the event whose rings have this id. */
static _unused_ void pins_event(struct broker *b, uint64_t origin)
{
	char leaf[64];

	pins_mkdir(b, "by-id");
	snprintf(leaf, sizeof(leaf), "by-id/%llu", (unsigned long long)origin);
	pins_mkdir(b, leaf);
}

/* A mappable, frozen map that begins with these bytes. */
static _unused_ int pins_map(const void *bytes, size_t n, uint32_t size)
{
	union bpf_attr attr;
	uint8_t *p;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = size;
	attr.max_entries = 1;
	attr.map_flags = BPF_F_MMAPABLE;
	fd = pins_call(BPF_MAP_CREATE, &attr);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	memcpy(p, bytes, n);
	munmap(p, size);
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = fd;
	pins_call(BPF_MAP_FREEZE, &attr);
	return fd;
}

/* A page of a ring buffer. */
static _unused_ int pins_ringbuf(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = 4096;
	return pins_call(BPF_MAP_CREATE, &attr);
}

/* Pins empty rings of an event, like the fake engine's. Sets its data_size. */
static _unused_ void pins_rings(struct broker *b, const char *ns, const char *name,
				uint64_t data_size)
{
	struct event *e = registry_by_name(&b->lifecycle.registry, ns, name);
	struct pp_ring_header header = {
		.magic = PP_RING_MAGIC,
		.version = PP_RING_VERSION,
		.header_size = PP_RING_PAGE,
		.data_size = data_size,
		.spill_size = 4096,
		.n_sources = 1,
		.set = 1,
	};
	char leaf[192];

	ck_assert_ptr_nonnull(e);
	e->truth.spec.data_size = data_size;
	header.event_id = e->truth.id;
	pins_event(b, e->truth.origin);
	PP_CPUMASK_FOREACH(cpu, &e->truth.rings)
	{
		int fd;

		header.cpu = cpu;
		fd = pins_map(&header, sizeof(header),
			      pp_ring_size(PP_RING_PAGE, data_size, header.spill_size));
		snprintf(leaf, sizeof(leaf), "by-id/%llu/cpu%u",
			 (unsigned long long)e->truth.origin, cpu);
		pins_add(b, fd, leaf);
		close(fd);
	}
}
