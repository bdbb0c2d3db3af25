// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes sockets by path, and connects to them. Must not know the protocols. */
#include "daemon/broker/foreground/sockets.h"

#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/places.h"

static int make_address(const char *path, struct sockaddr_un *ret)
{
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return 0;
}

static int listen_at(const char *path, mode_t mode, uid_t owner, int *ret)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	mode_t mask;
	int r;

	if (fd < 0)
		return -errno;
	r = make_address(path, &address);
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	/* Closed to everyone until owner and mode are set. */
	mask = umask(0777);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	if (r < 0)
		return r;
	if (chown(path, owner, (gid_t)-1) < 0 || chmod(path, mode) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

int socket_listen(const char *instance, const char *leaf, mode_t mode, uid_t owner, int *ret)
{
	char path[PATH_MAX];
	int r = pp_place(instance, leaf, path, sizeof(path));

	if (r >= 0)
		r = listen_at(path, mode, owner, ret);
	if (r < 0)
		log_error("Cannot listen on %s: %s.", path, strerror(-r));
	return r;
}

int socket_connect(const char *path)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	int r;

	if (fd < 0)
		return -errno;
	r = make_address(path, &address);
	if (r < 0)
		return r;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

bool socket_answers(const char *path)
{
	_cleanup_close_ int fd = socket_connect(path);

	return fd >= 0 || fd == -EAGAIN; /* a full queue has an owner */
}
