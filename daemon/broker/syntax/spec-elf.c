// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions in ELF files, for uprobes: the place of a symbol's code in the file. Owns how a file is
 * opened and read; must not know the event text around the name.
 *
 * The file is a client's choice: it may contain anything, and change during the read. It is read,
 * never mapped (a mapped file that shrinks causes SIGBUS), sections have a largest size, and every
 * offset goes through libelf's checks.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "proto/regular.h"

#define SYMBOLS_MAX (64U << 20) /* bytes of a symbol table */
#define NAMES_MAX (64U << 20)	/* bytes of its names */
#define SECTION_NAMES_MAX (4U << 20)
#define VERSION_HIDDEN 0x8000 /* of a symbol: not the version that new programs link to */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

/* ── The file ───────────────────────────────────────────────────────────────────────────── */

static int refuse_open(struct spec_parser *p, const char *path, int error)
{
	if (error == -EACCES || error == -EPERM)
		return spec_refuse(
			p, -EACCES,
			"the daemon may not read %s: let its user read the file and pass "
			"the folders before it",
			path);
	if (error == -ENOENT || error == -ENOTDIR)
		return spec_refuse(
			p, -ENOENT,
			"there is no file %s that the daemon can see: write its absolute "
			"path (and see ProtectHome= and the like of the daemon's unit)",
			path);
	return spec_refuse(p, error, "%s cannot be read: %s; name a program or library", path,
			   strerror(-error));
}

/* Other code checks the right to probe this file. A path like /proc/PID/root/usr/bin/ls names a
 * container's program, so any path is permitted. */
static int open_regular(struct spec_parser *p, const char *path, uint64_t *ret_size)
{
	_cleanup_close_ int fd = regular_open(AT_FDCWD, path, 0);
	struct stat st;

	if (fd == -EINVAL)
		return spec_refuse(p, -EINVAL, "%s is no regular file: name a program or library",
				   path);
	if (fd < 0)
		return refuse_open(p, path, fd);
	if (fstat(fd, &st) < 0)
		return refuse_open(p, path, -errno);
	*ret_size = st.st_size;
	return TAKE_FD(fd);
}

/* A 64-bit program or library for this machine, with tables of ordinary length. */
static bool is_ours(int fd)
{
	Elf64_Ehdr h;

	return pread(fd, &h, sizeof(h), 0) == sizeof(h) && !memcmp(h.e_ident, ELFMAG, SELFMAG) &&
	       h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_ident[EI_DATA] == ELFDATA2LSB &&
	       (h.e_type == ET_EXEC || h.e_type == ET_DYN) && h.e_machine == MACHINE &&
	       h.e_phentsize == sizeof(Elf64_Phdr) && h.e_phnum && h.e_phnum != PN_XNUM &&
	       (!h.e_shoff ||
		(h.e_shentsize == sizeof(Elf64_Shdr) && h.e_shnum && h.e_shstrndx != SHN_XINDEX));
}

/* libelf reads the section names as a whole, whatever their claimed length. */
static bool names_are_short(Elf *elf)
{
	GElf_Shdr shdr;
	Elf_Scn *scn;
	size_t index;

	if (elf_getshdrstrndx(elf, &index) < 0 || index == SHN_UNDEF)
		return true; /* without section names */
	scn = elf_getscn(elf, index);
	return !scn || (gelf_getshdr(scn, &shdr) && shdr.sh_size <= SECTION_NAMES_MAX);
}

int spec_elf_open(struct spec_parser *p, const char *path, struct spec_elf *ret)
{
	struct spec_elf f = { .path = path, .fd = -EBADF };

	f.fd = open_regular(p, path, &f.size);
	if (f.fd < 0)
		return f.fd;
	if (elf_version(EV_CURRENT) != EV_NONE && is_ours(f.fd))
		f.elf = elf_begin(f.fd, ELF_C_READ, NULL);
	if (!f.elf || elf_kind(f.elf) != ELF_K_ELF || !names_are_short(f.elf)) {
		spec_elf_close(&f);
		return spec_refuse(p, -EINVAL,
				   "%s is no 64-bit ELF program or library of this machine: probes "
				   "are for those only",
				   path);
	}
	*ret = f;
	return 0;
}

