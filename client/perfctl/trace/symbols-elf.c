// SPDX-License-Identifier: LGPL-2.1-or-later
/* The functions of one ELF file, by libdwfl: from .symtab; if it is stripped, from its separate
 * debug file; and from .dynsym with .gnu_debugdata. */
#include "client/perfctl/trace/symbols-elf.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "proto/io.h"
#include "proto/macro.h"

static bool has_build_id(Elf *elf, const uint8_t *build_id, size_t size)
{
	const void *id = NULL;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);

	return n > 0 && (size_t)n == size && !memcmp(id, build_id, size);
}

/* Linkers compress debug sections, but never symbols or their names. A hostile file can expand to a
 * thousand times its size, and libdwfl expands it without asking. */
static bool has_packed_symbols(Elf *elf)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_COMPRESSED))
			continue;
		switch (shdr.sh_type) {
		case SHT_SYMTAB:
		case SHT_DYNSYM:
		case SHT_SYMTAB_SHNDX:
		case SHT_STRTAB:
			return true;
		}
	}
	return false;
}

/* A name without an end is read on into what lies behind it; and libelf looks for a table's last end with each
 * name that it reads. */
static bool do_names_end(Elf *elf)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		const Elf_Data *data;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_STRTAB || !shdr.sh_size)
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf || !data->d_size ||
		    ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

/* Whether libdwfl may read it. No tool makes such files, so this holds for those of ours, too. -ENOEXEC; -E2BIG. */
static int check(Elf *elf)
{
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	if (has_packed_symbols(elf))
		return -E2BIG;
	return do_names_end(elf) ? 0 : -ENOEXEC;
}

static int check_fd(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	int r = check(elf);

	elf_end(elf);
	return r;
}

/* ── Debug files ── */

/* Opens a debug file if it has that build id; or -1. */
static int open_debug(const char *path, const uint8_t *build_id, size_t size,
		      struct strangers *payer)
{
	_cleanup_close_ int fd = elf_open(path, &(struct elf_identity){ .strangers = payer }, NULL);
	bool right;
	Elf *elf;

	if (fd < 0)
		return -1;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	right = check(elf) >= 0 && has_build_id(elf, build_id, size);
	elf_end(elf);
	return right ? TAKE_FD(fd) : -1;
}

/* Searches where GDB looks for the file that .gnu_debuglink names. */
static int debug_by_link(const char *file, const char *link, const uint8_t *id, size_t size,
			 struct strangers *payer)
{
	static const char *const roots[] = { "", "", DEBUG_ROOT };
	static const char *const folders[] = { "/", "/.debug/", "/" };
	const char *slash = strrchr(file, '/');

	if (file[0] != '/' || !slash || strchr(link, '/'))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		char path[PATH_MAX];
		int n = snprintf(path, sizeof(path), "%s%.*s%s%s", roots[i], (int)(slash - file),
				 file, folders[i], link);
		int fd = n > 0 && (size_t)n < sizeof(path) ? open_debug(path, id, size, payer) : -1;

		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* libdwfl's own search would open any path that a hostile file names, without checking its type.
 * Only a build id shows that two files belong together: without one no debug file is used. */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name _unused_,
			  Dwarf_Addr base _unused_, const char *file, const char *debuglink,
			  GElf_Word crc _unused_, char **ret _unused_)
{
	const unsigned char *id = NULL;
	GElf_Addr where;
	int size = dwfl_module_build_id(mod, &id, &where);
	int fd;

	if (size <= 0)
		return -1;
	fd = open_debug(debug_path(id, (size_t)size).text, id, (size_t)size, *userdata);
	if (fd < 0 && file && debuglink)
		fd = debug_by_link(file, debuglink, id, (size_t)size, *userdata);
	return fd;
}

static int find_elf(Dwfl_Module *mod _unused_, void **userdata _unused_, const char *name _unused_,
		    Dwarf_Addr base _unused_, char **file _unused_, Elf **elf _unused_)
{
	return -1; /* the file is always given */
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* ── Symbols ── */

static bool is_code(Elf *elf, GElf_Word section)
{
	Elf_Scn *scn = elf_getscn(elf, section);
	GElf_Shdr shdr;

	return scn && gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR;
}

/* Functions, and code labels, which assembly has instead. */
static bool is_function(const GElf_Sym *sym, GElf_Word section, Elf *elf)
{
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return section != SHN_UNDEF;
	case STT_NOTYPE:
		return section != SHN_UNDEF && section != SHN_ABS && elf &&
		       GELF_ST_VISIBILITY(sym->st_other) != STV_HIDDEN && is_code(elf, section);
	}
	return false;
}

static enum symtab_binding binding_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_WEAK:
		return SYMTAB_WEAK;
	case STB_LOCAL:
		return SYMTAB_LOCAL;
	}
	return SYMTAB_GLOBAL;
}

