// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Single system calls as newer kernels have them: found by their number among all (raw_syscalls),
 * with copies of the memory that arguments point to, which the recorder makes; and writers that are
 * not alone where they should be. On any kernel: formats are those of Linux 7.2.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "emit-fixture.h"

#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/recorders/syscall.h"
#include "daemon/engine/sources/links.h"
#include "daemon/log.h"

#define DATA_SIZE (1 << 20)
#define SPILL_SIZE 16384
#define NOWHERE (-1000L)

struct running {
	struct source source;
	struct pp_source parsed;
	struct pp_spec spec;
	struct tracepoint tp;
	struct fixture rings;
	int slots, program, entry, link;
};

/* Does not record other processes' calls, so that the rings are idle while the test reads them. */
static const struct pp_filter_node *ours(void)
{
	static struct pp_filter_node node = {
		.op = PP_FILTER_EQ,
		.is_text = true,
		.field = "COMM",
	};

	snprintf(node.text, sizeof(node.text), "pp-call-%d", getpid());
	prctl(PR_SET_NAME, node.text);
	return &node;
}

static void carry(struct source *source)
{
	source->is_carried = true;
	ck_assert_int_eq(syscall_read(source->tp, &source->call), 0);
}

/* r->tp is set. carried: as on a kernel that may preempt programs on syscalls:*. */
static const struct perf_place on_cpu_0 = { .cpu = 0, .tid = -1, .cgroup = -EBADF };

static void start(struct running *r, bool carried)
{
	struct recorder_slot slot;
	struct failure f = {};
	uint32_t zero = 0;

	fixture_make(&r->rings, DATA_SIZE, SPILL_SIZE, true);
	r->parsed.kind = PP_SOURCE_TRACEPOINT;
	r->source.spec = &r->spec;
	r->source.parsed = &r->parsed;
	r->source.filter = ours();
	r->source.n_filter = 1;
	r->source.tp = &r->tp;
	ck_assert_msg(recorder_generic.plan(&r->source, &f) == 0, "%s", f.sentence);
	if (carried)
		carry(&r->source);
	r->slots = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "slots", 4, 4, 1, NULL);
	ck_assert_int_ge(r->slots, 0);
	slot = (struct recorder_slot){ .fd = r->slots };
	ck_assert_msg(recorder_generic.load(&r->source, &r->rings.target, &r->program, &f) == 0,
		      "%s", f.sentence);
	ck_assert_int_eq(bpf_map_update_elem(r->slots, &zero, &r->program, 0), 0);
	ck_assert_int_eq(recorder_generic.entry(&r->source, &slot, &r->entry), 0);
	ck_assert_int_eq(recorder_generic.attach(&r->source, r->entry, &on_cpu_0, &r->link), 0);
}

static void stop(struct running *r)
{
	close(r->link);
	close(r->entry);
	close(r->slots);
	close(r->program);
	tracepoint_done(&r->tp);
	fixture_done(&r->rings);
}

/* ── numbers ────────────────────────────────────────────────────────────────────────────── */

START_TEST(numbers)
{
	static const struct {
		const char *name;
		int number;
	} calls[] = {
		{ "sys_enter_close", SYS_close },      { "sys_exit_close", SYS_close },
		{ "sys_enter_newfstat", SYS_fstat },   { "sys_enter_getppid", SYS_getppid },
		{ "sys_exit_pselect6", SYS_pselect6 }, { "sys_enter_newuname", SYS_uname },
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct syscall_facts facts = {};
		struct tracepoint tp;

		ck_assert_int_eq(tracepoint_read("syscalls", calls[i].name, &tp), 0);
		ck_assert_int_eq(syscall_read(&tp, &facts), 0);
		ck_assert_uint_eq(facts.number, calls[i].number);
		tracepoint_done(&tp);
	}
}
END_TEST

/* A name that is no system call has no number; the kernel is asked once more for it. */
START_TEST(no_number)
{
	struct syscall_facts facts = {};
	struct tracepoint tp;

	ck_assert_int_eq(tracepoint_read("sched", "sched_switch", &tp), 0);
	ck_assert_int_eq(syscall_read(&tp, &facts), -ENOENT);
	tracepoint_done(&tp);
}
END_TEST

/* ── records ────────────────────────────────────────────────────────────────────────────── */

/* The part of a payload that this test reads: a call with up to three arguments. */
struct payload {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t nr, zero;
	uint64_t args[3];
};

