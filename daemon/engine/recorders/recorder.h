/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorder: a program that turns a source's events into records in the rings, and the links that
 * make it run. There are five: generic.c (tracepoints, emitted from the format), hot.c (tracepoints
 * with a tp_btf program of their own), overflow.c (sampling events), probe.c (kprobes and uprobes,
 * emitted), aux.c (the PMU traces by itself, and no program writes records). None knows names, pins
 * or users.
 *
 * The kernel never calls the recording program itself but its entry: a program of two instructions
 * that tail-calls it through a slot of a PROG_ARRAY. A change of the event replaces the slot's
 * program: each event runs the old program or the new one, and nothing is attached again. While
 * paused, the slot has a program that does nothing: an empty slot would do, but emptying it takes
 * the kernel a grace period. Misses are counted with the entry.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/engine/failure.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/kernel/tracefs.h"
#include "daemon/engine/recorders/syscall.h"
#include "daemon/order.h"

struct recorder;

/* One event that is recorded under a name. Globs are resolved, so there can be more of these than
 * terms in the text. */
struct source {
	const struct pp_spec *spec;	     /* period, flags */
	const struct pp_source *parsed;	     /* its term */
	const struct pp_filter_node *filter; /* NULL: none */
	size_t n_filter;
	struct tracepoint *tp; /* NULL: a sampling event; probes: generated */
	uint64_t id;	       /* in each record (PERF_SAMPLE_IDENTIFIER); 0: not written */
	bool is_of_many;       /* from a glob, in an event of more than SYSCALL_MANY */
	uint32_t term;	       /* its number in the event's text */

	/* Set by plan(). */
	const struct recorder *recorder;
	uint64_t sample_type;  /* without PERF_SAMPLE_IDENTIFIER */
	uint32_t spill_size;   /* the largest record, with the identifier if it has an id */
	enum pp_missed missed; /* whether this kernel counts misses */
	bool can_nest;	       /* its program can interrupt itself on a CPU */
	bool is_preemptible;   /* a task can be preempted in it, and others run it meanwhile */
	struct perf_event_attr attr;
	bool is_carried;	   /* its entry is on raw_syscalls: see syscall.h */
	struct syscall_facts call; /* if it is carried */
};

/* Several carried sources share one entry per class, the first one's: each has the slot of its
 * call's number. */
static inline bool source_shares_entry(const struct source *s)
{
	return s->is_carried && s->id;
}

/* What a program of an armed event asks first: see emit/guard.h. */
struct recorder_guard {
	int tape_fd;   /* the event's tape (daemon/trigger.h) */
	uint32_t side; /* the program's */
	int sides_fd;  /* PROG_ARRAY: PP_SIDES programs of the source, */
	uint32_t base; /* from here on */
	/* A closing side: each record is checked against the window. */
	bool closes;
	uint32_t other; /* then: the side that the tape turns to */
	int firings_fd; /* then: the instance's ring buffer of firings, */
	int sending_fd; /* and which CPUs are sending (bpf/send.bpf.h) */
};

/* Which occurrences of a trigger's event make a record: see emit/condition.h. */
struct recorder_condition {
	struct pp_condition is;
	int trigger_fd; /* of a struct pp_trigger */
	int pairs_fd;	/* an array map of one element: PP_PAIRS_MAX of struct pp_pair */
};

/* The function that programs call to fire a trigger (recorders/fire.h). */
struct recorder_fire {
	struct bpf_insn *insns;
	size_t n;
};

#define RECORDER_FIRE_STACK 32 /* bytes of stack, of the caller's 512 */

/* Where and how records are written, fixed when a program is loaded. */
struct recorder_target {
	int fd;		      /* ARRAY_OF_MAPS, a slot per possible CPU; empty slot: not recorded */
	int ringless_fd;      /* counts events that find no ring, by CPU; -EBADF: not counted */
	uint32_t header_size; /* of each ring: see proto/ring.h */
	uint64_t data_size;
	uint32_t spill_size; /* no record may be larger */
	bool nests;	     /* nested writers: reserve and commit in proto/ring.h's second way */

	/* The rings that are in their slots already, for programs with direct access to them. */
	const unsigned *cpu; /* their CPUs, ascending */
	const int *ring_fd;
	unsigned n;

