/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders: the whole interface between broker and engine.
 *
 * One SOCK_SEQPACKET packet is one order or one answer, of exactly its type's size, in host byte
 * order (both ends are of one build; `abi` proves it). Only the answers to SIDEBAND, ADOPT, HANDOUT, DESCRIBE and
 * AUX have descriptors.
 * The engine takes orders one at a time, in order, and checks every field again (pp_order_check),
 * as if the broker had been taken over. One answer comes unasked: RELEASED.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "daemon/filter.h"
#include "daemon/trigger.h"
#include "proto/catalog.h"
#include "proto/protocol.h"

#define PP_ORDER_ABI 16
#define PP_CPUS_MAX 4096    /* CPU numbers are below this */
#define PP_TP_NAME_SIZE 128 /* of a tracepoint's system or name, with its NUL */
#define PP_SENTENCE_SIZE 512
#define PP_AUX_SIZE_MIN (64 << 10)
#define PP_AUX_SIZE_MAX (64ULL << 20) /* of a CPU's AUX area */
#define PP_AUX_RECORDS (32ULL << 10)  /* of perf's own ring beside it; at least a page */
/* Bytes of an area in a sample, at most: a record has 64 KiB, and perf allows as many. */
#define PP_AUX_SAMPLE_MAX (60U << 10)
/* Operations from one that Arm SPE samples to the next; the other PMUs trace all. */
#define PP_AUX_PERIOD 4096

struct pp_cpumask {
	uint64_t bits[PP_CPUS_MAX / 64];
};

enum pp_source_kind {
	PP_SOURCE_TRACEPOINT = 1, /* system and name may be globs: * ? [...] */
	PP_SOURCE_SAMPLING = 2,	  /* any perf event that counts and overflows, breakpoints too */
	PP_SOURCE_KPROBE = 3,	  /* name (a kernel function) + offset */
	PP_SOURCE_UPROBE = 4,	  /* path + offset in the file */
	/* a perf event whose PMU traces into an AUX area. The other sources of its event, if there are any, are
	 * perf events of its group, sampling or tracepoints, and the kernel writes their records */
	PP_SOURCE_AUX = 5,
};

/* Bits of pp_source.exclude: modes in which a sampling event does not count. */
#define PP_EXCLUDE_USER (1U << 0)
#define PP_EXCLUDE_KERNEL (1U << 1)
#define PP_EXCLUDE_HV (1U << 2)
#define PP_EXCLUDE_HOST (1U << 3)
#define PP_EXCLUDE_GUEST (1U << 4)
#define PP_EXCLUDE_IDLE (1U << 5)

/* What an event in the group of one with an AUX area does to its tracing: the kernel's numbers,
 * perf_event_attr.aux_action (since Linux 6.13). */
enum pp_aux_action {
	PP_AUX_START_PAUSED =
		1, /* of the AUX event itself: it traces when another has resumed it */
	PP_AUX_PAUSE = 2,
	PP_AUX_RESUME = 4,
};

#define PP_TERMS_MAX 16	 /* events and globs that one name's text can list */
#define PP_PATH_SIZE 256 /* of a uprobe's file with its NUL */
#define PP_PROBE_ARGS_MAX 8
#define PP_PROBE_NAME_SIZE 32 /* of an argument with its NUL */

/* The place of a probe's argument. */
enum pp_probe_place {
	PP_PROBE_REGISTER = 1, /* number: word of struct pt_regs, as offset / 8 */
	PP_PROBE_ARGUMENT = 2, /* number: 1..6, by the machine's calling convention */
	PP_PROBE_RETURN = 3,   /* the return value */
	PP_PROBE_CONSTANT = 4, /* value */
};

struct pp_probe_arg {
	char name[PP_PROBE_NAME_SIZE]; /* [a-zA-Z_][a-zA-Z0-9_]* */
	uint32_t place;		       /* enum pp_probe_place */
	uint32_t number;
	int64_t value;	       /* CONSTANT */
	uint32_t dereferences; /* 0..4: how often it is followed, by offsets[], innermost first */
	int32_t offsets[4];
	uint32_t size;	    /* bytes: 1, 2, 4, 8 */
	uint32_t is_signed; /* 0, 1 */
	uint32_t is_hex;    /* 0, 1: shown so */
	uint32_t is_string; /* 0, 1: what it points at, up to PP_PROBE_STRING_SIZE; as ftrace has it
			     * the last dereference finds the text itself: +8(%si):string is the
			     * text at si + 8, arg1:string that at arg1 (both size 8) */
};