struct seen {
	unsigned n, wrong;
	struct payload last;
	uint64_t time;	   /* of the newest record; the task may have changed CPUs */
	uint8_t raw[1024]; /* its payload, unchanged */
	uint32_t raw_size;
	uint32_t type;
	int nr;
	uint64_t from; /* calls are numbered from here in their first argument */
	bool is_any;   /* or accept any other */
	uint8_t at[1000];
};

static struct seen seen;

static void see(const struct perf_event_header *h, void *data _unused_)
{
	const uint8_t *p = (const uint8_t *)(h + 1);
	struct payload payload;
	uint32_t ids[2], size;
	uint64_t time;

	memcpy(ids, p, sizeof(ids));
	memcpy(&time, p + 8, sizeof(time));
	memcpy(&size, p + 16, sizeof(size));
	memcpy(&payload, p + 20, sizeof(payload));
	seen.wrong += payload.type != seen.type || payload.nr != seen.nr;
	if (ids[0] != (uint32_t)getpid())
		return; /* a child's */
	if (payload.args[0] - seen.from < ARRAY_SIZE(seen.at))
		seen.at[payload.args[0] - seen.from]++;
	else if (!seen.is_any)
		return; /* libcheck's */
	seen.n++;
	if (time <= seen.time)
		return;
	seen.time = time;
	seen.last = payload;
	seen.raw_size = size;
	memcpy(seen.raw, p + 20, MIN(size, sizeof(seen.raw)));
}

static void look(struct running *r, int nr)
{
	seen = (struct seen){
		.type = r->tp.id,
		.nr = nr,
		.from = (uint64_t)(NOWHERE - 999),
		.is_any = nr == SYS_mount,
	};
	fixture_walk(&r->rings, see, NULL);
	ck_assert_uint_eq(seen.wrong, 0);
}

#if defined(__x86_64__)
/* The same number is another call there. A kernel without such calls kills the child: returns false then. */
static bool call_as_32_bit(int nr)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		long ret;

		signal(SIGSEGV, SIG_DFL); /* a sanitizer would describe it at length */

		__asm__ volatile("int $0x80"
				 : "=a"(ret)
				 : "a"((long)nr), "b"(0L)
				 : "memory", "r8", "r9", "r10", "r11");
		_exit(ret == 0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status);
}
#else
static bool call_as_32_bit(int nr _unused_)
{
	return false;
}
#endif

START_TEST(found_among_all)
{
	static struct running r;
	bool has_32_bit = true;

	ck_assert_int_eq(tracepoint_read("syscalls", "sys_enter_dup", &r.tp), 0);
	start(&r, true);
	for (int i = 0; i < 1000; i++) {
		syscall(SYS_dup, NOWHERE - 999 + i);
		syscall(SYS_close, NOWHERE);
		if (has_32_bit)
			has_32_bit = call_as_32_bit(i ? -1 : SYS_dup);
	}
	if (!has_32_bit)
		printf("SKIP: found_among_all, 32-bit calls: none can be made here\n");
	look(&r, SYS_dup);
	ck_assert_uint_eq(seen.n, 1000);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(seen.at[i], 1);
	stop(&r);
}
END_TEST

/* ── several under one name ─────────────────────────────────────────────────────────────── */

#define SEVERAL 5

/* Two of these fire with sys_exit, one is not a system call. */
static const char *const several_names[SEVERAL][2] = {
	{ "syscalls", "sys_enter_dup" },      { "sched", "sched_process_exec" },
	{ "syscalls", "sys_exit_dup" },	      { "syscalls", "sys_enter_close" },
	{ "syscalls", "sys_exit_epoll_ctl" },
};

static char registry[] = "/tmp/perfpersist-calls-XXXXXX";

struct several {
	struct sources sources;
	struct source v[SEVERAL];
	struct tracepoint tp[SEVERAL];
	struct pp_source parsed;
	struct pp_spec spec;
	struct fixture rings;
	struct programs programs;
	struct pins_draft draft;
};

/* This process's records of each source, by the payload's type. */
static unsigned several_seen[SEVERAL];
static const struct several *several_now;

static void see_several(const struct perf_event_header *h, void *data _unused_)
{
	const uint8_t *p = (const uint8_t *)(h + 1);
	struct payload payload;
	uint64_t id;
	uint32_t pid;

	memcpy(&id, p, sizeof(id));
	memcpy(&pid, p + 8, sizeof(pid));
	memcpy(&payload, p + 28, sizeof(payload));
	for (size_t i = 0; i < SEVERAL; i++) {
		if (several_now->v[i].id != id)
			continue;
		ck_assert_uint_eq(payload.type, several_now->tp[i].id);
		several_seen[i] += pid == (uint32_t)getpid();
		return;
	}
	ck_abort_msg("a record of source %#llx, which there is none of", (unsigned long long)id);
}

