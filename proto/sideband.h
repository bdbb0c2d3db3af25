/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sideband: which processes ran, from which files, and when. It turns the process ids and
 * addresses in samples into names. It is a sealed memfd: this header, then perf records
 * (PERF_RECORD_* of linux/perf_event.h), as in a perf.data file.
 *
 * The records
 *   - are FORK, COMM, MMAP2, EXIT, KSYMBOL, BPF_EVENT, NAMESPACES, CGROUP, LOST and nothing else;
 *   - end in a sample_id of PP_SIDEBAND_SAMPLE_TYPE, LOST as well: 32 bytes
 *         u32 pid, tid; u64 time (CLOCK_MONOTONIC, ns); u32 cpu, 0; u64 identifier (PP_SIDEBAND_ID);
 *   - are in order of time; those of one time are in the order in which to apply them;
 *   - tell everything known of a process, also from before `since`: if its FORK was not seen or its
 *     parent is forgotten, COMM and MMAP2 tell what it began with, with the time of that;
 *   - belong to processes that were alive at `since` or later and began no later than `until`;
 *   - take about twice max_memory at most: beyond that, the processes with most mappings lack their
 *     older ones (`cut`).
 *
 * KSYMBOL and BPF_EVENT of a loaded program have the time when its loading began; of an unloaded
 * one, the time when the keeper noticed, or when another one took its place in memory. The keeper
 * looks at each TAKE, and about once a second. Code of no program (trampolines) is not included.
 *
 * MMAP2 records are of executable mappings, with device and inode: the kernel cannot give build ids
 * to us alone (daemon/engine/sideband.c). Kernel text and modules are not included: readers that
 * may know their addresses read them from /proc.
 *
 * From the first release on it only grows: new fields take the place of `reserved`, or go behind.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>

#define PP_SIDEBAND_MAGIC 0x4553414244495350ULL /* "PSIDBASE" */
#define PP_SIDEBAND_VERSION 1
#define PP_SIDEBAND_ID 1 /* no source of an event has this id in our perf.data files */
#define PP_SIDEBAND_SAMPLE_TYPE \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define PP_SIDEBAND_ID_SIZE 32

struct pp_sideband_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size; /* where the records begin: sizeof this, multiple of 8 */
	uint64_t size;	      /* bytes of the file, header included */
	uint64_t records;
	uint64_t since, until; /* as requested; ns */
	/* processes that ended before this time may be missing: when the keeping began, or the end
	 * of the youngest forgotten process; ns */
	uint64_t complete;
	uint64_t began; /* when the keeping began, ns */
	uint64_t lost;	/* records that the kernel could not deliver since `began` */
	/* processes whose data was dropped for the limit's sake, since `began` */
	uint64_t forgotten;
	uint64_t processes;	     /* kept, ended ones included */
	uint64_t ended;		     /* of these, those that have ended */
	uint64_t memory, max_memory; /* bytes that the table takes, and may take */
	/* processes that lack some mappings here, because the file would be too large */
	uint64_t cut;
	/* records with an impossible time, or far too late; they have the time of their arrival */
	uint64_t untimed;
	uint64_t unseen; /* BPF programs loaded and unloaded between two looks */
};
