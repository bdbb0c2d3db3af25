// SPDX-License-Identifier: LGPL-2.1-or-later
/* Moves packets and their descriptors. Owns every descriptor from the moment the kernel installs it
 * until the caller has it; must not know a packet's contents. */
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "macro.h"

/* Room for as many descriptors as the kernel ever passes at once, aligned for cmsghdr. */
union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(PP_FDS_MAX * sizeof(int))];
};

void pp_fds_close(struct pp_fds *fds)
{
	for (size_t i = 0; i < fds->n; i++)
		fds->fd[i] = close_fd(fds->fd[i]);
	fds->n = 0;
}

int pp_packet_send(int socket, const void *buf, size_t size, const int *fds, size_t n_fds)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t n;

	/* An empty packet would look like the end of the connection. */
	if (size == 0 || n_fds > PP_FDS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EMSGSIZE;
}

/* Takes all descriptors out of the control data before anything is checked: a descriptor left there
 * leaks. Returns false if there was other control data as well. */
static bool take_fds(struct msghdr *msg, struct pp_fds *fds)
{
	bool clean = true;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			clean = false;
			continue;
		}
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		n = MIN(n, PP_FDS_MAX - fds->n);
		memcpy(fds->fd + fds->n, CMSG_DATA(c), n * sizeof(int));
		fds->n += n;
	}
	return clean;
}

ssize_t pp_packet_receive(int socket, void *buf, size_t cap, size_t max_fds, struct pp_fds *ret_fds,
			  int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = cap };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	union control control;
	bool clean;
	ssize_t n;

	if (max_fds > PP_FDS_MAX || (max_fds > 0 && !ret_fds))
		return -EINVAL;
	/*
	 * If none are expected, the kernel gets no room for descriptors: it drops them on its side
	 * and sets MSG_CTRUNC, so a stranger's descriptors never enter our table. Dropping them
	 * still takes our time: see pp_packet_brings_fds().
	 */
	if (max_fds > 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(max_fds * sizeof(int));
	}
	do
		n = recvmsg(socket, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	clean = take_fds(&msg, &fds);
	/* There was room for more, so the kernel found no place in our table. (A security module that refuses
	 * one looks the same.) */
	if (clean && msg.msg_flags & MSG_CTRUNC && fds.n < max_fds)
		return -EMFILE;
	if (!clean || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || fds.n > max_fds ||
	    (n == 0 && fds.n > 0))
		return -EBADMSG;
	if (ret_fds) {
		memcpy(ret_fds->fd, fds.fd, fds.n * sizeof(int));
		ret_fds->n = fds.n;
		fds.n = 0;
	}
	return n;
}

/* MSG_CTRUNC: there was control data, for which this call has no room. */
bool pp_packet_brings_fds(int socket)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = sizeof(byte) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(socket, &msg, MSG_PEEK | MSG_DONTWAIT) >= 0 && msg.msg_flags & MSG_CTRUNC;
}