#define PP_PROBE_STRING_SIZE 64 /* a string argument's field, with its NUL */

/* One event or glob of an event's text, parsed. */
struct pp_source {
	uint32_t kind;			   /* enum pp_source_kind */
	uint32_t type;			   /* sampling, AUX: perf_event_attr.type */
	uint64_t config, config1, config2; /* sampling, AUX */
	uint32_t bp_type;		   /* breakpoints (config1: address; config2: length) */
	uint32_t exclude;		   /* sampling, AUX: PP_EXCLUDE_* */
	uint32_t precise_ip;		   /* sampling: 0..3 */
	/* sampling, AUX: 1: the PMU counts on the CPUs in its cpumask only */
	uint32_t any_cpu;
	union {
		uint32_t is_return;  /* probes: at the function's return */
		uint32_t aux_action; /* all others: enum pp_aux_action */
	};
	union {
		uint32_t n_args; /* probes */
		uint32_t
			aux_sample; /* beside an AUX area: so many bytes of it are in each sample */
	};
	uint64_t offset;	      /* probes: into the function; uprobes: into the file */
	uint64_t ref_ctr_offset;      /* uprobes: of the semaphore in the file; or 0 */
	uint32_t filter, n_filter;    /* its filter: nodes of the parsed event; n_filter 0: none */
	char system[PP_TP_NAME_SIZE]; /* tracepoint: [a-zA-Z0-9_*?[\]-]+ */
	char name[PP_TP_NAME_SIZE];   /* tracepoint, or a probe's function or label */
	char text[PP_TP_NAME_SIZE * 2]; /* this source alone, as written (cut if longer) */
	char path[PP_PATH_SIZE];	/* uprobe: absolute */
	struct pp_probe_arg args[PP_PROBE_ARGS_MAX];
};

/* A persistent event, as ordered; the broker keeps this. */
struct pp_spec {
	char ns[PP_NAME_SIZE];
	char name[PP_NAME_SIZE];
	char event[PP_EVENT_TEXT_SIZE]; /* the text, for people */
	char filter[PP_FILTER_SIZE];	/* the filter as text; empty: none */
	uint64_t data_size;		/* of each CPU's ring, or of its AUX area: a power of two */
	uint64_t period;		/* sampling: period, or Hz with PP_EVENT_FREQ; > 0 */
	/* Pins of earlier versions have 64 bits for the first of these, and no PP_EVENT_USER_STACK. */
	uint64_t max_rate : 48;	  /* records a second and CPU; 0: no limit */
	uint64_t stack_user : 16; /* bytes of a record's user stack; 0: none, and no registers */
	uint32_t flags;		  /* PP_EVENT_* that describe it: no SHARE, BOOT, COPIES */
	uint32_t owner, group;	  /* of the namespace */
	/* Likewise. Pins of earlier versions have 32 bits for it, in which the mode comes first. */
	uint16_t mode;
	uint16_t
		max_stack; /* with PP_EVENT_CALLCHAIN: entries of a chain, at most; 0: PP_MAX_STACK */
	uint32_t creator; /* uid to charge */
	/* a second and CPU, at most, if it samples: what is charged */
	uint32_t samples;
	struct pp_cpumask cpus; /* the CPUs asked for; empty with PP_EVENT_ALL_CPUS */
};

/* The parsed event. The struct has the maximum size; packets and pins end behind the parts
 * in use. */
struct pp_parsed {
	uint32_t n_sources, n_nodes;
	struct pp_source sources[PP_TERMS_MAX];
	struct pp_filter_node nodes[PP_FILTER_NODES_MAX];
};

/* Facts of the moment about an event. */
#define PP_NOW_INCOMPLETE \
	(1U << 0)		/* a CPUS order would change something: a CPU that is online, \
				     * and wanted, does not record */
#define PP_NOW_ARMED (1U << 1)	/* a trigger can turn it */
#define PP_NOW_TURNED (1U << 2) /* one has: a TURN order is due */
#define PP_NOW_CLOSING \
	(1U << 3) /* one has let it go on: a TURN order is due when its window is over */
#define PP_NOW_WINDOWS (1U << 4) /* a trigger can let it go on */
#define PP_NOW_SWAP (1U << 5)	 /* it has a second set of rings */
/* A trigger has stopped it: a TURN order, which is due if it is TURNED, too, pauses it. */
#define PP_NOW_STOPPED (1U << 6)
#define PP_NOW_STOPS (1U << 7) /* a trigger can stop it */
#define PP_NOW_ENDED (1U << 8) /* its target has ended */

