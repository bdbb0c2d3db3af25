// SPDX-License-Identifier: LGPL-2.1-or-later
/* CPU hotplug: the kernel's notices, hostile ones too, and the broker's reaction. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/broker/hotplug/hotplug.h"
#include "daemon/broker/hotplug/uevent.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

/* ── notices ────────────────────────────────────────────────────────────────────────────── */

#define NOTICE(text) text, sizeof(text)

START_TEST(notices_are_read)
{
	struct uevent u;

	ck_assert(uevent_parse(NOTICE("online@/devices/system/cpu/cpu3\0ACTION=online\0"), &u));
	ck_assert_uint_eq(u.cpu, 3);
	ck_assert(u.online);
	ck_assert(uevent_parse(NOTICE("offline@/devices/system/cpu/cpu4095"), &u));
	ck_assert_uint_eq(u.cpu, 4095);
	ck_assert(!u.online);
}
END_TEST

START_TEST(others_are_not)
{
	static const char *const others[] = {
		"",
		"online",
		"online@",
		"online@/devices/system/cpu/cpu",
		"online@/devices/system/cpu/cpu4096",
		"online@/devices/system/cpu/cpu-1",
		"online@/devices/system/cpu/cpu+1",
		"online@/devices/system/cpu/cpu 1",
		"online@/devices/system/cpu/cpu1 ",
		"online@/devices/system/cpu/cpu0x1",
		"online@/devices/system/cpu/cpu1/cache",
		"online@/devices/system/cpu/cpu18446744073709551617",
		"online@/devices/system/cpu/cpu99999999999999999999999999",
		"online@/devices/system/cpu/cpufreq",
		"online@/devices/system/memory/memory32",
		"add@/devices/system/cpu/cpu1",
		"remove@/devices/system/cpu/cpu1",
		"change@/devices/system/cpu/cpu1",
		" online@/devices/system/cpu/cpu1",
		"Online@/devices/system/cpu/cpu1",
		"libudev",
	};
	struct uevent u = { .cpu = 77 };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		ck_assert_msg(!uevent_parse(others[i], strlen(others[i]) + 1, &u), "%s", others[i]);
	/* Cut, or unterminated. */
	ck_assert(!uevent_parse("online@/devices/system/cpu/cpu1", 31, &u));
	ck_assert(!uevent_parse("online@/devices/system/cpu/cpu1", 0, &u));
	ck_assert_uint_eq(u.cpu, 77);
}
END_TEST

/* Flips each bit of a valid notice, in memory that ends with the notice. */
START_TEST(damaged_notices_do_no_harm)
{
	static const char good[] = "offline@/devices/system/cpu/cpu12";
	size_t n = sizeof(good);
	struct uevent u;

	for (size_t bit = 0; bit < n * 8; bit++)
		for (size_t size = 0; size <= n; size++) {
			char *copy = malloc(size + 1);

			ck_assert_ptr_nonnull(copy);
			memcpy(copy, good, size);
			if (bit / 8 < size)
				copy[bit / 8] ^= 1 << bit % 8;
			if (uevent_parse(copy, size, &u))
				ck_assert_uint_lt(u.cpu, PP_CPUS_MAX);
			free(copy);
		}
}
END_TEST

/* ── what is made of them ───────────────────────────────────────────────────────────────── */

static struct hotplug h;
static char told[256];	      /* "+1 -2 ": each CPU that came online, or went offline */
static unsigned came, looked; /* how often */

static void on_changed(void *userdata _unused_, unsigned cpu, bool online)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%c%u ", online ? '+' : '-', cpu);
}

static void on_came(void *userdata _unused_, const struct pp_cpumask *cpus)
{
	ck_assert_mem_eq(cpus, &h.online, sizeof(*cpus));
	came++;
}

static void on_looked(void *userdata _unused_)
{
	looked++;
}

static void setup(void)
{
	memset(&h, 0, sizeof(h));
	h.changed = on_changed;
	h.came = on_came;
	h.looked = on_looked;
	told[0] = '\0';
	came = looked = 0;
	ck_assert_int_eq(pp_parse_cpus("0-3", &h.online), 0);
}

