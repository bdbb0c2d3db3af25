/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Demangles the names in symbol tables to source names: C++ and Rust, without parameters, as perf
 * shows them. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Demangles C++ in a child, because a hostile name can take forever, or all memory. */
struct demangler {
	int fd;
	pid_t pid; /* 0: not started yet */
	unsigned deaths;
	bool off; /* not available, or it died too often */
};

void demangler_init(struct demangler *d);

/* NULL: not a mangled name, or it cannot be demangled; otherwise the caller frees it. */
char *demangle(struct demangler *d, const char *name);
void demangler_done(struct demangler *d);

/* ── demangle-rust.c ── */

/* For the legacy form, which looks like C++ and ends with a hash. */
char *demangle_rust(const char *name);

/* ── demangle-child.c ── */

/* C++, with all that belongs to it. */
char *demangle_cpp(struct demangler *d, const char *name);
