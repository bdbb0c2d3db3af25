/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of functions: of programs and libraries by elfutils (symbol tables, separate debug files by
 * build id, .gnu_debugdata of one's own files), of the kernel by /proc/kallsyms if the trace is of
 * this boot's kernel, else by a vmlinux or System.map with that build id. A file whose build id has
 * changed is not used: no name is better than a wrong one.
 */
#pragma once

#include "client/perfctl/trace/process.h"
#include "client/perfctl/trace/trace.h"

struct symbols;

struct symbol {
	const char *name; /* "[unknown]" if there is none; demangled; never NULL */
	uint64_t offset;  /* of the address in the function */
	uint64_t place;	  /* offset in dso's file; in the kernel: the address */
	/* The start of the function in its file: equal for all addresses of one function, wherever
	 * it is mapped. Without a name: of the address itself. */
	uint64_t start;
	const struct dso *dso; /* NULL: nothing is mapped there */
};

/* info identifies the trace's kernel. */
int symbols_new(const struct trace_info *info, struct symbols **ret);
void symbols_free(struct symbols *s);

/* Before the first look-up: shows C++ and Rust names mangled. */
void symbols_keep_mangled(struct symbols *s);

/* Whether strangers' files exceeded the limits, so that some names are missing. */
bool symbols_refused(const struct symbols *s);

/* Never fails: the name may be "[unknown]". Texts live as long as s. */
void symbols_find(struct symbols *s, struct processes *p, uint32_t pid, uint64_t address,
		  bool kernel, struct symbol *ret);

/* A sample's call chain (or its ip alone, if it has none), the innermost first, without the
 * PERF_CONTEXT_* marks. A return address is looked up one byte before, at the call. */
struct symbols_frame {
	uint64_t address;
	bool kernel;
	struct symbol symbol;
};
/* Fills in at most max; returns how many. */
size_t symbols_chain(struct symbols *s, struct processes *p, const struct trace_record *record,
		     struct symbols_frame *frames, size_t max);
