// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns how a file in memory is made and sealed. */
#include "daemon/keeper/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "proto/macro.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define NAME "perfpersist-sideband"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

int memfile_new(int *ret)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

int memfile_write(int fd, const void *bytes, size_t size, size_t at)
{
	while (size > 0) {
		ssize_t n = pwrite(fd, bytes, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes = (const char *)bytes + n;
		at += (size_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* By the new descriptor it cannot be written, nor by it opened again for writing. */
int memfile_finish(int fd, int *ret)
{
	char path[64];
	int ro;

	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0 || fchmod(fd, 0444) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return -errno;
	*ret = ro;
	return 0;
}
