// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tp_btf recorders: one program per hot tracepoint and layout. Each builds, byte for byte, the
 * payload that the kernel's own tracepoint would (payload.h), and writes it into this CPU's ring.
 * The values follow the kernel's TRACE_EVENT definitions; layout.c says which programs fit the
 * running kernel.
 */
#include "daemon/engine/bpf/hot.bpf.h"
#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/payload.h"

#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

/* ── raw_syscalls ───────────────────────────────────────────────────────────────────────── */

#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 2

static __always_inline void put_syscall_args(void *at, const struct pt_regs *regs,
					     const struct task_struct *task)
{
	if (task->thread_info.status & TS_COMPAT) {
		PUT_AT(__u64, at, 0, regs->bx);
		PUT_AT(__u64, at, 8, regs->cx);
		PUT_AT(__u64, at, 16, regs->dx);
		PUT_AT(__u64, at, 24, regs->si);
		PUT_AT(__u64, at, 32, regs->di);
		PUT_AT(__u64, at, 40, regs->bp);
		return;
	}
	PUT_AT(__u64, at, 0, regs->di);
	PUT_AT(__u64, at, 8, regs->si);
	PUT_AT(__u64, at, 16, regs->dx);
	PUT_AT(__u64, at, 24, regs->r10);
	PUT_AT(__u64, at, 32, regs->r8);
	PUT_AT(__u64, at, 40, regs->r9);
}

static __always_inline __s64 syscall_number(const struct pt_regs *regs)
{
	return (int)regs->orig_ax;
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline void put_syscall_args(void *at, const struct pt_regs *regs,
					     const struct task_struct *task)
{
	(void)task; /* 32-bit calls use the same registers */
	PUT_AT(__u64, at, 0, regs->orig_x0);
	PUT_AT(__u64, at, 8, regs->regs[1]);
	PUT_AT(__u64, at, 16, regs->regs[2]);
	PUT_AT(__u64, at, 24, regs->regs[3]);
	PUT_AT(__u64, at, 32, regs->regs[4]);
	PUT_AT(__u64, at, 40, regs->regs[5]);
}

static __always_inline __s64 syscall_number(const struct pt_regs *regs)
{
	return regs->syscallno;
}
#endif

RECORDER(sys_enter, sys_enter)
{
	const struct pt_regs *regs = (const struct pt_regs *)ctx[0];
	long id = (long)ctx[1];
	struct hot hot = hot_here(plain);
	const struct task_struct *task;

	if (hot_is_nowhere(&hot))
		return 0;
	task = bpf_get_current_task_btf(); /* recorded like any other call */
	if (!BEGIN(&hot, struct payload_sys_enter, args, task))
		return 0;
	PUT(&hot, struct payload_sys_enter, id, id);
	put_syscall_args(hot.at + FIELD_OFFSET(struct payload_sys_enter, args), regs, task);
	return hot_end(&hot);
}

RECORDER(sys_exit, sys_exit)
{
	const struct pt_regs *regs = (const struct pt_regs *)ctx[0];
	long ret = (long)ctx[1];
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_sys_exit, ret, bpf_get_current_task_btf()))
		return 0;
	PUT(&hot, struct payload_sys_exit, id, syscall_number(regs));
	PUT(&hot, struct payload_sys_exit, ret, ret);
	return hot_end(&hot);
}

/* ── sched ──────────────────────────────────────────────────────────────────────────────── */

/* The kernel's __trace_sched_switch_state(), the same from 6.1 to 6.18. */
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_REPORT 0x7f
#define TASK_REPORT_IDLE 0x80
#define TASK_REPORT_MAX 0x100
#define TASK_IDLE 0x402
#define TASK_RTLOCK_WAIT 0x1000
#define TASK_FROZEN 0x8000

static __always_inline __s64 switch_state(_Bool preempt, __u32 state,
					  const struct task_struct *prev)
{
	__u32 report = (state | prev->exit_state) & TASK_REPORT;

	if (preempt)
		return TASK_REPORT_MAX;
	if ((state & TASK_IDLE) == TASK_IDLE)
		report = TASK_REPORT_IDLE;
	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		report = TASK_UNINTERRUPTIBLE;

	/* Only the highest bit is left. All but the rarest states have only one bit. */
	if (report & (report - 1)) {
		report |= report >> 1;
		report |= report >> 2;
		report |= report >> 4;
		report -= report >> 1;
	}
	return report;
}

