// SPDX-License-Identifier: LGPL-2.1-or-later
/* The journal's entry about a snapshot says who fired as far as somebody did. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <inttypes.h>
#include <stdarg.h>

#include "client/perfctl/events/announce.h"
#include "proto/journal.h"
#include "tests/unit/needs.h"

static char entry[4096]; /* "FIELD=value\n" */

bool pp_is_journal(int fd _unused_)
{
	return true;
}

/* libsystemd's, instead of an entry: "FIELD=text" or "FIELD=%…" with one argument each. */
int sd_journal_send(const char *format, ...)
{
	_cleanup_(cleanup_fclose) FILE *f = fmemopen(entry, sizeof(entry), "w");
	va_list args;

	ck_assert_ptr_nonnull(f);
	va_start(args, format);
	for (; format; format = va_arg(args, const char *)) {
		const char *value = format + strcspn(format, "%");

		fprintf(f, "%.*s", (int)(value - format), format);
		if (!strcmp(value, "%s"))
			fprintf(f, "%s", va_arg(args, const char *));
		else if (!strcmp(value, "%" PRIu64))
			fprintf(f, "%" PRIu64, va_arg(args, uint64_t));
		else if (*value)
			fprintf(f, "%u", va_arg(args, unsigned));
		fputc('\n', f);
	}
	va_end(args);
	ck_assert(!fflush(f));
	return 0;
}

static bool has(const char *field)
{
	return strstr(entry, field);
}

static void announce_of(const struct perfpersist_tape *by)
{
	const struct spooled file = { .ns = "s", .trigger = "mark", .comm = "a\nb", .number = 3 };
	const struct take_result result = { .records = 7 };

	*entry = 0;
	announce("/spool/file", &file, by, &result);
	ck_assert(has("PERFPERSIST_FILE=/spool/file\n") && has("PERFPERSIST_NUMBER=3\n"));
	ck_assert(has("PERFPERSIST_RECORDS=7\n") && has("PERFPERSIST_COMM=a?b\n"));
}

START_TEST(a_task_fired)
{
	announce_of(&(struct perfpersist_tape){ .pid = 11, .tid = 12, .cpu = 1 });
	ck_assert(has("PERFPERSIST_PID=11\nPERFPERSIST_TID=12\nPERFPERSIST_CPU=1\n"));
}
END_TEST

/* A machine that is busy enough has no idle task that fires. */
START_TEST(an_idle_task_fired)
{
	announce_of(&(struct perfpersist_tape){ .cpu = 2 });
	ck_assert(has("PERFPERSIST_PID=0\nPERFPERSIST_TID=0\nPERFPERSIST_CPU=2\n"));
}
END_TEST

/* The end of a pair did not come: that is of a task if the pair's key is one, and of no CPU. */
START_TEST(nothing_fired)
{
	announce_of(&(struct perfpersist_tape){ .overdue = true, .pid = 11, .tid = 12 });
	ck_assert(has("PERFPERSIST_PID=11\nPERFPERSIST_TID=12\n") && !has("PERFPERSIST_CPU"));
	announce_of(&(struct perfpersist_tape){ .overdue = true });
	ck_assert(!has("PERFPERSIST_PID") && !has("PERFPERSIST_TID") && !has("PERFPERSIST_CPU"));
	announce_of(&(struct perfpersist_tape){ .by_hand = true, .pid = 11 });
	ck_assert(!has("PERFPERSIST_PID") && !has("PERFPERSIST_TID") && !has("PERFPERSIST_CPU"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("announce");
	TCase *t = tcase_create("announce");

	tcase_add_test(t, a_task_fired);
	tcase_add_test(t, an_idle_task_fired);
	tcase_add_test(t, nothing_fired);
	suite_add_tcase(s, t);
	return run_suite(s);
}
