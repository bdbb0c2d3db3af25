// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The generic recorder: for any tracepoint, a program emitted from its format.
 *
 * The context of a tracepoint program is the entry that perf would get, except for its first 8
 * bytes (the common fields): they hold a pointer, so the program makes them anew; type and pid are
 * known, flags and preempt count are not and are 0. The kernel allows loads at constant offsets up
 * to the end of the last field, and none through a moved context pointer. So loads of 8, 4, 2 and 1
 * bytes copy the fixed part, and bpf_probe_read_kernel copies the rest in one piece (all __data_loc
 * and __rel_loc parts, which the kernel packs behind the last field). This keeps the words' offsets
 * true: the payload is the kernel's own, byte for byte.
 *
 * Copies of user memory (tp_field.is_user_copy) are not part of the context, though the format says
 * so and the verifier believes it. The program makes them as the kernel does for perf, but does not
 * wait for pages that are not in memory.
 *
 * Returning 0 would hide the tracepoint from all other perf users; so the program returns 1, and
 * the perf event that carries the link is never enabled.
 */
#include "daemon/engine/recorders/recorder.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/engine/emit/closing.h"
#include "daemon/engine/emit/condition.h"
#include "daemon/engine/emit/guard.h"
#include "daemon/engine/emit/rate-limit.h"
#include "daemon/engine/emit/program.h"
#include "daemon/engine/emit/record-emit.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/recorders/emitted.h"
#include "daemon/engine/recorders/entry.h"
#include "daemon/engine/recorders/syscall.h"
#include "proto/macro.h"

#define USER_COPIES_MAX 3 /* mount(2) has that many */
#define USER_COPY_MAX 128 /* bytes; longer ones are cut */

#define ENTRY_MAX 8192 /* the kernel's PERF_MAX_TRACE_SIZE */

enum {
	R0,
	R1,
	R2,
	R3,
	R10 = RING_FRAME,
	CONTEXT = RING_CONTEXT,
	POS = RING_POS,
	TAIL = BPF_REG_9, /* dynamic: bytes of payload after the fixed part */
};

/* perf records a system call with the registers of user space, so that its chain has no kernel half. The
 * kernel hands others to programs, of its own way to the tracepoint (6.1 to 6.18). */
static struct chain chain_of(const struct source *source)
{
	uint32_t halves = chain_halves(source->spec);

	return (struct chain){
		.is_there = halves,
		.halves = strcmp(source->tp->system, "syscalls") ? halves : halves & ~CHAIN_KERNEL,
		.frames = chain_frames(source->spec),
	};
}

static uint32_t payload_max(const struct tracepoint *tp)
{
	return tp->has_dynamic ? ENTRY_MAX : tp->fixed_size;
}

static struct record record_of(const struct source *source)
{
	struct record record = {
		.id = source->id,
		.type = source->tp->id,
		.fixed_size = source->tp->fixed_size,
		.has_dynamic = source->tp->has_dynamic,
		.misc = PERF_RECORD_MISC_KERNEL,
		.chain = chain_of(source),
	};

	record.user_stack = user_dump_stack(source->spec->stack_user,
					    record_spill_size(&record, payload_max(source->tp)));
	return record;
}

/*
 * Before 6.7 the kernel does not count when it skips a tracepoint's programs (while another program
 * runs on that CPU): dd8657894c11 "bpf: Count missed stats in trace_call_bpf".
 */
static bool kernel_counts_missed(void)
{
	return kernel_is_at_least(6, 7);
}

static size_t user_copies(const struct tracepoint *tp)
{
	size_t n = 0;

	for (size_t i = 0; i < tp->n_fields; i++)
		n += tp->fields[i].is_user_copy;
	return n;
}

/*
 * perf takes its recursion context before it calls our program. If that is in use, perf calls no
 * program and counts nothing (perf_trace_buf_alloc(), measured on 6.18): the event came while perf
 * itself was recording, or waking a poller, at that level (task, softirq, hardirq, NMI). No system
 * call is made there.
 */
static enum pp_missed counts_missed(const struct tracepoint *tp)
{
	if (!kernel_counts_missed())
		return PP_MISSED_UNKNOWN;
	return !strcmp(tp->system, "syscalls") || !strcmp(tp->system, "raw_syscalls")
		       ? PP_MISSED_COUNTED
		       : PP_MISSED_AT_LEAST;
}

