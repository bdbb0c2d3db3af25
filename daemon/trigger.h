/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trigger and its targets have in common; shared by recording programs, engine and broker.
 *
 * A trigger is an event that also has a pp_trigger: each of its records fires it, within its
 * limits. A target is an armed event: it has a pp_tape, which says into which of its two sets of
 * rings it records. Firing turns the tapes of all targets, and writes a pp_fired into the ring
 * buffer of the instance. Each of the others is the value of an array map with one element.
 *
 * pp_may_fire(), pp_turn() and pp_sign() are the whole mechanism: the kernel runs them in a program
 * (daemon/engine/bpf/fire.bpf.c), and the engine when somebody fires the trigger by hand.
 */
#pragma once

#include <linux/types.h>

#define PP_FIRINGS "+firings" /* the instance's BPF_MAP_TYPE_RINGBUF, for the broker */
#define PP_TARGETS_MAX 64     /* events that one trigger turns */
#define PP_TARGETS_TEXT 256   /* of the text that names them, with its NUL */

/* Sides are slots of a PROG_ARRAY for each source. */
enum pp_side {
	PP_SIDE_A,
	PP_SIDE_B,
	PP_SIDE_NONE, /* frozen, and no other set of rings: its program only counts */
	PP_SIDES,
	/* Of pp_tape_state.next: what was turned is taken, and the event is not armed again yet. */
	PP_SIDES_TAKEN,
};

/* A firing. */
struct pp_fired {
	__u64 trigger; /* its id */
	__u64 number;  /* counts the trigger's firings, from 1 */
	__u64 time;    /* CLOCK_MONOTONIC, ns */
	__u32 cpu, pid, tid;
	__u32 by_hand; /* 1: by a user (pid and comm are the engine's) */
	char comm[16];
};

/* One word, so that one step changes both. */
union pp_tape_state {
	__u64 word;
	struct {
		__u32 side; /* enum pp_side: the one that records; programs compare it (emit/guard.h) */
		/* The side that the next firing turns to; PP_SIDES: it is turned already, and not
		 * armed until that is saved. */
		__u32 next;
	};
};

/* The tape of an armed event. */
struct pp_tape {
	union pp_tape_state state;
	/* Events that found no program on their side: never, if the engine has made no mistake. */
	__u64 lost;
	struct pp_fired by; /* what turned it last; number 0: it is about to write this */
};

/* What a trigger is. */
struct pp_trigger_spec {
	char targets[PP_TARGETS_TEXT]; /* names and globs of events in its namespace, with commas */
	__u64 hold_off;	   /* ns from one firing to the next; PP_HOLD_OFF_MIN at least */
	__u64 max_per_day; /* firings in 24 hours; 0: no limit */
};

struct pp_trigger {
	__u64 id;
	__u64 last;   /* when it fired; CLOCK_MONOTONIC, ns; 0: never */
	__u64 fired;  /* how often it fired, */
	__u64 held;   /* how often it did not because of its hold-off, */
	__u64 spent;  /* and how often because it had fired often enough that day */
	__u64 late;   /* targets that were not armed when it fired */
	__u64 untold; /* firings that did not fit into the instance's ring buffer */
	__u64 day;    /* when the current day began; CLOCK_MONOTONIC, ns */
	__u64 in_day; /* firings in it */
	struct pp_trigger_spec spec;
};

#define PP_DAY (24 * 3600 * 1000000000ULL)

#define pp_read_word(p) (*(volatile __u64 *)(p))

/* Whether it may fire now; *fired: time is set, and gets its id and number. Of several CPUs at the
 * same time one may; the others count as held. */
static inline __attribute__((__always_inline__)) int pp_may_fire(struct pp_trigger *t,
								 struct pp_fired *fired)
{
	__u64 last = pp_read_word(&t->last), now = fired->time;

	/* Signed: another CPU may have been a little later. */
	if ((last && (__s64)(now - last) < (__s64)t->spec.hold_off) ||
	    __sync_val_compare_and_swap(&t->last, last, now) != last) {
		__sync_fetch_and_add(&t->held, 1);
		return 0;
	}
	if (now - pp_read_word(&t->day) >= PP_DAY) {
		t->day = now;
		t->in_day = 0;
	}
	if (__sync_fetch_and_add(&t->in_day, 1) >= t->spec.max_per_day && t->spec.max_per_day) {
		__sync_fetch_and_add(&t->spent, 1);
		return 0;
	}
	fired->trigger = t->id;
	fired->number = __sync_fetch_and_add(&t->fired, 1) + 1;
	return 1;
}

/* Turns a target's tape. Of several triggers at the same time one does, and signs it when it has turned
 * the others; 0: it was turned. */
static inline __attribute__((__always_inline__)) int pp_turn(struct pp_tape *tape)
{
	union pp_tape_state from = { .word = pp_read_word(&tape->state.word) }, to;

	to.side = from.next;
	to.next = PP_SIDES;
	return from.next < PP_SIDES &&
	       __sync_val_compare_and_swap(&tape->state.word, from.word, to.word) == from.word;
}

static inline __attribute__((__always_inline__)) void pp_sign(struct pp_tape *tape,
							      const struct pp_fired *fired)
{
	tape->by = *fired;
	tape->by.number = 0;
	/* All of it is there before the number, which is read first. */
	__sync_fetch_and_add(&tape->by.number, fired->number);
}
