// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the recorders in C on this kernel without a daemon: makes rings, loads and attaches programs
 * and entries as the engine does, and reads the rings record by record.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#undef fail /* check has one, too */
#include "daemon/trigger.h"
#include "daemon/engine/bpf/wakeup.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/recorders/fire.h"
#include "daemon/engine/recorders/layout.h"
#include "daemon/engine/recorders/recorder.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/ring.h"
#include "tests/unit/needs.h"
#include "tests/unit/sending.h"

#define HEADER_SIZE PP_RING_PAGE
#define DATA_SIZE (16UL << 20)
#define EVENT_ID 77
#define SOURCE_ID PP_SOURCE_ID(EVENT_ID, 1)
#define OTHER_ID PP_SOURCE_ID(EVENT_ID, 2)

/* ── one CPU's ring, and what writes it ─────────────────────────────────────────────────── */

struct bench {
	unsigned cpu; /* the CPU that everything here runs on */
	int outer, ring_fd, wakeups, sending;
	uint64_t data_size;
	uint32_t spill_size;
	const struct pp_ring_header *ring;
};

static size_t bench_size(const struct bench *b)
{
	return ALIGN_TO(pp_ring_size(HEADER_SIZE, b->data_size, b->spill_size), 4096UL);
}

static struct bench bench_new(uint64_t data_size, uint32_t spill_size)
{
	LIBBPF_OPTS(bpf_map_create_opts, ring, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	struct bench b = { .data_size = data_size, .spill_size = spill_size };
	struct pp_ring_header *header;
	uint32_t slot;
	cpu_set_t set;

	b.cpu = (unsigned)sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET(b.cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);

	b.ring_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ring", 4,
				   pp_ring_size(HEADER_SIZE, data_size, spill_size), 1, &ring);
	ck_assert_int_ge(b.ring_fd, 0);
	header = mmap(NULL, HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, b.ring_fd, 0);
	ck_assert(header != MAP_FAILED);
	header->cpu = b.cpu;
	munmap(header, HEADER_SIZE);
	ck_assert_int_eq(bpf_map_freeze(b.ring_fd), 0);
	b.ring = mmap(NULL, bench_size(&b), PROT_READ, MAP_SHARED, b.ring_fd, 0);
	ck_assert(b.ring != MAP_FAILED);

	outer.inner_map_fd = (uint32_t)b.ring_fd;
	b.outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rings", 4, 4,
				 (uint32_t)libbpf_num_possible_cpus(), &outer);
	ck_assert_int_ge(b.outer, 0);
	slot = b.cpu;
	ck_assert_int_eq(bpf_map_update_elem(b.outer, &slot, &b.ring_fd, BPF_ANY), 0);
	b.wakeups = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wakeups", 0, 0, 4096, NULL);
	ck_assert_int_ge(b.wakeups, 0);
	b.sending = sending_new();
	return b;
}

static void bench_done(struct bench *b)
{
	munmap((void *)b->ring, bench_size(b));
	close(b->ring_fd);
	close(b->outer);
	close(b->wakeups);
	close(b->sending);
}

static struct recorder_target bench_target(const struct bench *b)
{
	return (struct recorder_target){
		.fd = b->outer,
		.header_size = HEADER_SIZE,
		.data_size = b->data_size,
		.spill_size = b->spill_size,
		.cpu = &b->cpu,
		.ring_fd = &b->ring_fd,
		.n = 1,
		.wakeup_fd = -EBADF,
		.sending_fd = b->sending,
		.ringless_fd = -EBADF,
		.event_id = EVENT_ID,
	};
}

/* An attached source. */
struct running {
	int program, slots, entry, link;
};

static void load(const struct source *s, const struct recorder_target *t, int *ret_fd)
{
	struct failure f = {};
	int r = s->recorder->load(s, t, ret_fd, &f);

	ck_assert_msg(r == 0, "%s: %s %s", s->tp ? s->tp->name : "sampling", strerror(-r),
		      f.sentence);
}

static int attach_on(const struct source *s, int entry, unsigned cpu, int *ret)
{
	struct perf_place at = { .cpu = (int)cpu, .tid = -1, .cgroup = -EBADF };

	return s->recorder->attach(s, entry, &at, ret);
}

static struct running run(const struct bench *b, const struct source *s,
			  const struct recorder_target *t)
{
	struct recorder_slot slot = { .index = 0 };
	struct running r;

	load(s, t, &r.program);
	r.slots = slot.fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "slots", 4, 4, 1, NULL);
	ck_assert_int_ge(r.slots, 0);
	ck_assert_int_eq(bpf_map_update_elem(r.slots, &slot.index, &r.program, BPF_ANY), 0);
	ck_assert_int_eq(s->recorder->entry(s, &slot, &r.entry), 0);
	ck_assert_int_eq(attach_on(s, r.entry, b->cpu, &r.link), 0);
	return r;
}

/* A paused slot records nothing until it is refilled. */
static void pause_slot(const struct running *r, bool pause)
{
	uint32_t zero = 0;

	if (pause)
		ck_assert_int_eq(bpf_map_delete_elem(r->slots, &zero), 0);
	else
		ck_assert_int_eq(bpf_map_update_elem(r->slots, &zero, &r->program, BPF_ANY), 0);
}

static void stop(struct running *r)
{
	close(r->link);
	close(r->entry);
	close(r->slots);
	close(r->program);
}

/* ── sources ────────────────────────────────────────────────────────────────────────────── */

static struct pp_spec spec = { .name = "test", .period = 1 };

/* A test has one at a time. Returns 0, or -errno if this kernel's tracepoint does not fit the
 * program. */
static int try_hot(struct source *s, const char *system, const char *name, uint64_t id)
{
	static struct pp_source parsed = { .kind = PP_SOURCE_TRACEPOINT };
	static struct tracepoint tp;
	struct failure f = {};
	int r;

	tracepoint_done(&tp);
	*s = (struct source){ .spec = &spec, .parsed = &parsed, .tp = &tp, .id = id };
	r = tracepoint_read(system, name, &tp);
	return r < 0 ? r : recorder_hot.plan(s, &f);
}

static void plan_hot(struct source *s, const char *system, const char *name, uint64_t id)
{
	ck_assert_int_eq(try_hot(s, system, name, id), 0);
}

static int try_sampling(struct source *s, const struct pp_spec *of, const struct pp_source *parsed,
			uint64_t id)
{
	struct failure f = {};

	*s = (struct source){ .spec = of, .parsed = parsed, .id = id };
	return recorder_overflow.plan(s, &f);
}

static void plan_sampling(struct source *s, const struct pp_spec *of,
			  const struct pp_source *parsed, uint64_t id)
{
	ck_assert_int_eq(try_sampling(s, of, parsed, id), 0);
}

static struct pp_filter_node equals(const char *field, uint64_t value)
{
	struct pp_filter_node node = { .op = PP_FILTER_EQ, .value = value };

