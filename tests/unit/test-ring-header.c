// SPDX-License-Identifier: LGPL-2.1-or-later
/* pp_ring_check on a good ring, and on each way a header can lie. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/ring.h"

#define HEADER_SIZE 8192u
#define SPILL_SIZE 1024u

static struct pp_ring_header h, copy;
static size_t size;

static void good(void)
{
	memset(&h, 0, sizeof(h));
	h.magic = PP_RING_MAGIC;
	h.version = PP_RING_VERSION;
	h.header_size = HEADER_SIZE;
	h.data_size = PP_DATA_SIZE_MIN;
	h.spill_size = SPILL_SIZE;
	h.cpu = 3;
	h.event_id = 7;
	h.attr_size = 136;
	h.format_size = 100;
	h.live.head = -64;
	strcpy(h.ns, "web");
	strcpy(h.name, "switches");
	strcpy(h.event, "sched:sched_switch");
	size = pp_ring_size(h.header_size, h.data_size, h.spill_size);
}

/* Only the header is read, whatever the size says: memory of just that much. */
static int check(void)
{
	memset(&copy, 0xaa, sizeof(copy));
	return pp_ring_check(&h, size, &copy);
}

static void expect_untouched(int error)
{
	struct pp_ring_header untouched;

	memset(&untouched, 0xaa, sizeof(untouched));
	ck_assert_int_eq(check(), error);
	ck_assert_int_eq(memcmp(&copy, &untouched, sizeof(copy)), 0);
}

#define SPOIL(...)                            \
	do {                                  \
		good();                       \
		ck_assert_int_eq(check(), 0); \
		__VA_ARGS__;                  \
		expect_untouched(-EBADMSG);   \
	} while (0)

#define ALLOW(...)                            \
	do {                                  \
		good();                       \
		__VA_ARGS__;                  \
		ck_assert_int_eq(check(), 0); \
	} while (0)

START_TEST(good_ring)
{
	good();
	ck_assert_int_eq(check(), 0);
	ck_assert_int_eq(memcmp(&copy, &h, sizeof(h)), 0);
	ck_assert_int_eq(memcmp(&h.magic, "+pp-ring", 8), 0);
}
END_TEST

START_TEST(identity)
{
	SPOIL(h.magic ^= 1);
	SPOIL(h.version = 0);
	good();
	h.version = PP_RING_VERSION + 1;
	expect_untouched(-EPROTONOSUPPORT);
}
END_TEST

START_TEST(memory)
{
	SPOIL(size--);
	SPOIL(size = sizeof(h));
	SPOIL(size = sizeof(h) - 1);
	SPOIL(size = 0);
	ALLOW(size += 4096);
}
END_TEST

START_TEST(sizes)
{
	SPOIL(h.header_size = 0, size = SIZE_MAX);
	SPOIL(h.header_size = 2048, size = SIZE_MAX);
	SPOIL(h.header_size += 8, size = SIZE_MAX);
	SPOIL(h.data_size = 0);
	SPOIL(h.data_size = PP_DATA_SIZE_MIN / 2);
	SPOIL(h.data_size += 8, size = SIZE_MAX);
	SPOIL(h.data_size = PP_DATA_SIZE_MAX * 2, size = SIZE_MAX);
	SPOIL(h.data_size = 1ULL << 63, size = SIZE_MAX);
	SPOIL(h.spill_size = 0);
	SPOIL(h.spill_size = 1020);
	SPOIL(h.spill_size = PP_SPILL_SIZE_MAX + 8, h.data_size = 1 << 20, size = SIZE_MAX);
	SPOIL(h.spill_size = 8192, size = SIZE_MAX); /* more than the data */
	SPOIL(h.attr_size = sizeof(h.attr) + 1);
	SPOIL(h.attr_size = UINT32_MAX);
	SPOIL(h.format_size = HEADER_SIZE - PP_RING_FORMAT_OFFSET + 1);
	SPOIL(h.format_size = UINT32_MAX);
	ALLOW(h.format_size = HEADER_SIZE - PP_RING_FORMAT_OFFSET);
	ALLOW(h.attr_size = sizeof(h.attr));
	ALLOW(h.data_size = PP_DATA_SIZE_MAX, size = SIZE_MAX);
	ALLOW(h.spill_size = PP_SPILL_SIZE_MAX, h.data_size = 1 << 20, size = SIZE_MAX);
	/* The largest header there can be does not wrap the sum around. */
	SPOIL(h.header_size = UINT32_MAX - 4095, h.data_size = PP_DATA_SIZE_MAX);
}
END_TEST

START_TEST(strings)
{
	SPOIL(memset(h.ns, 'a', sizeof(h.ns)));
	SPOIL(memset(h.name, 'a', sizeof(h.name)));
	SPOIL(memset(h.event, 'a', sizeof(h.event)));
	ALLOW(memset(h.event, 'a', sizeof(h.event) - 1));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring-header");
	TCase *t = tcase_create("ring-header");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, good_ring);
	tcase_add_test(t, identity);
	tcase_add_test(t, memory);
	tcase_add_test(t, sizes);
	tcase_add_test(t, strings);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
