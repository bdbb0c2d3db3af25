/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of one ELF file: a program, a library, a kernel's vmlinux. elfutils reads it, with
 * its debug file if one is installed; nothing is asked for over a network.
 */
#pragma once

#include <stdbool.h>

#include "client/perfctl/trace/symbols-table.h"

#define SEGMENTS_MAX 16

/* Where parts of the file are to be in memory, relative to each other. */
struct elf_segment {
	uint64_t offset, size, address;
};

struct elf_symbols {
	struct symtab table;
	struct elf_segment segments[SEGMENTS_MAX]; /* of code */
	size_t n_segments;
	uint64_t text; /* of the symbol _text, which kernels have; else 0 */
};

/* What the files of strangers, who can make any number of them, may take together. */
struct strangers {
	size_t tables;	 /* bytes that are left for their functions */
	uint64_t copies; /* bytes of files that may still be copied */
	bool refused;	 /* one was too much */
};

/*
 * What the file must be: the path may lead elsewhere by now, on this machine, or in this mount
 * namespace. The build id tells it, or else device and inode; a size or an inode of 0
 * is any.
 */
struct elf_identity {
	const uint8_t *build_id;
	size_t build_id_size;
	uint64_t device, inode;	     /* looked at if there is no build id */
	struct strangers *strangers; /* who pays; NULL: there is no end to it */
};

/* which may be NULL: any file. -ESTALE: it is another; -ENOEXEC: no such file, or one that is
 * refused; -E2BIG: it is too much; -errno. */
int elf_symbols_read(const char *path, const struct elf_identity *which, struct elf_symbols *ret);

/* Of an image in memory, as the vdso is one. */
int elf_symbols_read_image(const void *image, size_t size, const uint8_t *build_id,
			   size_t build_id_size, struct elf_symbols *ret);

/* The address, as the table has them, of an offset in the file; false: there is no code. */
bool elf_symbols_address(const struct elf_symbols *s, uint64_t offset, uint64_t *ret);
void elf_symbols_done(struct elf_symbols *s);

/* ── symbols-plt.c ── */

/* Adds elf's jumps into other libraries. -ENOMEM, -E2BIG. */
struct Elf;
int elf_symbols_plt(struct Elf *elf, struct symtab *t);

/* ── symbols-open.c ── */

/* Opens what proto/regular.h allows and nothing else: a trace can name a device. Files that belong
 * to strangers, who could shorten them under our eyes, come as copies. which: its device
 * and inode (if it has no build id), and who pays. *ret_strange (may be NULL): it is such a one.
 * -ESTALE, -ENOEXEC: it is no ELF file; -E2BIG; -errno. */
int elf_open(const char *path, const struct elf_identity *which, bool *ret_strange);

/* Where the debug file with a build id is installed, if it is. */
#define DEBUG_ROOT "/usr/lib/debug"
struct debug_path {
	char text[sizeof(DEBUG_ROOT "/.build-id/xx/.debug") + 2 * 64];
};
struct debug_path debug_path(const uint8_t *build_id, size_t size);
