/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Iterators that list what runs (daemon/tasks.h): threads, executable mappings of processes, and
 * BPF programs. Contents and names follow perf's records. A part of iterators.bpf.c.
 *
 * Owns the one buffer for paths and names: only the keeper reads, and one iterator at a time.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/tasks.h"

/* The kernel's bits of vm_flags; the lowest three are those of PROT_*. */
#define VM_PROT 7
#define VM_EXEC 4
#define VM_MAYSHARE 0x80

#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MINOR_BITS 20

#define PATH_MAX 4096

const volatile __u64 page_size = 4096; /* the engine sets it */

static const char zeroes[8];

struct buffer {
	char path[PATH_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct buffer);
} pp_path SEC(".maps");

/* ── threads ────────────────────────────────────────────────────────────────────────────── */

SEC("iter/task")
int pp_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pp_task t = { .type = PP_TASK, .size = sizeof(t) };

	/* perf has already reported its exit; nothing would remove this entry again. */
	if (!task || task->exit_state)
		return 0;
	t.pid = task->tgid;
	t.tid = task->pid;
	t.ppid = task->real_parent->tgid;
	t.started = task->start_time;
	bpf_probe_read_kernel(t.comm, sizeof(t.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
	return 0;
}

/* ── mappings ───────────────────────────────────────────────────────────────────────────── */

/* A process's mappings are listed once: with its first thread, or with any if that one has
 * ended. */
static __always_inline int stands_for_process(struct task_struct *task)
{
	return task->pid == task->tgid || !task->group_leader->mm;
}

/* Copies the path's end, as much as an entry holds. Returns its length with the NUL; 0: the kernel
 * cannot tell it. */
static __always_inline __u32 find_path(struct file *file, struct buffer *buffer, __u32 *ret_from)
{
	long n = bpf_d_path(&file->f_path, buffer->path, sizeof(buffer->path));

	*ret_from = 0;
	if (n <= 0 || n > PATH_MAX)
		return 0;
	if (n <= PP_TASK_PATH_SIZE)
		return n;
	*ret_from = n - PP_TASK_PATH_SIZE;
	return PP_TASK_PATH_SIZE;
}

static __always_inline void describe(struct pp_task_map *m, struct task_struct *task,
				     struct vm_area_struct *vma)
{
	unsigned long flags = vma->vm_flags;

	m->pid = task->tgid;
	m->prot = flags & VM_PROT;
	m->flags = flags & VM_MAYSHARE ? MAP_SHARED : MAP_PRIVATE;
	m->start = vma->vm_start;
	m->end = vma->vm_end;
	m->offset = vma->vm_pgoff * page_size;
}

static __always_inline void describe_file(struct pp_task_map *m, struct file *file)
{
	struct inode *inode = file->f_inode;
	__u32 device = inode->i_sb->s_dev;

	m->inode = inode->i_ino;
	m->major = device >> MINOR_BITS;
	m->minor = device & ((1U << MINOR_BITS) - 1);
}

/* Writes an entry in three parts; the kernel takes all of it back if its page is full. */
static __always_inline void write_map(struct seq_file *seq, struct pp_task_map *m, const char *path,
				      __u32 size)
{
	__u32 padding = -size & 7;

	m->type = PP_TASK_MAP;
	m->path_size = size;
	m->size = sizeof(*m) + size + padding;
	bpf_seq_write(seq, m, sizeof(*m));
	bpf_seq_write(seq, path, size);
	bpf_seq_write(seq, zeroes, padding);
}

/* Uses perf's names for mappings without a file. */
static __always_inline void write_anonymous(struct seq_file *seq, struct pp_task_map *m,
					    struct mm_struct *mm)
{
	if (bpf_core_field_exists(mm->context.vdso) && m->start == (__u64)mm->context.vdso)
		write_map(seq, m, "[vdso]", sizeof("[vdso]"));
	else if (m->start < mm->brk && m->end > mm->start_brk)
		write_map(seq, m, "[heap]", sizeof("[heap]"));
	else if (m->start <= mm->start_stack && m->end >= mm->start_stack)
		write_map(seq, m, "[stack]", sizeof("[stack]"));
	else
		write_map(seq, m, "//anon", sizeof("//anon"));
}

static __always_inline void write_file(struct seq_file *seq, struct pp_task_map *m,
				       struct file *file)
{
	struct buffer *buffer;
	__u32 zero = 0, from, size;

	buffer = bpf_map_lookup_elem(&pp_path, &zero);
	if (!buffer)
		return;
	describe_file(m, file);
	size = find_path(file, buffer, &from);
	if (size)
		write_map(seq, m, buffer->path + from, size);
	else
		write_map(seq, m, "//toolong", sizeof("//toolong"));
}

SEC("iter/task_vma")
int pp_maps(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *task = ctx->task;
	struct pp_task_map m = {};
	struct file *file;

	if (!task || !vma || !(vma->vm_flags & VM_EXEC) || !stands_for_process(task))
		return 0;
	describe(&m, task, vma);
	file = vma->vm_file;
	if (file)
		write_file(ctx->meta->seq, &m, file);
	else
		write_anonymous(ctx->meta->seq, &m, vma->vm_mm);
	return 0;
}

/* ── BPF programs ───────────────────────────────────────────────────────────────────────── */

#define PARTS_MAX 256 /* BPF_MAX_SUBPROGS of the kernel, 5.12 to 7.x */
/* Everything that is written about one program must fit into the kernel's buffer (PAGE_SIZE << 3,
 * 5.8 to 7.x), or the reader gets E2BIG and nothing: so names of parts are cut. */
#define PART_NAME_SIZE 72
_Static_assert(sizeof(struct pp_task_program) + PP_TASK_PATH_SIZE +
			       PARTS_MAX * (sizeof(struct pp_task_program) + PART_NAME_SIZE) <
		       (4096 << 3),
	       "a program's entries fit into the kernel's buffer");

/* Skips a symbol that the kernel is still making: it sets the start first, and the name last. */
static __always_inline void write_program(struct seq_file *seq, struct pp_task_program *p,
					  struct bpf_prog_aux *aux, __u32 name_size)
{
	__u64 start = BPF_CORE_READ(aux, ksym.start), end = BPF_CORE_READ(aux, ksym.end);
	struct buffer *buffer;
	__u32 zero = 0, padding;
	__u64 size;
	long n;

	buffer = bpf_map_lookup_elem(&pp_path, &zero);
	if (!buffer)
		return;
	n = bpf_probe_read_kernel_str(buffer->path, name_size, aux->ksym.name);
	if (n <= 0 || n > name_size)
		return;
	p->start = n > 1 && start < end ? start : 0;
	p->length = p->start ? end - start : 0;
	size = n;
	/* The verifier of 6.1 has forgotten that comparison by now; the compiler would drop this if
	 * it knew the value. */
	asm volatile("%0 &= %1" : "+r"(size) : "i"(2 * PP_TASK_PATH_SIZE - 1));
	padding = -size & 7;
	p->type = PP_TASK_PROGRAM;
	p->name_size = size;
	p->size = sizeof(*p) + size + padding;
	bpf_seq_write(seq, p, sizeof(*p));
	bpf_seq_write(seq, buffer->path, size);
	bpf_seq_write(seq, zeroes, padding);
}

struct parts {
	struct seq_file *seq;
	struct pp_task_program *p; /* written one after the other */
	struct bpf_prog **of;
	__u64 first; /* the first is the program itself, which is already written */
};

static long write_part(__u32 i, struct parts *parts)
{
	struct bpf_prog_aux *aux;
	struct bpf_prog *part;

	if (bpf_probe_read_kernel(&part, sizeof(part), parts->of + i) < 0 || !part)
		return 1;
	aux = BPF_CORE_READ(part, aux);
	parts->p->part = i + 1;
	if (BPF_CORE_READ(aux, ksym.start) != parts->first)
		write_program(parts->seq, parts->p, aux, PART_NAME_SIZE);
	return 0;
}

SEC("iter/bpf_prog")
int pp_programs(struct bpf_iter__bpf_prog *ctx)
{
	struct bpf_prog *prog = ctx->prog;
	struct pp_task_program p = {};
	struct parts parts = { .seq = ctx->meta->seq, .p = &p };
	__u64 slept;

	if (!prog)
		return 0;
	p.id = prog->aux->id;
	/* Counts the time that the machine has slept since as if it had slept before. */
	slept = bpf_ktime_get_boot_ns() - bpf_ktime_get_ns();
	p.loaded = prog->aux->load_time > slept ? prog->aux->load_time - slept : 0;
	bpf_probe_read_kernel(p.tag, sizeof(p.tag), prog->tag);
	write_program(ctx->meta->seq, &p, prog->aux, PP_TASK_PATH_SIZE);
	parts.of = prog->aux->func;
	parts.first = p.start;
	bpf_loop(prog->aux->func_cnt, write_part, &parts, 0);
	return 0;
}
