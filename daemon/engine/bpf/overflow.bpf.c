// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorder of sampling events: runs when the event's counter has counted a period, and writes a
 * PERF_SAMPLE_IP | TID | TIME | [ADDR |] PERIOD [| CALLCHAIN [| REGS_USER | STACK_USER]] record into this
 * CPU's ring.
 *
 * A sample's period is the kernel's, as in perf: the number that the counter had to reach for this
 * sample. The kernel runs one program of this kind (or of a tracepoint, or a probe) on a CPU at a
 * time, and silently skips any other. So the program reads the counter each time. It counts whole
 * periods that are missing since it last ran in the ring, and never gives them to the next sample,
 * whose task may be another one. Samples that a filter or a rate limit drops are not missing.
 */
#include <linux/bpf_perf_event.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "daemon/engine/bpf/overflow.h"
#include "daemon/engine/bpf/ring.bpf.h"
#include "daemon/engine/bpf/user-regs.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct overflow_constants overflow_constants = {};

#define EVENT_CONSTANT(member) CONSTANT(overflow_constants, member)
#define EVENT_OPTION(member) OPTION(overflow_constants, member)

#if defined(__TARGET_ARCH_x86)
#define SAMPLE_IP(regs) ((regs)->rip)
#define IN_USER(regs) (((regs)->cs & 3) != 0)
#elif defined(__TARGET_ARCH_arm64)
#define SAMPLE_IP(regs) ((regs)->pc)
#define IN_USER(regs) (((regs)->pstate & 0xf) == 0)
#endif

/* This program's own: the counter's value when it last ran on this CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct overflow_counter);
} counters SEC(".maps");

/*
 * Scratch for the two halves of a call chain: their size must be known before the record is
 * reserved. One copy per CPU serves all events, since no two of these programs run on a CPU at a
 * time.
 */
#define FRAMES 128 /* perf's 127, and a mark */

struct half {
	__u64 mark;
	__u64 ips[FRAMES];
};

struct chain {
	struct half kernel, user;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain);
} chains SEC(".maps");

/* The scheduler's times: its clock on this CPU when it last looked, when the CPU last became idle,
 * and when a task last arrived on the CPU. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct rq {
	__u64 clock, clock_idle;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	__u64 last_arrival;
};

struct mm_struct;

struct task_struct {
	struct mm_struct *mm; /* NULL: it has no memory of its own */
	int pid;
	struct sched_entity se;
	struct sched_info sched_info;
};
#pragma clang attribute pop

struct moment {
	__u64 clock, clock_idle, arrival; /* 0, 0, …: this kernel does not tell */
	bool idles;
};

static __always_inline void look_at_cpu(struct moment *ret)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();
	const struct rq *rq = NULL;

	*ret = (struct moment){};
	if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(rq->clock_idle) ||
	    !bpf_core_field_exists(task->sched_info.last_arrival))
		return;
	rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	ret->clock = BPF_CORE_READ(rq, clock);
	ret->clock_idle = BPF_CORE_READ(rq, clock_idle);
	ret->arrival = BPF_CORE_READ(task, sched_info.last_arrival);
	ret->idles = !BPF_CORE_READ(task, pid);
}

/*
 * How many of the missing periods are no loss: while a CPU idles its clock goes on, and the kernel
 * takes few samples or none. If the CPU idled since the last sample, only the time since the
 * present task arrived is certainly not idle. If it did not idle, all periods are loss.
 */
static __always_inline __u64 count_idle(const struct overflow_counter *last,
					const struct moment *now, __u64 missing, __u64 period)
{
	__u64 busy = 0;

	if (!last->idled && !now->idles && now->clock_idle <= last->clock)
		return 0;
	if (!now->idles && now->clock > now->arrival)
		busy = (now->clock - now->arrival) / period;
	return busy < missing ? missing - busy : 0;
}

