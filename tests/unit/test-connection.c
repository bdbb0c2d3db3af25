// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests, replies and the end of a connection, against a daemon that follows a script. */
#include "tests/unit/fake-server.h"

#include <linux/bpf.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "proto/name-record.h"
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

#define REPLY(op) ((op) | PP_OP_REPLY)

static size_t count_fds(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	return n;
}

static struct pp_msg_event an_event(uint64_t id)
{
	struct pp_msg_event m = { .id = id,
				  .ns = "space",
				  .event = "sys:tracepoint",
				  .recorder = PP_RECORDER_GENERIC,
				  .state = PP_EVENT_RUNNING,
				  .owner = 5,
				  .missed = 3 };

	snprintf(m.name, sizeof(m.name), "event-%llu", (unsigned long long)id);
	return m;
}

/* ── Calls ──────────────────────────────────────────────────────────────────────────────── */

START_TEST(test_not_running)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = "no-such-one" };
	struct perfpersist *p = NULL;

	ck_assert_int_eq(perfpersist_connect(&opts, &p), -ECONNREFUSED);
	ck_assert_ptr_null(p);
	ck_assert_str_eq(perfpersist_error(NULL),
			 "cannot reach perfpersistd at /run/perfpersist-no-such-one/control: it is "
			 "not running; start it with `perfpersistd --instance no-such-one`");
	opts.instance = "../x";
	ck_assert_int_eq(perfpersist_connect(&opts, &p), -EINVAL);
	opts.sz = 8;
	ck_assert_int_eq(perfpersist_connect(&opts, &p), -EINVAL);
	perfpersist_free(NULL);
}
END_TEST

static void calls_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*body));
	uint32_t serial;

	reply->ping_reply = (struct pp_msg_ping_reply){ .version = 1, .pid = 42, .release = "0.1" };
	serial = server_expect(fd, PP_OP_PING, body);
	server_send(fd, REPLY(PP_OP_PING), serial, reply, NULL, 0);

	serial = server_expect(fd, PP_OP_CREATE, body);
	ck_assert_uint_eq(body->create_request.count, 1);
	ck_assert_str_eq(body->create_request.selections[0].event, "sys:tracepoint");
	ck_assert_str_eq(body->create_request.selections[0].filter, "a == 1");
	ck_assert_str_eq(body->create_request.cpus, "0-1");
	ck_assert_uint_eq(body->create_request.data_size, 4096);
	reply->event = an_event(9);
	server_send(fd, REPLY(PP_OP_CREATE), serial, reply, NULL, 0);

	serial = server_expect(fd, PP_OP_SHOW, body);
	ck_assert_str_eq(body->name.ns, "space");
	server_error(fd, serial, EACCES, "cannot show space/name: it is not yours; ask its owner");

	serial = server_expect(fd, PP_OP_DELETE, body);
	ck_assert_uint_eq(body->name.id, 9);
	ck_assert_str_eq(body->name.ns, "");
	reply->event = an_event(9);
	server_send(fd, REPLY(PP_OP_DELETE), serial, reply, NULL, 0);
}

START_TEST(test_calls)
{
	struct perfpersist_create_options opts = { .sz = sizeof(opts),
						   .event = "sys:tracepoint",
						   .filter = "a == 1",
						   .cpus = "0-1",
						   .buffer = 4096 };
	struct perfpersist_selection selections[PP_SELECTIONS_MAX + 1] = { { .event = "a:b" } };
	struct perfpersist_change_options change = { .sz = sizeof(change) };
	struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_info small = { .sz = 4 };
	struct server s;
	struct perfpersist *p;
	char name[65];

	server_start(&s, calls_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_ping(p, &daemon), 0);
	ck_assert_uint_eq(daemon.pid, 42);
	ck_assert_str_eq(daemon.release, "0.1");
	ck_assert_int_eq(perfpersist_create(p, "space", "name", &opts, &info), 0);
	ck_assert_uint_eq(info.id, 9);
	ck_assert_uint_eq(info.owner, 5);
	ck_assert_str_eq(info.name, "event-9");
	ck_assert_int_eq(perfpersist_show(p, "space", "name", &info), -EACCES);
	ck_assert_str_eq(perfpersist_error(p),
			 "cannot show space/name: it is not yours; ask its owner");

	/* The library refuses these without asking the daemon. */
	memset(name, 'x', 64);
	name[64] = 0;
	ck_assert_int_eq(perfpersist_show(p, "space", name, &info), -EINVAL);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(p), "too long"));
	ck_assert_int_eq(perfpersist_show(p, NULL, "name", &info), -EINVAL);
	ck_assert_int_eq(perfpersist_show(p, "space", "", &info), -EINVAL);
	ck_assert_int_eq(perfpersist_show(p, "space", "name", &small), -EINVAL);
	ck_assert_int_eq(perfpersist_delete_by_id(p, 0, NULL), -EINVAL);
	ck_assert_int_eq(perfpersist_create(p, "space", "name", NULL, NULL), -EINVAL);
	opts.flags = PERFPERSIST_ALL_CPUS;
	ck_assert_int_eq(perfpersist_create(p, "space", "name", &opts, NULL), -EINVAL);
	opts.flags = 0;
	opts.selections = selections;
	opts.n_selections = 1; /* and an event besides */
	ck_assert_int_eq(perfpersist_create(p, "space", "name", &opts, NULL), -EINVAL);
	opts.event = opts.filter = NULL;
	opts.n_selections = 2; /* the second is empty */
	ck_assert_int_eq(perfpersist_create(p, "space", "name", &opts, NULL), -EINVAL);
	opts.n_selections = PP_SELECTIONS_MAX + 1;
	ck_assert_int_eq(perfpersist_create(p, "space", "name", &opts, NULL), -EINVAL);
	ck_assert_int_eq(perfpersist_change(p, "space", "name", &change, NULL), -EINVAL);
	change.what = 1U << 31;
	ck_assert_int_eq(perfpersist_change(p, "space", "name", &change, NULL), -EINVAL);
	ck_assert_int_eq(perfpersist_pause(p, NULL, NULL, true, NULL), -EINVAL);

	ck_assert_int_eq(perfpersist_delete_by_id(p, 9, NULL), 0);
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

