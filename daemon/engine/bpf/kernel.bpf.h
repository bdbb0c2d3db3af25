/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel structures that the recorders read, by CO-RE: only names and types matter here,
 * libbpf fills in the running kernel's offsets. Owns no code.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#define TASK_COMM_LEN 16

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	unsigned long flags;
	__u32 status; /* x86: TS_COMPAT while in a 32-bit system call */
	__u32 cpu;    /* 5.16 to 7.x, with CONFIG_SMP */
};

struct task_struct {
	struct thread_info thread_info;
	int prio;
	int exit_state;
	int pid;
	int tgid;
	char comm[TASK_COMM_LEN];
	__u64 start_time; /* CLOCK_MONOTONIC, ns */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
};

/* Both architectures use this name; the kernel's own type is an anonymous typedef. */
typedef struct {
	void *vdso;
} mm_context_t;

struct mm_struct {
	unsigned long start_brk, brk, start_stack;
	mm_context_t context;
};

struct path {
	void *dentry;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct mm_struct *vm_mm;
	struct file *vm_file;
};

struct perf_event_context {
	struct task_struct *task;
};

/* Only its size matters. */
enum perf_event_state { PERF_EVENT_STATE_UNUSED = -1 };

struct trace_event_call;

struct list_head {
	struct list_head *next;
};

struct perf_event {
	enum perf_event_state state;
	unsigned int attach_state;
	int cpu;
	__u64 id;
	struct perf_event_context *ctx;
	struct trace_event_call *tp_event;
	struct list_head child_list;
	struct bpf_prog *prog;
};

struct bpf_link {
	__u32 id;
	enum bpf_link_type type;
};

struct bpf_perf_link {
	struct bpf_link link;
	struct file *perf_file;
};

struct bpf_ksym {
	unsigned long start, end;
	char name[1]; /* the kernel's is longer: 128 before 6.1, 512 since */
};

struct bpf_prog_aux {
	__u32 id, func_cnt;
	__u64 load_time; /* CLOCK_BOOTTIME, ns */
	struct bpf_prog **func;
	struct bpf_ksym ksym;
};

struct u64_stats { /* u64_stats_t */
	__u64 v;
};

struct bpf_prog_stats {
	struct u64_stats misses;
};

struct bpf_prog {
	__u8 tag[8];
	struct bpf_prog_stats *stats;
	struct bpf_prog_aux *aux;
};

struct bpf_map {
	unsigned int id, max_entries;
};

struct bpf_array {
	struct bpf_map map;
	void *pptrs[0];
};

struct syscall_metadata {
	int syscall_nr;
};

struct trace_event_class {
	const char *system;
};

struct trace_event {
	int type; /* its id in tracefs */
};

struct trace_event_call {
	struct list_head list;
	struct trace_event_class *class;
	struct trace_event event;
	void *data;
};

struct linux_binprm {
	const char *filename;
};

struct irqaction {
	const char *name;
};

struct timerqueue_node {
	__s64 expires;
};

struct hrtimer {
	struct timerqueue_node node;
	__s64 _softexpires;
	void *function;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp, bx, r10, r9, r8, cx, dx, si, di, orig_ax, ip;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};
#endif

struct seq_file {
	unsigned long size;  /* of the buffer */
	unsigned long count; /* written to it */
};

#pragma clang attribute pop

/* The contexts of iterators have the same layout in all kernels: no relocation is needed. */
struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct bpf_iter__bpf_link {
	struct bpf_iter_meta *meta;
	struct bpf_link *link;
};

struct bpf_iter__bpf_prog {
	struct bpf_iter_meta *meta;
	struct bpf_prog *prog;
};