	uint64_t max_rate; /* records per second and CPU; 0: no limit */
	int wakeup_fd;	   /* the ring buffer map for wakeups (bpf/wakeup.h); -EBADF: none wanted */
	int sending_fd;	   /* if wanted: which CPUs are sending (bpf/send.bpf.h) */
	uint64_t event_id; /* the content of a wakeup */
	const struct recorder_guard *guard; /* NULL: the event is not armed */
	const struct recorder_fire *fire;   /* NULL: it is no trigger's event */
	const int *tell_fd; /* likewise: PROG_ARRAY with the program that tells of firings */
	const struct recorder_condition *condition; /* NULL: every occurrence makes a record */

	/* One source may have several programs, each of which runs for some of its occurrences. */
	bool drops; /* writes no record */
	int *shared; /* the map in which they count together; -EBADF: to be made; NULL: each has one */
};

/* A slot of a PROG_ARRAY, where an entry finds its program. */
struct recorder_slot {
	int fd;
	uint32_t index;
};

/* What all programs of a source have in common, so that one can go on to another. */
struct recorder_class {
	enum bpf_prog_type type;
	enum bpf_attach_type expected; /* 0: the type has none */
	uint32_t attach_btf_id;	       /* 0: the type has none */
	int32_t result;		       /* tracepoints: 1, so that others see them; all others 0 */
};

/* Whether the program decides by the event's fields before there is a record. */
static inline bool recorder_filters(const struct source *source,
				    const struct recorder_target *target)
{
	return source->n_filter || target->condition;
}

/* Whether a program in C has work for filter_hook() (bpf/ring.bpf.h). */
static inline bool recorder_hooks(const struct source *source, const struct recorder_target *target)
{
	return recorder_filters(source, target) || target->fire;
}

struct recorder {
	enum pp_recorder kind;

	/*
	 * Can it record this source? 0: source->recorder and the fields after it are set.
	 * -EOPNOTSUPP: another recorder may. Another -errno, with a message in *f: none can.
	 */
	int (*plan)(struct source *source, struct failure *f);

	/*
	 * Loads the recording program. *ret_fd is the caller's. -errno of the kernel; or with a
	 * message in *f: the filter does not fit the source (-EINVAL: no such field, text for a
	 * number; -ENOENT: no such cgroup).
	 *
	 * A program decides in this order: filter, condition, max_rate (counted in limit.limited), reserve.
	 * All recorders that share a ring use one clock for limit.window: bpf_jiffies64() *
	 * kernel_tick() (kernel.h); the kernel refuses bpf_ktime_get_coarse_ns() to tracing
	 * programs. The wakeup follows the commit. Unused features emit no code.
	 */
	int (*load)(const struct source *source, const struct recorder_target *target, int *ret_fd,
		    struct failure *f);

	/* -errno of the kernel. */
	int (*class)(const struct source *source, struct recorder_class *ret);

	/* Loads the entry. Two sources may have their slots in one PROG_ARRAY if entry_class
	 * returns the same string for both. Sources of a class that share an entry
	 * (source_shares_entry()) have only one. */
	int (*entry)(const struct source *source, const struct recorder_slot *slot, int *ret_fd);
	const char *(*entry_class)(const struct source *source);

	/* Makes the entry run: there, or on all CPUs if not per_cpu (at: any online one). The
	 * link's fd is the caller's. -ENODEV: the CPU is offline; -ESRCH: the task has ended; -E2BIG: the
	 * tracepoint has 64 programs. */
	int (*attach)(const struct source *source, int entry_fd, const struct perf_place *at,
		      int *ret_fd);
	bool counts_missed; /* its recording program does, so it must run for each occurrence, even
			     * if no record is wanted of it (recorder_target.drops) */
	bool per_cpu;	    /* attach on each CPU */
	bool is_direct; /* its programs access the rings that exist at load time without a look-up:
			 * worth loading again when more are added */
};

extern const struct recorder recorder_generic;
extern const struct recorder recorder_hot;
extern const struct recorder recorder_overflow;
extern const struct recorder recorder_probe;
extern const struct recorder recorder_aux;

/* The attributes of the perf event that traces into an AUX area, disabled; or of one of its group, which
 * that one enables. tp: of a tracepoint's; else NULL. */
void recorder_aux_attr(const struct pp_spec *spec, const struct pp_source *source,
		       const struct tracepoint *tp, struct perf_event_attr *ret);

/* Whether recorder_hot, if it can record this tracepoint, misses no more of its events on this
 * kernel than the generic one. */
bool hot_is_exact(const struct tracepoint *tp);
