/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests to the keeper and its answers. The keeper holds the sideband's perf rings, which end
 * with their mapping, the table made from them, and AUX areas, which end with theirs, too;
 * therefore it is never restarted.
 *
 * One SOCK_SEQPACKET packet is one request with its descriptors, or one answer, of exactly the size
 * of its struct, in host byte order. The keeper serves its own user (the broker) and root, on any
 * number of connections, and answers each request, in order. After an upgrade a peer may meet an
 * older keeper: if an answer has another `abi` than its own, the peer may send nothing but HELLO
 * and END, whose shapes never change, and starts a new keeper.
 */
#pragma once

#include <stdint.h>

#include "protocol.h"

#define PP_KEEP_ABI 4
#define PP_KEEP_ITERATORS 3 /* descriptors of TASKS */
#define PP_KEEP_CPUS 250    /* in a request or an answer; fewer than fds of a packet */

enum pp_keep_type {
	PP_KEEP_HELLO = 1,     /* answer: its abi, pid and status; changes nothing */
	PP_KEEP_CPUS_HELD = 2, /* page of cpus[] from number `first` on: answer: cpus, more */
	/* cpus[], n_cpus and as many perf descriptors: it maps these rings in place of its rings
	 * for those CPUs; the first ones start the keeping */
	PP_KEEP_RINGS = 3,
	/* descriptors: iterators (daemon/tasks.h) of tasks and of their mappings, which it reads
	 * to their end, for what runs already; sent after the first RINGS, so that nothing is
	 * missed in between. It opens the third one, of BPF programs, at each look: that one is
	 * O_PATH, and opening /proc/self/fd/N makes a new iterator of it */
	PP_KEEP_TASKS = 4,
	PP_KEEP_LIMIT = 5, /* max_memory: bytes that the table may take */
	/* since, until: answer: with one descriptor (proto/sideband.h), `size` */
	PP_KEEP_TAKE = 6,
	PP_KEEP_DROP = 7, /* sideband is not wanted any more: frees rings and table */
	PP_KEEP_END = 8,  /* drops everything, AUX areas too, then exits */
	/* page of areas[] behind that of `event` and CPU `first` (event 0: from the beginning):
	 * answer: areas, n_areas, more */
	PP_KEEP_AREAS_HELD = 9,
	/* event, aux_size, what (1: it is paused), cpus[], n_cpus, n_beside, and for each CPU a perf
	 * descriptor, which is disabled, and n_beside of perf events in its group: maps their AUX
	 * areas, in place of its areas for those CPUs, and a ring of aux_size for the samples of
	 * those beside them, and enables them. After an error the CPUs before the first that failed
	 * have theirs */
	PP_KEEP_AREAS = 10,
	PP_KEEP_AREAS_PAUSE = 11, /* event, what: 1: stops its tracing; 0: resumes it */
	PP_KEEP_AREAS_DROP = 12,  /* event, first: its area of this CPU; UINT32_MAX: all */
	/* event, first: the CPU: answer: with one descriptor (proto/auxtrace.h), `size`. ENODATA:
	 * there is no such area */
	PP_KEEP_AREAS_TAKE = 13,
};

#define PP_KEEP_AREAS_MAX 4096 /* of all events */

struct pp_keep_cpu {
	uint32_t cpu;
	uint32_t reserved;
	/* the CPU's generation when its event was opened (daemon/hotplug.h); kept for the broker */
	uint64_t generation;
};

struct pp_keep_area {
	uint64_t event;
	uint64_t generation; /* as above */
	uint64_t aux_size;
	uint32_t cpu;
	uint32_t paused;
};

struct pp_keep_status {
	uint64_t keeping; /* 1: it has rings; 0: it has none */
	/* 1: TASKS is done and need not be repeated; 0 also after live processes were dropped, at
	 * most once a minute */
	uint64_t tasks;
	uint64_t began; /* began … forgotten: as in struct pp_sideband_header */
	uint64_t complete;
	uint64_t lost, forgotten, processes, ended;
	uint64_t memory, max_memory;
	uint64_t cpu_time;	  /* the keeper's CPU time since its start, ns */
	uint64_t untimed, unseen; /* as in struct pp_sideband_header */
	uint64_t reserved[2];
};

struct pp_keep_request {
	uint32_t abi;
	uint32_t type;
	uint64_t serial;
	uint32_t n_cpus;       /* RINGS, AREAS */
	uint32_t first;	       /* CPUS_HELD; a CPU of AREAS_… */
	uint64_t max_memory;   /* LIMIT */
	uint64_t since, until; /* TAKE; CLOCK_MONOTONIC, ns; until 0: now */
	uint64_t event;	       /* AREAS…; the id that its rings have */
	uint64_t aux_size;     /* AREAS: bytes of each */
	uint32_t what;	       /* AREAS, AREAS_PAUSE */
	uint32_t n_beside;     /* AREAS */
	struct pp_keep_cpu cpus[PP_KEEP_CPUS];
};

struct pp_keep_answer {
	uint32_t abi;
	int32_t error; /* 0; or a positive errno value. TAKE: ENODATA: nothing is kept */
	uint64_t serial;
	uint32_t pid;
	uint32_t n_cpus, more; /* CPUS_HELD, AREAS_HELD: more 1: ask again, behind the last one */
	uint32_t n_areas;
	uint64_t size; /* TAKE, AREAS_TAKE: bytes of the file */
	struct pp_keep_status status;
	struct pp_keep_cpu cpus[PP_KEEP_CPUS];
	struct pp_keep_area areas[PP_KEEP_CPUS];
};

/* Converts an answer for clients. Only the broker knows why nothing is kept, so it adds the
 * reason. */
void pp_keep_describe(const struct pp_keep_answer *a, struct pp_msg_sideband_reply *ret);
