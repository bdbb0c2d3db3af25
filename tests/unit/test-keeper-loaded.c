// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * BPF programs between two looks: writes the iterator's output by hand into a file that the keeper
 * reads like the iterator, and checks the sideband; also with this kernel's programs.
 */
#include "tests/unit/keeper-kernel.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "daemon/keeper/emit.h"
#include "daemon/keeper/loaded.h"
#include "daemon/tasks.h"
#include "tests/unit/keeper-table.h"
#include "tests/unit/needs.h"

static struct loaded of_iterator;
static int iterator = -EBADF;
static size_t iterator_size;

static void begin(void)
{
	setup();
	loaded_init(&of_iterator);
	iterator = memfd_create("iterator", MFD_CLOEXEC);
	loaded_put(&of_iterator, dup(iterator));
}

static void end(void)
{
	loaded_done(&of_iterator);
	teardown();
	close(iterator);
}

/* ── what the iterator tells ────────────────────────────────────────────────────────────── */

static void nobody(void)
{
	ck_assert_int_eq(ftruncate(iterator, 0), 0);
	iterator_size = 0;
}

static void put(const void *bytes, size_t n)
{
	ck_assert_int_eq(pwrite(iterator, bytes, n, (off_t)iterator_size), (ssize_t)n);
	iterator_size += n;
}

static void has_part(uint32_t id, uint32_t part, uint64_t start, uint64_t loaded, const char *name)
{
	struct pp_task_program entry = {
		.type = PP_TASK_PROGRAM,
		.id = id,
		.part = part,
		.start = start,
		.length = start ? 64 : 0,
		.loaded = loaded,
		.name_size = (uint32_t)strlen(name) + 1,
		.tag[0] = (uint8_t)id,
	};
	char padded[PP_TASK_PATH_SIZE] = "";

	snprintf(padded, sizeof(padded), "%s", name);
	entry.size = (uint32_t)(sizeof(entry) + ALIGN_TO(entry.name_size, 8U));
	put(&entry, sizeof(entry));
	put(padded, entry.size - sizeof(entry));
}

static void has(uint32_t id, uint64_t start, uint64_t loaded)
{
	char name[32];

	snprintf(name, sizeof(name), "bpf_prog_%u", id);
	has_part(id, 0, start, loaded, name);
}

static void look(uint64_t time)
{
	struct tasks there = { .bytes = malloc(iterator_size + 1), .size = iterator_size };

	ck_assert_int_eq(pread(iterator, there.bytes, iterator_size, 0), (ssize_t)iterator_size);
	ck_assert_int_eq(loaded_told(&of_iterator, &table, &there, time), 0);
	tasks_free(&there);
}

/* ── what the sideband says ─────────────────────────────────────────────────────────────── */

struct said {
	uint64_t time, address;
	uint32_t type, id;
	bool ends;
	char name[PP_TASK_PATH_SIZE];
};

static struct said said[20000];
static size_t n_said;

static void idle(void *context _unused_)
{
}

static void take_record(const struct perf_event_header *h)
{
	const uint8_t *body = (const uint8_t *)(h + 1), *id = (const uint8_t *)h + h->size;
	struct said *s = &said[n_said++];
	uint16_t flags, type;

	ck_assert_uint_le(n_said, ARRAY_SIZE(said));
	*s = (struct said){ .type = h->type };
	memcpy(&s->time, id - PP_SIDEBAND_ID_SIZE + 8, sizeof(s->time));
	if (h->type == PERF_RECORD_KSYMBOL) {
		memcpy(&s->address, body, sizeof(s->address));
		memcpy(&flags, body + 14, sizeof(flags));
		s->ends = flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
		snprintf(s->name, sizeof(s->name), "%s", (const char *)body + 16);
		ck_assert_uint_eq(h->size,
				  8 + 16 + ALIGN_TO(strlen(s->name) + 1, 8U) + PP_SIDEBAND_ID_SIZE);
	} else {
		ck_assert_uint_eq(h->type, PERF_RECORD_BPF_EVENT);
		memcpy(&type, body, sizeof(type));
		memcpy(&s->id, body + 4, sizeof(s->id));
		s->ends = type == PERF_BPF_EVENT_PROG_UNLOAD;
		ck_assert_uint_eq(body[8], (uint8_t)s->id); /* the tag */
		ck_assert_uint_eq(h->size, 8 + 16 + PP_SIDEBAND_ID_SIZE);
	}
}

