// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parts of exports: protocol buffers, hash sets, folded stacks. */
#include <malloc.h>
#include <string.h>

#include "client/perfctl/pictures/cpu-counts.h"
#include "client/perfctl/pictures/folded.h"
#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/pictures/html-block.h"
#include "client/perfctl/pictures/pbuf.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static void expect_bytes(const struct pbuf *b, const void *bytes, size_t n)
{
	ck_assert(!b->failed);
	ck_assert_uint_eq(b->n, n);
	ck_assert_mem_eq(b->bytes, bytes, n);
}

/* The examples from the format's documentation. */
START_TEST(fields)
{
	_cleanup_(pbuf_done) struct pbuf b = {};

	pbuf_unsigned(&b, 1, 150);
	pbuf_string(&b, 2, "testing");
	pbuf_unsigned(&b, 16, 0);
	expect_bytes(&b, "\x08\x96\x01\x12\x07testing\x80\x01\x00", 15);
}
END_TEST

START_TEST(numbers)
{
	_cleanup_(pbuf_done) struct pbuf b = {};

	pbuf_unsigned(&b, 1, UINT64_MAX);
	expect_bytes(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	b.n = 0;
	pbuf_signed(&b, 1, -1);
	expect_bytes(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	b.n = 0;
	pbuf_signed(&b, 536870911, 127);
	expect_bytes(&b, "\xf8\xff\xff\xff\x0f\x7f", 6);
}
END_TEST

START_TEST(messages)
{
	_cleanup_(pbuf_done) struct pbuf b = {};
	char long_text[200];
	size_t outer, inner;

	memset(long_text, 'x', sizeof(long_text));
	outer = pbuf_begin(&b, 3);
	pbuf_end(&b, pbuf_begin(&b, 1)); /* empty */
	inner = pbuf_begin(&b, 2);
	pbuf_bytes(&b, 1, long_text, sizeof(long_text));
	pbuf_end(&b, inner);
	pbuf_end(&b, outer);

	/* 3 { 1 {} 2 { 1: 200 bytes } } */
	ck_assert_uint_eq(b.n, 3 + 2 + 3 + 3 + 200);
	ck_assert_mem_eq(b.bytes, "\x1a\xd0\x01\x0a\x00\x12\xcb\x01\x0a\xc8\x01xxx", 14);
	ck_assert_uint_eq(b.bytes[b.n - 1], 'x');
}
END_TEST

/* Strings must be UTF-8, whatever a trace contains. */
START_TEST(texts)
{
	_cleanup_(pbuf_done) struct pbuf b = {};

	pbuf_text(&b, 1, "a\xff\x1b\xc3\xa4", 5);
	expect_bytes(&b,
		     "\x0a\x0b"
		     "a\\xff\\x1b\xc3\xa4",
		     13);
}
END_TEST

START_TEST(sets)
{
	enum { N = 5000 };
	struct hash set = {};
	uint32_t found, h;
	bool there;

	for (uint32_t i = 0; i < N; i++)
		ck_assert_int_eq(hash_add(&set, hash_numbers(i, 7), i), 0);
	for (uint32_t i = 0; i < N; i++) {
		there = false;
		h = hash_numbers(i, 7);
		for (size_t pos = h; hash_next(&set, h, &pos, &found);)
			there = there || found == i;
		ck_assert_msg(there, "%u is not found", i);
	}
	h = hash_numbers(N, 7);
	for (size_t pos = h; hash_next(&set, h, &pos, &found);)
		ck_assert_uint_eq(hash_numbers(found, 7), h);
	hash_done(&set);

	/* All have one hash: the walk wraps at the end. */
	for (uint32_t i = 0; i < 20; i++)
		ck_assert_int_eq(hash_add(&set, UINT32_MAX, i), 0);
	h = 0;
	for (size_t pos = UINT32_MAX; hash_next(&set, UINT32_MAX, &pos, &found);)
		h |= UINT32_C(1) << found;
	ck_assert_uint_eq(h, (UINT32_C(1) << 20) - 1);
	hash_done(&set);
	ck_assert_uint_eq(hash_bytes("abcdefgh", 8), hash_bytes("abcdefgh", 8));
	ck_assert_uint_ne(hash_bytes("abcdefgh", 8), hash_bytes("abcdefgh\0", 9));
}
END_TEST

/* A handmade tree: comm "a b" with f;g and one sample without an address. */
static void fold(struct folded *o, char *text, size_t size)
{
	struct trace_event event = { .name = "sched:sched_switch" };
	struct frame f = { .symbol = "f;x\x9b\xc3\xa4", .dso = "prog" };
	struct frame g = { .symbol = "[unknown]", .dso = "libg.so", .kernel = true };
	struct flame_node root = {}, comm = { .comm = "a b\xc2\x9b" }, of_f = { .frame = &f };
	struct flame_node of_g = { .frame = &g };
	struct event_sum sum = { .event = &event, .root = &root };
	struct aggregate a = { .events = &sum, .n_events = 1 };
	FILE *out = fmemopen(text, size, "w");

	ck_assert_ptr_nonnull(out);
	root.children = &comm;
	comm.parent = &root;
	comm.children = &of_f;
	of_f.parent = &comm;
	of_f.children = &of_g;
	of_g.parent = &of_f;
	comm.self = (struct weight){ 1, 10 };
	of_g.self = (struct weight){ 3, 30 };
	folded_write(&a, o, out);
	ck_assert_int_eq(fclose(out), 0);
}

/* The page decodes them so: the sign is the lowest bit, seven bits per byte, lowest first. */
/* An endless number of events, each of which happened once, on the highest CPU. */
START_TEST(counts_of_cpus)
{
	static struct cpu_counts counts[1000];
	size_t before = mallinfo2().uordblks;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		*cpu_counts_at(&counts[i], COUNTED_CPUS - 1) += i;
	ck_assert_uint_lt(mallinfo2().uordblks - before, ARRAY_SIZE(counts) * 2048);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		ck_assert_uint_eq(cpu_counts_get(&counts[i], COUNTED_CPUS - 1), i);
		ck_assert_uint_eq(cpu_counts_get(&counts[i], COUNTED_CPUS - 2), 0);
		ck_assert_uint_eq(cpu_counts_get(&counts[i], 0), 0);
		cpu_counts_done(&counts[i]);
	}
	ck_assert_uint_eq(cpu_counts_get(&counts[0], 0), 0);
}
END_TEST

START_TEST(page_numbers)
{
	static const unsigned char expected[] = { 0, 2, 1, 127, 128, 1, 0xac, 2 };
	struct bytes b = {};

	bytes_signed(&b, 0);
	bytes_signed(&b, 1);
	bytes_signed(&b, -1);
	bytes_signed(&b, -64);
	bytes_signed(&b, 64);
	bytes_number(&b, 300);
	ck_assert(!b.failed);
	ck_assert_mem_eq(b.data, expected, sizeof(expected));
	ck_assert_uint_eq(b.n, sizeof(expected));
	bytes_done(&b);
}
END_TEST

START_TEST(stacks)
{
	struct folded o = {};
	char text[256];

	fold(&o, text, sizeof(text));
	ck_assert_str_eq(text, "a_b__;sched:sched_switch 1\na_b__;f:x_\xc3\xa4;[libg.so]_[k] 3\n");
	ck_assert_uint_eq(o.lines, 2);
	ck_assert_uint_eq(o.weight, 4);

	o = (struct folded){ .by_period = true, .events = true };
	fold(&o, text, sizeof(text));
	ck_assert_str_eq(text, "a_b__;sched:sched_switch 10\n"
			       "a_b__;f:x_\xc3\xa4;[libg.so]_[k];sched:sched_switch 30\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pictures");
	TCase *tcase = tcase_create("pictures");

	tcase_add_test(tcase, fields);
	tcase_add_test(tcase, numbers);
	tcase_add_test(tcase, messages);
	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, sets);
	tcase_add_test(tcase, counts_of_cpus);
	tcase_add_test(tcase, page_numbers);
	tcase_add_test(tcase, stacks);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
