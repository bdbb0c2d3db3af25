/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A sorted table of functions: filled in any order, finished once, then looked up by address. If
 * one address has several names, it keeps the one that perf would show. Knows no file format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The better name for an address comes later. */
enum symtab_binding { SYMTAB_WEAK, SYMTAB_LOCAL, SYMTAB_GLOBAL };

struct symtab_entry {
	uint64_t start, end;
	char *shown; /* the demangled name, once it was wanted; NULL: unchanged */
	uint32_t name;
	uint8_t binding;
	bool tried; /* to demangle it */
};

struct symtab {
	struct symtab_entry *entries;
	size_t n, cap;
	char *text; /* the names, each with its NUL */
	size_t text_size, text_cap;
	size_t max; /* bytes; 0: no limit */
};

/* No real program comes near; a hostile file can. */
#define SYMTAB_MAX (4U << 20)
/* A name can be printed with each call of each chain; longer names are cut to this. */
#define SYMTAB_NAME_MAX 1023

/* size 0: up to the next one. Copies the name. -ENOMEM; -E2BIG: more than SYMTAB_MAX, or
 * than max. */
int symtab_add(struct symtab *t, uint64_t start, uint64_t size, enum symtab_binding binding,
	       const char *name);

/* Sorts, drops the lesser names, and sets missing ends. */
void symtab_finish(struct symtab *t);

/* The function that contains an address; NULL: none. */
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