/* Delivers these notices, separated by commas, and then sysfs says `online`. */
static void see(const char *notices, const char *online, bool lost)
{
	char copy[256], *rest = copy, *one;
	struct pp_cpumask set = { 0 }, mask;

	snprintf(copy, sizeof(copy), "%s", notices);
	while ((one = strsep(&rest, ","))) {
		char notice[128];
		int n = snprintf(notice, sizeof(notice), "%s@/devices/system/cpu/cpu%s",
				 *one == '+' ? "online" : "offline", *one ? one + 1 : "");

		hotplug_notice(&h, notice, n + 1, &set);
	}
	ck_assert_int_eq(pp_parse_cpus(online, &mask), 0);
	told[0] = '\0';
	came = 0;
	hotplug_update(&h, &mask, &set, lost);
}

START_TEST(sysfs_alone)
{
	see("", "0-3", false);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 0);
	see("", "0,2-3", false);
	ck_assert_str_eq(told, "-1 ");
	ck_assert_uint_eq(came, 0);
	ck_assert_uint_ne(h.away[1].since, 0);
	ck_assert_uint_ne(h.away[1].seen, 0);
	ck_assert_uint_le(h.away[1].seen, h.away[1].since);
	ck_assert_uint_eq(h.away[2].since, 0);
	see("", "0-3,9", false);
	ck_assert_str_eq(told, "+1 +9 ");
	ck_assert_uint_eq(came, 1); /* once for both */
	ck_assert_uint_eq(h.away[1].since, 0);
}
END_TEST

START_TEST(away_before_anybody_looked)
{
	see("-1,+1", "0-3", false);
	ck_assert_str_eq(told, "-1 +1 ");
	ck_assert_uint_eq(came, 1);
	ck_assert_uint_eq(h.away[1].since, 0);
	/* The notices arrive one by one; at the first the CPU is already back online. */
	see("-2", "0-3", false);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 0);
	see("+2", "0-3", false);
	ck_assert_str_eq(told, "-2 +2 ");
	ck_assert_uint_eq(came, 1);
}
END_TEST

/* The broker handles the CPU once more, which does no harm, and reports nothing. */
START_TEST(late_notices)
{
	see("", "0-4", false);
	ck_assert_str_eq(told, "+4 ");
	see("+4", "0-4", false);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 1);
	see("", "0-3", false);
	ck_assert_str_eq(told, "-4 ");
	see("-4", "0-3", false);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 0);
	/* A notice says online, and sysfs says that it is offline again. */
	see("+4", "0-3", false);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 0);
}
END_TEST

START_TEST(lost_notices)
{
	see("", "0-3", true);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 1);
}
END_TEST

/* ── the machine's own ──────────────────────────────────────────────────────────────────── */

/* Makes the kernel send a notice for CPU 0, which only makes the broker look. */
#define NOTICES "/sys/devices/system/cpu/cpu0/uevent"