static void listen_since(uint64_t since)
{
	_cleanup_close_ int fd = -EBADF;
	uint64_t size;
	uint8_t *file;

	n_said = 0;
	ck_assert_int_eq(table_emit(&table, since, 0, idle, NULL, &fd, &size), 0);
	file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(file, MAP_FAILED);
	ck_assert_uint_eq(((struct pp_sideband_header *)file)->unseen, table.unseen);
	for (size_t at = sizeof(struct pp_sideband_header); at < size;) {
		const struct perf_event_header *h = (const void *)(file + at);

		take_record(h);
		at += h->size;
	}
	munmap(file, size);
}

/* The symbol at that address, or NULL. */
static const struct said *find(uint64_t address, bool ends)
{
	for (size_t i = 0; i < n_said; i++)
		if (said[i].type == PERF_RECORD_KSYMBOL && said[i].address == address &&
		    said[i].ends == ends)
			return &said[i];
	return NULL;
}

static const struct said *find_program(uint32_t id, bool ends)
{
	for (size_t i = 0; i < n_said; i++)
		if (said[i].type == PERF_RECORD_BPF_EVENT && said[i].id == id &&
		    said[i].ends == ends)
			return &said[i];
	return NULL;
}

static void check_time(const struct said *s, uint64_t time)
{
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(s->time, time);
}

/* ── tests ──────────────────────────────────────────────────────────────────────────────── */

START_TEST(come_and_go)
{
	has(3, 0x3000, 500);
	has(7, 0x7000, 600);
	look(2000);
	listen_since(0);
	ck_assert_uint_eq(n_said, 4);
	check_time(find(0x3000, false), 500);
	ck_assert_str_eq(find(0x7000, false)->name, "bpf_prog_7");
	check_time(find_program(7, false), 600);
	nobody();
	has(7, 0x7000, 601); /* two clocks are read one after the other */
	has(8, 0x8000, 2500);
	has(9, 0x9000, 1500); /* took long to appear: it cannot have run at the last look */
	has(10, 0xa000, 9999);
	look(3000);
	listen_since(0);
	ck_assert_uint_eq(n_said, 12);
	check_time(find(0x3000, true), 3000);
	check_time(find_program(3, true), 3000);
	check_time(find(0x8000, false), 2500);
	check_time(find(0x9000, false), 2000);
	check_time(find(0xa000, false), 3000);
	ck_assert_ptr_null(find(0x7000, true));
	/* An ended program is not in the sideband of a later time. */
	listen_since(3001);
	ck_assert_ptr_null(find(0x3000, false));
	ck_assert_ptr_null(find(0x3000, true));
	ck_assert_ptr_nonnull(find(0x7000, false));
	ck_assert_uint_eq(table.unseen, 0);
}
END_TEST

/* Another program is at the address now: the first had ended before. */
START_TEST(places)
{
	has(1, 0x1000, 100);
	has(2, 0x2000, 100);
	has(3, 0x3000, 100);
	look(2000);
	nobody();
	has(4, 0x1000, 2300);
	has(5, 0x2020, 2600); /* overlaps it */
	has(6, 0x3040, 2100); /* directly after it */
	look(3000);
	listen_since(0);
	check_time(find(0x1000, true), 2299);
	check_time(find(0x2000, true), 2599);
	check_time(find(0x3000, true), 3000);
	/* The new program at the old one's address is not the one that ended. */
	listen_since(3001);
	ck_assert_ptr_nonnull(find(0x1000, false));
	ck_assert_str_eq(find(0x1000, false)->name, "bpf_prog_4");
	ck_assert_ptr_null(find(0x1000, true));
	/* Another program has its number, after 2^31 more. */
	nobody();
	has(4, 0xf000, 3100);
	has(5, 0x2020, 2600);
	has(6, 0x3040, 2100);
	look(4000);
	listen_since(0);
	check_time(find_program(4, true), 4000);
	check_time(find(0xf000, false), 3100);
}
END_TEST

