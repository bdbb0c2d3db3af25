/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every recorder is: a program that turns a source's events into records in the rings, and
 * the links that make it run. Four of them: generic.c (tracepoints, emitted from the format),
 * hot.c (tracepoints with a tp_btf program of their own), overflow.c (sampling events), probe.c
 * (kprobes and uprobes, emitted). None of them knows names, pins or who asked.
 *
 * What the kernel calls is never the recording program itself but its entry: a program of two
 * instructions that tail-calls it through a slot of a PROG_ARRAY. The slot is the word that flips
 * when an event is changed: every event that happens runs the old program or the new one, and
 * nothing is attached anew. In a pause a program that does nothing is in the slot: an empty one
 * would do, but to empty it takes the kernel a grace period. Whom the kernel shuts out is counted
 * with the entry.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/kernel/tracefs.h"
#include "daemon/engine/recorders/syscall.h"
#include "daemon/order.h"

struct recorder;

/* One event that is recorded under a name: what it is. Globs are resolved, so that there are
 * more of these than terms in the text. */
struct source {
	const struct pp_spec *spec;	     /* period, flags */
	const struct pp_source *parsed;	     /* its term */
	const struct pp_filter_node *filter; /* NULL: none */
	size_t n_filter;
	struct tracepoint *tp; /* NULL: a sampling event. Of probes: made up, with their format */
	uint64_t id;	       /* written with each record (PERF_SAMPLE_IDENTIFIER); 0: it is not */
	bool is_of_many;       /* a glob stands for it, in an event of more than SYSCALL_MANY */

	/* Set by plan(). */
	const struct recorder *recorder;
	uint64_t sample_type;  /* without PERF_SAMPLE_IDENTIFIER */
	uint32_t spill_size;   /* the largest record, with the identifier if it has an id */
	enum pp_missed missed; /* whether this kernel tells who was shut out */
	bool can_nest;	       /* its program can run inside itself on a CPU */
	bool is_preemptible;   /* a task can be preempted in it, so that others come between */
	struct perf_event_attr attr;
	bool is_carried;	   /* its entry is a program of raw_syscalls: see syscall.h */
	struct syscall_facts call; /* if it is carried */
};

/* Of several that are carried each has the slot of its number, and the first one's entry finds all
 * of its class. */
static inline bool source_shares_entry(const struct source *s)
{
	return s->is_carried && s->id;
}

/* Where and how the records go, fixed when a program is loaded. */
struct recorder_target {
	int fd;		      /* ARRAY_OF_MAPS, a slot per possible CPU; empty slot: not recorded */
	int ringless_fd;      /* counts, by CPU, what would have been; -EBADF: that is as wanted */
	uint32_t header_size; /* of each ring: see proto/ring.h */
	uint64_t data_size;
	uint32_t spill_size; /* no record may be larger */
	bool nests;	     /* several writers: reserve and commit by proto/ring.h's second way */

	/* The rings that are in their slots already, for programs that go there directly. */
	const unsigned *cpu; /* their CPUs, upward */
	const int *ring_fd;
	unsigned n;

	uint64_t max_rate; /* records a second and CPU; 0: no limit */
	int wakeup_fd;	   /* the ring buffer map for wakeups (bpf/wakeup.h); -EBADF: none wanted */
	uint64_t event_id; /* what a wakeup says */
};

/* A slot of a PROG_ARRAY, where an entry finds its program. */
struct recorder_slot {
	int fd;
	uint32_t index;
};

struct recorder {
	enum pp_recorder kind;

	/*
	 * Can it record this? 0 with source->recorder and what follows it set; -EOPNOTSUPP if
	 * another recorder must; another -errno if none can, with a sentence in *f.
	 */
	int (*plan)(struct source *source, struct failure *f);

	/*
	 * Loads the recording program. *ret_fd is the caller's. -errno of the kernel; or with a
	 * sentence in *f: a filter that does not fit the source (-EINVAL: no such field, text for
	 * a number; -ENOENT: no such cgroup).
	 *
	 * In this order a program decides: filter, max_rate (counted in limit.limited), reserve.
	 * All recorders that share a ring go by one clock for limit.window: bpf_jiffies64() *
	 * kernel_tick() (kernel.h). bpf_ktime_get_coarse_ns() is refused to tracing programs.
	 * After the commit: the wakeup. What is not asked for costs no instruction.
	 */
	int (*load)(const struct source *source, const struct recorder_target *target, int *ret_fd,
		    struct failure *f);

	/* Loads the entry. Two sources may have their slots in one PROG_ARRAY if entry_class says
	 * the same string for both. One entry is for all of a class that share it
	 * (source_shares_entry()). */
	int (*entry)(const struct source *source, const struct recorder_slot *slot, int *ret_fd);
	const char *(*entry_class)(const struct source *source);

	/* Makes the entry run: on this CPU, or everywhere at once if not per_cpu (cpu: any that is
	 * online). The link's fd is the caller's. -ENODEV: the CPU is offline; -E2BIG: the
	 * tracepoint has its 64 programs. */
	int (*attach)(const struct source *source, int entry_fd, unsigned cpu, int *ret_fd);
	bool per_cpu;	/* attach once per CPU */
	bool is_direct; /* its programs go to the rings there are when they are loaded without a
			 * look-up: where more come it is worth while to load them anew */
};

extern const struct recorder recorder_generic;
extern const struct recorder recorder_hot;
extern const struct recorder recorder_overflow;
extern const struct recorder recorder_probe;

/* Whether recorder_hot, if it can take this tracepoint, misses no more of it on the running kernel
 * than the generic one does. */
bool hot_is_exact(const struct tracepoint *tp);
