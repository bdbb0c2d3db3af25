/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For BPF programs that decide which of an event's records are written: see docs/bpf.md, and
 * `perfctl create --bpf`. Since 0.1.
 *
 *     #include <linux/bpf_perf_event.h>
 *     #include <perfpersist/perfpersist.bpf.h>
 *
 *     PP_PROGRAM("perf_event", in_user_space, struct bpf_perf_event_data *ctx)
 *     {
 *             return PP_SAMPLE_IN_USER(ctx) ? PP_KEEP : PP_DROP;
 *     }
 *
 *     char LICENSE[] SEC("license") = "GPL";
 *
 * The kernel calls the program in the event's place, with the context of its type: perf_event for
 * what a counter samples, tracepoint or tp_btf for a tracepoint, kprobe for probes. The program goes on
 * to the event's recorder by a tail call, so what it returns is not what the kernel sees.
 */
#pragma once

/* What a program decides. */
#define PP_DROP 0 /* there is no record; it is not counted as missed */
#define PP_KEEP 1 /* the record is written, if the event's filter and rate limit let it */
#define PP_FIRE 2 /* likewise; and if the event is a trigger, it fires: PP_KEEP does not */
#define PP_DECISIONS 3

/* The name of the map below. perfpersist fills it when the event is created; each event takes a
 * program, and a map, of its own. */
#define PP_NEXT "pp_next"

#ifdef __bpf__
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PP_DECISIONS);
	__uint(key_size, 4);
	__uint(value_size, 4);
} pp_next SEC(".maps");

/*
 * Defines a program: its section, its name, and its context as a parameter named ctx. The body
 * returns one of the above. Any other value drops the record, and may count it as missed.
 *
 * Behind a tail call that did not happen a tracepoint's program returns 1: 0 would take the
 * tracepoint from all other users of perf on this machine.
 */
#define PP_PROGRAM(section, name, context)                                        \
	static __attribute__((always_inline)) inline int name##_pp(context);      \
	SEC(section) int name(void *ctx)                                          \
	{                                                                         \
		bpf_tail_call(ctx, &pp_next, (__u32)name##_pp(ctx));              \
		return section[0] == 't' && section[1] != 0 && section[2] != '_'; \
	}                                                                         \
	static __attribute__((always_inline)) inline int name##_pp(context __attribute__((unused)))

/* Where a struct bpf_perf_event_data was sampled. */
#if defined(__TARGET_ARCH_arm64)
#define PP_SAMPLE_IP(ctx) ((ctx)->regs.pc)
#define PP_SAMPLE_IN_USER(ctx) (((ctx)->regs.pstate & 0xf) == 0)
#else
#define PP_SAMPLE_IP(ctx) ((ctx)->regs.rip)
#define PP_SAMPLE_IN_USER(ctx) (((ctx)->regs.cs & 3) != 0)
#endif
#endif
