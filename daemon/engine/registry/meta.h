/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event's description, in a small map beside its rings: the struct pp_event that recovery reads,
 * and the text that `cat info` shows. Shared with bpf/tree.bpf.h.
 */
#pragma once

#define PP_META_MAGIC 0x6174656d2d70702bULL /* "+pp-meta" */
#define PP_META_VERSION 3
#define PP_META_TEXT_SIZE 4096 /* a power of two: the program masks text_size with it */

/* The beginning of the map's value, in every version. */
struct pp_meta_head {
	unsigned long long magic;
	unsigned int version;
	unsigned int size;	/* of struct pp_meta */
	unsigned int text_size; /* bytes used of text */
	unsigned int deleted;	/* 1: being deleted; the recorder may be gone */
	char text[PP_META_TEXT_SIZE];
};

#ifndef __bpf__
#include "daemon/order.h"

/* A map of the event: a ring, or (cpu UINT32_MAX) the catalog. */
struct meta_map {
	uint32_t cpu;
	uint32_t id; /* the kernel's; the map is gone once nothing holds it */
	uint64_t bytes;
	/* a ring: of the counters on its CPU (daemon/engine/registry/cpu-states.h) */
	uint64_t generation;
};

struct pp_meta {
	struct pp_meta_head head;
	struct pp_event event;
	uint32_t pending; /* 1: a change may lack its programs: load them again */
	uint32_t n_maps, n_sources, n_nodes;
	uint32_t room; /* for maps: more CPUs may come online */
	uint32_t reserved;
	/* struct meta_map[room], struct pp_source[], struct pp_filter_node[]; of a bound event struct
	 * pp_msg_target */
	uint8_t rest[];
};

/* Makes the map with its whole content. target: of a bound event; else NULL. *ret_fd is the caller's. -errno. */
int meta_create(const struct pp_event *event, const struct pp_parsed *parsed,
		const struct meta_map *maps, size_t n_maps, const struct pp_msg_target *target,
		bool pending, int *ret_fd);

/*
 * Reads and checks it. 0; -EBADMSG (not ours, or damaged); -EPROTONOSUPPORT (a newer version);
 * -ESTALE (an older one); -errno. The results are for free(3); NULL: not wanted.
 */
int meta_read(int fd, struct pp_event *ret);
int meta_read_all(int fd, struct pp_event *ret, struct pp_parsed **ret_parsed,
		  struct meta_map **ret_maps, size_t *ret_n_maps, bool *ret_pending);

/* The target, all 0 if it has none. Errors as above. */
int meta_read_target(int fd, struct pp_msg_target *ret);

/* Whether the error, of opening or reading it, describes the event, and not a failure of the engine. */
bool meta_is_strange(int r);

/*
 * Opens the map by its id: even the engine may not open the broker's pins (it has no
 * CAP_DAC_OVERRIDE). An fd, the caller's; -ENOENT: it is gone; -errno.
 */
int meta_map_open(const struct meta_map *map);

/* Describes the map fd, for meta. -errno. */
int meta_map_describe(int fd, uint32_t cpu, uint64_t bytes, uint64_t generation,
		      struct meta_map *ret);

/* Updates the event (paused, rights), `pending`, and the text that shows it. */
int meta_update(int fd, const struct pp_event *event, bool pending);

/* The same, and its maps. -ENOSPC: CPUs that were not possible when it was made. */
int meta_update_maps(int fd, const struct pp_event *event, const struct meta_map *maps,
		     size_t n_maps, bool pending);

/* Marks the event as being deleted. */
int meta_mark_deleted(int fd);
#endif
