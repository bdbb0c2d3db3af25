// SPDX-License-Identifier: LGPL-2.1-or-later
/* Log lines as they appear on stderr. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/log.h"
#include "tests/unit/needs.h"

static int out[2];
static char line[8192];

/* check forks each test, so stderr is the test's own. */
static void setup(void)
{
	ck_assert_int_eq(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(dup2(out[1], STDERR_FILENO), STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	unsetenv("PERFPERSIST_DEBUG");
	unsetenv("PERFPERSIST_LOG_LEVEL");
}

/* The one line that was written, in one write; "" if none was. */
static const char *written(void)
{
	ssize_t n = read(out[0], line, sizeof(line) - 1);

	line[MAX(n, 0)] = 0;
	return line;
}

START_TEST(plain_lines)
{
	log_open("perfpersistd");
	errno = ENOENT;
	log_warning("cannot open %s: %m", "/x");
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_str_eq(written(), "perfpersistd: cannot open /x: No such file or directory\n");
	log_event(LOG_INFO, "web", "switches", "Created web/switches.");
	ck_assert_str_eq(written(), "perfpersistd: Created web/switches.\n");
}
END_TEST

/* Lines that many requests cause are limited; errors are logged all the same. */
START_TEST(so_many_lines_on_events)
{
	unsigned n = 0;

	log_open("perfpersistd");
	while (n < 2 * LOG_EVENTS_MAX) {
		log_event(LOG_INFO, "web", "switches", "Paused web/switches.");
		if (strcmp(written(), "perfpersistd: Paused web/switches.\n") != 0)
			break;
		n++;
	}
	ck_assert_uint_eq(n, LOG_EVENTS_MAX);
	ck_assert_str_eq(line,
			 "perfpersistd: More than 5000 lines on events in 30 seconds: others are "
			 "left out.\n");
	log_event(LOG_INFO, "web", "switches", "Paused web/switches.");
	ck_assert_str_eq(written(), "");
	log_event(LOG_WARNING, "web", "switches", "Lost web/switches.");
	ck_assert_str_eq(written(), "perfpersistd: Lost web/switches.\n");
}
END_TEST

START_TEST(debug_only_if_asked)
{
	log_open("perfpersistd");
	log_debug("x");
	ck_assert_str_eq(written(), "");
	setenv("PERFPERSIST_DEBUG", "1", 1);
	log_open("perfpersistd");
	log_debug("x");
	ck_assert_str_eq(written(), "perfpersistd: x\n");
}
END_TEST

START_TEST(level_only_if_asked)
{
	setenv("PERFPERSIST_LOG_LEVEL", "1", 1);
	log_open("perfpersistd");
	log_error("x");
	ck_assert_str_eq(written(), "<3>perfpersistd: x\n");
}
END_TEST

START_TEST(a_line_is_a_line)
{
	char text[10000];

	log_open("perfpersistd");
	log_info("a\nb\033[1mc\xc3\xa4");
	ck_assert_str_eq(written(), "perfpersistd: a?b?[1mc\xc3\xa4\n");
	log_info("\xc2\x9b"
		 "31m\x9b");
	ck_assert_str_eq(written(), "perfpersistd: ??31m?\n");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	log_info("%s", text);
	ck_assert_uint_gt(strlen(written()), 2000);
	ck_assert_int_eq(line[strlen(line) - 1], '\n');
	ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}
END_TEST

/* stderr was redirected since the journal was connected to it. */
START_TEST(another_stream_is_not_the_journal)
{
	static const char *const streams[] = { "1:1", "", "x", "8:12345:6" };

	setenv("JOURNAL_STREAM", streams[_i], 1);
	log_open("perfpersistd");
	log_info("x");
	ck_assert_str_eq(written(), "perfpersistd: x\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, plain_lines);
	tcase_add_test(t, so_many_lines_on_events);
	tcase_add_test(t, debug_only_if_asked);
	tcase_add_test(t, level_only_if_asked);
	tcase_add_test(t, a_line_is_a_line);
	tcase_add_loop_test(t, another_stream_is_not_the_journal, 0, 4);
	suite_add_tcase(s, t);
	return run_suite(s);
}
