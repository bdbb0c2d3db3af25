// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes sideband into a perf.data file: checks it as a whole first, then writes the records
 * unchanged, each before the first sample of its time. Takes build ids from the mapped files if
 * these are unchanged.
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/perfdata/elf-segments.h"
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

/*
 * Opens the file that was mapped, if it is still the same. A stranger chose the path, and his mount
 * namespace may have another file there than ours: device, inode and the time of its last change must
 * match. time 0: any will do. < 0: it is not the same.
 */
static int open_mapped(const struct perfpersist_perfdata *d, const char *path, uint64_t device,
		       uint64_t inode, uint64_t time)
{
	_cleanup_close_ int fd = regular_open(AT_FDCWD, path, RESOLVE_NO_MAGICLINKS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != inode || st.st_dev != device)
		return -ESTALE;
	if (time && (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec >
			    d->realtime_offset + time)
		return -ESTALE;
	return TAKE_FD(fd);
}

static void read_build_id(struct perfpersist_perfdata *d, const struct path_entry *e)
{
	_cleanup_close_ int fd = -EBADF;
	uint8_t build_id[20];

	if (build_id_is_known(&d->build_ids, e->path))
		return;
	fd = open_mapped(d, e->path, e->device, e->inode, e->time);
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
		if (e)
			e->time = m->time;
	} else if (e->time) {
		e->time = m->time ? MAX(e->time, m->time) : 0;
	}
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

/* ── User stacks ────────────────────────────────────────────────────────────────────────── */

#define MAP_PAGE 4096ULL /* larger pages are multiples of it */
#define SEGMENTS_MAX 8	 /* of a file, which a stranger can have made; linkers make five */

static bool has_user_stacks(const struct perfpersist_perfdata *d)
{
	for (size_t i = 0; i < d->n_evsels; i++)
		if (d->evsels[i].attr.sample_type & PERF_SAMPLE_STACK_USER)
			return true;
	return false;
}

/* The mapping of another segment, with the address of offset 0 at `base`. */
static void put_segment(struct perfpersist_perfdata *d, const struct pp_record *executable,
			const struct elf_segment *s, uint64_t base)
{
	uint64_t begin = s->address & ~(MAP_PAGE - 1);
	struct pp_record m = *executable;
	void *room;

	m.misc |= PERF_RECORD_MISC_MMAP_DATA;
	m.start = base + begin;
	m.length = ALIGN_TO(s->address + s->size, MAP_PAGE) - begin;
	m.offset = s->offset & ~(MAP_PAGE - 1);
	m.prot = PROT_READ;
	room = output_room(&d->out, PP_RECORD_SIZE_MAX);
	if (room)
		output_give_back(&d->out,
				 PP_RECORD_SIZE_MAX - pp_record_write(&m, PP_SIDEBAND_SAMPLE_TYPE,
								      room, PP_RECORD_SIZE_MAX));
}

/*
 * perf unwinds a stack by the tables of each file, for which it wants the mappings of data, too (perf
 * record asks for them: mmap_data). Sideband has the executable ones alone. So in front of each those of
 * the file's other segments are written, as its program headers have them.
 */
static void put_segments(struct perfpersist_perfdata *d, const uint8_t *bytes, size_t size)
{
	struct elf_segment all[ELF_SEGMENTS_MAX];
	const struct elf_segment *executable = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct pp_record m;
	size_t n;

	if (pp_record_open(bytes, size, PP_SIDEBAND_SAMPLE_TYPE, &m) < 0 ||
	    m.type != PERF_RECORD_MMAP2 || pp_record_parse(&m) < 0 || m.text[0] != '/' ||
	    m.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return;
	/* perf, which reads the tables from there, does not ask when the file was changed; and its cache
	 * of build ids makes links to files, which changes them. */
	fd = open_mapped(d, m.text, makedev(m.file.major, m.file.minor), m.file.inode, 0);
	n = fd < 0 ? 0 : elf_segments(fd, all);
	for (size_t i = 0; i < n && !executable; i++)
		if (all[i].type == PT_LOAD && all[i].offset / MAP_PAGE == m.offset / MAP_PAGE)
			executable = &all[i];
	for (size_t i = 0, put = 0; i < n && executable && put < SEGMENTS_MAX; i++)
		if (all[i].type == PT_LOAD && &all[i] != executable && all[i].size && ++put)
			put_segment(d, &m, &all[i],
				    m.start - (executable->address & ~(MAP_PAGE - 1)));
}

/* ── Writing ────────────────────────────────────────────────────────────────────────────── */

void sideband_put_until(struct perfpersist_perfdata *d, uint64_t time)
{
	struct perfdata_sideband *s = &d->sideband;
	bool maps = has_user_stacks(d);
	size_t begin = s->at, size;

	while (s->at < s->size && time_at(s, s->at, &size) <= time) {
		if (maps) {
			output_put(&d->out, s->bytes + begin, s->at - begin);
			put_segments(d, s->bytes + s->at, size);
			begin = s->at;
		}
		s->at += size;
	}
	output_put(&d->out, s->bytes + begin, s->at - begin);
	look_at_next(s);
}