/* ── What events can be told to do ──────────────────────────────────────────────────────── */

static void verbs_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*body));
	uint32_t serial;

	serial = server_expect(fd, PP_OP_CREATE, body);
	ck_assert_uint_eq(body->create_request.count, 2);
	ck_assert_str_eq(body->create_request.selections[0].event, "a:*");
	ck_assert_str_eq(body->create_request.selections[0].filter, "");
	ck_assert_str_eq(body->create_request.selections[1].event, "cycles:u");
	ck_assert_str_eq(body->create_request.selections[1].filter, "pid == 1");
	ck_assert_uint_eq(body->create_request.max_rate, 1000);
	ck_assert_uint_eq(body->create_request.flags, PP_EVENT_WAKEUP | PP_EVENT_BOOT);
	reply->event = an_event(9);
	reply->event.shares = 4;
	reply->event.sources = 25;
	reply->event.set = 2;
	reply->event.memory = 12345;
	reply->event.max_rate = 1000;
	reply->event.creator = 77;
	reply->event.limited = 11;
	reply->event.state = PP_EVENT_PAUSED;
	strcpy(reply->event.filter, "pid == 1");
	server_send(fd, REPLY(PP_OP_CREATE), serial, reply, NULL, 0);

	serial = server_expect(fd, PP_OP_CHANGE, body);
	ck_assert_str_eq(body->change_request.which.name, "name");
	ck_assert_uint_eq(body->change_request.what, PP_CHANGE_FILTER | PP_CHANGE_BUFFER);
	ck_assert_uint_eq(body->change_request.data_size, 8192);
	ck_assert_uint_eq(body->change_request.max_rate, 0); /* the rate is not to change */
	ck_assert_str_eq(body->change_request.filter, "b == 2");
	server_send(fd, REPLY(PP_OP_CHANGE), serial, reply, NULL, 0);

	serial = server_expect(fd, PP_OP_PAUSE, body);
	ck_assert_str_eq(body->pause_request.which.ns, "space");
	ck_assert_str_eq(body->pause_request.which.name, "");
	ck_assert_uint_eq(body->pause_request.pause, 1);
	reply->pause_reply.count = 3;
	server_send(fd, REPLY(PP_OP_PAUSE), serial, reply, NULL, 0);

	serial = server_expect(fd, PP_OP_PAUSE, body);
	ck_assert_str_eq(body->pause_request.which.name, "name");
	ck_assert_uint_eq(body->pause_request.pause, 0);
	server_send(fd, REPLY(PP_OP_PAUSE), serial, reply, NULL, 0);

	serial = server_expect(fd, PP_OP_RELOAD, body);
	reply->reload_reply = (struct pp_msg_reload_reply){ 1, 2, 3, 4, "a.conf:7: no" };
	server_send(fd, REPLY(PP_OP_RELOAD), serial, reply, NULL, 0);
}

START_TEST(test_verbs)
{
	static const struct perfpersist_selection selections[] = { { "a:*", NULL },
								   { "cycles:u", "pid == 1" } };
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.selections = selections,
		.n_selections = 2,
		.max_rate = 1000,
		.flags = PERFPERSIST_WAKEUP | PERFPERSIST_BOOT,
	};
	struct perfpersist_change_options change = {
		.sz = sizeof(change),
		.filter = "b == 2",
		.buffer = 8192,
		.max_rate = 5,
		.what = PERFPERSIST_CHANGE_FILTER | PERFPERSIST_CHANGE_BUFFER,
	};
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_reload_result reload = { .sz = sizeof(reload) };
	struct server s;
	struct perfpersist *p;
	size_t n = 0;

	server_start(&s, verbs_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_create(p, "space", "name", &opts, &info), 0);
	ck_assert_uint_eq(info.shares, 4);
	ck_assert_uint_eq(info.sources, 25);
	ck_assert_uint_eq(info.set, 2);
	ck_assert_uint_eq(info.memory, 12345);
	ck_assert_uint_eq(info.max_rate, 1000);
	ck_assert_uint_eq(info.creator, 77);
	ck_assert_uint_eq(info.limited, 11);
	ck_assert_uint_eq(info.state, PERFPERSIST_PAUSED);
	ck_assert_str_eq(info.filter, "pid == 1");
	ck_assert_int_eq(perfpersist_change(p, "space", "name", &change, NULL), 0);
	ck_assert_int_eq(perfpersist_pause(p, "space", NULL, true, &n), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(perfpersist_pause(p, "space", "name", false, NULL), 0);
	ck_assert_int_eq(perfpersist_reload(p, &reload), 0);
	ck_assert_uint_eq(reload.created, 1);
	ck_assert_uint_eq(reload.failed, 4);
	ck_assert_str_eq(reload.message, "a.conf:7: no");
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

/* ── Lists ──────────────────────────────────────────────────────────────────────────────── */

static void limits_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*body));
	uint32_t line = 0;

	for (int page = 0; page < 3; page++) {
		uint32_t serial = server_expect(fd, PP_OP_LIMITS, body);
		struct pp_msg_limits_reply *m = &reply->limits_reply;

		ck_assert_uint_eq(body->limits_request.first, line);
		m->count = page < 2 ? PP_LIMITS_MAX : 1;
		m->more = page < 2;
		for (uint32_t i = 0; i < m->count; i++)
			m->limits[i] = (struct pp_msg_limit){ .scope = PP_LIMIT_NAMESPACE,
							      .ns = "space",
							      .memory = line++,
							      .held = 5,
							      .max_copies = UINT64_MAX };
		server_send(fd, REPLY(PP_OP_LIMITS), serial, reply, NULL, 0);
	}
	reply->limits_reply.count = 0;
	reply->limits_reply.more = 1;
	server_send(fd, REPLY(PP_OP_LIMITS), server_expect(fd, PP_OP_LIMITS, body), reply, NULL, 0);
}