	snprintf(node.field, sizeof(node.field), "%s", field);
	return node;
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/* A number in a record, at an offset after its identifier, if it has one. */
static uint64_t word_of(const uint8_t *record, bool identified, size_t offset, size_t size)
{
	uint64_t word = 0;

	memcpy(&word, record + offset + (identified ? 8 : 0), size);
	return word;
}

struct seen {
	uint64_t records;
	uint64_t closes; /* of raw_syscalls:sys_enter: our close(-1) */
	uint64_t others; /* of OTHER_ID */
};

#define TIME_OFFSET 16
#define ID_OFFSET 36  /* of a system call: its number, */
#define ARG_OFFSET 44 /* and its first argument */

/* Walks all records, newest first: times never increase. */
static struct seen read_calls(const struct bench *b, bool identified)
{
	const uint8_t *data = (const uint8_t *)b->ring + HEADER_SIZE;
	uint64_t head = b->ring->live.head, time = UINT64_MAX;
	struct seen seen = {};

	ck_assert_uint_eq(head, b->ring->live.reserve);
	ck_assert_uint_eq(b->ring->live.nest, 0);
	ck_assert_uint_le(-head, b->data_size); /* nothing overwritten */
	for (uint64_t at = head; at != 0;) {
		const uint8_t *record = data + (at & (b->data_size - 1));
		struct perf_event_header h;
		uint64_t id;

		memcpy(&h, record, sizeof(h));
		ck_assert(h.type == PERF_RECORD_SAMPLE);
		ck_assert(h.size >= 32 && h.size % 8 == 0);
		id = identified ? word_of(record, false, 8, 8) : 0;
		ck_assert(!identified || id == SOURCE_ID || id == OTHER_ID);
		if (id == OTHER_ID) {
			/* A sample has its IP before TID and TIME. */
			ck_assert(word_of(record, true, TIME_OFFSET + 8, 8) <= time);
			time = word_of(record, true, TIME_OFFSET + 8, 8);
			seen.others++;
		} else {
			ck_assert(word_of(record, identified, TIME_OFFSET, 8) <= time);
			time = word_of(record, identified, TIME_OFFSET, 8);
			seen.closes += word_of(record, identified, 8, 4) == (uint64_t)getpid() &&
				       word_of(record, identified, ID_OFFSET, 8) == SYS_close &&
				       word_of(record, identified, ARG_OFFSET, 4) == UINT32_MAX;
		}
		seen.records++;
		at += h.size;
	}
	ck_assert_uint_eq(seen.records, b->ring->live.records);
	return seen;
}

static unsigned n_calls = 5000; /* more at full length */

static void make_calls(void)
{
	for (unsigned i = 0; i < n_calls; i++)
		close(-1);
}

/* ── tests ──────────────────────────────────────────────────────────────────────────────── */

#define IDENTIFIED 1
#define FILTERED 2
#define NESTS 4
#define LIMITED 8
#define WAKES 16
#define ALL_OPTIONS 32

/* All combinations or, at the short length, half of them, which still have every combination of all
 * options but one. */
static bool is_tried(int options)
{
	return is_full_length() || !__builtin_parity((unsigned)options);
}

static void set_options(struct recorder_target *t, const struct bench *b, int options)
{
	t->nests = options & NESTS;
	t->max_rate = options & LIMITED ? 10 : 0;
	t->wakeup_fd = options & WAKES ? b->wakeups : -EBADF;
}

/* So does that of a closing side. */
static void load_closing(const struct source *s, struct recorder_target t)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	struct recorder_guard guard = {
		.tape_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tape", 4, sizeof(struct pp_tape), 1,
					  &mapped),
		.side = PP_SIDE_A_CLOSING,
		.sides_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "sides", 4, 4, PP_SIDES, NULL),
		.closes = true,
		.other = PP_SIDE_B,
		.firings_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "firings", 0, 0, 4096, NULL),
		.sending_fd = t.sending_fd,
	};
	int fd;

	t.guard = &guard;
	load(s, &t, &fd);
	close(fd);
	close(guard.tape_fd);
	close(guard.sides_fd);
	close(guard.firings_fd);
}

static unsigned long reads(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/io", "re");
	char line[64];
	unsigned long n;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "syscr: %lu", &n) == 1)
			return n;
	ck_abort_msg("/proc/self/io does not count");
}

/* The same as libbpf's, and not page by page. */
START_TEST(test_kernel_btf)
{
	unsigned long before = reads();
	const struct btf *btf = kernel_btf();
	struct btf *of_file;

	ck_assert_ptr_nonnull(btf);
	ck_assert_ptr_eq(kernel_btf(), btf);
	ck_assert_uint_lt(reads() - before, 20);
	of_file = btf__load_vmlinux_btf();
	ck_assert_uint_eq(btf__type_cnt(btf), btf__type_cnt(of_file));
	ck_assert_int_eq(btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT),
			 btf__find_by_name_kind(of_file, "task_struct", BTF_KIND_STRUCT));
	kernel_btf_forget();
	btf__free(of_file);
}
END_TEST

struct firing {
	struct fire fire;
	struct recorder_fire function;
	struct pp_trigger *state;
	const uint8_t *ringbuf;
	int tell_fd; /* PROG_ARRAY with the program */
};

/* A trigger of events of this class, on these tapes. */
static void make_trigger(struct firing *t, const struct pp_trigger *state, const struct source *s,
			 const int *tapes, unsigned n)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer, .inner_map_fd = (uint32_t)tapes[0]);
	struct recorder_class class;
	uint32_t zero = 0;
	int program;

	t->fire.state_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "state", 4, sizeof(struct pp_trigger),
					  1, &mapped);
	t->fire.targets_fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "targets", 4, 4, PP_TARGETS_MAX, &outer);
	t->fire.pending_fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "pending", 4,
					    sizeof(struct pp_fired), 1, NULL);
	t->fire.firings_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "firings", 0, 0, 4096, NULL);
	t->fire.sending_fd = sending_new();
	t->tell_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "tell", 4, 4, 1, NULL);
	ck_assert(t->fire.state_fd >= 0 && t->fire.targets_fd >= 0 && t->fire.pending_fd >= 0 &&
		  t->fire.firings_fd >= 0 && t->tell_fd >= 0);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_int_eq(bpf_map_update_elem(t->fire.targets_fd, &i, &tapes[i], 0), 0);
	t->state = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, t->fire.state_fd, 0);
	t->ringbuf = mmap(NULL, 8192, PROT_READ, MAP_SHARED, t->fire.firings_fd, 4096);
	ck_assert(t->state != MAP_FAILED && t->ringbuf != MAP_FAILED);
	*t->state = *state;
	ck_assert_int_eq(fire_make(&t->fire, &t->function), 0);
	ck_assert_int_eq(s->recorder->class(s, &class), 0);
	ck_assert_int_eq(fire_load_tell(&t->fire, &class, &program), 0);
	ck_assert_int_eq(bpf_map_update_elem(t->tell_fd, &zero, &program, 0), 0);
	close(program);
}

static void let_fire(struct recorder_target *t, const struct firing *firing)
{
	t->fire = &firing->function;
	t->tell_fd = &firing->tell_fd;
}

static void unmake_trigger(struct firing *t)
{
	munmap(t->state, 4096);
	munmap((void *)t->ringbuf, 8192);
	fire_done(&t->function);
	close(t->fire.state_fd);
	close(t->fire.targets_fd);
	close(t->fire.pending_fd);
	close(t->fire.firings_fd);
	close(t->fire.sending_fd);
	close(t->tell_fd);
}

