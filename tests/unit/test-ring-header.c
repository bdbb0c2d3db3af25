// SPDX-License-Identifier: LGPL-2.1-or-later
/* pp_ring_check() on a valid ring, and on each way that a header can lie. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "proto/catalog.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

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
	h.n_sources = 1;
	h.set = 1;
	h.live.head = -64;
	strcpy(h.ns, "web");
	strcpy(h.name, "switches");
	strcpy(h.event, "sched:sched_switch");
	size = pp_ring_size(h.header_size, h.data_size, h.spill_size);
}

/* The check reads only the header, whatever the size says: the buffer has just that much. */
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
	/* The largest possible header does not overflow the sum. */
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

START_TEST(sources)
{
	ALLOW(h.n_sources = 0, h.version = 1);
	ALLOW(h.n_sources = 2, h.sample_type = PERF_SAMPLE_IDENTIFIER);
	ALLOW(h.n_sources = PP_SOURCES_MAX, h.sample_type = PERF_SAMPLE_IDENTIFIER);
	SPOIL(h.n_sources = PP_SOURCES_MAX + 1, h.sample_type = PERF_SAMPLE_IDENTIFIER);
	SPOIL(h.n_sources = UINT32_MAX, h.sample_type = PERF_SAMPLE_IDENTIFIER);
	SPOIL(h.n_sources = 2); /* only the source knows a record's layout */
	SPOIL(h.n_sources = 2, h.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME);
}
END_TEST

/* ── Catalogs ───────────────────────────────────────────────────────────────────────────── */

static struct {
	struct pp_catalog_header header;
	struct pp_catalog_entry entry[2];
	char text[64];
} c;

#define TEXT_OFFSET offsetof(__typeof__(c), text)

static int check_catalog(void)
{
	return pp_catalog_check(&c, sizeof(c));
}

static void good_catalog(void)
{
	memset(&c, 0, sizeof(c));
	c.header.magic = PP_CATALOG_MAGIC;
	c.header.version = PP_CATALOG_VERSION;
	c.header.header_size = sizeof(c.header);
	c.header.entry_size = sizeof(c.entry[0]);
	c.header.n_sources = 2;
	c.header.size = sizeof(c);
	c.header.event_id = 7;
	for (uint32_t i = 0; i < 2; i++) {
		c.entry[i].id = PP_SOURCE_ID(7, i);
		c.entry[i].text_offset = c.entry[i].format_offset = TEXT_OFFSET;
		c.entry[i].text_size = 10;
		c.entry[i].format_size = sizeof(c.text);
	}
}

#define SPOIL_CATALOG(...)                                   \
	do {                                                 \
		good_catalog();                              \
		ck_assert_int_eq(check_catalog(), 0);        \
		__VA_ARGS__;                                 \
		ck_assert_int_eq(check_catalog(), -EBADMSG); \
	} while (0)

START_TEST(catalogs)
{
	good_catalog();
	for (size_t n = 0; n < sizeof(c); n++)
		ck_assert_int_eq(pp_catalog_check(&c, n), -EBADMSG);
	ck_assert_int_eq(pp_catalog_check(&c, sizeof(c) + 1), 0);
	c.header.version++;
	ck_assert_int_eq(check_catalog(), -EPROTONOSUPPORT);
	SPOIL_CATALOG(c.header.magic ^= 1);
	SPOIL_CATALOG(c.header.version = 0);
	SPOIL_CATALOG(c.header.header_size = 0);
	SPOIL_CATALOG(c.header.header_size += 8);
	SPOIL_CATALOG(c.header.entry_size -= 8);
	SPOIL_CATALOG(c.header.entry_size = 0);
	SPOIL_CATALOG(c.header.n_sources = 0);
	SPOIL_CATALOG(c.header.n_sources = 3);
	SPOIL_CATALOG(c.header.n_sources = PP_SOURCES_MAX + 1);
	SPOIL_CATALOG(c.header.n_sources = UINT32_MAX);
	SPOIL_CATALOG(c.header.size++);
	SPOIL_CATALOG(c.header.size--);
	SPOIL_CATALOG(c.header.size = UINT64_MAX);
	SPOIL_CATALOG(c.entry[1].id--);
	SPOIL_CATALOG(c.entry[1].attr_size = 257, c.entry[1].attr_offset = 0);
	SPOIL_CATALOG(c.entry[1].text_offset = UINT32_MAX);
	SPOIL_CATALOG(c.entry[1].text_size = UINT32_MAX);
	SPOIL_CATALOG(c.entry[1].attr_size = 8, c.entry[1].attr_offset = sizeof(c) - 4);
	SPOIL_CATALOG(c.entry[1].format_offset += 1);
	SPOIL_CATALOG(c.entry[1].format_size = UINT32_MAX - TEXT_OFFSET + 1);
}
END_TEST

START_TEST(sources_are_found)
{
	good_catalog();
	ck_assert_int_eq(pp_catalog_find(&c, PP_SOURCE_ID(7, 0)), 0);
	ck_assert_int_eq(pp_catalog_find(&c, PP_SOURCE_ID(7, 1)), 1);
	ck_assert_int_eq(pp_catalog_find(&c, PP_SOURCE_ID(7, 2)), -1);
	ck_assert_int_eq(pp_catalog_find(&c, PP_SOURCE_ID(8, 0)), -1);
	ck_assert_int_eq(pp_catalog_find(&c, 0), -1);
	ck_assert_int_eq(pp_catalog_find(&c, UINT64_MAX), -1);
	ck_assert_ptr_eq(pp_catalog_entry(&c, 1), &c.entry[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ring-header");
	TCase *t = tcase_create("ring-header");

	tcase_add_test(t, good_ring);
	tcase_add_test(t, identity);
	tcase_add_test(t, memory);
	tcase_add_test(t, sizes);
	tcase_add_test(t, strings);
	tcase_add_test(t, sources);
	tcase_add_test(t, catalogs);
	tcase_add_test(t, sources_are_found);
	suite_add_tcase(s, t);
	return run_suite(s);
}
