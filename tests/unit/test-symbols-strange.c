// SPDX-License-Identifier: LGPL-2.1-or-later
/* Symbols of files that were made to harm their reader: this program, changed. */
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/trace/symbols-elf.h"
#include "proto/macro.h"
#include "proto/regular.h"
#include "tests/unit/needs.h"

#define STRANGER 61999

static char dir[] = "/tmp/pp-symbols-XXXXXX";

/* Runs it in the directory, with $P for this program. */
static void run(const char *command)
{
	char text[PATH_MAX + 512];

	snprintf(text, sizeof(text), "cd %s && P=$(readlink /proc/%d/exe) && { %s; } >&2", dir,
		 getpid(), command);
	ck_assert_int_eq(system(text), 0);
}

static void setup(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	run("cp $P program");
}

static void teardown(void)
{
	run("rm -rf $PWD");
}

static const char *in_dir(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* -errno, or whether the file has the function. */
static int has_function(const char *path, const char *name)
{
	struct elf_symbols s = {};
	int r = elf_symbols_read(path, NULL, &s);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s.table.n; i++)
		r |= !strcmp(symtab_name(&s.table, &s.table.entries[i]), name);
	elf_symbols_done(&s);
	return r;
}

/* ── What is long ── */

START_TEST(long_names)
{
	static char name[1 << 20];
	struct symtab t = {};

	memset(name, 'x', sizeof(name) - 1);
	for (uint64_t i = 0; i < 100; i++)
		ck_assert_int_eq(symtab_add(&t, 16 * i, 16, SYMTAB_GLOBAL, name), 0);
	symtab_finish(&t);
	ck_assert_uint_eq(strlen(symtab_name(&t, symtab_find(&t, 99 * 16))), SYMTAB_NAME_MAX);
	ck_assert_uint_lt(t.text_cap, 100 * 2 * (SYMTAB_NAME_MAX + 1));
	symtab_done(&t);
}
END_TEST

/* A hostile user's second file finds no room; one of ours does. */
START_TEST(strangers_share)
{
	struct elf_symbols s = {};
	struct strangers strangers = { .tables = 1 << 20, .copies = UINT64_MAX };
	struct elf_identity which = { .strangers = &strangers };
	const char *path = in_dir("program");

	ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
	ck_assert_int_eq(elf_symbols_read(path, &which, &s), 0);
	ck_assert_uint_le(strangers.tables, (1 << 20) - symtab_bytes(&s.table));
	elf_symbols_done(&s);
	strangers.tables = 100;
	ck_assert(!strangers.refused);
	ck_assert_int_eq(elf_symbols_read(path, &which, &s), -E2BIG);
	ck_assert(strangers.refused);
	ck_assert_int_eq(chown(path, 0, 0), 0);
	ck_assert_int_eq(elf_symbols_read(path, &which, &s), 0);
	elf_symbols_done(&s);
}
END_TEST

/* The reader checks the size before it copies, and charges it. */
START_TEST(copies_have_an_end)
{
	struct elf_symbols s = {};
	struct strangers strangers = { .tables = 1 << 20 };
	struct elf_identity which = { .strangers = &strangers };
	const char *path = in_dir("program");
	struct stat st;

	run("truncate -s 200M sparse && chown 61999 sparse program");
	ck_assert_int_eq(stat(path, &st), 0);
	strangers.copies = (uint64_t)st.st_size * 3 / 2;
	ck_assert_int_eq(elf_symbols_read(in_dir("sparse"), &which, &s), -ENOEXEC);
	ck_assert_int_eq(elf_symbols_read(in_dir("program"), &which, &s), 0);
	elf_symbols_done(&s);
	ck_assert_uint_eq(strangers.copies, (uint64_t)st.st_size / 2);
	ck_assert(!strangers.refused);
	ck_assert_int_eq(elf_symbols_read(in_dir("program"), &which, &s), -E2BIG);
	ck_assert(strangers.refused);
}
END_TEST

/* ── What is another file ── */

/* A user's own file system can have any inode number. */
START_TEST(inode_of_another_device)
{
	char path[] = "/dev/shm/pp-symbols-XXXXXX";
	_cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
	struct elf_identity which = {};
	struct elf_symbols s = {};
	char command[64];
	struct stat st;

	snprintf(command, sizeof(command), "cp program %s", path);
	run(command);
	ck_assert_int_eq(fstat(fd, &st), 0);
	which.device = st.st_dev;
	which.inode = st.st_ino;
	ck_assert_int_eq(elf_symbols_read(path, &which, &s), 0);
	elf_symbols_done(&s);
	which.device++;
	ck_assert_int_eq(elf_symbols_read(path, &which, &s), -ESTALE);
	unlink(path);
}
END_TEST

