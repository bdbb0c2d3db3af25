// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/broker/link/link.h"

#include <string.h>

#include "proto/macro.h"

int link_init(struct link *l, sd_event *loop, const char *path)
{
	size_t n = strlen(path);

	*l = (struct link){ .fd = -EBADF, .address.sun_family = AF_UNIX };
	if (n >= sizeof(l->address.sun_path))
		return -ENAMETOOLONG;
	l->loop = sd_event_ref(loop);
	memcpy(l->address.sun_path, path, n + 1);
	l->address_size = offsetof(struct sockaddr_un, sun_path) + n + 1;
	return 0;
}

int link_connect(struct link *l, sd_event_io_handler_t handler, void *userdata)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&l->address, l->address_size) < 0)
		return -errno;
	r = sd_event_add_io(l->loop, &l->io, fd, EPOLLIN, handler, userdata);
	if (r < 0)
		return r;
	l->fd = TAKE_FD(fd);
	return 0;
}

void link_close(struct link *l)
{
	l->io = sd_event_source_disable_unref(l->io);
	l->fd = close_fd(l->fd);
}

void link_done(struct link *l)
{
	if (!l->loop)
		return;
	link_close(l);
	l->loop = sd_event_unref(l->loop);
}
