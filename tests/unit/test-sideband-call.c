// SPDX-License-Identifier: LGPL-2.1-or-later
/* The library's call for sideband, against a daemon and a keeper that follow a script. */
#include "fake-server.h"
#include "proto/keep.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "needs.h"

static int some_file(void)
{
	return open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

/* ── of a daemon ────────────────────────────────────────────────────────────────────────── */

static void daemon_script(int fd)
{
	_cleanup_free_ union pp_body *body = malloc(sizeof(*body));
	struct pp_msg_sideband_reply reply = {
		.keeping = 1,
		.pid = 4711,
		.size = 77,
		.began = 1,
		.complete = 2,
		.lost = 3,
		.forgotten = 4,
		.processes = 5,
		.ended = 6,
		.memory = 7,
		.max_memory = 8,
		.cpu_time = 9,
	};
	_cleanup_close_ int file = some_file();
	const uint16_t op = PP_OP_SIDEBAND, answer = PP_OP_SIDEBAND | PP_OP_REPLY;
	const struct pp_msg_sideband_reply nothing = { 0 };
	uint32_t serial = server_expect(fd, op, body);

	ck_assert_uint_eq(body->sideband_request.since, 10);
	ck_assert_uint_eq(body->sideband_request.until, 20);
	ck_assert_uint_eq(body->sideband_request.flags, 0);
	server_send(fd, answer, serial, &reply, &file, 1);
	serial = server_expect(fd, op, body);
	ck_assert_uint_eq(body->sideband_request.flags, PP_SIDEBAND_STATUS);
	ck_assert_uint_eq(body->sideband_request.since, 0);
	reply.size = 0;
	server_send(fd, answer, serial, &reply, NULL, 0);
	server_send(fd, answer, server_expect(fd, op, body), &nothing, NULL, 0);
	server_error(fd, server_expect(fd, op, body), EACCES, "No.");
	/* A file without a size, and a size without a file. */
	server_send(fd, answer, server_expect(fd, op, body), &nothing, &file, 1);
	reply.size = 1;
	server_send(fd, answer, server_expect(fd, op, body), &reply, NULL, 0);
}

START_TEST(of_a_daemon)
{
	struct perfpersist_sideband_info info = { .sz = sizeof(info) }, small = { .sz = 8 };
	struct perfpersist *p;
	struct server s;
	int fd = -2;

	server_start(&s, daemon_script);
	p = server_connect(&s);
	/* Invalid arguments are not sent. */
	ck_assert_int_eq(perfpersist_sideband(p, 20, 10, &info, &fd), -EINVAL);
	ck_assert_int_eq(perfpersist_sideband(p, 0, 0, &small, &fd), -EINVAL);
	ck_assert_int_eq(fd, -2);
	ck_assert_int_eq(perfpersist_sideband(p, 10, 20, &info, &fd), 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	ck_assert(info.keeping);
	ck_assert_uint_eq(info.pid, 4711);
	ck_assert_uint_eq(info.size, 77);
	ck_assert_uint_eq(info.began, 1);
	ck_assert_uint_eq(info.complete, 2);
	ck_assert_uint_eq(info.lost, 3);
	ck_assert_uint_eq(info.forgotten, 4);
	ck_assert_uint_eq(info.processes, 5);
	ck_assert_uint_eq(info.ended, 6);
	ck_assert_uint_eq(info.memory, 7);
	ck_assert_uint_eq(info.max_memory, 8);
	ck_assert_uint_eq(info.cpu_time, 9);
	ck_assert_int_eq(perfpersist_sideband(p, 10, 20, &info, NULL), 0);
	ck_assert_uint_eq(info.size, 0);
	ck_assert_int_eq(perfpersist_sideband(p, 0, 0, &info, &fd), 0);
	ck_assert_int_eq(fd, -1);
	ck_assert(!info.keeping);
	fd = -2;
	ck_assert_int_eq(perfpersist_sideband(p, 0, 0, NULL, &fd), -EACCES);
	ck_assert_str_eq(perfpersist_error(p), "No.");
	ck_assert_int_eq(perfpersist_sideband(p, 0, 0, &info, &fd), -EBADMSG);
	ck_assert_int_eq(perfpersist_sideband(p, 0, 0, &info, &fd), -EBADMSG);
	ck_assert_int_eq(fd, -2);
	perfpersist_free(p);
	server_end(&s);
}
END_TEST

/* ── of a keeper ────────────────────────────────────────────────────────────────────────── */

static uint64_t keeper_expect(int fd, enum pp_keep_type type, struct pp_keep_request *r)
{
	ck_assert_int_eq(recv(fd, r, sizeof(*r), 0), sizeof(*r));
	ck_assert_uint_eq(r->abi, PP_KEEP_ABI);
	ck_assert_uint_eq(r->type, type);
	return r->serial;
}

static void keeper_answer(int fd, const struct pp_keep_answer *a, int file)
{
	ck_assert_int_eq(pp_packet_send(fd, a, sizeof(*a), &file, file >= 0 ? 1 : 0), 0);
}

static void keeper_script(int fd)
{
	struct pp_keep_answer a = { .abi = PP_KEEP_ABI, .pid = 4711, .status.keeping = 1 };
	_cleanup_close_ int file = some_file();
	struct pp_keep_request r;

	a.serial = keeper_expect(fd, PP_KEEP_HELLO, &r);
	keeper_answer(fd, &a, -1);
	a.serial = keeper_expect(fd, PP_KEEP_TAKE, &r);
	ck_assert_uint_eq(r.since, 10);
	ck_assert_uint_eq(r.until, 20);
	a.size = 77;
	a.status.processes = 5;
	keeper_answer(fd, &a, file);
}

static void keeper_of_another_version(int fd)
{
	struct pp_keep_answer a = { .abi = PP_KEEP_ABI + 1 };
	struct pp_keep_request r;

	a.serial = keeper_expect(fd, PP_KEEP_HELLO, &r);
	keeper_answer(fd, &a, -1);
	/* It gets no other request. */
	ck_assert_int_eq(recv(fd, &r, sizeof(r), 0), 0);
}

static void keeper_without_anything(int fd)
{
	struct pp_keep_answer a = { .abi = PP_KEEP_ABI, .pid = 4711 };
	struct pp_keep_request r;

	a.serial = keeper_expect(fd, PP_KEEP_HELLO, &r);
	keeper_answer(fd, &a, -1);
	ck_assert_int_eq(recv(fd, &r, sizeof(r), 0), 0);
}

static void keeper_that_fails(int fd)
{
	struct pp_keep_answer a = { .abi = PP_KEEP_ABI, .status.keeping = 1 };
	struct pp_keep_request r;

	a.serial = keeper_expect(fd, PP_KEEP_HELLO, &r);
	keeper_answer(fd, &a, -1);
	a.serial = keeper_expect(fd, PP_KEEP_TAKE, &r);
	a.error = ENOMEM;
	keeper_answer(fd, &a, -1);
}

static void keeper_that_dies(int fd)
{
	struct pp_keep_request r;

	keeper_expect(fd, PP_KEEP_HELLO, &r);
}

/* With an empty registry. */
static int ask_directly(void (*script)(int fd), struct perfpersist_sideband_info *info, int *ret_fd)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .direct = true };
	struct perfpersist *p = NULL;
	char keeper[64], registry[64];
	struct server s;
	int r;

	server_start(&s, script);
	snprintf(registry, sizeof(registry), "%s/registry", s.dir);
	snprintf(keeper, sizeof(keeper), "%s/keeper", s.dir);
	ck_assert_int_eq(mkdir(registry, 0755), 0);
	ck_assert_int_eq(rename(s.socket, keeper), 0);
	opts.registry = registry;
	ck_assert_int_eq(perfpersist_connect(&opts, &p), 0);
	*info = (struct perfpersist_sideband_info){ .sz = sizeof(*info) };
	*ret_fd = -2;
	r = perfpersist_sideband(p, 10, 20, info, ret_fd);
	perfpersist_free(p);
	server_end(&s);
	unlink(keeper);
	rmdir(registry);
	rmdir(s.dir);
	return r;
}

