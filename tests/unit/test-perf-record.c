// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records and samples: what is written is read, and of what was cut off nothing. */
#include <stdlib.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"
#include "tests/unit/needs.h"

#define SENTINEL 0x5a

static uint8_t bytes[4096];
static const uint64_t namespaces[] = { 2, 10, 11, 20, 21 };

/* Of every field another number: a place that two of them have shows. */
static struct pp_record record_of(uint32_t type)
{
	return (struct pp_record){
		.type = type,
		.misc = 0x4002,
		.on_pid = 1,
		.on_tid = 2,
		.time = 3,
		.cpu = 4,
		.id = 5,
		.pid = 6,
		.tid = 7,
		.ppid = 8,
		.ptid = 9,
		.task_time = 10,
		.start = 11,
		.length = 12,
		.offset = 13,
		.file = { .major = 14, .minor = 15, .inode = 16, .generation = 17 },
		.prot = 18,
		.flags = 19,
		.kind = 20,
		.kind_flags = 21,
		.program = 22,
		.tag = { 23, 24, 25, 26, 27, 28, 29, 30 },
		.number = 31,
		.lost_id = 32,
		.namespaces = (const uint8_t *)namespaces,
		.namespaces_size = sizeof(namespaces),
		.text = "a text",
		.text_size = sizeof("a text"),
	};
}

static const struct {
	uint32_t type;
	size_t body; /* bytes, as perf_event_open(2) has them */
} types[] = {
	{ PERF_RECORD_FORK, 24 },	 { PERF_RECORD_EXIT, 24 },
	{ PERF_RECORD_COMM, 16 },	 { PERF_RECORD_MMAP, 40 },
	{ PERF_RECORD_MMAP2, 72 },	 { PERF_RECORD_NAMESPACES, 48 },
	{ PERF_RECORD_CGROUP, 16 },	 { PERF_RECORD_KSYMBOL, 24 },
	{ PERF_RECORD_LOST, 16 },	 { PERF_RECORD_BPF_EVENT, 16 },
	{ PERF_RECORD_LOST_SAMPLES, 8 },
};

static const uint64_t id_types[] = {
	0,
	PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME | PERF_SAMPLE_IP,
	PERF_SAMPLE_ID | PERF_SAMPLE_CPU,
	PP_SIDEBAND_SAMPLE_TYPE,
	PP_SAMPLE_ID_ALL,
};

START_TEST(written_is_read)
{
	const struct pp_record wanted = record_of(types[_i].type);

	for (size_t i = 0; i < ARRAY_SIZE(id_types); i++) {
		size_t id = pp_sample_id_size(id_types[i]), size, again;
		uint8_t second[sizeof(bytes)];
		struct pp_record r;

		memset(bytes, SENTINEL, sizeof(bytes));
		size = pp_record_write(&wanted, id_types[i], bytes, sizeof(bytes));
		ck_assert_uint_eq(size, 8 + types[_i].body + id);
		ck_assert_uint_eq(bytes[size], SENTINEL);
		ck_assert_uint_eq(pp_record_extent(bytes, sizeof(bytes), id_types[i]), size);
		ck_assert_int_eq(pp_record_open(bytes, size, id_types[i], &r), 0);
		ck_assert_int_eq(pp_record_parse(&r), 0);
		ck_assert_uint_eq(r.type, wanted.type);
		ck_assert_uint_eq(r.misc, wanted.misc);
		again = pp_record_write(&r, id_types[i], second, sizeof(second));
		ck_assert_uint_eq(again, size);
		ck_assert_mem_eq(second, bytes, size);
	}
}
END_TEST

START_TEST(cut_off)
{
	const struct pp_record wanted = record_of(types[_i].type);
	size_t size = pp_record_write(&wanted, PP_SIDEBAND_SAMPLE_TYPE, bytes, sizeof(bytes));

	for (size_t n = 0; n < size; n++) {
		/* Of exactly its size, so that ASan sees who reads on. */
		_cleanup_free_ uint8_t *cut = malloc(n + 1);
		struct pp_record r;
		int ret;

		memcpy(cut, bytes, n);
		ck_assert_uint_eq(pp_record_extent(cut, n, PP_SIDEBAND_SAMPLE_TYPE), 0);
		ret = pp_record_open(cut, n, PP_SIDEBAND_SAMPLE_TYPE, &r);
		ck_assert_int_eq(ret, n < 8 + PP_SIDEBAND_ID_SIZE ? -EBADMSG : 0);
		/* What is left of a text may have an end. */
		if (ret == 0 && !(size - n < 8 && memchr(cut + 8, 0, r.body_size)))
			ck_assert_int_eq(pp_record_parse(&r), -EBADMSG);
		ck_assert_uint_eq(pp_record_write(&wanted, PP_SIDEBAND_SAMPLE_TYPE, cut, n), 0);
		if (n < 8 + PP_SIDEBAND_ID_SIZE) {
			memcpy(cut, bytes, n);
			pp_record_rewrite_id(&wanted, PP_SIDEBAND_SAMPLE_TYPE, cut, n);
			ck_assert_int_eq(memcmp(cut, bytes, n), 0);
		}
	}
}
END_TEST

