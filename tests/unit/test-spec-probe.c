// SPDX-License-Identifier: LGPL-2.1-or-later
/* Probes in event text: functions, arguments, files, static probes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "tests/unit/elf-image.h"
#include "tests/unit/needs.h"

static struct pp_source sources[PP_TERMS_MAX];
static char sentence[PP_SENTENCE_SIZE];
static char file[64]; /* the image's path */
static int file_fd;

static int parse(const char *text)
{
	memset(sources, 0xaa, sizeof(sources));
	*sentence = 0;
	return pp_spec_parse(text, sources, PP_TERMS_MAX, sentence, sizeof(sentence));
}

static void expect_refusal(const char *text, int error, const char *part)
{
	int r = parse(text);

	ck_assert_msg(r == error, "'%s': %d, not %d (%s)", text, r, error, sentence);
	ck_assert_msg(strstr(sentence, part) != NULL, "'%s': no '%s' in: %s", text, part, sentence);
}

/* The engine must accept each result. */
static void expect_taken(int n)
{
	static struct pp_parsed parsed;

	parsed.n_sources = n;
	memcpy(parsed.sources, sources, sizeof(sources));
	ck_assert_int_eq(pp_parsed_check(&parsed, true), 0);
}

START_TEST(kernel_functions)
{
	struct pp_source want = { .kind = PP_SOURCE_KPROBE, .name = "do_exit" };

	strcpy(want.text, "kprobe:do_exit");
	ck_assert_int_eq(parse("kprobe:do_exit"), 1);
	ck_assert_int_eq(memcmp(sources, &want, sizeof(want)), 0);
	strcpy(want.text, "kprobe:do_exit+0x10()");
	want.offset = 16;
	ck_assert_int_eq(parse("kprobe:do_exit+0x10()"), 1);
	ck_assert_int_eq(memcmp(sources, &want, sizeof(want)), 0);
	expect_taken(1);
	ck_assert_int_eq(parse("kretprobe:foo.isra.0(retval:s32),sched:*,kprobe:a(x=arg1,arg2)"),
			 3);
	ck_assert_str_eq(sources[0].name, "foo.isra.0");
	ck_assert_uint_eq(sources[0].is_return, 1);
	ck_assert_uint_eq(sources[0].args[0].place, PP_PROBE_RETURN);
	ck_assert_uint_eq(sources[1].kind, PP_SOURCE_TRACEPOINT);
	ck_assert_uint_eq(sources[2].n_args, 2);
	ck_assert_str_eq(sources[2].text, "kprobe:a(x=arg1,arg2)");
	expect_taken(3);

	expect_refusal("kprobe:", -EINVAL, "does not name a function");
	expect_refusal("kprobe:vfs_*", -EOPNOTSUPP, "is a glob");
	expect_refusal("kprobe:a b", -EINVAL, "space");
	expect_refusal("kprobe:mod:f", -EINVAL, "does not name a function");
	expect_refusal("kprobe:f+x", -EINVAL, "offset that is none");
	expect_refusal("kretprobe:f+1", -EINVAL, "a return has none");
	expect_refusal("kprobe:f(arg1", -EINVAL, "lacks the bracket");
	expect_refusal("kprobe:f(arg1)x", -EINVAL, "lacks the bracket");
}
END_TEST

