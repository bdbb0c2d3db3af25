// SPDX-License-Identifier: LGPL-2.1-or-later
/* Build ids: finds them in the notes of the kernel and of ELF files, and keeps a perf.data file's
 * table of them. Trusts nothing in a file. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "client/perfdata/elf-segments.h"
#include "client/perfdata/perfdata.h"

#define NOTES_MAX (64U << 10) /* of one file */

/* ── Notes ──────────────────────────────────────────────────────────────────────────────── */

size_t build_id_in_notes(const void *notes, size_t size, uint8_t ret[static 20])
{
	const uint8_t *p = notes;
	Elf64_Nhdr h; /* 32-bit files have the same header */

	while (size >= sizeof(h)) {
		size_t name, all;

		memcpy(&h, p, sizeof(h));
		name = ALIGN_TO((size_t)h.n_namesz, (size_t)4);
		all = sizeof(h) + name + ALIGN_TO((size_t)h.n_descsz, (size_t)4);
		if (sizeof(h) + name + h.n_descsz > size)
			return 0;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz > 0 &&
		    h.n_descsz <= 20 && !memcmp(p + sizeof(h), "GNU", 4)) {
			memcpy(ret, p + sizeof(h) + name, h.n_descsz);
			return h.n_descsz;
		}
		if (all >= size)
			return 0;
		p += all;
		size -= all;
	}
	return 0;
}

/* Reads at most *left bytes and subtracts them from it. */
static size_t read_notes(int fd, uint64_t offset, uint64_t size, size_t *left,
			 uint8_t ret[static 20])
{
	_cleanup_free_ uint8_t *notes = NULL;
	ssize_t n;

	size = MIN(size, (uint64_t)*left);
	*left -= size;
	notes = malloc(size + 1);
	n = notes ? pread(fd, notes, size, (off_t)offset) : -1;
	return n > 0 ? build_id_in_notes(notes, (size_t)n, ret) : 0;
}

size_t build_id_of_file(int fd, uint8_t ret[static 20])
{
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	size_t n = elf_segments(fd, segments), found = 0, left = NOTES_MAX;

	for (size_t i = 0; !found && i < n; i++)
		if (segments[i].type == PT_NOTE)
			found = read_notes(fd, segments[i].offset, segments[i].size, &left, ret);
	return found;
}

size_t build_id_of_kernel(uint8_t ret[static 20])
{
	_cleanup_close_ int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	uint8_t notes[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, notes, sizeof(notes));

	return n > 0 ? build_id_in_notes(notes, (size_t)n, ret) : 0;
}

/* ── The table ──────────────────────────────────────────────────────────────────────────── */

bool build_id_is_known(const struct build_id_table *t, const char *path)
{
	return path_set_find(&t->known, path, 0, 0) != NULL;
}

void build_id_add(struct build_id_table *t, uint16_t cpumode, const char *path,
		  const uint8_t *build_id, size_t size)
{
	size_t path_size = ALIGN_TO(strlen(path) + 1, (size_t)PERF_FILE_STRING_ALIGN);
	struct perf_file_build_id entry = {
		.header.type = PERF_FILE_BUILD_ID,
		.header.misc = cpumode | PERF_FILE_BUILD_ID_HAS_SIZE,
		.header.size = (uint16_t)(sizeof(entry) + path_size),
		.pid = -1,
		.size = (uint8_t)size,
	};

	if (!size || size > sizeof(entry.build_id) || path_size > PP_RECORD_SIZE_MAX / 2)
		return;
	if (build_id_is_known(t, path))
		return;
	if (!path_set_add(&t->known, path, 0, 0)) {
		t->entries.failed = true;
		return;
	}
	memcpy(entry.build_id, build_id, size);
	blob_put(&t->entries, &entry, sizeof(entry));
	blob_put(&t->entries, path, strlen(path));
	blob_fill(&t->entries, path_size - strlen(path));
}

void build_id_table_done(struct build_id_table *t)
{
	blob_done(&t->entries);
	path_set_done(&t->known);
	*t = (struct build_id_table){};
}
