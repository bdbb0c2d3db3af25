// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fires a trigger: the recording programs of the trigger's event call this when an occurrence is to make a
 * record, and before they write that. It turns the tapes of the targets, if it has any. What it needs has
 * not been used since it fired last, and each word that comes from memory gives the other CPUs more time to
 * write: so nothing that can come later stands in front of the first turn. When the record is written, they
 * call it again, to tell the broker: the kernel wakes that in an interrupt, some tens of microseconds long.
 *
 * A template (daemon/engine/recorders/fire.h), which becomes a function of these programs. So it uses no
 * context, only helpers that all types of programs have, and not more than the 32 bytes of stack that the
 * largest of these leave (emit/user-dump.h).
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "daemon/trigger.h"

char LICENSE[] SEC("license") = "GPL";

struct pp_trigger state SEC(".data.state");

/* The targets' tapes; the first empty slot ends them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PP_TARGETS_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct pp_tape));
		});
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* its size */
} firings SEC(".maps");

/* What this CPU has fired and not told. Whoever comes to its record's end first tells it: of programs that
 * interrupt each other, one fires within the hold-off. */
struct here {
	struct pp_fired fired;
	__u64 untold; /* 1: it is */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct here);
} heres SEC(".maps");

static __always_inline struct pp_tape *tape_of(__u32 slot)
{
	void *inner = bpf_map_lookup_elem(&targets, &slot);

	slot = 0;
	return inner ? bpf_map_lookup_elem(inner, &slot) : NULL;
}

/* Straight to its place; the number comes last. */
static __always_inline void describe(struct pp_fired *to, __u64 time)
{
	__u64 who = bpf_get_current_pid_tgid();

	to->number = 0;
	to->trigger = state.id;
	to->time = time;
	to->cpu = bpf_get_smp_processor_id();
	to->pid = who >> 32;
	to->tid = who;
	to->by_hand = PP_FIRED_BY_RECORD;
	bpf_get_current_comm(to->comm, sizeof(to->comm));
	to->action = state.spec.action;
	to->closed = 0;
}

static __always_inline struct here *here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&heres, &zero);
}

static __always_inline void tell(void)
{
	struct here *h = here();

	if (!h || !h->untold)
		return;
	h->untold = 0;
	if (bpf_ringbuf_output(&firings, &h->fired, sizeof(h->fired), 0) < 0)
		__sync_fetch_and_add(&state.untold, 1);
}

/* A tape is looked up once: the engine may put another one into the slot. */
static __always_inline bool turn(struct pp_tape *tape, __u64 time, __u64 number)
{
	if (!tape)
		return false;
	if (pp_turn(tape, &state.spec)) {
		describe(&tape->by, time);
		pp_sign(tape, &state.spec, time, number);
	} else {
		__sync_fetch_and_add(&state.late, 1);
	}
	return true;
}

/* The first tape is looked up before the atomic steps, which nothing overtakes. */
static __always_inline void fire(void)
{
	struct pp_tape *tape = tape_of(0);
	__u64 time, number;
	struct here *h;

	time = bpf_ktime_get_ns();
	number = pp_may_fire(&state, time);
	if (!number)
		return;
	if (turn(tape, time, number)) {
		for (__u32 slot = 1; slot < PP_TARGETS_MAX; slot++)
			if (!turn(tape_of(slot), time, number))
				break;
	} else if (state.spec.action != PP_ACTION_NOTIFY) {
		__sync_fetch_and_add(&state.late, 1);
	}
	h = here();
	if (!h)
		return;
	describe(&h->fired, time);
	h->fired.number = number;
	h->untold = 1;
}

SEC("kprobe")
int pp_fire(void *tells)
{
	if (tells)
		tell();
	else
		fire();
	return 0;
}