START_TEST(arguments)
{
	static const struct {
		const char *text;
		struct pp_probe_arg arg;
	} cases[] = {
		{ "arg1", { "arg1", PP_PROBE_ARGUMENT, 1, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "$arg6:u8", { "arg6", PP_PROBE_ARGUMENT, 6, 0, 0, { 0 }, 1, 0, 0, 0 } },
		{ "n=arg2:s16", { "n", PP_PROBE_ARGUMENT, 2, 0, 0, { 0 }, 2, 1, 0, 0 } },
		{ "arg3:x32", { "arg3", PP_PROBE_ARGUMENT, 3, 0, 0, { 0 }, 4, 0, 1, 0 } },
		{ "arg3:string", { "arg3", PP_PROBE_ARGUMENT, 3, 0, 0, { 0 }, 8, 0, 0, 1 } },
		{ "p=+8(arg1):u64", { "p", PP_PROBE_ARGUMENT, 1, 0, 1, { 8 }, 8, 0, 0, 0 } },
		{ "-0x10(+8(+0(arg1))):s8",
		  { "arg1", PP_PROBE_ARGUMENT, 1, 0, 3, { 0, 8, -16 }, 1, 1, 0, 0 } },
#ifdef __x86_64__
		{ "%ax", { "ax", PP_PROBE_REGISTER, 10, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "%rdi:s64", { "rdi", PP_PROBE_REGISTER, 14, 0, 0, { 0 }, 8, 1, 0, 0 } },
		{ "+8(%sp)", { "sp", PP_PROBE_REGISTER, 19, 0, 1, { 8 }, 8, 0, 1, 0 } },
		{ "%r15", { "r15", PP_PROBE_REGISTER, 0, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "%ip", { "ip", PP_PROBE_REGISTER, 16, 0, 0, { 0 }, 8, 0, 1, 0 } },
#elif defined(__aarch64__)
		{ "%x0", { "x0", PP_PROBE_REGISTER, 0, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "%lr", { "lr", PP_PROBE_REGISTER, 30, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "%sp", { "sp", PP_PROBE_REGISTER, 31, 0, 0, { 0 }, 8, 0, 1, 0 } },
#endif
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "kprobe:f(%s)", cases[i].text);
		ck_assert_msg(parse(text) == 1, "%s: %s", text, sentence);
		ck_assert_uint_eq(sources[0].n_args, 1);
		ck_assert_msg(!memcmp(sources[0].args, &cases[i].arg, sizeof(cases[i].arg)), "%s",
			      text);
		expect_taken(1);
	}
}
END_TEST

START_TEST(wrong_arguments)
{
	expect_refusal("kprobe:f(arg0)", -EINVAL, "arg1 to arg6");
	expect_refusal("kprobe:f(arg7)", -EINVAL, "arg1 to arg6");
	expect_refusal("kprobe:f(arg11)", -EINVAL, "arg1 to arg6");
	expect_refusal("kprobe:f(foo)", -EINVAL, "'foo' in 'kprobe:f(foo)' is no place");
	expect_refusal("kprobe:f(arg1,)", -EINVAL, "is no place");
	expect_refusal("kprobe:f(x=)", -EINVAL, "is no place");
	expect_refusal("kprobe:f(%eax)", -EINVAL, "'%eax' in");
	expect_refusal("kprobe:f(%)", -EINVAL, "is no register");
	expect_refusal("kprobe:f(retval)", -EINVAL, "use kretprobe");
	expect_refusal("kretprobe:f(arg1)", -EINVAL, "arguments are gone");
	expect_refusal("kprobe:f(arg1:u7)", -EINVAL, "'u7' in");
	expect_refusal("kprobe:f(arg1:)", -EINVAL, "is no type");
	expect_refusal("kprobe:f(+8arg1)", -EINVAL, "lacks brackets");
	expect_refusal("kprobe:f(+8(arg1)", -EINVAL, "lacks brackets");
	expect_refusal("kprobe:f(+(arg1))", -EINVAL, "is no offset");
	expect_refusal("kprobe:f(+u8(arg1))", -EINVAL, "is no offset");
	expect_refusal("kprobe:f(+0x80000000(arg1))", -EINVAL, "is no offset");
	expect_refusal("kprobe:f(+0(+0(+0(+0(+0(arg1))))))", -EINVAL,
		       "too many pointers: at most 4");
	expect_refusal("kprobe:f(arg1,arg1)", -EINVAL, "two arguments");
	expect_refusal("kprobe:f(a-b=arg1)", -EINVAL, "'a-b' in");
	expect_refusal("kprobe:f(1a=arg1)", -EINVAL, "is no name");
	expect_refusal("kprobe:f(=arg1)", -EINVAL, "is no name");
	expect_refusal("kprobe:f(common_pid=arg1)", -EINVAL, "called common_pid");
	expect_refusal("kprobe:f(__probe_ip=arg1)", -EINVAL, "called __probe_ip");
	expect_refusal("kprobe:f(abcdefghijklmnopqrstuvwxyz123456=arg1)", -EINVAL, "at most 31");
	expect_refusal("kprobe:f(a=arg1,b=arg1,c=arg1,d=arg1,e=arg1,f=arg1,g=arg1,h=arg1,i=arg1)",
		       -EINVAL, "too many arguments: at most 8");
}
END_TEST

/* ── Files ──────────────────────────────────────────────────────────────────────────────── */

static void make_file(void)
{
	static struct elf_image image;

	image_make(&image);
	file_fd = memfd_create("elf", MFD_CLOEXEC);
	ck_assert_int_eq(pwrite(file_fd, &image, IMAGE_SIZE, 0), IMAGE_SIZE);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", file_fd);
}

static void drop_file(void)
{
	close(file_fd);
}

static const char *event(const char *kind, const char *what)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s:%s:%s", kind, file, what);
	return text;
}

#define CODE offsetof(struct elf_image, code)

START_TEST(user_functions)
{
	static const struct {
		const char *name;
		uint64_t at;
	} cases[] = {
		{ "plain", 16 },    { "plain+31", 47 }, { "endless+100", 116 }, { "same", 24 },
		{ "shadowed", 40 }, { "grown", 48 },	{ "exported", 64 },
	};
	struct pp_source want = { .kind = PP_SOURCE_UPROBE, .is_return = 1, .name = "plain" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(parse(event("uprobe", cases[i].name)) == 1, "%s: %s", cases[i].name,
			      sentence);
		ck_assert_uint_eq(sources[0].offset, CODE + cases[i].at);
		expect_taken(1);
	}
	ck_assert_int_eq(parse(event("uretprobe", "plain")), 1);
	strcpy(want.path, file);
	strcpy(want.text, event("uretprobe", "plain"));
	want.offset = CODE + 16;
	ck_assert_int_eq(memcmp(sources, &want, sizeof(want)), 0);

	expect_refusal(event("uprobe", "plain+32"), -EINVAL, "plain has 32 bytes");
	expect_refusal(event("uprobe", "endless+1000"), -EINVAL, "has no code");
	expect_refusal(event("uprobe", "twice"), -EINVAL, "several functions 'twice'");
	expect_refusal(event("uprobe", "chosen"), -EOPNOTSUPP, "IFUNC");
	expect_refusal(event("uprobe", "outside"), -EINVAL, "not in the file's code");
	expect_refusal(event("uprobe", "variable"), -ENOENT, "no function 'variable'");
	expect_refusal(event("uprobe", "grown@V1"), -EINVAL, "does not name a function");
	expect_refusal(event("uretprobe", "plain+1"), -EINVAL, "a return has none");
	expect_refusal(event("uprobe", "*"), -EOPNOTSUPP, "glob");
	expect_refusal(event("uprobe", ""), -EINVAL, "does not name a function");
}
END_TEST

START_TEST(file_offsets)
{
	char text[64];

	snprintf(text, sizeof(text), "%#zx(arg1)", CODE + 4);
	ck_assert_int_eq(parse(event("uprobe", text)), 1);
	ck_assert_uint_eq(sources[0].offset, CODE + 4);
	ck_assert_uint_eq(sources[0].n_args, 1);
	expect_taken(1);
	expect_refusal(event("uprobe", "0x10"), -EINVAL, "not an address");
	expect_refusal(event("uprobe", "12x"), -EINVAL, "neither a function nor an offset");
}
END_TEST

/* The bytes at the offset are those of the function, in a real program. */
START_TEST(real_program)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned char bytes[16];

	ck_assert_int_eq(parse("uprobe:/proc/self/exe:pp_spec_parse"), 1);
	ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), sources[0].offset), sizeof(bytes));
	ck_assert_int_eq(memcmp(bytes, (const void *)(uintptr_t)pp_spec_parse, sizeof(bytes)), 0);
}
END_TEST