/*
 * Counts the periods without a sample since the program last ran. The first run counts none: the
 * program is loaded anew after a pause, whose periods are no loss.
 *
 * Rounds to the nearest number of periods, since an interrupt comes slightly late. Missing periods
 * outside idle time are those that the kernel could not record: another program ran
 * (bpf_prog_active), or the virtual CPU did not.
 *
 * Returns false for a sample of a counter in whose place another one samples already: it has that time, too. (Where
 * several counters of a source count on a CPU, nothing is counted here: can_count_missed(). A change of the period
 * loads other programs, and so has another map: if it fails, the old counters go on.)
 */
static __always_inline bool count_missed(struct bpf_perf_event_data *ctx, struct pp_ring_live *live,
					 struct pp_ring_limit *limit)
{
	__u64 period = ctx->sample_period, delta, missing, idle = 0, cookie;
	struct bpf_perf_event_value value = {};
	struct overflow_counter *last;
	struct moment now = {};
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&counters, &zero);
	if (!last || !period || bpf_perf_prog_read_value(ctx, &value, sizeof(value)))
		return true;
	cookie = bpf_get_attach_cookie(ctx);
	/* A new counter starts at 0 and has a larger cookie than the old one, which goes on until the kernel has
	 * freed its link. */
	if (cookie < last->cookie)
		return false;
	if (cookie != last->cookie)
		last->counter = 0;
	else if (last->has_run && !OPTION(ring_constants, identified) &&
		 live->counter > last->counter)
		/* The program of another side, with a map of its own, has sampled into this ring since. */
		last->counter = live->counter;
	last->cookie = cookie;
	delta = value.counter - last->counter;
	if (!last->has_run)
		delta = period;
	last->counter = live->counter = value.counter;
	last->has_run = 1;
	if (EVENT_OPTION(is_clock))
		look_at_cpu(&now);
	if (delta >= period + period / 2) {
		missing = (delta + period / 2) / period - 1;
		if (EVENT_OPTION(is_clock))
			idle = count_idle(last, &now, missing, period);
		__sync_fetch_and_add(&live->idle, idle);
		__sync_fetch_and_add(&live->missed, missing - idle);
		if (missing > idle)
			limit->missed_time = bpf_ktime_get_ns();
	}
	last->clock = now.clock;
	last->idled = now.idles;
	return true;
}

/* The parts of a sample that are known before its record is reserved. */
struct sample {
	struct ring_place place;
	__u64 ip;
	__u64 period;
	__u64 size; /* of the record */
};

#define FIXED_SIZE 40 /* header, IP, TID, TIME, PERIOD */

/* Where the counter is compared its periods are found when there is a ring again. */
static __always_inline void count_ringless(void)
{
	if (!EVENT_OPTION(count_missed) && !EVENT_OPTION(drops))
		ring_count_ringless();
}

/* Whether to write a record. */
static __always_inline bool take_sample(struct sample *s, struct bpf_perf_event_data *ctx)
{
	struct overflow_payload payload;

	s->place.ring = ring_here();
	if (!s->place.ring && !RING_OPTION(&s->place, filtered)) {
		count_ringless();
		return false;
	}
	s->ip = SAMPLE_IP(&ctx->regs);
	s->period = ctx->sample_period;
	if (EVENT_OPTION(count_missed) && s->place.ring &&
	    !count_missed(ctx, &s->place.ring->live, &s->place.ring->limit))
		return false;
	if (EVENT_OPTION(drops))
		return false;
	s->size = FIXED_SIZE;
	if (RING_OPTION(&s->place, identified))
		s->size += 8;
	if (EVENT_OPTION(has_addr))
		s->size += 8;
	payload.ip = s->ip;
	return !RING_OPTION(&s->place, filtered) || filter_hook(&payload);
}

/* Whether there may be a place for it. */
static __always_inline bool is_admitted(struct sample *s)
{
	if (!s->place.ring) {
		count_ringless();
		return false;
	}
	return !RING_OPTION(&s->place, limited) || ring_admits(&s->place);
}

static __always_inline __u64 *put(__u64 *at, __u64 value)
{
	*(volatile __u64 *)at = value;
	return at + 1;
}

/* Writes the sample; returns where the optional parts go. */
static __always_inline __u64 *put_sample(const struct sample *s, __u64 *at,
					 struct bpf_perf_event_data *ctx, __u64 time)
{
	__u64 who = bpf_get_current_pid_tgid();
	__u64 misc = IN_USER(&ctx->regs) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;