RECORDER(sched_switch, sched_switch)
{
	_Bool preempt = ctx[0];
	const struct task_struct *prev = (const struct task_struct *)ctx[1];
	const struct task_struct *next = (const struct task_struct *)ctx[2];
	unsigned int prev_state = (unsigned int)ctx[3];
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_sched_switch, next_prio, prev)) /* prev is current */
		return 0;
	PUT_COMM(&hot, struct payload_sched_switch, prev_comm, prev);
	PUT(&hot, struct payload_sched_switch, prev_pid, prev->pid);
	PUT(&hot, struct payload_sched_switch, prev_prio, prev->prio);
	PUT(&hot, struct payload_sched_switch, prev_state, switch_state(preempt, prev_state, prev));
	PUT_COMM(&hot, struct payload_sched_switch, next_comm, next);
	PUT(&hot, struct payload_sched_switch, next_pid, next->pid);
	PUT(&hot, struct payload_sched_switch, next_prio, next->prio);
	return hot_end(&hot);
}

static __always_inline int record_wakeup(bool plain, const struct task_struct *p)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_sched_wakeup, target_cpu, bpf_get_current_task_btf()))
		return 0;
	PUT_COMM(&hot, struct payload_sched_wakeup, comm, p);
	PUT(&hot, struct payload_sched_wakeup, pid, p->pid);
	PUT(&hot, struct payload_sched_wakeup, prio, p->prio);
	PUT(&hot, struct payload_sched_wakeup, target_cpu, (__s32)p->thread_info.cpu);
	return hot_end(&hot);
}

RECORDER(sched_waking, sched_waking)
{
	const struct task_struct *p = (const struct task_struct *)ctx[0];
	return record_wakeup(plain, p);
}

RECORDER(sched_wakeup, sched_wakeup)
{
	const struct task_struct *p = (const struct task_struct *)ctx[0];
	return record_wakeup(plain, p);
}

RECORDER(sched_process_exit, sched_process_exit)
{
	const struct task_struct *p = (const struct task_struct *)ctx[0];
	_Bool group_dead = ctx[1];
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_sched_process_exit, group_dead, bpf_get_current_task_btf()))
		return 0;
	PUT_COMM(&hot, struct payload_sched_process_exit, comm, p);
	PUT(&hot, struct payload_sched_process_exit, pid, p->pid);
	PUT(&hot, struct payload_sched_process_exit, prio, p->prio);
	PUT(&hot, struct payload_sched_process_exit, group_dead, group_dead);
	return hot_end(&hot);
}

RECORDER(sched_process_exit, sched_process_exit_plain)
{
	const struct task_struct *p = (const struct task_struct *)ctx[0];
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_sched_process_exit_plain, prio, bpf_get_current_task_btf()))
		return 0;
	PUT_COMM(&hot, struct payload_sched_process_exit_plain, comm, p);
	PUT(&hot, struct payload_sched_process_exit_plain, pid, p->pid);
	PUT(&hot, struct payload_sched_process_exit_plain, prio, p->prio);
	return hot_end(&hot);
}

RECORDER(sched_process_fork, sched_process_fork_fixed)
{
	const struct task_struct *parent = (const struct task_struct *)ctx[0];
	const struct task_struct *child = (const struct task_struct *)ctx[1];
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_sched_process_fork_fixed, child_pid,
		   bpf_get_current_task_btf()))
		return 0;
	PUT_COMM(&hot, struct payload_sched_process_fork_fixed, parent_comm, parent);
	PUT(&hot, struct payload_sched_process_fork_fixed, parent_pid, parent->pid);
	PUT_COMM(&hot, struct payload_sched_process_fork_fixed, child_comm, child);
	PUT(&hot, struct payload_sched_process_fork_fixed, child_pid, child->pid);
	return hot_end(&hot);
}

/* ── with strings behind the fixed part ─────────────────────────────────────────────────── */

