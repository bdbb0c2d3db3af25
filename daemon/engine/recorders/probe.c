// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder of kprobes and uprobes: a program emitted from the list of arguments, on a perf
 * event of the kernel's dynamic PMU for probes, so that tracefs shows nothing. probe-format.c lays
 * out the payload. As with tracepoints the perf event is never enabled: it carries the link, and
 * one is enough for all CPUs.
 *
 * A filter must see the arguments before there is a record: then the program gathers them on the
 * stack and copies them; otherwise it writes them to their place.
 */
#include "daemon/engine/recorders/probe.h"

#include <asm/ptrace.h>
#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

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
#include "proto/macro.h"

enum {
	R0,
	R1,
	R2,
	R3,
	CONTEXT = RING_CONTEXT, /* struct pt_regs */
	POS = RING_POS,
	GATHERED = BPF_REG_9, /* the payload on the stack */
	FRAME = RING_FRAME,
};

#define STACK_WORD (RING_STACK_END - 8) /* the result of a dereference */
#define STACK_MAX 512
#define GATHERED_MAX (STACK_MAX - FILTER_STACK_SMALL + STACK_WORD)

_Static_assert(STACK_WORD - GATHERED_MAX >= USER_DUMP_STACK_FRONT + 8,
	       "the user dump has slots of its own");

/* ── the machine ────────────────────────────────────────────────────────────────────────── */

#if defined(__x86_64__)
#define REGISTER(name) ((int)offsetof(struct pt_regs, name))
#define REGISTERS_SIZE sizeof(struct pt_regs)
#define REGISTER_IP REGISTER(rip)
#define REGISTER_RETURN REGISTER(rax)
/* A kprobe's handler sees the address after the breakpoint. */
#define KPROBE_IP_BEYOND 1
static const int argument_registers[] = { REGISTER(rdi), REGISTER(rsi), REGISTER(rdx),
					  REGISTER(rcx), REGISTER(r8),	REGISTER(r9) };
#elif defined(__aarch64__)
#define REGISTER(i) ((int)offsetof(struct user_pt_regs, regs[i]))
#define REGISTERS_SIZE sizeof(struct user_pt_regs)
#define REGISTER_IP ((int)offsetof(struct user_pt_regs, pc))
#define REGISTER_RETURN REGISTER(0)
#define KPROBE_IP_BEYOND 0
static const int argument_registers[] = { REGISTER(0), REGISTER(1), REGISTER(2),
					  REGISTER(3), REGISTER(4), REGISTER(5) };
#else
#error "the calling convention of this architecture is not known here"
#endif

/* The dynamic PMU's type; -EOPNOTSUPP: the kernel was built without such probes. */
static int pmu_type(const struct pp_source *parsed, uint32_t *ret, struct failure *f)
{
	bool is_kprobe = parsed->kind == PP_SOURCE_KPROBE;
	_cleanup_fclose_ FILE *file = NULL;
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type",
		 is_kprobe ? "kprobe" : "uprobe");
	file = fopen(path, "re");
	if (!file || fscanf(file, "%u", ret) != 1)
		return fail(f, EOPNOTSUPP,
			    "'%s' cannot be recorded: this kernel has no %s (it was built without "
			    "%s); use a tracepoint instead, or another kernel.",
			    parsed->text, is_kprobe ? "kprobes" : "uprobes",
			    is_kprobe ? "CONFIG_KPROBES" : "CONFIG_UPROBES");
	return 0;
}

/* ── planning ───────────────────────────────────────────────────────────────────────────── */

static bool is_user(const struct source *source)
{
	return source->parsed->kind == PP_SOURCE_UPROBE;
}

static struct record record_of(const struct source *source)
{
	struct record record = {
		.id = source->id,
		.type = source->tp->id,
		.fixed_size = source->tp->fixed_size,
		.misc = is_user(source) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL,
		.chain = { .is_there = chain_halves(source->spec),
			   .halves = chain_halves(source->spec),
			   .frames = chain_frames(source->spec),
			   .is_preemptible = is_user(source) },
	};

