// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decoding of samples: the order of the fields, and invalid sizes. */
#include <linux/perf_event.h>
#include <string.h>

#include "client/rings/sample.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

struct builder {
	uint8_t bytes[512];
	size_t n;
};

static void add(struct builder *b, const void *p, size_t n)
{
	ck_assert_uint_le(b->n + n, sizeof(b->bytes));
	memcpy(b->bytes + b->n, p, n);
	b->n += n;
}

static void add_u64(struct builder *b, uint64_t v)
{
	add(b, &v, sizeof(v));
}

static void add_u32(struct builder *b, uint32_t v)
{
	add(b, &v, sizeof(v));
}

static struct builder begin(void)
{
	struct builder b = { .n = 0 };

	add_u64(&b, 0); /* the decoder does not read the header */
	return b;
}

#define ALL                                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |         \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |          \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | \
	 PERF_SAMPLE_STACK_USER)
#define REGS 0x103 /* of 3 registers */

static int decode(uint64_t type, const void *record, size_t size, struct perfpersist_sample *ret)
{
	const struct pp_sample_form form = { .sample_type = type, .sample_regs_user = REGS };

	return sample_decode(&form, record, size, ret);
}

static struct builder everything(void)
{
	struct builder b = begin();

	add_u64(&b, 1); /* identifier */
	add_u64(&b, 2); /* ip */
	add_u32(&b, 3);
	add_u32(&b, 4);
	add_u64(&b, 5); /* time */
	add_u64(&b, 6); /* addr */
	add_u64(&b, 7); /* id */
	add_u64(&b, 8); /* stream id */
	add_u32(&b, 9); /* cpu */
	add_u32(&b, 0);
	add_u64(&b, 10); /* period */
	add_u64(&b, 3);	 /* call chain */
	add_u64(&b, PERF_CONTEXT_KERNEL);
	add_u64(&b, 11);
	add_u64(&b, 12);
	add_u32(&b, 4); /* raw */
	add(&b, "rawr", 4);
	add_u64(&b, PERF_SAMPLE_REGS_ABI_64);
	add_u64(&b, 13);
	add_u64(&b, 14);
	add_u64(&b, 15);
	add_u64(&b, 16); /* stack */
	add(&b, "the user's stack", 16);
	add_u64(&b, 12); /* bytes of it that could be read */
	return b;
}

START_TEST(test_everything)
{
	struct builder b = everything();
	struct perfpersist_sample s = { .cpu = 77 };

	ck_assert_int_eq(decode(ALL, b.bytes, b.n, &s), 0);
	ck_assert_uint_eq(s.cpu, 77);
	ck_assert_uint_eq(s.ip, 2);
	ck_assert_uint_eq(s.pid, 3);
	ck_assert_uint_eq(s.tid, 4);
	ck_assert_uint_eq(s.time, 5);
	ck_assert_uint_eq(s.addr, 6);
	ck_assert_uint_eq(s.id, 7);
	ck_assert_uint_eq(s.period, 10);
	ck_assert_uint_eq(s.n_callchain, 3);
	ck_assert_uint_eq(s.callchain[2], 12);
	ck_assert_uint_eq(s.raw_size, 4);
	ck_assert_mem_eq(s.raw, "rawr", 4);
	ck_assert_ptr_eq(s.record, b.bytes);
	ck_assert_uint_eq(s.record_size, b.n);
}
END_TEST

/* Cut at any point, it is refused, and the result is untouched. */
START_TEST(test_cut_anywhere)
{
	struct builder b = everything();

	for (size_t n = 0; n < b.n; n++) {
		_cleanup_free_ uint8_t *cut = malloc(n + 1); /* exact size: ASan sees an overrun */
		struct perfpersist_sample s = { .pid = 99 };

		cut = realloc(cut, n ? n : 1);
		memcpy(cut, b.bytes, n);
		ck_assert_int_eq(decode(ALL, cut, n, &s), -EBADMSG);
		ck_assert_uint_eq(s.pid, 99);
	}
}
END_TEST

/* Each field alone follows the header directly. */
START_TEST(test_each_alone)
{
	static const uint64_t types[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TIME,
		PERF_SAMPLE_ADDR,	PERF_SAMPLE_ID, PERF_SAMPLE_PERIOD
	};
	struct builder b = begin();

	add_u64(&b, 42);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct perfpersist_sample s = { 0 };

		ck_assert_int_eq(decode(types[i], b.bytes, b.n, &s), 0);
		ck_assert_uint_eq(s.id + s.ip + s.time + s.addr + s.period, 42);
		ck_assert_uint_eq(s.pid, 0);
	}
}
END_TEST

START_TEST(test_what_recorders_write)
{
	struct perfpersist_sample s = { 0 };
	struct builder b = begin();

	add_u32(&b, 1);
	add_u32(&b, 2);
	add_u64(&b, 3);
	add_u32(&b, 12);
	add(&b, "payload12345", 12);
	ck_assert_int_eq(
		decode(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, b.bytes, b.n, &s), 0);
	ck_assert_uint_eq(s.tid, 2);
	ck_assert_uint_eq(s.time, 3);
	ck_assert_mem_eq(s.raw, "payload12345", 12);
	ck_assert_ptr_null(s.callchain);
}
END_TEST

START_TEST(test_forged_counts)
{
	static const uint64_t counts[] = { 2,	       3,	   UINT32_MAX,
					   1ULL << 32, 1ULL << 60, 1ULL << 61,
					   1ULL << 63, UINT64_MAX, UINT64_MAX / 8 + 2 };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct builder b = begin();
		struct perfpersist_sample s = { 0 };

		add_u64(&b, counts[i]);
		add_u64(&b, 0);
		ck_assert_int_eq(decode(PERF_SAMPLE_CALLCHAIN, b.bytes, b.n, &s), -EBADMSG);
		b = begin();
		add_u32(&b, (uint32_t)MAX(counts[i], 5));
		add_u32(&b, 0);
		if ((uint32_t)MAX(counts[i], 5) > 4)
			ck_assert_int_eq(decode(PERF_SAMPLE_RAW, b.bytes, b.n, &s), -EBADMSG);
	}
}
END_TEST

START_TEST(test_read_is_refused)
{
	struct builder b = everything();
	struct perfpersist_sample s = { 0 };

	ck_assert_int_eq(decode(PERF_SAMPLE_READ, b.bytes, b.n, &s), -EBADMSG);
	/* Fields after the payload are ignored. */
	ck_assert_int_eq(decode(ALL | PERF_SAMPLE_WEIGHT, b.bytes, b.n, &s), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sample");
	TCase *tc = tcase_create("sample");

	tcase_add_test(tc, test_everything);
	tcase_add_test(tc, test_cut_anywhere);
	tcase_add_test(tc, test_each_alone);
	tcase_add_test(tc, test_what_recorders_write);
	tcase_add_test(tc, test_forged_counts);
	tcase_add_test(tc, test_read_is_refused);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