START_TEST(of_a_keeper)
{
	struct perfpersist_sideband_info info;
	int fd;

	ck_assert_int_eq(ask_directly(keeper_script, &info, &fd), 0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert(info.keeping);
	ck_assert_uint_eq(info.pid, 4711);
	ck_assert_uint_eq(info.size, 77);
	ck_assert_uint_eq(info.processes, 5);
	ck_assert_int_eq(ask_directly(keeper_of_another_version, &info, &fd), -EAGAIN);
	ck_assert_int_eq(fd, -2);
	ck_assert_int_eq(ask_directly(keeper_without_anything, &info, &fd), 0);
	ck_assert_int_eq(fd, -1);
	ck_assert(!info.keeping);
	ck_assert_uint_eq(info.pid, 4711);
	ck_assert_int_eq(ask_directly(keeper_that_fails, &info, &fd), -ENOMEM);
	ck_assert_int_eq(ask_directly(keeper_that_dies, &info, &fd), -EAGAIN);
}
END_TEST

START_TEST(nobody_there)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .direct = true };
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };
	char dir[] = "/tmp/test-sideband-XXXXXX";
	struct perfpersist *p = NULL;
	int fd = -2;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	opts.registry = dir;
	ck_assert_int_eq(perfpersist_connect(&opts, &p), 0);
	ck_assert_int_eq(perfpersist_sideband(p, 0, 0, &info, &fd), 0);
	ck_assert_int_eq(fd, -1);
	ck_assert(!info.keeping);
	ck_assert_uint_eq(info.pid, 0);
	perfpersist_free(p);
	rmdir(dir);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sideband-call");
	TCase *t = tcase_create("all");

	tcase_add_test(t, of_a_daemon);
	add_test_unless(no_root(), t, of_a_keeper);
	add_test_unless(no_root(), t, nobody_there);
	suite_add_tcase(s, t);
	return run_suite(s);
}
