// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files that hostile clients send: TCP sockets whose last close would linger for an hour. No close
 * may wait, or the suite's timeout fails the test.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "daemon/dispose.h"
#include "tests/unit/broker-fixture.h"
#include "tests/unit/needs.h"

#define STRANGER 65534
#define HOUR 3600

/* Leaves bytes unsent, so that its close lingers. */
static int lingering_socket(int *ret_other)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = HOUR };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	static const char bytes[1 << 16];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	*ret_other = accept(listener, NULL, NULL);
	ck_assert_int_ge(*ret_other, 0);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* The packet carries the last reference. Returns the other end. */
static int send_along(int socket, const void *packet, size_t size)
{
	int other, fd = lingering_socket(&other);

	ck_assert_int_eq(pp_packet_send(socket, packet, size, &fd, 1), 0);
	close(fd); /* not the last reference */
	return other;
}

START_TEST(a_socket_with_a_file_in_it)
{
	struct pollfd hangup = { 0 };
	int pair[2], other;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert(!pp_packet_brings_fds(pair[0]));
	other = send_along(pair[1], "x", 1);
	ck_assert(pp_packet_brings_fds(pair[0]));
	ck_assert_int_eq(dispose_fd(pair[0]), -EBADF);
	ck_assert_int_eq(fcntl(pair[0], F_GETFD), -1);
	/* The thread had the last reference. */
	hangup.fd = pair[1];
	ck_assert_int_eq(poll(&hangup, 1, -1), 1);
	ck_assert_int_eq(dispose_fd(-EBADF), -EBADF);
	close(pair[1]);
	close(other);
}
END_TEST

START_TEST(kept_out)
{
	int pair[2], other, fd;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert(dispose_keep_out(pair[0]));
	fd = lingering_socket(&other);
	ck_assert_int_eq(pp_packet_send(pair[1], "x", 1, &fd, 1), -EPERM);
	ck_assert_int_eq(pp_packet_send(pair[1], "x", 1, NULL, 0), 0);
	close(other);
	dispose_fd(fd);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

/* ── a broker whose kernel keeps none out ───────────────────────────────────────────────── */

static struct broker b;
static struct client root, stranger;

static void begin(void)
{
	broker_start(&b);
	b.peers.files_come = true;
	client_begin(&b, &root, 0);
	client_begin(&b, &stranger, STRANGER);
}

static void end(int other)
{
	ck_assert_int_eq(client_call(&root, PP_OP_PING, NULL), 0);
	client_end(&stranger);
	client_end(&root);
	close(other);
	broker_end(&b);
}

START_TEST(along_with_a_request)
{
	uint8_t packet[64];
	struct pp_header header = { .opcode = PP_OP_PING, .serial = 1 };
	ssize_t size = pp_encode(&header, NULL, packet, sizeof(packet));
	int other;

	begin();
	ck_assert_int_eq(client_call(&stranger, PP_OP_PING, NULL), 0);
	other = send_along(stranger.fd, packet, size);
	ck_assert_int_eq(client_receive(&stranger), 1);
	end(other);
}
END_TEST

START_TEST(behind_what_is_no_request)
{
	int other;

	begin();
	ck_assert_int_eq(pp_packet_send(stranger.fd, "no request", 10, NULL, 0), 0);
	other = send_along(stranger.fd, "x", 1);
	ck_assert_int_eq(client_receive(&stranger), 1);
	end(other);
}
END_TEST

START_TEST(from_one_too_many)
{
	int pair[2], other;

	begin();
	b.config.max_connections_per_user = 1;
	broker_limits(&b);
	ck_assert_int_eq(seteuid(STRANGER), 0);
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	ck_assert_int_eq(seteuid(0), 0);
	other = send_along(pair[1], "x", 1);
	ck_assert_int_eq(peer_new(&b.peers, pair[0]), -EDQUOT);
	peers_close(&b.peers, pair[0]);
	close(pair[1]);
	end(other);
}
END_TEST

static const char *no_passrights(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool able = dispose_keep_out(fd);

	close(fd);
	return able ? NULL : "this kernel has no SO_PASSRIGHTS (6.16)";
}

int main(void)
{
	Suite *s = suite_create("dispose");
	TCase *t = tcase_create("all");

	tcase_add_test(t, a_socket_with_a_file_in_it);
	add_test_unless(no_passrights(), t, kept_out);
	add_test_unless(no_root(), t, along_with_a_request);
	add_test_unless(no_root(), t, behind_what_is_no_request);
	add_test_unless(no_root(), t, from_one_too_many);
	suite_add_tcase(s, t);
	return run_suite(s);
}