static int read_table(Dwfl_Module *mod, struct elf_symbols *s)
{
	int n = dwfl_module_getsymtab(mod);

	if (n < 0)
		return -ENOEXEC;
	if ((unsigned)n > SYMTAB_MAX)
		return -E2BIG;
	for (int i = 1; i < n; i++) {
		GElf_Word section = SHN_UNDEF;
		GElf_Addr address;
		Elf *elf = NULL;
		GElf_Sym sym;
		const char *name =
			dwfl_module_getsym_info(mod, i, &sym, &address, &section, &elf, NULL);
		int r;

		/* $x, $d and the like are marks for disassemblers. */
		if (!name || !*name || *name == '$' || !is_function(&sym, section, elf))
			continue;
		if (!strcmp(name, "_text"))
			s->text = address;
		r = symtab_add(&s->table, address, sym.st_size, binding_of(&sym), name);
		if (r < 0)
			return r;
	}
	return 0;
}

static void read_segments(Elf *elf, struct elf_symbols *s)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) < 0)
		return;
	for (size_t i = 0; i < n && i <= INT_MAX && s->n_segments < SEGMENTS_MAX; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			return;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		s->segments[s->n_segments++] = (struct elf_segment){
			.offset = phdr.p_offset,
			.size = phdr.p_filesz,
			.address = phdr.p_vaddr,
		};
	}
}

/* .gnu_debugdata is unpacked in memory, can grow thousands of times, and can contain a section that
 * unpacks again: in strangers' files it is ignored. */
static void hide_debugdata(Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name =
			gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (!name || strcmp(name, ".gnu_debugdata"))
			continue;
		shdr.sh_name = 0;
		gelf_update_shdr(scn, &shdr); /* in memory */
	}
}

static int read_module(Dwfl_Module *mod, bool strange, const uint8_t *build_id,
		       size_t build_id_size, struct elf_symbols *s)
{
	GElf_Ehdr ehdr;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);
	int r;

	if (!elf || !gelf_getehdr(elf, &ehdr))
		return -ENOEXEC;
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN)
		return -ENOEXEC;
	if (build_id_size && !has_build_id(elf, build_id, build_id_size))
		return -ESTALE;
	if (strange)
		hide_debugdata(elf);
	read_segments(elf, s);
	r = read_table(mod, s);
	if (r >= 0)
		r = elf_symbols_plt(elf, &s->table);
	if (r >= 0)
		symtab_finish(&s->table);
	return r;
}

/* Charges also for failed reads. */
static void pay(struct strangers *payer, const struct symtab *t, int r)
{
	payer->tables -= MIN(payer->tables, symtab_bytes(t));
	payer->refused |= r == -E2BIG;
}

/* For find_debuginfo(). */
static void set_payer(Dwfl_Module *mod, struct strangers *payer)
{
	void **userdata;

	dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = payer;
}

/* Takes fd over. payer: NULL: not charged. */
static int read_fd(int fd, const char *path, bool strange, struct strangers *payer,
		   const uint8_t *build_id, size_t build_id_size, struct elf_symbols *ret)
{
	struct elf_symbols s = { .table.max = payer ? MAX(payer->tables, 1U) : 0 };
	Dwfl *dwfl = dwfl_begin(&callbacks); /* libelf learns its version, too */
	int r = dwfl ? check_fd(fd) : -ENOMEM;
	Dwfl_Module *mod;

	if (r < 0) {
		dwfl_end(dwfl);
		close_fd(fd);
		if (payer)
			pay(payer, &s.table, r);
		return r;
	}
	dwfl_report_begin(dwfl);
	/* Starts at 0 and follows the program headers: addresses are those in the file. */
	mod = dwfl_report_elf(dwfl, path, path, fd, 0, true);
	if (mod)
		set_payer(mod, payer);
	else
		close_fd(fd);
	dwfl_report_end(dwfl, NULL, NULL);
	r = mod ? read_module(mod, strange, build_id, build_id_size, &s) : -ENOEXEC;
	dwfl_end(dwfl);
	if (payer)
		pay(payer, &s.table, r);
	if (r < 0) {
		elf_symbols_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

int elf_symbols_read(const char *path, const struct elf_identity *which, struct elf_symbols *ret)
{
	struct elf_identity any = {};
	bool strange = false;
	int fd;

	which = which ?: &any;
	fd = elf_open(path, which, &strange);
	return fd < 0 ? fd
		      : read_fd(fd, path, strange, strange ? which->strangers : NULL,
				which->build_id, which->build_id_size, ret);
}

int elf_symbols_read_image(const void *image, size_t size, const uint8_t *build_id,
			   size_t build_id_size, struct elf_symbols *ret)
{
	_cleanup_close_ int fd = memfd_create("perfctl-image", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : pp_write_all(fd, image, size);

	if (r < 0)
		return r;
	return read_fd(TAKE_FD(fd), "[image]", false, NULL, build_id, build_id_size, ret);
}

bool elf_symbols_address(const struct elf_symbols *s, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct elf_segment *segment = &s->segments[i];

		if (offset < segment->offset || offset - segment->offset >= segment->size)
			continue;
		*ret = segment->address + (offset - segment->offset);
		return true;
	}
	return false;
}

void elf_symbols_done(struct elf_symbols *s)
{
	symtab_done(&s->table);
	*s = (struct elf_symbols){};
}
