/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trigger and its targets have in common; shared by recording programs, engine and broker.
 *
 * A trigger is an event that also has a pp_trigger: each of its occurrences that is to make a record fires
 * it, within its limits; a pp_condition says which are. A target is an armed event: it has a
 * pp_tape, which says into which of its two sets of rings it records. Firing turns the tapes of all
 * targets, and writes a pp_fired into the ring buffer of the instance. Each of the others is the value of
 * an array map with one element.
 *
 * A trigger may let its targets go on for a while (pp_trigger_spec.after): then firing puts their
 * tapes on a closing side of their present set, whose programs end this window, and turn the tape,
 * at the first record beyond it; or the engine does, if no record comes.
 *
 * What firing does to the targets is the trigger's action (enum pp_action). To pause them, it turns their
 * tapes to the side that only counts, and the engine makes that a pause of the event; to notify, it has
 * none.
 *
 * pp_may_fire(), pp_turn(), pp_sign() and pp_close() are the whole mechanism: the kernel runs them in
 * programs (daemon/engine/bpf/fire.bpf.c, ring.bpf.h), and the engine when somebody fires the trigger by
 * hand.
 */
#pragma once

#include <linux/types.h>

#include "proto/fired.h"

#define PP_FIRINGS "+firings" /* the instance's BPF_MAP_TYPE_RINGBUF, for the broker */
#define PP_TARGETS_TEXT 256   /* of the text that names them, with its NUL */

#define pp_read_word(p) (*(const volatile __u64 *)(p))

/* Sides are slots of a PROG_ARRAY for each source. */
enum pp_side {
	PP_SIDE_A,
	PP_SIDE_B,
	PP_SIDE_NONE, /* nothing is recorded: its program only counts */
	/* As A and B, which go on for a while: there are such programs if the tape has windows. */
	PP_SIDE_A_CLOSING,
	PP_SIDE_B_CLOSING,
	PP_SIDES,
	/* In pp_tape_state.next: the turned side is taken, and the event is not armed again yet. */
	PP_SIDES_TAKEN,
	/* Likewise: it was turned to PP_SIDE_NONE, to be paused. */
	PP_SIDES_STOPPED,
	/* Likewise: a window is open. Added to the side that the tape turns to at its end. */
	PP_SIDES_CLOSING,
};

#define PP_AFTER_DEFAULT 10000000000ULL /* ns: of a window that only counts records, at most */

/* A firing. */
struct pp_fired {
	__u64 trigger; /* its id */
	__u64 number;  /* counts the trigger's firings, from 1 */
	__u64 time;    /* CLOCK_MONOTONIC, ns */
	__u32 cpu, pid, tid;
	__u32 by_hand; /* enum pp_fired_by */
	char comm[16];
	__u64 action; /* enum pp_action, of the trigger */
	__u64 closed; /* not 0: not the firing itself, but the end of this target's window: its id */
};

/* One word, so that one step changes both. */
union pp_tape_state {
	__u64 word;
	struct {
		__u32 side; /* enum pp_side: the one that records; programs compare it (emit/guard.h) */
		/* The side that the next firing turns to; PP_SIDES: it is turned already, and not
		 * armed until that is saved; or what stands behind that in enum pp_side. */
		__u32 next;
	};
};

/* The tape of an armed event. */
struct pp_tape {
	union pp_tape_state state;
	/* Events that found no program on their side: never, if the engine has made no mistake. */
	__u64 lost;
	struct pp_fired by; /* what turned it last; number 0: it is about to write this */
	__u64 id;	    /* the event's */
	__u64 windows;	    /* 1: there are programs for the closing sides */
	__u64 stops;	    /* 1: there is one for PP_SIDE_NONE */
	/* While a window is open: the time of its last record, CLOCK_MONOTONIC, ns, at most; 0: what
	 * fired is about to write this, and the window does not end yet. */
	__u64 until;
	__s64 left; /* so many more records belong to it; below 0: those of too many are turned away */
};

#define PP_KEY_FIELD_SIZE 64 /* of a field's name with its NUL, as in filters */

