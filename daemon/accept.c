// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/accept.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/dispose.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define TELL_EVERY 60 /* seconds: a peer that tries again and again must not fill the log */

static bool is_welcome(int fd, const struct accept_rule *rule)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	return peer.uid == 0 || (peer.uid == rule->uid && (!rule->pid || peer.pid == rule->pid));
}

int accept_from(int listener, const struct accept_rule *rule, int flags)
{
	static uint64_t told;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	if (is_welcome(fd, rule))
		return fd;
	if (log_is_due(&told, TELL_EVERY))
		log_warning("A process that is not the broker was turned away.");
	dispose_fd(fd);
	return -EPERM;
}

void accept_instead(int listener, const struct accept_rule *rule, int *connection)
{
	int fd = accept_from(listener, rule, 0);

	if (fd < 0)
		return;
	close_fd(*connection);
	*connection = fd;
}
