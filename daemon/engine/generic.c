// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The generic recorder: for any tracepoint, a program emitted from its format.
 *
 * The context of a tracepoint program is the entry that the kernel would give to perf, but
 * for its first 8 bytes (the common fields), which hold a pointer and are made anew here:
 * type and pid are known, flags and preempt count are not and are 0. The kernel allows loads
 * at constant offsets up to the end of the last field, and none at all through a moved
 * context pointer; so the fixed part is copied by loads of 8, 4, 2 and 1 bytes, and what
 * follows it (all __data_loc and __rel_loc parts, which the kernel packs behind the last
 * field) in one piece by bpf_probe_read_kernel. Offsets in the words stay true that way: the
 * payload is the kernel's own, byte for byte.
 *
 * Returning 0 would hide the tracepoint from every other perf user; so it returns 1, and the
 * perf event that carries the link is never enabled.
 */
#include "daemon/engine/recorder.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/engine/emit.h"
#include "daemon/engine/kernel.h"
#include "daemon/engine/perf.h"
#include "daemon/engine/program.h"
#include "proto/macro.h"
#include "proto/ring.h"

#define SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW)

/* Offsets in a record of SAMPLE_TYPE. */
#define RECORD_TID 8
#define RECORD_TIME 16
#define RECORD_RAW_SIZE 24
#define RECORD_PAYLOAD 28

#define COMMON_SIZE 8  /* of the part of the entry that is not in the context */
#define ENTRY_MAX 8192 /* the kernel's PERF_MAX_TRACE_SIZE (2048 before 5.16) */

/* The registers' roles. */
enum {
	R0,
	R1,
	R2,
	R3,
	R4,
	R5,
	CONTEXT = BPF_REG_6,
	RING = BPF_REG_7, /* the ring: header, then data */
	POS = BPF_REG_8,  /* the new head; then the record's address */
	TAIL = BPF_REG_9, /* dynamic: bytes of payload behind the fixed part */
	FRAME = BPF_REG_10,
};

/* What is kept on the stack, at offsets from FRAME. */
enum {
	STACK_CPU = -4,
	STACK_ZERO = -8,
	STACK_HEAD = -16, /* the new head */
	STACK_SIZE = -24, /* dynamic: the record's size */
};

/* A program can name 64 maps: so many rings are reached without a look-up. */
#define DIRECT_MAX 60

#define LIVE(word) (PP_RING_LIVE_OFFSET + (int)offsetof(struct pp_ring_live, word))

/* As perf lays RAW out: with its 4-byte size in front it ends on an 8-byte border. */
static uint32_t raw_size(uint32_t payload)
{
	return ALIGN_TO(payload + 4, 8U) - 4;
}

static uint32_t record_size(uint32_t payload)
{
	return RECORD_PAYLOAD + raw_size(payload);
}

/*
 * Before 6.7 the kernel shuts a tracepoint's programs out (while another program runs on that
 * CPU) without counting it: dd8657894c11 "bpf: Count missed stats in trace_call_bpf".
 */
static bool kernel_counts_missed(void)
{
	return kernel_is_at_least(6, 7);
}

static int generic_plan(const struct pp_spec *spec _unused_, const struct tracepoint *tp,
			struct recorder_plan *ret)
{
	if (!tp || tp->fixed_size < COMMON_SIZE || tp->fixed_size > ENTRY_MAX)
		return -EOPNOTSUPP;
	*ret = (struct recorder_plan){
		.recorder = PP_RECORDER_GENERIC,
		.sample_type = SAMPLE_TYPE,
		/* 8 more: the verifier takes the largest size for what it was before rounding. */
		.spill_size =
			tp->has_dynamic ? record_size(ENTRY_MAX) + 8 : record_size(tp->fixed_size),
		.missed_unknown = !kernel_counts_missed(),
	};
	return 0;
}

/*
 * RING = the ring of CPU R0, if it is one of [begin, end): halves the range until one is left.
 * Appends the jumps that leave with it; whoever finds nothing falls through.
 */
static void emit_direct(struct emitter *e, const struct recorder_rings *rings, unsigned begin,
			unsigned end, emit_label *found, unsigned *n_found)
{
	unsigned middle = begin + (end - begin) / 2;
	emit_label other;

	if (end - begin == 1) {
		other = emit_jump_imm(e, BPF_JNE, R0, (int)rings->cpu[begin]);
		emit_load_map_value(e, RING, rings->ring_fd[begin]);
		found[(*n_found)++] = emit_jump(e);
		emit_land(e, other);
		return;
	}
	other = emit_jump_imm(e, BPF_JGE, R0, (int)rings->cpu[middle]);
	emit_direct(e, rings, begin, middle, found, n_found);
	emit_land(e, other);
	emit_direct(e, rings, middle, end, found, n_found);
}

/*
 * RING = this CPU's ring; the jumps that leave when there is none. The look-ups are for rings
 * that come later, and for the many of a large machine: they cost as much as half the copying.
 */