void spec_elf_close(struct spec_elf *f)
{
	elf_end(f->elf);
	f->elf = NULL;
	f->fd = close_fd(f->fd);
}

/* ── Addresses ──────────────────────────────────────────────────────────────────────────── */

/* Finds the loaded segment that holds this address, or this file offset. */
static bool find_segment(struct spec_elf *f, uint64_t at, bool by_offset, bool code, GElf_Phdr *ret)
{
	size_t n;

	if (elf_getphdrnum(f->elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t begin;

		if (!gelf_getphdr(f->elf, i, ret) || ret->p_type != PT_LOAD ||
		    !(ret->p_flags & PF_X) == code)
			continue;
		/* A segment beyond the end of the file has no code. */
		if (ret->p_filesz > f->size || ret->p_offset > f->size - ret->p_filesz)
			continue;
		begin = by_offset ? ret->p_offset : ret->p_vaddr;
		if (at >= begin && at - begin < ret->p_filesz)
			return true;
	}
	return false;
}

int spec_elf_offset(struct spec_elf *f, uint64_t address, bool code, uint64_t *ret)
{
	GElf_Phdr segment;

	if (!find_segment(f, address, false, code, &segment))
		return -ENOENT;
	*ret = address - segment.p_vaddr + segment.p_offset;
	return 0;
}

int spec_elf_check_offset(struct spec_parser *p, struct spec_elf *f, uint64_t offset)
{
	GElf_Phdr segment;

	if (find_segment(f, offset, true, true, &segment))
		return 0;
	return spec_refuse(p, -EINVAL,
			   "'%s' is at an offset where %s has no code: the offset is one in the "
			   "file, not an address",
			   p->quote, f->path);
}

/* ── Sections ───────────────────────────────────────────────────────────────────────────── */

/* A section's content, if it is not larger than max. */
static Elf_Data *section_data(Elf_Scn *scn, const GElf_Shdr *shdr, size_t max)
{
	if (shdr->sh_type == SHT_NOBITS || shdr->sh_flags & SHF_COMPRESSED || shdr->sh_size > max)
		return NULL;
	return elf_getdata(scn, NULL);
}

Elf_Data *spec_elf_section(Elf *elf, const char *name, size_t max)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *s =
			gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (s && !strcmp(s, name))
			return section_data(scn, &shdr, max);
	}
	return NULL;
}

/* ── Symbols ────────────────────────────────────────────────────────────────────────────── */

struct table {
	Elf_Data *symbols, *versions; /* versions: or NULL */
	size_t n, names;	      /* names: the section's index */
};

struct found {
	GElf_Sym sym;
	int rank;	/* of the best so far; 0: none */
	bool ambiguous; /* several of that rank, at different places */
};

/* The versions for the symbol table with that index. */
static Elf_Data *find_versions(Elf *elf, size_t index)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_GNU_versym &&
		    shdr.sh_link == index)
			return section_data(scn, &shdr, SYMBOLS_MAX);
	return NULL;
}

/* A file has one symbol table of each kind; a file with thousands wants our memory. */
static Elf_Scn *find_table(Elf *elf, uint32_t type)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == type)
			return scn;
	return NULL;
}

