// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the emitted recorders: fires known events, through entry and slot, and compares the rings
 * with them, record by record.
 */
#include <dlfcn.h>
#include <event-parse.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "emit-fixture.h"

#include "daemon/engine/bpf/wakeup.h"
#include "daemon/engine/emit/chain-emit.h"
#include "daemon/engine/emit/filter-emit.h"
#include "daemon/engine/recorders/probe.h"
#include "daemon/log.h"

#define DATA_SIZE (1 << 20)
#define SPILL_SIZE 16384
#define ID (9ULL << 12 | 3)

/* One source, attached. */
struct running {
	struct fixture *rings;
	struct source source;
	struct pp_spec spec;
	struct pp_source parsed;
	struct tracepoint tp;
	struct pp_filter_node nodes[PP_FILTER_NODES_MAX];
	int slots, program, entry, link;
	uint32_t
		slot; /* of the program: where sources share the entry, it goes by the call's number */
};

static void load(struct running *r, const char *filter, const struct recorder_target *target)
{
	char sentence[PP_SENTENCE_SIZE] = "";
	struct failure f = {};
	int n = 0;

	if (filter) {
		n = pp_filter_parse(filter, r->nodes, ARRAY_SIZE(r->nodes), sentence,
				    sizeof(sentence));
		ck_assert_msg(n > 0, "%s", sentence);
	}
	r->source.filter = r->nodes;
	r->source.n_filter = n;
	r->source.spec = &r->spec;
	r->source.parsed = &r->parsed;
	r->source.tp = &r->tp;
	ck_assert_msg((r->parsed.kind == PP_SOURCE_TRACEPOINT ? &recorder_generic : &recorder_probe)
				      ->plan(&r->source, &f) == 0,
		      "%s", f.sentence);
	if (r->slots < 0) {
		r->slot = source_shares_entry(&r->source) ? r->source.call.number : 0;
		r->slots =
			bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "slots", 4, 4, r->slot + 1, NULL);
		ck_assert_int_ge(r->slots, 0);
	}
	if (r->program >= 0)
		close(r->program);
	ck_assert_msg(r->source.recorder->load(&r->source, target, &r->program, &f) == 0, "%s",
		      f.sentence);
	ck_assert_int_eq(bpf_map_update_elem(r->slots, &r->slot, &r->program, 0), 0);
}

static const struct perf_place on_cpu_0 = { .cpu = 0, .tid = -1, .cgroup = -EBADF };

/* r->parsed and r->tp are set. */
static void start(struct running *r, const char *filter, const struct recorder_target *target)
{
	struct recorder_slot slot;
	int e;

	r->program = r->slots = -EBADF;
	load(r, filter, target);
	slot = (struct recorder_slot){ .fd = r->slots, .index = r->slot };
	ck_assert_int_eq(r->source.recorder->entry(&r->source, &slot, &r->entry), 0);
	e = r->source.recorder->attach(&r->source, r->entry, &on_cpu_0, &r->link);
	ck_assert_msg(e == 0, "attaching: %s", strerror(-e));
}

static void start_tracepoint(struct running *r, const char *system, const char *name,
			     const char *filter, const struct recorder_target *target)
{
	r->parsed.kind = PP_SOURCE_TRACEPOINT;
	ck_assert_int_eq(tracepoint_read(system, name, &r->tp), 0);
	start(r, filter, target);
}

/*
 * The kernel takes a grace period or two to release a link. A close does not wait if another
 * process also holds the link, which this child does until the test ends.
 */
