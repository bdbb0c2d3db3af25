// SPDX-License-Identifier: LGPL-2.1-or-later
/* The formats of this kernel's tracepoints pass; formats that the kernel would not write do not. */
#include <errno.h>
#include <glob.h>
#include <string.h>

#include "client/perfctl/decode/decode.h"
#include "client/perfctl/decode/format-check.h"
#include "tests/unit/needs.h"

#define HEAD                                                                   \
	"name: x\nID: 7\nformat:\n"                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(declaration) "\tfield:" declaration ";\toffset:8;\tsize:4;\tsigned:0;\n"
#define FIELDS FIELD("u32 a") FIELD("__data_loc char[] s")

/* ── This kernel's ──────────────────────────────────────────────────────────────────────── */

static size_t read_format(const char *path, char *text, size_t max)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");

	return f ? fread(text, 1, max, f) : 0;
}

/* libtraceevent needs the system's name: the folder's. */
static const char *system_of(char *path)
{
	*strrchr(path, '/') = 0;
	*strrchr(path, '/') = 0;
	return strrchr(path, '/') + 1;
}

START_TEST(all_of_this_kernel)
{
	static char text[1 << 16];
	size_t whole = 0, fields;
	glob_t all;

	ck_assert_int_eq(glob("/sys/kernel/tracing/events/*/*/format", 0, NULL, &all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++) {
		size_t n = read_format(all.gl_pathv[i], text, sizeof(text));
		struct decoder *d;
		int r;

		if (n == 0)
			continue; /* removed meanwhile */
		r = format_check(text, n, &fields);
		ck_assert_msg(r >= 0, "%s is refused", all.gl_pathv[i]);
		ck_assert_int_eq(strncmp(text + fields, "print fmt: ", 11), 0);
		whole += r == 0;
		if (!strstr(text, "\n\n\nprint fmt")) /* it has fields of its own */
			ck_assert_msg(decoder_new(system_of(all.gl_pathv[i]), text, n, &d) == 0,
				      "%s: no decoder", all.gl_pathv[i]);
		else
			continue;
		decoder_free(d);
	}
	/* The others have statements, functions of the kernel, or arrays to print. */
	ck_assert_uint_gt(all.gl_pathc, 100);
	ck_assert_uint_gt(whole, all.gl_pathc * 9 / 10);
	globfree(&all);
}
END_TEST

/* ── Forms ──────────────────────────────────────────────────────────────────────────────── */

static int check(const char *text)
{
	size_t n = strlen(text), fields = 0;
	char *exact = malloc(n + 1); /* so that ASan sees an overrun */
	int r;

	memcpy(exact, text, n);
	exact = realloc(exact, n);
	r = format_check(exact, n, &fields);
	if (r >= 0)
		ck_assert_uint_le(fields, n);
	free(exact);
	return r;
}

START_TEST(declarations)
{
	static const char *const good[] = {
		"u32 a",
		"char a[16]",
		"char a[TASK_COMM_LEN]",
		"__u8 a[sizeof(struct sockaddr_in6)]",
		"u8 mac[(6)]",
		"const char *const * argv",
		"const void *const rule_attr",
		"struct page * page",
		"__data_loc char[] name",
		"__rel_loc u8[] data",
		"unsigned long args[]",
	};
	static const char *const bad[] = {
		"",	   "a",		  "u32 ",	"u32 *",      "* a",	   "[] a",
		"u32 a[",  "u32 a[1",	  "u32 a[(1]",	"u32 a[1)]",  "u32 a[()]", "u32 a[-1]",
		"u32 a]",  "u32 a[1][2]", "u32 9a",	"u32 a b\n",  "u32\ta",	   "u32 a;",
		"u32 \"a", "u32 a(int)",  "u32 a[x[1]", "u32 a[\\n]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_free_ char *text = NULL;

		ck_assert_int_gt(asprintf(&text, HEAD FIELD("%s") "\nprint fmt: \"\"\n", good[i]),
				 0);
		ck_assert_msg(check(text) == 0, "\"%s\" is refused", good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_free_ char *text = NULL;

		ck_assert_int_gt(asprintf(&text, HEAD FIELD("%s") "\nprint fmt: \"\"\n", bad[i]),
				 0);
		ck_assert_msg(check(text) == -EBADMSG, "\"%s\" is taken", bad[i]);
	}
}
END_TEST

START_TEST(print_formats)
{
	static const char *const good[] = {
		"\"\"",
		"\"%d\" \" more\", REC->a",
		"\"%s\", __get_str(s)",
		"\"%s\", __print_dynamic_array(s, sizeof(u8))",
		"\"%s\", (REC->a & 3) ? __print_flags(REC->a & 3, \"|\", {1, \"x\"}, { 2, \"y\" }) "
		": "
		"\"none\"",
		"\"%s\", __print_symbolic(REC->a, { ((1UL) << 2), \"x\" }, { -1, ((void *)0) })",
		"\"%lx\", (unsigned long)(struct page *)REC->a",
		"\"%c\", REC->a ? 'S' : '?'",
		"\"%d\", ~REC->a + !REC->a - -1 * 2",
		"\"quoted \\\" and \\\\ and\n a line\", REC->a",
	};
	static const char *const doubtful[] = {
		"",
		"REC->a",
		"\"",
		"\"\\\"",
		"\"%d\",",
		"\"%d\" REC->a",
		"\"%d\", REC->b",
		"\"%d\", REC->",
		"\"%d\", REC",
		"\"%d\", (REC->a",
		"\"%d\", REC->a)",
		"\"%d\", REC->a ? 1",
		"\"%d\", REC->a +",
		"\"%d\", ((",
		"\"%d\", foo(REC->a)",
		"\"%s\", __get_str(a)",
		"\"%s\", __print_dynamic_array(a, 1)",
		"\"%s\", __print_dynamic_array(s)",
		"\"%s\", __print_dynamic_array(s, )",
		"\"%s\", __print_dynamic_array(s, sizeof(u8)",
		"\"%s\", __print_dynamic_array(s, sizeof())",
		"\"%s\", perfctl_print_array(s, 1, 1)",
		"\"%s\", __get_str(t)",
		"\"%s\", __print_symbolic(REC->a, { 1, \"x\" )",
		"\"%s\", __print_symbolic(REC->a, { 1 / 0, \"x\" })",
		"\"%d\", REC->a % 2",
		"\"%s\", __print_flags(REC->a)",
		"\"%s\", ({ int x; x; })",
		"\"%d\", 0x",
		"\"%d\", 12ab",
		"\"%d\", ''",
		"\"%d\", '",
		"\"\x01\"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_free_ char *text = NULL;

		ck_assert_int_gt(asprintf(&text, HEAD FIELDS "\nprint fmt: %s\n", good[i]), 0);
		ck_assert_msg(check(text) == 0, "%s is doubted", good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(doubtful); i++) {
		_cleanup_free_ char *text = NULL;

		ck_assert_int_gt(asprintf(&text, HEAD FIELDS "\nprint fmt: %s\n", doubtful[i]), 0);
		ck_assert_msg(check(text) == 1, "%s is not doubted", doubtful[i]);
	}
}
END_TEST

/* Cut at any point: each field is complete or absent, and nothing beyond the end is read. */
START_TEST(cut_off)
{
	static const char whole[] = HEAD FIELDS "\nprint fmt: \"%d\", (REC->a)\n";

	ck_assert_int_eq(check(whole), 0);
	for (size_t n = 1; n < sizeof(whole) - 2; n++) {
		char text[sizeof(whole)];

		memcpy(text, whole, n);
		text[n] = 0;
		if (n < strlen(HEAD FIELDS "\n"))
			ck_assert_int_eq(check(text), -EBADMSG);
		else
			ck_assert_int_ge(check(text), 0);
	}
}
END_TEST

static char *nested(size_t depth)
{
	char *text, *open = malloc(depth + 1), *close = malloc(depth + 1);

	memset(open, '(', depth);
	memset(close, ')', depth);
	open[depth] = close[depth] = 0;
	ck_assert_int_gt(
		asprintf(&text, HEAD FIELDS "\nprint fmt: \"%%d\", %sREC->a%s\n", open, close), 0);
	free(open);
	free(close);
	return text;
}

START_TEST(nesting)
{
	_cleanup_free_ char *some = nested(15), *many = nested(20000);

	ck_assert_int_eq(check(some), 0);
	ck_assert_int_eq(check(many), 1);
}
END_TEST

START_TEST(many_fields)
{
	_cleanup_free_ char *text = calloc(300, 64);

	strcpy(text, HEAD);
	for (unsigned i = 0; i < 300; i++)
		strcat(text, FIELD("u32 a"));
	strcat(text, "\nprint fmt: \"\"\n");
	ck_assert_int_eq(check(text), -EBADMSG);
}
END_TEST

/* The decoder prints doubtful formats field by field. */
START_TEST(decoded_by_fields)
{
	static const char format[] = HEAD FIELD("u32 a") "\nprint fmt: \"%d\", REC->nothing\n";
	static const uint8_t raw[12] = { 7, 0, 0, 0, 1, 0, 0, 0, 42 };
	_cleanup_free_ char *text = NULL;
	struct decoder *d;
	size_t n;
	FILE *f;

	ck_assert_int_eq(decoder_new("x:x", format, strlen(format), &d), 0);
	ck_assert_int_eq(decoder_load(d, raw, sizeof(raw)), 0);
	f = open_memstream(&text, &n);
	decoder_print(d, f);
	fclose(f);
	ck_assert_str_eq(text, "a=42");
	decoder_free(d);
	ck_assert_int_eq(decoder_new("x:x", "name: x\n", 8, &d), -EBADMSG);
}
END_TEST

/* As the kernel prints them; those of other sizes field by field. */
START_TEST(dynamic_arrays)
{
	static const struct {
		const char *element, *expected;
	} all[] = {
		{ "sizeof(u8)", "{0x1,0xff,0x2,0x80} of 7" },
		{ "1", "{0x1,0xff,0x2,0x80} of 7" },
		{ "sizeof(u16)", "{0xff01,0x8002} of 7" },
		{ "sizeof(u32)", "{0x8002ff01} of 7" },
		{ "sizeof(u64)", "{} of 7" },
		{ "sizeof(nothing)", "a=7 d={1,255,2,128}" },
		{ "3", "a=7 d={1,255,2,128}" },
	};
	static const uint8_t raw[] = { 7, 0, 0,	 0, 1, 0, 0, 0,	   7,	 0,
				       0, 0, 16, 0, 4, 0, 1, 0xff, 0x02, 0x80 };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		_cleanup_free_ char *format = NULL, *text = NULL;
		struct decoder *d;
		size_t n;
		FILE *f;

		ck_assert_int_gt(
			asprintf(&format,
				 HEAD FIELD("u32 a") "\tfield:__data_loc u8[] "
						     "d;\toffset:12;\tsize:4;\tsigned:0;\n"
						     "\nprint fmt: \"%%s of %%d\", "
						     "__print_dynamic_array(d, %s), REC->a\n",
				 all[i].element),
			0);
		ck_assert_int_eq(decoder_new("x:x", format, strlen(format), &d), 0);
		ck_assert_int_eq(decoder_load(d, raw, sizeof(raw)), 0);
		f = open_memstream(&text, &n);
		decoder_print(d, f);
		fclose(f);
		ck_assert_str_eq(text, all[i].expected);
		decoder_free(d);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("format-check");
	TCase *t = tcase_create("format-check");

	add_test_unless(no_tracefs(), t, all_of_this_kernel);
	tcase_add_test(t, declarations);
	tcase_add_test(t, print_formats);
	tcase_add_test(t, cut_off);
	tcase_add_test(t, nesting);
	tcase_add_test(t, many_fields);
	tcase_add_test(t, dynamic_arrays);
	tcase_add_test(t, decoded_by_fields);
	suite_add_tcase(s, t);
	return run_suite(s);
}
