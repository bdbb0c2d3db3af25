// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Symbols: tables, ELF files valid and invalid (this program is one), the kernel's texts,
 * demangling.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "client/perfctl/trace/demangle.h"
#include "client/perfctl/trace/symbols-elf.h"
#include "client/perfctl/trace/symbols-kernel.h"
#include "client/perfctl/trace/symbols.h"
#include "proto/macro.h"
#include "proto/regular.h"
#include "tests/unit/needs.h"

static char dir[] = "/tmp/pp-symbols-XXXXXX";

static void make_dir(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static const char *in_dir(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* ── Tables ── */

static void add(struct symtab *t, uint64_t start, uint64_t size, enum symtab_binding binding,
		const char *name)
{
	ck_assert_int_eq(symtab_add(t, start, size, binding, name), 0);
}

static const char *name_at(const struct symtab *t, uint64_t address)
{
	struct symtab_entry *e = symtab_find(t, address);

	return e ? symtab_name(t, e) : NULL;
}

START_TEST(finds_what_an_address_is_in)
{
	struct symtab t = {};

	add(&t, 0x3000, 0x100, SYMTAB_GLOBAL, "third");
	add(&t, 0x1000, 0x10, SYMTAB_GLOBAL, "first");
	add(&t, 0x2000, 0, SYMTAB_GLOBAL, "second"); /* up to the third */
	symtab_finish(&t);
	ck_assert_ptr_null(symtab_find(&t, 0xfff));
	ck_assert_str_eq(name_at(&t, 0x1000), "first");
	ck_assert_str_eq(name_at(&t, 0x100f), "first");
	ck_assert_ptr_null(symtab_find(&t, 0x1010));
	ck_assert_str_eq(name_at(&t, 0x2000), "second");
	ck_assert_str_eq(name_at(&t, 0x2fff), "second");
	ck_assert_str_eq(name_at(&t, 0x30ff), "third");
	ck_assert_ptr_null(symtab_find(&t, 0x3100));
	ck_assert_ptr_null(symtab_find(&t, UINT64_MAX));
	symtab_done(&t);
}
END_TEST

START_TEST(an_empty_table_finds_nothing)
{
	struct symtab t = {};

	symtab_finish(&t);
	ck_assert_ptr_null(symtab_find(&t, 0));
	symtab_done(&t);
}
END_TEST

START_TEST(of_aliases_the_one_is_kept_that_perf_shows)
{
	struct symtab t = {};

	add(&t, 0x1000, 0, SYMTAB_GLOBAL, "without_a_size");
	add(&t, 0x1000, 8, SYMTAB_WEAK, "weak_and_long");
	add(&t, 0x1000, 8, SYMTAB_LOCAL, "local");
	add(&t, 0x1000, 8, SYMTAB_GLOBAL, "__GI_global");
	add(&t, 0x1000, 8, SYMTAB_GLOBAL, "glob");
	add(&t, 0x1000, 8, SYMTAB_GLOBAL, "global");
	/* as in kallsyms, which has no sizes */
	add(&t, 0x2000, 0, SYMTAB_GLOBAL, "memcpy");
	add(&t, 0x2000, 0, SYMTAB_GLOBAL, "__memcpy");
	symtab_finish(&t);
	ck_assert_uint_eq(t.n, 2);
	ck_assert_str_eq(name_at(&t, 0x1007), "global");
	ck_assert_ptr_null(symtab_find(&t, 0x1008));
	ck_assert_str_eq(name_at(&t, 0x2000), "__memcpy");
	symtab_done(&t);
}
END_TEST

START_TEST(small_functions_stand_inside_of_large_ones)
{
	struct symtab t = {};

	add(&t, 0x1000, 0x100, SYMTAB_GLOBAL, "large");
	add(&t, 0x1040, 0x10, SYMTAB_GLOBAL, "small");
	symtab_finish(&t);
	ck_assert_str_eq(name_at(&t, 0x103f), "large");
	ck_assert_str_eq(name_at(&t, 0x1040), "small");
	ck_assert_str_eq(name_at(&t, 0x1050), "large");
	symtab_done(&t);
}
END_TEST

START_TEST(sizes_do_not_wrap)
{
	struct symtab t = {};

	add(&t, UINT64_MAX - 1, UINT64_MAX, SYMTAB_GLOBAL, "last");
	add(&t, 0x1000, UINT64_MAX, SYMTAB_GLOBAL, "huge");
	symtab_finish(&t);
	ck_assert_str_eq(name_at(&t, 0x5000), "huge");
	ck_assert_str_eq(name_at(&t, UINT64_MAX - 1), "last");
	ck_assert_ptr_null(symtab_find(&t, 0xfff));
	symtab_done(&t);
}
END_TEST

START_TEST(there_is_a_limit)
{
	struct symtab t = { .n = SYMTAB_MAX };

	ck_assert_int_eq(symtab_add(&t, 1, 1, SYMTAB_GLOBAL, "one more"), -E2BIG);
}
END_TEST

/* ── ELF files ── */

__attribute__((noinline)) int well_known_function(int x);
__attribute__((noinline)) int well_known_function(int x)
{
	return x * 3 + errno;
}

/* Its real path, because /proc/self/exe leads into any mount namespace. */
static const char *this_program(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	return path;
}

/* The offset in our own file of one of our addresses. */
static uint64_t offset_of(const void *address)
{
	_cleanup_(cleanup_fclose) FILE *f = fopen("/proc/self/maps", "re");
	uint64_t want = (uintptr_t)address, start, end, offset;
	char line[512];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && want >= start &&
		    want < end)
			return offset + (want - start);
	ck_abort_msg("the address is not mapped");
	return 0;
}

START_TEST(reads_this_program)
{
	struct elf_symbols s = {};
	struct symtab_entry *e;
	uint64_t address;

	ck_assert_int_eq(elf_symbols_read(this_program(), NULL, &s), 0);
	ck_assert_uint_gt(s.n_segments, 0);
	ck_assert(elf_symbols_address(&s, offset_of((void *)well_known_function) + 1, &address));
	e = symtab_find(&s.table, address);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(symtab_name(&s.table, e), "well_known_function");
	ck_assert_uint_eq(address - e->start, 1);
	ck_assert(!elf_symbols_address(&s, 1ULL << 40, &address));
	elf_symbols_done(&s);
}
END_TEST

START_TEST(another_build_is_refused)
{
	const uint8_t other[20] = { 1, 2, 3 };
	struct elf_identity which = { .build_id = other, .build_id_size = sizeof(other) };
	struct elf_symbols s = {};

	ck_assert_int_eq(elf_symbols_read(this_program(), &which, &s), -ESTALE);
	which.build_id_size = 1;
	ck_assert_int_eq(elf_symbols_read(this_program(), &which, &s), -ESTALE);
	ck_assert_ptr_null(s.table.entries);
}
END_TEST

START_TEST(another_file_of_that_path_is_refused)
{
	struct elf_identity which = {};
	struct elf_symbols s = {};
	struct stat st;

	ck_assert_int_eq(stat(this_program(), &st), 0);
	which.device = st.st_dev;
	which.inode = st.st_ino;
	ck_assert_int_eq(elf_symbols_read(this_program(), &which, &s), 0);
	elf_symbols_done(&s);
	which.inode++;
	ck_assert_int_eq(elf_symbols_read(this_program(), &which, &s), -ESTALE);
}
END_TEST

/* A file of some kilobytes that names a library by a thousand paths costs the library's names only
 * once. */
START_TEST(a_file_of_many_paths_is_read_once)
{
	int first_seen = _i ? 2 : 1;
	struct trace_info info = { .release = "" };
	struct symbol first, second;
	struct processes *p;
	struct symbols *s;
	char path[PATH_MAX];
	uint64_t at = offset_of((void *)well_known_function);

	ck_assert_int_eq(processes_new(&p), 0);
	ck_assert_int_eq(symbols_new(&info, &s), 0);
	snprintf(path, sizeof(path), "/./%s", this_program());
	ck_assert_int_eq(processes_map(p, 1, 0, 1 << 30, 0, this_program(), NULL, 0, 0, 0, NULL),
			 0);
	ck_assert_int_eq(processes_map(p, 2, 0, 1 << 30, 0, path, NULL, 0, 0, 0, NULL), 0);
	symbols_find(s, p, first_seen, at, false, &first);
	symbols_find(s, p, 3 - first_seen, at, false, &second);
	ck_assert_str_eq(first.name, "well_known_function");
	ck_assert_ptr_eq(first.name, second.name);
	ck_assert_ptr_ne(first.dso, second.dso);
	symbols_free(s);
	processes_free(p);
}
END_TEST

/* Opening /dev/watchdog starts it, so the reader must check first. The kernel reports every
 * opening, except with O_PATH, which has no effect. */
START_TEST(what_is_no_file_is_not_opened)
{
	_cleanup_close_ int notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct elf_symbols s = {};
	char bytes[4096];

	make_dir();
	ck_assert_int_eq(mkfifo(in_dir("fifo"), 0600), 0);
	ck_assert_int_ge(inotify_add_watch(notes, in_dir("fifo"), IN_OPEN), 0);
	ck_assert_int_lt(elf_symbols_read(in_dir("fifo"), NULL, &s), 0);
	ck_assert_int_eq(read(notes, bytes, sizeof(bytes)), -1);
	ck_assert_int_eq(errno, EAGAIN);
	/* Tests the test: an opening is reported. */
	close(open(in_dir("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	ck_assert_int_gt(read(notes, bytes, sizeof(bytes)), 0);
	remove_dir();
}
END_TEST

/* These are regular files to stat(), and yet reading /proc/kmsg takes a message away. */
START_TEST(what_the_kernel_makes_up_is_not_opened)
{
	static const char *const paths[] = { "/proc/self/status", "/proc/self/auxv",
					     "/sys/kernel/notes" };
	_cleanup_close_ int plain = regular_open(AT_FDCWD, this_program(), 0);

	ck_assert_int_ge(plain, 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ck_assert_int_eq(regular_open(AT_FDCWD, paths[i], 0), -EINVAL);
	ck_assert_int_eq(regular_open(AT_FDCWD, "/dev/null", 0), -EINVAL);
	ck_assert_int_eq(regular_open(AT_FDCWD, "/", 0), -EINVAL);
}
END_TEST

START_TEST(links_are_followed_as_far_as_wanted)
{
	char path[PATH_MAX];
	int fd;

	make_dir();
	ck_assert_int_eq(symlink(this_program(), in_dir("link")), 0);
	ck_assert_int_eq(regular_open(AT_FDCWD, in_dir("link"), RESOLVE_NO_SYMLINKS), -ELOOP);
	fd = regular_open(AT_FDCWD, in_dir("link"), RESOLVE_NO_MAGICLINKS);
	ck_assert_int_ge(fd, 0);
	close(fd);
	/* A path through /proc can belong to another mount namespace. */
	snprintf(path, sizeof(path), "/proc/%d/root%s", getpid(), this_program());
	ck_assert_int_eq(regular_open(AT_FDCWD, path, RESOLVE_NO_MAGICLINKS), -ELOOP);
	fd = regular_open(AT_FDCWD, path, 0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	remove_dir();
}
END_TEST

/* Like systemd's RestrictSUIDSGID=, which all our units have. */
START_TEST(files_are_opened_without_openat2)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };
	const char *self = this_program();
	int fd;

	make_dir();
	ck_assert_int_eq(symlink(self, in_dir("link")), 0);
	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	fd = regular_open(AT_FDCWD, self, RESOLVE_NO_MAGICLINKS);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(regular_open(AT_FDCWD, in_dir("link"), RESOLVE_NO_SYMLINKS), -ELOOP);
	ck_assert_int_eq(regular_open(AT_FDCWD, "/dev/null", RESOLVE_NO_SYMLINKS), -EINVAL);
	remove_dir();
}
END_TEST

START_TEST(what_is_no_program_is_refused)
{
	struct elf_symbols s = {};

	make_dir();
	ck_assert_int_eq(mkfifo(in_dir("fifo"), 0600), 0);
	/* It has no writer: opening it must not wait for one. */
	ck_assert_int_lt(elf_symbols_read(in_dir("fifo"), NULL, &s), 0);
	ck_assert_int_lt(elf_symbols_read(dir, NULL, &s), 0);
	ck_assert_int_lt(elf_symbols_read("/dev/zero", NULL, &s), 0);
	ck_assert_int_eq(elf_symbols_read(in_dir("absent"), NULL, &s), -ENOENT);
	ck_assert_int_lt(elf_symbols_read("/etc/passwd", NULL, &s), 0);
	remove_dir();
}
END_TEST

/* This program truncated, and with changed bytes: the reader accepts or refuses it, and
 * survives. */
static void try_damaged(const unsigned char *bytes, size_t size)
{
	_cleanup_(cleanup_fclose) FILE *f = fopen(in_dir("damaged"), "we");
	struct elf_symbols s = {};
	uint64_t address;

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
	ck_assert_int_eq(fflush(f), 0);
	if (elf_symbols_read(in_dir("damaged"), NULL, &s) < 0)
		return;
	if (elf_symbols_address(&s, 0x2000, &address))
		symtab_find(&s.table, address);
	elf_symbols_done(&s);
}

START_TEST(damaged_programs_are_survived)
{
	_cleanup_(cleanup_fclose) FILE *f = fopen("/proc/self/exe", "re");
	static unsigned char bytes[64 << 10];
	unsigned seed = 1;
	size_t n;

	make_dir();
	ck_assert_ptr_nonnull(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	for (size_t i = 0; i < 64; i++)
		try_damaged(bytes, n * i / 64);
	for (size_t i = 0; i < 200; i++) {
		unsigned char was[4];
		size_t at[4];

		for (size_t j = 0; j < 4; j++) {
			at[j] = (size_t)rand_r(&seed) % (j < 2 ? 64 : 1024);
			was[j] = bytes[at[j]];
			bytes[at[j]] ^= (unsigned char)(1 << rand_r(&seed) % 8);
		}
		try_damaged(bytes, n);
		for (size_t j = 4; j--;)
			bytes[at[j]] = was[j];
	}
	remove_dir();
}
END_TEST

/* ── The kernel's texts ── */

static int parse(const char *text, struct kernel_symbols *ret)
{
	_cleanup_(cleanup_fclose) FILE *f = fmemopen((void *)text, strlen(text), "r");

	ck_assert_ptr_nonnull(f);
	return kernel_symbols_parse(f, ret);
}

START_TEST(kallsyms_is_read)
{
	struct kernel_symbols k = {};
	struct symtab *module;

	ck_assert_int_eq(parse("ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000100 t local_one\n"
			       "ffffffff81000180 d data\n"
			       "ffffffff81000200 W weak_one\n"
			       "garbage\n\nffffffff81000300\nffffffff81000300 T \n"
			       "ffffffffc0000000 t in_module\t[nf_nat]\n"
			       "ffffffffc0000010 T in_module_2\t[nf_nat]\n"
			       "ffffffffc0010000 t bpf_prog_1234_x\t[bpf]\n",
			       &k),
			 0);
	ck_assert_uint_eq(k.text, 0xffffffff81000000);
	ck_assert_str_eq(name_at(&k.core, 0xffffffff810001ff), "local_one");
	ck_assert_str_eq(name_at(&k.core, 0xffffffff81000210), "weak_one");
	ck_assert_uint_eq(k.n_modules, 2);
	module = kernel_symbols_module(&k, "nf_nat");
	ck_assert_ptr_nonnull(module);
	ck_assert_str_eq(name_at(module, 0xffffffffc000000f), "in_module");
	ck_assert_ptr_null(kernel_symbols_module(&k, "nf"));
	ck_assert_ptr_null(kernel_symbols_module(&k, "nf_nat_2"));
	kernel_symbols_done(&k);
}
END_TEST

START_TEST(kallsyms_without_addresses_tells_nothing)
{
	struct kernel_symbols k = {};

	ck_assert_int_eq(parse("0000000000000000 T _text\n0000000000000000 T schedule\n", &k),
			 -ENOENT);
	ck_assert_int_eq(parse("\n", &k), -ENOENT);
}
END_TEST

START_TEST(another_kernel_is_not_ours)
{
	const uint8_t build_id[20] = { 1 };

	ck_assert(!kernel_is_running(&(struct kernel_id){ .release = "" }));
	ck_assert(!kernel_is_running(&(struct kernel_id){ .release = "2.6.12-none" }));
	ck_assert(!kernel_is_running(&(struct kernel_id){
		.release = "", .build_id = build_id, .build_id_size = sizeof(build_id) }));
}
END_TEST

/* ── Demangling ── */

static void expect_demangled(struct demangler *d, const char *name, const char *want)
{
	_cleanup_free_ char *got = demangle(d, name);

	ck_assert_msg(got && !strcmp(got, want), "%s: %s", name, got ?: "not demangled");
}

/* Without libstdc++ names stay mangled. */
static const char *no_cpp(void)
{
	struct demangler d;
	char *got;

	demangler_init(&d);
	got = demangle(&d, "_Z1fv");
	demangler_done(&d);
	free(got);
	return got ? NULL : "needs libstdc++.so.6";
}

START_TEST(cpp_as_perf_shows_it)
{
	static const char *const names[][2] = {
		{ "_ZN5outer3BoxIlE4spinElRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
		  "outer::Box<long>::spin" },
		{ "_ZN5outer5twiceIiEET_S1_", "outer::twice<int>" },
		{ "_Z3foov", "foo" },
		{ "_Z3foov@plt", "foo@plt" },
		{ "_ZNK3FooclEi", "Foo::operator()" },
		{ "_ZN3FoolsEi", "Foo::operator<<" },
		{ "_ZltRK3FooS1_", "operator<" },
		{ "_ZNK3FoocvbEv", "Foo::operator bool" },
		{ "_Znwm", "operator new" },
		{ "_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo" },
		{ "_ZTV3Foo", "vtable for Foo" },
		{ "_ZThn16_N3Foo3barEv", "non-virtual thunk to Foo::bar" },
		{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()" },
	};
	struct demangler d;

	demangler_init(&d);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect_demangled(&d, names[i][0], names[i][1]);
	demangler_done(&d);
}
END_TEST

START_TEST(rust_without_its_hash)
{
	struct demangler d;

	demangler_init(&d);
	expect_demangled(&d, "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	expect_demangled(&d,
			 "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h"
			 "0123456789abcdefE.llvm.123",
			 "<alloc::string::String as core::fmt::Display>::fmt");
	ck_assert_int_eq(d.pid, 0); /* no child was started */
	ck_assert_ptr_null(demangle_rust("_ZN4core3fmt5writeE"));
	ck_assert_ptr_null(demangle_rust("_ZN17h0123456789abcdefE"));
	ck_assert_ptr_null(demangle_rust("_ZN99999999999999999999a17h0123456789abcdefE"));
	ck_assert_ptr_null(demangle_rust("_ZN4core17h0123456789abcdef"));
	demangler_done(&d);
}
END_TEST

START_TEST(other_names_stay)
{
	struct demangler d;

	demangler_init(&d);
	ck_assert_ptr_null(demangle(&d, "main"));
	ck_assert_ptr_null(demangle(&d, ""));
	ck_assert_ptr_null(demangle(&d, "_Z"));
	ck_assert_ptr_null(demangle(&d, "_Zgarbage"));
	demangler_done(&d);
}
END_TEST

/* "B<A, A>", then the same of that, and so on: each step doubles the output. Up to 34 times. */
static void make_bomb(char *name, size_t size, int doublings)
{
	static const char digits[] = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = (size_t)snprintf(name, size, "_Z1f1BI1AS0_E");

	for (int i = 0; i < doublings; i++)
		n += (size_t)snprintf(name + n, size - n, "S_IS%c_S%c_E", digits[i], digits[i]);
}

/* Takes the two seconds of CPU that the demangler allows per name. */
START_TEST(names_that_explode_are_survived)
{
	struct demangler d;
	char name[1024];

	demangler_init(&d);
	make_bomb(name, sizeof(name), 3);
	expect_demangled(&d, name, "f");
	make_bomb(name, sizeof(name), 34);
	ck_assert_ptr_null(demangle(&d, name));
	/* another child demangles the next one */
	expect_demangled(&d, "_Z3foov", "foo");
	demangler_done(&d);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* and no child is left */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbols");
	TCase *tc = tcase_create("symbols");

	tcase_add_test(tc, finds_what_an_address_is_in);
	tcase_add_test(tc, an_empty_table_finds_nothing);
	tcase_add_test(tc, of_aliases_the_one_is_kept_that_perf_shows);
	tcase_add_test(tc, small_functions_stand_inside_of_large_ones);
	tcase_add_test(tc, sizes_do_not_wrap);
	tcase_add_test(tc, there_is_a_limit);
	tcase_add_test(tc, reads_this_program);
	tcase_add_test(tc, another_build_is_refused);
	tcase_add_test(tc, another_file_of_that_path_is_refused);
	tcase_add_loop_test(tc, a_file_of_many_paths_is_read_once, 0, 2);
	tcase_add_test(tc, what_is_no_file_is_not_opened);
	tcase_add_test(tc, what_the_kernel_makes_up_is_not_opened);
	tcase_add_test(tc, links_are_followed_as_far_as_wanted);
	tcase_add_test(tc, files_are_opened_without_openat2);
	tcase_add_test(tc, what_is_no_program_is_refused);
	tcase_add_test(tc, damaged_programs_are_survived);
	tcase_add_test(tc, kallsyms_is_read);
	tcase_add_test(tc, kallsyms_without_addresses_tells_nothing);
	tcase_add_test(tc, another_kernel_is_not_ours);
	add_test_unless(no_cpp(), tc, cpp_as_perf_shows_it);
	tcase_add_test(tc, rust_without_its_hash);
	tcase_add_test(tc, other_names_stay);
	add_test_unless(no_cpp(), tc, names_that_explode_are_survived);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