START_TEST(parts)
{
	char name[PP_TASK_PATH_SIZE];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	has_part(5, 0, 0x5000, 100, "bpf_prog_5_main");
	has_part(5, 1, 0x5100, 100, "bpf_prog_5_part");
	has_part(5, 2, 0x5200, 100, name);
	has_part(6, 0, 0, 100, ""); /* not translated: it has no symbol */
	look(2000);
	listen_since(0);
	ck_assert_uint_eq(n_said, 5);
	ck_assert_str_eq(find(0x5100, false)->name, "bpf_prog_5_part");
	ck_assert_str_eq(find(0x5200, false)->name, name);
	ck_assert_ptr_nonnull(find_program(6, false));
	nobody();
	has_part(6, 0, 0, 100, "");
	look(3000);
	listen_since(0);
	ck_assert_uint_eq(n_said, 9);
	check_time(find(0x5200, true), 3000);
	ck_assert_ptr_null(find_program(6, true));
	/* The keeper drops ended programs from its index, and keeps the others. */
	for (size_t i = 0, n = 0; i < NOTICE_BUCKETS; i++) {
		n += !LIST_EMPTY(&table.notice_buckets[i]);
		ck_assert_uint_le(n, 1);
	}
}
END_TEST

/* Inferred from the numbers assigned meanwhile. */
START_TEST(unseen)
{
	has(100, 0x1000, 100);
	look(2000);
	ck_assert_uint_eq(table.unseen, 0);
	nobody();
	has(100, 0x1000, 100);
	has(105, 0x5000, 2100);
	has_part(105, 1, 0x5100, 2100, "part");
	has(110, 0x6000, 2200);
	look(3000);
	ck_assert_uint_eq(table.unseen, 8); /* 101 to 104, 106 to 109 */
	nobody();
	look(4000);
	ck_assert_uint_eq(table.unseen, 8);
	has(112, 0x6000, 4200);
	look(5000);
	ck_assert_uint_eq(table.unseen, 9);
	/* The numbers wrap. */
	has(UINT32_MAX / 2, 0x7000, 5100);
	look(6000);
	ck_assert_uint_eq(table.unseen, 9 + UINT32_MAX / 2 - 113);
	nobody();
	has(2, 0x6000, 6200);
	look(7000);
	ck_assert_uint_eq(table.unseen, 9 + UINT32_MAX / 2 - 113);
	listen_since(0);
}
END_TEST

static void damage(size_t at, uint32_t value)
{
	nobody();
	has(1, 0x1000, 100);
	has(2, 0x2000, 100);
	ck_assert_int_eq(pwrite(iterator, &value, sizeof(value), (off_t)at), sizeof(value));
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), -EBADMSG);
}

