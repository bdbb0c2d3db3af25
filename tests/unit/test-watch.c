// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notices and wakeups, against a daemon that follows a script. */
#include "tests/unit/fake-server.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include "tests/unit/needs.h"

#define REPLY(op) ((op) | PP_OP_REPLY)

static void send_notice(int fd, uint32_t serial, enum pp_notice_kind kind, uint64_t id)
{
	struct pp_msg_notice m = { .kind = kind };

	if (id) {
		m.event.id = id;
		strcpy(m.event.ns, "space");
		snprintf(m.event.name, sizeof(m.event.name), "event-%u", (unsigned)id);
	}
	if (kind == PP_NOTICE_CPU_ONLINE)
		m.cpu = 3;
	if (kind == PP_NOTICE_LOST)
		m.lost = 99;
	server_send(fd, REPLY(PP_OP_WATCH), serial, &m, NULL, 0);
}

struct seen {
	size_t n;
	uint32_t kinds[16];
	uint64_t ids[16];
	uint32_t cpu;
	uint64_t lost;
	bool asks; /* makes a call from within the callback */
};

static void see(struct perfpersist *p, const struct perfpersist_notice *notice, void *userdata)
{
	struct seen *seen = userdata;

	ck_assert_uint_eq(notice->sz, sizeof(*notice));
	ck_assert_uint_lt(seen->n, ARRAY_SIZE(seen->kinds));
	seen->kinds[seen->n] = notice->kind;
	seen->ids[seen->n++] = notice->info ? notice->info->id : 0;
	seen->cpu = notice->cpu;
	seen->lost = notice->lost;
	if (notice->info) {
		ck_assert_str_eq(notice->info->ns, "space");
		ck_assert_uint_eq(notice->info->sz, sizeof(*notice->info));
	}
	if (seen->asks) {
		struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };

		seen->asks = false;
		ck_assert_int_eq(perfpersist_ping(p, &daemon), 0);
		ck_assert_uint_eq(daemon.pid, 42);
	}
}

/* Waits until so many were seen, or the connection has ended. */
static int wait_for(struct perfpersist *p, const struct seen *seen, size_t n)
{
	int r = 0;

	while (r >= 0 && seen->n < n) {
		struct pollfd pfd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };

		ck_assert_int_ge(poll(&pfd, 1, -1), 0);
		r = perfpersist_dispatch(p);
	}
	return r;
}

static void watch_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_WATCH, body), ping;
	char end;

	ck_assert_str_eq(body->watch_request.ns, "space");
	send_notice(fd, serial, PP_NOTICE_STARTED, 0);
	send_notice(fd, serial, PP_NOTICE_CREATED, 5);
	send_notice(fd, serial, PP_NOTICE_CPU_ONLINE, 0);
	ping = server_expect(fd, PP_OP_PING, body); /* from within the callback */
	send_notice(fd, serial, PP_NOTICE_LOST, 0); /* before the answer */
	memset(body, 0, sizeof(*body));
	body->ping_reply.pid = 42;
	server_send(fd, REPLY(PP_OP_PING), ping, body, NULL, 0);
	send_notice(fd, serial, PP_NOTICE_DELETED, 5);
	ck_assert_int_eq(recv(fd, &end, 1, MSG_PEEK), 0);
}

START_TEST(test_watch)
{
	struct seen seen = { .asks = false };
	struct server s;
	struct perfpersist *p;

	server_start(&s, watch_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_watch(p, "space", see, &seen), 0);
	ck_assert_uint_ge(seen.n, 1);
	ck_assert_uint_eq(seen.kinds[0], PERFPERSIST_NOTICE_STARTED);
	ck_assert_int_ge(wait_for(p, &seen, 3), 0);
	ck_assert_uint_eq(seen.kinds[1], PERFPERSIST_NOTICE_CREATED);
	ck_assert_uint_eq(seen.ids[1], 5);
	ck_assert_uint_eq(seen.kinds[2], PERFPERSIST_NOTICE_CPU_ONLINE);
	ck_assert_uint_eq(seen.ids[2], 0);
	ck_assert_uint_eq(seen.cpu, 3);

	/* Notices arrive while a call blocks. */
	struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };

	ck_assert_int_eq(perfpersist_ping(p, &daemon), 0);
	ck_assert_uint_ge(seen.n, 4);
	ck_assert_uint_eq(seen.kinds[3], PERFPERSIST_NOTICE_LOST);
	ck_assert_int_ge(wait_for(p, &seen, 5), 0);
	ck_assert_uint_eq(seen.kinds[4], PERFPERSIST_NOTICE_DELETED);
	perfpersist_free(p);
	server_end(&s);
	ck_assert_uint_eq(seen.n, 5); /* no more of them */
}
END_TEST