static void share_links(void)
{
	int ends[2];
	char byte;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	if (fork() == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	close(ends[0]); /* the other end closes with the test's process */
}

static void stop(struct running *r)
{
	share_links();
	close(r->link);
	close(r->entry);
	close(r->slots);
	close(r->program);
	tracepoint_done(&r->tp);
}

/* A call that fails, and that hardly any other process makes. */
static void dup_nothing(unsigned from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		syscall(SYS_dup, -1000L - (long)(from + i));
}

/* The records of our own calls: each must be there once. */
struct seen {
	const struct running *r;
	unsigned mine, wrong;
	uint8_t at[100000];
};

static void see_dup(const struct perf_event_header *h, void *data)
{
	struct seen *s = data;
	const uint8_t *p = (const uint8_t *)(h + 1);
	struct {
		uint32_t size, type, pid;
	} raw;
	uint32_t ids[2];
	uint64_t fd;

	if (s->r->source.id) {
		s->wrong += memcmp(p, &s->r->source.id, 8) != 0;
		p += 8;
	}
	memcpy(ids, p, 8);
	if (ids[0] != (uint32_t)getpid())
		return;
	p += 16;
	memcpy(&raw, p, sizeof(raw));
	/* nr at 8, fildes at 16 of the payload, which follows the size */
	memcpy(&fd, p + 4 + 16, 8);
	if ((int64_t)fd > -1000)
		return; /* a real one */
	s->wrong += raw.type != s->r->tp.id || raw.pid != (uint32_t)gettid() || ids[1] != raw.pid ||
		    p + 4 + raw.size != (const uint8_t *)h + h->size;
	if (-(int)fd - 1000 < (int)sizeof(s->at))
		s->at[-(int)fd - 1000]++;
	s->mine++;
}

static struct seen seen;

static void look(const struct running *r, const struct fixture *rings)
{
	memset(&seen, 0, sizeof(seen));
	seen.r = r;
	fixture_walk(rings, see_dup, &seen);
	ck_assert_uint_eq(seen.wrong, 0);
}

/* Every form: plain or identified, one writer or nesting ones, rings by address or by lookup. */
START_TEST(every_dup_once)
{
	static struct running r;
	struct fixture rings;

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, _i & 4);
	r = (struct running){ .source.id = _i & 1 ? ID : 0 };
	rings.target.nests = _i & 2;
	start_tracepoint(&r, "syscalls", "sys_enter_dup", NULL, &rings.target);
	dup_nothing(0, 1000);
	look(&r, &rings);
	ck_assert_uint_ge(seen.mine, 1000);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(seen.at[i], 1);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

START_TEST(filtered)
{
	static struct running r;
	struct fixture rings;
	uint64_t records = 0;
	char filter[200];

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){ .source.id = ID };
	snprintf(filter, sizeof(filter),
		 "pid == %d && comm ~ \"*emit*\" && (fildes & 1) && fildes != 0xfffffffffffffc17",
		 getpid());
	start_tracepoint(&r, "syscalls", "sys_enter_dup", filter, &rings.target);
	dup_nothing(0, 1000);
	look(&r, &rings);
	ck_assert_uint_eq(seen.mine, 499); /* -1001 is left out, too */
	for (unsigned i = 0; i < rings.n; i++)
		records += rings.ring[i]->live.records;
	ck_assert_uint_eq(records, 499);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

START_TEST(limited)
{
	static struct running r;
	struct fixture rings;
	uint64_t records = 0, kept_out = 0;
	char filter[64];

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){};
	rings.target.nests = _i;
	rings.target.max_rate = 100;
	snprintf(filter, sizeof(filter), "pid == %d && fildes > 0xfffffffffff00000", getpid());
	start_tracepoint(&r, "syscalls", "sys_enter_dup", filter, &rings.target);
	dup_nothing(0, 20000);
	for (unsigned i = 0; i < rings.n; i++) {
		records += rings.ring[i]->live.records;
		kept_out += rings.ring[i]->limit.limited;
	}
	ck_assert_uint_eq(records + kept_out, 20000);
	ck_assert_uint_ge(records, 100);
	ck_assert_uint_lt(records, 5000); /* a machine that needs 25 s for this would be too slow */
	stop(&r);
	fixture_done(&rings);
}
END_TEST

/* Emptying a slot pauses, and refilling it changes: at once, to the exact record. */
START_TEST(slots)
{
	static struct running r;
	struct fixture rings;

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){};
	start_tracepoint(&r, "syscalls", "sys_enter_dup", NULL, &rings.target);
	dup_nothing(0, 10);
	ck_assert_int_eq(bpf_map_delete_elem(r.slots, &r.slot), 0);
	dup_nothing(10, 10);
	load(&r, "fildes == -1025 || fildes == -1026", &rings.target);
	dup_nothing(20, 10);
	look(&r, &rings);
	for (int i = 0; i < 30; i++)
		ck_assert_int_eq(seen.at[i], i < 10 || i == 25 || i == 26);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

