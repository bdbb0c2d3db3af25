// SPDX-License-Identifier: LGPL-2.1-or-later
#include "memfile.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "macro.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

int pp_memfile_new(const char *name, size_t size, int *ret)
{
	static const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	_cleanup_close_ int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

int pp_memfile_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

int pp_memfile_finish(int fd, int *ret)
{
	char path[64];
	int r, ro;

	r = pp_memfile_seal(fd);
	if (r < 0)
		return r;
	if (fchmod(fd, 0444) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return -errno;
	*ret = ro;
	return 0;
}