START_TEST(test_limits)
{
	struct perfpersist_limit *limits = NULL;
	struct server s;
	struct perfpersist *p;
	size_t n = 0;

	server_start(&s, limits_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_limits(p, &limits, &n), 0);
	ck_assert_uint_eq(n, 2 * PP_LIMITS_MAX + 1);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(limits[i].sz, sizeof(limits[i]));
		ck_assert_uint_eq(limits[i].scope, PERFPERSIST_LIMIT_NAMESPACE);
		ck_assert_str_eq(limits[i].ns, "space");
		ck_assert_uint_eq(limits[i].memory, i);
		ck_assert_uint_eq(limits[i].held, 5);
		ck_assert_uint_eq(limits[i].max_copies, UINT64_MAX);
	}
	free(limits);
	ck_assert_int_eq(perfpersist_limits(p, &limits, &n), -EBADMSG); /* the list would never
									 * end */
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

static void list_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*body));
	uint64_t id = 0;

	for (int page = 0; page < 4; page++) {
		uint32_t serial = server_expect(fd, PP_OP_LIST, body);
		struct pp_msg_list_reply *m = &reply->list_reply;

		ck_assert_uint_eq(body->list_request.after, id);
		ck_assert_str_eq(body->list_request.ns, "space");
		m->count = page < 3 ? PP_LIST_MAX : 1;
		m->more = page < 3;
		for (uint32_t i = 0; i < m->count; i++)
			m->events[i] = an_event(id += 2);
		server_send(fd, REPLY(PP_OP_LIST), serial, reply, NULL, 0);
	}
	memset(reply, 0, sizeof(*reply));
	server_send(fd, REPLY(PP_OP_LIST), server_expect(fd, PP_OP_LIST, body), reply, NULL, 0);

	reply->list_reply.more = 1;
	server_send(fd, REPLY(PP_OP_LIST), server_expect(fd, PP_OP_LIST, body), reply, NULL, 0);

	reply->list_reply.count = 2;
	reply->list_reply.events[0] = an_event(4);
	reply->list_reply.events[1] = an_event(4);
	server_send(fd, REPLY(PP_OP_LIST), server_expect(fd, PP_OP_LIST, body), reply, NULL, 0);
}

START_TEST(test_list)
{
	struct perfpersist_info *infos = NULL;
	struct server s;
	struct perfpersist *p;
	size_t n = 0;

	server_start(&s, list_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_list(p, "space", &infos, &n), 0);
	ck_assert_uint_eq(n, 3 * PP_LIST_MAX + 1);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(infos[i].sz, sizeof(infos[i]));
		ck_assert_uint_eq(infos[i].id, 2 * i + 2);
	}
	free(infos);
	infos = NULL;
	ck_assert_int_eq(perfpersist_list(p, NULL, &infos, &n), 0);
	ck_assert_uint_eq(n, 0);
	free(infos);
	/* Lists that would never end. */
	ck_assert_int_eq(perfpersist_list(p, NULL, &infos, &n), -EBADMSG);
	ck_assert_int_eq(perfpersist_list(p, NULL, &infos, &n), -EBADMSG);
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

/* ── Opening ────────────────────────────────────────────────────────────────────────────── */

static struct writer rings[3];

static void make_rings(void)
{
	for (uint32_t i = 0; i < 3; i++)
		rings[i] = writer_new(i, 4096, 64);
}

static void free_rings(void)
{
	for (uint32_t i = 0; i < 3; i++)
		writer_done(&rings[i]);
}

/* Sends one page of one ring; returns the request. */
static struct pp_msg_open_request send_page(int fd, uint32_t total, uint32_t ring, size_t n_fds)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_OPEN, body);
	int fds[2] = { rings[ring].fd, rings[ring].fd };

	reply->open_reply = (struct pp_msg_open_reply){
		.event = an_event(WRITER_EVENT_ID),
		.total = total,
		.count = 1,
		.cpus = { { .cpu = ring, .map_size = (uint32_t)rings[ring].size } },
	};
	server_send(fd, REPLY(PP_OP_OPEN), serial, reply, fds, n_fds);
	return body->open_request;
}

