/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sideband: who ran, from which files, and when: what turns the process ids and addresses in
 * samples into names. It comes as a file in memory, sealed against every change: this header, then
 * perf records (PERF_RECORD_* of linux/perf_event.h), as they stand in a perf.data file.
 *
 * The records
 *   - are FORK, COMM, MMAP2, EXIT, KSYMBOL, BPF_EVENT, NAMESPACES, CGROUP, LOST and nothing else;
 *   - end in a sample_id of PP_SIDEBAND_SAMPLE_TYPE, LOST as well: 32 bytes
 *         u32 pid, tid; u64 time (CLOCK_MONOTONIC, ns); u32 cpu, 0; u64 identifier (PP_SIDEBAND_ID);
 *   - are in order of time, and of one time in the order in which they are to be applied;
 *   - tell all of a process that is not forgotten, also what was before `since`: of one whose
 *     FORK was not seen or whose parent is forgotten, what it was made of comes as COMM and MMAP2
 *     with the time at which that held;
 *   - are of processes that were alive at `since` or later, and began no later than `until`;
 *   - take about twice max_memory at most: of those processes that have most mappings, the older ones
 *     are left out if it would be more (`cut`).
 *
 * KSYMBOL and BPF_EVENT of a program that is loaded have the time when its loading began; of one that
 * was unloaded the time when that was seen, or when its place in memory had another: at each take,
 * else about once a second. Code that is none's (trampolines) is not told of.
 *
 * MMAP2 of what is mapped executable, with device and inode: the kernel cannot tell a build id to us
 * alone (daemon/engine/sideband.c). Kernel text and modules are not in it: whoever may know their
 * addresses reads them from /proc.
 *
 * From the first release on it only ever grows: what is new goes where `reserved` was, or behind.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>

#define PP_SIDEBAND_MAGIC 0x4553414244495350ULL /* "PSIDBASE" */
#define PP_SIDEBAND_VERSION 1
#define PP_SIDEBAND_ID 1 /* no source of an event has it in a perf.data file of ours */
#define PP_SIDEBAND_SAMPLE_TYPE \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define PP_SIDEBAND_ID_SIZE 32

struct pp_sideband_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size; /* where the records begin: sizeof this, multiple of 8 */
	uint64_t size;	      /* bytes of all, header included */
	uint64_t records;
	uint64_t since, until; /* as asked for; ns */
	/* whatever ended before this time may be missing: when the keeping began,
	 * or the end of the youngest process that was forgotten; ns */
	uint64_t complete;
	uint64_t began; /* when the keeping began, ns */
	uint64_t lost;	/* records that the kernel could not deliver since then */
	/* processes whose data had to go, for the limit's sake, since then */
	uint64_t forgotten;
	uint64_t processes;	     /* that are kept, ended ones included */
	uint64_t ended;		     /* those of them that have ended */
	uint64_t memory, max_memory; /* bytes the table takes, and may */
	/* processes of which this file has not all mappings, because it would be too large */
	uint64_t cut;
	/* records that came with a time that cannot be, or much too late; they are told
	 * as of when they came */
	uint64_t untimed;
	uint64_t unseen; /* BPF programs that came and went between two looks */
};
