/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small ELF program with every kind of symbol and note that probes handle, built in memory for
 * the tests and the fuzzer of the parsers. Its code never runs.
 */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define IMAGE_CODE 0x401000
#define IMAGE_DATA 0x602000
#define IMAGE_BASE 0x700000 /* of the notes, as written; the image has moved by IMAGE_MOVED */
#define IMAGE_MOVED 8

enum image_section {
	IMAGE_NULL,
	IMAGE_SYMTAB,
	IMAGE_DYNSYM,
	IMAGE_VERSYM,
	IMAGE_STRTAB,
	IMAGE_NOTES,
	IMAGE_STAPSDT_BASE,
	IMAGE_SECTIONS,
};

struct elf_image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Shdr sections[IMAGE_SECTIONS];
	Elf64_Sym symtab[16], dynsym[4];
	uint16_t versym[4];
	char strtab[512];
	char notes[1024];
	char code[256], data[64];
	/* Counters of the builder. */
	uint32_t n_symtab, n_dynsym, n_strtab, n_notes;
};

#define IMAGE_SIZE offsetof(struct elf_image, n_symtab)

static inline uint32_t image_text(struct elf_image *e, const char *text)
{
	uint32_t at = e->n_strtab;

	strcpy(e->strtab + at, text);
	e->n_strtab += strlen(text) + 1;
	return at;
}

static inline Elf64_Sym image_symbol(struct elf_image *e, const char *name, int bind, int type,
				     uint64_t address, uint64_t size)
{
	return (Elf64_Sym){
		.st_name = image_text(e, name),
		.st_info = ELF64_ST_INFO(bind, type),
		.st_shndx = 1,
		.st_value = address,
		.st_size = size,
	};
}

static inline void image_function(struct elf_image *e, const char *name, int bind, int type,
				  uint64_t at, uint64_t size)
{
	e->symtab[e->n_symtab++] = image_symbol(e, name, bind, type, IMAGE_CODE + at, size);
}

static inline void image_exported(struct elf_image *e, const char *name, uint64_t at,
				  uint16_t version)
{
	e->versym[e->n_dynsym] = version;
	e->dynsym[e->n_dynsym++] = image_symbol(e, name, STB_GLOBAL, STT_FUNC, IMAGE_CODE + at, 8);
}

/* Adds the note of a static probe at that address of the code, before the move. */
static inline void image_note(struct elf_image *e, const char *provider, const char *name,
			      uint64_t at, uint64_t semaphore, const char *args)
{
	uint64_t places[3] = { IMAGE_CODE + at - IMAGE_MOVED, IMAGE_BASE,
			       semaphore ? IMAGE_DATA + semaphore - IMAGE_MOVED : 0 };
	Elf64_Nhdr h = { .n_namesz = 8, .n_type = 3 };
	char *note = e->notes + e->n_notes, *at_desc = note + sizeof(h) + 8;

	memcpy(note + sizeof(h), "stapsdt", 8);
	memcpy(at_desc, places, sizeof(places));
	h.n_descsz = sizeof(places) + 1 +
		     sprintf(at_desc + sizeof(places), "%s%c%s%c%s", provider, 0, name, 0, args);
	memcpy(note, &h, sizeof(h));
	e->n_notes += sizeof(h) + 8 + ((h.n_descsz + 3) & ~3U);
}

static inline void image_section(struct elf_image *e, enum image_section i, const char *name,
				 uint32_t type, size_t offset, size_t size, size_t entry)
{
	e->sections[i] = (Elf64_Shdr){
		.sh_name = image_text(e, name),
		.sh_type = type,
		.sh_offset = offset,
		.sh_size = size,
		.sh_entsize = entry,
		.sh_addralign = type == SHT_NOTE ? 4 : 1,
		.sh_link = type == SHT_SYMTAB || type == SHT_DYNSYM ? IMAGE_STRTAB
			   : type == SHT_GNU_versym		    ? IMAGE_DYNSYM
								    : 0,
	};
}