/*
 * Which occurrences of a trigger's event make a record, and so fire, beside what its filters say
 * (emit/condition.h). Either
 *   an occurrence that ends a pair: of those terms of the event's text that do not begin one, more than
 *   longer_than after the latest occurrence with the same key that began one (those that begin a pair
 *   make no records); or
 *   the first above the rate in the last of so many consecutive seconds of CLOCK_MONOTONIC in each of
 *   which there were more than `rate` occurrences.
 */
struct pp_condition {
	__u32 kind; /* enum pp_condition_kind */
	__u32 n_on; /* PAIR: so many terms of the event's text begin a pair, the others end one */
	__u32 until_at;	   /* PAIR: where the text of these begins in the event's text */
	__u32 seconds;	   /* RATE: 1 to PP_RATE_SECONDS_MAX */
	__u64 longer_than; /* PAIR: ns; above 0 */
	__u64 rate;	   /* RATE: below UINT32_MAX */
	char key[2][PP_KEY_FIELD_SIZE]; /* PAIR: the fields that begin and end have in common */
};

enum pp_condition_kind {
	PP_CONDITION_NONE,
	PP_CONDITION_PAIR,
	PP_CONDITION_RATE,
};

#define PP_RATE_SECONDS_MAX 3600

/* What a trigger is. */
struct pp_trigger_spec {
	char targets[PP_TARGETS_TEXT]; /* names and globs of events in its namespace, with commas */
	__u64 hold_off;	     /* ns from one firing to the next; PP_HOLD_OFF_MIN at least */
	__u64 max_per_day;   /* firings in 24 hours; 0: no limit */
	__u64 after;	     /* ns that the targets go on, PP_AFTER_MAX at most; 0: not at all */
	__u64 after_records; /* or until each has so many more records; 0: any number */
	__u64 action;	     /* enum pp_action */
	struct pp_condition condition;
};

/* A window that only counts records ends all the same: at the latest with the hold-off. */
static inline void pp_window_complete(struct pp_trigger_spec *spec)
{
	if (spec->after_records && !spec->after)
		spec->after = spec->hold_off < PP_AFTER_DEFAULT ? spec->hold_off : PP_AFTER_DEFAULT;
}

struct pp_trigger {
	__u64 id;
	__u64 last;  /* when it fired; CLOCK_MONOTONIC, ns; 0: never */
	__u64 fired; /* how often it fired, */
	__u64 held;  /* how often it did not because of its hold-off, */
	__u64 spent; /* and how often because it had fired often enough that day */
	__u64 late;  /* targets that were not armed when it fired; 1 if it had none to turn yet */
	__u64 untold; /* firings that did not fit into the ring buffer, or came before this CPU had told one */
	__u64 day;    /* when the current day began; CLOCK_MONOTONIC, ns */
	__u64 in_day; /* firings in it */
	/* PAIR: */
	__u64 unkept;  /* pairs that began, and that the table had no room for */
	__u64 overdue; /* pairs whose end was missing in time: the timer fired, within the limits */
	__u64 ended;   /* and those that had none because the task that is their key had ended */
	__u64 is_task; /* the key is the current task, not a field of the event */
	/* RATE: words of a second of CLOCK_MONOTONIC in the high half and a count in the low one. */
	__u64 window; /* this second: occurrences */
	__u64 over;   /* the last one above the rate: how many in a row */
	struct pp_trigger_spec spec;
};

/*
 * Pairs that have begun: a hash table in an array map, changed by single atomic steps, since programs
 * of all kinds (also in NMIs) change it, and hash maps refuse some of these. A key has one bucket.
 * `since` is the pair's state: whoever exchanges the value that it has seen for another owns that step,
 * so each pair is ended once, by its end, by another beginning or by the timer.
 */
#define PP_PAIRS_WAYS 8
#define PP_PAIRS_BUCKETS_BITS 11
#define PP_PAIRS_MAX (PP_PAIRS_WAYS << PP_PAIRS_BUCKETS_BITS)

struct pp_pair {
	__u64 key;
	__u64 since; /* when it began: CLOCK_MONOTONIC, ns; or one of these */
};

#define PP_PAIR_FREE 0
#define PP_PAIR_TAKEN 1 /* its key is about to be written */

#define PP_PAIRS_SIZE (PP_PAIRS_MAX * sizeof(struct pp_pair))

