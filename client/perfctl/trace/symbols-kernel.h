/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's functions, and its modules': as /proc/kallsyms tells them of the running kernel, or
 * as vmlinux or System.map do of any.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "client/perfctl/trace/symbols-table.h"

struct kernel_module {
	char *name; /* "nf_conntrack"; "bpf" is what BPF programs are of */
	struct symtab table;
};

struct kernel_symbols {
	struct symtab core;
	struct kernel_module *modules;
	size_t n_modules;
	uint64_t text; /* the address of _text: where the kernel was when these were told */
};

/* Which kernel a trace is of, as far as it says. */
struct kernel_id {
	const char *release; /* "": it does not say */
	const uint8_t *build_id;
	size_t build_id_size; /* 0: it does not say */
};

/* Whether that is the kernel that runs here: nothing it says differs, and it says something. */
bool kernel_is_running(const struct kernel_id *id);

/* From wherever there is something. -ENOENT: there is nothing that is certain to be of that
 * kernel; -ENOMEM. */
int kernel_symbols_read(const struct kernel_id *id, struct kernel_symbols *ret);
struct symtab *kernel_symbols_module(struct kernel_symbols *k, const char *name);
void kernel_symbols_done(struct kernel_symbols *k);

/* The form of /proc/kallsyms and System.map: "ADDRESS TYPE NAME", and "\t[MODULE]". -ENOENT: there
 * is no function in it, or no addresses are told. */
int kernel_symbols_parse(FILE *f, struct kernel_symbols *ret);