START_TEST(wakeups)
{
	static struct running r;
	struct fixture rings;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile uint64_t *produced;
	uint64_t bytes, before = 0, woken = 0;
	char filter[64];

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){ .source.id = ID };
	rings.target.nests = _i;
	rings.target.wakeup_fd = rings.wakeups;
	snprintf(filter, sizeof(filter), "pid == %d", getpid());
	start_tracepoint(&r, "syscalls", "sys_enter_dup", filter, &rings.target);
	produced = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, rings.wakeups, (off_t)page);
	ck_assert_ptr_ne((void *)produced, MAP_FAILED);
	/* Not while the CPU sends another message; with the next record, then. */
	sending_set(rings.sending, 1);
	dup_nothing(0, 3);
	ck_assert_uint_eq(*produced, 0);
	sending_set(rings.sending, 0);
	dup_nothing(0, 3);
	/* At least one, and no two within the interval. */
	ck_assert_uint_ge(*produced, 24);
	ck_assert_uint_le(*produced, 3 * 24);
	ck_assert_uint_eq(((volatile struct pp_wakeup *)((uint8_t *)produced + page + 8))->event_id,
			  4711);
	ck_assert_uint_lt(((volatile struct pp_wakeup *)((uint8_t *)produced + page + 8))->cpu,
			  PP_CPUS_MAX);
	/* Where nobody reads there is no room in the end: then, too, one record in an interval tries. */
	bytes = no_room_for_wakeups(rings.wakeups);
	usleep(2 * PP_WAKEUP_INTERVAL / 1000);
	for (unsigned i = 0; i < rings.n; i++)
		before = MAX(before, rings.ring[i]->limit.woken);
	dup_nothing(0, 1);
	for (unsigned i = 0; i < rings.n; i++)
		woken = MAX(woken, rings.ring[i]->limit.woken);
	ck_assert_uint_gt(woken, before);
	ck_assert_uint_eq(*produced, bytes);
	munmap((void *)produced, 3 * page);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

/* ── probes ─────────────────────────────────────────────────────────────────────────────── */

struct inner {
	int64_t padding;
	const char *text;
	int16_t number;
};

long probed(long a, int b, const char *text, const struct inner *inner);

__attribute__((noinline)) long probed(long a, int b, const char *text, const struct inner *inner)
{
	__asm__ volatile("" : : "r"(text), "r"(inner) : "memory");
	return a * 2 + b;
}

/* Finds the function's offset in this program's file. */
static int in_segment(struct dl_phdr_info *info, size_t size _unused_, void *data)
{
	uintptr_t *address = data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = *address - info->dlpi_addr;

		if (p->p_type != PT_LOAD || at < p->p_vaddr || at >= p->p_vaddr + p->p_memsz)
			continue;
		*address = at - p->p_vaddr + p->p_offset;
		return 1;
	}
	return 0;
}

