// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns build ids: finds them in the notes of the kernel and of ELF files, and keeps the table of
 * them that a perf.data file has. Nothing in a file is trusted.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "client/perfdata.h"

#define NOTES_MAX (64U << 10)
#define SEGMENTS_MAX 128

/* ── Notes ──────────────────────────────────────────────────────────────────────────────── */

size_t build_id_in_notes(const void *notes, size_t size, uint8_t ret[static 20])
{
	const uint8_t *p = notes;
	Elf64_Nhdr h; /* that of 32 bit files is the same */

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

static size_t read_notes(int fd, uint64_t offset, uint64_t size, uint8_t ret[static 20])
{
	_cleanup_free_ uint8_t *notes = NULL;
	ssize_t n;

	size = MIN(size, (uint64_t)NOTES_MAX);
	notes = malloc(size + 1);
	n = notes ? pread(fd, notes, size, (off_t)offset) : -1;
	return n > 0 ? build_id_in_notes(notes, (size_t)n, ret) : 0;
}

static size_t find_in_segments64(int fd, const Elf64_Ehdr *e, uint8_t ret[static 20])
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	size_t n = MIN((size_t)e->e_phnum, (size_t)SEGMENTS_MAX), found = 0;
	ssize_t size;

	if (e->e_phentsize != sizeof(segments[0]))
		return 0;
	size = pread(fd, segments, n * sizeof(segments[0]), (off_t)e->e_phoff);
	n = size < 0 ? 0 : (size_t)size / sizeof(segments[0]);
	for (size_t i = 0; !found && i < n; i++)
		if (segments[i].p_type == PT_NOTE)
			found = read_notes(fd, segments[i].p_offset, segments[i].p_filesz, ret);
	return found;
}

static size_t find_in_segments32(int fd, const Elf32_Ehdr *e, uint8_t ret[static 20])
{
	Elf32_Phdr segments[SEGMENTS_MAX];
	size_t n = MIN((size_t)e->e_phnum, (size_t)SEGMENTS_MAX), found = 0;
	ssize_t size;

	if (e->e_phentsize != sizeof(segments[0]))
		return 0;
	size = pread(fd, segments, n * sizeof(segments[0]), (off_t)e->e_phoff);
	n = size < 0 ? 0 : (size_t)size / sizeof(segments[0]);
	for (size_t i = 0; !found && i < n; i++)
		if (segments[i].p_type == PT_NOTE)
			found = read_notes(fd, segments[i].p_offset, segments[i].p_filesz, ret);
	return found;
}

size_t build_id_of_file(int fd, uint8_t ret[static 20])
{
	union {
		Elf64_Ehdr e64;
		Elf32_Ehdr e32;
	} e = {};
	static const uint8_t data =
		__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;

	if (pread(fd, &e, sizeof(e), 0) < (ssize_t)sizeof(e.e32) ||
	    memcmp(e.e64.e_ident, ELFMAG, SELFMAG) || e.e64.e_ident[EI_DATA] != data)
		return 0;
	return e.e64.e_ident[EI_CLASS] == ELFCLASS64 ? find_in_segments64(fd, &e.e64, ret)
						     : find_in_segments32(fd, &e.e32, ret);
}

size_t build_id_of_kernel(uint8_t ret[static 20])
{
	_cleanup_close_ int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	uint8_t notes[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, notes, sizeof(notes));

	return n > 0 ? build_id_in_notes(notes, (size_t)n, ret) : 0;
}

/* ── The table ──────────────────────────────────────────────────────────────────────────── */

/* FNV-1a of 64 bits; that two paths have the same is not to be reckoned with. 0 stands for free. */
static uint64_t hash(const char *path)
{
	uint64_t h = 14695981039346656037ULL;

	for (; *path; path++)
		h = (h ^ (uint8_t)*path) * 1099511628211ULL;
	return h ?: 1;
}

static uint64_t *find(const struct build_id_table *t, uint64_t h)
{
	size_t i = h & (t->cap - 1);

	while (t->seen[i] && t->seen[i] != h)
		i = (i + 1) & (t->cap - 1);
	return &t->seen[i];
}

bool build_id_is_known(const struct build_id_table *t, const char *path)
{
	return t->cap && *find(t, hash(path)) != 0;
}

/* Keeps at least a quarter free. */
static bool grow(struct build_id_table *t)
{
	struct build_id_table larger = *t;

	if (4 * (t->n + 1) < 3 * t->cap)
		return true;
	larger.cap = t->cap ? 2 * t->cap : 256;
	larger.seen = calloc(larger.cap, sizeof(*larger.seen));
	if (!larger.seen)
		return false;
	for (size_t i = 0; i < t->cap; i++)
		if (t->seen[i])
			*find(&larger, t->seen[i]) = t->seen[i];
	free(t->seen);
	*t = larger;
	return true;
}

void build_id_add(struct build_id_table *t, uint16_t cpumode, const char *path,
		  const uint8_t *build_id, size_t size)
{
	size_t path_size = ALIGN_TO(strlen(path) + 1, (size_t)PERFDATA_STRING_ALIGN);
	struct perfdata_build_id entry = {
		.header.type = PERFDATA_BUILD_ID,
		.header.misc = cpumode | PERFDATA_BUILD_ID_HAS_SIZE,
		.header.size = (uint16_t)(sizeof(entry) + path_size),
		.pid = -1,
		.size = (uint8_t)size,
	};
	uint64_t *place;

	if (!size || size > sizeof(entry.build_id) || path_size > PERFDATA_RECORD_MAX / 2)
		return;
	if (!grow(t)) {
		t->entries.failed = true;
		return;
	}
	place = find(t, hash(path));
	if (*place)
		return;
	*place = hash(path);
	t->n++;
	memcpy(entry.build_id, build_id, size);
	blob_put(&t->entries, &entry, sizeof(entry));
	blob_put(&t->entries, path, strlen(path));
	blob_fill(&t->entries, path_size - strlen(path));
}

void build_id_table_done(struct build_id_table *t)
{
	blob_done(&t->entries);
	free(t->seen);
	*t = (struct build_id_table){};
}