	record.user_stack = user_dump_stack(source->spec->stack_user,
					    record_spill_size(&record, source->tp->fixed_size));
	return record;
}

static void make_attr(const struct pp_source *parsed, uint32_t type, struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){
		.type = type,
		.size = sizeof(*ret),
		/* By the PMUs' format files: bit 0 for returns, the counter from bit 32. */
		.config = parsed->is_return | parsed->ref_ctr_offset << 32,
		.config2 = parsed->offset,
		.sample_period = 1,
		.sample_type = RECORD_SAMPLE_TYPE,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1,
	};
}

/*
 * The kernel misses a kprobe that is hit while another one is handled, and a return that it has no
 * room to remember; programs cannot see its counts of these. Only uprobes at entries miss nothing
 * unseen: since 6.0 nothing keeps their programs from running.
 */
static bool misses_unseen(const struct source *source)
{
	return !is_user(source) || source->parsed->is_return || !kernel_is_at_least(6, 0);
}

static int check_gathered(const struct source *source, uint32_t max, struct failure *f)
{
	if (source->tp->fixed_size <= max)
		return 0;
	return fail(
		f, E2BIG,
		"A filter or key on '%.200s' would need %u bytes of arguments at hand, and %u is "
		"the most; record fewer strings, or leave it out.",
		source->parsed->text, source->tp->fixed_size, max);
}

static int probe_plan(struct source *source, struct failure *f)
{
	const struct pp_source *parsed = source->parsed;
	struct record record;
	uint32_t type;
	int r;

	if (parsed->kind != PP_SOURCE_KPROBE && parsed->kind != PP_SOURCE_UPROBE)
		return -EOPNOTSUPP;
	r = pmu_type(parsed, &type, f);
	if (r < 0)
		return r;
	if (source->n_filter)
		r = check_gathered(source, GATHERED_MAX, f);
	if (r < 0)
		return r;
	record = record_of(source);
	source->recorder = &recorder_probe;
	source->sample_type = record_sample_type(&record);
	source->spill_size = record_spill_size(&record, source->tp->fixed_size);
	source->missed = misses_unseen(source) ? PP_MISSED_UNKNOWN : PP_MISSED_COUNTED;
	source->can_nest = is_user(source);
	make_attr(parsed, type, &source->attr);
	chain_describe(source->spec, &source->attr);
	user_dump_describe(source->spec, &source->attr);
	return 0;
}

/* ── arguments ──────────────────────────────────────────────────────────────────────────── */

/* R3 = the place's value. -EINVAL: no such place. */
static int emit_place(struct emitter *e, const struct pp_probe_arg *arg)
{
	switch (arg->place) {
	case PP_PROBE_REGISTER:
		if (arg->number >= REGISTERS_SIZE / 8)
			return -EINVAL;
		emit_load(e, 8, R3, CONTEXT, 8 * (int)arg->number);
		return 0;
	case PP_PROBE_ARGUMENT:
		if (arg->number < 1 || arg->number > ARRAY_SIZE(argument_registers))
			return -EINVAL;
		emit_load(e, 8, R3, CONTEXT, argument_registers[arg->number - 1]);
		return 0;
	case PP_PROBE_RETURN:
		emit_load(e, 8, R3, CONTEXT, REGISTER_RETURN);
		return 0;
	case PP_PROBE_CONSTANT:
		emit_load_imm64(e, R3, (uint64_t)arg->value);
		return 0;
	default:
		return -EINVAL;
	}
}

/* R3 = the number at R3; 0 if it cannot be read. */
static void emit_follow(struct emitter *e, bool user, uint32_t size)
{
	emit_mov(e, R1, FRAME);
	emit_alu_imm(e, BPF_ADD, R1, STACK_WORD);
	emit_mov_imm(e, R2, (int32_t)size);
	emit_call(e, user ? BPF_FUNC_probe_read_user : BPF_FUNC_probe_read_kernel);
	emit_load(e, (int)size, R3, FRAME, STACK_WORD);
}