static void open_script(int fd)
{
	struct pp_msg_open_request m = send_page(fd, 2, 0, 1);

	ck_assert_str_eq(m.which.name, "name");
	m = send_page(fd, 3, 1, 1); /* a CPU came online: the client begins anew */
	ck_assert_uint_eq(m.which.id, WRITER_EVENT_ID);
	ck_assert_uint_eq(m.first, 1);
	for (uint32_t i = 0; i < 3; i++) {
		m = send_page(fd, 3, i, 1);
		ck_assert_uint_eq(m.first, i);
	}
}

START_TEST(test_open)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_event *e = NULL;
	size_t before;
	struct server s;
	struct perfpersist *p;

	make_rings();
	writer_write(&rings[1], 1, 1, 4);
	before = count_fds();
	server_start(&s, open_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_open(p, "space", "name", &e), 0);
	perfpersist_free(p);
	server_end(&s);
	ck_assert_uint_eq(count_fds(), before + 3);
	ck_assert_int_eq(perfpersist_event_info(e, &info), 0);
	ck_assert_str_eq(info.cpus, "0-2");
	ck_assert_uint_eq(info.owner, 5);
	ck_assert_uint_eq(info.records, 1);
	ck_assert_uint_eq(info.missed, 3);
	ck_assert(!info.missed_unknown);
	perfpersist_event_free(e);
	ck_assert_uint_eq(count_fds(), before);
	free_rings();
}
END_TEST

static void open_too_many_script(int fd)
{
	send_page(fd, 2, 0, 2);
}

static void open_twice_script(int fd)
{
	send_page(fd, 2, 1, 1);
	send_page(fd, 2, 1, 1);
}

static void open_other_script(int fd)
{
	rings[1].header->event_id = 1234;
	send_page(fd, 1, 1, 1);
}

static void open_no_ring_script(int fd)
{
	rings[1].header->magic = 0;
	send_page(fd, 1, 1, 1);
}

static void open_changing_script(int fd)
{
	for (uint32_t i = 0; i < 12; i++)
		send_page(fd, 2 + i % 2, 0, 1);
}

START_TEST(test_open_bad)
{
	static const struct {
		void (*script)(int fd);
		int error;
	} bad[] = {
		{ open_too_many_script, -EBADMSG }, { open_twice_script, -EINVAL },
		{ open_other_script, -EINVAL },	    { open_no_ring_script, -EBADMSG },
		{ open_changing_script, -EAGAIN },
	};
	struct perfpersist_event *e = NULL;
	size_t before;
	struct server s;
	struct perfpersist *p;

	make_rings();
	before = count_fds();
	server_start(&s, bad[_i].script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_open_by_id(p, WRITER_EVENT_ID, &e), bad[_i].error);
	ck_assert_ptr_null(e);
	perfpersist_free(p);
	server_end(&s);
	ck_assert_uint_eq(count_fds(), before);
	free_rings();
}
END_TEST

/* ── The end of a connection ────────────────────────────────────────────────────────────── */

static void hang_up_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	server_expect(fd, PP_OP_PING, body);
}

static void garbage_script(int fd)
{
	hang_up_script(fd);
	ck_assert_int_eq(pp_packet_send(fd, "what is this?", 13, NULL, 0), 0);
}

static void stranger_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_PING, body);

	memset(body, 0, sizeof(*body));
	server_send(fd, REPLY(PP_OP_PING), serial + 1, body, NULL, 0);
}

static void other_reply_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_PING, body);

	body->event = an_event(1);
	server_send(fd, REPLY(PP_OP_SHOW), serial, body, NULL, 0);
}

static void unasked_fd_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_PING, body);

	memset(body, 0, sizeof(*body));
	server_send(fd, REPLY(PP_OP_PING), serial, body, &fd, 1);
}

static void bad_error_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	server_error(fd, server_expect(fd, PP_OP_PING, body), -5, "no");
}

static void too_many_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	server_expect(fd, PP_OP_PING, body);
	server_error(fd, 0, EUSERS, "you have too many connections; close some");
}

static void version_script(int fd)
{
	uint8_t packet[PP_HEADER_SIZE] = { 99, 0, 1, 0x80, 1, 0, 0, 0, PP_HEADER_SIZE };

	hang_up_script(fd);
	ck_assert_int_eq(pp_packet_send(fd, packet, sizeof(packet), NULL, 0), 0);
}

START_TEST(test_end)
{
	static const struct {
		void (*script)(int fd);
		int error;
	} ends[] = {
		{ hang_up_script, -ECONNRESET }, { garbage_script, -EBADMSG },
		{ stranger_script, -EBADMSG },	 { other_reply_script, -EBADMSG },
		{ unasked_fd_script, -EBADMSG }, { bad_error_script, -EBADMSG },
		{ too_many_script, -EUSERS },	 { version_script, -EPROTONOSUPPORT },
	};
	struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };
	size_t before = count_fds();
	struct server s;
	struct perfpersist *p;

	server_start(&s, ends[_i].script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_ping(p, &daemon), ends[_i].error);
	ck_assert_uint_gt(strlen(perfpersist_error(p)), 20);
	ck_assert_int_eq(perfpersist_ping(p, &daemon), ends[_i].error);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(p), "connect anew"));
	ck_assert_int_eq(perfpersist_dispatch(p), -ECONNRESET);
	perfpersist_free(p);
	server_end(&s);
	ck_assert_uint_eq(count_fds(), before);
}
END_TEST

static void one_ping_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_PING, body);

	memset(body, 0, sizeof(*body));
	server_send(fd, REPLY(PP_OP_PING), serial, body, NULL, 0);
}