static void make_uprobe(struct pp_source *parsed, bool is_return)
{
	uintptr_t offset = (uintptr_t)probed;

	ck_assert_int_eq(dl_iterate_phdr(in_segment, &offset), 1);
	*parsed = (struct pp_source){
		.kind = PP_SOURCE_UPROBE,
		.offset = offset,
		.is_return = is_return,
		.name = "probed",
		.text = "uprobe:test:probed",
	};
	ck_assert_int_gt(readlink("/proc/self/exe", parsed->path, sizeof(parsed->path) - 1), 0);
	if (is_return) {
		parsed->n_args = 1;
		parsed->args[0] = (struct pp_probe_arg){
			.name = "ret", .place = PP_PROBE_RETURN, .size = 8, .is_signed = 1
		};
		return;
	}
	parsed->n_args = 7;
	parsed->args[0] = (struct pp_probe_arg){
		.name = "a", .place = PP_PROBE_ARGUMENT, .number = 1, .size = 8, .is_signed = 1
	};
	parsed->args[1] = (struct pp_probe_arg){
		.name = "b", .place = PP_PROBE_ARGUMENT, .number = 2, .size = 2, .is_hex = 1
	};
	parsed->args[2] = (struct pp_probe_arg){
		.name = "text", .place = PP_PROBE_ARGUMENT, .number = 3, .is_string = 1
	};
	parsed->args[3] = (struct pp_probe_arg){ .name = "number",
						 .place = PP_PROBE_ARGUMENT,
						 .number = 4,
						 .size = 2,
						 .is_signed = 1,
						 .dereferences = 1,
						 .offsets = { offsetof(struct inner, number) } };
	parsed->args[4] = (struct pp_probe_arg){ .name = "deep",
						 .place = PP_PROBE_ARGUMENT,
						 .number = 4,
						 .is_string = 1,
						 .dereferences = 2,
						 .offsets = { offsetof(struct inner, text), 2 } };
	parsed->args[5] = (struct pp_probe_arg){ .name = "nowhere",
						 .place = PP_PROBE_CONSTANT,
						 .value = 8,
						 .size = 4,
						 .dereferences = 1 };
	parsed->args[6] = (struct pp_probe_arg){
		.name = "one", .place = PP_PROBE_CONSTANT, .value = -1, .size = 1, .is_signed = 1
	};
}

/* The newest records as libtraceevent prints them, with the format that we made up. */
struct printed {
	const struct running *r;
	struct tep_handle *tep;
	char text[8][512];
	unsigned n;
};

static void print(const struct perf_event_header *h, void *data)
{
	struct printed *p = data;
	uint8_t *payload = (uint8_t *)(h + 1) + (p->r->source.id ? 8 : 0) + 16 + 4;
	struct tep_record record = { .data = payload, .size = p->r->tp.fixed_size };
	struct trace_seq seq;

	if (p->n == ARRAY_SIZE(p->text))
		return;
	trace_seq_init(&seq);
	tep_print_event(p->tep, &seq, &record, "%s: %s", TEP_PRINT_NAME, TEP_PRINT_INFO);
	trace_seq_terminate(&seq);
	snprintf(p->text[p->n++], sizeof(p->text[0]), "%s", seq.buffer);
	trace_seq_destroy(&seq);
}

static struct printed printed;

static void print_all(const struct running *r, const struct fixture *rings)
{
	printed = (struct printed){ .r = r, .tep = tep_alloc() };
	tep_set_long_size(printed.tep, sizeof(long));
	ck_assert_int_eq(
		tep_parse_event(printed.tep, r->tp.format, r->tp.format_size, r->tp.system), 0);
	fixture_walk(rings, print, &printed);
	tep_free(printed.tep);
}

static const struct inner inner = { .text = "xxinner text", .number = -5 };

/* libtraceevent finds its fields in its text. */
START_TEST(format_is_read)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_format_field **common, **fields;
	struct tep_event *event;
	struct pp_source parsed;
	struct tracepoint tp;
	size_t n = 0;

	make_uprobe(&parsed, _i);
	ck_assert_int_eq(probe_tracepoint(&parsed, &tp), 0);
	ck_assert_int_eq(tep_parse_event(tep, tp.format, tp.format_size, tp.system), 0);
	event = tep_find_event_by_name(tep, _i ? "uretprobe" : "uprobe", "probed");
	ck_assert_ptr_nonnull(event);
	ck_assert_int_eq(event->id, (int)tp.id);
	common = tep_event_common_fields(event);
	fields = tep_event_fields(event);
	for (int k = 0; k < 2; k++)
		for (struct tep_format_field **f = k ? fields : common; *f; f++, n++) {
			ck_assert_uint_lt(n, tp.n_fields);
			ck_assert_str_eq((*f)->name, tp.fields[n].name);
			ck_assert_uint_eq((*f)->offset, tp.fields[n].offset);
			ck_assert_uint_eq((*f)->size, tp.fields[n].size);
			ck_assert_int_eq(!!((*f)->flags & TEP_FIELD_IS_SIGNED),
					 tp.fields[n].is_signed);
			ck_assert_int_eq(!!((*f)->flags & TEP_FIELD_IS_ARRAY),
					 tp.fields[n].is_array);
		}
	ck_assert_uint_eq(n, tp.n_fields);
	free(common);
	free(fields);
	tracepoint_done(&tp);
	tep_free(tep);
}
END_TEST