static void emit_lookup(struct emitter *e, const struct recorder_rings *rings,
			emit_label no_ring[2])
{
	emit_label found[DIRECT_MAX];
	unsigned n_found = 0;

	emit_mov(e, CONTEXT, R1);
	emit_call(e, BPF_FUNC_get_smp_processor_id);
	if (rings->n > 0 && rings->n <= DIRECT_MAX)
		emit_direct(e, rings, 0, rings->n, found, &n_found);
	emit_store(e, 4, FRAME, STACK_CPU, R0);
	emit_load_map(e, R1, rings->fd);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, STACK_CPU);
	emit_call(e, BPF_FUNC_map_lookup_elem);
	no_ring[0] = emit_jump_imm(e, BPF_JEQ, R0, 0);
	emit_mov(e, R1, R0);
	emit_store_imm(e, 4, FRAME, STACK_ZERO, 0);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, STACK_ZERO);
	emit_call(e, BPF_FUNC_map_lookup_elem);
	no_ring[1] = emit_jump_imm(e, BPF_JEQ, R0, 0);
	emit_mov(e, RING, R0);
	while (n_found > 0)
		emit_land(e, found[--n_found]);
}

/*
 * TAIL = bytes of payload behind the fixed part: up to the end of the part that ends last, 0
 * if there is none. Returns the jump that leaves if that is more than any entry can have.
 */