START_TEST(wrong_files)
{
	struct elf_image image;
	char text[400];

	expect_refusal("uprobe:bash:main", -EINVAL, "no absolute path");
	expect_refusal("uprobe:main", -EINVAL, "lacks a part");
	expect_refusal("uprobe::main", -EINVAL, "lacks a part");
	expect_refusal("uprobe:/nowhere/x:main", -ENOENT, "no file /nowhere/x");
	expect_refusal("uprobe:/proc/self/exe/x:main", -ENOENT, "no file");
	expect_refusal("uprobe:/proc:main", -EINVAL, "no regular file");
	expect_refusal("uprobe:/dev/zero:main", -EINVAL, "no regular file");
	expect_refusal("uprobe:/proc/self/comm:main", -EINVAL, "no regular file");
	snprintf(text, sizeof(text), "uprobe:/%0300d:main", 0);
	expect_refusal(text, -EINVAL, "the path in");

	/* For another machine, and with truncated tables. */
	ck_assert_int_eq(pread(file_fd, &image, IMAGE_SIZE, 0), IMAGE_SIZE);
	image.header.e_machine = EM_S390;
	ck_assert_int_eq(pwrite(file_fd, &image, IMAGE_SIZE, 0), IMAGE_SIZE);
	expect_refusal(event("uprobe", "plain"), -EINVAL, "no 64-bit ELF");
	image_make(&image);
	image.sections[image.header.e_shstrndx].sh_size = 1U << 30; /* who would read that? */
	ck_assert_int_eq(pwrite(file_fd, &image, IMAGE_SIZE, 0), IMAGE_SIZE);
	expect_refusal(event("uprobe", "plain"), -EINVAL, "no 64-bit ELF");
	image_make(&image);
	ck_assert_int_eq(pwrite(file_fd, &image, IMAGE_SIZE, 0), IMAGE_SIZE);
	ck_assert_int_eq(ftruncate(file_fd, offsetof(struct elf_image, strtab)), 0);
	expect_refusal(event("uprobe", "plain"), -ENOENT, "no function 'plain'");
	ck_assert_int_eq(ftruncate(file_fd, 0), 0);
	expect_refusal(event("uprobe", "plain"), -EINVAL, "no 64-bit ELF");
}
END_TEST

