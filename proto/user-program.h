/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits of a user's program (proto/perfpersist.bpf.h): perfctl checks them before it makes anything,
 * the engine before it takes it. */
#pragma once

#include <linux/bpf.h>
#include <stdint.h>

#define PP_USER_MAPS_MAX 16
#define PP_USER_ELEMENT_HEAD 64		 /* of a hash */
#define PP_USER_MEMORY_MAX (16ULL << 20) /* of all its maps */

/* About as many bytes as the kernel takes for such a map; UINT64_MAX: too many to say, or a type whose
 * map can grow beyond what it says. */
static inline uint64_t pp_user_map_memory(uint32_t type, uint32_t key, uint32_t value,
					  uint32_t entries, unsigned cpus)
{
	uint64_t each = (value + 7ULL) & ~7ULL, all;

	switch (type) {
	case BPF_MAP_TYPE_RINGBUF:
		return entries;
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PROG_ARRAY:
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
	case BPF_MAP_TYPE_CGROUP_ARRAY:
	case BPF_MAP_TYPE_STACK_TRACE:
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		break;
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		each *= cpus;
		break;
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
		each = each * cpus + key + PP_USER_ELEMENT_HEAD;
		break;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LPM_TRIE:
		each += key + PP_USER_ELEMENT_HEAD;
		break;
	default:
		return UINT64_MAX;
	}
	return __builtin_mul_overflow(each, (uint64_t)entries, &all) ? UINT64_MAX : all;
}