	at = put(at, PERF_RECORD_SAMPLE | misc << 32 | s->size << 48);
	if (RING_OPTION(&s->place, identified))
		at = put(at, RING_CONSTANT(source_id));
	at = put(at, s->ip);
	at = put(at, who >> 32 | who << 32);
	at = put(at, time);
	if (EVENT_OPTION(has_addr))
		at = put(at, ctx->addr);
	return put(at, s->period);
}

/* There is no record here; there may be one on the next side. What fired is told all the same. */
static __always_inline int go_on(const struct sample *s, struct bpf_perf_event_data *ctx)
{
	if (RING_OPTION(&s->place, closes) && s->place.beyond)
		ring_go_on(ctx);
	ring_tell(ctx);
	return 0;
}

SEC("perf_event")
int overflow(struct bpf_perf_event_data *ctx)
{
	struct sample s = {};
	__u64 time;
	void *at;

	if (!take_sample(&s, ctx))
		return 0;
	at = is_admitted(&s) ? ring_reserve(&s.place, s.size) : NULL;
	if (!at)
		return go_on(&s, ctx);
	time = ring_time(&s.place);
	put_sample(&s, at, ctx, time);
	ring_commit(&s.place, time);
	ring_tell(ctx);
	return 0;
}

/*
 * Gathers one half of a call chain: bytes, and where they begin; 0: there is none. perf puts a mark
 * in front of each half. Whether the kernel hands the mark out with the frames depends on its
 * version and on the event: so as many words are asked for as both have together.
 */
static __always_inline __u64 take_half(struct bpf_perf_event_data *ctx, struct half *half,
				       __u64 flags, __u64 mark, void **ret)
{
	__u64 max = EVENT_CONSTANT(chain_half);
	long size = bpf_get_stack(ctx, half->ips, max, flags);

	if (size <= 0)
		return 0;
	if (half->ips[0] == mark) {
		*ret = half->ips;
		return size;
	}
	half->mark = mark;
	*ret = half;
	return (__u64)size < max ? size + sizeof(half->mark) : max;
}

/* Registers and stack of user space, always the task's: a precise sample's context has the interrupt's, with the
 * sample's ip and cs. See user-regs.h. The emitted programs' are in emit/user-dump.c. */
struct user_dump {
	const volatile bpf_user_pt_regs_t *regs; /* the task's */
	__u64 sp, size;				 /* size: in the record */
};

#define LOAD_2(field) (*(const volatile __u16 *)&(field))
#define LOAD_8(field) (field)
#define LOAD_N(bytes, field) LOAD_##bytes(field)
#define LOAD(bytes, field) LOAD_N(bytes, field)

static __always_inline __u64 user_mode(const volatile bpf_user_pt_regs_t *regs)
{
	return LOAD(USER_REGS_MODE_BYTES, regs->USER_REGS_MODE);
}

/* As perf: of an NMI that came while the entry from user space was still storing them. */
static __always_inline bool are_stored(const volatile bpf_user_pt_regs_t *regs,
				       struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	__u64 sp = ctx->regs.rsp;

	return sp < (__u64)&regs->r11 || sp > (__u64)(regs + 1);
#else
	return true;
#endif
}

/* The first byte that cannot be read, or is beyond what is wanted. */
static __always_inline __u64 find_end(__u64 sp)
{
	__u64 at = sp;

	_Pragma("clang loop unroll(full)") for (int i = 0; i < USER_DUMP_PAGES(USER_DUMP_STACK_MAX);
						i++)
	{
		__u8 byte;

		if (bpf_probe_read_user(&byte, sizeof(byte), (const void *)at))
			break;
		at = (at | (USER_DUMP_PAGE - 1)) + 1;
		if (at - sp >= EVENT_CONSTANT(user_stack))
			break;
	}
	return at;
}

