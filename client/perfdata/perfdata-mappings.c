// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The mappings that perf unwinds user stacks by. It wants that of a file's beginning, for its base, and that
 * of its tables (perf record asks for all of them: mmap_data); sideband has the executable ones alone.
 */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "client/perfdata/elf-segments.h"
#include "client/perfdata/perfdata.h"
#include "proto/sideband.h"

#define MAP_PAGE 4096ULL /* larger pages are multiples of it */
#define LOADS_MAX 8	 /* of a file; linkers make five */

/* A file's segments in memory. Two at most are told, so that sideband becomes three times as large at most. */
struct loads {
	size_t n;
	struct load {
		uint64_t offset, address, size;
		bool runs, is_told;
	} load[LOADS_MAX];
};

/* A stranger can have made the file. */
static bool is_sane(const struct elf_segment *s)
{
	return s->size && s->size < 1ULL << 40 && s->address < 1ULL << 60;
}

static void find_loads(int fd, struct loads *ret)
{
	struct elf_segment all[ELF_SEGMENTS_MAX];
	size_t n = fd < 0 ? 0 : elf_segments(fd, all);
	struct load *lowest = ret->load;

	for (size_t i = 0; i < n && ret->n < LOADS_MAX; i++)
		if (all[i].type == PT_LOAD && is_sane(&all[i]))
			ret->load[ret->n++] =
				(struct load){ all[i].offset, all[i].address, all[i].size,
					       all[i].flags & PF_X, false };
	for (size_t k = 0; k < ret->n; k++) {
		struct load *l = &ret->load[k];

		if (l->address < lowest->address)
			lowest = l;
		for (size_t i = 0; i < n; i++)
			l->is_told |= all[i].type == PT_GNU_EH_FRAME &&
				      all[i].address >= l->address &&
				      all[i].address - l->address < l->size;
	}
	lowest->is_told = true;
}

/* Files are read once, however often they are mapped. NULL: no memory. */
static const struct loads *loads_of(struct mapped_files *files, const struct pp_record *m)
{
	uint64_t device = makedev(m->file.major, m->file.minor);
	struct path_entry *e = path_set_find(&files->files, m->text, device, m->file.inode);

	if (!e) {
		_cleanup_close_ int fd = -EBADF;
		struct loads loads = {};

		e = path_set_add(&files->files, m->text, device, m->file.inode);
		if (!e)
			return NULL;
		e->time = files->loads.n;
		/* perf, which reads the tables from there, does not ask when the file was changed; and its
		 * cache of build ids makes links to files, which changes them. */
		fd = open_mapped(m->text, device, m->file.inode, 0, 0);
		find_loads(fd, &loads);
		blob_put(&files->loads, &loads, sizeof(loads));
	}
	return files->loads.failed ? NULL : (const void *)(files->loads.bytes + e->time);
}

/* `base`: where address 0 of the file is. */
static void put_load(struct perfpersist_perfdata *d, const struct pp_record *executable,
		     const struct load *l, uint64_t base)
{
	uint64_t begin = l->address & ~(MAP_PAGE - 1);
	struct pp_record m = *executable;
	void *room = output_room(&d->out, PP_RECORD_SIZE_MAX);

	if (!room)
		return;
	m.misc |= PERF_RECORD_MISC_MMAP_DATA;
	m.start = base + begin;
	m.length = ALIGN_TO(l->address + l->size, MAP_PAGE) - begin;
	m.offset = l->offset & ~(MAP_PAGE - 1);
	m.prot = PROT_READ;
	output_give_back(&d->out, PP_RECORD_SIZE_MAX - pp_record_write(&m, PP_SIDEBAND_SAMPLE_TYPE,
								       room, PP_RECORD_SIZE_MAX));
}

void mappings_put(struct perfpersist_perfdata *d, const uint8_t *bytes, size_t size)
{
	const struct load *executable = NULL;
	const struct loads *loads;
	struct pp_record m;

	if (pp_record_open(bytes, size, PP_SIDEBAND_SAMPLE_TYPE, &m) < 0 ||
	    m.type != PERF_RECORD_MMAP2 || pp_record_parse(&m) < 0 || m.text[0] != '/' ||
	    m.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return;
	loads = loads_of(&d->mapped, &m);
	for (size_t i = 0; loads && i < loads->n && !executable; i++)
		/* Of a small file all can be in one page. */
		if (loads->load[i].runs && loads->load[i].offset / MAP_PAGE == m.offset / MAP_PAGE)
			executable = &loads->load[i];
	for (size_t i = 0; executable && i < loads->n; i++)
		if (loads->load[i].is_told && &loads->load[i] != executable)
			put_load(d, &m, &loads->load[i],
				 m.start - (executable->address & ~(MAP_PAGE - 1)));
}

void mapped_files_done(struct mapped_files *files)
{
	path_set_done(&files->files);
	blob_done(&files->loads);
}
