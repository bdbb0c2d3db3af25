/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The payloads that the tp_btf recorders build: one structure per tracepoint and layout, laid out
 * as the kernel's own entry. The programs (hot.bpf.c) write these structures, and hot.c compares
 * them with the running kernel's `format`, so that the two cannot differ.
 *
 * A __data_loc field is a word: length << 16 | offset. Its data lie behind the structure's last
 * field, in the fields' order, unaligned.
 */
#pragma once

#include <linux/types.h>

/* A record in the ring: header, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, the u32 size of the raw
 * part, the raw part. In rings of several sources PERF_SAMPLE_IDENTIFIER is behind the header. */
#define HOT_IDENTIFIER_SIZE 8

/* Offset of a record in the scratch map: the verifier does not see that 8 bytes before the end of a
 * record of unknown size are still inside it. */
#define HOT_SCRATCH_OFFSET 8
#define HOT_RAW_SIZE_OFFSET 24
#define HOT_PAYLOAD_OFFSET 28

/* perf rounds so that the payload and its size end on 8 bytes, and includes the structure's own
 * tail padding. Both are 0 here. */
#define HOT_RECORD_SIZE(payload) (((payload) + HOT_PAYLOAD_OFFSET + 7) & ~7)

/* Size of a string with its NUL; no path and no interrupt's name is longer. */
#define HOT_STRING_MAX 4096

struct payload_common {
	__u16 type;
	__u8 flags;
	__u8 preempt_count;
	__s32 pid;
};

struct payload_sys_enter {
	struct payload_common common;
	__s64 id;
	__u64 args[6];
};

struct payload_sys_exit {
	struct payload_common common;
	__s64 id;
	__s64 ret;
};

struct payload_sched_switch {
	struct payload_common common;
	char prev_comm[16];
	__s32 prev_pid;
	__s32 prev_prio;
	__s64 prev_state;
	char next_comm[16];
	__s32 next_pid;
	__s32 next_prio;
};

struct payload_sched_wakeup { /* also sched_waking */
	struct payload_common common;
	char comm[16];
	__s32 pid;
	__s32 prio;
	__s32 target_cpu;
};

struct payload_sched_process_fork {
	struct payload_common common;
	__u32 parent_comm; /* __data_loc */
	__s32 parent_pid;
	__u32 child_comm; /* __data_loc */
	__s32 child_pid;
};

struct payload_sched_process_fork_fixed { /* older kernels */
	struct payload_common common;
	char parent_comm[16];
	__s32 parent_pid;
	char child_comm[16];
	__s32 child_pid;
};

struct payload_sched_process_exec {
	struct payload_common common;
	__u32 filename; /* __data_loc */
	__s32 pid;
	__s32 old_pid;
};

struct payload_sched_process_exit {
	struct payload_common common;
	char comm[16];
	__s32 pid;
	__s32 prio;
	__u8 group_dead;
};

struct payload_sched_process_exit_plain { /* without group_dead */
	struct payload_common common;
	char comm[16];
	__s32 pid;
	__s32 prio;
};

struct payload_irq_handler_entry {
	struct payload_common common;
	__s32 irq;
	__u32 name; /* __data_loc */
};

struct payload_irq_handler_exit {
	struct payload_common common;
	__s32 irq;
	__s32 ret;
};

struct payload_softirq { /* entry, exit, raise */
	struct payload_common common;
	__u32 vec;
};

struct payload_hrtimer_setup { /* also hrtimer_init, its name up to 6.14 */
	struct payload_common common;
	__u64 hrtimer;
	__s32 clockid;
	__u32 mode;
};

struct payload_hrtimer_start {
	struct payload_common common;
	__u64 hrtimer;
	__u64 function;
	__s64 expires;
	__s64 softexpires;
	__u32 mode;
	__u8 was_armed;
};

struct payload_hrtimer_start_plain { /* without was_armed */
	struct payload_common common;
	__u64 hrtimer;
	__u64 function;
	__s64 expires;
	__s64 softexpires;
	__u32 mode;
};

struct payload_hrtimer_expire_entry {
	struct payload_common common;
	__u64 hrtimer;
	__s64 now;
	__u64 function;
};

struct payload_hrtimer { /* expire_exit, cancel */
	struct payload_common common;
	__u64 hrtimer;
};