static __always_inline void take_user(struct user_dump *u, struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 stack;

	u->size = USER_DUMP_NONE;
	if (!task->mm)
		return;
	u->regs = (const void *)bpf_task_pt_regs(task);
	if ((user_mode(u->regs) & USER_REGS_MODE_MASK) != USER_REGS_MODE_USER)
		return;
	if (!are_stored(u->regs, ctx))
		return;
	u->sp = u->regs->USER_REGS_SP;
	if (!u->sp)
		return;
	stack = (find_end(u->sp) - u->sp) & ~7ULL;
	if (stack > EVENT_CONSTANT(user_stack))
		stack = EVENT_CONSTANT(user_stack);
	u->size = stack ? USER_DUMP_SIZE(stack) : USER_DUMP_REGS;
}

/* bpf_probe_read_user() clears what it cannot read, if a page has gone meanwhile. */
static __always_inline void put_stack(const struct user_dump *u, __u64 *at)
{
	__u64 stack = u->size - USER_DUMP_SIZE(0), read = stack;

	at = put(at, stack);
	if (bpf_probe_read_user(at, stack, (const void *)u->sp))
		read = 0;
	put((void *)at + stack, read);
}

#define PUT_FROM_TASK(name, bytes) at = put(at, LOAD(bytes, u->regs->name));

static __always_inline void put_user(const struct user_dump *u, __u64 *at)
{
	if (u->size == USER_DUMP_NONE) {
		put(put(at, PERF_SAMPLE_REGS_ABI_NONE), 0);
		return;
	}
#ifdef USER_REGS_64
	at = put(at, (user_mode(u->regs) & USER_REGS_64_MASK) == USER_REGS_64
			     ? PERF_SAMPLE_REGS_ABI_64
			     : PERF_SAMPLE_REGS_ABI_32);
#else
	at = put(at, PERF_SAMPLE_REGS_ABI_64);
#endif
	USER_REGS(PUT_FROM_TASK)
	if (u->size < USER_DUMP_SIZE(0))
		put(at, 0);
	else
		put_stack(u, at);
}

/* dumps_user: known at compile time. */
static __always_inline int record_chain(struct bpf_perf_event_data *ctx, bool dumps_user)
{
	__u64 kernel_size, user_size, room, time;
	void *kernel, *user, *frames, *at;
	struct user_dump dump = {};
	struct sample s = {};
	struct chain *chain;
	__u32 zero = 0;

	chain = bpf_map_lookup_elem(&chains, &zero);
	if (!chain || !take_sample(&s, ctx))
		return 0;
	if (!is_admitted(&s))
		return go_on(&s, ctx);
	kernel_size = user_size = 0;
	kernel = user = NULL;
	if (EVENT_OPTION(chain_kernel))
		kernel_size = take_half(ctx, &chain->kernel, 0, PERF_CONTEXT_KERNEL, &kernel);
	if (EVENT_OPTION(chain_user))
		user_size =
			take_half(ctx, &chain->user, BPF_F_USER_STACK, PERF_CONTEXT_USER, &user);
	/* As in perf, both together have as many frames as one may have, beside two marks. */
	room = EVENT_CONSTANT(chain_half) + sizeof(chain->user.mark) - kernel_size;
	if (kernel_size && user_size > room)
		user_size = room;
	s.size += 8 + kernel_size + user_size;
	if (dumps_user) {
		take_user(&dump, ctx);
		s.size += dump.size;
	}

	at = ring_reserve(&s.place, s.size);
	if (!at)
		return go_on(&s, ctx);
	time = ring_time(&s.place);
	frames = put(put_sample(&s, at, ctx, time), (kernel_size + user_size) / sizeof(__u64));
	if (kernel_size)
		bpf_probe_read_kernel(frames, kernel_size, kernel);
	if (user_size)
		bpf_probe_read_kernel(frames + kernel_size, user_size, user);
	if (dumps_user)
		put_user(&dump, frames + kernel_size + user_size);
	ring_commit(&s.place, time);
	ring_tell(ctx);
	return 0;
}

SEC("perf_event")
int overflow_chain(struct bpf_perf_event_data *ctx)
{
	return record_chain(ctx, false);
}

/* With registers and stack of user space. */
SEC("perf_event")
int overflow_user(struct bpf_perf_event_data *ctx)
{
	return record_chain(ctx, true);
}
