// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets and descriptors over a socketpair: delivery, and no leak without it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proto/macro.h"
#include "proto/packet.h"
#include "tests/unit/needs.h"

static int sv[2];
static char buf[64];
static struct pp_fds fds;
static size_t open_before;

static size_t open_fds(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	return n;
}

static void setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	fds.n = 0;
	open_before = open_fds();
}

static void teardown(void)
{
	sv[0] = close_fd(sv[0]);
	sv[1] = close_fd(sv[1]);
}

/* Sends "hello" with n copies of stderr. */
static void send_hello(size_t n)
{
	int copies[PP_FDS_MAX];

	for (size_t i = 0; i < n; i++)
		copies[i] = STDERR_FILENO;
	ck_assert_int_eq(pp_packet_send(sv[0], "hello", 5, copies, n), 0);
}

static ssize_t receive(size_t max_fds)
{
	return pp_packet_receive(sv[1], buf, sizeof(buf), max_fds, &fds, MSG_DONTWAIT);
}

START_TEST(bytes_arrive)
{
	send_hello(0);
	ck_assert_int_eq(receive(PP_FDS_MAX), 5);
	ck_assert_int_eq(memcmp(buf, "hello", 5), 0);
	ck_assert_uint_eq(fds.n, 0);
	ck_assert_int_eq(pp_packet_send(sv[0], "x", 1, NULL, 0), 0);
	ck_assert_int_eq(pp_packet_receive(sv[1], buf, 1, 0, NULL, 0), 1);
}
END_TEST

