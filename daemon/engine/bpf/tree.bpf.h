/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registry's files, as iterator programs. `info` and `stat` are pinned links of these: opening
 * the file runs the program, and reading it returns the program's output, with or without a daemon.
 * `totals` gives the broker the last line of each `stat` (daemon/totals.h). A part of
 * iterators.bpf.c.
 *
 * Both iterate over one task, and print nothing for it: every iterator runs its program once more at
 * its end, without a task, and that call prints the whole file (task_seq_stop() in
 * kernel/bpf/task_iter.c, 6.1 to 7.3). Iterators over a map's elements would give a call for each
 * CPU, but not all kernels that are locked down accept them.
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
const volatile __u32 possible_cpus = 1;

/* ── info: the text that the engine wrote ───────────────────────────────────────────────── */

SEC("iter/task")
int info(struct bpf_iter__task *ctx)
{
	__u32 zero = 0;
	struct pp_meta_head *m = bpf_map_lookup_elem(&meta, &zero);

	if (m && !ctx->task)
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

/*
 * What one call prints has to fit into the kernel's buffer of 8 pages (bpf_seq_read() in
 * kernel/bpf/bpf_iter.c, 6.1 to 7.3); else reading fails with E2BIG. No line is longer than
 * LINE_SIZE, and two follow those of the CPUs.
 */
#define LINE_SIZE 256

static __always_inline bool has_room(const struct seq_file *seq)
{
	return seq->size - seq->count >= 3 * LINE_SIZE;
}

struct stat_walk {
	struct seq_file *seq;
	struct counts total;
	struct counts others; /* part of total: CPUs for whose lines there was no room */
	__u64 n_others;
};

static long stat_cpu(__u32 cpu, struct stat_walk *w)
{
	struct counts one = {};
	__u64 away = away_since(cpu);
	bool recorded = count_ring(cpu, &one);

	if (recorded)
		add_earlier(cpu, &one);
	if (recorded && !is_deleted())
		one.missed += program_misses(cpu);
	one.ringless = count_ringless(cpu);
	one.missed += one.ringless;
	one.away = recorded && away;
	add(&w->total, &one);
	if (!recorded && !one.ringless)
		return 0;
	if (has_room(w->seq)) {
		print_cpu(w->seq, cpu, &one, away);
	} else {
		add(&w->others, &one);
		w->n_others++;
	}
	return 0;
}

/* The verifier goes through the loop again for each value of a sum, if it knows the value that the
 * sum begins with. It knows nothing of what a helper has read. */
static __always_inline void begin_walk(struct stat_walk *w, struct seq_file *seq)
{
	__builtin_memset(w, 0, sizeof(*w));
	bpf_probe_read_kernel(w, sizeof(*w), w);
	w->seq = seq;
}

static __always_inline void print_sum(struct seq_file *seq, const struct counts *sum)
{
	print_counts(seq, sum);
	if (sum->away)
		BPF_SEQ_PRINTF(seq, " away=%llu", sum->away);
	BPF_SEQ_PRINTF(seq, "\n");
}

SEC("iter/task")
int stat(struct bpf_iter__task *ctx)
{
	struct stat_walk w;

	if (ctx->task)
		return 0;
	be_known();
	begin_walk(&w, ctx->meta->seq);
	bpf_loop(possible_cpus, stat_cpu, &w, 0);
	if (w.n_others) {
		BPF_SEQ_PRINTF(w.seq, "others cpus=%llu", w.n_others);
		print_sum(w.seq, &w.others);
	}
	BPF_SEQ_PRINTF(w.seq, "total");
	print_sum(w.seq, &w.total);
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
	if (!bpf_core_field_exists(struct bpf_prog_stats, misses))
		return 0; /* 6.1 to 7.x have it */
	element = per_cpu_element();
	bpf_core_read(&stats, sizeof(stats), &prog->stats); /* as a number, not a pointer */
	if (element && stats)
		*distance = stats + bpf_core_field_offset(struct bpf_prog_stats, misses) - element;
	return 0;
}
