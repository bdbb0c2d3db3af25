/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of the kernel and its modules: from /proc/kallsyms for the running kernel, or from
 * vmlinux or System.map for any. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "client/perfctl/trace/symbols-table.h"

struct kernel_module {
	char *name; /* "nf_conntrack"; BPF programs are in "bpf" */
	struct symtab table;
};

struct kernel_symbols {
	struct symtab core;
	struct kernel_module *modules;
	size_t n_modules;
	uint64_t text; /* the address of _text when these were read: the kernel's place */
};

/* The identity of a trace's kernel, as far as the trace has it. */
struct kernel_id {
	const char *release; /* "": unknown */
	const uint8_t *build_id;
	size_t build_id_size; /* 0: unknown */
};

/* Whether this is the running kernel: no given fact differs, and at least one is given. */
bool kernel_is_running(const struct kernel_id *id);

/* Reads from any available source. -ENOENT: none that certainly belongs to that kernel; -ENOMEM. */
int kernel_symbols_read(const struct kernel_id *id, struct kernel_symbols *ret);
struct symtab *kernel_symbols_module(struct kernel_symbols *k, const char *name);
void kernel_symbols_done(struct kernel_symbols *k);

/* Parses /proc/kallsyms or System.map: "ADDRESS TYPE NAME", and "\t[MODULE]". -ENOENT: it has no
 * function, or no addresses are shown. */
int kernel_symbols_parse(FILE *f, struct kernel_symbols *ret);
