/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of one dso; for symbols.c alone. */
#pragma once

#include "client/perfctl/trace/process.h"
#include "client/perfctl/trace/symbols-elf.h"
#include "client/perfctl/trace/symbols-kernel.h"

enum symbols_file_kind {
	SYMBOLS_NONE,	/* unknown */
	SYMBOLS_ELF,	/* addresses are those of its program headers */
	SYMBOLS_KERNEL, /* addresses as recorded, except for the slide */
	SYMBOLS_ALONE,	/* the dso is one function: a BPF program, a trampoline */
};

struct symbols_file {
	enum symbols_file_kind kind;
	struct elf_symbols elf;
	const struct symtab *table; /* elf's, or the kernel's */
	bool memory;		    /* not a file: only addresses exist */
	uint64_t slide;		    /* from the kernel's recorded place to its table's */
	/* symbols.c's: the dso that it was loaded for, and the file. */
	uint32_t index;
	uint64_t device, inode;
};

/* The kernel, read when first needed. */
struct symbols_kernel {
	struct kernel_id id;
	struct kernel_symbols symbols;
	bool tried, there;
};

/* Finds the functions of map's dso, if any. */
void symbols_file_load(const struct map *map, struct symbols_kernel *kernel,
		       struct strangers *strangers, struct symbols_file *ret);

/* Converts an address in map to the table's; false: there is no code. */
bool symbols_file_address(const struct symbols_file *f, const struct map *map, uint64_t address,
			  uint64_t *ret);
void symbols_file_done(struct symbols_file *f);