/* The daemon restarted while no request was under way: the next call says so. */
START_TEST(test_restarted_in_between)
{
	struct perfpersist_daemon_info daemon = { .sz = sizeof(daemon) };
	struct server s;
	struct perfpersist *p;

	server_start(&s, one_ping_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_ping(p, &daemon), 0);
	server_end(&s);
	ck_assert_int_eq(perfpersist_ping(p, &daemon), -ECONNRESET);
	perfpersist_free(p);
}
END_TEST

/* ── Asynchronous ───────────────────────────────────────────────────────────────────────── */

struct seen {
	int ran;
	int last_error;
	uint64_t ids[8];
	int again; /* requests that the callback still starts */
};

static void note(struct perfpersist *p, const struct perfpersist_result *result, void *userdata)
{
	struct seen *seen = userdata;

	ck_assert_uint_eq(result->sz, sizeof(*result));
	if (result->error == 0 && seen->ran < 8)
		seen->ids[seen->ran] = result->infos[0].id;
	seen->last_error = result->error;
	seen->ran++;
	if (seen->again-- > 0) {
		int r = perfpersist_show_async(p, "space", "again", note, seen);

		ck_assert_int_eq(r, result->error);
	}
}

static void out_of_order_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t first = server_expect(fd, PP_OP_SHOW, body);
	uint32_t second = server_expect(fd, PP_OP_DELETE, body);

	body->event = an_event(2);
	server_send(fd, REPLY(PP_OP_DELETE), second, body, NULL, 0);
	body->event = an_event(1);
	server_send(fd, REPLY(PP_OP_SHOW), first, body, NULL, 0);
	first = server_expect(fd, PP_OP_SHOW, body);
	ck_assert_str_eq(body->name.name, "again");
	body->event = an_event(3);
	server_send(fd, REPLY(PP_OP_SHOW), first, body, NULL, 0);
}

static void wait_for(struct perfpersist *p, struct seen *seen, int ran)
{
	while (seen->ran < ran) {
		struct pollfd pfd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };
		int before = seen->ran, r;

		ck_assert_int_ge(poll(&pfd, 1, -1), 0);
		r = perfpersist_dispatch(p);
		if (r != -ECONNRESET) /* the script may be at its end: replies come first */
			ck_assert_int_eq(r, seen->ran - before);
	}
}

START_TEST(test_async)
{
	struct seen seen = { .again = 1 };
	struct server s;
	struct perfpersist *p;

	server_start(&s, out_of_order_script);
	p = server_connect(&s);
	ck_assert_int_eq(perfpersist_dispatch(p), 0);
	ck_assert_int_eq(perfpersist_show_async(p, "space", "a", note, &seen), 0);
	ck_assert_int_eq(perfpersist_delete_async(p, "space", "b", note, &seen), 0);
	ck_assert_int_eq(perfpersist_show_async(p, "space", "", note, &seen), -EINVAL);
	ck_assert_int_eq(perfpersist_events(p), POLLIN);
	wait_for(p, &seen, 3);
	ck_assert_uint_eq(seen.ids[0], 2);
	ck_assert_uint_eq(seen.ids[1], 1);
	ck_assert_uint_eq(seen.ids[2], 3);
	perfpersist_free(p);
	server_end(&s);
	ck_assert_int_eq(seen.ran, 3);
}
END_TEST

static void deaf_script(int fd)
{
	char end;

	ck_assert_int_eq(recv(fd, &end, 1, MSG_PEEK), 1);
}

START_TEST(test_cancelled)
{
	struct seen seen = { .again = 0 };
	struct server s;
	struct perfpersist *p;

	server_start(&s, deaf_script);
	p = server_connect(&s);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(perfpersist_show_async(p, "space", "a", note, &seen), 0);
	perfpersist_free(p);
	ck_assert_int_eq(seen.ran, 3);
	ck_assert_int_eq(seen.last_error, -ECANCELED);
	server_end(&s);
}
END_TEST

/* A callback that starts a new request after the daemon is gone is refused, and does not loop
 * forever. */
START_TEST(test_gone_with_requests)
{
	struct seen seen = { .again = 100 };
	struct server s;
	struct perfpersist *p;
	int r = 0;

	server_start(&s, deaf_script);
	p = server_connect(&s);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(perfpersist_show_async(p, "space", "a", note, &seen), 0);
	while (r == 0) {
		struct pollfd pfd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };

		ck_assert_int_eq(poll(&pfd, 1, -1), 1);
		r = perfpersist_dispatch(p);
	}
	ck_assert_int_eq(r, -ECONNRESET);
	ck_assert_int_eq(seen.ran, 3);
	ck_assert_int_eq(seen.last_error, -ECONNRESET);
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

#define MANY 3000

static pthread_barrier_t barrier;

static void slow_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < MANY; i++) {
		uint32_t serial = server_expect(fd, PP_OP_CREATE, body);

		body->event = an_event((uint64_t)i + 1);
		server_send(fd, REPLY(PP_OP_CREATE), serial, body, NULL, 0);
	}
}

/* More requests than the socket takes: they wait, the library asks for POLLOUT, and none is
 * lost. */