static void nested_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_WATCH, body), ping;

	send_notice(fd, serial, PP_NOTICE_STARTED, 0);
	ping = server_expect(fd, PP_OP_PING, body);
	memset(body, 0, sizeof(*body));
	body->ping_reply.pid = 42;
	server_send(fd, REPLY(PP_OP_PING), ping, body, NULL, 0);
	send_notice(fd, serial, PP_NOTICE_PAUSED, 6);
}

START_TEST(test_call_within_the_callback)
{
	struct seen seen = { .asks = true };
	struct server s;
	struct perfpersist *p;

	server_start(&s, nested_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_watch(p, "space", see, &seen), 0);
	ck_assert(!seen.asks);
	/* The script hangs up: dispatch reports it, and no callback. */
	ck_assert_int_eq(wait_for(p, &seen, 3), -ECONNRESET);
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_uint_eq(seen.ids[1], 6);
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

static void refused_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	server_error(fd, server_expect(fd, PP_OP_WATCH, body), EACCES, "it is not yours");
}

static void not_started_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	send_notice(fd, server_expect(fd, PP_OP_WATCH, body), PP_NOTICE_CREATED, 5);
}

static void hang_up_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	server_expect(fd, PP_OP_WATCH, body);
}

START_TEST(test_not_started)
{
	static const struct {
		void (*script)(int fd);
		int error;
	} bad[] = {
		{ refused_script, -EACCES },
		{ not_started_script, -EBADMSG },
		{ hang_up_script, -ECONNRESET },
	};
	struct seen seen = { .asks = false };
	struct server s;
	struct perfpersist *p;

	server_start(&s, bad[_i].script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_watch(p, NULL, see, &seen), bad[_i].error);
	ck_assert_uint_eq(seen.n, 0);
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

static void withdrawn_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_WATCH, body);

	send_notice(fd, serial, PP_NOTICE_STARTED, 0);
	server_error(fd, serial, EACCES, "it is not yours any more");
}

static void started_twice_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_WATCH, body);

	send_notice(fd, serial, PP_NOTICE_STARTED, 0);
	send_notice(fd, serial, PP_NOTICE_STARTED, 0);
}

/* A watch cannot end without telling its owner: so the connection ends. */
START_TEST(test_watch_ends)
{
	struct seen seen = { .asks = false };
	struct server s;
	struct perfpersist *p;

	server_start(&s, _i ? started_twice_script : withdrawn_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_watch(p, NULL, see, &seen), 0);
	ck_assert_int_eq(wait_for(p, &seen, 2), -ECONNRESET);
	ck_assert_uint_eq(seen.n, 1);
	if (_i == 0)
		ck_assert_str_eq(perfpersist_error(p), "it is not yours any more");
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

/* ── Being woken ────────────────────────────────────────────────────────────────────────── */

static void wakeup_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	struct pp_msg_wakeup_reply reply = { .id = 5 };
	_cleanup_close_ int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int both[2] = { event, event };
	uint64_t one = 1;
	uint32_t serial;

	serial = server_expect(fd, PP_OP_WAKEUP, body);
	ck_assert_str_eq(body->name.name, "name");
	server_send(fd, REPLY(PP_OP_WAKEUP), serial, &reply, &event, 1);
	ck_assert_int_eq(write(event, &one, sizeof(one)), sizeof(one));
	serial = server_expect(fd, PP_OP_WAKEUP, body);
	server_error(fd, serial, EINVAL, "it wakes nobody");
	serial = server_expect(fd, PP_OP_WAKEUP, body);
	server_send(fd, REPLY(PP_OP_WAKEUP), serial, &reply, NULL, 0);
	serial = server_expect(fd, PP_OP_WAKEUP, body);
	server_send(fd, REPLY(PP_OP_WAKEUP), serial, &reply, both, 2);
}

static size_t count_fds(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	return n;
}

START_TEST(test_wakeup)
{
	size_t before = count_fds();
	struct server s;
	struct perfpersist *p;
	uint64_t count = 0;
	int fd = -EBADF;

	server_start(&s, wakeup_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_wakeup(p, "space", "name", &fd), 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1), 1);
	ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
	ck_assert_uint_eq(count, 1);
	close(fd);
	fd = -EBADF;
	ck_assert_int_eq(perfpersist_wakeup(p, "space", "name", &fd), -EINVAL);
	ck_assert_int_eq(perfpersist_wakeup(p, "space", "name", &fd), -EBADMSG);
	ck_assert_int_eq(perfpersist_wakeup(p, "space", "name", &fd), -EBADMSG);
	ck_assert_int_eq(fd, -EBADF);
	perfpersist_free(p);
	server_end(&s);
	ck_assert_uint_eq(count_fds(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watch");
	TCase *tc = tcase_create("watch");

	tcase_add_test(tc, test_watch);
	tcase_add_test(tc, test_call_within_the_callback);
	tcase_add_loop_test(tc, test_not_started, 0, 3);
	tcase_add_loop_test(tc, test_watch_ends, 0, 2);
	tcase_add_test(tc, test_wakeup);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
