/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The catalog describes the events that share the rings of one name (`sched:*`). One catalog
 * serves all CPUs: a frozen one-element array map, like a ring, or a sealed copy of it. An event of
 * one source has none: its rings' headers say everything.
 *
 *   0        header_size          … n_sources entries of entry_size    … texts and formats
 *
 * Records in such rings begin with PERF_SAMPLE_IDENTIFIER, the u64 behind the
 * perf_event_header: the id of the source, whose entry has the sample_type for the rest.
 * Offsets count from the catalog's beginning. A reader must not trust anything here.
 */
#pragma once

#include "ring.h"

#define PP_CATALOG_MAGIC 0x676f746163702b70ULL
#define PP_CATALOG_VERSION 1
#define PP_SOURCES_MAX 4096 /* of one event */

/* A source's id; event ids are below 2^51. */
#define PP_SOURCE_ID(event_id, index) ((__u64)(event_id) << 12 | (index))

struct pp_catalog_header {
	__u64 magic;
	__u32 version;
	__u32 header_size; /* of this struct */
	__u32 entry_size;
	__u32 n_sources;
	__u64 size; /* bytes used in all */
	__u64 event_id;
	__u64 reserved[3];
};

struct pp_catalog_entry {
	__u64 id;	   /* PP_SOURCE_ID(event_id, its index) */
	__u64 sample_type; /* PERF_SAMPLE_IDENTIFIER | … */
	__u32 recorder;	   /* enum pp_recorder */
	__u32 reserved0;
	/* the event in perf's notation: sched:sched_switch; no NUL */
	__u32 text_offset, text_size;
	__u32 attr_offset, attr_size;	  /* struct perf_event_attr */
	__u32 format_offset, format_size; /* tracepoints and probes: the format text; no NUL */
	__u64 reserved[2];
};

#ifndef __bpf__
_Static_assert(sizeof(struct pp_catalog_header) == 64, "catalog header");
_Static_assert(sizeof(struct pp_catalog_entry) == 64, "catalog entry");

/*
 * Checks the catalog at `catalog` (`size` readable bytes, a private copy that cannot change), so
 * that every offset in it can be followed. 0; -EBADMSG; -EPROTONOSUPPORT (made by a newer version).
 */
int pp_catalog_check(const void *catalog, size_t size);

/* Entry i < n_sources of a checked catalog. */
const struct pp_catalog_entry *pp_catalog_entry(const void *catalog, __u32 i);

/* The index of the source with this id, or -1. */
int pp_catalog_find(const void *catalog, __u64 id);
#endif
