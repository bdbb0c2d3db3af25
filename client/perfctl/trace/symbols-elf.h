/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of one ELF file: a program, a library, a kernel's vmlinux. elfutils reads it, with
 * its debug file if one is installed; no network requests. */
#pragma once

#include <stdbool.h>

#include "client/perfctl/trace/symbols-table.h"

#define SEGMENTS_MAX 16

/* A segment's address in memory, relative to the others. */
struct elf_segment {
	uint64_t offset, size, address;
};

struct elf_symbols {
	struct symtab table;
	struct elf_segment segments[SEGMENTS_MAX]; /* of code */
	size_t n_segments;
	uint64_t text; /* of the symbol _text, which kernels have; else 0 */
};

/* Limits for strangers' files together: strangers can make any number of them. */
struct strangers {
	size_t tables;	 /* bytes left for their functions */
	uint64_t copies; /* bytes of files that may still be copied */
	bool refused;	 /* a limit was exceeded */
};

/*
 * The identity that a file must have: its path may lead elsewhere by now, on this machine, or in
 * this mount namespace. The build id identifies it, or else device and inode; a size or an inode of
 * 0 matches any.
 */
struct elf_identity {
	const uint8_t *build_id;
	size_t build_id_size;
	uint64_t device, inode;	     /* compared if there is no build id */
	struct strangers *strangers; /* to charge; NULL: no limit */
};

/* which may be NULL: any file. -ESTALE: another file; -ENOEXEC: not an ELF file, or a refused one;
 * -E2BIG: too large; -errno. */
int elf_symbols_read(const char *path, const struct elf_identity *which, struct elf_symbols *ret);

/* For an image in memory, such as the vdso. */
int elf_symbols_read_image(const void *image, size_t size, const uint8_t *build_id,
			   size_t build_id_size, struct elf_symbols *ret);

/* Converts an offset in the file to the table's address; false: there is no code. */
bool elf_symbols_address(const struct elf_symbols *s, uint64_t offset, uint64_t *ret);
void elf_symbols_done(struct elf_symbols *s);

/* ── symbols-plt.c ── */

/* Adds elf's jumps into other libraries. -ENOMEM, -E2BIG. */
struct Elf;
int elf_symbols_plt(struct Elf *elf, struct symtab *t);

/* ── symbols-open.c ── */

/*
 * Opens only what proto/regular.h allows: a trace can name a device. Strangers' files, which could
 * be truncated while we read, come as copies. which: the expected device and inode (if it has no
 * build id), and the payer. *ret_strange (may be NULL): a stranger's file. -ESTALE, -ENOEXEC: not
 * an ELF file; -E2BIG; -errno.
 */
int elf_open(const char *path, const struct elf_identity *which, bool *ret_strange);

/* The directory of debug files by build id. */
#define DEBUG_ROOT "/usr/lib/debug"
struct debug_path {
	char text[sizeof(DEBUG_ROOT "/.build-id/xx/.debug") + 2 * 64];
};
struct debug_path debug_path(const uint8_t *build_id, size_t size);
