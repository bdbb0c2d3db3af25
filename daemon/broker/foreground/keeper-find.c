// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Greets the process that listens on the keeper's socket and learns its process id. The keeper is
 * the child of a launcher that may have ended. Must not know the keeper's contents.
 */
#include "daemon/broker/foreground/keeper-find.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/broker/foreground/sockets.h"
#include "daemon/log.h"
#include "proto/keep.h"
#include "proto/macro.h"
#include "proto/packet.h"
#include "proto/places.h"

#define PATIENCE_MSEC 3000 /* it answers at once, or after writing a long table */

static int greet(int fd, pid_t *ret_pid)
{
	_cleanup_free_ struct pp_keep_request *request = calloc(1, sizeof(*request));
	_cleanup_free_ struct pp_keep_answer *answer = calloc(1, sizeof(*answer));
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int r;

	if (!request || !answer)
		return -ENOMEM;
	request->abi = PP_KEEP_ABI;
	request->type = PP_KEEP_HELLO;
	r = pp_packet_send(fd, request, sizeof(*request), NULL, 0);
	if (r < 0)
		return r;
	if (poll(&p, 1, PATIENCE_MSEC) <= 0)
		return -ETIMEDOUT;
	n = pp_packet_receive(fd, answer, sizeof(*answer), 0, NULL, 0);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return -ENOENT; /* it was about to end */
	if (n != sizeof(*answer) || answer->error || answer->pid == 0 || answer->pid > INT_MAX)
		return -EBADMSG;
	*ret_pid = (pid_t)answer->pid;
	return 0;
}

/* The kernel closes the connection when the process ends. So while the connection stands, the pid
 * still belongs to the process that sent it. */
static int open_process(int fd, pid_t pid)
{
	_cleanup_close_ int process = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (process < 0)
		return errno == ESRCH ? -ENOENT : -errno;
	if (poll(&p, 1, 0) != 0)
		return -ENOENT;
	return TAKE_FD(process);
}

int keeper_find(const char *instance)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	pid_t pid = 0;
	int r = pp_place(instance, "/keeper", path, sizeof(path));

	if (r < 0)
		return r;
	fd = socket_connect(path);
	if (fd < 0 && fd != -EAGAIN)
		return -ENOENT;
	r = fd < 0 ? fd : greet(fd, &pid);
	if (r >= 0)
		r = open_process(fd, pid);
	if (r >= 0 || r == -ENOENT)
		return r;
	log_warning(
		"The process that listens on %s does not answer like the keeper of sideband (%s); "
		"a new keeper takes its place.",
		path, strerror(-r));
	return -ENOENT;
}