static void plan_several(struct several *s, bool carried)
{
	struct failure f = {};

	s->parsed.kind = PP_SOURCE_TRACEPOINT;
	s->sources = (struct sources){ .v = s->v, .tp = s->tp, .n = SEVERAL };
	for (size_t i = 0; i < SEVERAL; i++) {
		s->v[i] = (struct source){
			.spec = &s->spec,
			.parsed = &s->parsed,
			.filter = ours(),
			.n_filter = 1,
			.tp = &s->tp[i],
		};
		ck_assert_int_eq(
			tracepoint_read(several_names[i][0], several_names[i][1], &s->tp[i]), 0);
	}
	sources_number(&s->sources, 7);
	for (size_t i = 0; i < SEVERAL; i++) {
		ck_assert_msg(recorder_generic.plan(&s->v[i], &f) == 0, "%s", f.sentence);
		s->v[i].is_carried = false;
		if (carried && !strcmp(s->tp[i].system, "syscalls"))
			carry(&s->v[i]);
	}
	ck_assert(!sources_nest(&s->sources));
}

static void start_several(struct several *s, bool carried)
{
	const struct user_program none = USER_PROGRAM_NONE;
	struct pp_cpumask cpus = {};
	bool out[SEVERAL] = {};
	struct failure f = {};

	pp_cpumask_set(&cpus, 0);
	snprintf(s->spec.ns, sizeof(s->spec.ns), "%s", "calls");
	snprintf(s->spec.name, sizeof(s->spec.name), "%s", "several");
	plan_several(s, carried);
	fixture_make(&s->rings, DATA_SIZE, SPILL_SIZE, true);
	ck_assert_int_eq(pins_begin(&s->spec, &s->draft), 0);
	ck_assert_msg(programs_create(&s->sources, &none, &s->draft, &s->programs, &f) == 0, "%s",
		      f.sentence);
	ck_assert_msg(programs_start(&s->programs, &s->sources, &s->rings.target, &f) == 0, "%s",
		      f.sentence);
	ck_assert_msg(links_create(&s->sources, &s->programs, &cpus, &s->draft, out, &f) == 0, "%s",
		      f.sentence);
	for (size_t i = 0; i < SEVERAL; i++)
		ck_assert(!out[i]);
}

static void stop_several(struct several *s)
{
	pins_abandon(&s->draft);
	programs_done(&s->programs);
	for (size_t i = 0; i < SEVERAL; i++)
		tracepoint_done(&s->tp[i]);
	fixture_done(&s->rings);
}

static void call_several(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		syscall(SYS_dup, NOWHERE);
		syscall(SYS_close, NOWHERE);
		syscall(SYS_close, NOWHERE);
		syscall(SYS_epoll_ctl, NOWHERE, 0, 0, NULL);
	}
}

static void look_several(struct several *s)
{
	memset(several_seen, 0, sizeof(several_seen));
	several_now = s;
	fixture_walk(&s->rings, see_several, NULL);
}

