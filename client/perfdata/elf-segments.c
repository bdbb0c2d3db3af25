// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfdata/elf-segments.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "proto/macro.h"

/* `each`: the size of a table entry, as the file says. */
static size_t read_table(int fd, bool is_64, uint64_t offset, size_t n, size_t each,
			 struct elf_segment ret[static ELF_SEGMENTS_MAX])
{
	union {
		Elf64_Phdr of_64[ELF_SEGMENTS_MAX];
		Elf32_Phdr of_32[ELF_SEGMENTS_MAX];
	} table;
	ssize_t size;

	if (each != (is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return 0;
	size = pread(fd, &table, MIN(n, (size_t)ELF_SEGMENTS_MAX) * each, (off_t)offset);
	n = size < 0 ? 0 : (size_t)size / each;
	for (size_t i = 0; i < n; i++) {
		const Elf64_Phdr *a = &table.of_64[i];
		const Elf32_Phdr *b = &table.of_32[i];

		ret[i] = is_64 ? (struct elf_segment){ a->p_type, a->p_flags, a->p_offset,
						       a->p_vaddr, a->p_filesz }
			       : (struct elf_segment){ b->p_type, b->p_flags, b->p_offset,
						       b->p_vaddr, b->p_filesz };
	}
	return n;
}

size_t elf_segments(int fd, struct elf_segment ret[static ELF_SEGMENTS_MAX])
{
	union {
		Elf64_Ehdr of_64;
		Elf32_Ehdr of_32;
	} e = {};
	static const uint8_t data =
		__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;

	if (pread(fd, &e, sizeof(e), 0) < (ssize_t)sizeof(e.of_32) ||
	    memcmp(e.of_64.e_ident, ELFMAG, SELFMAG) || e.of_64.e_ident[EI_DATA] != data)
		return 0;
	if (e.of_64.e_ident[EI_CLASS] == ELFCLASS64)
		return read_table(fd, true, e.of_64.e_phoff, e.of_64.e_phnum, e.of_64.e_phentsize,
				  ret);
	return read_table(fd, false, e.of_32.e_phoff, e.of_32.e_phnum, e.of_32.e_phentsize, ret);
}