static emit_label emit_tail_size(struct emitter *e, const struct tracepoint *tp)
{
	emit_mov_imm(e, TAIL, 0);
	for (size_t i = 0; i < tp->n_fields; i++) {
		const struct tp_field *f = &tp->fields[i];
		emit_label smaller;

		if (!f->is_data_loc && !f->is_rel_loc)
			continue;
		emit_load(e, 4, R1, CONTEXT, f->offset);
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
	return emit_jump_imm(e, BPF_JGT, TAIL, ENTRY_MAX - tp->fixed_size);
}

/*
 * Writes a live word so that other CPUs see it after all that was written before, and before
 * all that is written behind it. Elsewhere than on x86, which keeps stores in order, that
 * takes an exchange, a full barrier; it uses R1 and R2.
 */
static void emit_publish(struct emitter *e, int word, int src)
{
#if defined(__x86_64__) || defined(__i386__)
	emit_store(e, 8, RING, word, src);
#else
	if (src != R1)
		emit_mov(e, R1, src);
	emit_mov(e, R2, RING);
	emit_alu_imm(e, BPF_ADD, R2, word);
	emit_exchange(e, R2, 0, R1);
#endif
}

/*
 * Reserves the record: reserve word written, POS = the record's address, the new head and
 * (dynamic) the record's size on the stack.
 */
static void emit_reserve(struct emitter *e, const struct recorder_rings *rings,
			 const struct tracepoint *tp)
{
	emit_load(e, 8, POS, RING, LIVE(head));
	if (tp->has_dynamic) {
		/* RAW's 4-byte size, the payload and the padding end on an 8-byte border */
		emit_mov(e, R1, TAIL);
		emit_alu_imm(e, BPF_ADD, R1, tp->fixed_size + 4 + 7);
		emit_alu_imm(e, BPF_AND, R1, ~7);
		emit_alu_imm(e, BPF_ADD, R1, RECORD_RAW_SIZE);
		emit_store(e, 8, FRAME, STACK_SIZE, R1);
		emit_alu(e, BPF_SUB, POS, R1);
	} else {
		emit_alu_imm(e, BPF_SUB, POS, record_size(tp->fixed_size));
	}
	emit_store(e, 8, FRAME, STACK_HEAD, POS);
	emit_publish(e, LIVE(reserve), POS);
	emit_alu_imm(e, BPF_AND, POS, rings->data_size - 1);
	emit_alu(e, BPF_ADD, POS, RING);
	emit_alu_imm(e, BPF_ADD, POS, rings->header_size);
}

/* Zeroes the padding behind the payload by zeroing the record's last 8 bytes first. */
static void emit_zero_tail(struct emitter *e, const struct tracepoint *tp)
{
	if (!tp->has_dynamic) {
		emit_store_imm(e, 8, POS, record_size(tp->fixed_size) - 8, 0);
		return;
	}
	emit_load(e, 8, R1, FRAME, STACK_SIZE);
	emit_alu(e, BPF_ADD, R1, POS);
	emit_store_imm(e, 8, R1, -8, 0);
}

/* Everything before the payload, and the payload's common fields. */
static void emit_header(struct emitter *e, const struct tracepoint *tp)
{
	uint64_t header = PERF_RECORD_SAMPLE | (uint64_t)PERF_RECORD_MISC_KERNEL << 32;

	emit_call(e, BPF_FUNC_ktime_get_ns);
	emit_store(e, 8, POS, RECORD_TIME, R0);
	emit_call(e, BPF_FUNC_get_current_pid_tgid);
	emit_mov(e, R1, R0); /* tgid << 32 | tid */
	emit_alu_imm(e, BPF_RSH, R1, 32);
	emit_store(e, 4, POS, RECORD_TID, R1);
	emit_store(e, 4, POS, RECORD_TID + 4, R0);
	emit_alu_imm(e, BPF_LSH, R0, 32);
	emit_alu_imm(e, BPF_OR, R0, tp->id);
	emit_store(e, 8, POS, RECORD_PAYLOAD, R0);

	if (tp->has_dynamic) {
		emit_load_imm64(e, R1, header);
		emit_load(e, 8, R2, FRAME, STACK_SIZE);
		emit_mov(e, R3, R2);
		emit_alu_imm(e, BPF_SUB, R3, RECORD_PAYLOAD);
		emit_store(e, 4, POS, RECORD_RAW_SIZE, R3);
		emit_alu_imm(e, BPF_LSH, R2, 48);
		emit_alu(e, BPF_OR, R1, R2);
	} else {
		header |= (uint64_t)record_size(tp->fixed_size) << 48;
		emit_load_imm64(e, R1, header);
		emit_store_imm(e, 4, POS, RECORD_RAW_SIZE, raw_size(tp->fixed_size));
	}
	emit_store(e, 8, POS, 0, R1);
}

/* The fixed part behind the common fields, by the widest loads that stay inside and aligned. */
static void emit_fixed(struct emitter *e, const struct tracepoint *tp)
{
	uint32_t offset = COMMON_SIZE;

	while (offset < tp->fixed_size) {
		int size = 8;

		while (offset + size > tp->fixed_size || offset % size)
			size /= 2;
		emit_load(e, size, R1, CONTEXT, offset);
		emit_store(e, size, POS, RECORD_PAYLOAD + offset, R1);
		offset += size;
	}
}

static void emit_dynamic(struct emitter *e, const struct tracepoint *tp)
{
	emit_mov(e, R1, POS);
	emit_alu_imm(e, BPF_ADD, R1, RECORD_PAYLOAD + tp->fixed_size);
	emit_mov(e, R2, TAIL);
	emit_mov(e, R3, CONTEXT);
	emit_alu_imm(e, BPF_ADD, R3, tp->fixed_size);
	emit_call(e, BPF_FUNC_probe_read_kernel);
}

/* records += 1, then the new head. */
static void emit_commit(struct emitter *e)
{
	emit_load(e, 8, R1, RING, LIVE(records));
	emit_alu_imm(e, BPF_ADD, R1, 1);
	emit_store(e, 8, RING, LIVE(records), R1);
	emit_load(e, 8, R1, FRAME, STACK_HEAD);
	emit_publish(e, LIVE(head), R1);
}

static void emit_program(struct emitter *e, const struct tracepoint *tp,
			 const struct recorder_rings *rings)
{
	emit_label no_ring[2], too_long = 0;

	emit_lookup(e, rings, no_ring);
	if (tp->has_dynamic)
		too_long = emit_tail_size(e, tp);
	emit_reserve(e, rings, tp);
	emit_zero_tail(e, tp);
	emit_header(e, tp);
	emit_fixed(e, tp);
	if (tp->has_dynamic)
		emit_dynamic(e, tp);
	emit_commit(e);
	emit_land(e, no_ring[0]);
	emit_land(e, no_ring[1]);
	emit_mov_imm(e, R0, 1);
	emit_exit(e);
	if (tp->has_dynamic) {
		emit_land(e, too_long);
		emit_load(e, 8, R1, RING, LIVE(missed));
		emit_alu_imm(e, BPF_ADD, R1, 1);
		emit_store(e, 8, RING, LIVE(missed), R1);
		emit_mov_imm(e, R0, 1);
		emit_exit(e);
	}
}

static int generic_load(const struct pp_spec *spec _unused_, const struct tracepoint *tp,
			const struct recorder_rings *rings, int *ret_fd)
{
	_cleanup_(emit_done) struct emitter e = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int fd;

	emit_program(&e, tp, rings);
	if (e.error)
		return e.error;
	fd = program_load(BPF_PROG_TYPE_TRACEPOINT, "pp_generic", e.insns, e.n, &opts);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static int generic_attach(const struct pp_spec *spec _unused_, const struct tracepoint *tp,
			  int prog_fd, unsigned cpu, int *ret_fd)
{
	struct perf_event_attr attr;
	_cleanup_close_ int carrier = -EBADF;
	int fd;

	perf_tracepoint_attr(tp, &attr);
	carrier = perf_open(&attr, cpu);
	if (carrier < 0)
		return carrier;
	fd = bpf_link_create(prog_fd, carrier, BPF_PERF_EVENT, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

const struct recorder recorder_generic = {
	.kind = PP_RECORDER_GENERIC,
	.plan = generic_plan,
	.load = generic_load,
	.attach = generic_attach,
};