/* A persistent event as it exists: what recovery finds. */
struct pp_event {
	uint64_t id;	 /* of the name */
	uint64_t shares; /* the id of the oldest name of its rings, if that is another; else 0 */
	/* the id in rings, sources, wakeups and the registry's directory: that of the name that they
	 * were made with, which may be gone */
	uint64_t origin;
	uint64_t created, created_mono; /* ns */
	uint32_t recorder;		/* enum pp_recorder; of the first source */
	uint32_t missed_unknown;	/* enum pp_missed */
	uint64_t sample_type;
	uint32_t header_size, spill_size; /* of its rings */
	uint32_t n_sources;		  /* globs resolved */
	uint32_t set;			  /* number of the ring set: from 1, one more with each */
	uint32_t paused;		  /* 0, 1 */
	uint32_t catalog_size;		  /* bytes of the catalog's map; 0: no catalog */
	uint32_t now;			  /* PP_NOW_* bits; not written down */
	uint32_t weight; /* each of its programs counts as so many where it runs, for
			  * what its filter compares; 0: as 1 */
	uint64_t memory; /* bytes of all its rings, both sets if it is armed, and the catalog */
	struct pp_cpumask rings; /* CPUs with a ring */
	struct pp_spec spec;
};

/* Whether a trigger has paused it. */
static inline bool pp_is_paused_by_trigger(const struct pp_event *event)
{
	return event->paused && event->now & PP_NOW_STOPPED;
}

/* Orphan rings: they belong to no event any more, and somebody has them mapped. */
struct pp_orphans {
	uint64_t id;	/* their own: unique, as events' ids are; not the event's */
	uint64_t bytes; /* still held; 0: all gone */
	uint32_t creator;
	uint32_t reserved;
	char ns[PP_NAME_SIZE];
};

