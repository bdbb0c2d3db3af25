// SPDX-License-Identifier: LGPL-2.1-or-later
/* A sorted table of functions. If one address has several names, it keeps the one that perf would,
 * so that both programs show the same. */
#include "client/perfctl/trace/symbols-table.h"

#include <string.h>

#include "proto/macro.h"

#define TEXT_MAX (512U << 20)
/* The assumed length of a last function without a size, as in perf. */
#define LAST_PAGE 4096

static int grow(void *array, size_t *cap, size_t need, size_t element)
{
	void **p = array;
	size_t bigger = *cap;
	void *q;

	if (need <= *cap)
		return 0;
	while (bigger < need)
		bigger = bigger ? bigger * 2 : 1024;
	q = reallocarray(*p, bigger, element);
	if (!q)
		return -ENOMEM;
	*p = q;
	*cap = bigger;
	return 0;
}

int symtab_add(struct symtab *t, uint64_t start, uint64_t size, enum symtab_binding binding,
	       const char *name)
{
	size_t len = strnlen(name, SYMTAB_NAME_MAX);
	int r;

	if (t->n >= SYMTAB_MAX || len >= TEXT_MAX - t->text_size ||
	    (t->max && symtab_bytes(t) + sizeof(*t->entries) + len >= t->max))
		return -E2BIG;
	if (size > UINT64_MAX - start)
		size = UINT64_MAX - start;
	r = grow(&t->entries, &t->cap, t->n + 1, sizeof(*t->entries));
	if (r >= 0)
		r = grow(&t->text, &t->text_cap, t->text_size + len + 1, 1);
	if (r < 0)
		return r;
	memcpy(t->text + t->text_size, name, len);
	t->text[t->text_size + len] = '\0';
	t->entries[t->n++] = (struct symtab_entry){
		.start = start,
		.end = start + size,
		.name = (uint32_t)t->text_size,
		.binding = (uint8_t)binding,
	};
	t->text_size += len + 1;
	return 0;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* Whether b is the better name for a's address. */
static bool is_better(const struct symtab *t, const struct symtab_entry *b,
		      const struct symtab_entry *a)
{
	const char *name_a = symtab_name(t, a), *name_b = symtab_name(t, b);
	bool sized_a = a->end > a->start, sized_b = b->end > b->start;

	if (sized_a != sized_b)
		return sized_b;
	if ((a->binding == SYMTAB_WEAK) != (b->binding == SYMTAB_WEAK))
		return a->binding == SYMTAB_WEAK;
	if ((a->binding == SYMTAB_GLOBAL) != (b->binding == SYMTAB_GLOBAL))
		return b->binding == SYMTAB_GLOBAL;
	if (underscores(name_a) != underscores(name_b))
		return underscores(name_b) < underscores(name_a);
	return strlen(name_b) > strlen(name_a);
}

/* By address; at one address in the order of insertion. */
static int compare(const void *a, const void *b)
{
	const struct symtab_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void end_last(struct symtab_entry *e)
{
	if (e->end == e->start && e->start < UINT64_MAX - 2 * LAST_PAGE)
		e->end = ALIGN_TO(e->start, LAST_PAGE) + LAST_PAGE;
}

void symtab_finish(struct symtab *t)
{
	size_t n = 0;

	if (!t->n)
		return;
	qsort(t->entries, t->n, sizeof(*t->entries), compare);
	/* First the ends, as in perf: of several names without a size the last one gets it, and is
	 * then the better one. */
	for (size_t i = 0; i + 1 < t->n; i++)
		if (t->entries[i].end == t->entries[i].start)
			t->entries[i].end = t->entries[i + 1].start;
	end_last(&t->entries[t->n - 1]);
	for (size_t i = 1; i < t->n; i++) {
		struct symtab_entry *last = &t->entries[n];

		if (t->entries[i].start != last->start)
			t->entries[++n] = t->entries[i];
		else if (is_better(t, &t->entries[i], last))
			*last = t->entries[i];
	}
	t->n = n + 1;
}

struct symtab_entry *symtab_find(const struct symtab *t, uint64_t address)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* A function can contain small ones; the search goes only a few back. */
	for (size_t i = 0; i < 8 && low; i++) {
		struct symtab_entry *e = &t->entries[--low];

		if (address < e->end)
			return e;
	}
	return NULL;
}

void symtab_done(struct symtab *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->entries[i].shown);
	free(t->entries);
	free(t->text);
	*t = (struct symtab){};
}