static const char *no_notices(void)
{
	int fd = open(NOTICES, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return reason_of("needs to write into " NOTICES, errno);
	close(fd);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	if (fd < 0)
		return reason_of("needs the kernel's notices", errno);
	close(fd);
	return NULL;
}

START_TEST(the_kernels_word)
{
	_cleanup_close_ int fd = open(NOTICES, O_WRONLY | O_CLOEXEC);
	struct pp_cpumask truth;
	sd_event *loop;

	memset(&h.online, 0, sizeof(h.online));
	ck_assert_int_ge(sd_event_new(&loop), 0);
	ck_assert_int_eq(hotplug_init(&h, loop), 0);
	truth = h.online;
	ck_assert(pp_cpumask_test(&truth, 0));
	pp_cpumask_set(&h.online, PP_CPUS_MAX - 1);
	ck_assert_ptr_nonnull(h.io);
	ck_assert_int_eq(write(fd, "online", 6), 6);
	while (!came)
		ck_assert_int_ge(sd_event_run(loop, UINT64_MAX), 0);
	ck_assert_str_eq(told, "-4095 ");
	ck_assert_mem_eq(&h.online, &truth, sizeof(truth));
	hotplug_done(&h);
	sd_event_unref(loop);
}
END_TEST

/* The kernel-side account of CPUs that went offline and online, and how often the broker read
 * it. */
static struct pp_cpumask bounced;
static unsigned asked;

static void on_bounced(void *userdata _unused_, const struct pp_cpumask *online,
		       struct pp_cpumask *ret)
{
	ck_assert(pp_cpumask_test(online, 0));
	*ret = bounced;
	bounced = (struct pp_cpumask){ 0 };
	asked++;
}

static int on_something(sd_event_source *source, void *userdata)
{
	(void)source;
	(void)userdata;
	return 0;
}

/* The time has come, and something has woken the loop. */
static void look_by_itself(sd_event *loop)
{
	unsigned before = looked;

	told[0] = '\0';
	came = 0;
	h.looked_at = 0;
	ck_assert_int_ge(sd_event_add_defer(loop, NULL, on_something, NULL), 0);
	while (looked == before)
		ck_assert_int_ge(sd_event_run(loop, UINT64_MAX), 0);
}

/* A CPU went offline and online between two looks, without a notice. */
START_TEST(what_an_account_tells)
{
	sd_event *loop;

	h.bounced = on_bounced;
	asked = 0;
	pp_cpumask_set(&bounced, 0); /* before the first look, so it does not matter */
	ck_assert_int_ge(sd_event_new(&loop), 0);
	ck_assert_int_eq(hotplug_init(&h, loop), 0);
	ck_assert_uint_eq(asked, 1);
	h.io = sd_event_source_disable_unref(h.io);
	look_by_itself(loop);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 0);
	pp_cpumask_set(&bounced, 0);
	look_by_itself(loop);
	ck_assert_str_eq(told, "-0 +0 ");
	ck_assert_uint_eq(came, 1);
	look_by_itself(loop);
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(came, 0);
	/* A CPU that was seen offline comes online: one report. */
	pp_cpumask_clear(&h.online, 0);
	pp_cpumask_set(&bounced, 0);
	look_by_itself(loop);
	ck_assert_str_eq(told, "+0 ");
	ck_assert_uint_eq(came, 1);
	hotplug_done(&h);
	sd_event_unref(loop);
}
END_TEST

/* Without notices the broker looks at any wakeup, but not too often. */
START_TEST(it_looks_by_itself)
{
	struct pp_cpumask truth;
	sd_event *loop;

	ck_assert_int_ge(sd_event_new(&loop), 0);
	ck_assert_int_eq(hotplug_init(&h, loop), 0);
	h.io = sd_event_source_disable_unref(h.io); /* others' uevents arrive, too */
	truth = h.online;
	pp_cpumask_clear(&h.online, 0);
	look_by_itself(loop);
	ck_assert_str_eq(told, "+0 ");
	ck_assert_uint_eq(came, 1);
	ck_assert_mem_eq(&h.online, &truth, sizeof(truth));
	look_by_itself(loop);
	ck_assert_uint_eq(looked, 2);
	ck_assert_int_ge(sd_event_add_defer(loop, NULL, on_something, NULL), 0);
	ck_assert_int_ge(sd_event_run(loop, 0), 0);
	ck_assert_uint_eq(looked, 2);
	hotplug_done(&h);
	sd_event_unref(loop);
}
END_TEST

/* Without the kernel's notices a timer looks. */
START_TEST(a_timer_looks)
{
	sd_event *loop;

	ck_assert_int_ge(sd_event_new(&loop), 0);
	ck_assert_int_eq(hotplug_init(&h, loop), 0);
	h.io = sd_event_source_disable_unref(h.io);
	h.post = sd_event_source_disable_unref(h.post);
	for (unsigned n = 1; n <= 2; n++) {
		ck_assert_int_ge(sd_event_source_set_time_accuracy(h.timer, 1), 0);
		ck_assert_int_ge(sd_event_source_set_time_relative(h.timer, 0), 0);
		ck_assert_int_ge(sd_event_source_set_enabled(h.timer, SD_EVENT_ONESHOT), 0);
		while (looked < n)
			ck_assert_int_ge(sd_event_run(loop, UINT64_MAX), 0);
	}
	hotplug_done(&h);
	sd_event_unref(loop);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hotplug");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, notices_are_read);
	tcase_add_test(t, others_are_not);
	tcase_add_test(t, damaged_notices_do_no_harm);
	tcase_add_test(t, sysfs_alone);
	tcase_add_test(t, away_before_anybody_looked);
	tcase_add_test(t, late_notices);
	tcase_add_test(t, lost_notices);
	add_test_unless(no_notices(), t, the_kernels_word);
	tcase_add_test(t, what_an_account_tells);
	tcase_add_test(t, it_looks_by_itself);
	tcase_add_test(t, a_timer_looks);
	suite_add_tcase(s, t);
	return run_suite(s);
}
