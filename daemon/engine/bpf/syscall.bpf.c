// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which system call a tracepoint of syscalls:* is of: the kernel knows the number, and tells it
 * nowhere. It is reached from a perf event of that tracepoint, which the reader has open.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/syscall.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 event_fd = 0; /* the reader's */

SEC("iter/task_file")
int pp_syscall(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = (void *)0;
	struct syscall_facts facts = {};
	struct syscall_metadata *metadata;
	struct file *file = ctx->file;

	if (!file || ctx->fd != event_fd)
		return 0;
	metadata = BPF_CORE_READ((struct perf_event *)file->private_data, tp_event, data);
	facts.number = BPF_CORE_READ(metadata, syscall_nr);
#if defined(__TARGET_ARCH_x86)
	facts.compat_offset = bpf_core_field_offset(task->thread_info.status);
	facts.compat_mask = 2; /* TS_COMPAT */
#elif defined(__TARGET_ARCH_arm64)
	facts.compat_offset = bpf_core_field_offset(task->thread_info.flags);
	facts.compat_mask = 1 << 22; /* _TIF_32BIT */
#endif
	bpf_seq_write(ctx->meta->seq, &facts, sizeof(facts));
	return 0;
}