/* Earlier data stays valid. */
START_TEST(damaged)
{
	has(1, 0x1000, 100);
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), 0);
	damage(offsetof(struct pp_task_program, type), PP_TASK_MAP);
	damage(offsetof(struct pp_task_program, size), 0);
	damage(offsetof(struct pp_task_program, size), sizeof(struct pp_task_program));
	damage(offsetof(struct pp_task_program, size), 4 * sizeof(struct pp_task_program));
	damage(offsetof(struct pp_task_program, size), 8 * sizeof(struct pp_task_program) + 4);
	damage(offsetof(struct pp_task_program, id), 2); /* twice */
	damage(offsetof(struct pp_task_program, id), 3); /* not in order */
	damage(offsetof(struct pp_task_program, name_size), 0);
	damage(offsetof(struct pp_task_program, name_size), 3);
	damage(offsetof(struct pp_task_program, name_size), 600);
	damage(offsetof(struct pp_task_program, name), 0);
	listen_since(0);
	ck_assert_uint_eq(n_said, 2);
	nobody();
	has(1, UINT64_MAX - 63, 100); /* where nothing can be */
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), -EBADMSG);
	nobody();
	has(1, 0x1000, 100);
	ck_assert_int_eq(ftruncate(iterator, (off_t)iterator_size - 8), 0);
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), -EBADMSG);
	loaded_put(&of_iterator, open("/", O_PATH | O_CLOEXEC));
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), -EISDIR);
	loaded_put(&of_iterator, -EBADF);
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), 0);
	listen_since(0);
	ck_assert_uint_eq(n_said, 2);
}
END_TEST

/* At most a hundredth of the time, whatever a look costs. */
START_TEST(pauses)
{
	has(1, 0x1000, 100);
	ck_assert(loaded_is_due(&of_iterator, 2000000000));
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), 0);
	of_iterator.cost = 1000;
	ck_assert(!loaded_is_due(&of_iterator, of_iterator.looked + 999999999));
	ck_assert(loaded_is_due(&of_iterator, of_iterator.looked + 1000000000));
	of_iterator.cost = 30000000;
	ck_assert(!loaded_is_due(&of_iterator, of_iterator.looked + 2999999999));
	ck_assert(loaded_is_due(&of_iterator, of_iterator.looked + 3000000000));
	loaded_put(&of_iterator, -EBADF);
	ck_assert(!loaded_is_due(&of_iterator, UINT64_MAX));
}
END_TEST

/* Many programs displace each other, and nothing else. */
START_TEST(a_quarter)
{
	begin_shell();
	table.memory.max = 1 << 20;
	for (uint32_t i = 0; i < 20000; i++)
		has(i + 1, 0x10000 + 64 * i, 100);
	look(5000);
	ck_assert_uint_le(table.notice_bytes, table.memory.max / 4);
	ck_assert_uint_gt(table.forgotten, 0);
	ck_assert_ptr_nonnull(thread_find(&table, 100));
	nobody();
	look(6000);
	ck_assert_uint_le(table.notice_bytes, table.memory.max / 4);
	ck_assert_uint_eq(table.untimed, 0);
}
END_TEST

/* They end all at once, some earlier than the others: each has its own time. */
START_TEST(many_ends)
{
	const uint32_t n = 3000;

	for (uint32_t i = 0; i < n; i++)
		has(i + 1, 0x100000 + 64 * i, 100);
	look(2000);
	nobody();
	for (uint32_t i = 0; i < n; i += 10)
		has(n + i + 1, 0x100000 + 64 * (n - 10 - i), 2100 + i % 800);
	look(3000);
	ck_assert_uint_eq(table.untimed, 0);
	/* After a failed look, the keeper knows what was there before. */
	nobody();
	put("damaged!", 8);
	ck_assert_int_eq(loaded_look(&of_iterator, &table, idle, NULL), -EBADMSG);
	nobody();
	has(9000, 0x1000, 4000);
	look(5000);
	listen_since(4500);
	check_time(find(0x1000, false), 4000);
}
END_TEST

/* ── those of this kernel ───────────────────────────────────────────────────────────────── */

/* Has two functions at different addresses. */
static int load_program(struct bpf_prog_info *ret, uint64_t symbols[2], uint32_t lengths[2])
{
	const struct bpf_insn code[] = {
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uint64_t)(uintptr_t)code,
		.insn_cnt = ARRAY_SIZE(code),
		.license = (uint64_t)(uintptr_t) "GPL",
		.prog_name = "pp_seen",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	ck_assert_int_ge(fd, 0);
	*ret = (struct bpf_prog_info){
		.nr_jited_ksyms = 2,
		.jited_ksyms = (uint64_t)(uintptr_t)symbols,
		.nr_jited_func_lens = 2,
		.jited_func_lens = (uint64_t)(uintptr_t)lengths,
	};
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(*ret);
	attr.info.info = (uint64_t)(uintptr_t)ret;
	ck_assert_int_eq((int)syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)), 0);
	return fd;
}