static int plan_call(struct source *source, struct failure *f)
{
	int r;

	source->is_carried = syscall_is_carried(source->tp, source->is_of_many);
	if (!source->is_carried)
		return 0;
	r = syscall_read(source->tp, &source->call);
	if (r >= 0)
		return 0;
	source->is_carried = false;
	return kernel_preempts_syscalls()
		       ? fail(f, -r, "Cannot find out which system call '%s:%s' is of: %s.",
			      source->tp->system, source->tp->name, strerror(-r))
		       : 0;
}

static int generic_plan(struct source *source, struct failure *f)
{
	const struct tracepoint *tp = source->tp;
	struct record record;

	if (source->parsed->kind != PP_SOURCE_TRACEPOINT || !tp ||
	    tp->fixed_size < RECORD_COMMON_SIZE || tp->fixed_size > ENTRY_MAX ||
	    user_copies(tp) > USER_COPIES_MAX)
		return -EOPNOTSUPP;
	record = record_of(source);
	source->recorder = &recorder_generic;
	source->sample_type = record_sample_type(&record);
	source->spill_size = record_spill_size(&record, payload_max(tp));
	source->missed = counts_missed(tp);
	source->can_nest = source->is_preemptible = false;
	perf_tracepoint_attr(tp, &source->attr);
	chain_describe(source->spec, &source->attr);
	user_dump_describe(source->spec, &source->attr);
	return plan_call(source, f);
}

/* ── the program ────────────────────────────────────────────────────────────────────────── */

static int emit_filter(struct emitter *e, const struct source *source,
		       const struct recorder_target *target, struct emit_labels *leave,
		       struct failure *f)
{
	const struct filter_view view = {
		.tp = source->tp,
		.base = CONTEXT,
		.is_context = true,
		.size = source->tp->given_size,
		.ip_offset = -1,
	};

	return condition_emit(e, source, target, &view, leave, f);
}

/*
 * TAIL = bytes of payload after the fixed part: up to the end of the last part, 0 if there is none.
 * Leaves if no entry can have that many.
 */
static void emit_tail_size(struct emitter *e, const struct tracepoint *tp,
			   struct emit_labels *too_long)
{
	emit_mov_imm(e, TAIL, 0);
	for (size_t i = 0; i < tp->n_fields; i++) {
		const struct tp_field *f = &tp->fields[i];
		emit_label smaller;

		if (!f->is_data_loc && !f->is_rel_loc)
			continue;
		emit_load(e, 4, R1, CONTEXT, (int)f->offset);
		emit_mov(e, R2, R1);
		emit_alu_imm(e, BPF_AND, R1, 0xffff);
		emit_alu_imm(e, BPF_RSH, R2, 16);
		emit_alu(e, BPF_ADD, R1, R2);
		emit_alu_imm(e, BPF_SUB, R1,
			     (int)tp->fixed_size - (f->is_rel_loc ? (int)f->offset + 4 : 0));
		smaller = emit_jump_reg(e, BPF_JSGE, TAIL, R1);
		emit_mov(e, TAIL, R1);
		emit_land(e, smaller);
	}
	emit_later(e, too_long, emit_jump_imm(e, BPF_JGT, TAIL, ENTRY_MAX - (int)tp->fixed_size));
}

/* The fixed part after the common fields, by the widest aligned loads that stay inside. */
static void emit_fixed(struct emitter *e, const struct tracepoint *tp, int payload)
{
	uint32_t offset = RECORD_COMMON_SIZE;

	while (offset < tp->given_size) {
		uint32_t size = 8;

		while (offset + size > tp->given_size || offset % size)
			size /= 2;
		emit_load(e, (int)size, R1, CONTEXT, (int)offset);
		emit_store(e, (int)size, POS, payload + (int)offset, R1);
		offset += size;
	}
}

static void emit_dynamic(struct emitter *e, const struct tracepoint *tp, int payload)
{
	emit_mov(e, R1, POS);
	emit_alu_imm(e, BPF_ADD, R1, payload + (int)tp->fixed_size);
	emit_mov(e, R2, TAIL);
	emit_mov(e, R3, CONTEXT);
	emit_alu_imm(e, BPF_ADD, R3, (int)tp->fixed_size);
	emit_call(e, BPF_FUNC_probe_read_kernel);
}

