/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * perf's symbolic names of hardware, software and cache events, and their meaning. The kernel's
 * numbers are its ABI; the names are perf's. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
	const char *name;
	const char *alias; /* or NULL */
	uint32_t type;	   /* perf_event_attr.type */
	uint64_t config;   /* perf_event_attr.config */
	bool counts;	   /* false: it never counts, so it cannot be sampled */
};

/* Finds a name or alias, spelled exactly as in perf; NULL if there is none. */
const struct symbol *symbol_find(const char *text);

/* Each of them by its number, from 0; NULL behind the last. */
const struct symbol *symbol_at(size_t i);

/* The name or alias most similar to `text`, or NULL. */
const char *symbol_nearest(const char *text);

/* All names that count, with ", " between them; shortened if there is no room. */
void symbol_list(char *buf, size_t size);

/*
 * The config of a hardware cache event (L1-dcache-load-misses, LLC-stores, dTLB and so on). Returns
 * 0; -ENOENT (no such name); -EINVAL (that cache lacks the operation).
 */
int symbol_cache(const char *text, uint64_t *ret);

#define SYMBOL_CACHE_SIZE 32

/* perf's usual names of cache events by their number, from 0; false behind the last. Empty: that cache lacks
 * the operation. */
bool symbol_cache_name(size_t i, char *buf, size_t size);
