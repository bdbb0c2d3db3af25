/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registry's files, as iterator programs. `info` and `stat` are pinned links of these: opening
 * the file runs the program, and reading it returns the program's output, with or without a daemon.
 * `totals` gives the broker the last line of each `stat` (daemon/totals.h). A part of
 * iterators.bpf.c.
 *
 * The first two are loaded as templates: each event has its own copies, with its own maps in place
 * of these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "daemon/engine/bpf/hotplug.h"
#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/tree.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/totals.h"
#include "proto/ring.h"

struct ring_template {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, PP_RING_PAGE);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring_template);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_meta_head);
} meta SEC(".maps");

/* Shared by all events: `stat` walks its elements, one per possible CPU, which have no content. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the engine sets it */
	__type(key, __u32);
	__type(value, __u32);
} cpus SEC(".maps");

/* Counts, for each CPU, the events that found no ring. An event of listed CPUs has no such map, and
 * reads this one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ringless SEC(".maps");

/* The counts, for each CPU, of the event's rings before they were replaced. An event with its first
 * rings has no such map, and reads this one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tree_counts);
} earlier SEC(".maps");

/* Belongs to the instance, on kernels that tell when CPUs go offline. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_cpu_state);
} states SEC(".maps");

/* One element. Its address on each CPU tells where that CPU's copy of any variable lies. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} per_cpu SEC(".maps");

/*
 * For each program: the distance from the address of per_cpu's element on a CPU to the counter of
 * that program's misses on that CPU. An event's own map has one element per program.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, __s64[TREE_PROGRAMS_MAX]);
} distances SEC(".maps");

const volatile struct tree_constants constants = {};

/* ── info: the text that the engine wrote ───────────────────────────────────────────────── */

SEC("iter/bpf_map_elem")
int info(struct bpf_iter__bpf_map_elem *ctx)
{
	struct pp_meta_head *m = ctx->value;

	if (m)
		bpf_seq_write(ctx->meta->seq, m->text, m->text_size & (PP_META_TEXT_SIZE - 1));
	return 0;
}

/* ── stat: each ring's live words, and the kernel's counts of misses ────────────────────── */

struct counts {
	__u64 records, bytes, limited, missed;
	__u64 ringless; /* part of missed: events that found no ring */
	__u64 idle;	/* periods without a sample while the CPU idled; not part of missed */
	__u64 away;	/* CPUs with a ring that are offline */
};

/*
 * The sum over the CPUs shown so far, for each open file. The newest is kept apart: when the
 * reader's buffer is full, the kernel shows the same element once more.
 */
struct sum {
	__u64 seq_num; /* of newest */
	struct counts older, newest;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH); /* forgets readers that did not read to the end */
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct sum);
} sums SEC(".maps");

static __always_inline void add(struct counts *to, const struct counts *c)
{
	to->records += c->records;
	to->bytes += c->bytes;
	to->limited += c->limited;
	to->missed += c->missed;
	to->ringless += c->ringless;
	to->idle += c->idle;
	to->away += c->away;
}

/* Begins a sum with the first CPU; a sum that was forgotten does not begin again. */
static __always_inline void sum_up(const struct bpf_iter_meta *reader, const struct counts *one)
{
	__u64 session = reader->session_id;
	struct sum first = { .seq_num = reader->seq_num, .newest = *one };
	struct sum *sum;

	if (reader->seq_num == 0) {
		bpf_map_update_elem(&sums, &session, &first, BPF_ANY);
		return;
	}
	sum = bpf_map_lookup_elem(&sums, &session);
	if (!sum)
		return;
	if (sum->seq_num != reader->seq_num)
		add(&sum->older, &sum->newest);
	sum->seq_num = reader->seq_num;
	sum->newest = *one;
}

static __always_inline bool is_deleted(void)
{
	__u32 zero = 0;
	const struct pp_meta_head *m = bpf_map_lookup_elem(&meta, &zero);

	return m && m->deleted;
}

/*
 * Misses of the event's programs on one CPU. The kernel counts them in a per-CPU struct for each
 * program, and `distances` has its address relative to per_cpu's. The verifier knows how many there
 * are, and bounds the loop.
 */
static __always_inline __u64 program_misses(__u32 cpu)
{
	__u64 address = 0, misses = 0, one;
	const __s64 *distance;
	__u32 zero = 0;
	void *mine;

	if (!constants.n_programs)
		return 0;
	distance = bpf_map_lookup_elem(&distances, &zero);
	mine = bpf_map_lookup_percpu_elem(&per_cpu, &zero, cpu);
	/* The verifier lets a pointer become a number only through memory. */
	bpf_probe_read_kernel(&address, sizeof(address), &mine);
	if (!address || !distance)
		return 0;
	for (__u32 i = 0; i < TREE_PROGRAMS_MAX; i++) {
		if (i >= constants.n_programs)
			break;
		one = 0;
		bpf_probe_read_kernel(&one, sizeof(one), (void *)(address + distance[i]));
		misses += one;
	}
	return misses;
}