START_TEST(too_large)
{
	_cleanup_free_ uint8_t *large = calloc(1, UINT16_MAX + 1);
	struct pp_record r;

	ck_assert_int_eq(pp_record_open(large, UINT16_MAX, PP_SIDEBAND_SAMPLE_TYPE, &r), 0);
	ck_assert_int_eq(pp_record_open(large, UINT16_MAX + 1, PP_SIDEBAND_SAMPLE_TYPE, &r),
			 -EBADMSG);
}
END_TEST

START_TEST(id_is_rewritten)
{
	struct pp_record r = record_of(PERF_RECORD_COMM), got;
	size_t size = pp_record_write(&r, PP_SIDEBAND_SAMPLE_TYPE, bytes, sizeof(bytes));

	ck_assert_uint_eq(pp_record_time(bytes, size, PP_SIDEBAND_SAMPLE_TYPE), 3);
	r.time = 1000;
	pp_record_rewrite_id(&r, PP_SIDEBAND_SAMPLE_TYPE, bytes, size);
	ck_assert_uint_eq(pp_record_time(bytes, size, PP_SIDEBAND_SAMPLE_TYPE), 1000);
	ck_assert_int_eq(pp_record_open(bytes, size, PP_SIDEBAND_SAMPLE_TYPE, &got), 0);
	ck_assert_uint_eq(got.id, 5);
	ck_assert_uint_eq(got.cpu, 4);
}
END_TEST

START_TEST(unknown_types)
{
	struct pp_record r = record_of(PERF_RECORD_THROTTLE), got;
	const struct perf_event_header h = { .type = PERF_RECORD_THROTTLE, .size = 64 };

	ck_assert_uint_eq(pp_record_write(&r, 0, bytes, sizeof(bytes)), 0);
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &h, sizeof(h));
	ck_assert_int_eq(pp_record_open(bytes, h.size, PP_SIDEBAND_SAMPLE_TYPE, &got), 0);
	ck_assert_int_eq(pp_record_parse(&got), -EBADMSG);
}
END_TEST

START_TEST(too_many_namespaces)
{
	uint64_t many[1 + 2 * (PP_NAMESPACES_MAX + 1)] = { PP_NAMESPACES_MAX + 1 };
	struct pp_record r = record_of(PERF_RECORD_NAMESPACES), got;
	size_t size;

	r.namespaces = (const uint8_t *)many;
	r.namespaces_size = sizeof(many);
	size = pp_record_write(&r, 0, bytes, sizeof(bytes));
	ck_assert_int_eq(pp_record_open(bytes, size, 0, &got), 0);
	ck_assert_int_eq(pp_record_parse(&got), -EBADMSG);
}
END_TEST

#define SAMPLE_ALL                                                                   \
	(PP_SAMPLE_ID_ALL | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | \
	 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |           \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX)

static const struct pp_sample_form form = { .sample_type = SAMPLE_ALL, .sample_regs_user = 0x90 };

static struct pp_sample sample(void)
{
	static const uint64_t chain[] = { 10, 11, 12 }, regs[] = { 13, 14 };

	return (struct pp_sample){
		.id = 1,
		.ip = 2,
		.time = 3,
		.addr = 4,
		.period = 5,
		.pid = 6,
		.tid = 7,
		.cpu = 8,
		.callchain = chain,
		.n_callchain = ARRAY_SIZE(chain),
		.raw = "raw",
		.raw_size = 3,
		.user_abi = PERF_SAMPLE_REGS_ABI_64,
		.user_regs = regs,
		.n_user_regs = ARRAY_SIZE(regs),
		.user_stack = "a user's stack",
		.user_stack_size = 14,
		.aux = "a trace",
		.aux_size = 8,
	};
}