/* ── Static probes ──────────────────────────────────────────────────────────────────────── */

START_TEST(static_probes)
{
	ck_assert_msg(parse(event("usdt", "app:begin")) == 2, "%s", sentence);
	ck_assert_uint_eq(sources[0].kind, PP_SOURCE_UPROBE);
	ck_assert_uint_eq(sources[0].offset, CODE + 72);
	ck_assert_uint_eq(sources[0].ref_ctr_offset, offsetof(struct elf_image, data) + 16);
	ck_assert_str_eq(sources[0].name, "begin");
	ck_assert_uint_eq(sources[1].offset, CODE + 80);
	ck_assert_uint_eq(sources[1].n_args, 0);
	expect_taken(2);
	ck_assert_int_eq(parse(event("usdt", "begin")), 2);
	ck_assert_int_eq(parse(event("usdt", "lib:both")), 1);
	ck_assert_uint_eq(sources[0].ref_ctr_offset, 0);
	expect_refusal(event("usdt", "both"), -EINVAL, "several providers");
	expect_refusal(event("usdt", "app:nothing"), -ENOENT,
		       "it has app:begin, lib:both, app:both, app:lost, app:uncounted");
	expect_refusal(event("usdt", "lib:begin"), -ENOENT, "no static probe");
	expect_refusal(event("usdt", "lost"), -EINVAL, "has no code");
	expect_refusal(event("usdt", "uncounted"), -EINVAL, "has no data");
	expect_refusal(event("usdt", "app:begin(arg1)"), -EINVAL, "of its own");
	expect_refusal(event("usdt", "a:b:c"), -EINVAL, "too many");
	expect_refusal("usdt:/proc/self/exe", -EINVAL, "lacks a part");
	expect_refusal(event("usdt", ":begin"), -EINVAL, "lacks a part");
	*sentence = 0;
	ck_assert_int_eq(pp_spec_parse(event("usdt", "begin"), sources, 1, sentence, 512), -E2BIG);
	ck_assert_ptr_nonnull(strstr(sentence, "more places"));
}
END_TEST

