/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the parts of the event text's parser. spec.c splits the text and recognises its forms;
 * spec-counter.c has names, modifiers and breakpoints; spec-pmu.c sysfs; spec-probe.c, spec-args.c
 * and spec-usdt.c probes; spec-elf.c the files with probes.
 *
 * Each spec_parse_… adds sources and returns 0; or returns -errno with an error message from
 * spec_refuse. A function that can return 1 has handled the text then; 0 leaves the text to others.
 */
#pragma once

#include <libelf.h>
#include <stdbool.h>

#include "daemon/broker/syntax/spec.h"
#include "proto/macro.h"

#define SPEC_QUOTE_MAX 100 /* bytes of the text that an error message repeats */

struct spec_parser {
	const char *pmus;		/* the folder of PMUs */
	char text[PP_EVENT_TEXT_SIZE];	/* the event being parsed */
	char quote[SPEC_QUOTE_MAX + 4]; /* the event, shortened if it is long */
	struct pp_source *sources;
	size_t n, cap;
	char *sentence;
	size_t size;
};

/* As pp_spec_parse, with the PMUs in another folder. */
int spec_parse(const char *pmus, const char *text, struct pp_source *sources, size_t cap,
	       char *sentence, size_t size);

/* Writes the error message and returns error. */
_printf_(3, 4) int spec_refuse(struct spec_parser *p, int error, const char *fmt, ...);

/* Appends the source, with that text or (NULL) the event's own. */
int spec_add(struct spec_parser *p, const struct pp_source *source, const char *text);

bool spec_starts_with(const char *s, const char *prefix);
bool spec_consists_of(const char *s, const char *chars);

#define SPEC_DIGITS "0123456789"
#define SPEC_HEX_DIGITS SPEC_DIGITS "abcdefABCDEF"
#define SPEC_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* ── Counters ─────────────────────────────────────────────────────────────────────────────── */

/* All of perf's modifier letters. */
#define SPEC_MODIFIERS "ukhHGIp"
#define SPEC_MODIFIERS_OTHER "PSDWeb"

/* Sets exclude and precise_ip of the source. */
int spec_modify(struct spec_parser *p, const char *mods, struct pp_source *source);

/* The source for a name (or rHEX), without modifiers. 0 or 1. */
int spec_counter(struct spec_parser *p, const char *name, struct pp_source *ret);

int spec_parse_breakpoint(struct spec_parser *p);

/* ── PMUs ─────────────────────────────────────────────────────────────────────────────────── */

int spec_parse_pmu(struct spec_parser *p);

/* Parses the name of a PMU's event without the PMU. 0 or 1. */
int spec_parse_pmu_event(struct spec_parser *p, const char *name, const char *mods);

/* aux-sample-size and aux-action, which all events beside an AUX area can have. 0 or 1. */
int spec_aux_term(struct spec_parser *p, const char *term, const char *value, struct pp_source *s);

/* ── Probes ───────────────────────────────────────────────────────────────────────────────── */

bool spec_is_probe(const char *text);
int spec_parse_probe(struct spec_parser *p);

/* Parses ARGS without their brackets; modifies text. */
int spec_parse_args(struct spec_parser *p, char *text, struct pp_source *source);

/* The index of a register in struct pt_regs, or -1; by ftrace's (or the assembler's) name. */
int spec_register(const char *name);

/* A register, or a part of one that includes its lowest bit, by the assembler's name. */
int spec_register_part(const char *name);

/* Parses the arguments in a probe's note into those of the source. */
void spec_usdt_args(const char *text, struct pp_source *source);

/* ── ELF files ────────────────────────────────────────────────────────────────────────────── */

struct spec_elf {
	const char *path;
	int fd;
	uint64_t size;
	Elf *elf;
};

struct spec_usdt {
	uint64_t offset, semaphore; /* in the file; semaphore 0: none */
	char args[256];
};

/* Opens a file by its absolute path: a program or library of this machine's kind. */
int spec_elf_open(struct spec_parser *p, const char *path, struct spec_elf *ret);
void spec_elf_close(struct spec_elf *f);

/* The offset of a function's code in the file, and its length (0: unknown). */
int spec_elf_function(struct spec_parser *p, struct spec_elf *f, const char *name,
		      uint64_t *ret_offset, uint64_t *ret_size);

/* Whether there is code at that offset of the file. */
int spec_elf_check_offset(struct spec_parser *p, struct spec_elf *f, uint64_t offset);

/* The file offset of an address in code, or in data. 0 or -ENOENT. */
int spec_elf_offset(struct spec_elf *f, uint64_t address, bool code, uint64_t *ret);

/* A section's content, if it has that name and is not larger than max; else NULL. */
Elf_Data *spec_elf_section(Elf *elf, const char *name, size_t max);

/* The places of a static probe (provider NULL: any); returns their number. */
int spec_elf_usdt(struct spec_parser *p, struct spec_elf *f, const char *provider, const char *name,
		  struct spec_usdt *ret, size_t cap);