static inline void image_frame(struct elf_image *e)
{
	e->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
#ifdef __aarch64__
		.e_machine = EM_AARCH64,
#else
		.e_machine = EM_X86_64,
#endif
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(struct elf_image, segments),
		.e_shoff = offsetof(struct elf_image, sections),
		.e_ehsize = sizeof(e->header),
		.e_phentsize = sizeof(*e->segments),
		.e_phnum = 2,
		.e_shentsize = sizeof(*e->sections),
		.e_shnum = IMAGE_SECTIONS,
		.e_shstrndx = IMAGE_STRTAB,
	};
	e->segments[0] = (Elf64_Phdr){ PT_LOAD,
				       PF_R | PF_X,
				       offsetof(struct elf_image, code),
				       IMAGE_CODE,
				       IMAGE_CODE,
				       sizeof(e->code),
				       sizeof(e->code),
				       1 };
	e->segments[1] = (Elf64_Phdr){ PT_LOAD,
				       PF_R | PF_W,
				       offsetof(struct elf_image, data),
				       IMAGE_DATA,
				       IMAGE_DATA,
				       sizeof(e->data),
				       sizeof(e->data),
				       1 };
#define IMAGE_PART(i, name, type, field, used, entry) \
	image_section(e, i, name, type, offsetof(struct elf_image, field), used, entry)
	IMAGE_PART(IMAGE_SYMTAB, ".symtab", SHT_SYMTAB, symtab, e->n_symtab * sizeof(Elf64_Sym),
		   sizeof(Elf64_Sym));
	IMAGE_PART(IMAGE_DYNSYM, ".dynsym", SHT_DYNSYM, dynsym, e->n_dynsym * sizeof(Elf64_Sym),
		   sizeof(Elf64_Sym));
	IMAGE_PART(IMAGE_VERSYM, ".gnu.version", SHT_GNU_versym, versym, e->n_dynsym * 2, 2);
	IMAGE_PART(IMAGE_STRTAB, ".strtab", SHT_STRTAB, strtab, sizeof(e->strtab), 0);
	IMAGE_PART(IMAGE_NOTES, ".note.stapsdt", SHT_NOTE, notes, e->n_notes, 0);
	IMAGE_PART(IMAGE_STAPSDT_BASE, ".stapsdt.base", SHT_PROGBITS, data, 1, 0);
#undef IMAGE_PART
	e->sections[IMAGE_STAPSDT_BASE].sh_addr = IMAGE_BASE + IMAGE_MOVED;
}

static inline void image_make(struct elf_image *e)
{
	memset(e, 0, sizeof(*e));
	e->n_symtab = e->n_dynsym = 1;
	image_text(e, "");
	image_function(e, "plain", STB_GLOBAL, STT_FUNC, 16, 32);
	image_function(e, "endless", STB_GLOBAL, STT_FUNC, 16, 0);
	image_function(e, "twice", STB_LOCAL, STT_FUNC, 24, 8);
	image_function(e, "twice", STB_LOCAL, STT_FUNC, 32, 8);
	image_function(e, "same", STB_LOCAL, STT_FUNC, 24, 8);
	image_function(e, "same", STB_LOCAL, STT_FUNC, 24, 8);
	image_function(e, "shadowed", STB_LOCAL, STT_FUNC, 24, 8);
	image_function(e, "shadowed", STB_WEAK, STT_FUNC, 40, 8);
	image_function(e, "grown@V1", STB_GLOBAL, STT_FUNC, 24, 8);
	image_function(e, "grown@@V2", STB_GLOBAL, STT_FUNC, 48, 8);
	image_function(e, "chosen", STB_GLOBAL, STT_GNU_IFUNC, 24, 8);
	image_function(e, "outside", STB_GLOBAL, STT_FUNC, 0x5000, 8);
	image_function(e, "variable", STB_GLOBAL, STT_OBJECT, 24, 8);
	image_exported(e, "exported", 56, 0x8001);
	image_exported(e, "exported", 64, 2);
	image_note(e, "app", "begin", 72, 16, "-4@%edi 8@-16(%rsp) 4@$5");
	image_note(e, "app", "begin", 80, 16, "");
	image_note(e, "lib", "both", 88, 0, "");
	image_note(e, "app", "both", 96, 0, "8@(%rax,%rbx,8) 8@%rbx");
	image_note(e, "app", "lost", 0x5000, 0, "");
	image_note(e, "app", "uncounted", 88, 0x5000, "");
	image_frame(e);
}