/* libcheck calls close, too: so this checks for at least as many. */
START_TEST(several_by_one_entry)
{
	static struct several s;
	_cleanup_free_ uint32_t *entries = NULL;
	unsigned closed;
	size_t n = 0;

	ck_assert_int_eq(pins_open(registry), 0);
	start_several(&s, true);
	/* One for all entries, one for all exits, and the other one's. */
	ck_assert_int_eq(links_counted(&s.sources, s.draft.path, &entries, &n), 0);
	ck_assert_uint_eq(n, 3);
	call_several(500);
	look_several(&s);
	ck_assert_uint_eq(several_seen[0], 500);
	ck_assert_uint_eq(several_seen[1], 0);
	ck_assert_uint_eq(several_seen[2], 500);
	ck_assert_uint_ge(several_seen[3], 1000);
	ck_assert_uint_eq(several_seen[4], 500);

	/* A pause, and a resume. */
	closed = several_seen[3];
	ck_assert_int_eq(programs_idle(&s.programs, &s.sources), 0);
	call_several(500);
	look_several(&s);
	ck_assert_uint_eq(several_seen[0], 500);
	ck_assert_uint_eq(several_seen[2], 500);
	ck_assert_uint_lt(several_seen[3], closed + 1000);
	stop_several(&s);
	ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* Whether the engine recognizes that the pinned sources share entries, when it rebuilds them. */
static bool are_recognized_as_shared(struct several *s)
{
	bool is = false;

	plan_several(s, true);
	links_recognize(&s->sources, s->draft.path);
	for (size_t i = 0; i < SEVERAL; i++) {
		is |= s->v[i].is_carried;
		ck_assert(s->v[i].is_carried || !s->v[i].is_preemptible ||
			  kernel_preempts_syscalls());
		tracepoint_done(&s->tp[i]);
	}
	return is;
}

/* Links that an older engine made one by one stay so: its slots stay in place. */
START_TEST(older_ones_are_recognized)
{
	struct several again;

	ck_assert_int_eq(pins_open(registry), 0);
	for (int carried = 0; carried < 2; carried++) {
		static struct several s;

		start_several(&s, carried);
		again = s;
		ck_assert_int_eq(are_recognized_as_shared(&again), carried);
		stop_several(&s);
	}
	ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* ── copies ─────────────────────────────────────────────────────────────────────────────── */

#define COMMON                                                                         \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"                   \
	"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"

static const char openat_format[] =
	COMMON "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
	       "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n"
	       "\tfield:int flags;\toffset:32;\tsize:8;\tsigned:0;\n"
	       "\tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n"
	       "\tfield:__data_loc char[] __filename_val;\toffset:48;\tsize:4;\tsigned:0;\n\n"
	       "print fmt: \"\\\"%s\\\"\", __get_str(__filename_val)\n";

static const char write_format[] =
	COMMON "\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n"
	       "\tfield:const char * buf;\toffset:24;\tsize:8;\tsigned:0;\n"
	       "\tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;\n"
	       "\tfield:__data_loc char[] __buf_val;\toffset:40;\tsize:4;\tsigned:0;\n\n"
	       "print fmt: \"(%s)\", __print_dynamic_array(__buf_val, 1)\n";

static const char mount_format[] =
	COMMON "\tfield:char * dev_name;\toffset:16;\tsize:8;\tsigned:0;\n"
	       "\tfield:char * dir_name;\toffset:24;\tsize:8;\tsigned:0;\n"
	       "\tfield:char * type;\toffset:32;\tsize:8;\tsigned:0;\n"
	       "\tfield:unsigned long flags;\toffset:40;\tsize:8;\tsigned:0;\n"
	       "\tfield:void * data;\toffset:48;\tsize:8;\tsigned:0;\n"
	       "\tfield:__data_loc char[] __dev_name_val;\toffset:56;\tsize:4;\tsigned:0;\n"
	       "\tfield:__data_loc char[] __dir_name_val;\toffset:60;\tsize:4;\tsigned:0;\n"
	       "\tfield:__data_loc char[] __type_val;\toffset:64;\tsize:4;\tsigned:0;\n\n"
	       "print fmt: \"%s\", __get_str(__dev_name_val)\n";

/* Parses the format, with this kernel's number of the tracepoint. */
static void parse(struct running *r, const char *name, const char *fields)
{
	struct tracepoint here;
	char text[4096];
	int n;

	ck_assert_int_eq(tracepoint_read("syscalls", name, &here), 0);
	n = snprintf(text, sizeof(text), "name: %s\nID: %u\nformat:\n%s", name, here.id, fields);
	ck_assert_int_lt(n, (int)sizeof(text));
	tracepoint_done(&here);
	ck_assert_int_eq(tracepoint_parse("syscalls", name, text, (size_t)n, &r->tp), 0);
}

/* The word at that offset of the newest record gives the place and the size. */
static const char *copy_at(uint32_t offset, uint32_t *ret_size)
{
	uint32_t word;

	memcpy(&word, seen.raw + offset, sizeof(word));
	*ret_size = word >> 16;
	ck_assert_uint_le((word & 0xffff) + *ret_size, seen.raw_size);
	return (const char *)seen.raw + (word & 0xffff);
}

static void expect_text(uint32_t offset, const char *want)
{
	uint32_t size;
	const char *text = copy_at(offset, &size);

	ck_assert_uint_eq(size, strlen(want) + 1);
	ck_assert_str_eq(text, want);
}

/* The recorder does not wait for a page that the process has not touched. */
static const char *mapped(const char *text)
{
	(void)*(const volatile char *)text;
	return text;
}

START_TEST(text_is_copied)
{
	static struct running r;
	static char volatile name[300];

	parse(&r, "sys_enter_openat", openat_format);
	ck_assert_uint_eq(r.tp.fixed_size, 52);
	ck_assert_uint_eq(r.tp.given_size, 48);
	start(&r, _i);

	strcpy((char *)name, "/nowhere/at/all");
	syscall(SYS_openat, NOWHERE, name, 0);
	look(&r, SYS_openat);
	expect_text(48, "/nowhere/at/all");
	ck_assert_uint_eq(seen.raw_size, 52 + 16);

	syscall(SYS_openat, NOWHERE, 8, 0);
	look(&r, SYS_openat);
	expect_text(48, "(fault)");

	memset((char *)name, 'x', sizeof(name) - 1);
	syscall(SYS_openat, NOWHERE, name, 0);
	look(&r, SYS_openat);
	name[127] = 0;
	expect_text(48, (const char *)name);

	/* An empty text has no size before Linux 6.16 (fce8697d6626), long before there were copies. */
	if (kernel_is_at_least(6, 16)) {
		syscall(SYS_openat, NOWHERE, mapped(""), 0);
		look(&r, SYS_openat);
		expect_text(48, "");
	}
	stop(&r);
}
END_TEST

START_TEST(bytes_are_copied)
{
	static struct running r;
	static char bytes[1000] = "a\0b\0c";
	uint32_t size;

	parse(&r, "sys_enter_write", write_format);
	start(&r, _i);
	syscall(SYS_write, NOWHERE, bytes, 5);
	look(&r, SYS_write);
	ck_assert_mem_eq(copy_at(40, &size), bytes, 5);
	ck_assert_uint_eq(size, 5);

	syscall(SYS_write, NOWHERE, bytes, sizeof(bytes));
	look(&r, SYS_write);
	ck_assert_mem_eq(copy_at(40, &size), bytes, 128);
	ck_assert_uint_eq(size, 128);

	syscall(SYS_write, NOWHERE, 8, 5);
	look(&r, SYS_write);
	copy_at(40, &size);
	ck_assert_uint_eq(size, 0);
	stop(&r);
}
END_TEST

START_TEST(three_are_copied)
{
	static struct running r;

	parse(&r, "sys_enter_mount", mount_format);
	start(&r, _i);
	syscall(SYS_mount, mapped("device"), mapped("/nowhere/at/all"),
		mapped("kind of file system"), -1L, NULL);
	look(&r, SYS_mount);
	expect_text(56, "device");
	expect_text(60, "/nowhere/at/all");
	expect_text(64, "kind of file system");
	syscall(SYS_mount, mapped("device"), 8, mapped("kind"), -1L, NULL);
	look(&r, SYS_mount);
	expect_text(56, "device");
	expect_text(60, "(fault)");
	expect_text(64, "kind");
	stop(&r);
}
END_TEST

/* ── not alone ──────────────────────────────────────────────────────────────────────────── */

/* A second writer, which can only be there by mistake, leaves alone a ring with a writer under
 * way. */
START_TEST(another_writer)
{
	static struct running r;
	uint64_t missed = 0, records = 0;

	ck_assert_int_eq(tracepoint_read("syscalls", "sys_enter_dup", &r.tp), 0);
	start(&r, false);
	for (unsigned i = 0; i < r.rings.n; i++)
		r.rings.ring[i]->live.reserve -= 64;
	for (int i = 0; i < 100; i++)
		syscall(SYS_dup, NOWHERE);
	for (unsigned i = 0; i < r.rings.n; i++) {
		missed += r.rings.ring[i]->live.missed;
		records += r.rings.ring[i]->live.records;
		ck_assert_uint_eq(r.rings.ring[i]->live.head, 0);
		r.rings.ring[i]->live.reserve += 64;
	}
	ck_assert_uint_eq(records, 0);
	ck_assert_uint_ge(missed, 100);
	syscall(SYS_dup, NOWHERE - 999);
	look(&r, SYS_dup);
	ck_assert_uint_eq(seen.at[0], 1);
	stop(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("syscall");
	TCase *t = tcase_create("all");
	int r;

	need(no_bpf());
	need(no_tracefs());
	need(no_btf());
	need(no_mounts());
	need(no_dir(registry));
	log_open("test-syscall");
	tcase_add_test(t, numbers);
	tcase_add_test(t, no_number);
	tcase_add_test(t, found_among_all);
	tcase_add_test(t, several_by_one_entry);
	tcase_add_test(t, older_ones_are_recognized);
	tcase_add_loop_test(t, text_is_copied, 0, 2);
	tcase_add_loop_test(t, bytes_are_copied, 0, 2);
	tcase_add_loop_test(t, three_are_copied, 0, 2);
	tcase_add_test(t, another_writer);
	suite_add_tcase(s, t);
	r = run_suite(s);
	umount2(registry, MNT_DETACH);
	rmdir(registry);
	return r;
}
