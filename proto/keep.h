/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is asked of the keeper, and what it answers. It holds the perf rings of sideband, which end
 * with their mapping, and the table made of them, and is therefore what is never restarted.
 *
 * One SOCK_SEQPACKET packet is one request with its descriptors, or one answer, of exactly the size
 * of its struct, in host byte order. It listens to its own user (the broker) and to root, any number
 * of connections, and answers each request, in turn. An upgrade meets an older keeper: who gets
 * another `abi` than its own in an answer must not send it anything but HELLO and END, whose shapes
 * never change, and begins anew with another one.
 */
#pragma once

#include <stdint.h>

#include "protocol.h"

#define PP_KEEP_ABI 2
#define PP_KEEP_ITERATORS 3 /* descriptors of TASKS */
#define PP_KEEP_CPUS 250 /* CPUs of a request or an answer, at most; fewer than fds of a packet */

enum pp_keep_type {
	PP_KEEP_HELLO = 1,     /* answer: its abi, pid, what it has (status); nothing is changed */
	PP_KEEP_CPUS_HELD = 2, /* page of cpus[] from number `first` on: answer: cpus, more */
	/* cpus[], n_cpus and as many perf descriptors: it maps them in place of
	 * what it has of those CPUs; the first ones begin the keeping */
	PP_KEEP_RINGS = 3,
	PP_KEEP_TASKS = 4, /* descriptors: iterators (daemon/tasks.h), of tasks and of their
			       * mappings, which it reads to their end, for what runs already; comes
			       * after the first RINGS, so that nothing falls in between. The third, of
			       * BPF programs, it opens whenever it looks which there are: O_PATH, what
			       * /proc/self/fd/N makes a new iterator of */
	PP_KEEP_LIMIT = 5, /* max_memory: bytes that the table may take */
	/* since, until: answer: with one descriptor (proto/sideband.h), `size` */
	PP_KEEP_TAKE = 6,
	PP_KEEP_DROP = 7, /* nothing records any more: rings and table go */
	PP_KEEP_END = 8,  /* the same, and it exits */
};

struct pp_keep_cpu {
	uint32_t cpu;
	uint32_t reserved;
	/* of the CPU when its event was opened (daemon/hotplug.h); kept for who asks */
	uint64_t generation;
};

struct pp_keep_status {
	uint64_t keeping; /* 1: it has rings; 0: there is nothing */
	/* 1: TASKS has been done since the keeping began, and need not be again;
	 * 0 also when processes that live had to go, once in a minute at most */
	uint64_t tasks;
	uint64_t began; /* these as in struct pp_sideband_header */
	uint64_t complete;
	uint64_t lost, forgotten, processes, ended;
	uint64_t memory, max_memory;
	uint64_t cpu_time;	  /* ns that the keeper has run since its start, all of it */
	uint64_t untimed, unseen; /* as in struct pp_sideband_header */
	uint64_t reserved[2];
};

struct pp_keep_request {
	uint32_t abi;
	uint32_t type;
	uint64_t serial;
	uint32_t n_cpus;       /* RINGS */
	uint32_t first;	       /* CPUS_HELD */
	uint64_t max_memory;   /* LIMIT */
	uint64_t since, until; /* TAKE; CLOCK_MONOTONIC, ns; until 0: now */
	struct pp_keep_cpu cpus[PP_KEEP_CPUS];
};

struct pp_keep_answer {
	uint32_t abi;
	int32_t error; /* 0; or a positive errno value. TAKE: ENODATA: nothing is kept */
	uint64_t serial;
	uint32_t pid;
	uint32_t n_cpus, more; /* CPUS_HELD: more 1: ask again, after the last */
	uint32_t reserved;
	uint64_t size; /* TAKE: bytes of the file */
	struct pp_keep_status status;
	struct pp_keep_cpu cpus[PP_KEEP_CPUS];
};

/* What clients are told of it; why nothing is kept they learn from who asked. */
void pp_keep_describe(const struct pp_keep_answer *a, struct pp_msg_sideband_reply *ret);