START_TEST(samples)
{
	struct pp_sample s = sample(), got;
	size_t size;
	uint64_t id;

	memset(bytes, SENTINEL, sizeof(bytes));
	size = pp_sample_write(&s, 2, SAMPLE_ALL, bytes, sizeof(bytes));
	ck_assert_uint_eq(size, 8 + 9 * 8 + 4 * 8 + 8 + 3 * 8 + 8 + 16 + 8 + 16);
	ck_assert_uint_eq(bytes[size], SENTINEL);
	ck_assert_int_eq(pp_sample_parse(bytes, size, &form, &got), 0);
	ck_assert_uint_eq(got.ip, 2);
	ck_assert_uint_eq(got.time, 3);
	ck_assert_uint_eq(got.addr, 4);
	ck_assert_uint_eq(got.period, 5);
	ck_assert_uint_eq(got.tid, 7);
	ck_assert_uint_eq(got.cpu, 8);
	ck_assert_uint_eq(got.n_callchain, 3);
	ck_assert_ptr_eq(got.callchain, s.callchain);
	ck_assert_ptr_eq(got.raw, s.raw);
	ck_assert_uint_eq(got.raw_size, 4);
	ck_assert_mem_eq(got.raw, "raw", 4);
	ck_assert_uint_eq(got.user_abi, PERF_SAMPLE_REGS_ABI_64);
	ck_assert_uint_eq(got.n_user_regs, 2);
	ck_assert_ptr_eq(got.user_regs, s.user_regs);
	ck_assert_uint_eq(got.user_stack_size, 14);
	ck_assert_mem_eq(got.user_stack, "a user's stack\0", 16);
	ck_assert_uint_eq(got.aux_size, 8);
	ck_assert_mem_eq(got.aux, "a trace", 8);
	memcpy(&id, bytes + pp_sample_id_place(SAMPLE_ALL), sizeof(id));
	ck_assert_uint_eq(id, 1);
	ck_assert_int_eq(pp_sample_id_place(PERF_SAMPLE_IDENTIFIER), -1);
	for (size_t n = 8; n < size; n++) {
		struct pp_sample again = sample();

		ck_assert_int_eq(pp_sample_parse(bytes, n, &form, &got), -EBADMSG);
		ck_assert_uint_eq(pp_sample_write(&again, 2, SAMPLE_ALL, bytes, n), 0);
	}
}
END_TEST

/* A kernel thread has neither, and a stack that is not in memory is none. */
START_TEST(no_user_space)
{
	struct pp_sample s = sample(), got;
	uint64_t size, too_many;

	s.user_abi = PERF_SAMPLE_REGS_ABI_NONE;
	s.n_user_regs = s.user_stack_size = 0;
	size = pp_sample_write(&s, 1, SAMPLE_ALL, bytes, sizeof(bytes));
	ck_assert_uint_eq(size, 8 + 9 * 8 + 4 * 8 + 8 + 8 + 8 + 16);
	ck_assert_int_eq(pp_sample_parse(bytes, size, &form, &got), 0);
	ck_assert_uint_eq(got.n_user_regs + got.user_stack_size, 0);
	ck_assert_ptr_null(got.user_stack);

	/* More was read than there is room for; a room that does not fit. */
	s = sample();
	size = pp_sample_write(&s, 1, SAMPLE_ALL, bytes, sizeof(bytes));
	too_many = 17;
	memcpy(bytes + size - 24, &too_many, sizeof(too_many));
	ck_assert_int_eq(pp_sample_parse(bytes, size, &form, &got), -EBADMSG);
	for (too_many = UINT64_MAX; too_many; too_many /= 2) {
		memcpy(bytes + size - 48, &too_many, sizeof(too_many));
		if (too_many != 16 && too_many > 7)
			ck_assert_int_eq(pp_sample_parse(bytes, size, &form, &got), -EBADMSG);
	}

	/* A part of a trace that is longer than the record. */
	s = sample();
	size = pp_sample_write(&s, 1, SAMPLE_ALL, bytes, sizeof(bytes));
	too_many = 9;
	memcpy(bytes + size - 16, &too_many, sizeof(too_many));
	ck_assert_int_eq(pp_sample_parse(bytes, size, &form, &got), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("perf-record");
	TCase *tc = tcase_create("perf-record");

	tcase_add_loop_test(tc, written_is_read, 0, ARRAY_SIZE(types));
	tcase_add_loop_test(tc, cut_off, 0, ARRAY_SIZE(types));
	tcase_add_test(tc, too_large);
	tcase_add_test(tc, id_is_rewritten);
	tcase_add_test(tc, unknown_types);
	tcase_add_test(tc, too_many_namespaces);
	tcase_add_test(tc, samples);
	tcase_add_test(tc, no_user_space);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