/* The text of most bytes: dynamic, else the task's name. */
static const char *text_of(const struct tracepoint *tp)
{
	for (size_t i = 0; i < tp->n_fields; i++)
		if (tp->fields[i].is_data_loc && tp->fields[i].is_text)
			return tp->fields[i].name;
	return "comm";
}

/* Instructions that the verifier has followed: what a load costs. */
static uint32_t steps_of(int program)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	ck_assert_int_eq(bpf_obj_get_info_by_fd(program, &info, &size), 0);
	return info.verified_insns;
}

/* An event of many tracepoints has as many programs, which somebody waits for: so the verifier must not follow
 * the function that fires over and over, nor look at each target there. */
#define FIRE_STEPS 3000

/* As a trigger's event, with the filter that takes most of the stack: the function that fires has room. */
static void load_trigger(struct source *s, struct recorder_target t)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	struct pp_filter_node node = { .op = PP_FILTER_GLOB, .is_text = 1, .text = "*a*b" };
	const struct pp_trigger state = { .id = 1 };
	struct firing firing = {};
	uint32_t steps;
	int tape, fd;

	tape = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tape", 4, sizeof(struct pp_tape), 1, &mapped);
	ck_assert_int_ge(tape, 0);
	make_trigger(&firing, &state, s, &tape, 1);
	snprintf(node.field, sizeof(node.field), "%s", text_of(s->tp));
	s->filter = &node;
	s->n_filter = 1;
	load(s, &t, &fd);
	steps = steps_of(fd);
	close(fd);
	let_fire(&t, &firing);
	load(s, &t, &fd);
	ck_assert_uint_lt(steps_of(fd), steps + FIRE_STEPS);
	close(fd);
	unmake_trigger(&firing);
	close(tape);
}

/* Every program in every combination of options passes the verifier. */
START_TEST(test_verifier)
{
	struct pp_filter_node node = equals("common_pid", 1);
	struct bench b = bench_new(PP_DATA_SIZE_MIN, layouts[_i].record_size + 64);
	struct recorder_target t = bench_target(&b);
	int fd;

	for (int options = 0; options < ALL_OPTIONS; options++) {
		struct source s;

		if (!is_tried(options))
			continue;
		plan_hot(&s, layouts[_i].system, layouts[_i].name,
			 options & IDENTIFIED ? SOURCE_ID : 0);
		ck_assert_uint_le(s.spill_size, b.spill_size);
		s.filter = &node;
		s.n_filter = options & FILTERED ? 1 : 0;
		set_options(&t, &b, options);
		load(&s, &t, &fd);
		close(fd);
		if (is_full_length() || !options || options == ALL_OPTIONS - 1)
			load_closing(&s, t);
		if (options == 0 || options == ALL_OPTIONS - 1)
			load_trigger(&s, t);
	}
	bench_done(&b);
}
END_TEST

/* As many records as calls, whatever the options; none while the slot is empty. */
START_TEST(test_exact)
{
	const struct pp_filter_node all[] = { { .op = PP_FILTER_AND },
					      equals("common_pid", (uint64_t)getpid()),
					      equals("id", SYS_close) };
	const int options = _i;
	struct recorder_target t;
	struct running running;
	struct seen seen;
	struct source s;
	struct bench b;

	plan_hot(&s, "raw_syscalls", "sys_enter", options & IDENTIFIED ? SOURCE_ID : 0);
	s.filter = all;
	s.n_filter = options & FILTERED ? ARRAY_SIZE(all) : 0;
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	set_options(&t, &b, options);
	running = run(&b, &s, &t);
	make_calls();
	pause_slot(&running, true);
	seen = read_calls(&b, options & IDENTIFIED);
	if (!(options & LIMITED))
		ck_assert_uint_eq(seen.closes, n_calls);
	else
		ck_assert_uint_gt(b.ring->limit.limited, 0);
	if (options & FILTERED)
		ck_assert_uint_eq(seen.records + b.ring->limit.limited, n_calls);
	ck_assert_uint_eq(b.ring->live.missed, 0);
	ck_assert(!(options & WAKES) == !b.ring->limit.woken);

	make_calls();
	ck_assert_uint_eq(b.ring->live.records, seen.records);
	pause_slot(&running, false);
	close(-1);
	ck_assert(options & LIMITED || b.ring->live.records > seen.records);
	stop(&running);
	bench_done(&b);
}
END_TEST

/* ── the sides of a tape ────────────────────────────────────────────────────────────────── */

/* An armed event: two sets of rings, and none; and windows. */
struct armed {
	struct bench rings[2], nowhere;
	int ringless, tape_fd, sides, firings, sending;
	struct pp_tape *tape;
	int program[PP_SIDES];
};

static struct bench *bench_of(struct armed *a, uint32_t side)
{
	if (side == PP_SIDE_NONE)
		return &a->nowhere;
	return &a->rings[side >= PP_SIDE_A_CLOSING ? side - PP_SIDE_A_CLOSING : side];
}

static void arm(struct armed *a, const struct source *s, bool nests)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	uint32_t n_cpus = (uint32_t)libbpf_num_possible_cpus();

	a->tape_fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "tape", 4, sizeof(struct pp_tape), 1, &mapped);
	a->sides = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "sides", 4, 4, PP_SIDES, NULL);
	a->ringless = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ringless", 4, 8, n_cpus, NULL);
	a->firings = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "firings", 0, 0, 4096, NULL);
	a->sending = sending_new();
	ck_assert(a->tape_fd >= 0 && a->sides >= 0 && a->ringless >= 0 && a->firings >= 0);
	a->tape = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a->tape_fd, 0);
	ck_assert(a->tape != MAP_FAILED);
	for (uint32_t side = 0; side < PP_SIDES; side++) {
		struct recorder_guard guard = {
			.tape_fd = a->tape_fd,
			.side = side,
			.sides_fd = a->sides,
			.closes = side >= PP_SIDE_A_CLOSING,
			.other = side == PP_SIDE_B_CLOSING ? PP_SIDE_A : PP_SIDE_B,
			.firings_fd = a->firings,
			.sending_fd = a->sending,
		};
		struct bench *b = bench_of(a, side);
		struct recorder_target t;

		if (side < PP_SIDE_A_CLOSING)
			*b = bench_new(DATA_SIZE, s->spill_size);
		t = bench_target(b);
		t.guard = &guard;
		t.nests = nests;
		if (side == PP_SIDE_NONE) {
			ck_assert_int_eq(bpf_map_delete_elem(b->outer, &b->cpu), 0);
			t.ringless_fd = a->ringless;
			t.n = 0;
		}
		load(s, &t, &a->program[side]);
		ck_assert_int_eq(bpf_map_update_elem(a->sides, &side, &a->program[side], 0), 0);
	}
}

static void disarm(struct armed *a)
{
	for (uint32_t side = 0; side < PP_SIDES; side++) {
		close(a->program[side]);
		if (side < PP_SIDE_A_CLOSING)
			bench_done(bench_of(a, side));
	}
	close(a->firings);
	close(a->sending);
	munmap(a->tape, 4096);
	close(a->tape_fd);
	close(a->sides);
	close(a->ringless);
}