START_TEST(test_full_socket)
{
	struct perfpersist_create_options opts = { .sz = sizeof(opts), .event = "a:b" };
	struct seen seen = { .again = 0 };
	struct server s;
	struct perfpersist *p;

	pthread_barrier_init(&barrier, NULL, 2);
	server_start(&s, slow_script);
	p = server_connect(&s);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(perfpersist_create_async(p, "space", "a", &opts, note, &seen), 0);
	ck_assert_int_eq(perfpersist_events(p), POLLIN | POLLOUT);
	ck_assert_int_eq(perfpersist_dispatch(p), 0);
	pthread_barrier_wait(&barrier);
	wait_for(p, &seen, MANY);
	ck_assert_int_eq(seen.last_error, 0);
	perfpersist_free(p);
	server_end(&s);
	pthread_barrier_destroy(&barrier);
}
END_TEST

/* ── Direct ─────────────────────────────────────────────────────────────────────────────── */

static char registry[] = "/tmp/test-registry-XXXXXX";

static void put(const char *path, const char *text)
{
	_cleanup_free_ char *whole = NULL;
	_cleanup_fclose_ FILE *f = NULL;

	ck_assert_int_gt(asprintf(&whole, "%s/%s", registry, path), 0);
	if (!text) {
		ck_assert_int_eq(mkdir(whole, 0755), 0);
		return;
	}
	f = fopen(whole, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
}

static void put_link(const char *path, const char *target)
{
	_cleanup_free_ char *whole = NULL;

	ck_assert_int_gt(asprintf(&whole, "%s/%s", registry, path), 0);
	ck_assert_int_eq(symlink(target, whole), 0);
}

/* A name's record is a real map: here a symlink leads to its pin. */
static char pins[] = "/tmp/test-registry-pins-XXXXXX";

static int bpf(int command, union bpf_attr attr)
{
	int r = (int)syscall(SYS_bpf, command, &attr, sizeof(attr));

	ck_assert_int_ge(r, 0);
	return r;
}

static void put_name(const char *path, uint64_t id, const char *ns, const char *name)
{
	struct pp_name_record record = {
		.magic = PP_NAME_RECORD_MAGIC,
		.version = PP_NAME_RECORD_VERSION,
		.size = sizeof(record),
		.id = id,
		.owner = 4,
		.group = 8,
		.mode = 0600,
		.creator = 66,
		.flags = PP_EVENT_CONFIGURED,
	};
	_cleanup_free_ char *pin = NULL;
	uint32_t zero = 0;
	int fd;

	snprintf(record.ns, sizeof(record.ns), "%s", ns);
	snprintf(record.name, sizeof(record.name), "%s", name);
	ck_assert_int_gt(asprintf(&pin, "%s/%u", pins, (unsigned)id), 0);
	fd = bpf(BPF_MAP_CREATE, (union bpf_attr){ .map_type = BPF_MAP_TYPE_ARRAY,
						   .key_size = 4,
						   .value_size = sizeof(record),
						   .max_entries = 1 });
	bpf(BPF_MAP_UPDATE_ELEM, (union bpf_attr){ .map_fd = (uint32_t)fd,
						   .key = (uintptr_t)&zero,
						   .value = (uintptr_t)&record });
	bpf(BPF_OBJ_PIN, (union bpf_attr){ .pathname = (uintptr_t)pin, .bpf_fd = (uint32_t)fd });
	close(fd);
	put_link(path, pin);
}

static void make_registry(void)
{
	ck_assert_ptr_nonnull(mkdtemp(pins));
	ck_assert_int_eq(mount("bpf", pins, "bpf", 0, NULL), 0);
	ck_assert_ptr_nonnull(mkdtemp(registry));
	put("by-id", NULL);
	put("+last-id", "3");
	put("+new-4", NULL);
	put("space", NULL);
	put("by-id/3", NULL);
	put("by-id/3/info",
	    "id=3\nnamespace=space\nname=b\nevent=cpu-clock:u\nrecorder=overflow\nbuffer=524288\n"
	    "cpus=0-1\nsample_type=0x107\nperiod=4000\nflags=freq,all-cpus\nowner=0\ngroup=7\n"
	    "mode=0640\ncreated=123\nstate=paused\nfilter=pid == 1 && x != 2\nsources=3\nset=2\n"
	    "max_rate=1000\nmemory=1056768\ncreator=55\nlater=what is not known yet\n");
	put("by-id/3/stat", "cpu0 records=1 bytes=40 limited=1 missed=0\n"
			    "cpu1 records=2 bytes=80 limited=4 missed=2\n"
			    "total records=3 bytes=120 limited=5 missed=2+\n");
	put("other", NULL);
	put("by-id/2", NULL);
	put("by-id/2/info", "id=2\nnamespace=other\nname=a\nevent=x:y\nrecorder=generic\n");
	put("by-id/2/stat", "total records=3 bytes=120 limited=0 missed=unknown\n");
	put_link("other/a", "../by-id/2");
	put_link("space/b", "../by-id/3");
	put_name("by-id/2/name-2", 2, "other", "a");
	put_name("by-id/3/name-3", 3, "space", "b");
	/* A second name for b's rings, in another namespace; and some that have no record. */
	put_link("other/also-b", "../by-id/3");
	put_name("by-id/3/name-5", 5, "other", "also-b");
	put_link("other/half", "../by-id/3");
	put_name("by-id/3/name-6", 6, "../..", "etc");
	put("by-id/3/name-7", "no map");
	put_link("other/gone", "../by-id/4");
}

static void remove_registry(void)
{
	_cleanup_free_ char *command = NULL;

	ck_assert_int_gt(asprintf(&command, "rm -r %s", registry), 0);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(umount2(pins, MNT_DETACH), 0);
	ck_assert_int_eq(rmdir(pins), 0);
}

static void ignore_notice(struct perfpersist *p _unused_,
			  const struct perfpersist_notice *notice _unused_, void *userdata _unused_)
{
}

static void check_direct(struct perfpersist *p)
{
	struct perfpersist_info info = { .sz = sizeof(info) }, *infos = NULL;
	struct perfpersist_event *e = NULL;
	struct seen seen = { .again = 0 };
	size_t n;

	ck_assert_int_eq(perfpersist_fd(p), -1);
	ck_assert_int_eq(perfpersist_list(p, NULL, &infos, &n), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_str_eq(infos[0].name, "a");
	ck_assert(infos[0].missed_unknown && !infos[0].missed_at_least);
	ck_assert_uint_eq(infos[0].sources, 1);
	ck_assert_str_eq(infos[1].name, "b");
	ck_assert_uint_eq(infos[1].shares, 0);
	ck_assert_str_eq(infos[2].ns, "other");
	ck_assert_str_eq(infos[2].name, "also-b");
	ck_assert_uint_eq(infos[2].id, 5);
	ck_assert_uint_eq(infos[2].shares, 3);
	ck_assert_uint_eq(infos[2].memory, 0);
	ck_assert_uint_eq(infos[2].records, 3);
	ck_assert_uint_eq(infos[2].owner, 4);
	ck_assert_uint_eq(infos[2].group, 8);
	ck_assert_uint_eq(infos[2].mode, 0600);
	ck_assert_uint_eq(infos[2].creator, 66);
	ck_assert_uint_eq(infos[2].flags,
			  PERFPERSIST_FREQ | PERFPERSIST_ALL_CPUS | PERFPERSIST_CONFIGURED);
	free(infos);
	ck_assert_int_eq(perfpersist_list(p, "other", &infos, &n), 0);
	ck_assert_uint_eq(n, 2);
	free(infos);
	ck_assert_int_eq(perfpersist_list(p, "nowhere", &infos, &n), -ENOENT);
	ck_assert_int_eq(perfpersist_list(p, "../etc", &infos, &n), -EINVAL);
	ck_assert_int_eq(perfpersist_show(p, "space", "b", &info), 0);
	ck_assert_uint_eq(info.sample_type, 0x107);
	ck_assert_uint_eq(info.flags, PERFPERSIST_FREQ | PERFPERSIST_ALL_CPUS);
	ck_assert_uint_eq(info.mode, 0640);
	ck_assert_uint_eq(info.state, PERFPERSIST_PAUSED);
	ck_assert_uint_eq(info.recorder, PERFPERSIST_RECORDER_OVERFLOW);
	ck_assert_uint_eq(info.records, 3);
	ck_assert_uint_eq(info.missed, 2);
	ck_assert_uint_eq(info.limited, 5);
	ck_assert_str_eq(info.filter, "pid == 1 && x != 2");
	ck_assert_uint_eq(info.sources, 3);
	ck_assert_uint_eq(info.set, 2);
	ck_assert_uint_eq(info.max_rate, 1000);
	ck_assert_uint_eq(info.memory, 1056768);
	ck_assert_uint_eq(info.creator, 55);
	ck_assert(!info.missed_unknown && info.missed_at_least);
	ck_assert_int_eq(perfpersist_show(p, "space", "c", &info), -ENOENT);
	ck_assert_int_eq(perfpersist_show(p, "space", "..", &info), -EINVAL);
	ck_assert_int_eq(perfpersist_open_by_id(p, 3, &e), 0); /* it has no rings here */
	ck_assert_uint_eq(perfpersist_event_rings(e), 0);
	ck_assert_int_eq(perfpersist_event_info(e, &info), 0);
	ck_assert_str_eq(info.event, "cpu-clock:u");
	perfpersist_event_free(e);
	ck_assert_int_eq(perfpersist_open_by_id(p, 4, &e), -ENOENT);
	ck_assert_int_eq(perfpersist_open_by_id(p, 6, &e), -ENOENT);
	ck_assert_int_eq(perfpersist_show(p, "other", "half", &info), -ENOENT);
	ck_assert_int_eq(perfpersist_open_by_id(p, 5, &e), 0);
	ck_assert_int_eq(perfpersist_event_info(e, &info), 0);
	ck_assert_str_eq(info.name, "also-b");
	ck_assert_uint_eq(info.shares, 3);
	perfpersist_event_free(e);
	e = NULL;
	ck_assert_int_eq(perfpersist_open_copy(p, "space", "b", &e), -EOPNOTSUPP);
	ck_assert_int_eq(perfpersist_pause(p, "space", "b", true, NULL), -EOPNOTSUPP);
	ck_assert_int_eq(perfpersist_watch(p, NULL, ignore_notice, NULL), -EOPNOTSUPP);
	ck_assert_int_eq(perfpersist_delete(p, "space", "b", NULL), -EOPNOTSUPP);
	ck_assert_int_eq(perfpersist_show_async(p, "space", "b", note, &seen), 0);
	ck_assert_int_eq(seen.ran, 0);
	ck_assert_int_eq(perfpersist_dispatch(p), 1);
	ck_assert_uint_eq(seen.ids[0], 3);
}

START_TEST(test_direct)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .direct = true };
	struct perfpersist *p = NULL;

	opts.registry = registry;
	make_registry();
	ck_assert_int_eq(perfpersist_connect(&opts, &p), 0);
	check_direct(p);
	perfpersist_free(p);
	remove_registry();
	ck_assert_int_eq(perfpersist_connect(&opts, &p), -ENOENT);
}
END_TEST