static __always_inline bool count_ring(__u32 cpu, struct counts *ret)
{
	const struct pp_ring_header *header;
	__u32 key = cpu, zero = 0;
	void *inner, *ring;

	inner = bpf_map_lookup_elem(&rings, &key);
	if (!inner)
		return false;
	ring = bpf_map_lookup_elem(inner, &zero);
	if (!ring)
		return false;
	header = ring;
	ret->records = header->live.records;
	ret->bytes = -header->live.head;
	ret->limited = header->limit.limited;
	ret->missed = header->live.missed;
	ret->idle = header->live.idle;
	return true;
}

static __always_inline void add_earlier(__u32 cpu, struct counts *ret)
{
	const struct tree_counts *e = bpf_map_lookup_elem(&earlier, &cpu);

	if (!e)
		return;
	ret->records += e->records;
	ret->bytes += e->bytes;
	ret->limited += e->limited;
	ret->missed += e->missed;
	ret->idle += e->idle;
}

static __always_inline __u64 count_ringless(__u32 cpu)
{
	const __u64 *count = bpf_map_lookup_elem(&ringless, &cpu);

	return count ? *count : 0;
}

/* When the CPU went offline, in nanoseconds; 0: it is online. */
static __always_inline __u64 away_since(__u32 cpu)
{
	const struct pp_cpu_state *state = bpf_map_lookup_elem(&states, &cpu);

	return state ? state->away : 0;
}

static __always_inline void print_counts(struct seq_file *seq, const struct counts *c)
{
	BPF_SEQ_PRINTF(seq, " records=%llu bytes=%llu limited=%llu missed=", c->records, c->bytes,
		       c->limited);
	if (constants.missed_unknown)
		BPF_SEQ_PRINTF(seq, "unknown");
	else
		BPF_SEQ_PRINTF(seq, "%llu", c->missed);
	if (constants.missed_at_least && !constants.missed_unknown)
		BPF_SEQ_PRINTF(seq, "+");
	/* These are known in any case. */
	if (c->ringless)
		BPF_SEQ_PRINTF(seq, " ringless=%llu", c->ringless);
	if (c->idle)
		BPF_SEQ_PRINTF(seq, " idle=%llu", c->idle);
}

static __always_inline int print_total(struct seq_file *seq, __u64 session)
{
	struct sum *sum = bpf_map_lookup_elem(&sums, &session);
	struct counts total;

	if (!sum) { /* more readers at once than the map holds: no total is better than a low one */
		BPF_SEQ_PRINTF(seq, "total unknown\n");
		return 0;
	}
	total = sum->older;
	add(&total, &sum->newest);
	BPF_SEQ_PRINTF(seq, "total");
	print_counts(seq, &total);
	if (total.away)
		BPF_SEQ_PRINTF(seq, " away=%llu", total.away);
	BPF_SEQ_PRINTF(seq, "\n");
	return 0;
}

/* Times are in seconds, as those of records are. */
static __always_inline void print_cpu(struct seq_file *seq, __u32 cpu, const struct counts *c,
				      __u64 away)
{
	BPF_SEQ_PRINTF(seq, "cpu%u", cpu);
	print_counts(seq, c);
	if (away)
		BPF_SEQ_PRINTF(seq, " away=%llu.%06llu", away / 1000000000,
			       away % 1000000000 / 1000);
	BPF_SEQ_PRINTF(seq, "\n");
}

#include "daemon/engine/bpf/totals.bpf.h"

/* Runs once for each CPU, and once more, without a key, at the end. */
SEC("iter/bpf_map_elem")
int stat(struct bpf_iter__bpf_map_elem *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	const __u32 *key = ctx->key;
	struct counts one = {};
	__u64 away;
	bool recorded;
	__u32 cpu;

	if (!key)
		return print_total(seq, ctx->meta->session_id);
	cpu = *key;
	if (cpu == 0)
		be_known();
	recorded = count_ring(cpu, &one);
	if (recorded)
		add_earlier(cpu, &one);
	if (recorded && !is_deleted())
		one.missed += program_misses(cpu);
	one.ringless = count_ringless(cpu);
	one.missed += one.ringless;
	away = away_since(cpu);
	one.away = recorded && away;
	sum_up(ctx->meta, &one);
	if (recorded || one.ringless)
		print_cpu(seq, cpu, &one, away);
	return 0;
}

/* ── finds the counters of programs' misses: run once when an event's files are made ─────── */

/* In: the ids of the programs. Out: the distance of each (see `distances`); 0: not found. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TREE_PROGRAMS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __s64);
} wanted SEC(".maps");

SEC("iter/bpf_prog")
int find_stats(struct bpf_iter__bpf_prog *ctx)
{
	struct bpf_prog *prog = ctx->prog;
	__u64 element, stats = 0;
	__s64 *distance;
	__u32 id;

	if (!prog)
		return 0;
	id = prog->aux->id;
	distance = bpf_map_lookup_elem(&wanted, &id);
	if (!distance)
		return 0;
	/* Kernels before 5.16 have another layout, those before 5.19 lack what `stat` needs. */
	if (!bpf_core_field_exists(struct bpf_prog_stats, misses) ||
	    !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_map_lookup_percpu_elem))
		return 0;
	element = per_cpu_element();
	bpf_core_read(&stats, sizeof(stats), &prog->stats); /* as a number, not a pointer */
	if (element && stats)
		*distance = stats + bpf_core_field_offset(struct bpf_prog_stats, misses) - element;
	return 0;
}
