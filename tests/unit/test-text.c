// SPDX-License-Identifier: LGPL-2.1-or-later
/* Text that people write: names, numbers, CPU lists. */
#include <errno.h>
#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/printable.h"
#include "proto/siphash.h"
#include "tests/unit/needs.h"

/* Output of hostile text: printable UTF-8 stays, each other byte becomes a '?'. */
START_TEST(strangers_text)
{
	static const char *const texts[][2] = {
		{ "plain \\ \"x\"", "plain \\ \"x\"" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\033[1m\n\x7f", "?[1m??" },
		{ "\xc2\x9b"
		  "31m",
		  "??31m" }, /* CSI as UTF-8 */
		{ "\x9b"
		  "31m\x80\x9f",
		  "?31m??" },				       /* and alone */
		{ "\xc2\xa0", "\xc2\xa0" },		       /* the first harmless one */
		{ "\xc0\x9b\xe0\x82\x9b", "?????" },	       /* overlong */
		{ "\xed\xa0\x80\xf4\x90\x80\x80", "???????" }, /* no characters */
		{ "\xe2\x80\xae"
		  "txt.\xe2\x81\xa6",
		  "???txt.???" }, /* writing turned */
		{ "\xe2\x80\x8e\xe2\x80\xa8\xef\xbb\xbf", "?????????" },
		{ "\xe2\x80\x90\xe2\x81\xaa", "\xe2\x80\x90\xe2\x81\xaa" }, /* beside these */
		{ "a\xe2\x82", "a??" },					    /* cut off */
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		strcpy(text, texts[i][0]);
		make_printable(text, '?');
		ck_assert_str_eq(text, texts[i][1]);
	}
	ck_assert_uint_eq(printable_length("", 1), 0);
	ck_assert_uint_eq(printable_length("\xc3\xa4", 1), 0);
}
END_TEST

/* The lower halves of Linux's results (lib/siphash_kunit.c) for SipHash-1-3, for the bytes 0, 1, 2
 * …, as many as the index says, with the key 0 … 15. */
START_TEST(keyed_hash)
{
	static const uint32_t known[] = {
		0x050fc4dc, 0x7d57ca93, 0x4dc7d44d, 0xe7ddf7fb, 0x88d38328,
		0x49533b67, 0xc59f22a7, 0x9bb11140, 0x8d299a8e, 0x6c063de4,
	};
	uint8_t bytes[64];
	struct siphash h;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t n = 0; n < ARRAY_SIZE(known); n++) {
		siphash_begin(&h, bytes);
		siphash_add(&h, bytes, n);
		ck_assert_uint_eq((uint32_t)siphash_end(&h), known[n]);
	}
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		siphash_begin(&h, NULL);
		siphash_add(&h, bytes, n);
		siphash_add(&h, bytes + n, sizeof(bytes) - n);
		ck_assert_uint_eq(siphash_end(&h), siphash(bytes, sizeof(bytes)));
	}
}
END_TEST

START_TEST(names)
{
	static const char *const good[] = { "a", "_", "Z9", "a-b_c", "sched_switch", "by-id" };
	static const char *const bad[] = { "",	 "9a",	"-a", "a b", "a.b", "a/b",
					   "..", "a\n", "ä",  "a:b", "+a",  "a\x7f" };
	char name[66] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(pp_name_is_valid(good[i]), "'%s' is refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!pp_name_is_valid(bad[i]), "'%s' is taken", bad[i]);
	memset(name, 'a', 63);
	ck_assert(pp_name_is_valid(name));
	name[63] = 'a';
	ck_assert(!pp_name_is_valid(name));
}
END_TEST

START_TEST(tracepoint_names)
{
	char name[130] = { 0 };

	ck_assert(pp_tp_name_is_valid("sched_switch"));
	ck_assert(pp_tp_name_is_valid("9p_client_req"));
	ck_assert(pp_tp_name_is_valid("9p"));
	ck_assert(!pp_tp_name_is_valid(""));
	ck_assert(!pp_tp_name_is_valid(".."));
	ck_assert(!pp_tp_name_is_valid("-a"));
	ck_assert(!pp_tp_name_is_valid("a/b"));
	memset(name, 'a', 127);
	ck_assert(pp_tp_name_is_valid(name));
	name[127] = 'a';
	ck_assert(!pp_tp_name_is_valid(name));
}
END_TEST

START_TEST(tracepoint_globs)
{
	static const char *const good[] = { "sched_*", "*", "sys_[er]*", "x-?", "sched_switch" };
	static const char *const bad[] = { "", "a b*", "*.x", "*/", "[!a]", "-a", "*\\" };
	char glob[130] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(pp_tp_glob_is_valid(good[i]), "'%s' is refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!pp_tp_glob_is_valid(bad[i]), "'%s' is taken", bad[i]);
	memset(glob, '*', 127);
	ck_assert(pp_tp_glob_is_valid(glob));
	glob[127] = '*';
	ck_assert(!pp_tp_glob_is_valid(glob));
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		const char *text;
		int r;
		uint64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "4000", 0, 4000 },
		{ "010", 0, 10 },
		{ "0x10", 0, 16 },
		{ "0XfF", 0, 255 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "0xffffffffffffffff", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "0x10000000000000000", -ERANGE, 0 },
		{ "99999999999999999999999", -ERANGE, 0 },
		{ "99999999999999999999999x", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "0x", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "1k", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "ff", -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t v = 77;

		ck_assert_msg(pp_parse_u64(cases[i].text, &v) == cases[i].r, "'%s'", cases[i].text);
		ck_assert_uint_eq(v, cases[i].r ? 77 : cases[i].value);
	}
}
END_TEST

START_TEST(small_numbers)
{
	uint32_t v = 77;

	ck_assert_int_eq(pp_parse_u32("4294967295", &v), 0);
	ck_assert_uint_eq(v, UINT32_MAX);
	ck_assert_int_eq(pp_parse_u32("4294967296", &v), -ERANGE);
	ck_assert_int_eq(pp_parse_u32("0x100000000", &v), -ERANGE);
	ck_assert_int_eq(pp_parse_u32("x", &v), -EINVAL);
	ck_assert_uint_eq(v, UINT32_MAX);
}
END_TEST

START_TEST(cpu_lists_there_and_back)
{
	static const char *const cases[][2] = {
		{ "0", "0" },	      { "0-3,8", "0-3,8" }, { "8,0-3", "0-3,8" },
		{ "0,1,2", "0-2" },   { "3,3,2-4", "2-4" }, { "5-5", "5" },
		{ "62-65", "62-65" }, { "4095", "4095" },   { "0-4095", "0-4095" },
		{ "007", "7" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_cpumask mask;
		char text[PP_CPUS_SIZE];

		ck_assert_msg(pp_parse_cpus(cases[i][0], &mask) == 0, "'%s'", cases[i][0]);
		ck_assert_int_eq(pp_format_cpus(&mask, text, sizeof(text)), 0);
		ck_assert_str_eq(text, cases[i][1]);
	}
}
END_TEST

START_TEST(cpu_lists_that_are_none)
{
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "", -EINVAL },
		{ ",", -EINVAL },
		{ "0,", -EINVAL },
		{ ",0", -EINVAL },
		{ "0,,1", -EINVAL },
		{ "3-1", -EINVAL },
		{ "-1", -EINVAL },
		{ "0-", -EINVAL },
		{ "0-1-2", -EINVAL },
		{ "a", -EINVAL },
		{ "0 ", -EINVAL },
		{ "0\n", -EINVAL },
		{ "0x1", -EINVAL },
		{ "0-3:2", -EINVAL },
		{ "4096", -ERANGE },
		{ "0-4096", -ERANGE },
		{ "0,99999999999999999999", -ERANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_cpumask mask = { .bits = { [1] = 5 } };

		ck_assert_msg(pp_parse_cpus(cases[i].text, &mask) == cases[i].r, "'%s'",
			      cases[i].text);
		ck_assert_uint_eq(mask.bits[0], 0);
		ck_assert_uint_eq(mask.bits[1], 5);
	}
}
END_TEST

START_TEST(cpu_lists_that_do_not_fit)
{
	struct pp_cpumask mask = { 0 };
	char text[PP_CPUS_SIZE];

	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(pp_format_cpus(&mask, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(pp_format_cpus(&mask, text, 0), -ENOSPC);
	ck_assert_int_eq(pp_format_cpus(&mask, text, 1), 0);

	ck_assert_int_eq(pp_parse_cpus("1,10-20,3000", &mask), 0);
	ck_assert_int_eq(pp_format_cpus(&mask, text, 13), 0);
	ck_assert_str_eq(text, "1,10-20,3000");
	text[12] = 'x';
	ck_assert_int_eq(pp_format_cpus(&mask, text, 12), -ENOSPC);
	ck_assert_str_eq(text, "1,10-20");
	ck_assert_int_eq(text[12], 'x');

	/* Every second CPU: the longest possible list. */
	memset(&mask, 0x55, sizeof(mask));
	ck_assert_int_eq(pp_format_cpus(&mask, text, sizeof(text)), -ENOSPC);
	ck_assert_uint_lt(strnlen(text, sizeof(text)), sizeof(text));
}
END_TEST

START_TEST(text_into_fields)
{
	char field[8];

	memset(field, 'x', sizeof(field));
	ck_assert_int_eq(pp_copy_text(field, sizeof(field), "abc"), 0);
	ck_assert_int_eq(memcmp(field, "abc\0\0\0\0", 8), 0);
	ck_assert_int_eq(pp_copy_text(field, sizeof(field), "1234567"), 0);
	ck_assert_int_eq(memcmp(field, "1234567", 8), 0);
	ck_assert_int_eq(pp_copy_text(field, sizeof(field), "12345678"), -ENAMETOOLONG);
	ck_assert_str_eq(field, "1234567");
	ck_assert_int_eq(pp_copy_text(field, 0, ""), -ENAMETOOLONG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("text");
	TCase *t = tcase_create("text");

	tcase_add_test(t, strangers_text);
	tcase_add_test(t, keyed_hash);
	tcase_add_test(t, names);
	tcase_add_test(t, tracepoint_names);
	tcase_add_test(t, tracepoint_globs);
	tcase_add_test(t, numbers);
	tcase_add_test(t, small_numbers);
	tcase_add_test(t, cpu_lists_there_and_back);
	tcase_add_test(t, cpu_lists_that_are_none);
	tcase_add_test(t, cpu_lists_that_do_not_fit);
	tcase_add_test(t, text_into_fields);
	suite_add_tcase(s, t);
	return run_suite(s);
}
