/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names as they stand in symbol tables, as people wrote them: C++ and Rust, without parameters, as
 * perf shows them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Who does C++: a child, because names can be made that take forever, or all memory. */
struct demangler {
	int fd;
	pid_t pid; /* 0: not started yet */
	unsigned deaths;
	bool off; /* there is nobody, or it died too often */
};

void demangler_init(struct demangler *d);

/* NULL: it is no such name, or nobody can tell; else the caller's to free. */
char *demangle(struct demangler *d, const char *name);
void demangler_done(struct demangler *d);

/* ── demangle-rust.c ── */

/* Of the older form, that looks like C++ and ends with a hash. */
char *demangle_rust(const char *name);

/* ── demangle-child.c ── */

/* C++, with all that belongs to it. */
char *demangle_cpp(struct demangler *d, const char *name);