/* Whether the pair has begun, so that it should have ended by now. Its key is good if `since` is still
 * the same afterwards. */
static inline __attribute__((__always_inline__)) int
pp_pair_is_overdue(const struct pp_pair *pair, __u64 longer_than, __u64 now, __u64 *ret_since)
{
	*ret_since = pp_read_word(&pair->since);
	return *ret_since > PP_PAIR_TAKEN && (__s64)(now - *ret_since) > (__s64)longer_than;
}

#define PP_DAY (24 * 3600 * 1000000000ULL)

/* The number of this firing; 0: it may not fire now. Of several CPUs at the same time one may; the others
 * count as held. time: CLOCK_MONOTONIC, ns. */
static inline __attribute__((__always_inline__)) __u64 pp_may_fire(struct pp_trigger *t, __u64 time)
{
	__u64 last = pp_read_word(&t->last);
	/* Signed: another CPU may have been a little later. */
	int held = last && (__s64)(time - last) < (__s64)t->spec.hold_off;

	/* `last` stays that of a firing. */
	if (!held && t->spec.max_per_day && time - pp_read_word(&t->day) < PP_DAY &&
	    pp_read_word(&t->in_day) >= t->spec.max_per_day) {
		__sync_fetch_and_add(&t->spent, 1);
		return 0;
	}
	if (held || __sync_val_compare_and_swap(&t->last, last, time) != last) {
		__sync_fetch_and_add(&t->held, 1);
		return 0;
	}
	if (time - pp_read_word(&t->day) >= PP_DAY) {
		t->day = time;
		t->in_day = 0;
	}
	if (__sync_fetch_and_add(&t->in_day, 1) >= t->spec.max_per_day && t->spec.max_per_day) {
		__sync_fetch_and_add(&t->spent, 1);
		return 0;
	}
	return __sync_fetch_and_add(&t->fired, 1) + 1;
}

/* Turns a target's tape, or opens its window, or stops it. Of several triggers at the same time one does,
 * and signs it then; 0: it was turned or stopped, its window is open, or it cannot be stopped. */
static inline __attribute__((__always_inline__)) int pp_turn(struct pp_tape *tape,
							     const struct pp_trigger_spec *spec)
{
	union pp_tape_state from = { .word = pp_read_word(&tape->state.word) }, to;
	int window = spec->after && tape->windows, stop = spec->action == PP_ACTION_PAUSE;

	to.side = stop ? PP_SIDE_NONE : window ? from.side + PP_SIDE_A_CLOSING : from.next;
	to.next = stop ? PP_SIDES_STOPPED : window ? from.next + PP_SIDES_CLOSING : PP_SIDES;
	return from.next < PP_SIDES && (!stop || tape->stops) &&
	       __sync_val_compare_and_swap(&tape->state.word, from.word, to.word) == from.word;
}

/* The turned tape's `by` is written, but for its number, which is 0. The exchanges order what is around them, on all
 * machines: all of it is there before the number, which is read first. */
static inline __attribute__((__always_inline__)) void
pp_sign_number(struct pp_tape *tape, const struct pp_trigger_spec *spec, __u64 time, __u64 number)
{
	tape->left = spec->after_records ? (__s64)spec->after_records : (__s64)(~0ULL >> 1);
	if (spec->after)
		(void)__sync_val_compare_and_swap(&tape->until, 0, time + spec->after);
	(void)__sync_val_compare_and_swap(&tape->by.number, 0, number);
}

static inline __attribute__((__always_inline__)) void
pp_sign(struct pp_tape *tape, const struct pp_fired *fired, const struct pp_trigger_spec *spec)
{
	tape->by = *fired;
	tape->by.number = 0;
	pp_sign_number(tape, spec, fired->time, fired->number);
}

/* Ends the window of a tape: turns it. Of several at the same time one does; 0: none is open. */
static inline __attribute__((__always_inline__)) int pp_close(struct pp_tape *tape)
{
	union pp_tape_state from = { .word = pp_read_word(&tape->state.word) }, to;

	to.side = from.next - PP_SIDES_CLOSING;
	to.next = PP_SIDES;
	return from.next >= PP_SIDES_CLOSING &&
	       __sync_val_compare_and_swap(&tape->state.word, from.word, to.word) == from.word;
}
