/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of an event, kept in a small map beside its rings: the struct pp_event that
 * recovery reads, and the text that `cat info` shows. Shared with bpf/tree.bpf.h.
 */
#pragma once

#define PP_META_MAGIC 0x6174656d2d70702bULL /* "+pp-meta" */
#define PP_META_VERSION 3
#define PP_META_TEXT_SIZE 4096 /* a power of two: the program masks text_size with it */

/* The map's value begins so in every version. */
struct pp_meta_head {
	unsigned long long magic;
	unsigned int version;
	unsigned int size;	/* of struct pp_meta */
	unsigned int text_size; /* bytes used of text */
	unsigned int deleted;	/* 1: on its way out; the recorder may be gone */
	char text[PP_META_TEXT_SIZE];
};

#ifndef __bpf__
#include "daemon/order.h"

/* A map of the event: a ring, or (cpu UINT32_MAX) the catalog. */
struct meta_map {
	uint32_t cpu;
	uint32_t id; /* the kernel's, of the map: it is gone when nobody has it any more */
	uint64_t bytes;
	/* of a ring: of what counts on its CPU (daemon/engine/registry/cpu-states.h) */
	uint64_t generation;
};

struct pp_meta {
	struct pp_meta_head head;
	struct pp_event event;
	uint32_t pending; /* 1: a change is in place and its programs may not be: load them again */
	uint32_t n_maps, n_sources, n_nodes;
	uint32_t room; /* for maps: CPUs may come */
	uint32_t reserved;
	uint8_t rest[]; /* struct meta_map[room], struct pp_source[], struct pp_filter_node[] */
};

/* Makes the map with all of it. *ret_fd is the caller's. -errno. */
int meta_create(const struct pp_event *event, const struct pp_parsed *parsed,
		const struct meta_map *maps, size_t n_maps, bool pending, int *ret_fd);

/*
 * Reads and checks it. 0; -EBADMSG (not ours, or damaged); -EPROTONOSUPPORT (of a newer
 * version); -ESTALE (of an older one); -errno. What is asked for is the caller's to free; NULL:
 * not wanted.
 */
int meta_read(int fd, struct pp_event *ret);
int meta_read_all(int fd, struct pp_event *ret, struct pp_parsed **ret_parsed,
		  struct meta_map **ret_maps, size_t *ret_n_maps, bool *ret_pending);

/*
 * Its map, by its id: not even the engine may open a pin that is the broker's (it has no
 * CAP_DAC_OVERRIDE). An fd, the caller's; -ENOENT: it is gone; -errno.
 */
int meta_map_open(const struct meta_map *map);

/* What to write down of the map fd. -errno. */
int meta_map_describe(int fd, uint32_t cpu, uint64_t bytes, uint64_t generation,
		      struct meta_map *ret);

/* Writes the event (paused, rights) and `pending` anew, and the text that shows it. */
int meta_update(int fd, const struct pp_event *event, bool pending);

/* The same, and which maps it has. -ENOSPC: CPUs have come that could not be when it was made. */
int meta_update_maps(int fd, const struct pp_event *event, const struct meta_map *maps,
		     size_t n_maps, bool pending);

/* Says in it that the event is on its way out. */
int meta_mark_deleted(int fd);
#endif
