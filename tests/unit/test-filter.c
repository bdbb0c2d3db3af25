// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filters: the meaning of their text, the messages about wrong ones, and that no tree does harm. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/filter.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static struct pp_filter_node nodes[PP_FILTER_NODES_MAX + 1];
static char sentence[512];

static int parse(const char *text)
{
	memset(nodes, 0xaa, sizeof(nodes));
	*sentence = 0;
	return pp_filter_parse(text, nodes, PP_FILTER_NODES_MAX, sentence, sizeof(sentence));
}

static void expect_refusal(const char *text, int error, const char *part)
{
	int r = parse(text);

	ck_assert_msg(r == error, "'%s': %d, not %d (%s)", text, r, error, sentence);
	ck_assert_msg(strstr(sentence, part) != NULL, "'%s': no '%s' in: %s", text, part, sentence);
}

START_TEST(leaves)
{
	static const struct {
		const char *text;
		struct pp_filter_node node;
	} cases[] = {
		{ "prev_pid != 0", { PP_FILTER_NE, .field = "prev_pid", .text = "0" } },
		{ "a==1", { PP_FILTER_EQ, .value = 1, .field = "a", .text = "1" } },
		{ " a\t<  0x1F ", { PP_FILTER_LT, .value = 31, .field = "a", .text = "0x1F" } },
		{ "a<=010", { PP_FILTER_LE, .value = 8, .field = "a", .text = "010" } },
		{ "a>-1", { PP_FILTER_GT, 0, 1, 0, -1ULL, "a", "-1" } },
		{ "a>=-0x8000000000000000",
		  { PP_FILTER_GE, 0, 1, 0, 1ULL << 63, "a", "-0x8000000000000000" } },
		{ "a == 18446744073709551615",
		  { PP_FILTER_EQ, .value = -1ULL, .field = "a", .text = "18446744073709551615" } },
		{ "flags & 4", { PP_FILTER_BITS, .value = 4, .field = "flags", .text = "4" } },
		{ "flags&'A'", { PP_FILTER_BITS, .value = 'A', .field = "flags", .text = "A" } },
		{ "a == 'x'", { PP_FILTER_EQ, 1, 0, 0, 'x', "a", "x" } },
		{ "a == \"x\"", { PP_FILTER_EQ, 1, 0, 0, 0, "a", "x" } },
		{ "a == ''", { PP_FILTER_EQ, 1, 0, 0, 0, "a", "" } },
		{ "comm==\"a'b && c)\"", { PP_FILTER_EQ, 1, 0, 0, 0, "comm", "a'b && c)" } },
		{ "comm != 'say \"x\\'", { PP_FILTER_NE, 1, 0, 0, 0, "comm", "say \"x\\" } },
		{ "comm ~ \"nginx*\"", { PP_FILTER_GLOB, 1, 0, 0, 0, "comm", "nginx*" } },
		{ "comm ~ nginx*", { PP_FILTER_GLOB, 1, 0, 0, 0, "comm", "nginx*" } },
		{ "comm !~ 9*", { PP_FILTER_NOT_GLOB, 1, 0, 0, 0, "comm", "9*" } },
		{ "cgroup == /a.slice/b", { PP_FILTER_EQ, 1, 0, 0, 0, "cgroup", "/a.slice/b" } },
		{ "comm == \xc3\xa9t\xc3\xa9",
		  { PP_FILTER_EQ, 1, 0, 0, 0, "comm", "\xc3\xa9t\xc3\xa9" } },
		{ "((( a == 1 )))", { PP_FILTER_EQ, .value = 1, .field = "a", .text = "1" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(parse(cases[i].text) == 1, "%s: %s", cases[i].text, sentence);
		ck_assert_msg(!memcmp(nodes, &cases[i].node, sizeof(*nodes)), "%s", cases[i].text);
		ck_assert_int_eq(pp_filter_check(nodes, 1), 0);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "at its end (byte 1): a field is missing" },
		{ "  ", "at its end (byte 3): a field is missing" },
		{ "a", "at its end (byte 2): behind the field a one of" },
		{ "a = 5", "at byte 3 ('= 5'): '=' compares nothing: write ==" },
		{ "a ==", "at its end (byte 5): a value is expected" },
		{ "a == && b == 1", "at byte 6 ('&& b == 1'): a value" },
		{ "a && b", "at byte 3" },
		{ "a == 1 b == 2", "at byte 8 ('b == 2'): && or || is expected" },
		{ "a == 1 & b == 2", "at byte 8" },
		{ "a == 1 and b == 2", "&& or ||" },
		{ "a == 1 &&", "at its end (byte 10): a field is missing" },
		{ "a == 1 || || b == 1", "at byte 11 ('|| b == 1'): the name of a field" },
		{ "(a == 1", "the bracket opened at byte 1 is not closed" },
		{ "(a == 1 b", "&& || or ) is expected" },
		{ "a == 1)", "at byte 7 (')'): no bracket is open" },
		{ "()", "at byte 2 (')'): the name of a field" },
		{ "!", "a field is missing" },
		{ "1 == a", "at byte 1 ('1 == a'): a field's name begins with a letter" },
		{ "a == \"x", "at byte 6 ('\"x'): the text that begins here has no end" },
		{ "a == \"x\ny\"", "at byte 8 ('" },
		{ "a < \"x\"", "at byte 5 ('\"x\"'): text is compared by == != ~ !~ only" },
		{ "a & x", "this is no number: text is compared by" },
		{ "a == 5x", "this is no number: put it in quotes" },
		{ "a == 08", "this is no number" },
		{ "a == -", "this is no number" },
		{ "a == 0x", "this is no number" },
		{ "a == 18446744073709551616", "too large" },
		{ "a == -9223372036854775809", "too large" },
		{ "f.ustring ~ \"x\"", "at byte 2 ('.ustring" },
		{ "a == b!=c", "at byte 7" },
		{ "a\x01 == 1", "at byte 2 (''): behind" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_refusal(cases[i].text, -EINVAL, cases[i].part);
	/* A small buffer does not overflow. */
	memset(sentence, 'x', sizeof(sentence));
	ck_assert_int_eq(pp_filter_parse("", nodes, 1, sentence, 8), -EINVAL);
	ck_assert_str_eq(sentence, "the fil");
	ck_assert_int_eq(sentence[8], 'x');
}
END_TEST

START_TEST(bounds)
{
	char text[1024] = "";

	/* 64 terms and the operators between them fill all nodes but one, and are not deep. */
	for (int i = 0; i < 64; i++)
		strcat(text, i ? "||a==1" : "a==1");
	ck_assert_int_eq(parse(text), 127);
	ck_assert_int_eq(pp_filter_check(nodes, 127), 0);
	ck_assert_int_eq(pp_filter_span(nodes), 127);
	strcat(text, "||a==1");
	expect_refusal(text, -E2BIG, "too long");
	ck_assert_int_eq(pp_filter_parse("a==1&&b==2", nodes, 2, sentence, sizeof(sentence)),
			 -E2BIG);
	ck_assert_int_eq(pp_filter_parse("a==1&&b==2", nodes, 3, sentence, sizeof(sentence)), 3);

	memset(text, '(', 33);
	strcpy(text + 33, "a==1");
	expect_refusal(text, -E2BIG, "at most 32 deep");
	memset(text, '!', 32);
	strcpy(text + 32, "a==1");
	ck_assert_int_eq(parse(text), 33);
	strcpy(text + 31, "(a==1&&b==1)"); /* 31 of ! and one bracket: 32 nodes deep */
	ck_assert_int_eq(parse(text), 34);
	strcpy(text + 31, "(a==1&&b==1||c==1)");
	expect_refusal(text, -E2BIG, "nested too deep");

	memset(text, 'f', 64);
	strcpy(text + 64, "==1");
	expect_refusal(text, -E2BIG, "at most 63 bytes");
	ck_assert_int_eq(parse(text + 1), 1);
	memset(text, 'f', 300);
	memcpy(text, "a==", 3);
	text[259] = 0;
	expect_refusal(text, -E2BIG, "at most 255 bytes");
	text[258] = 0;
	ck_assert_int_eq(parse(text), 1);
}
END_TEST

/* ── Meaning: random expressions over six booleans, against what they were made from ────── */

struct made {
	char text[4096];
	uint64_t truth; /* bit i: its value where variable k is bit k of i */
};

/* level: 0 in an ||, 1 in an &&, 2 a term, so that it writes the fewest brackets. */
static void make(struct made *m, int depth, int level)
{
	static struct made sides[2][16];
	struct made *a = &sides[0][depth], *b = &sides[1][depth];
	int what = depth ? rand() % 5 : 4;
	unsigned k = rand() % 6;

	if (what == 0) {
		make(a, depth - 1, 2);
		snprintf(m->text, sizeof(m->text), "!%s%.2000s", rand() % 2 ? " " : "", a->text);
		m->truth = ~a->truth;
	} else if (what < 4) {
		bool and = what == 1, bracket = level > and;

		make(a, depth - 1, and);
		make(b, depth - 1, and);
		snprintf(m->text, sizeof(m->text), "%s%.1000s%s%.1000s%s", bracket ? "(" : "",
			 a->text, and? "&&" : " || ", b->text, bracket ? ")" : "");
		m->truth = and? a->truth & b->truth : a->truth | b->truth;
	} else {
		snprintf(m->text, sizeof(m->text), "v%u == 1", k);
		m->truth = 0;
		for (int i = 0; i < 64; i++)
			m->truth |= (uint64_t)(i >> k & 1) << i;
	}
}

static bool evaluate(const struct pp_filter_node *n, unsigned variables)
{
	const struct pp_filter_node *second;

	switch (n->op) {
	case PP_FILTER_NOT:
		return !evaluate(n + 1, variables);
	case PP_FILTER_AND:
	case PP_FILTER_OR:
		second = n + 1 + pp_filter_span(n + 1);
		return n->op == PP_FILTER_AND
			       ? evaluate(n + 1, variables) && evaluate(second, variables)
			       : evaluate(n + 1, variables) || evaluate(second, variables);
	}
	return variables >> (n->field[1] - '0') & 1;
}

START_TEST(meaning)
{
	static struct made m;
	int taken = 0;

	srand(1);
	for (int round = 0; round < 3000; round++) {
		int n;

		make(&m, rand() % 6, 0);
		n = parse(m.text);
		if (n == -E2BIG)
			continue;
		ck_assert_msg(n > 0, "%s: %s", m.text, sentence);
		ck_assert_int_eq(pp_filter_check(nodes, n), 0);
		ck_assert_int_eq(pp_filter_span(nodes), n);
		for (int i = 0; i < 64; i++)
			ck_assert_msg(evaluate(nodes, i) == (m.truth >> i & 1), "%s at %d", m.text,
				      i);
		taken++;
	}
	ck_assert_int_gt(taken, 2900);
}
END_TEST

START_TEST(precedence)
{
	ck_assert_int_eq(parse("a==1 || b==1 && !c==1"), 6);
	ck_assert_int_eq(nodes[0].op, PP_FILTER_OR);
	ck_assert_str_eq(nodes[1].field, "a");
	ck_assert_int_eq(nodes[2].op, PP_FILTER_AND);
	ck_assert_str_eq(nodes[3].field, "b");
	ck_assert_int_eq(nodes[4].op, PP_FILTER_NOT);
	ck_assert_str_eq(nodes[5].field, "c");
}
END_TEST

/* ── Trees from anybody ─────────────────────────────────────────────────────────────────── */

START_TEST(hostile_trees)
{
	static const struct pp_filter_node leaf = { PP_FILTER_EQ, .field = "a" };
	struct pp_filter_node n;

#define BAD(change)                                                 \
	do {                                                        \
		n = leaf;                                           \
		change;                                             \
		ck_assert_int_eq(pp_filter_check(&n, 1), -EBADMSG); \
	} while (0)
	ck_assert_int_eq(pp_filter_check(&leaf, 1), 0);
	BAD(n.op = 0);
	BAD(n.op = 13);
	BAD(n.op = UINT32_MAX);
	BAD(n.op = PP_FILTER_AND);
	BAD(n.op = PP_FILTER_NOT);
	BAD(n.op = PP_FILTER_GLOB);
	BAD((n.op = PP_FILTER_LT, n.is_text = 1));
	BAD(n.is_text = 2);
	BAD(n.is_negative = 2);
	BAD((n.is_negative = 1, n.value = 5));
	BAD((n.is_text = 1, n.value = 'x'));
	BAD(n.reserved = 1);
	BAD(n.field[0] = 0);
	BAD(n.field[0] = '1');
	BAD(n.field[1] = '.');
	BAD(n.field[5] = 'x');
	BAD(memset(n.field, 'a', sizeof(n.field)));
	BAD(memset(n.text, 'a', sizeof(n.text)));
	BAD(n.text[9] = 'x');
	BAD(n.text[0] = '\n');

	ck_assert_int_eq(pp_filter_check(&leaf, 0), -EBADMSG);
	memset(nodes, 0, sizeof(nodes));
	nodes[0] = leaf;
	nodes[1] = leaf;
	ck_assert_int_eq(pp_filter_check(nodes, 2), -EBADMSG); /* two trees */
	nodes[0] = (struct pp_filter_node){ .op = PP_FILTER_AND };
	ck_assert_int_eq(pp_filter_check(nodes, 2), -EBADMSG); /* half of one */
	nodes[2] = leaf;
	ck_assert_int_eq(pp_filter_check(nodes, 3), 0);
	nodes[0].value = 1;
	ck_assert_int_eq(pp_filter_check(nodes, 3), -EBADMSG);
	/* Only operators, as many as allowed and more. */
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		nodes[i] = (struct pp_filter_node){ .op = PP_FILTER_AND };
	ck_assert_int_eq(pp_filter_check(nodes, PP_FILTER_NODES_MAX), -EBADMSG);
	ck_assert_int_eq(pp_filter_check(nodes, PP_FILTER_NODES_MAX + 1), -EBADMSG);
	/* As deep as allowed, and deeper. */
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		nodes[i] = (struct pp_filter_node){ .op = PP_FILTER_NOT };
	nodes[32] = leaf;
	ck_assert_int_eq(pp_filter_check(nodes, 33), 0);
	nodes[32] = nodes[0];
	nodes[33] = leaf;
	ck_assert_int_eq(pp_filter_check(nodes, 34), -EBADMSG);
}
END_TEST

/* Like the kernel's glob_match(); most cases are from its self-test. */
START_TEST(globs)
{
	static const struct {
		int match;
		const char *glob, *text;
	} cases[] = {
		{ 1, "a", "a" },
		{ 0, "a", "b" },
		{ 0, "a", "aa" },
		{ 0, "a", "" },
		{ 1, "", "" },
		{ 0, "", "a" },
		{ 1, "?", "a" },
		{ 0, "?", "" },
		{ 0, "?", "aa" },
		{ 1, "??", "aa" },
		{ 1, "[a]", "a" },
		{ 0, "[a]", "b" },
		{ 0, "[!a]", "a" },
		{ 1, "[!a]", "b" },
		{ 1, "[ab]", "b" },
		{ 0, "[ab]", "c" },
		{ 1, "[!ab]", "c" },
		{ 1, "[a-c]", "b" },
		{ 0, "[a-c]", "d" },
		{ 1, "[a-c-e-g]", "-" },
		{ 0, "[a-c-e-g]", "d" },
		{ 1, "[a-c-e-g]", "f" },
		{ 1, "[]a-ceg-ik[]", "]" },
		{ 1, "[]a-ceg-ik[]", "[" },
		{ 1, "[!]a-ceg-ik[]", "j" },
		{ 0, "[!]a-ceg-ik[]", "[" },
		{ 0, "[!]]", "]" },
		{ 1, "[^a]", "^" },
		{ 0, "[a]", "" },
		{ 0, "[!a]", "" },
		{ 1, "[", "[" },
		{ 1, "[a", "[a" },
		{ 1, "[a-", "[a-" },
		{ 1, "[!", "[!" },
		{ 0, "[a", "a" },
		{ 1, "x[", "x[" },
		{ 1, "\\*", "*" },
		{ 0, "\\*", "a" },
		{ 1, "\\\\", "\\" },
		{ 1, "a\\", "a" },
		{ 1, "*", "" },
		{ 1, "*", "abc" },
		{ 1, "*a", "a" },
		{ 1, "*a", "ba" },
		{ 0, "*a", "ab" },
		{ 1, "a*", "ab" },
		{ 0, "a*", "ba" },
		{ 1, "*?a", "bcaa" },
		{ 1, "*bc", "abcbc" },
		{ 1, "*ab*cd*", "abcabcabcabcdefg" },
		{ 0, "*bcd*", "abcabcabcabcabcabcabc" },
		{ 1, "*abcd*", "abcabcabcabcdefg" },
		{ 1, "*a*b*c*", "xaybzc" },
		{ 0, "*a*b*c*d", "xaybzc" },
		{ 1, "**", "x" },
		{ 1, "[\xc3-\xc5]*", "\xc4x" },
	};
	char glob[256], text[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ck_assert_msg(pp_glob_match(cases[i].glob, cases[i].text) == cases[i].match,
			      "'%s' '%s'", cases[i].glob, cases[i].text);
	/* The worst text that fits is fast. */
	memset(text, 'a', sizeof(text));
	text[255] = 0;
	for (int i = 0; i < 254; i += 2)
		memcpy(glob + i, "*a", 2);
	strcpy(glob + 254, "b");
	ck_assert_int_eq(pp_glob_match(glob, text), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("filter");
	TCase *t = tcase_create("filter");

	tcase_add_test(t, leaves);
	tcase_add_test(t, refusals);
	tcase_add_test(t, bounds);
	tcase_add_test(t, meaning);
	tcase_add_test(t, precedence);
	tcase_add_test(t, hostile_trees);
	tcase_add_test(t, globs);
	suite_add_tcase(s, t);
	return run_suite(s);
}