/* Whether it is a sound symbol table. */
static bool open_table(Elf *elf, Elf_Scn *scn, struct table *ret)
{
	GElf_Shdr shdr, names;
	Elf_Scn *strings;

	if (!gelf_getshdr(scn, &shdr) || shdr.sh_entsize != sizeof(Elf64_Sym))
		return false;
	strings = elf_getscn(elf, shdr.sh_link);
	if (!strings || !gelf_getshdr(strings, &names) || !section_data(strings, &names, NAMES_MAX))
		return false;
	ret->symbols = section_data(scn, &shdr, SYMBOLS_MAX);
	ret->versions = find_versions(elf, elf_ndxscn(scn));
	ret->n = ret->symbols ? ret->symbols->d_size / sizeof(Elf64_Sym) : 0;
	ret->names = shdr.sh_link;
	return ret->n > 0;
}

/*
 * Ranks symbols with the same name by how likely other files link to them: global ones of the
 * default version, weak ones, old versions, then those of a single source file.
 */
static int rank(const struct table *t, size_t i, const GElf_Sym *sym, const char *version)
{
	GElf_Versym v = 0;

	if (GELF_ST_BIND(sym->st_info) == STB_LOCAL)
		return 1;
	if (*version == '@' && version[1] != '@')
		return 2;
	if (t->versions && gelf_getversym(t->versions, i, &v) && v & VERSION_HIDDEN)
		return 2;
	return GELF_ST_BIND(sym->st_info) == STB_WEAK ? 3 : 4;
}

static void consider(const struct table *t, size_t i, const GElf_Sym *sym, const char *version,
		     struct found *f)
{
	int r = rank(t, i, sym, version);

	if (r < f->rank)
		return;
	if (r == f->rank) {
		f->ambiguous |= sym->st_value != f->sym.st_value;
		return;
	}
	*f = (struct found){ .sym = *sym, .rank = r };
}

/* Looks for a name in one table; the part after an @ is a version. */
static void search(Elf *elf, const struct table *t, const char *name, struct found *f)
{
	size_t n = strlen(name);
	GElf_Sym sym;

	for (size_t i = 0; i < t->n; i++) {
		const char *s;

		if (!gelf_getsym(t->symbols, i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC &&
		    GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC)
			continue;
		s = elf_strptr(elf, t->names, sym.st_name);
		if (s && !strncmp(s, name, n) && (!s[n] || s[n] == '@'))
			consider(t, i, &sym, s + n, f);
	}
}

static int refuse_function(struct spec_parser *p, struct spec_elf *f, const char *name,
			   bool has_all)
{
	return spec_refuse(p, -ENOENT, "%s has no function '%.60s': see `nm %s%s`%s", f->path, name,
			   has_all ? "" : "-D ", f->path,
			   has_all ? "" : " (it is stripped and knows only those it exports)");
}

int spec_elf_function(struct spec_parser *p, struct spec_elf *f, const char *name,
		      uint64_t *ret_offset, uint64_t *ret_size)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct found found = { 0 };
	bool has_all = false;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		Elf_Scn *scn = find_table(f->elf, types[i]);
		struct table t;

		if (!scn || !open_table(f->elf, scn, &t))
			continue;
		has_all |= types[i] == SHT_SYMTAB;
		search(f->elf, &t, name, &found);
	}
	if (!found.rank)
		return refuse_function(p, f, name, has_all);
	if (found.ambiguous)
		return spec_refuse(p, -EINVAL,
				   "%s has several functions '%.60s': write the offset of one in "
				   "the file, as in uprobe:PATH:0x1234; see `nm %s`",
				   f->path, name, f->path);
	if (GELF_ST_TYPE(found.sym.st_info) == STT_GNU_IFUNC)
		return spec_refuse(
			p, -EOPNOTSUPP,
			"'%.60s' of %s is chosen when a program starts (IFUNC) and never "
			"runs under this name: name the variant that does, as "
			"__memcpy_avx_unaligned is one, or its offset",
			name, f->path);
	if (spec_elf_offset(f, found.sym.st_value, true, ret_offset) < 0)
		return spec_refuse(p, -EINVAL, "'%.60s' of %s is not in the file's code", name,
				   f->path);
	*ret_size = found.sym.st_size;
	return 0;
}