/* Writes the argument at dst + off. A string's last dereference is left to probe_read_*_str(). */
static int emit_argument(struct emitter *e, const struct pp_probe_arg *arg, bool user, int dst,
			 int off)
{
	int r = emit_place(e, arg);

	if (r < 0 || arg->dereferences > ARRAY_SIZE(arg->offsets))
		return -EINVAL;
	for (uint32_t i = 0; i < arg->dereferences; i++) {
		bool last = i + 1 == arg->dereferences;

		emit_alu_imm(e, BPF_ADD, R3, arg->offsets[i]);
		if (!last)
			emit_follow(e, user, 8);
		else if (!arg->is_string)
			emit_follow(e, user, arg->size);
	}
	if (!arg->is_string) {
		emit_store(e, (int)arg->size, dst, off, R3);
		return 0;
	}
	emit_mov(e, R1, dst);
	emit_alu_imm(e, BPF_ADD, R1, off);
	emit_mov_imm(e, R2, PP_PROBE_STRING_SIZE);
	emit_call(e, user ? BPF_FUNC_probe_read_user_str : BPF_FUNC_probe_read_kernel_str);
	return 0;
}

/* Writes the probe's address: the fields in front of the arguments. */
static void emit_where(struct emitter *e, const struct source *source, int dst, int off)
{
	int ip = off + RECORD_COMMON_SIZE;

	if (source->parsed->is_return) {
		emit_mov(e, R1, CONTEXT);
		emit_call(e, BPF_FUNC_get_func_ip); /* 0 for uprobes before 6.6 */
		emit_store(e, 8, dst, ip, R0);
		ip += 8;
	}
	emit_load(e, 8, R1, CONTEXT, REGISTER_IP);
	if (!is_user(source) && !source->parsed->is_return && KPROBE_IP_BEYOND)
		emit_alu_imm(e, BPF_SUB, R1, KPROBE_IP_BEYOND);
	emit_store(e, 8, dst, ip, R1);
}

/* The widest step at `at` that stays below end. */
static uint32_t step(uint32_t at, uint32_t end)
{
	uint32_t size = 8;

	while (at + size > end || at % size)
		size /= 2;
	return size;
}