struct told {
	unsigned events;
	unsigned symbols; /* a bit for each */
	uint64_t time;
};

/*
 * The sideband's records of it since then: that it is loaded, or unloaded. Before, and from its end
 * on, its addresses can be those of programs that others on the machine load.
 */
static struct told find_told(int peer, const struct bpf_prog_info *info, const uint64_t symbols[2],
			     const uint32_t lengths[2], uint64_t since, bool ends)
{
	struct sideband s = sideband_map(take(peer, 0));
	const struct perf_event_header *h;
	struct told told = { 0 };

	while ((h = sideband_next(&s))) {
		const uint64_t *id = (const void *)((const char *)h + h->size - 32);
		const uint32_t *body = (const void *)(h + 1);
		const char *name = (const char *)(body + 4);
		bool is_end = h->type == PERF_RECORD_KSYMBOL
				      ? body[3] >> 16 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
				      : (body[0] & 0xffff) == PERF_BPF_EVENT_PROG_UNLOAD;

		if ((h->type != PERF_RECORD_KSYMBOL && h->type != PERF_RECORD_BPF_EVENT) ||
		    is_end != ends || id[1] < since)
			continue;
		if (h->type == PERF_RECORD_BPF_EVENT && body[1] == info->id &&
		    memcmp(body + 2, info->tag, sizeof(info->tag)) == 0)
			told.events++, told.time = id[1];
		for (size_t i = 0; h->type == PERF_RECORD_KSYMBOL && i < 2; i++)
			if (memcmp(body, &symbols[i], 8) == 0 && body[2] == lengths[i] &&
			    !strncmp(name, "bpf_prog_", 9) && (i > 0 || strstr(name, "pp_seen")))
				told.symbols |= 1U << i;
	}
	sideband_unmap(&s);
	return told;
}

START_TEST(real_ones)
{
	uint64_t before = clock_now(), symbols[2], loaded;
	struct bpf_prog_info info;
	struct told told;
	struct keeper_process keeper;
	uint32_t lengths[2];
	int fd, peer;

	keeper_process_start(&keeper, false);
	peer = keeper_connect(&keeper);
	keep_all(peer, true);
	fd = load_program(&info, symbols, lengths);
	loaded = clock_now();
	ck_assert_uint_eq(info.nr_jited_ksyms, 2);
	told = find_told(peer, &info, symbols, lengths, before, false);
	ck_assert_uint_eq(told.events, 1);
	ck_assert_uint_eq(told.symbols, 3);
	ck_assert_uint_gt(told.time, before);
	ck_assert_uint_le(told.time, loaded);
	ck_assert_uint_eq(find_told(peer, &info, symbols, lengths, loaded, true).symbols, 0);
	close(fd);
	/* The kernel frees it a while later. */
	while ((told = find_told(peer, &info, symbols, lengths, loaded, true)).events == 0)
		;
	ck_assert_uint_eq(told.symbols, 3);
	ck_assert_uint_gt(told.time, loaded);
	ck_assert_uint_eq(find_told(peer, &info, symbols, lengths, before, false).symbols, 3);
	close(peer);
	keeper_process_done(&keeper);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper-loaded");
	TCase *t = tcase_create("programs"), *real = tcase_create("this kernel's");

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, come_and_go);
	tcase_add_test(t, places);
	tcase_add_test(t, parts);
	tcase_add_test(t, unseen);
	tcase_add_test(t, damaged);
	tcase_add_test(t, pauses);
	tcase_add_test(t, a_quarter);
	tcase_add_test(t, many_ends);
	suite_add_tcase(s, t);
	add_test_unless(no_bpf() ?: no_btf(), real, real_ones);
	suite_add_tcase(s, real);
	return run_suite(s);
}