enum pp_order_type {
	PP_ORDER_ENUMERATE =
		1, /* answers: one FOUND per event, HELD per event with orphans, then DONE */
	/* spec, parsed event, what: with PP_EVENT_PROGRAM the id of the creator's program, else 0;
	 * answer: DONE with the event, or FAILED */
	PP_ORDER_CREATE = 2,
	PP_ORDER_DELETE = 3, /* id, what: PP_DELETE_CLAIMED or 0; answer: DONE (out of sight;
			      * reaping goes on) with what it was and the orphan rings, which are
			      * charged until RELEASED; or FAILED. If others share its rings, the
			      * one with the lowest id is charged for them from now on (its shares
			      * is 0, memory the rings'; the others share with it), there are no
			      * orphan rings, and the answer's event.shares is that id; or, if the
			      * allowance has no room for that, all of these names are gone */
	/* id, what, spec (filter, data_size, max_rate, period, samples, flags), parsed event (nodes
	 * for the filter; no sources); answer: DONE with the event and, after a resize, the old
	 * rings, which are orphans now; or FAILED */
	PP_ORDER_CHANGE = 4,
	PP_ORDER_PAUSE = 5, /* id, what: 1 or 0; answer: DONE with the event, or FAILED */
	/* id: the event with the rings; spec: the new name, its namespace's rights, creator
	 * and flags; answer: DONE with the event, or FAILED */
	PP_ORDER_ALIAS = 6,
	/* spec: ns, group, mode, for all files of the namespace; answer: DONE,
	 * or FAILED */
	PP_ORDER_RIGHTS = 7,
	/* id, spec.cpus: CPUs that came online, and that rings may be made for. The event gets a
	 * ring on each wanted one that has none (existing rings keep their records), and counters
	 * that died with a CPU are attached anew. It is no failure if nothing has to be done, or if
	 * a CPU is offline again. Answer: DONE with the event, or FAILED */
	PP_ORDER_CPUS = 8,
	/* spec.cpus: at most PP_SIDEBAND_CPUS of them; what: PP_SIDEBAND_TASKS (then there may be
	 * no CPUs) or 0; the rest is 0. Answer: DONE; event.rings has those of the CPUs that are
	 * online. With it come a perf event's descriptor for each of them, in this order, which
	 * reports processes and no samples, and, if requested, the iterators for the keeper
	 * (proto/keep.h); or FAILED */
	PP_ORDER_SIDEBAND = 9,
	/* id, what: PP_ARM_SWAP: the event gets a second set of rings, to which a trigger turns it;
	 * else it has none, and a trigger freezes it as it is. PP_ARM_WINDOWS: a trigger may let it
	 * go on for a while; PP_ARM_STOPS: one may stop it. An armed event is left alone, but for
	 * what it lacks of these two. Answer: DONE with the event, or FAILED */
	PP_ORDER_ARM = 10,
	PP_ORDER_DISARM = 11, /* id; likewise, the other way round */
	/* id of a trigger, what: the number of its targets, targets: their ids; those that are not
	 * armed are left out. Answer: DONE, or FAILED */
	PP_ORDER_AIM = 12,
	/* id: an event that a trigger has turned; what: PP_TURN_AGAIN: it is armed again. Its
	 * second set of rings becomes its own; the first is a tape, TAPE tells of it before the
	 * answer, which is DONE with the event and the tape's memory as orphans (id 0: it was not
	 * turned, or its window is not over); or FAILED. Orders that change an event (CHANGE,
	 * PAUSE, and CPUS where a CPU is missing) do that first, and disarm it. An event without a second set is itself the
	 * tape: its id is the event's, and it records again when that is released; until then it
	 * cannot be changed (EBUSY). One that a trigger has stopped is paused, and not armed; with
	 * PP_TURN_STOPPED only such a one is touched. */
	PP_ORDER_TURN = 13,
	/* id of a trigger, what: 0: by hand; 1: for each pair of it that should have ended by now.
	 * Answer: DONE with the last firing, or FAILED (EAGAIN: there is none: its limits, or no
	 * pair is left) */
	PP_ORDER_FIRE = 14,
	PP_ORDER_RELEASE = 15, /* id of a tape. Answer: DONE (RELEASED may follow), or FAILED */
	/* As CREATE, with PP_EVENT_ADOPTED and one source, but nothing is attached, and nobody sees
	 * the event before ATTACH. Answer: DONE with the event and the program that its creator
	 * attaches to perf events; or FAILED. It is forgotten with the broker's connection, or by
	 * DELETE */
	PP_ORDER_ADOPT = 16,
	/* id of such an event; targets: ids of the links; what: their number, and PP_ATTACH_MORE if
	 * others follow. Answer: DONE, or with the last of them DONE with the event, which is in
	 * the registry now; or FAILED: the adoption is forgotten */
	PP_ORDER_ATTACH = 17,
	/* id, what: index of the first descriptor. Answer: DONE with the event, `total`, and up to
	 * PP_FDS_MAX of the descriptors that keep it alive: rings by CPU, the catalog, PROG_ARRAYs,
	 * links; or FAILED */
	PP_ORDER_HANDOUT = 18,
	/* id. Answer: DONE with a sealed file of struct pp_descriptor (proto/descriptor.h); or
	 * FAILED */
	PP_ORDER_DESCRIBE = 19,
	/* id of an event with PP_EVENT_AUX; what: the number of its sources; spec.cpus: at most
	 * PP_SIDEBAND_CPUS / what of them. Answer: DONE; event.rings has those of the CPUs that are
	 * online. With it come, for each of them in this order, the descriptors of the perf events
	 * of all sources, the first disabled: who maps its AUX area enables it, and the others with
	 * it; or FAILED */
	PP_ORDER_AUX = 20,
};

/* Orders that change an event in place. DONE has the event; FAILED has it as it is now, since a part of the order may be
 * done, or id 0 if that cannot be read. */
static inline bool pp_order_is_in_place(uint32_t type)
{
	return type == PP_ORDER_CHANGE || type == PP_ORDER_PAUSE || type == PP_ORDER_CPUS ||
	       type == PP_ORDER_ARM || type == PP_ORDER_DISARM || type == PP_ORDER_TURN;
}

#define PP_ATTACH_MORE (1U << 31)

/* The event goes on as its creator's: its rings are not marked as deleted. -EBUSY: it has other names. */
#define PP_DELETE_CLAIMED 1U

/* An event adopts so many perf events at most, or as many as CPUs are possible, if these are more; */
#define PP_ADOPTED_MAX 64U
/* and each is charged like so many bytes of rings: with its link and pin about 3 KiB on 6.18, and 7 KiB of its
 * task, if that has ended. */
#define PP_PERF_EVENT_MEMORY 16384U

