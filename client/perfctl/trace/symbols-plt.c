// SPDX-License-Identifier: LGPL-2.1-or-later
/* The jumps into other libraries, which no symbol table has: "memcpy@plt" follows from the order of
 * .rela.plt, which is the order of the jumps. */
#include <gelf.h>
#include <string.h>

#include "client/perfctl/trace/symbols-elf.h"
#include "proto/macro.h"

struct section {
	Elf_Scn *scn;
	GElf_Shdr header;
};

static bool find_section(Elf *elf, const char *name, struct section *ret)
{
	struct section s = {};
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((s.scn = elf_nextscn(elf, s.scn))) {
		const char *n = gelf_getshdr(s.scn, &s.header)
					? elf_strptr(elf, names, s.header.sh_name)
					: NULL;

		if (n && !strcmp(n, name)) {
			*ret = s;
			return true;
		}
	}
	return false;
}

/* The address of the first jump, and the size of each. */
static bool find_jumps(Elf *elf, uint64_t *ret_first, uint64_t *ret_size)
{
	struct section plt;
	GElf_Ehdr ehdr;
	uint64_t header;

	if (!gelf_getehdr(elf, &ehdr) ||
	    (ehdr.e_machine != EM_X86_64 && ehdr.e_machine != EM_AARCH64))
		return false;
	/* With indirect branch tracking, these are called. */
	if (find_section(elf, ".plt.sec", &plt))
		header = 0;
	else if (find_section(elf, ".plt", &plt))
		header = ehdr.e_machine == EM_AARCH64 ? 32 : 16;
	else
		return false;
	*ret_first = plt.header.sh_addr + header;
	*ret_size = 16;
	return plt.header.sh_type == SHT_PROGBITS;
}

static const char *symbol_name(Elf *elf, const struct section *symbols, Elf_Data *data, size_t i)
{
	GElf_Sym sym;

	if (i > INT32_MAX || !gelf_getsym(data, (int)i, &sym))
		return NULL;
	return elf_strptr(elf, symbols->header.sh_link, sym.st_name);
}

static int add_jump(Elf *elf, const struct section *symbols, Elf_Data *data, const GElf_Rela *rela,
		    uint64_t address, uint64_t size, struct symtab *t)
{
	const char *name = symbol_name(elf, symbols, data, GELF_R_SYM(rela->r_info));
	_cleanup_free_ char *jump = NULL;

	/* Entries resolved by calling a function have no name. */
	if (!name || !*name)
		return 0;
	if (asprintf(&jump, "%.*s@plt", SYMTAB_NAME_MAX, name) < 0) {
		jump = NULL;
		return -ENOMEM;
	}
	return symtab_add(t, address, size, SYMTAB_GLOBAL, jump);
}

int elf_symbols_plt(Elf *elf, struct symtab *t)
{
	struct section relocations, symbols = {};
	Elf_Data *data, *symbol_data;
	uint64_t first, size;
	GElf_Rela rela;
	int r = 0;

	if (!find_jumps(elf, &first, &size) || !find_section(elf, ".rela.plt", &relocations))
		return 0;
	symbols.scn = elf_getscn(elf, relocations.header.sh_link);
	if (!symbols.scn || !gelf_getshdr(symbols.scn, &symbols.header))
		return 0;
	data = elf_getdata(relocations.scn, NULL);
	symbol_data = elf_getdata(symbols.scn, NULL);
	for (int i = 0; data && symbol_data && r >= 0 && gelf_getrela(data, i, &rela); i++)
		r = (unsigned)i < SYMTAB_MAX ? add_jump(elf, &symbols, symbol_data, &rela,
							first + (uint64_t)i * size, size, t)
					     : -E2BIG;
	return r;
}
