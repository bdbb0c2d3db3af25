/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders: all that the broker can ask of the engine, and all that the engine answers. They
 * are the only thing the two share.
 *
 * One SOCK_SEQPACKET packet is one struct pp_order or one struct pp_answer, of exactly that
 * size, in host byte order (both ends are of one build; `abi` proves it). No descriptors.
 * The engine takes orders one at a time and in turn; it checks every field again
 * (pp_order_check), as if the broker had been taken over.
 */
#ifndef PP_ORDER_H
#define PP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/protocol.h"

#define PP_ORDER_ABI 1
#define PP_CPUS_MAX 4096 /* CPU numbers are below this */
#define PP_TP_NAME_SIZE 128 /* of a tracepoint's system or name, with its NUL */
#define PP_SENTENCE_SIZE 512

struct pp_cpumask {
	uint64_t bits[PP_CPUS_MAX / 64];
};

enum pp_source_kind {
	PP_SOURCE_TRACEPOINT = 1,
	PP_SOURCE_SAMPLING = 2,
};

/* Bits of pp_source.exclude: what a sampling event leaves out. */
#define PP_EXCLUDE_USER (1U << 0)
#define PP_EXCLUDE_KERNEL (1U << 1)
#define PP_EXCLUDE_HV (1U << 2)
#define PP_EXCLUDE_HOST (1U << 3)
#define PP_EXCLUDE_GUEST (1U << 4)
#define PP_EXCLUDE_IDLE (1U << 5)

/* What is recorded: the event's text, parsed. */
struct pp_source {
	uint32_t kind;		     /* enum pp_source_kind */
	uint32_t type;		     /* sampling: perf_event_attr.type */
	uint64_t config, config1, config2; /* sampling */
	uint32_t exclude;	     /* sampling: PP_EXCLUDE_* */
	uint32_t precise_ip;	     /* sampling: 0..3 */
	char system[PP_TP_NAME_SIZE]; /* tracepoint: [a-zA-Z0-9_][a-zA-Z0-9_-]* */
	char tracepoint[PP_TP_NAME_SIZE];
};

/* A persistent event, as it was ordered; kept with its pins, word for word. */
struct pp_spec {
	char ns[PP_NAME_SIZE];
	char name[PP_NAME_SIZE];
	char event[PP_EVENT_TEXT_SIZE]; /* the text, for people */
	struct pp_source source;
	uint64_t data_size; /* of each CPU's ring: a power of two */
	uint64_t period;    /* sampling: period, or Hz with PP_EVENT_FREQ; > 0 */
	uint32_t flags;	    /* PP_EVENT_* */
	uint32_t owner, group, mode; /* of the namespace */
	struct pp_cpumask cpus; /* those asked for; with PP_EVENT_ALL_CPUS: none */
};

/* A persistent event, as it is: what recovery finds. */
struct pp_event {
	uint64_t id;
	uint64_t created, created_mono; /* ns */
	uint32_t recorder;		/* enum pp_recorder */
	uint32_t missed_unknown;	/* 1: this kernel does not count exclusion */
	uint64_t sample_type;
	uint32_t header_size, spill_size; /* of its rings */
	struct pp_cpumask rings;	  /* CPUs that have a ring */
	struct pp_spec spec;
};

enum pp_order_type {
	PP_ORDER_ENUMERATE = 1, /* answers: one FOUND per event, then DONE */
	PP_ORDER_CREATE = 2,	/* answer: DONE with the event, or FAILED */
	PP_ORDER_DELETE = 3,	/* answer: DONE (out of sight; reaping goes on), or FAILED */
};

enum pp_answer_type {
	PP_ANSWER_FOUND = 1,
	PP_ANSWER_DONE = 2,
	PP_ANSWER_FAILED = 3,
};

struct pp_order {
	uint32_t abi;
	uint32_t type;
	uint64_t serial;
	uint64_t id;	     /* DELETE */
	struct pp_spec spec; /* CREATE */
};

struct pp_answer {
	uint32_t abi;
	uint32_t type;
	uint64_t serial;
	int32_t error; /* FAILED: errno value, positive */
	uint32_t reserved;
	char sentence[PP_SENTENCE_SIZE]; /* FAILED: what, on what, why, what to do */
	struct pp_event event;
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

/* Walks the CPU numbers in a mask, upward. */
#define PP_CPUMASK_FOREACH(cpu, mask)                        \
	for (unsigned cpu = 0; cpu < PP_CPUS_MAX; cpu++)     \
		if (!pp_cpumask_test(mask, cpu)) {           \
		} else

/*
 * Whether an order (a spec) of exactly sizeof bytes is one that the engine may act upon:
 * known type, terminated and valid names, sizes and flags within the contract.
 * pp_event_check: whether an event, found in pins or told by the engine, can be one. What the
 * engine tells has passed it, so that one damaged pin does not cost the others.
 * Returns 0 or -EBADMSG.
 */
int pp_order_check(const struct pp_order *order);
int pp_spec_check(const struct pp_spec *spec);
int pp_event_check(const struct pp_event *event);

#endif
