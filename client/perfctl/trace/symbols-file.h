/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the functions of one dso are told: for symbols.c alone. */
#pragma once

#include "client/perfctl/trace/process.h"
#include "client/perfctl/trace/symbols-elf.h"
#include "client/perfctl/trace/symbols-kernel.h"

enum symbols_file_kind {
	SYMBOLS_NONE,	/* nobody knows */
	SYMBOLS_ELF,	/* addresses are those of its program headers */
	SYMBOLS_KERNEL, /* addresses are as they were recorded, but for the slide */
	SYMBOLS_ALONE,	/* the dso is one function: a BPF program, a trampoline */
};

struct symbols_file {
	enum symbols_file_kind kind;
	struct elf_symbols elf;
	const struct symtab *table; /* elf's, or the kernel's */
	bool memory;		    /* it is no file at all: addresses are all there is */
	uint64_t slide;		    /* from where the kernel was to where its table has it */
	/* symbols.c's: for which dso it was loaded, and which file that was. */
	uint32_t index;
	uint64_t device, inode;
};

/* The kernel, read when something of it is first wanted. */
struct symbols_kernel {
	struct kernel_id id;
	struct kernel_symbols symbols;
	bool tried, there;
};

/* Finds the functions of map's dso; there may be none. */
void symbols_file_load(const struct map *map, struct symbols_kernel *kernel,
		       struct strangers *strangers, struct symbols_file *ret);

/* An address in map, as the table has it; false: there is no code. */
bool symbols_file_address(const struct symbols_file *f, const struct map *map, uint64_t address,
			  uint64_t *ret);
void symbols_file_done(struct symbols_file *f);
