// SPDX-License-Identifier: LGPL-2.1-or-later
#include "io.h"

#include <errno.h>
#include <unistd.h>

/* The meaning of a call's result n: 1: continue; 0: the end; -errno. */
static int went(ssize_t n)
{
	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	return n > 0;
}

int pp_write_all(int fd, const void *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part = write(fd, (const char *)bytes + done, n - done);
		int r = went(part);

		if (r <= 0)
			return r < 0 ? r : -EIO;
		done += part > 0 ? (size_t)part : 0;
	}
	return 0;
}

int pp_pwrite_all(int fd, const void *bytes, size_t n, uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part =
			pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done));
		int r = went(part);

		if (r <= 0)
			return r < 0 ? r : -EIO;
		done += part > 0 ? (size_t)part : 0;
	}
	return 0;
}

ssize_t pp_read_all(int fd, void *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part = read(fd, (char *)bytes + done, n - done);
		int r = went(part);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		done += part > 0 ? (size_t)part : 0;
	}
	return (ssize_t)done;
}

ssize_t pp_pread_all(int fd, void *bytes, size_t n, uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part = pread(fd, (char *)bytes + done, n - done, (off_t)(offset + done));
		int r = went(part);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		done += part > 0 ? (size_t)part : 0;
	}
	return (ssize_t)done;
}
