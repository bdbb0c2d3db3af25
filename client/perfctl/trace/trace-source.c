// SPDX-License-Identifier: LGPL-2.1-or-later
/* Many small blocks: perf's files are read at as many places at once as perf had CPUs. */
#include "client/perfctl/trace/trace-source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/perfctl/trace/trace-internal.h"
#include "proto/io.h"
#include "proto/macro.h"

#define BLOCK ((uint64_t)0x8000)
#define BLOCKS 1024 /* a power of two */

struct source_block {
	uint64_t number; /* of the block in the file */
	size_t n;	 /* valid bytes */
	uint8_t *bytes;	 /* NULL: not used yet */
};

static int nameless_file(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("perf.data", MFD_CLOEXEC);
}

static int copy_pipe(struct source *s, int fd)
{
	_cleanup_free_ uint8_t *bytes = malloc(SOURCE_READ_MAX);
	ssize_t n;
	int r;

	s->copy = nameless_file();
	if (s->copy < 0)
		return -errno;
	if (!bytes)
		return -ENOMEM;
	while ((n = pp_read_all(fd, bytes, SOURCE_READ_MAX)) > 0) {
		r = pp_write_all(s->copy, bytes, (size_t)n);
		if (r < 0)
			return r;
		s->size += (uint64_t)n;
	}
	s->fd = s->copy;
	return (int)n;
}

int source_open(struct source *s, int fd)
{
	struct stat st;
	int r;

	*s = (struct source){ .fd = fd, .copy = -EBADF };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return trace_damaged("it is a directory, as perf record --threads makes; only a "
				     "single file can be read");
	if (S_ISREG(st.st_mode)) {
		s->size = (uint64_t)st.st_size;
	} else {
		r = copy_pipe(s, fd);
		if (r < 0)
			goto fail;
	}
	s->blocks = calloc(BLOCKS, sizeof(*s->blocks));
	s->joined = malloc(SOURCE_READ_MAX);
	if (s->blocks && s->joined)
		return 0;
	r = -ENOMEM;
fail:
	source_done(s);
	return r;
}

void source_done(struct source *s)
{
	for (size_t i = 0; s->blocks && i < BLOCKS; i++)
		free(s->blocks[i].bytes);
	free(s->blocks);
	free(s->joined);
	close_fd(s->copy);
	*s = (struct source){ .fd = -EBADF, .copy = -EBADF };
}

static struct source_block *get_block(struct source *s, uint64_t number)
{
	struct source_block *b = &s->blocks[number % BLOCKS];
	ssize_t n;

	if (b->bytes && b->number == number)
		return b;
	if (!b->bytes)
		b->bytes = malloc(BLOCK);
	if (!b->bytes)
		return NULL;
	n = pp_pread_all(s->fd, b->bytes, BLOCK, number * BLOCK);
	b->number = number;
	b->n = n < 0 ? 0 : (size_t)n;
	return b;
}

const uint8_t *source_at(struct source *s, uint64_t offset, size_t n)
{
	size_t done = 0;

	if (n > SOURCE_READ_MAX || offset > s->size || n > s->size - offset)
		return NULL;
	while (done < n || n == 0) {
		uint64_t at = offset + done, inside = at % BLOCK;
		struct source_block *b = get_block(s, at / BLOCK);
		size_t part;

		if (!b || inside > b->n)
			return NULL;
		if (done == 0 && n <= b->n - inside)
			return b->bytes + inside;
		part = MIN(n - done, b->n - inside);
		if (part == 0)
			return NULL;
		memcpy(s->joined + done, b->bytes + inside, part);
		done += part;
	}
	return s->joined;
}

int source_copy(struct source *s, uint64_t offset, uint64_t n, uint8_t **ret)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	ssize_t r;

	if (offset > s->size || n > s->size - offset)
		return -EBADMSG;
	bytes = malloc(n + 1);
	if (!bytes)
		return -ENOMEM;
	r = pp_pread_all(s->fd, bytes, n, offset);
	if (r < 0 || (uint64_t)r < n)
		return -EBADMSG;
	*ret = TAKE_PTR(bytes);
	return 0;
}
