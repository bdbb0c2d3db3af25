// SPDX-License-Identifier: LGPL-2.1-or-later
/* A filter's weight, where its programs count, depends on the text that it walks. */
#include <string.h>

#undef fail /* an old macro of check; we use the name */
#include "daemon/engine/emit/filter-weight.h"
#include "proto/macro.h"
#include "needs.h"
#include "tests/unit/needs.h"

static struct tp_field fields[] = {
	{ .name = "pid", .offset = 8, .size = 4 },
	{ .name = "name", .offset = 16, .size = 16, .is_array = true, .is_text = true },
	{ .name = "filename", .offset = 32, .size = 8, .is_pointer = true },
	{ .name = "dynamic", .offset = 40, .size = 4, .is_data_loc = true, .is_text = true },
};
static const struct tracepoint tp = { .fields = fields, .n_fields = ARRAY_SIZE(fields) };

/* The leaf, joined with itself so many times. */
static uint32_t weight(const char *leaf, unsigned times)
{
	static struct pp_filter_node nodes[PP_FILTER_NODES_MAX];
	char text[2048] = "", sentence[256];
	int n;

	for (unsigned i = 0; i < times; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " || " : "",
			 leaf);
	n = pp_filter_parse(text, nodes, PP_FILTER_NODES_MAX, sentence, sizeof(sentence));
	ck_assert_msg(n > 0, "%s", sentence);
	return filter_weight(&tp, nodes, n);
}

START_TEST(few_comparisons_cost_nothing)
{
	ck_assert_uint_eq(filter_weight(&tp, NULL, 0), 1);
	ck_assert_uint_eq(filter_weight(NULL, NULL, 0), 1);
	ck_assert_uint_eq(weight("pid == 1", 64), 1);
	ck_assert_uint_eq(weight("filename == \"/etc/passwd\"", 6), 1);
	ck_assert_uint_eq(weight("filename ~ \"/usr/*\"", 6), 1);
	ck_assert_uint_eq(weight("comm ~ \"*a*\"", 7), 1);
	ck_assert_uint_eq(weight("name ~ \"*a?b*\"", 7), 1);
}
END_TEST

START_TEST(text_that_is_walked_counts)
{
	char glob[PP_FILTER_TEXT_SIZE] = "dynamic ~ \"*";

	ck_assert_uint_eq(weight("comm !~ \"*a*b*\"", 8), 2);
	ck_assert_uint_eq(weight("comm !~ \"*a*b*\"", 55), 7);
	ck_assert_uint_eq(weight("filename ~ \"*a?b*\"", 1), 2);
	ck_assert_uint_eq(weight("filename !~ \"*a?b*\"", 40), 47);
	ck_assert_uint_eq(weight("dynamic ~ \"[ab]*c\"", 3), 4);
	ck_assert_uint_eq(weight("filename == \"a\"", 50), 8);
	/* A glob of more than 63 elements has a state of several words. */
	memset(glob + strlen(glob), 'x', 130);
	strcat(glob, "*\"");
	ck_assert_uint_eq(weight(glob, 1), 4);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("filter-weight");
	TCase *tc = tcase_create("filter-weight");

	tcase_add_test(tc, few_comparisons_cost_nothing);
	tcase_add_test(tc, text_that_is_walked_counts);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
