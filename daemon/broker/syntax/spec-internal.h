/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the event text's parser share: spec.c divides the text and tells shapes
 * apart; spec-counter.c has names, modifiers and breakpoints; spec-pmu.c sysfs; spec-probe.c,
 * spec-args.c and spec-usdt.c probes; spec-elf.c the files that those are in.
 *
 * Each spec_parse_… adds sources and returns 0; or -errno with a sentence, which is spec_refuse's.
 * Those that say "1" leave it to others to know the text (0) or have taken it (1).
 */
#pragma once

#include <libelf.h>
#include <stdbool.h>

#include "daemon/broker/syntax/spec.h"
#include "proto/macro.h"

#define SPEC_QUOTE_MAX 100 /* bytes of the text that a sentence repeats */

struct spec_parser {
	const char *pmus;		/* the folder of PMUs */
	char text[PP_EVENT_TEXT_SIZE];	/* the event that is parsed now */
	char quote[SPEC_QUOTE_MAX + 4]; /* it, cut short if it is long */
	struct pp_source *sources;
	size_t n, cap;
	char *sentence;
	size_t size;
};

/* As pp_spec_parse, with the PMUs in another folder. */
int spec_parse(const char *pmus, const char *text, struct pp_source *sources, size_t cap,
	       char *sentence, size_t size);

/* Says what is wrong and returns error. */
_printf_(3, 4) int spec_refuse(struct spec_parser *p, int error, const char *fmt, ...);

/* Appends the source, with that text or (NULL) the event's own. */
int spec_add(struct spec_parser *p, const struct pp_source *source, const char *text);

bool spec_starts_with(const char *s, const char *prefix);
bool spec_consists_of(const char *s, const char *chars);

#define SPEC_DIGITS "0123456789"
#define SPEC_HEX_DIGITS SPEC_DIGITS "abcdefABCDEF"
#define SPEC_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* ── Counters ─────────────────────────────────────────────────────────────────────────────── */

/* All letters that are modifiers in perf. */
#define SPEC_MODIFIERS "ukhHGIp"
#define SPEC_MODIFIERS_OTHER "PSDWeb"

/* Sets exclude and precise_ip of the source. */
int spec_modify(struct spec_parser *p, const char *mods, struct pp_source *source);

/* The source that a name (or rHEX) stands for, without modifiers. 0 or 1. */
int spec_counter(struct spec_parser *p, const char *name, struct pp_source *ret);

int spec_parse_breakpoint(struct spec_parser *p);

/* ── PMUs ─────────────────────────────────────────────────────────────────────────────────── */

int spec_parse_pmu(struct spec_parser *p);

/* The name of an event of PMUs, without them. 0 or 1. */
int spec_parse_pmu_event(struct spec_parser *p, const char *name, const char *mods);

/* ── Probes ───────────────────────────────────────────────────────────────────────────────── */

bool spec_is_probe(const char *text);
int spec_parse_probe(struct spec_parser *p);

/* ARGS, without their brackets; text is taken apart. */
int spec_parse_args(struct spec_parser *p, char *text, struct pp_source *source);

/* The word of struct pt_regs that a register is, or -1; as ftrace names it (or an assembler). */
int spec_register(const char *name);

/* A register, or part of one from its lowest bit on, as assemblers name it. */
int spec_register_part(const char *name);

/* Makes what a probe's note says of its arguments into those of the source. */
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

/* A file by its absolute path: a program or library of this machine's kind. */
int spec_elf_open(struct spec_parser *p, const char *path, struct spec_elf *ret);
void spec_elf_close(struct spec_elf *f);

/* Where a function's code is in the file, and how long it is (0: unknown). */
int spec_elf_function(struct spec_parser *p, struct spec_elf *f, const char *name,
		      uint64_t *ret_offset, uint64_t *ret_size);

/* Is there code at that offset of the file? */
int spec_elf_check_offset(struct spec_parser *p, struct spec_elf *f, uint64_t offset);

/* The file offset of an address: of code, or of data. 0 or -ENOENT. */
int spec_elf_offset(struct spec_elf *f, uint64_t address, bool code, uint64_t *ret);

/* A section's content, if it is of that name and not larger than max; NULL if there is none. */
Elf_Data *spec_elf_section(Elf *elf, const char *name, size_t max);

/* The places of a static probe (provider NULL: any); their number. */
int spec_elf_usdt(struct spec_parser *p, struct spec_elf *f, const char *provider, const char *name,
		  struct spec_usdt *ret, size_t cap);