/* Changes the side on another CPU, if there is one, until it is killed. */
static pid_t start_flipper(struct pp_tape *tape, unsigned cpu)
{
	pid_t pid = fork();
	cpu_set_t set;

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	memset(&set, 0xff, sizeof(set));
	CPU_CLR(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (;;) {
		__atomic_store_n(&tape->state.side, (tape->state.side + 1) % PP_SIDE_A_CLOSING,
				 __ATOMIC_RELEASE);
		for (volatile int i = 0; i < 1000; i++)
			;
	}
}

static uint64_t ringless_of(const struct armed *a)
{
	uint64_t n;

	ck_assert_int_eq(bpf_map_lookup_elem(a->ringless, &a->rings[0].cpu, &n), 0);
	return n;
}

static const struct {
	const struct recorder *recorder;
	const char *system, *name, *number;
	bool nests;
} armed[] = {
	{ &recorder_hot, "raw_syscalls", "sys_enter", "id", false },
	{ &recorder_hot, "raw_syscalls", "sys_enter", "id", true },
	{ &recorder_generic, "raw_syscalls", "sys_enter", "id", false },
	{ &recorder_generic, "raw_syscalls", "sys_enter", "id", true },
	{ &recorder_generic, "syscalls", "sys_enter_close", "__syscall_nr", false },
};

/* This process's calls of close(), recorded by armed[i]. */
struct own_calls {
	struct pp_filter_node mine[3];
	struct pp_source parsed;
	struct tracepoint tp;
	struct source s;
	struct armed a;
	int entry, link;
};

/* Attaching makes calls, too; they find the side that the tape begins with. */
static void begin_calls(struct own_calls *c, int i, uint32_t side)
{
	struct recorder_slot slot = { .index = PP_SIDE_A };
	struct failure f = {};

	*c = (struct own_calls){
		.mine = { { .op = PP_FILTER_AND },
			  equals("common_pid", (uint64_t)getpid()),
			  equals(armed[i].number, SYS_close) },
		.parsed = { .kind = PP_SOURCE_TRACEPOINT },
		.s = { .spec = &spec,
		       .parsed = &c->parsed,
		       .tp = &c->tp,
		       .filter = c->mine,
		       .n_filter = ARRAY_SIZE(c->mine) },
	};
	ck_assert_int_eq(tracepoint_read(armed[i].system, armed[i].name, &c->tp), 0);
	ck_assert_int_eq(armed[i].recorder->plan(&c->s, &f), 0);
	arm(&c->a, &c->s, armed[i].nests);
	c->a.tape->state.side = side;
	slot.fd = c->a.sides;
	ck_assert_int_eq(c->s.recorder->entry(&c->s, &slot, &c->entry), 0);
	ck_assert_int_eq(attach_on(&c->s, c->entry, c->a.rings[0].cpu, &c->link), 0);
}

static void end_calls(struct own_calls *c)
{
	close(c->link);
	close(c->entry);
	disarm(&c->a);
	tracepoint_done(&c->tp);
}

/* While the side changes at any moment each event is on one side, once. */
START_TEST(test_sides)
{
	uint64_t n[PP_SIDES], calls = 0;
	struct own_calls c;
	struct armed *a = &c.a;
	struct pp_tape *tape;
	pid_t flipper;

	begin_calls(&c, _i, PP_SIDES); /* which has no program: they are counted */
	tape = a->tape;
	make_calls();
	ck_assert_uint_ge(tape->lost, n_calls);
	/* The programs run on all CPUs: one may have seen that side, and be about to count. */
	tape->state.side = 0;
	ck_assert_int_eq(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0);
	tape->lost = 0;
	for (uint32_t side = 0; side < PP_SIDE_A_CLOSING; side++) {
		tape->state.side = side;
		make_calls();
		calls += n_calls;
	}
	ck_assert_uint_eq(a->rings[0].ring->live.records, n_calls);
	ck_assert_uint_eq(a->rings[1].ring->live.records, n_calls);
	ck_assert_uint_eq(ringless_of(a), n_calls);
	flipper = start_flipper(tape, a->rings[0].cpu);
	do {
		make_calls();
		calls += n_calls;
		n[0] = a->rings[0].ring->live.records;
		n[1] = a->rings[1].ring->live.records;
		n[2] = ringless_of(a);
	} while (calls < 20 * n_calls || n[0] == n_calls || n[1] == n_calls || n[2] == n_calls);
	kill(flipper, SIGKILL);
	ck_assert_int_eq(waitpid(flipper, NULL, 0), flipper);
	ck_assert_uint_eq(n[0] + n[1] + n[2], calls);
	ck_assert_uint_eq(a->rings[0].ring->live.missed + a->rings[1].ring->live.missed, 0);
	ck_assert_uint_eq(tape->lost, 0);
	end_calls(&c);
}
END_TEST

/* ── windows ────────────────────────────────────────────────────────────────────────────── */

/* What the broker was told last; returns how many messages there were. */
static uint64_t told(const struct firing *t, struct pp_fired *ret)
{
	const uint64_t size = 8 + sizeof(*ret);
	uint64_t bytes;

	memcpy(&bytes, t->ringbuf, sizeof(bytes));
	if (bytes >= size)
		memcpy(ret, t->ringbuf + 4096 + bytes - size + 8, sizeof(*ret));
	return bytes / size;
}

/* Opens a window: what pp_turn() does. */
static void open_window(struct pp_tape *tape, uint32_t side, uint64_t until, int64_t left)
{
	union pp_tape_state to = {
		.side = side + PP_SIDE_A_CLOSING,
		.next = PP_SIDES_CLOSING + (side == PP_SIDE_A ? PP_SIDE_B : PP_SIDE_A),
	};

	tape->id = 4711;
	tape->left = left;
	tape->until = until;
	__atomic_store_n(&tape->state.word, to.word, __ATOMIC_SEQ_CST);
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The time of a record, which has no identifier: header, TID, TIME. */
static uint64_t time_at(const struct bench *b, uint64_t position)
{
	uint64_t time;

	memcpy(&time, (const uint8_t *)b->ring + HEADER_SIZE + (position & (b->data_size - 1)) + 16,
	       sizeof(time));
	return time;
}

/* The first and the last of the records that were written since head was `before`, all as large. */
static void times_of(const struct bench *b, uint64_t before, uint64_t *ret_first,
		     uint64_t *ret_last)
{
	const uint8_t *data = (const uint8_t *)b->ring + HEADER_SIZE;
	uint64_t head = b->ring->live.head;
	uint16_t size;

	memcpy(&size, data + (head & (b->data_size - 1)) + 6, sizeof(size));
	*ret_last = time_at(b, head);
	*ret_first = time_at(b, before - size);
}

static uint64_t total(const struct armed *a)
{
	return a->rings[0].ring->live.records + a->rings[1].ring->live.records;
}

/* A window has as many records as it is to have, and then the tape is turned, and the broker told. */
static void check_count(struct armed *a, uint32_t side, uint64_t n_told)
{
	const uint64_t ours = a->rings[side].ring->live.records;
	const uint64_t all = total(a), left = n_calls / 3;
	const struct firing firing = { .ringbuf = mmap(NULL, 8192, PROT_READ, MAP_SHARED,
						       a->firings, 4096) };
	struct pp_fired fired = {};

	ck_assert(firing.ringbuf != MAP_FAILED);
	open_window(a->tape, side, UINT64_MAX, (int64_t)left);
	make_calls();
	ck_assert_uint_eq(a->rings[side].ring->live.records, ours + left);
	ck_assert_uint_eq(total(a), all + n_calls);
	ck_assert_uint_eq(a->tape->state.side, 1 - side);
	ck_assert_uint_eq(a->tape->state.next, PP_SIDES);
	ck_assert_uint_eq(told(&firing, &fired), n_told);
	ck_assert_uint_eq(fired.closed, 4711);
	munmap((void *)firing.ringbuf, 8192);
}

/* Each record up to the end of the window's time is on its side, each later one on the other. */
static void check_time(struct armed *a, uint32_t side)
{
	struct bench *ours = &a->rings[side], *others = &a->rings[1 - side];
	uint64_t all = total(a), of_ours = ours->ring->live.records,
		 of_others = others->ring->live.records, until = monotonic() + 200000, first, last,
		 heads[2] = { ours->ring->live.head, others->ring->live.head }, rounds = 0;

	open_window(a->tape, side, until, INT64_MAX);
	do {
		make_calls();
		rounds++;
	} while (a->tape->state.next != PP_SIDES);
	ck_assert_uint_eq(total(a), all + rounds * n_calls);
	ck_assert_uint_gt(others->ring->live.records, of_others);
	times_of(others, heads[1], &first, &last);
	ck_assert_uint_gt(first, until);
	if (ours->ring->live.records == of_ours)
		return;
	times_of(ours, heads[0], &first, &last);
	ck_assert_uint_le(last, until);
}

START_TEST(test_window)
{
	struct own_calls c;
	struct armed *a = &c.a;

	begin_calls(&c, _i, PP_SIDE_A);
	for (uint64_t i = 1; i <= 6; i++)
		check_count(a, i % 2, i);
	for (uint32_t i = 0; i < 6; i++)
		check_time(a, i % 2);
	/* What fired has not yet written when it is over: nothing ends it. */
	open_window(a->tape, PP_SIDE_A, 0, 1);
	make_calls();
	ck_assert_uint_eq(a->tape->state.side, PP_SIDE_A_CLOSING);
	ck_assert_int_eq(pp_close(a->tape), 1);
	ck_assert_int_eq(pp_close(a->tape), 0);
	ck_assert_uint_eq(a->tape->state.side, PP_SIDE_B);
	ck_assert_uint_eq(a->tape->lost, 0);
	end_calls(&c);
}
END_TEST

/* ── triggers ───────────────────────────────────────────────────────────────────────────── */

#define MAGIC 0x7fffff00 /* no such descriptor */
#define NO_CALL 4000

/*
 * Closes of MAGIC fire; all calls of this process are recorded in two targets. In both the side that
 * was ends with the trigger's event. (The kernel calls first whoever came first to the tracepoint:
 * so the targets record that event before or after it fires, and it is on one side or the other.)
 */
START_TEST(test_trigger)
{
	const struct pp_filter_node mine[] = { equals("common_pid", (uint64_t)getpid()) };
	const struct pp_filter_node fires[] = { { .op = PP_FILTER_AND },
						equals("common_pid", (uint64_t)getpid()),
						equals("fd", MAGIC) };
	struct pp_source parsed[2] = { { .kind = PP_SOURCE_TRACEPOINT },
				       { .kind = PP_SOURCE_TRACEPOINT } };
	struct tracepoint all = {}, one = {};
	struct source target = { .spec = &spec,
				 .parsed = &parsed[0],
				 .tp = &all,
				 .filter = mine,
				 .n_filter = ARRAY_SIZE(mine) };
	struct source trigger = { .spec = &spec,
				  .parsed = &parsed[1],
				  .tp = &one,
				  .filter = fires,
				  .n_filter = ARRAY_SIZE(fires) };
	struct recorder_slot slot = { .index = PP_SIDE_A };
	struct armed a[2];
	int entry[2], link[2], tapes[2];
	struct failure f = {};
	struct pp_fired fired;
	struct recorder_target t;
	struct running running;
	const struct pp_trigger state = { .id = 4711, .spec.max_per_day = 3 };
	struct firing firing = {};
	uint64_t calls_to_attach;
	struct bench b;

	ck_assert_int_eq(tracepoint_read("raw_syscalls", "sys_enter", &all), 0);
	ck_assert_int_eq(tracepoint_read("syscalls", "sys_enter_close", &one), 0);
	ck_assert_int_eq((_i ? &recorder_hot : &recorder_generic)->plan(&target, &f), 0);
	ck_assert_int_eq(recorder_generic.plan(&trigger, &f), 0);
	for (unsigned i = 0; i < 2; i++) {
		arm(&a[i], &target, false);
		a[i].tape->state.side = PP_SIDE_A;
		a[i].tape->state.next = i ? PP_SIDE_NONE : PP_SIDE_B;
		tapes[i] = a[i].tape_fd;
		slot.fd = a[i].sides;
		ck_assert_int_eq(target.recorder->entry(&target, &slot, &entry[i]), 0);
		ck_assert_int_eq(attach_on(&target, entry[i], a[i].rings[0].cpu, &link[i]), 0);
	}
	make_trigger(&firing, &state, &trigger, tapes, 2);
	b = bench_new(DATA_SIZE, trigger.spill_size);
	t = bench_target(&b);
	let_fire(&t, &firing);
	running = run(&b, &trigger, &t);
	for (int i = 0; i < 100; i++)
		close(-1);
	ck_assert_uint_eq(firing.state->fired, 0);
	calls_to_attach = a[0].rings[0].ring->live.records - 100;
	close(MAGIC);
	for (int i = 0; i < 100; i++)
		close(-1);
	ck_assert_uint_eq(firing.state->fired, 1);
	ck_assert_uint_eq(told(&firing, &fired), 1);
	ck_assert_uint_eq(fired.trigger, 4711);
	ck_assert_uint_eq(fired.number, 1);
	ck_assert_uint_eq(fired.cpu, b.cpu);
	ck_assert_uint_eq(fired.pid, (uint32_t)getpid());
	ck_assert_str_eq(fired.comm, "test-recorders");
	/* Nothing comes in front of the targets, not even its own record. */
	ck_assert_uint_gt(word_of((const uint8_t *)b.ring + HEADER_SIZE +
					  (b.ring->live.head & (DATA_SIZE - 1)),
				  false, TIME_OFFSET, 8),
			  fired.time);
	for (unsigned i = 0; i < 2; i++) {
		const struct pp_ring_header *ring = a[i].rings[0].ring;
		uint64_t newest;

		ck_assert_uint_eq(a[i].tape->state.side, i ? PP_SIDE_NONE : PP_SIDE_B);
		ck_assert_uint_eq(a[i].tape->state.next, PP_SIDES);
		ck_assert_uint_eq(a[i].tape->by.number, 1);
		newest = word_of((const uint8_t *)ring + HEADER_SIZE +
					 (ring->live.head & (DATA_SIZE - 1)),
				 false, TIME_OFFSET, 8);
		ck_assert_uint_le(newest, fired.time);
		ck_assert_uint_ge(ring->live.records, 100);
		ck_assert_uint_le(ring->live.records, 101 + calls_to_attach);
	}
	ck_assert_uint_ge(a[0].rings[1].ring->live.records, 100);
	ck_assert_uint_ge(ringless_of(&a[1]), 100);

	/* Not armed, while this CPU sends another message; then again; then often enough for a day. */
	sending_set(firing.fire.sending_fd, 1);
	close(MAGIC);
	sending_set(firing.fire.sending_fd, 0);
	ck_assert_uint_eq(firing.state->late, 2);
	ck_assert_uint_eq(firing.state->untold, 1);
	a[0].tape->state.next = PP_SIDE_A;
	close(MAGIC);
	ck_assert_uint_eq(a[0].tape->state.side, PP_SIDE_A);
	ck_assert_uint_eq(told(&firing, &fired), 2);
	ck_assert_uint_eq(firing.state->late, 3);
	close(MAGIC);
	ck_assert_uint_eq(firing.state->fired, 3);
	ck_assert_uint_eq(firing.state->spent, 1);
	ck_assert_uint_eq(firing.state->untold, 1);
	stop(&running);
	for (unsigned i = 0; i < 2; i++) {
		close(link[i]);
		close(entry[i]);
		disarm(&a[i]);
	}
	unmake_trigger(&firing);
	bench_done(&b);
	tracepoint_done(&all);
	tracepoint_done(&one);
}
END_TEST

/* Within the hold-off it fires once, however often and on however many CPUs its event happens. */
START_TEST(test_hold_off)
{
	enum { N = 2000, PROCESSES = 4 };
	const struct pp_filter_node fires[] = { equals("id", NO_CALL) };
	struct pp_source parsed = { .kind = PP_SOURCE_TRACEPOINT };
	struct tracepoint tp = {};
	struct source s = { .spec = &spec,
			    .parsed = &parsed,
			    .tp = &tp,
			    .filter = fires,
			    .n_filter = ARRAY_SIZE(fires) };
	const struct pp_trigger state = { .id = 1, .spec.hold_off = 3600 * 1000000000ULL };
	struct firing firing = {};
	struct failure f = {};
	struct pp_fired fired;
	struct recorder_target t;
	struct running running;
	struct armed a;
	struct bench b;

	ck_assert_int_eq(tracepoint_read("raw_syscalls", "sys_enter", &tp), 0);
	ck_assert_int_eq((_i ? &recorder_hot : &recorder_generic)->plan(&s, &f), 0);
	arm(&a, &s, true);
	make_trigger(&firing, &state, &s, &a.tape_fd, 1);
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	let_fire(&t, &firing);
	t.nests = true; /* any CPU writes this one ring */
	running = run(&b, &s, &t);
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0) {
			for (int k = 0; k < N; k++)
				syscall(NO_CALL);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	ck_assert_uint_eq(firing.state->fired, 1);
	ck_assert_uint_eq(firing.state->fired + firing.state->held, b.ring->live.records);
	ck_assert_uint_eq(b.ring->live.records, PROCESSES * N);
	firing.state->last -= 3600 * 1000000000ULL;
	syscall(NO_CALL);
	ck_assert_uint_eq(firing.state->fired, 2);
	ck_assert_uint_eq(told(&firing, &fired), 2);
	/* So does one whose record has no place. */
	stop(&running);
	ck_assert_int_eq(bpf_map_delete_elem(b.outer, &b.cpu), 0);
	t.n = 0;
	running = run(&b, &s, &t);
	firing.state->last -= 3600 * 1000000000ULL;
	syscall(NO_CALL);
	ck_assert_uint_eq(b.ring->live.records, PROCESSES * N + 1);
	ck_assert_uint_eq(told(&firing, &fired), 3);
	stop(&running);
	unmake_trigger(&firing);
	disarm(&a);
	bench_done(&b);
	tracepoint_done(&tp);
}
END_TEST

/* Events that do not match the filter leave no trace at all. */
START_TEST(test_filter_none)
{
	struct pp_filter_node none = equals("id", 1u << 20);
	struct pp_ring_header before;
	struct recorder_target t;
	struct running running;
	struct source s;
	struct bench b;

	plan_hot(&s, "raw_syscalls", "sys_enter", 0);
	s.filter = &none;
	s.n_filter = 1;
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	t.max_rate = 1;
	before = *b.ring;
	running = run(&b, &s, &t);
	make_calls();
	ck_assert_mem_eq(&before, b.ring, sizeof(before));
	stop(&running);
	bench_done(&b);
}
END_TEST

/* A wakeup names the event and the CPU; at most one per interval. */
START_TEST(test_wakeup)
{
	const size_t page = 4096;
	struct recorder_target t;
	struct running running;
	struct pp_wakeup wakeup;
	const uint8_t *ringbuf;
	uint64_t bytes, before, began;
	struct source s;
	struct bench b;

	plan_hot(&s, "raw_syscalls", "sys_enter", 0);
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	t.wakeup_fd = b.wakeups;
	began = pp_clock_ns(CLOCK_MONOTONIC);
	/* While the CPU sends another message there is none; that comes with the next record. */
	sending_set(b.sending, 1);
	running = run(&b, &s, &t);
	close(-1);
	ck_assert_uint_gt(b.ring->live.records, 0);
	ck_assert_uint_eq(b.ring->limit.woken, 0);
	sending_set(b.sending, 0);
	make_calls();

	/* The producer's position, then the data: a header of 8 bytes, then the message. */
	ringbuf = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, b.wakeups, (off_t)page);
	ck_assert(ringbuf != MAP_FAILED);
	memcpy(&bytes, ringbuf, sizeof(bytes));
	memcpy(&wakeup, ringbuf + page + 8, sizeof(wakeup));
	ck_assert_uint_gt(bytes, 0);
	ck_assert_uint_le(bytes / (8 + sizeof(wakeup)),
			  (pp_clock_ns(CLOCK_MONOTONIC) - began) / PP_WAKEUP_INTERVAL + 1);
	ck_assert_uint_eq(wakeup.event_id, EVENT_ID);
	ck_assert_uint_eq(wakeup.cpu, b.cpu);

	/* Where nobody reads there is no room in the end: then, too, one record in an interval tries. */
	before = b.ring->limit.woken;
	bytes = no_room_for_wakeups(b.wakeups);
	usleep(2 * PP_WAKEUP_INTERVAL / 1000);
	close(-1);
	ck_assert_uint_gt(b.ring->limit.woken, before);
	ck_assert_mem_eq(ringbuf, &bytes, sizeof(bytes));
	munmap((void *)ringbuf, 2 * page);
	stop(&running);
	bench_done(&b);
}
END_TEST

/* A clock's samples interrupt the other program at any place. On a slow machine they fill the ring
 * before all calls are made; it must not overflow. */
START_TEST(test_nesting)
{
	static const struct pp_source clock = {
		.kind = PP_SOURCE_SAMPLING,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	static const struct pp_spec often = { .name = "clock", .period = 20000 };
	const struct pp_filter_node ours = equals("common_pid", (uint64_t)getpid());
	struct running running, interrupting;
	struct source s, interrupt;
	struct recorder_target t;
	unsigned calls = 0;
	struct seen seen;
	struct bench b;

	plan_hot(&s, "raw_syscalls", "sys_enter", SOURCE_ID);
	s.filter = &ours;
	s.n_filter = 1;
	plan_sampling(&interrupt, &often, &clock, OTHER_ID);
	b = bench_new(DATA_SIZE, MAX(s.spill_size, interrupt.spill_size));
	t = bench_target(&b);
	t.nests = true;
	running = run(&b, &s, &t);
	interrupting = run(&b, &interrupt, &t);
	for (; (calls < 2 * n_calls || b.ring->live.records < calls + 500) &&
	       -b.ring->live.head < DATA_SIZE / 4 * 3;
	     calls++)
		close(-1);
	pause_slot(&interrupting, true);
	pause_slot(&running, true);
	seen = read_calls(&b, true);
	ck_assert_uint_ge(calls, 1000);
	ck_assert_uint_ge(seen.closes + MIN(b.ring->live.missed, nested_out(calls)), calls);
	ck_assert_uint_le(seen.closes, calls);
	ck_assert_uint_gt(seen.others, 100);
	stop(&interrupting);
	stop(&running);
	bench_done(&b);
}
END_TEST

/* ── sampling ───────────────────────────────────────────────────────────────────────────── */

#define PAGES 500

static void fault(void)
{
	const size_t size = PAGES * 4096;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(pages != MAP_FAILED);
	madvise(pages, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += 4096)
		((volatile char *)pages)[i] = 1;
	munmap(pages, size);
}

/* Every page fault of this process is recorded, limited, or counted as missed. */
START_TEST(test_sampling)
{
	static const struct pp_source faults = {
		.kind = PP_SOURCE_SAMPLING,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	const struct pp_filter_node mine[] = {
		{ .op = PP_FILTER_AND },
		equals("pid", (uint64_t)getpid()),
		{ .op = PP_FILTER_GT, .field = "ip", .value = 4096 }
	};
	struct pp_spec with_chains = { .name = "faults", .period = 1 };
	const int options = _i % ALL_OPTIONS;
	struct recorder_target t;
	struct running running;
	struct source s;
	struct bench b;

	with_chains.flags = _i >= ALL_OPTIONS ? PP_EVENT_CALLCHAIN : 0;
	plan_sampling(&s, &with_chains, &faults, options & IDENTIFIED ? SOURCE_ID : 0);
	ck_assert_int_eq(s.missed, PP_MISSED_COUNTED);
	s.filter = mine;
	s.n_filter = options & FILTERED ? ARRAY_SIZE(mine) : 0;
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	set_options(&t, &b, options);
	running = run(&b, &s, &t);
	fault();
	pause_slot(&running, true);
	ck_assert_uint_ge(b.ring->live.records + b.ring->limit.limited + b.ring->live.missed,
			  PAGES);
	ck_assert(!(options & LIMITED) == !b.ring->limit.limited);
	ck_assert(b.ring->live.head == b.ring->live.reserve && !b.ring->live.nest);
	stop(&running);
	bench_done(&b);
}
END_TEST

/* Another process's event on page faults, with a clock of its own. */
struct listener {
	int fd;
	struct perf_event_mmap_page *page;
};

#define LISTENER_PAGES 64

static struct listener listen_to_faults(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_REALTIME,
	};
	struct listener l = { .fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) };

	ck_assert_int_ge(l.fd, 0);
	l.page = mmap(NULL, (1 + LISTENER_PAGES) * (size_t)getpagesize(), PROT_READ | PROT_WRITE,
		      MAP_SHARED, l.fd, 0);
	ck_assert(l.page != MAP_FAILED);
	return l;
}

/* The number of samples; each has a time of that clock, not before `since`. */
static unsigned times_heard(struct listener *l, uint64_t since)
{
	const uint8_t *data = (const uint8_t *)l->page + l->page->data_offset;
	uint64_t head = __atomic_load_n(&l->page->data_head, __ATOMIC_ACQUIRE);
	unsigned n = 0;

	ck_assert_uint_le(head, l->page->data_size);
	for (uint64_t at = 0; at < head;) {
		struct perf_event_header h;
		uint64_t time;

		memcpy(&h, data + at, sizeof(h));
		memcpy(&time, data + at + sizeof(h), sizeof(time));
		at += h.size;
		if (h.type != PERF_RECORD_SAMPLE)
			continue;
		ck_assert_uint_ge(time, since);
		n++;
	}
	return n;
}

static uint64_t real_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Other listeners see the same as without us, whether they came before or after us: see
 * overflow_attach(). */
START_TEST(test_beside_others)
{
	static const struct pp_source faults = {
		.kind = PP_SOURCE_SAMPLING,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	uint64_t since = real_time();
	struct recorder_target t;
	struct listener l = {};
	struct running running;
	struct source s;
	struct bench b;

	plan_sampling(&s, &spec, &faults, 0);
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	if (_i == 0)
		l = listen_to_faults();
	running = run(&b, &s, &t);
	if (_i == 1)
		l = listen_to_faults();
	fault();
	ioctl(l.fd, PERF_EVENT_IOC_DISABLE, 0);
	ck_assert_uint_ge(times_heard(&l, since), PAGES);
	ck_assert_uint_ge(b.ring->live.records + b.ring->live.missed, PAGES);
	munmap(l.page, (1 + LISTENER_PAGES) * (size_t)getpagesize());
	close(l.fd);
	stop(&running);
	bench_done(&b);
}
END_TEST

static volatile uint64_t watched;

static int try_breakpoint(struct source *s, uint32_t flags)
{
	static struct pp_source writes = {
		.kind = PP_SOURCE_SAMPLING,
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_W,
		.config2 = HW_BREAKPOINT_LEN_8,
	};
	/* The default of sampling events does not apply to breakpoints: each access counts. */
	static struct pp_spec frequency = { .name = "b", .period = 4000 };

	frequency.flags = PP_EVENT_FREQ | flags;
	writes.config1 = (uint64_t)(uintptr_t)&watched;
	return try_sampling(s, &frequency, &writes, 0);
}

START_TEST(test_breakpoint)
{
	struct recorder_target t;
	struct running running;
	struct source s;
	struct bench b;
	uint64_t addr;

	ck_assert_int_eq(try_breakpoint(&s, 0), 0);
	ck_assert_uint_eq(s.attr.sample_period, 1);
	ck_assert(s.sample_type & PERF_SAMPLE_ADDR);
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	running = run(&b, &s, &t);
	for (int i = 0; i < 1000; i++)
		watched = (uint64_t)i;
	pause_slot(&running, true);
	ck_assert_uint_eq(b.ring->live.records + b.ring->live.missed, 1000);
	memcpy(&addr,
	       (const uint8_t *)b.ring + HEADER_SIZE + (b.ring->live.head & (b.data_size - 1)) + 32,
	       sizeof(addr));
	ck_assert_uint_eq(addr, (uint64_t)(uintptr_t)&watched);
	stop(&running);
	bench_done(&b);
}
END_TEST

/* Another counter has come in the place of one that is still there: once it has a sample, only it has any. */
START_TEST(test_replaced)
{
	struct recorder_target t;
	struct running running;
	struct source s;
	struct bench b;
	uint64_t all;
	int other;

	ck_assert_int_eq(try_breakpoint(&s, 0), 0);
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	running = run(&b, &s, &t);
	for (int i = 0; i < 1000; i++)
		watched = (uint64_t)i;
	ck_assert_int_eq(attach_on(&s, running.entry, b.cpu, &other), 0);
	for (int i = 0; i < 1000; i++)
		watched = (uint64_t)i;
	all = b.ring->live.records + b.ring->live.missed;
	ck_assert_uint_ge(all, 2000);
	ck_assert_uint_le(all, 2001);
	close(other);
	stop(&running);
	bench_done(&b);
}
END_TEST

/* A task's samples on a CPU without a ring are counted; those of a CPU's counter are, when it has one. */
START_TEST(test_ringless_samples)
{
	const uint32_t n_cpus = (uint32_t)libbpf_num_possible_cpus();
	struct recorder_target t;
	struct running running;
	uint64_t ringless;
	struct source s;
	struct bench b;

	ck_assert_int_eq(try_breakpoint(&s, _i ? PP_EVENT_BOUND : 0), 0);
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	t.ringless_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ringless", 4, 8, n_cpus, NULL);
	ck_assert_int_ge(t.ringless_fd, 0);
	ck_assert_int_eq(bpf_map_delete_elem(b.outer, &b.cpu), 0);
	running = run(&b, &s, &t);
	for (int i = 0; i < 1000; i++)
		watched = (uint64_t)i;
	pause_slot(&running, true);
	ck_assert_int_eq(bpf_map_lookup_elem(t.ringless_fd, &b.cpu, &ringless), 0);
	/* The kernel skips those that interrupt another program, and nobody counts these. */
	ck_assert_uint_ge(ringless, _i ? 900 : 0);
	ck_assert_uint_le(ringless, _i ? 1000 : 0);
	stop(&running);
	close(t.ringless_fd);
	bench_done(&b);
}
END_TEST

/* ── what there is ──────────────────────────────────────────────────────────────────────── */

/* A processor has few registers for them, and other tests take them all for a while: alone_with of
 * lib.sh. We hold the lock until the suite ends. */
static void wait_for_breakpoints(void)
{
	int fd;

	mkdir("/run/perfpersist-tests", 0755);
	fd = open("/run/perfpersist-tests/breakpoints.lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		flock(fd, LOCK_EX);
}

/* Some virtual machines have registers for breakpoints that do nothing. */
static const char *no_breakpoint(void)
{
	_cleanup_close_ int fd = -EBADF;
	uint64_t count[4] = {};
	struct source s;
	int r;

	wait_for_breakpoints();
	r = try_breakpoint(&s, 0);

	if (r < 0)
		return reason_of("needs breakpoints", -r);
	fd = (int)syscall(SYS_perf_event_open, &s.attr, 0, -1, -1, 0);
	if (fd < 0)
		return reason_of("needs a breakpoint that is free", errno);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	watched = 1;
	if (read(fd, count, sizeof(count)) < (ssize_t)sizeof(count[0]) || count[0] == 0)
		return "needs breakpoints that fire";
	return NULL;
}

/* All cases use the templates that are loaded here. */
static const char *no_hot(const char *system, const char *name)
{
	static char reason[128];
	struct source s;
	int r = try_hot(&s, system, name, 0);

	if (r == 0)
		return NULL;
	snprintf(reason, sizeof(reason), "this kernel's %s:%s is not for a program in C (%s)",
		 system, name, strerror(-r));
	return reason;
}

/* This kernel's tracepoints; kernels differ. */
/* A filter that always matches, or never, by its form: the verifier accepts both. */
START_TEST(test_filter_any)
{
	struct pp_filter_node any = { .op = _i ? PP_FILTER_NOT_GLOB : PP_FILTER_GLOB,
				      .is_text = true,
				      .field = "COMM",
				      .text = "*" };
	struct recorder_target t;
	struct running running;
	struct source s;
	struct bench b;

	plan_hot(&s, "raw_syscalls", "sys_enter", 0);
	s.filter = &any;
	s.n_filter = 1;
	b = bench_new(DATA_SIZE, s.spill_size);
	t = bench_target(&b);
	running = run(&b, &s, &t);
	make_calls();
	if (_i)
		ck_assert_uint_eq(b.ring->live.records, 0);
	else
		ck_assert_uint_ge(b.ring->live.records, n_calls);
	stop(&running);
	bench_done(&b);
}
END_TEST

static void add_layouts(TCase *tc)
{
	char others[1024] = "";

	for (int l = 0; l < LAYOUTS_N; l++) {
		struct source s;

		if (try_hot(&s, layouts[l].system, layouts[l].name, 0) == 0 &&
		    layout_fits_format(&layouts[l], s.tp))
			tcase_add_loop_test(tc, test_verifier, l, l + 1);
		else
			snprintf(others + strlen(others), sizeof(others) - strlen(others), " %s",
				 layouts[l].program);
	}
	if (*others)
		printf("SKIP: test_verifier, programs for other kernels:%s\n", others);
	fflush(stdout);
}

static void add_options(TCase *tc, int n, const TTest *test)
{
	for (int i = 0; i < n; i++)
		if (is_tried(i))
			tcase_add_loop_test(tc, test, i, i + 1);
}

int main(void)
{
	Suite *suite = suite_create("recorders");
	TCase *tc = tcase_create("recorders");
	const char *none, *preempts;
	const char *breakpoints;

	need(no_bpf());
	need(no_tracefs());
	none = no_hot("raw_syscalls", "sys_enter");
	if (is_full_length())
		n_calls = 20000;
	add_test_unless(no_btf(), tc, test_kernel_btf);
	add_layouts(tc);
	if (!is_left_out("test_exact", none))
		add_options(tc, ALL_OPTIONS, test_exact);
	if (!is_left_out("test_sides", none))
		tcase_add_loop_test(tc, test_sides, 0, ARRAY_SIZE(armed));
	if (!is_left_out("test_window", none))
		tcase_add_loop_test(tc, test_window, 0, ARRAY_SIZE(armed));
	if (!is_left_out("test_trigger", none))
		tcase_add_loop_test(tc, test_trigger, 0, 2);
	if (!is_left_out("test_hold_off", none))
		tcase_add_loop_test(tc, test_hold_off, 0, 1);
	/* While a task is preempted in it, the fast recorder misses the calls of others. */
	preempts = none				   ? none
		   : kernel_preempts_tracepoints() ? "this kernel may preempt the faster recorder"
						   : NULL;
	if (!is_left_out("test_hold_off, faster", preempts))
		tcase_add_loop_test(tc, test_hold_off, 1, 2);
	add_test_unless(none, tc, test_filter_none);
	if (!is_left_out("test_filter_any", none))
		tcase_add_loop_test(tc, test_filter_any, 0, 2);
	add_test_unless(none, tc, test_wakeup);
	add_test_unless(none, tc, test_nesting);
	add_options(tc, 2 * ALL_OPTIONS, test_sampling);
	tcase_add_loop_test(tc, test_beside_others, 0, 2);
	breakpoints = no_breakpoint();
	add_test_unless(breakpoints, tc, test_breakpoint);
	add_test_unless(breakpoints, tc, test_replaced);
	add_loop_test_unless(breakpoints, tc, test_ringless_samples, 0, 2);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