START_TEST(static_arguments)
{
	static const struct {
		const char *text;
		struct pp_probe_arg arg;
	} cases[] = {
#ifdef __x86_64__
		{ "-4@%edi", { "arg1", PP_PROBE_REGISTER, 14, 0, 0, { 0 }, 4, 1, 0, 0 } },
		{ "8@%rax", { "arg1", PP_PROBE_REGISTER, 10, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "1@%r8b", { "arg1", PP_PROBE_REGISTER, 9, 0, 0, { 0 }, 1, 0, 0, 0 } },
		{ "2@%si", { "arg1", PP_PROBE_REGISTER, 13, 0, 0, { 0 }, 2, 0, 0, 0 } },
		{ "8@16(%rsp)", { "arg1", PP_PROBE_REGISTER, 19, 0, 1, { 16 }, 8, 0, 1, 0 } },
		{ "-8@-24(%rbp)", { "arg1", PP_PROBE_REGISTER, 4, 0, 1, { -24 }, 8, 1, 0, 0 } },
		{ "4@(%rdx)", { "arg1", PP_PROBE_REGISTER, 12, 0, 1, { 0 }, 4, 0, 0, 0 } },
		{ "4@$5", { "arg1", PP_PROBE_CONSTANT, 0, 5, 0, { 0 }, 4, 0, 0, 0 } },
		{ "-8@$-9223372036854775808",
		  { "arg1", PP_PROBE_CONSTANT, 0, INT64_MIN, 0, { 0 }, 8, 1, 0, 0 } },
		{ "%rdi", { "arg1", PP_PROBE_REGISTER, 14, 0, 0, { 0 }, 8, 0, 1, 0 } },
		{ "8@x(%rip) 8@%rdi", { "arg2", PP_PROBE_REGISTER, 14, 0, 0, { 0 }, 8, 0, 1, 0 } },
#elif defined(__aarch64__)
		{ "-4@w1", { "arg1", PP_PROBE_REGISTER, 1, 0, 0, { 0 }, 4, 1, 0, 0 } },
		{ "8@[sp, 16]", { "arg1", PP_PROBE_REGISTER, 31, 0, 1, { 16 }, 8, 0, 1, 0 } },
		{ "8@[x29]", { "arg1", PP_PROBE_REGISTER, 29, 0, 1, { 0 }, 8, 0, 1, 0 } },
		{ "4@-5", { "arg1", PP_PROBE_CONSTANT, 0, -5, 0, { 0 }, 4, 0, 0, 0 } },
#endif
	};
	static const char *const untold[] = {
		"",	      "8@",
		"3@%rdi",     "8f@%xmm0",
		"8@%xmm0",    "4@foo(%rip)",
		"8@%ah",      "8@(%rax,%rbx,8)",
		"8@%fs:0x28", "8@99999999999(%rsp)",
		"8@16(%rsp",  "8@16(rsp)",
		"8@$",	      "8@$5x",
		"x@%rdi",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_source s = { 0 };

		spec_usdt_args(cases[i].text, &s);
		ck_assert_msg(s.n_args == 1, "%s", cases[i].text);
		ck_assert_msg(!memcmp(s.args, &cases[i].arg, sizeof(cases[i].arg)), "%s",
			      cases[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(untold); i++) {
		struct pp_source s = { 0 };

		spec_usdt_args(untold[i], &s);
		ck_assert_msg(s.n_args == 0, "%s", untold[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spec-probe");
	TCase *t = tcase_create("text"), *f = tcase_create("files");

	tcase_add_test(t, kernel_functions);
	tcase_add_test(t, arguments);
	tcase_add_test(t, wrong_arguments);
	tcase_add_test(t, static_arguments);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(f, make_file, drop_file);
	tcase_add_test(f, user_functions);
	tcase_add_test(f, file_offsets);
	tcase_add_test(f, real_program);
	tcase_add_test(f, wrong_files);
	tcase_add_test(f, static_probes);
	suite_add_tcase(s, f);
	return run_suite(s);
}
