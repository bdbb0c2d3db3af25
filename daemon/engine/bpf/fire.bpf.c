// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fires a trigger. The recording programs of the trigger's event call pp_fire() when an occurrence is to make a
 * record, and before they write that. It turns the first target's tape. What it needs has not been used since it
 * fired last, and each word that comes from memory gives the other CPUs more time to write: so only what it needs
 * stands in front of that. When the record is written, or has no place, they go on to pp_tell(). It
 * turns the tapes of further targets, and tells the broker: the kernel wakes that in an interrupt, some tens of
 * microseconds long.
 *
 * Two templates (daemon/engine/recorders/fire.h). pp_fire() becomes a function of these programs: the verifier
 * follows each path through it for each of them, and it may use the 32 bytes of stack that the largest of them
 * leave (emit/user-dump.h). pp_tell() is loaded with their type. So they use no context, and only helpers that all
 * types of programs have.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/constant.bpf.h"
#include "daemon/engine/bpf/fire.h"
#include "daemon/engine/bpf/send.bpf.h"
#include "daemon/trigger.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct fire_constants fire_constants = {};

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

/* What this CPU has fired and not told: its number is the state. Whoever exchanges the number that it has seen
 * for BUSY owns the rest, since programs of one trigger can interrupt each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_fired);
} pending SEC(".maps");

#define NOTHING 0
#define BUSY (~0ULL)

static __always_inline struct pp_fired *pending_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&pending, &zero);
}

static __always_inline struct pp_tape *tape_of(__u32 slot)
{
	void *inner = bpf_map_lookup_elem(&targets, &slot);

	slot = 0;
	return inner ? bpf_map_lookup_elem(inner, &slot) : NULL;
}

/* All but the number. */
static __always_inline void describe(struct pp_fired *to, __u64 time)
{
	__u64 who = bpf_get_current_pid_tgid();

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

/* For pp_tell(). If this CPU has one that is not told yet, from a hold-off ago at least, that will turn the further
 * targets, and the broker finds this one when it looks at the counts. */
static __always_inline void leave_pending(__u64 time, __u64 number)
{
	struct pp_fired *here = pending_here();

	if (!here || __sync_val_compare_and_swap(&here->number, NOTHING, BUSY) != NOTHING) {
		__sync_fetch_and_add(&state.untold, 1);
		return;
	}
	describe(here, time);
	barrier(); /* for what interrupts this program */
	here->number = number;
}

/* The tape is looked up before the atomic steps, which nothing overtakes; and once: the engine may put another one
 * into the slot. */
SEC("kprobe")
int pp_fire(void *ctx)
{
	struct pp_tape *tape = tape_of(0);
	__u64 time = bpf_ktime_get_ns(), number;

	(void)ctx;
	number = pp_may_fire(&state, time);
	if (!number)
		return 0;
	if (tape && pp_turn(tape, &state.spec)) {
		tape->by.number = 0;
		describe(&tape->by, time);
		pp_sign_number(tape, &state.spec, time, number);
	} else if (tape || state.spec.action != PP_ACTION_NOTIFY) {
		__sync_fetch_and_add(&state.late, 1);
	}
	leave_pending(time, number);
	return 0;
}

/* Takes what is pending. False: nothing is. */
static __always_inline bool take(struct pp_fired *ret)
{
	struct pp_fired *here = pending_here();
	__u64 number;

	if (!here)
		return false;
	number = pp_read_word(&here->number);
	if (number == NOTHING || number == BUSY ||
	    __sync_val_compare_and_swap(&here->number, number, BUSY) != number)
		return false;
	*ret = *here;
	ret->number = number;
	barrier();
	here->number = NOTHING;
	return true;
}

SEC("kprobe")
int pp_tell(void *ctx)
{
	struct pp_fired fired;

	(void)ctx;
	if (!take(&fired))
		return (int)CONSTANT(fire_constants, result);
	for (__u32 slot = 1; slot < PP_TARGETS_MAX; slot++) {
		struct pp_tape *tape = tape_of(slot);

		if (!tape)
			break;
		if (pp_turn(tape, &state.spec))
			pp_sign(tape, &fired, &state.spec);
		else
			__sync_fetch_and_add(&state.late, 1);
	}
	if (send(&firings, &fired, sizeof(fired)) != SENT)
		__sync_fetch_and_add(&state.untold, 1);
	return (int)CONSTANT(fire_constants, result);
}
