// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table of perf's symbolic event names, and its lookups. Must not know the syntax around a
 * name: spec.c has modifiers, groups and the rest.
 */
#include "proto/symbol.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/macro.h"
#include "proto/nearest.h"

#define HARDWARE(name, alias, config)                                         \
	{                                                                     \
		name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config, true \
	}
#define SOFTWARE(name, alias, config)                                         \
	{                                                                     \
		name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, true \
	}
#define SILENT(name, config)                                                  \
	{                                                                     \
		name, NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, false \
	}

static const struct symbol symbols[] = {
	HARDWARE("cpu-cycles", "cycles", CPU_CYCLES),
	HARDWARE("instructions", NULL, INSTRUCTIONS),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES),
	HARDWARE("cache-misses", NULL, CACHE_MISSES),
	HARDWARE("branch-instructions", "branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES),
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES),
	SOFTWARE("cpu-clock", NULL, CPU_CLOCK),
	SOFTWARE("task-clock", NULL, TASK_CLOCK),
	SOFTWARE("page-faults", "faults", PAGE_FAULTS),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS),
	SOFTWARE("cgroup-switches", NULL, CGROUP_SWITCHES),
	SILENT("dummy", DUMMY),
	SILENT("bpf-output", BPF_OUTPUT),
};

const struct symbol *symbol_find(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
		if (!strcmp(symbols[i].name, text) ||
		    (symbols[i].alias && !strcmp(symbols[i].alias, text)))
			return &symbols[i];
	return NULL;
}

const struct symbol *symbol_at(size_t i)
{
	return i < ARRAY_SIZE(symbols) ? &symbols[i] : NULL;
}

const char *symbol_nearest(const char *text)
{
	struct pp_nearest s;

	pp_nearest_begin(&s, text, strlen(text));
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		pp_nearest_consider(&s, symbols[i].name);
		if (symbols[i].alias)
			pp_nearest_consider(&s, symbols[i].alias);
	}
	return s.best;
}

void symbol_list(char *buf, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(symbols) && len < size; i++)
		if (symbols[i].counts)
			len += snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
					symbols[i].name);
}

/* ── Cache events: CACHE[-OPERATION][-RESULT], each with perf's aliases ─────────────────── */

struct word {
	const char *text;
	unsigned value;
};

#define CACHE(text, id)                        \
	{                                      \
		text, PERF_COUNT_HW_CACHE_##id \
	}
static const struct word caches[] = {
	CACHE("L1-dcache", L1D), CACHE("l1-d", L1D),
	CACHE("l1d", L1D),	 CACHE("L1-data", L1D),
	CACHE("L1-icache", L1I), CACHE("l1-i", L1I),
	CACHE("l1i", L1I),	 CACHE("L1-instruction", L1I),
	CACHE("LLC", LL),	 CACHE("L2", LL),
	CACHE("dTLB", DTLB),	 CACHE("d-tlb", DTLB),
	CACHE("Data-TLB", DTLB), CACHE("iTLB", ITLB),
	CACHE("i-tlb", ITLB),	 CACHE("Instruction-TLB", ITLB),
	CACHE("branches", BPU),	 CACHE("branch", BPU),
	CACHE("bpu", BPU),	 CACHE("btb", BPU),
	CACHE("bpc", BPU),	 CACHE("node", NODE),
};

static const struct word operations[] = {
	CACHE("loads", OP_READ),
	CACHE("load", OP_READ),
	CACHE("read", OP_READ),
	CACHE("stores", OP_WRITE),
	CACHE("store", OP_WRITE),
	CACHE("write", OP_WRITE),
	CACHE("prefetches", OP_PREFETCH),
	CACHE("prefetch", OP_PREFETCH),
	CACHE("speculative-read", OP_PREFETCH),
	CACHE("speculative-load", OP_PREFETCH),
};

static const struct word results[] = {
	CACHE("refs", RESULT_ACCESS), CACHE("Reference", RESULT_ACCESS),
	CACHE("ops", RESULT_ACCESS),  CACHE("access", RESULT_ACCESS),
	CACHE("misses", RESULT_MISS), CACHE("miss", RESULT_MISS),
};
#undef CACHE

/* The operations of each cache, as bits; perf's own table. */
static const unsigned char cache_operations[PERF_COUNT_HW_CACHE_MAX] = {
#define R (1U << PERF_COUNT_HW_CACHE_OP_READ)
#define W (1U << PERF_COUNT_HW_CACHE_OP_WRITE)
#define P (1U << PERF_COUNT_HW_CACHE_OP_PREFETCH)
	[PERF_COUNT_HW_CACHE_L1D] = R | W | P,	[PERF_COUNT_HW_CACHE_L1I] = R | P,
	[PERF_COUNT_HW_CACHE_LL] = R | W | P,	[PERF_COUNT_HW_CACHE_DTLB] = R | W | P,
	[PERF_COUNT_HW_CACHE_ITLB] = R,		[PERF_COUNT_HW_CACHE_BPU] = R,
	[PERF_COUNT_HW_CACHE_NODE] = R | W | P,
#undef R
#undef W
#undef P
};

/* The text ("" or "-…") behind the word of that list that starts it, or NULL. */
static const char *behind(const char *text, const struct word *words, size_t n, int *ret_value)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(words[i].text);

		if (!strncasecmp(text, words[i].text, len) && (!text[len] || text[len] == '-')) {
			*ret_value = words[i].value;
			return text + len;
		}
	}
	return NULL;
}

/* The default operation is read, the default result access; in any order, each once. */
int symbol_cache(const char *text, uint64_t *ret)
{
	int cache = -1, operation = -1, result = -1;
	const char *s = behind(text, caches, ARRAY_SIZE(caches), &cache);

	while (s && *s) {
		const char *next = NULL;

		if (operation < 0)
			next = behind(s + 1, operations, ARRAY_SIZE(operations), &operation);
		if (!next && result < 0)
			next = behind(s + 1, results, ARRAY_SIZE(results), &result);
		s = next;
	}
	if (!s)
		return -ENOENT;
	operation = MAX(operation, PERF_COUNT_HW_CACHE_OP_READ);
	result = MAX(result, PERF_COUNT_HW_CACHE_RESULT_ACCESS);
	if (!(cache_operations[cache] >> operation & 1))
		return -EINVAL;
	*ret = (uint64_t)result << 16 | (uint64_t)operation << 8 | (uint64_t)cache;
	return 0;
}

bool symbol_cache_name(size_t i, char *buf, size_t size)
{
	static const char *const first[] = { "L1-dcache", "L1-icache", "LLC", "dTLB",
					     "iTLB",	  "branch",    "node" };
	static const char *const kinds[] = { "loads",	     "load-misses", "stores",
					     "store-misses", "prefetches",  "prefetch-misses" };
	uint64_t config;

	if (i >= ARRAY_SIZE(first) * ARRAY_SIZE(kinds))
		return false;
	snprintf(buf, size, "%s-%s", first[i / ARRAY_SIZE(kinds)], kinds[i % ARRAY_SIZE(kinds)]);
	if (symbol_cache(buf, &config) < 0)
		*buf = '\0';
	return true;
}
