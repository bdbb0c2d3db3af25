// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fires a trigger: the recording program of the trigger's event goes on to this one when it has
 * written its record. It turns the tapes of the targets, and tells the broker.
 *
 * A template (daemon/engine/recorders/fire.h): it is loaded with the type of the trigger's program,
 * and so uses no context, and only helpers that all types have.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/constant.bpf.h"
#include "daemon/engine/bpf/fire.h"
#include "daemon/engine/bpf/tape.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct fire_constants fire_constants = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_trigger);
} state SEC(".maps");

/* The targets' tapes; the first empty slot ends them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, FIRE_TARGETS_MAX);
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

#define read_word(p) (*(volatile __u64 *)(p))
#define DAY (24 * 3600 * 1000000000ULL)

/* Whether it may fire now. Of several CPUs at the same time one may; the others count as held. */
static __always_inline bool may_fire(struct pp_trigger *t, __u64 now)
{
	__u64 last = read_word(&t->last);

	/* Signed: another CPU may have been a little later. */
	if ((last && (__s64)(now - last) < (__s64)CONSTANT(fire_constants, hold_off)) ||
	    __sync_val_compare_and_swap(&t->last, last, now) != last) {
		__sync_fetch_and_add(&t->held, 1);
		return false;
	}
	if (now - read_word(&t->day) >= DAY) {
		t->day = now;
		t->in_day = 0;
	}
	if (__sync_fetch_and_add(&t->in_day, 1) < CONSTANT(fire_constants, max_per_day))
		return true;
	__sync_fetch_and_add(&t->spent, 1);
	return false;
}

/* Of several triggers at the same time one turns the tape. */
static __always_inline bool turn(struct pp_tape *tape, const struct pp_fired *fired)
{
	__u64 next = read_word(&tape->next);

	if (next >= PP_SIDES || __sync_val_compare_and_swap(&tape->next, next, PP_SIDES) != next) {
		__sync_fetch_and_add(&tape->late, 1);
		return false;
	}
	read_word(&tape->side) = next;
	tape->by = fired->trigger;
	tape->number = fired->number;
	tape->fired = fired->time;
	return true;
}

static __always_inline __u32 turn_all(const struct pp_fired *fired)
{
	__u32 zero = 0, turned = 0;

	for (__u32 i = 0; i < FIRE_TARGETS_MAX; i++) {
		__u32 slot = i;
		void *inner = bpf_map_lookup_elem(&targets, &slot);
		struct pp_tape *tape = inner ? bpf_map_lookup_elem(inner, &zero) : NULL;

		if (!tape)
			break;
		turned += turn(tape, fired);
	}
	return turned;
}

SEC("kprobe")
int pp_fire(void *ctx)
{
	__u64 now = bpf_ktime_get_ns(), who = bpf_get_current_pid_tgid();
	struct pp_fired fired = {
		.trigger = CONSTANT(fire_constants, id),
		.time = now,
		.cpu = bpf_get_smp_processor_id(),
		.pid = who >> 32,
		.tid = who,
	};
	struct pp_trigger *t;
	__u32 zero = 0;

	(void)ctx;
	t = bpf_map_lookup_elem(&state, &zero);
	if (!t || !may_fire(t, now))
		return (int)CONSTANT(fire_constants, result);
	fired.number = __sync_fetch_and_add(&t->fired, 1) + 1;
	fired.turned = turn_all(&fired);
	bpf_get_current_comm(fired.comm, sizeof(fired.comm));
	if (bpf_ringbuf_output(&firings, &fired, sizeof(fired), 0) < 0)
		__sync_fetch_and_add(&t->untold, 1);
	return (int)CONSTANT(fire_constants, result);
}