/* stat() follows the same rules as opening. */
START_TEST(looks_are_careful)
{
	struct stat here, st;

	ck_assert_int_eq(stat(in_dir("program"), &here), 0);
	ck_assert_int_eq(regular_stat(AT_FDCWD, in_dir("program"), RESOLVE_NO_MAGICLINKS, &st), 0);
	ck_assert_uint_eq(st.st_ino, here.st_ino);
	ck_assert_int_eq(regular_stat(AT_FDCWD, "/proc/self/exe", RESOLVE_NO_MAGICLINKS, &st),
			 -ELOOP);
	ck_assert_int_eq(regular_stat(AT_FDCWD, "/proc/self/maps", 0, &st), -EINVAL);
	ck_assert_int_eq(regular_stat(AT_FDCWD, "/dev/null", 0, &st), -EINVAL);
	ck_assert_int_eq(regular_stat(AT_FDCWD, in_dir("absent"), 0, &st), -ENOENT);
}
END_TEST

/* ── What is no ELF file ── */

/* libdwfl takes what only begins like one for a kernel's image, and unpacks it. */
START_TEST(begins_like_elf)
{
	static const int at[] = { EI_CLASS, EI_DATA, EI_VERSION };
	_cleanup_close_ int fd = open(in_dir("program"), O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, "", 1, at[_i]), 1);
	ck_assert_int_eq(has_function(in_dir("program"), "elf_symbols_read"), -ENOEXEC);
	ck_assert_int_eq(elf_open(in_dir("program"), &(struct elf_identity){}, NULL), -ENOEXEC);
}
END_TEST

/* The last name of a table would be read on into what lies behind it. */
START_TEST(names_without_end)
{
	_cleanup_close_ int fd = open(in_dir("program"), O_RDWR | O_CLOEXEC);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_ptr_nonnull(elf);
	do {
		scn = elf_nextscn(elf, scn);
		ck_assert_ptr_nonnull(gelf_getshdr(scn, &shdr));
	} while (shdr.sh_type != SHT_STRTAB || _i-- > 0);
	ck_assert_int_eq(pwrite(fd, "x", 1, (off_t)(shdr.sh_offset + shdr.sh_size - 1)), 1);
	elf_end(elf);
	ck_assert_int_eq(has_function(in_dir("program"), "elf_symbols_read"), -ENOEXEC);
}
END_TEST

/* Behind a copy's end are zeroes, where another file would begin. */
START_TEST(copies_end_in_zeroes)
{
	_cleanup_close_ int fd = -EBADF;
	struct strangers strangers = { .copies = UINT64_MAX };
	char zeroes[SYMTAB_NAME_MAX + 1] = {}, last[sizeof(zeroes)];
	struct stat st, copy;

	run("chown 61999 program");
	ck_assert_int_eq(stat(in_dir("program"), &st), 0);
	fd = elf_open(in_dir("program"), &(struct elf_identity){ .strangers = &strangers }, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &copy), 0);
	ck_assert_int_eq(copy.st_size, st.st_size + (off_t)sizeof(zeroes));
	ck_assert_int_eq(pread(fd, last, sizeof(last), st.st_size), sizeof(last));
	ck_assert_mem_eq(last, zeroes, sizeof(last));
}
END_TEST

/* ── What unpacks ── */

/* Compresses the first section of that type. */
static void pack_section(const char *path, GElf_Word type)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_RDWR, NULL);
	ck_assert_ptr_nonnull(elf);
	do {
		scn = elf_nextscn(elf, scn);
		ck_assert_ptr_nonnull(gelf_getshdr(scn, &shdr));
	} while (shdr.sh_type != type || shdr.sh_flags & SHF_ALLOC);
	ck_assert_int_eq(elf_compress(scn, ELFCOMPRESS_ZLIB, ELF_CHF_FORCE), 1);
	ck_assert_int_gt(elf_update(elf, ELF_C_WRITE), 0);
	elf_end(elf);
}

/* Even in files of our own: no tool makes such files. */
START_TEST(packed_symbols)
{
	ck_assert_int_eq(has_function(in_dir("program"), "elf_symbols_read"), 1);
	pack_section(in_dir("program"), _i ? SHT_STRTAB : SHT_SYMTAB);
	ck_assert_int_eq(has_function(in_dir("program"), "elf_symbols_read"), -E2BIG);
}
END_TEST

/* A stripped program with its other functions in a compressed section. */
START_TEST(packed_debugdata)
{
	const char *path = in_dir("stripped");

	run("objcopy -g program mini && xz -0 mini &&"
	    "objcopy -S --add-section .gnu_debugdata=mini.xz program stripped");
	ck_assert_int_eq(has_function(path, "elf_symbols_read"), 1);
	ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
	ck_assert_int_eq(has_function(path, "elf_symbols_read"), 0);
}
END_TEST

static const char *no_tools(void)
{
	const char *reason = no_root();

	if (!reason)
		reason = no_program("objcopy");
	return reason ?: no_program("xz");
}

int main(void)
{
	Suite *suite = suite_create("symbols-strange");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, long_names);
	add_test_unless(no_root(), tc, strangers_share);
	add_test_unless(no_root(), tc, copies_have_an_end);
	tcase_add_test(tc, inode_of_another_device);
	tcase_add_test(tc, looks_are_careful);
	tcase_add_loop_test(tc, begins_like_elf, 0, 3);
	tcase_add_loop_test(tc, names_without_end, 0, 3);
	add_test_unless(no_root(), tc, copies_end_in_zeroes);
	tcase_add_loop_test(tc, packed_symbols, 0, 2);
	add_test_unless(no_tools(), tc, packed_debugdata);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
