// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds which system calls the tracepoints of syscalls:* belong to: the kernel knows the numbers,
 * and shows them nowhere. It keeps all its tracepoints in a list, which any tracepoint's perf event
 * leads to. The reader has such an event open.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/syscall.h"

#define TRACEPOINTS_MAX 65536 /* an upper bound; the list ends where it began */

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 event_fd = 0; /* the reader's */

struct syscall_table table = {};

static __u64 first, at; /* of the list */

/*
 * Reads without a lock, which programs cannot take. If modules come or go just then, the result may
 * be cut short or garbage. So the reader asks once more for a call that it does not find.
 */
static long take(__u32 i __attribute__((unused)), void *userdata __attribute__((unused)))
{
	struct trace_event_call *call =
		(void *)(at - bpf_core_field_offset(struct trace_event_call, list));
	struct trace_event_class *class = BPF_CORE_READ(call, class);
	struct syscall_metadata *metadata = BPF_CORE_READ(call, data);
	char system[16] = "";

	bpf_probe_read_kernel_str(system, sizeof(system), BPF_CORE_READ(class, system));
	if (bpf_strncmp(system, sizeof("syscalls"), "syscalls") == 0 && metadata) {
		__u32 n = table.n++;

		if (n >= SYSCALL_TRACEPOINTS_MAX)
			return 1;
		table.calls[n].tracepoint = BPF_CORE_READ(call, event.type);
		table.calls[n].number = BPF_CORE_READ(metadata, syscall_nr);
	}
	at = (__u64)BPF_CORE_READ(call, list.next);
	return at == first;
}

SEC("iter/task_file")
int pp_syscall(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = (void *)0;
	struct file *file = ctx->file;
	struct trace_event_call *call;

	if (!file || ctx->fd != event_fd)
		return 0;
	call = BPF_CORE_READ((struct perf_event *)file->private_data, tp_event);
	first = at = (__u64)call + bpf_core_field_offset(struct trace_event_call, list);
	bpf_loop(TRACEPOINTS_MAX, take, NULL, 0);
#if defined(__TARGET_ARCH_x86)
	table.compat_offset = bpf_core_field_offset(task->thread_info.status);
	table.compat_mask = 2; /* TS_COMPAT */
#elif defined(__TARGET_ARCH_arm64)
	table.compat_offset = bpf_core_field_offset(task->thread_info.flags);
	table.compat_mask = 1 << 22; /* _TIF_32BIT */
#endif
	return 0;
}