/* ── copies of user memory ──────────────────────────────────────────────────────────────── */

/* On the stack: the size of each copy, followed by the copies. */
static int user_size_place(size_t k)
{
	return RING_STACK_END - 8 * (int)(k + 1);
}

static int user_copy_place(size_t k)
{
	return RING_STACK_END - 8 * USER_COPIES_MAX - USER_COPY_MAX * (int)(k + 1);
}

_Static_assert(RING_STACK_END - (8 + USER_COPY_MAX) * USER_COPIES_MAX >= USER_DUMP_STACK_FRONT + 8,
	       "the user dump has slots of its own");

/* R1 = the place. R0 = its size. Text that cannot be read becomes "(fault)", as in perf. */
static void emit_user_text(struct emitter *e, const struct tp_field *f, int place)
{
	static const char fault[8] = "(fault)";
	uint64_t word;
	emit_label read;

	memcpy(&word, fault, sizeof(word));
	emit_mov_imm(e, R2, USER_COPY_MAX);
	emit_load(e, 8, R3, CONTEXT, (int)f->user_address);
	emit_call(e, BPF_FUNC_probe_read_user_str);
	read = emit_jump_imm(e, BPF_JSGT, R0, 0);
	emit_load_imm64(e, R1, word);
	emit_store(e, 8, R10, place, R1);
	emit_mov_imm(e, R0, sizeof(fault));
	emit_land(e, read);
}

/* R1 = the place. R0 = its size: 0 if it cannot be read. */
static void emit_user_bytes(struct emitter *e, const struct tp_field *f, int size_place)
{
	emit_label small, read;

	emit_load(e, 8, R2, CONTEXT, (int)f->user_size);
	small = emit_jump_imm(e, BPF_JLE, R2, USER_COPY_MAX);
	emit_mov_imm(e, R2, USER_COPY_MAX);
	emit_land(e, small);
	emit_store(e, 8, R10, size_place, R2);
	emit_load(e, 8, R3, CONTEXT, (int)f->user_address);
	emit_call(e, BPF_FUNC_probe_read_user);
	emit_mov(e, R1, R0);
	emit_load(e, 8, R0, R10, size_place);
	read = emit_jump_imm(e, BPF_JEQ, R1, 0);
	emit_mov_imm(e, R0, 0);
	emit_land(e, read);
}

/* Puts all copies onto the stack, before the record's size is known. TAIL = their sum. */
static void emit_user_read(struct emitter *e, const struct tracepoint *tp)
{
	size_t k = 0;

	emit_mov_imm(e, TAIL, 0);
	for (size_t i = 0; i < tp->n_fields; i++) {
		const struct tp_field *f = &tp->fields[i];
		int place = user_copy_place(k);

		if (!f->is_user_copy)
			continue;
		/* The verifier requires that everything copied later has been written. */
		for (int at = 0; at < USER_COPY_MAX; at += 8)
			emit_store_imm(e, 8, R10, place + at, 0);
		emit_mov(e, R1, R10);
		emit_alu_imm(e, BPF_ADD, R1, place);
		if (f->user_size)
			emit_user_bytes(e, f, user_size_place(k));
		else
			emit_user_text(e, f, place);
		emit_store(e, 8, R10, user_size_place(k), R0);
		emit_alu(e, BPF_ADD, TAIL, R0);
		k++;
	}
}

/* Copies them from the stack into the record. Clobbers TAIL. */
static void emit_user_write(struct emitter *e, const struct tracepoint *tp, int payload)
{
	size_t k = 0;

	emit_mov_imm(e, TAIL, 0); /* bytes written so far */
	for (size_t i = 0; i < tp->n_fields; i++) {
		const struct tp_field *f = &tp->fields[i];

		if (!f->is_user_copy)
			continue;
		emit_load(e, 8, R2, R10, user_size_place(k));
		emit_mov(e, R1, R2);
		emit_alu_imm(e, BPF_LSH, R1, 16);
		emit_alu(e, BPF_OR, R1, TAIL);
		emit_alu_imm(e, BPF_ADD, R1, (int)tp->fixed_size);
		emit_store(e, 4, POS, payload + (int)f->offset, R1);
		emit_mov(e, R1, POS);
		emit_alu(e, BPF_ADD, R1, TAIL);
		emit_alu_imm(e, BPF_ADD, R1, payload + (int)tp->fixed_size);
		emit_alu(e, BPF_ADD, TAIL, R2);
		emit_mov(e, R3, R10);
		emit_alu_imm(e, BPF_ADD, R3, user_copy_place(k));
		emit_call(e, BPF_FUNC_probe_read_kernel);
		k++;
	}
}