RECORDER(sched_process_exec, sched_process_exec)
{
	const struct task_struct *p = (const struct task_struct *)ctx[0];
	const struct linux_binprm *bprm = (const struct linux_binprm *)ctx[2];
	const __u32 fixed = sizeof(struct payload_sched_process_exec);
	const char *filename = bprm->filename;
	struct hot hot = hot_here(plain);
	__u64 size;

	if (hot_is_nowhere(&hot))
		return 0;
	if (!filename)
		filename = (const char *)no_string;
	size = string_size(filename);
	if (!BEGIN_DYNAMIC(&hot, struct payload_sched_process_exec, size))
		return 0;
	PUT(&hot, struct payload_sched_process_exec, filename, DATA_LOC(size, fixed));
	PUT(&hot, struct payload_sched_process_exec, pid, p->pid);
	PUT(&hot, struct payload_sched_process_exec, old_pid, (int)ctx[1]);
	put_string(hot.at + HOT_PAYLOAD_OFFSET + fixed, filename, size);
	return hot_end(&hot);
}

RECORDER(irq_handler_entry, irq_handler_entry)
{
	const struct irqaction *action = (const struct irqaction *)ctx[1];
	const __u32 fixed = sizeof(struct payload_irq_handler_entry);
	const char *name = action->name;
	struct hot hot = hot_here(plain);
	__u64 size;

	if (hot_is_nowhere(&hot))
		return 0;
	if (!name)
		name = (const char *)no_string;
	size = string_size(name);
	if (!BEGIN_DYNAMIC(&hot, struct payload_irq_handler_entry, size))
		return 0;
	PUT(&hot, struct payload_irq_handler_entry, irq, (int)ctx[0]);
	PUT(&hot, struct payload_irq_handler_entry, name, DATA_LOC(size, fixed));
	put_string(hot.at + HOT_PAYLOAD_OFFSET + fixed, name, size);
	return hot_end(&hot);
}

RECORDER(sched_process_fork, sched_process_fork)
{
	const struct task_struct *parent = (const struct task_struct *)ctx[0];
	const struct task_struct *child = (const struct task_struct *)ctx[1];
	const __u32 fixed = sizeof(struct payload_sched_process_fork);
	char parent_comm[TASK_COMM_LEN], child_comm[TASK_COMM_LEN];
	struct hot hot = hot_here(plain);
	__u64 parent_size, child_size;
	void *strings;

	if (hot_is_nowhere(&hot))
		return 0;
	parent_size = take_comm(parent_comm, parent);
	child_size = take_comm(child_comm, child);
	if (!BEGIN_DYNAMIC(&hot, struct payload_sched_process_fork, parent_size + child_size))
		return 0;
	PUT(&hot, struct payload_sched_process_fork, parent_comm, DATA_LOC(parent_size, fixed));
	PUT(&hot, struct payload_sched_process_fork, parent_pid, parent->pid);
	PUT(&hot, struct payload_sched_process_fork, child_comm,
	    DATA_LOC(child_size, fixed + parent_size));
	PUT(&hot, struct payload_sched_process_fork, child_pid, child->pid);
	strings = hot.at + HOT_PAYLOAD_OFFSET + fixed;
	bpf_probe_read_kernel(strings, parent_size, parent_comm);
	bpf_probe_read_kernel(strings + parent_size, child_size, child_comm);
	return hot_end(&hot);
}

/* ── irq ────────────────────────────────────────────────────────────────────────────────── */

RECORDER(irq_handler_exit, irq_handler_exit)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_irq_handler_exit, ret, bpf_get_current_task_btf()))
		return 0;
	PUT(&hot, struct payload_irq_handler_exit, irq, (int)ctx[0]);
	PUT(&hot, struct payload_irq_handler_exit, ret, (int)ctx[2]);
	return hot_end(&hot);
}

static __always_inline int record_softirq(bool plain, __u32 vec)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_softirq, vec, bpf_get_current_task_btf()))
		return 0;
	PUT(&hot, struct payload_softirq, vec, vec);
	return hot_end(&hot);
}

RECORDER(softirq_entry, softirq_entry)
{
	return record_softirq(plain, (__u32)ctx[0]);
}