/* A bound event has so many at most, however many threads its process has. Opening one takes the engine
 * 0.2 ms. */
#define PP_BOUND_MAX 4096U

#define PP_ARM_SWAP 1U
#define PP_ARM_WINDOWS 2U
#define PP_ARM_STOPS 4U

#define PP_TURN_AGAIN 1U
#define PP_TURN_STOPPED 2U

#define PP_SIDEBAND_CPUS 250
#define PP_SIDEBAND_TASKS 1

enum pp_answer_type {
	PP_ANSWER_FOUND = 1,
	PP_ANSWER_DONE = 2,
	PP_ANSWER_FAILED = 3,
	PP_ANSWER_HELD = 4,	/* to ENUMERATE: orphan rings, as they are */
	PP_ANSWER_RELEASED = 5, /* unasked, serial 0: orphans that hold less than before */
	/* to ENUMERATE, and unasked with serial 0: orphans (what it holds), event, by */
	PP_ANSWER_TAPE = 6,
	/* unasked, serial 0: the target of an event has ended. event: its id, and nothing else */
	PP_ANSWER_ENDED = 7,
};

/* Limits that the broker cannot check itself, because only the engine resolves globs. UINT32_MAX:
 * no limit. */
struct pp_allowance {
	/* CREATE: the event's; DELETE: 0: the successor's creator may not have it */
	uint32_t sources;
	uint32_t creator_there; /* CREATE, CHANGE: programs of its creator, by their weight, on each
				 * of its tracepoints; DELETE: of the successor's creator */
	uint32_t all_there;	/* the same, for all users */
	uint32_t work;		/* CREATE, CHANGE, PAUSE: sources, and nodes of each one's filter */
	/* CREATE of a bound event: perf events, one for each of its sources and threads, or CPUs */
	uint32_t perf_events;
	uint32_t reserved;
};

struct pp_order {
	uint32_t abi;
	uint32_t type;
	uint64_t serial;
	uint64_t id;   /* all but ENUMERATE, CREATE, ADOPT, RIGHTS, SIDEBAND */
	uint32_t what; /* CHANGE: PP_CHANGE_* bits; or see the type */
	uint32_t reserved;
	struct pp_allowance allowance;	  /* CREATE, ADOPT, CHANGE, PAUSE, DELETE */
	struct pp_spec spec;		  /* CREATE, ADOPT, CHANGE, ALIAS, RIGHTS, CPUS */
	struct pp_trigger_spec trigger;	  /* CREATE with PP_EVENT_TRIGGER */
	struct pp_msg_target target;	  /* CREATE with PP_EVENT_BOUND */
	uint64_t targets[PP_TARGETS_MAX]; /* AIM, ATTACH */
	struct pp_parsed parsed; /* CREATE, ADOPT, CHANGE; other types' packets end before it */
};

struct pp_answer {
	uint32_t abi;
	uint32_t type;
	uint64_t serial;
	int32_t error;			 /* FAILED: errno value, positive */
	uint32_t total;			 /* HANDOUT: descriptors there are */
	char sentence[PP_SENTENCE_SIZE]; /* FAILED: what, on what, why, what to do */
	struct pp_orphans orphans; /* DELETE, CHANGE, TURN (id 0: none), HELD, RELEASED, TAPE */
	struct pp_event event;
	struct pp_trigger_spec trigger; /* of an event with PP_EVENT_TRIGGER: FOUND, CREATE */
	struct pp_msg_target target;	/* of an event with PP_EVENT_BOUND: likewise */
	struct pp_fired by; /* TAPE, FIRE; of an event that a trigger has paused: what did that */
};

static inline void pp_cpumask_set(struct pp_cpumask *m, unsigned cpu)
{
	m->bits[cpu / 64] |= 1ULL << (cpu % 64);
}

static inline void pp_cpumask_clear(struct pp_cpumask *m, unsigned cpu)
{
	m->bits[cpu / 64] &= ~(1ULL << (cpu % 64));
}

static inline bool pp_cpumask_test(const struct pp_cpumask *m, unsigned cpu)
{
	return cpu < PP_CPUS_MAX && (m->bits[cpu / 64] >> (cpu % 64) & 1);
}

static inline unsigned pp_cpumask_count(const struct pp_cpumask *m)
{
	unsigned n = 0;

	for (size_t i = 0; i < PP_CPUS_MAX / 64; i++)
		n += (unsigned)__builtin_popcountll(m->bits[i]);
	return n;
}