START_TEST(test_direct_is_roots)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .direct = true };
	struct perfpersist *p = NULL;
	bool is_root = geteuid() == 0;

	opts.registry = "/tmp";
	if (is_root)
		ck_assert_int_eq(seteuid(61999), 0);
	ck_assert_int_eq(perfpersist_connect(&opts, &p), -EACCES);
	if (is_root) /* only root can look for leaks */
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

/* ── Claims ─────────────────────────────────────────────────────────────────────────────── */

static enum {
	CLAIMED,
	CLAIM_IS_DONE,
	CLAIM_IS_NOT_DONE,
	CLAIM_NOBODY_KNOWS,
	CLAIM_WITHOUT_ENGINE,
	CLAIM_IS_ENDING,
	CLAIM_ENDS
} claim_ends;
static struct server claim_server;

static void send_claim_page(int fd, uint32_t serial, uint32_t n)
{
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*reply));
	int fds[] = { 0, 1, 2 };

	reply->claim_reply.event = an_event(9);
	reply->claim_reply.event.set = 4;
	reply->claim_reply.total = 5;
	reply->claim_reply.rings = 2;
	server_send(fd, REPLY(PP_OP_CLAIM), serial, reply, fds, n);
}

static void answer_who_owns(void)
{
	_cleanup_close_ int fd = accept4(claim_server.listener, NULL, NULL, SOCK_CLOEXEC);
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_SHOW, body);

	ck_assert_uint_eq(body->name.id, 9);
	body->event = an_event(9);
	if (claim_ends == CLAIM_IS_ENDING)
		body->event.state = PP_EVENT_DELETING;
	if (claim_ends == CLAIM_IS_DONE)
		server_error(fd, serial, ENOENT, "There is no event with the id 9");
	else
		server_send(fd, REPLY(PP_OP_SHOW), serial, body, NULL, 0);
}

