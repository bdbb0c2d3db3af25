/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of perf events that only a link holds: no system call tells. A part of iterators.bpf.c. */
#pragma once

#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/links.h"

#define TOMBSTONE (-1L)	 /* TASK_TOMBSTONE: the task of a context has ended */
#define STATE_OFF (-1)	 /* PERF_EVENT_STATE_OFF; below it are those of no return */
#define ATTACH_CONTEXT 1 /* PERF_ATTACH_CONTEXT */

/* When a CPU goes offline, the kernel takes its perf events out of their context, and leaves them "off", as one
 * that somebody has disabled. They stay so when the CPU comes back. */
static __always_inline bool is_alive(const struct perf_event *event)
{
	return (int)BPF_CORE_READ(event, state) >= STATE_OFF &&
	       BPF_CORE_READ(event, attach_state) & ATTACH_CONTEXT;
}

/*
 * A perf event and those that were inherited from it change places: when the kernel switches from a task to a clone of
 * it, it swaps their contexts (perf_event_context_sched_out()). So the one that was opened can have gone with a child
 * that has ended, while another one counts for its task.
 */
static __always_inline bool is_inherited(const struct perf_event *event)
{
	const struct list_head *first = BPF_CORE_READ(event, child_list.next);

	return first && (const char *)first !=
				(const char *)event + bpf_core_field_offset(event->child_list);
}

/* Those that are inherited run the program that there is by then. The first is the oldest. */
static __always_inline bool is_bare(const struct perf_event *event)
{
	const char *first = (const char *)BPF_CORE_READ(event, child_list.next);

	if (!bpf_core_field_exists(event->prog) || !is_inherited(event))
		return false;
	event = (const void *)(first - bpf_core_field_offset(event->child_list));
	return !BPF_CORE_READ(event, prog);
}

static __always_inline __s32 tid_of(const struct perf_event *event)
{
	struct task_struct *task = BPF_CORE_READ(event, ctx, task);

	return !task || (long)task == TOMBSTONE ? 0 : BPF_CORE_READ(task, pid);
}

/* This program is loaded with those of the keeper: a kernel without one of these must not refuse it. */
static __always_inline bool can_tell(void)
{
	const struct perf_event_context *ctx = NULL;
	const struct bpf_perf_link *link = NULL;
	const struct perf_event *event = NULL;
	const struct file *file = NULL;

	return bpf_core_field_exists(link->perf_file) && bpf_core_field_exists(link->link.id) &&
	       bpf_core_field_exists(link->link.type) &&
	       bpf_core_field_exists(file->private_data) && bpf_core_field_exists(event->state) &&
	       bpf_core_field_exists(event->attach_state) && bpf_core_field_exists(event->ctx) &&
	       bpf_core_field_exists(ctx->task) && bpf_core_field_exists(event->cpu) &&
	       bpf_core_field_exists(event->id) && bpf_core_field_exists(event->child_list);
}

SEC("iter/bpf_link")
int pp_links(struct bpf_iter__bpf_link *ctx)
{
	const struct bpf_perf_link *link = (const void *)ctx->link;
	const struct perf_event *event = NULL;
	struct link_fact fact = {};

	/* Else it is unknown what lives. */
	if (!can_tell())
		return 0;
	if (!link || BPF_CORE_READ(link, link.type) != BPF_LINK_TYPE_PERF_EVENT)
		return 0;
	event = BPF_CORE_READ(link, perf_file, private_data);
	fact.id = BPF_CORE_READ(link, link.id);
	fact.inherited = is_inherited(event);
	fact.bare = is_bare(event);
	fact.alive = fact.inherited || is_alive(event);
	fact.cpu = BPF_CORE_READ(event, cpu);
	fact.tid = tid_of(event);
	fact.perf_id = BPF_CORE_READ(event, id);
	bpf_seq_write(ctx->meta->seq, &fact, sizeof(fact));
	return 0;
}
