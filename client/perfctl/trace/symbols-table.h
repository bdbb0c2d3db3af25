/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A sorted table of functions: filled in any order, finished once, then looked up by address.
 * Of several names for one place the one is kept that perf would show. Knows no file format.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The better one of two names for a place comes later. */
enum symtab_binding { SYMTAB_WEAK, SYMTAB_LOCAL, SYMTAB_GLOBAL };

struct symtab_entry {
	uint64_t start, end;
	char *shown; /* the name demangled, once it was wanted; NULL: it stays as it is */
	uint32_t name;
	uint8_t binding;
	bool tried; /* to demangle it */
};

struct symtab {
	struct symtab_entry *entries;
	size_t n, cap;
	char *text; /* the names, each with its NUL */
	size_t text_size, text_cap;
	size_t max; /* bytes; 0: no end */
};

/* No program comes near; a file that was made to hurt does. */
#define SYMTAB_MAX (4U << 20)
/* A name can be told with each call of each chain; of a longer one that is its beginning. */
#define SYMTAB_NAME_MAX 1023

/* size 0: up to the next. The name is copied. -ENOMEM; -E2BIG: more than anybody has, or than max.
 */
int symtab_add(struct symtab *t, uint64_t start, uint64_t size, enum symtab_binding binding,
	       const char *name);

/* Sorts, drops the lesser names, gives ends to those that have none. */
void symtab_finish(struct symtab *t);

/* The one that an address is in; NULL: none. */
struct symtab_entry *symtab_find(const struct symtab *t, uint64_t address);

static inline size_t symtab_bytes(const struct symtab *t)
{
	return t->n * sizeof(*t->entries) + t->text_size;
}

static inline const char *symtab_name(const struct symtab *t, const struct symtab_entry *e)
{
	return t->text + e->name;
}

void symtab_done(struct symtab *t);