/* Entries, unfiltered and filtered: the output shows the arguments of the calls. */
START_TEST(uprobe_arguments)
{
	static struct running r;
	struct fixture rings;
	char want[512];

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){ .source.id = _i ? ID : 0 };
	rings.target.nests = true;
	make_uprobe(&r.parsed, false);
	ck_assert_int_eq(probe_tracepoint(&r.parsed, &r.tp), 0);
	start(&r,
	      _i ? "text ~ \"*first*\" && number == -5 && deep == \"inner text\" && a > -2 && "
		   "common_pid != 0"
		 : NULL,
	      &rings.target);
	ck_assert(r.source.can_nest);
	ck_assert_int_eq(r.source.missed, PP_MISSED_COUNTED);
	probed(-1, 0x12345, "the first", &inner);
	probed(7, 1, "second", &inner);
	print_all(&r, &rings);
	ck_assert_uint_eq(printed.n, _i ? 1 : 2);
	snprintf(want, sizeof(want),
		 "probed: (%lx) a=-1 b=0x2345 text=\"the first\" number=-5 deep=\"inner text\" "
		 "nowhere=0 one=-1",
		 (unsigned long)probed);
	ck_assert_str_eq(printed.text[printed.n - 1], want);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

START_TEST(uprobe_returns)
{
	static struct running r;
	struct fixture rings;
	char want[64];

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){};
	rings.target.nests = true;
	make_uprobe(&r.parsed, true);
	ck_assert_int_eq(probe_tracepoint(&r.parsed, &r.tp), 0);
	start(&r, "ret == 47", &rings.target);
	probed(20, 7, "", &inner);
	probed(20, 8, "", &inner);
	print_all(&r, &rings);
	ck_assert_uint_eq(printed.n, 1);
	snprintf(want, sizeof(want), "probed: (%lx <- ", (unsigned long)probed);
	if (strncmp(printed.text[0], "probed: (0 <- ", 14)) /* before 6.6 */
		ck_assert_msg(!strncmp(printed.text[0], want, strlen(want)), "%s", printed.text[0]);
	ck_assert_msg(strstr(printed.text[0], ") ret=47") != NULL, "%s", printed.text[0]);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

/* On every CPU, although the perf event that carries the link is on one. */
START_TEST(uprobe_everywhere)
{
	static struct running r;
	struct fixture rings;
	unsigned n = 0;

	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, false);
	r = (struct running){};
	rings.target.nests = true;
	make_uprobe(&r.parsed, false);
	ck_assert_int_eq(probe_tracepoint(&r.parsed, &r.tp), 0);
	start(&r, NULL, &rings.target);
	for (unsigned i = 0; i < rings.n; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(rings.cpu[i], &set);
		if (sched_setaffinity(0, sizeof(set), &set) < 0) {
			printf("SKIP: uprobe_everywhere on CPU %u: it may not run there\n",
			       rings.cpu[i]);
			continue;
		}
		n++;
		for (unsigned k = 0; k <= i; k++)
			probed(k, 0, "", &inner);
		ck_assert_uint_eq(rings.ring[i]->live.records, i + 1);
	}
	ck_assert_uint_gt(n, 0);
	stop(&r);
	fixture_done(&rings);
}
END_TEST

/* How many chains preemptible programs have begun to take and have taken, on each CPU: chain-emit.c. */
static void set_turns(int scratch, uint64_t begun, uint64_t taken)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info), zero = 0;
	size_t n = (size_t)libbpf_num_possible_cpus();
	uint64_t *all;

	ck_assert_int_eq(bpf_obj_get_info_by_fd(scratch, &info, &size), 0);
	all = calloc(n, ALIGN_TO(info.value_size, 8U));
	for (size_t i = 0; i < n; i++) {
		all[i * (ALIGN_TO(info.value_size, 8U) / 8)] = begun;
		all[i * (ALIGN_TO(info.value_size, 8U) / 8) + 1] = taken;
	}
	ck_assert_int_eq(bpf_map_update_elem(scratch, &zero, all, BPF_ANY), 0);
	free(all);
}