/* Writes the payload after the common fields to dst + off; dst survives calls. */
static int emit_payload(struct emitter *e, const struct source *source, int dst, int off)
{
	const struct tracepoint *tp = source->tp;
	size_t first = tp->n_fields - source->parsed->n_args;

	/* Clears it: gaps and the ends of strings must not show older bytes. */
	for (uint32_t i = RECORD_COMMON_SIZE; i < tp->fixed_size; i += step(i, tp->fixed_size))
		emit_store_imm(e, (int)step(i, tp->fixed_size), dst, off + (int)i, 0);
	emit_where(e, source, dst, off);
	for (uint32_t i = 0; i < source->parsed->n_args; i++) {
		int r = emit_argument(e, &source->parsed->args[i], is_user(source), dst,
				      off + (int)tp->fields[first + i].offset);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ── the program ────────────────────────────────────────────────────────────────────────── */

/* GATHERED = the payload on the stack. Leaves if the filter rejects it. */
static int emit_filtered(struct emitter *e, const struct source *source,
			 const struct recorder_target *target, struct emit_labels *leave,
			 struct failure *f)
{
	int place = STACK_WORD - (int)ALIGN_TO(source->tp->fixed_size, 8U), r;
	const struct filter_view view = {
		.tp = source->tp,
		.base = FRAME,
		.bias = place,
		.size = source->tp->fixed_size,
		.stack = place,
		.ip_offset = source->parsed->is_return ? 16 : 8,
		.user_memory = is_user(source),
	};

	r = check_gathered(source, target->fire ? GATHERED_MAX - RECORDER_FIRE_STACK : GATHERED_MAX,
			   f);
	if (r < 0)
		return r;
	emit_mov(e, GATHERED, FRAME);
	emit_alu_imm(e, BPF_ADD, GATHERED, place);
	r = emit_payload(e, source, GATHERED, 0);
	if (r < 0)
		return r;
	return condition_emit(e, source, target, &view, leave, f);
}

static void emit_gathered(struct emitter *e, const struct tracepoint *tp, int payload)
{
	for (uint32_t i = RECORD_COMMON_SIZE; i < tp->fixed_size; i += step(i, tp->fixed_size)) {
		int size = (int)step(i, tp->fixed_size);

		emit_load(e, size, R1, GATHERED, (int)i);
		emit_store(e, size, POS, payload + (int)i, R1);
	}
}

static int emit_program(struct emitter *e, const struct source *source,
			const struct recorder_target *target, struct failure *f)
{
	_cleanup_(emit_labels_done) struct emit_labels leave = {}, unwritten = {}, beyond = {};
	const struct record record = record_of(source);
	int payload = record_payload(&record), r = 0;

	emit_guard(e, target->guard, 0);
	emit_mov(e, CONTEXT, R1);
	if (recorder_filters(source, target))
		r = emit_filtered(e, source, target, &leave, f);
	else
		emit_fire(e, target);
	if (r < 0)
		return r;
	emit_ring_find(e, target, &unwritten);
	emit_rate_limit(e, target, &unwritten);
	emit_record_reserve(e, &record, target, -1, &unwritten, &beyond);
	emit_record(e, &record, target);
	if (recorder_filters(source, target))
		emit_gathered(e, source->tp, payload);
	else
		r = emit_payload(e, source, POS, payload);
	if (r < 0)
		return r;
	emit_record_end(e, &record);
	emit_ring_commit(e, target);
	emit_wakeup(e, target, record_time(&record));
	emit_land_all(e, &unwritten);
	emit_tell(e, target, CONTEXT);
	emit_land_all(e, &leave);
	emit_mov_imm(e, R0, 0);
	emit_exit(e);
	emit_closing_end(e, target, CONTEXT, 0, &beyond);
	return e->error;
}

static int probe_load(const struct source *source, const struct recorder_target *target,
		      int *ret_fd, struct failure *f)
{
	return emitted_load(BPF_PROG_TYPE_KPROBE, "pp_probe", source, target, emit_program, ret_fd,
			    f);
}

/* ── the entry ──────────────────────────────────────────────────────────────────────────── */

static const struct recorder_class class = { .type = BPF_PROG_TYPE_KPROBE };

static int probe_class(const struct source *source _unused_, struct recorder_class *ret)
{
	*ret = class;
	return 0;
}

static int probe_entry(const struct source *source _unused_, const struct recorder_slot *slot,
		       int *ret_fd)
{
	return entry_load(&class, slot, ret_fd);
}

static const char *probe_entry_class(const struct source *source _unused_)
{
	return "kprobe";
}

/* -ENOENT: no such function or file; -EINVAL, -EILSEQ: no place for a probe. */
static int probe_attach(const struct source *source, int entry_fd, const struct perf_place *at,
			int *ret_fd)
{
	const struct pp_source *parsed = source->parsed;
	struct perf_event_attr attr = source->attr;
	_cleanup_close_ int carrier = -EBADF;
	int fd;

	/* kprobe_func and uprobe_path share config1. */
	attr.config1 = (uintptr_t)(is_user(source) ? parsed->path : parsed->name);
	carrier = perf_open_at(&attr, at);
	if (carrier < 0)
		return carrier;
	fd = bpf_link_create(entry_fd, carrier, BPF_PERF_EVENT, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

const struct recorder recorder_probe = {
	.kind = PP_RECORDER_PROBE,
	.plan = probe_plan,
	.load = probe_load,
	.class = probe_class,
	.entry = probe_entry,
	.entry_class = probe_entry_class,
	.attach = probe_attach,
	.per_cpu = false,
	.is_direct = true,
};