static void claim_script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	uint32_t serial = server_expect(fd, PP_OP_CLAIM, body);

	ck_assert_str_eq(body->claim_request.which.name, "name");
	ck_assert_uint_eq(body->claim_request.first, 0);
	send_claim_page(fd, serial, 3);
	/* From here on by its id: the name can be another event's. */
	serial = server_expect(fd, PP_OP_CLAIM, body);
	ck_assert_uint_eq(body->claim_request.which.id, 9);
	ck_assert_str_eq(body->claim_request.which.name, "");
	ck_assert_uint_eq(body->claim_request.first, 3);
	send_claim_page(fd, serial, 2);

	serial = server_expect(fd, PP_OP_CLAIM, body);
	ck_assert_uint_eq(body->claim_request.which.id, 9);
	ck_assert_uint_eq(body->claim_request.done, 1);
	ck_assert_uint_eq(body->claim_request.set, 4);
	if (claim_ends == CLAIMED) {
		send_claim_page(fd, serial, 0);
		return;
	}
	if (claim_ends == CLAIM_WITHOUT_ENGINE) {
		server_error(fd, serial, EINPROGRESS, "Nobody can tell; look for the id 9");
		recv(fd, body, 1, 0); /* until the caller has read it, and goes */
		return;
	}
	if (claim_ends == CLAIM_NOBODY_KNOWS)
		claim_server.listener = close_fd(claim_server.listener);
	shutdown(fd, SHUT_RDWR);
	if (claim_ends != CLAIM_NOBODY_KNOWS)
		answer_who_owns();
}

/* The daemon can end before it answers that the event is the caller's. */
START_TEST(test_claim)
{
	static const int result[] = { 0, 0, -ECONNRESET, 1, 1, 1 };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist *p;
	size_t n, n_rings;
	int *fds;

	claim_ends = _i;
	server_start(&claim_server, claim_script);
	p = server_connect(&claim_server);
	ck_assert_int_eq(perfpersist_claim(p, "space", "name", &fds, &n, &n_rings, &info), 0);
	ck_assert_uint_eq(n, 5);
	ck_assert_uint_eq(n_rings, 2);
	ck_assert_uint_eq(info.id, 9);
	ck_assert_int_eq(perfpersist_claim_end(p, &info), result[_i]);
	if (result[_i])
		ck_assert_ptr_nonnull(strstr(perfpersist_error(p), result[_i] < 0
									   ? "still has the event"
									   : "look for the id 9"));
	for (size_t i = 0; i < n; i++)
		close_fd(fds[i]);
	free(fds);
	perfpersist_free(p);
	server_end(&claim_server);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("connection");
	TCase *tc = tcase_create("connection");

	tcase_add_test(tc, test_not_running);
	tcase_add_test(tc, test_calls);
	tcase_add_test(tc, test_verbs);
	tcase_add_test(tc, test_limits);
	tcase_add_test(tc, test_list);
	tcase_add_test(tc, test_open);
	tcase_add_loop_test(tc, test_open_bad, 0, 5);
	tcase_add_loop_test(tc, test_end, 0, 8);
	tcase_add_test(tc, test_restarted_in_between);
	tcase_add_loop_test(tc, test_claim, 0, CLAIM_ENDS);
	tcase_add_test(tc, test_async);
	tcase_add_test(tc, test_cancelled);
	tcase_add_test(tc, test_gone_with_requests);
	tcase_add_test(tc, test_full_socket);
	add_test_unless(no_bpffs(), tc, test_direct);
	tcase_add_test(tc, test_direct_is_roots);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
