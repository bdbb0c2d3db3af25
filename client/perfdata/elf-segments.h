/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The segments of an ELF file, of 32 or 64 bits. Trusts nothing in the file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ELF_SEGMENTS_MAX 128

struct elf_segment {
	uint32_t type, flags; /* PT_*, PF_* */
	uint64_t offset, address, size;
};

/* Their number; 0: it is no such file, or one of the other byte order. */
size_t elf_segments(int fd, struct elf_segment ret[static ELF_SEGMENTS_MAX]);
