// SPDX-License-Identifier: LGPL-2.1-or-later
/* The file +sideband of a save. Reads only its header. */
#include "client/local/saved-sideband.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "client/local/saved-file.h"
#include "client/local/saved-write.h"
#include "client/public.h"
#include "proto/macro.h"
#include "proto/memfile.h"
#include "proto/sideband.h"

#define NAME "+sideband"
#define SIZE_MAX_BYTES (16ULL << 30)

int saved_write_sideband(int dir_fd, int from, uint64_t size)
{
	static const struct saved_rights owner_alone = { .group = (gid_t)-1, .mode = 0600 };
	void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, from, 0);
	int r;

	if (bytes == MAP_FAILED)
		return -errno;
	r = saved_write_file(dir_fd, NAME, bytes, size, &owner_alone);
	munmap(bytes, size);
	return r;
}

/* ── Reading ────────────────────────────────────────────────────────────────────────────── */

static int header_read(int fd, struct pp_sideband_header *ret)
{
	ssize_t n = pread(fd, ret, sizeof(*ret), 0);
	struct stat st;

	if (n < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (n != sizeof(*ret) || ret->magic != PP_SIDEBAND_MAGIC ||
	    ret->version != PP_SIDEBAND_VERSION || ret->size > (uint64_t)st.st_size)
		return -EBADMSG;
	return ret->size > SIZE_MAX_BYTES ? -EFBIG : 0;
}

static int copy(int from, int to, uint64_t size)
{
	off_t at = 0;

	while ((uint64_t)at < size) {
		ssize_t n = sendfile(to, from, &at, size - (uint64_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG; /* truncated meanwhile */
	}
	return pp_memfile_seal(to);
}

static void fill(const struct pp_sideband_header *h, struct pp_msg_sideband_reply *ret)
{
	*ret = (struct pp_msg_sideband_reply){
		.keeping = 1,
		.began = h->began,
		.complete = h->complete,
		.lost = h->lost,
		.forgotten = h->forgotten,
		.processes = h->processes,
		.ended = h->ended,
		.memory = h->memory,
		.max_memory = h->max_memory,
		.unseen = (uint32_t)MIN(h->unseen, UINT32_MAX),
	};
}

/* Copies the whole file, whatever time is requested: readers check times anyway. */
int saved_sideband(const char *path, int dir_fd, const struct pp_msg_sideband_request *request,
		   struct answer *ret)
{
	_cleanup_close_ int file = saved_file_open(dir_fd, NAME), fd = -EBADF;
	struct pp_sideband_header h;
	int r = file < 0 ? file : header_read(file, &h);

	if (r == -ENOENT)
		return client_fail(-EOPNOTSUPP,
				   "the save %s has no sideband: none was kept when it was made",
				   path);
	if (r >= 0 && !(request->flags & PP_SIDEBAND_STATUS)) {
		r = pp_memfile_new("perfpersist-sideband", 0, &fd);
		if (r >= 0)
			r = copy(file, fd, h.size);
	}
	if (r < 0)
		return client_fail(r, "cannot read %s/" NAME ": %s", path, saved_file_error(r));
	fill(&h, &ret->sideband);
	if (fd >= 0) {
		ret->sideband.size = h.size;
		ret->fd = TAKE_FD(fd);
	}
	return 0;
}
