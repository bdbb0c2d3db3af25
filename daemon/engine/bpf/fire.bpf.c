// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fires a trigger: the recording program of the trigger's event goes on to this one when it has
 * written its record. It turns the tapes of the targets, if it has any, and tells the broker.
 *
 * A template (daemon/engine/recorders/fire.h): it is loaded with the type of the trigger's program,
 * and so uses no context, and only helpers that all types have.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/constant.bpf.h"
#include "daemon/engine/bpf/fire.h"
#include "daemon/trigger.h"

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

static __always_inline struct pp_tape *tape_of(__u32 slot)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&targets, &slot);

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

static __always_inline void describe(struct pp_fired *fired)
{
	__u64 who = bpf_get_current_pid_tgid();

	fired->cpu = bpf_get_smp_processor_id();
	fired->pid = who >> 32;
	fired->tid = who;
	bpf_get_current_comm(fired->comm, sizeof(fired->comm));
}

/* What need not be known before the first target is turned comes after that. A tape is looked up once: the
 * engine may put another one into the slot. */
static __always_inline void turn_all(struct pp_trigger *t, struct pp_fired *fired)
{
	for (__u32 slot = 0; slot < PP_TARGETS_MAX; slot++) {
		struct pp_tape *tape = tape_of(slot);
		int turned = tape && pp_turn(tape, &t->spec);

		if (slot == 0)
			describe(fired);
		if (!tape && slot == 0 && t->spec.action != PP_ACTION_NOTIFY)
			__sync_fetch_and_add(&t->late, 1);
		if (!tape)
			break;
		if (turned)
			pp_sign(tape, fired, &t->spec);
		else
			__sync_fetch_and_add(&t->late, 1);
	}
}

SEC("kprobe")
int pp_fire(void *ctx)
{
	struct pp_fired fired = { .time = bpf_ktime_get_ns() };
	struct pp_trigger *t;
	__u32 zero = 0;

	(void)ctx;
	t = bpf_map_lookup_elem(&state, &zero);
	if (!t || !pp_may_fire(t, &fired))
		return (int)CONSTANT(fire_constants, result);
	turn_all(t, &fired);
	if (bpf_ringbuf_output(&firings, &fired, sizeof(fired), 0) < 0)
		__sync_fetch_and_add(&t->untold, 1);
	return (int)CONSTANT(fire_constants, result);
}