static const struct recorder_class class = { .type = BPF_PROG_TYPE_TRACEPOINT, .result = 1 };

/* ── the whole program ──────────────────────────────────────────────────────────────────── */

static int emit_program(struct emitter *e, const struct source *source,
			const struct recorder_target *target, struct failure *f)
{
	_cleanup_(emit_labels_done) struct emit_labels leave = {}, unwritten = {}, too_long = {},
						       beyond = {};
	const struct record record = record_of(source);
	const struct tracepoint *tp = source->tp;
	bool copies = user_copies(tp) > 0;
	int r;

	emit_guard(e, target->guard, class.result);
	emit_mov(e, CONTEXT, R1);
	r = emit_filter(e, source, target, &leave, f);
	if (r < 0)
		return r;
	emit_ring_find(e, target, &unwritten);
	emit_rate_limit(e, target, &unwritten);
	if (copies)
		emit_user_read(e, tp);
	else if (tp->has_dynamic)
		emit_tail_size(e, tp, &too_long);
	emit_record_reserve(e, &record, target, TAIL, &unwritten, &beyond);
	emit_record(e, &record, target);
	emit_fixed(e, tp, record_payload(&record));
	if (copies)
		emit_user_write(e, tp, record_payload(&record));
	else if (tp->has_dynamic)
		emit_dynamic(e, tp, record_payload(&record));
	emit_record_end(e, &record);
	emit_ring_commit(e, target);
	emit_wakeup(e, target, record_time(&record));
	emit_land_all(e, &unwritten);
	emit_tell(e, target, CONTEXT);
	emit_land_all(e, &leave);
	emit_mov_imm(e, R0, 1);
	emit_exit(e);
	emit_closing_end(e, target, CONTEXT, class.result, &beyond);
	if (too_long.n) {
		emit_land_all(e, &too_long);
		emit_ring_missed(e, target);
		emit_tell(e, target, CONTEXT);
		emit_mov_imm(e, R0, 1);
		emit_exit(e);
	}
	return e->error;
}

static int generic_load(const struct source *source, const struct recorder_target *target,
			int *ret_fd, struct failure *f)
{
	return emitted_load(BPF_PROG_TYPE_TRACEPOINT, "pp_generic", source, target, emit_program,
			    ret_fd, f);
}

/* ── the entry ──────────────────────────────────────────────────────────────────────────── */

static int generic_class(const struct source *source _unused_, struct recorder_class *ret)
{
	*ret = class;
	return 0;
}

static int generic_entry(const struct source *source, const struct recorder_slot *slot, int *ret_fd)
{
	if (source->is_carried)
		return entry_load_syscall(slot, &source->call, !source_shares_entry(source),
					  ret_fd);
	return entry_load(&class, slot, ret_fd);
}

static const char *generic_entry_class(const struct source *source)
{
	return source_shares_entry(source) ? syscall_carrier_name(source->tp) : "tracepoint";
}

static int generic_attach(const struct source *source, int entry_fd, const struct perf_place *at,
			  int *ret_fd)
{
	struct perf_event_attr attr;
	_cleanup_close_ int carrier = -EBADF;
	int fd;

	perf_tracepoint_attr(source->tp, &attr);
	/* It takes no samples. For some tracepoints (irq_work_exit, which perf's own samples cause)
	 * the kernel delivers no samples at all, but counts them. */
	attr.sample_period = 0;
	if (source->is_carried) {
		uint32_t id;
		int r = syscall_carrier(source->tp, &id);

		if (r < 0)
			return r;
		attr.config = id;
	}
	carrier = perf_open_at(&attr, at);
	if (carrier < 0)
		return carrier;
	fd = bpf_link_create(entry_fd, carrier, BPF_PERF_EVENT, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

const struct recorder recorder_generic = {
	.kind = PP_RECORDER_GENERIC,
	.plan = generic_plan,
	.load = generic_load,
	.class = generic_class,
	.entry = generic_entry,
	.entry_class = generic_entry_class,
	.attach = generic_attach,
	.per_cpu = false,
	.is_direct = true,
};