START_TEST(fds_arrive_in_order_and_cloexec)
{
	const int sent[] = { STDERR_FILENO, sv[0], sv[1] };

	ck_assert_int_eq(pp_packet_send(sv[0], "hello", 5, sent, 3), 0);
	ck_assert_int_eq(receive(3), 5);
	ck_assert_uint_eq(fds.n, 3);
	ck_assert_uint_eq(open_fds(), open_before + 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(fcntl(fds.fd[i], F_GETFD), FD_CLOEXEC);
	/* The second descriptor is the sending end itself: data written to it arrives at sv[1]. */
	ck_assert_int_eq(pp_packet_send(fds.fd[1], "twice", 5, NULL, 0), 0);
	pp_fds_close(&fds);
	ck_assert_uint_eq(fds.n, 0);
	ck_assert_uint_eq(open_fds(), open_before);
	ck_assert_int_eq(receive(0), 5);
	ck_assert_int_eq(memcmp(buf, "twice", 5), 0);
}
END_TEST

START_TEST(as_many_fds_as_the_kernel_passes)
{
	int too_many[PP_FDS_MAX + 64] = { 0 };

	send_hello(PP_FDS_MAX);
	ck_assert_int_eq(receive(PP_FDS_MAX), 5);
	ck_assert_uint_eq(fds.n, PP_FDS_MAX);
	pp_fds_close(&fds);
	ck_assert_uint_eq(open_fds(), open_before);
	ck_assert_int_eq(pp_packet_send(sv[0], "x", 1, too_many, PP_FDS_MAX + 1), -EINVAL);
	ck_assert_int_eq(pp_packet_send(sv[0], "x", 1, too_many, ARRAY_SIZE(too_many)), -EINVAL);
}
END_TEST

/* One more than allowed: the padding of the control data lets it through. */
START_TEST(too_many_fds_are_closed)
{
	static const struct {
		size_t sent, max;
	} cases[] = { { 1, 0 }, { 2, 1 }, { 3, 1 }, { 4, 3 }, { 5, 2 }, { 253, 252 }, { 253, 0 } };

	send_hello(cases[_i].sent);
	ck_assert_int_eq(receive(cases[_i].max), -EBADMSG);
	ck_assert_uint_eq(fds.n, 0);
	ck_assert_uint_eq(open_fds(), open_before);
}
END_TEST

START_TEST(truncated_packet_closes_its_fds)
{
	send_hello(2);
	ck_assert_int_eq(pp_packet_receive(sv[1], buf, 4, 2, &fds, 0), -EBADMSG);
	ck_assert_uint_eq(open_fds(), open_before);
	send_hello(0);
	ck_assert_int_eq(pp_packet_receive(sv[1], buf, 4, 0, NULL, 0), -EBADMSG);
}
END_TEST

/* The kernel could not install all of them: some arrived, some did not. */
START_TEST(full_fd_table_is_told)
{
	struct rlimit old, tight;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = (struct rlimit){ .rlim_cur = MAX(sv[0], sv[1]) + 3, .rlim_max = old.rlim_max };
	send_hello(20);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	ck_assert_int_eq(receive(20), -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_uint_eq(open_fds(), open_before);
}
END_TEST

START_TEST(other_control_data_is_a_fault)
{
	int on = 1;

	ck_assert_int_eq(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	send_hello(1);
	ck_assert_int_eq(receive(PP_FDS_MAX), -EBADMSG);
	ck_assert_uint_eq(open_fds(), open_before);
	send_hello(0);
	ck_assert_int_eq(receive(0), -EBADMSG);
}
END_TEST

START_TEST(empty_packets)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { .iov_base = buf, .iov_len = 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	ck_assert_int_eq(pp_packet_send(sv[0], "", 0, NULL, 0), -EINVAL);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &sv[0], sizeof(int));
	ck_assert_int_eq(sendmsg(sv[0], &msg, 0), 0);
	ck_assert_int_eq(receive(1), -EBADMSG);
	ck_assert_uint_eq(open_fds(), open_before);
}
END_TEST

START_TEST(end_of_the_connection)
{
	sv[0] = close_fd(sv[0]);
	ck_assert_int_eq(receive(1), 0);
	ck_assert_uint_eq(fds.n, 0);
	/* No SIGPIPE, which would kill this test. */
	ck_assert_int_eq(pp_packet_send(sv[1], "x", 1, NULL, 0), -EPIPE);
}
END_TEST

START_TEST(nothing_blocks_that_must_not)
{
	int r;

	ck_assert_int_eq(receive(0), -EAGAIN);
	ck_assert_int_eq(fcntl(sv[0], F_SETFL, O_NONBLOCK), 0);
	do
		r = pp_packet_send(sv[0], "hello", 5, NULL, 0);
	while (r == 0);
	ck_assert_int_eq(r, -EAGAIN);
}
END_TEST

START_TEST(our_own_bugs_are_refused)
{
	ck_assert_int_eq(pp_packet_receive(sv[1], buf, 4, PP_FDS_MAX + 1, &fds, 0), -EINVAL);
	ck_assert_int_eq(pp_packet_receive(sv[1], buf, 4, 1, NULL, 0), -EINVAL);
	ck_assert_int_eq(pp_packet_receive(-EBADF, buf, 4, 0, NULL, 0), -EBADF);
	ck_assert_int_eq(pp_packet_send(-EBADF, buf, 4, NULL, 0), -EBADF);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("packet");
	TCase *t = tcase_create("packet");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, bytes_arrive);
	tcase_add_test(t, fds_arrive_in_order_and_cloexec);
	tcase_add_test(t, as_many_fds_as_the_kernel_passes);
	tcase_add_loop_test(t, too_many_fds_are_closed, 0, 7);
	tcase_add_test(t, truncated_packet_closes_its_fds);
	tcase_add_test(t, full_fd_table_is_told);
	tcase_add_test(t, other_control_data_is_a_fault);
	tcase_add_test(t, empty_packets);
	tcase_add_test(t, end_of_the_connection);
	tcase_add_test(t, nothing_blocks_that_must_not);
	tcase_add_test(t, our_own_bugs_are_refused);
	suite_add_tcase(s, t);
	return run_suite(s);
}
