// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes sideband into a perf.data file: checks it as a whole first, then writes the records
 * unchanged, each before the first sample of its time. Takes build ids from the mapped files if
 * these are unchanged.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/perfdata/perfdata.h"
#include "client/public.h"
#include "proto/io.h"
#include "proto/regular.h"
#include "proto/sideband.h"

/* For a file that is not a memfd of ours: more than any table of processes may take. */
#define SIDEBAND_MAX (1ULL << 30)

static bool is_sideband_type(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_LOST:
		return true;
	}
	return false;
}

static uint64_t time_at(const struct perfdata_sideband *s, size_t at, size_t *ret_size)
{
	*ret_size = pp_record_extent(s->bytes + at, s->size - at, PP_SIDEBAND_SAMPLE_TYPE);
	return pp_record_time(s->bytes + at, *ret_size, PP_SIDEBAND_SAMPLE_TYPE);
}

/* ── Build ids ──────────────────────────────────────────────────────────────────────────── */

static uint64_t nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/*
 * A link changes ctime, too: `perf record` links each file into its cache. But an old mtime proves little: a
 * package's file has the time of its build, and cp -p writes another content with its own. So the file must
 * have a second link, and the generation be the same, where the file system has one.
 */
static bool is_unchanged(int fd, const struct stat *st, uint64_t generation, uint64_t since)
{
	int now[2] = {}; /* the kernel writes an int, though the ioctl is of a long */

	if (nanoseconds(&st->st_ctim) <= since)
		return true;
	return st->st_nlink > 1 && nanoseconds(&st->st_mtim) <= since &&
	       ioctl(fd, FS_IOC_GETVERSION, now) == 0 && (uint32_t)now[0] == (uint32_t)generation;
}

int open_mapped(const char *path, uint64_t device, uint64_t inode, uint64_t generation,
		uint64_t changed)
{
	_cleanup_close_ int fd = regular_open(AT_FDCWD, path, RESOLVE_NO_MAGICLINKS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != inode || st.st_dev != device)
		return -ESTALE;
	if (changed && !is_unchanged(fd, &st, generation, changed))
		return -ESTALE;
	return TAKE_FD(fd);
}

static void read_build_id(struct perfpersist_perfdata *d, const struct path_entry *e)
{
	_cleanup_close_ int fd = -EBADF;
	uint8_t build_id[20];

	if (build_id_is_known(&d->build_ids, e->path))
		return;
	fd = open_mapped(e->path, e->device, e->inode, e->generation,
			 e->time ? d->realtime_offset + e->time : 0);
	if (fd < 0)
		return;
	build_id_add(&d->build_ids, PERF_RECORD_MISC_USER, e->path, build_id,
		     build_id_of_file(fd, build_id));
}

/* A file's newest mapping tells best whether it is still that file. 0: it is mapped now. */
static void note_file(struct path_set *files, const struct pp_record *m)
{
	uint64_t device = makedev(m->file.major, m->file.minor);
	struct path_entry *e = path_set_find(files, m->text, device, m->file.inode);

	if (!e) {
		e = path_set_add(files, m->text, device, m->file.inode);
		if (!e)
			return;
	} else if (!e->time || (m->time && m->time < e->time)) {
		return;
	}
	e->time = m->time;
	e->generation = m->file.generation;
}

/* Each file is examined once, however often it was mapped, and with or without a build id. */
static void collect_build_ids(struct perfpersist_perfdata *d)
{
	_cleanup_(path_set_done) struct path_set files = {};
	const struct perfdata_sideband *s = &d->sideband;
	const struct path_entry *e = NULL;
	struct pp_record m;

	for (size_t at = 0; at < s->size; at += m.size) {
		size_t size =
			pp_record_extent(s->bytes + at, s->size - at, PP_SIDEBAND_SAMPLE_TYPE);

		pp_record_open(s->bytes + at, size, PP_SIDEBAND_SAMPLE_TYPE, &m);
		if (m.type == PERF_RECORD_MMAP2 && pp_record_parse(&m) == 0 && m.file.inode &&
		    m.text[0] == '/')
			note_file(&files, &m);
	}
	while ((e = path_set_next(&files, e)))
		read_build_id(d, e);
	d->build_ids.entries.failed |= files.entries.failed;
}

