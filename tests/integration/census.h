/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts the rings of one namespace in this kernel, whoever holds them: a pin, a descriptor, a
 * mapping, a program. A recorder's program and the registry's files hold their event's rings, so
 * any leak of an event leaks its rings. Other BPF objects on the machine, which come and go
 * meanwhile, do not count. Root only.
 */
#pragma once

#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "proto/macro.h"
#include "proto/ring.h"

static inline int census_bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* Whether the map with this id is a ring of the wanted namespace. */
static inline bool census_is_ring(unsigned id, const char *wanted)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = { .map_id = id };
	_cleanup_close_ int fd = census_bpf(BPF_MAP_GET_FD_BY_ID, &attr);
	const struct pp_ring_header *h;
	bool is_ring;

	if (fd < 0)
		return false; /* freed since its id was read */
	attr = (union bpf_attr){
		.info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (uintptr_t)&info },
	};
	if (census_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0 || info.type != BPF_MAP_TYPE_ARRAY ||
	    info.value_size < PP_RING_PAGE || !(info.map_flags & BPF_F_MMAPABLE))
		return false;
	h = mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return false;
	is_ring = h->magic == PP_RING_MAGIC && strncmp(h->ns, wanted, sizeof(h->ns)) == 0;
	munmap((void *)h, PP_RING_PAGE);
	return is_ring;
}

static inline unsigned census(const char *wanted)
{
	union bpf_attr attr = { 0 };
	unsigned n = 0;

	while (census_bpf(BPF_MAP_GET_NEXT_ID, &attr) == 0) {
		n += census_is_ring(attr.next_id, wanted);
		attr = (union bpf_attr){ .start_id = attr.next_id };
	}
	return n;
}