/* The first CPU in the mask that is no lower than this one; PP_CPUS_MAX: there is none. */
static inline unsigned pp_cpumask_next(const struct pp_cpumask *m, unsigned cpu)
{
	for (; cpu < PP_CPUS_MAX; cpu = (cpu | 63) + 1) {
		uint64_t rest = m->bits[cpu / 64] >> (cpu % 64);

		if (rest)
			return cpu + (unsigned)__builtin_ctzll(rest);
	}
	return PP_CPUS_MAX;
}

/* Walks the CPU numbers in a mask, upward. */
#define PP_CPUMASK_FOREACH(cpu, mask)                                    \
	for (unsigned cpu = pp_cpumask_next(mask, 0); cpu < PP_CPUS_MAX; \
	     cpu = pp_cpumask_next(mask, cpu + 1))

/* Whether perf counts it, on each CPU, so that it has no tracepoint. */
static inline bool pp_source_counts(const struct pp_source *s)
{
	return s->kind == PP_SOURCE_SAMPLING || s->kind == PP_SOURCE_AUX;
}

/* Whether it has a term that is for the group of an AUX area. */
static inline bool pp_source_has_aux_term(const struct pp_source *s)
{
	return s->kind != PP_SOURCE_KPROBE && s->kind != PP_SOURCE_UPROBE &&
	       (s->aux_action || s->aux_sample);
}

/* The data of a ring of ours. An event with AUX areas has rings without records. */
static inline uint64_t pp_spec_ring_data(const struct pp_spec *spec)
{
	return spec->flags & PP_EVENT_AUX ? PP_DATA_SIZE_MIN : spec->data_size;
}

/* The data of perf's own ring beside an AUX area, on a machine with pages of this size. */
static inline uint64_t pp_aux_ring_data(uint64_t page)
{
	return page > PP_AUX_RECORDS ? page : PP_AUX_RECORDS;
}

/* The ring of samples beside a CPU's AUX area has its size. 0: there is none. */
static inline uint64_t pp_spec_aux_samples(const struct pp_spec *spec)
{
	return spec->flags & PP_EVENT_AUX_GROUP ? spec->data_size : 0;
}

/* What a CPU's AUX area takes of the kernel's memory, with perf's rings beside it. */
static inline uint64_t pp_spec_aux_memory(const struct pp_spec *spec)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), samples = pp_spec_aux_samples(spec);

	if (!(spec->flags & PP_EVENT_AUX))
		return 0;
	if (samples) /* and as many perf events as there can be */
		samples += page + PP_TERMS_MAX * PP_PERF_EVENT_MEMORY;
	return spec->data_size + page + pp_aux_ring_data(page) + samples;
}

/* What a copy of an area takes at most: it, the samples, the records beside it before the stop and of it, and the
 * header with the record of the trace's begin. */
static inline uint64_t pp_spec_aux_copy(const struct pp_spec *spec)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return spec->data_size + pp_spec_aux_samples(spec) + 2 * pp_aux_ring_data(page) + page;
}

/* Bytes of the packet of an order of this type. */
size_t pp_order_size(uint32_t type);

/*
 * Whether the engine may act on an order (a spec, a parsed event): known type, terminated and valid
 * names, sizes, flags and numbers within the contract, filters that are well-formed trees within
 * the parsed event's nodes. pp_parsed_check: alone: with sources; else: nodes for a change of
 * filter, at most one tree and no sources. pp_trigger_check: names targets if its
 * action has any, and has a hold-off and a condition that can be met.
 * pp_event_check: whether an event from pins or from the engine is valid. The engine checks its
 * answers with it, so that one damaged pin does not cost the others. Returns 0 or -EBADMSG.
 */
int pp_order_check(const struct pp_order *order);
int pp_spec_check(const struct pp_spec *spec);
int pp_parsed_check(const struct pp_parsed *parsed, bool alone);
int pp_event_check(const struct pp_event *event);

/* Whether it can be in the group of an AUX area. No program of ours limits it there, so it must not sample each
 * occurrence of what is counted in software, as the kernel does whatever the period, nor each function of the kernel. */
bool pp_source_can_be_beside(const struct pp_source *s);
int pp_trigger_check(const struct pp_trigger_spec *trigger);

/* Whether it can be the target of such an event, which has one exactly if it is bound. 0 or -EBADMSG. */
int pp_target_check(const struct pp_msg_target *target, const struct pp_spec *spec);
