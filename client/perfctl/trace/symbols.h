/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of functions: of programs and libraries through elfutils (symbol tables, separate debug
 * files by build id, .gnu_debugdata of one's own), of the kernel through /proc/kallsyms if the
 * trace is of this boot's kernel, else through its vmlinux or System.map if there is one with that
 * build id. A file whose build id is another by now is not used: no name is better than a wrong
 * one.
 */
#pragma once

#include "client/perfctl/trace/process.h"
#include "client/perfctl/trace/trace.h"

struct symbols;

struct symbol {
	const char *name; /* "[unknown]" if there is none; demangled; never NULL */
	uint64_t offset;  /* of the address in it */
	uint64_t place;	  /* of the address in dso's file; of the kernel: the address */
	/* Where it begins, as its file has it: equal for all addresses of one function, wherever it
	 * is mapped. Without a name: of the address itself. */
	uint64_t start;
	const struct dso *dso; /* NULL: nothing is mapped there */
};

/* info tells of which kernel the trace is. */
int symbols_new(const struct trace_info *info, struct symbols **ret);
void symbols_free(struct symbols *s);

/* Before the first look-up: C++ and Rust names as they stand in the files. */
void symbols_keep_mangled(struct symbols *s);

/* Whether what strangers' files have is too much, so that some of it is not known. */
bool symbols_refused(const struct symbols *s);

/* Never fails: says "[unknown]". Texts live as long as s. */
void symbols_find(struct symbols *s, struct processes *p, uint32_t pid, uint64_t address,
		  bool kernel, struct symbol *ret);

/* Walks a sample's call chain (or its ip alone, if it has none), the innermost first, without the
 * PERF_CONTEXT_* marks. A return address is looked up one byte before, where the call is. */
struct symbols_frame {
	uint64_t address;
	bool kernel;
	struct symbol symbol;
};
/* Fills at most max; returns how many. */
size_t symbols_chain(struct symbols *s, struct processes *p, const struct trace_record *record,
		     struct symbols_frame *frames, size_t max);