struct newest_chain {
	bool is_known, has_frames;
};

static void look_at_chain(const struct perf_event_header *h, void *data)
{
	const uint64_t *chain = (const void *)((const uint8_t *)(h + 1) + 16);
	struct newest_chain *newest = data;

	for (uint64_t i = 1; !newest->is_known && i <= chain[0]; i++)
		newest->has_frames |= chain[i] != 0;
	newest->is_known = true;
}

static bool has_frames(const struct fixture *rings)
{
	struct newest_chain newest = {};

	probed(1, 2, "", &inner);
	fixture_walk(rings, look_at_chain, &newest);
	ck_assert(newest.is_known);
	return newest.has_frames;
}

/* While a preempted task is taking a chain, this one's frames may be overwritten by it: there are none. */
START_TEST(uprobe_chain_of_another)
{
	const struct chain chain = { .is_preemptible = true };
	static struct running r;
	struct fixture rings;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0); /* one ring has the records */
	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	r = (struct running){ .spec.flags = PP_EVENT_CALLCHAIN };
	rings.target.nests = true;
	make_uprobe(&r.parsed, false);
	ck_assert_int_eq(probe_tracepoint(&r.parsed, &r.tp), 0);
	start(&r, NULL, &rings.target);
	ck_assert(has_frames(&rings));
	set_turns(chain_scratch(&chain), 5, 4);
	ck_assert(!has_frames(&rings));
	set_turns(chain_scratch(&chain), 7, 7);
	ck_assert(has_frames(&rings));
	stop(&r);
	fixture_done(&rings);
}
END_TEST

#define PMUS "/sys/bus/event_source/devices"

static const char *no_kprobes(void)
{
	return access(PMUS "/kprobe/type", R_OK) == 0 ? NULL
						      : "needs a kernel with kprobes "
							"(CONFIG_KPROBES)";
}

enum { IS_RETURN = 1, FILTERED = 2, CHAINED = 4 };

static int plan_kprobe(struct source *source, unsigned form, struct failure *f)
{
	static const struct pp_spec spec, chained = { .flags = PP_EVENT_CALLCHAIN };
	static struct pp_source parsed;
	static struct tracepoint tp;

	make_uprobe(&parsed, form & IS_RETURN);
	parsed.kind = PP_SOURCE_KPROBE;
	strcpy(parsed.name, "do_exit");
	source->spec = form & CHAINED ? &chained : &spec;
	source->parsed = &parsed;
	source->tp = &tp;
	ck_assert_int_eq(probe_tracepoint(&parsed, &tp), 0);
	return recorder_probe.plan(source, f);
}

START_TEST(kprobe)
{
	struct source source = {};
	struct failure f = {};

	ck_assert_msg(plan_kprobe(&source, _i, &f) == 0, "%s", f.sentence);
	ck_assert_int_eq(source.missed, PP_MISSED_UNKNOWN);
	tracepoint_done(source.tp);
}
END_TEST