/* ── The file ───────────────────────────────────────────────────────────────────────────── */

/* Only MMAP2 records are examined. */
static bool are_records(const uint8_t *bytes, size_t size)
{
	struct pp_record r;

	for (size_t at = 0; at < size; at += r.size) {
		size_t extent = pp_record_extent(bytes + at, size - at, PP_SIDEBAND_SAMPLE_TYPE);

		if (pp_record_open(bytes + at, extent, PP_SIDEBAND_SAMPLE_TYPE, &r) < 0 ||
		    !is_sideband_type(r.type) ||
		    (r.type == PERF_RECORD_MMAP2 && pp_record_parse(&r) < 0))
			return false;
	}
	return true;
}

/* Reads from the beginning, wherever the descriptor's position is. */
static int read_bytes(int fd, void *bytes, size_t size)
{
	ssize_t n = pp_pread_all(fd, bytes, size, 0);

	return n < 0 ? (int)n : (size_t)n < size ? -EBADMSG : 0;
}

/* Strips the header; bytes behind the end that it gives belong to a later version. */
static int read_file(int fd, uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct pp_sideband_header h;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = read_bytes(fd, &h, sizeof(h));
	if (r < 0)
		return r;
	if (h.magic != PP_SIDEBAND_MAGIC || h.header_size < sizeof(h) || h.header_size % 8 ||
	    h.size > MIN((uint64_t)st.st_size, SIDEBAND_MAX) || h.size < h.header_size)
		return -EBADMSG;
	if (h.version != PP_SIDEBAND_VERSION)
		return -EPROTONOSUPPORT;
	bytes = malloc(h.size);
	if (!bytes)
		return -ENOMEM;
	r = read_bytes(fd, bytes, h.size);
	if (r < 0)
		return r;
	*ret_size = h.size - h.header_size;
	if (!are_records(bytes + h.header_size, *ret_size))
		return -EBADMSG;
	memmove(bytes, bytes + h.header_size, *ret_size);
	*ret = TAKE_PTR(bytes);
	return 0;
}

static int synthesize(uint8_t **ret, size_t *ret_size)
{
	_cleanup_(blob_done) struct blob records = {};
	int r = synthesize_processes(&records);

	if (r < 0)
		return r;
	*ret_size = records.n;
	*ret = TAKE_PTR(records.bytes);
	return 0;
}

static void look_at_next(struct perfdata_sideband *s)
{
	size_t size;

	s->next_time = s->at < s->size ? time_at(s, s->at, &size) : UINT64_MAX;
}

int perfdata_sideband_open(struct perfpersist_perfdata *d, int fd)
{
	struct perfdata_sideband s = {};
	int r = fd < 0 ? synthesize(&s.bytes, &s.size) : read_file(fd, &s.bytes, &s.size);

	if (r < 0)
		return r;
	look_at_next(&s);
	free(d->sideband.bytes);
	d->sideband = s;
	collect_build_ids(d);
	return d->build_ids.entries.failed ? -ENOMEM : 0;
}

/* ── Writing ────────────────────────────────────────────────────────────────────────────── */

void sideband_put_until(struct perfpersist_perfdata *d, uint64_t time)
{
	struct perfdata_sideband *s = &d->sideband;
	size_t begin = s->at, size;

	if (!s->bytes)
		return;
	while (s->at < s->size && time_at(s, s->at, &size) <= time) {
		if (d->has_user_stacks) {
			output_put(&d->out, s->bytes + begin, s->at - begin);
			mappings_put(d, s->bytes + s->at, size);
			begin = s->at;
		}
		s->at += size;
	}
	output_put(&d->out, s->bytes + begin, s->at - begin);
	look_at_next(s);
}