RECORDER(softirq_exit, softirq_exit)
{
	return record_softirq(plain, (__u32)ctx[0]);
}

RECORDER(softirq_raise, softirq_raise)
{
	return record_softirq(plain, (__u32)ctx[0]);
}

/* ── timer ──────────────────────────────────────────────────────────────────────────────── */

static __always_inline int record_hrtimer_setup(bool plain, const __u64 *ctx)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_hrtimer_setup, mode, bpf_get_current_task_btf()))
		return 0;
	PUT(&hot, struct payload_hrtimer_setup, hrtimer, ctx[0]);
	PUT(&hot, struct payload_hrtimer_setup, clockid, (int)ctx[1]);
	PUT(&hot, struct payload_hrtimer_setup, mode, (__u32)ctx[2]);
	return hot_end(&hot);
}

RECORDER(hrtimer_init, hrtimer_init)
{
	return record_hrtimer_setup(plain, ctx);
}

RECORDER(hrtimer_setup, hrtimer_setup)
{
	return record_hrtimer_setup(plain, ctx);
}

static __always_inline void put_hrtimer_start(struct hot *hot, const struct hrtimer *timer,
					      __u32 mode)
{
	PUT(hot, struct payload_hrtimer_start, hrtimer, (__u64)timer);
	PUT(hot, struct payload_hrtimer_start, function, (__u64)timer->function);
	PUT(hot, struct payload_hrtimer_start, expires, timer->node.expires);
	PUT(hot, struct payload_hrtimer_start, softexpires, timer->_softexpires);
	PUT(hot, struct payload_hrtimer_start, mode, mode);
}

RECORDER(hrtimer_start, hrtimer_start)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_hrtimer_start, mode, bpf_get_current_task_btf()))
		return 0;
	put_hrtimer_start(&hot, (const struct hrtimer *)ctx[0], (__u32)ctx[1]);
	PUT(&hot, struct payload_hrtimer_start, was_armed, (__u8)ctx[2]);
	return hot_end(&hot);
}

/* The layout is that of hrtimer_start without its last field. */
RECORDER(hrtimer_start, hrtimer_start_plain)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_hrtimer_start_plain, mode, bpf_get_current_task_btf()))
		return 0;
	put_hrtimer_start(&hot, (const struct hrtimer *)ctx[0], (__u32)ctx[1]);
	return hot_end(&hot);
}

static __always_inline int record_hrtimer_expire(bool plain, const struct hrtimer *timer, __s64 now)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_hrtimer_expire_entry, function, bpf_get_current_task_btf()))
		return 0;
	PUT(&hot, struct payload_hrtimer_expire_entry, hrtimer, (__u64)timer);
	PUT(&hot, struct payload_hrtimer_expire_entry, now, now);
	PUT(&hot, struct payload_hrtimer_expire_entry, function, (__u64)timer->function);
	return hot_end(&hot);
}

RECORDER(hrtimer_expire_entry, hrtimer_expire_entry)
{
	__s64 now = 0;

	bpf_probe_read_kernel(&now, sizeof(now), (const void *)ctx[1]);
	return record_hrtimer_expire(plain, (const struct hrtimer *)ctx[0], now);
}

/* Since 7.0 the time comes by value. */
RECORDER(hrtimer_expire_entry, hrtimer_expire_entry_value)
{
	return record_hrtimer_expire(plain, (const struct hrtimer *)ctx[0], (__s64)ctx[1]);
}

static __always_inline int record_hrtimer(bool plain, const __u64 *ctx)
{
	struct hot hot = hot_here(plain);

	if (hot_is_nowhere(&hot))
		return 0;
	if (!BEGIN(&hot, struct payload_hrtimer, hrtimer, bpf_get_current_task_btf()))
		return 0;
	PUT(&hot, struct payload_hrtimer, hrtimer, ctx[0]);
	return hot_end(&hot);
}

RECORDER(hrtimer_expire_exit, hrtimer_expire_exit)
{
	return record_hrtimer(plain, ctx);
}

RECORDER(hrtimer_cancel, hrtimer_cancel)
{
	return record_hrtimer(plain, ctx);
}