/* Hiding the PMUs simulates a kernel without kprobes. */
START_TEST(kprobe_refused)
{
	struct source source = {};
	struct failure f = {};

	ck_assert_int_eq(mount("tmpfs", PMUS, "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(plan_kprobe(&source, _i, &f), -EOPNOTSUPP);
	ck_assert_int_eq(umount(PMUS), 0);
	ck_assert_msg(strstr(f.sentence, "CONFIG_KPROBES") != NULL, "%s", f.sentence);
	tracepoint_done(source.tp);
}
END_TEST

/* The verifier takes the programs of kprobes on any kernel. */
START_TEST(kprobe_programs)
{
	static struct pp_filter_node nodes[PP_FILTER_NODES_MAX];
	struct source source = { .filter = nodes };
	struct failure f = {};
	struct fixture rings;
	int fd;

	plan_kprobe(&source, _i, &f);
	if (_i & FILTERED) {
		source.n_filter =
			pp_filter_parse("comm ~ \"x*y*z\" && ip > 5", nodes, ARRAY_SIZE(nodes),
					f.sentence, sizeof(f.sentence));
		ck_assert_uint_eq(source.n_filter, 3);
	}
	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	ck_assert_int_eq(recorder_probe.load(&source, &rings.target, &fd, &f), 0);
	close(fd);
	fixture_done(&rings);
	tracepoint_done(source.tp);
}
END_TEST

/* ── writers that nest ──────────────────────────────────────────────────────────────────── */

struct sum {
	uint64_t n[2];
	uint64_t last;
	unsigned disorder;
};

static void sum(const struct perf_event_header *h, void *data)
{
	struct sum *s = data;
	uint64_t id, time;

	memcpy(&id, h + 1, 8);
	memcpy(&time, (const uint8_t *)(h + 1) + 16, 8);
	s->n[id != ID]++;
	s->disorder += s->last && time > s->last;
	s->last = time;
}

/* A clock that interrupts this process 40,000 times in each second that it runs: what else the
 * machine does fills no ring. */
static int start_clock(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 25000,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/*
 * Timers interrupt a uprobe's program, and their tracepoint writes to the same ring: hundreds of
 * times inside another writer's record. Every record must be there once, whole and in order of
 * time.
 */
START_TEST(nesting)
{
	static struct running a, b;
	struct fixture rings;
	uint64_t records;
	struct sum s;
	cpu_set_t set;
	unsigned probes = 0;
	int clock;

	fixture_make(&rings, 1 << 24, SPILL_SIZE, true);
	CPU_ZERO(&set);
	CPU_SET(rings.cpu[0], &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	rings.target.nests = true;
	a = (struct running){ .source.id = ID };
	make_uprobe(&a.parsed, false);
	ck_assert_int_eq(probe_tracepoint(&a.parsed, &a.tp), 0);
	start(&a, NULL, &rings.target);
	b = (struct running){ .source.id = ID + 1 };
	start_tracepoint(&b, "timer", "hrtimer_expire_entry", NULL, &rings.target);
	clock = start_clock();
	/* A slow machine's timers fill the ring meanwhile; it must not overflow. */
	for (; probes < (is_full_length() ? 30000 : 8000) && -rings.ring[0]->live.head < 3 << 22;
	     probes++)
		probed(probes, 0, "", &inner);
	close(clock);
	close(a.link);
	close(b.link);
	a.link = b.link = -EBADF;
	for (; rings.n > 1; rings.n--) {
		munmap(rings.ring[rings.n - 1], rings.size);
		close(rings.fd[rings.n - 1]);
	}
	ck_assert_uint_ge(probes, 1000);
	/* The kernel may release links some time after they are closed. */
	do {
		records = rings.ring[0]->live.records;
		s = (struct sum){};
		fixture_walk(&rings, sum, &s);
	} while (records != rings.ring[0]->live.records);
	ck_assert_uint_eq(s.n[0] + rings.ring[0]->live.missed, probes);
	ck_assert_uint_le(rings.ring[0]->live.missed, nested_out(probes));
	ck_assert_uint_ge(s.n[1], 100);
	ck_assert_uint_eq(s.n[0] + s.n[1], records);
	ck_assert_uint_eq(s.disorder, 0);
	stop(&a);
	stop(&b);
	fixture_done(&rings);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("emit-record");
	TCase *tc = tcase_create("all");

	log_open("test-emit-record");
	need(no_bpf());
	need(no_mounts());
	need(no_tracefs());
	tcase_add_loop_test(tc, every_dup_once, 0, 8);
	tcase_add_test(tc, filtered);
	tcase_add_loop_test(tc, limited, 0, 2);
	tcase_add_test(tc, slots);
	tcase_add_loop_test(tc, wakeups, 0, 2);
	tcase_add_loop_test(tc, format_is_read, 0, 2);
	tcase_add_loop_test(tc, uprobe_arguments, 0, 2);
	tcase_add_test(tc, uprobe_returns);
	tcase_add_test(tc, uprobe_everywhere);
	tcase_add_test(tc, uprobe_chain_of_another);
	add_loop_test_unless(no_kprobes(), tc, kprobe, 0, 2);
	tcase_add_loop_test(tc, kprobe_refused, 0, 2);
	tcase_add_loop_test(tc, kprobe_programs, 0, 8);
	tcase_add_test(tc, nesting);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
