// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lists of mappings. The kernel reports what is mapped and never what is unmapped, so a list only
 * grows: when it is long, compacting drops mappings that newer ones have covered. */
#include <errno.h>
#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"

#define KEPT_MAX 16384 /* mappings of one list that survive a compacting */

struct map *map_ref(struct map *m)
{
	if (m)
		m->refs++;
	return m;
}

void map_put(struct table *t, struct map *m)
{
	while (m && --m->refs == 0) {
		struct map *older = m->older;

		blobs_put(&t->blobs, m->file);
		memory_put(&t->memory, m);
		m = older;
	}
}

static bool is_same(const struct map *m, const struct map *what, const struct blob *file)
{
	return m->file == file && m->start == what->start && m->size == what->size &&
	       m->offset == what->offset && m->prot == what->prot && m->flags == what->flags;
}

int process_map(struct table *t, struct process *p, const struct map *what, struct blob *file)
{
	struct map *m = *p->maps;

	/* mprotect() reports a mapping again. */
	if (m && is_same(m, what, file)) {
		blobs_put(&t->blobs, file);
		return 0;
	}
	m = memory_get(&t->memory, sizeof(*m));
	if (!m) {
		blobs_put(&t->blobs, file);
		return -ENOMEM;
	}
	*m = *what;
	m->file = file;
	m->refs = 1;
	m->older = *p->maps;
	/* Times never decrease, so that a time alone says which part of a list another one has. */
	if (m->older)
		m->time = MAX(m->time, m->older->time);
	*p->maps = m;
	if (++p->n_maps >= p->compact_at)
		process_compact(t, p);
	return 0;
}

/* ── coverage ───────────────────────────────────────────────────────────────────────────── */

/* All addresses at which a map begins or ends, sorted; and for each piece between two of them, the
 * next piece that no newer map covers. */
struct pieces {
	uint64_t *at;
	uint32_t *free;
	size_t n;
};

static void pieces_done(struct pieces *pieces)
{
	free(pieces->at);
	free(pieces->free);
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t map_end(const struct map *m)
{
	return m->size > UINT64_MAX - m->start ? UINT64_MAX : m->start + m->size;
}

static int pieces_of(struct map *const *maps, size_t n, struct pieces *ret)
{
	struct pieces p = { calloc(2 * n, sizeof(*p.at)), calloc(2 * n + 1, sizeof(*p.free)), 0 };
	size_t unique = 0;

	if (!p.at || !p.free) {
		pieces_done(&p);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		p.at[2 * i] = maps[i]->start;
		p.at[2 * i + 1] = map_end(maps[i]);
	}
	qsort(p.at, 2 * n, sizeof(*p.at), by_address);
	for (size_t i = 0; i < 2 * n; i++)
		if (i == 0 || p.at[i] != p.at[unique - 1])
			p.at[unique++] = p.at[i];
	p.n = unique;
	for (size_t i = 0; i <= unique; i++)
		p.free[i] = (uint32_t)i;
	*ret = p;
	return 0;
}

static uint32_t place(const struct pieces *p, uint64_t address)
{
	const uint64_t *at = bsearch(&address, p->at, p->n, sizeof(*p->at), by_address);

	return (uint32_t)(at - p->at);
}

static uint32_t next_free(struct pieces *p, uint32_t i)
{
	while (p->free[i] != i) {
		p->free[i] = p->free[p->free[i]];
		i = p->free[i];
	}
	return i;
}

/* Covers older maps with this one. Returns whether any of it shows below newer maps. */
static bool cover(struct pieces *p, const struct map *m)
{
	uint32_t end = place(p, map_end(m)), i = next_free(p, place(p, m->start));
	bool seen = i < end;

	for (; i < end; i = next_free(p, i))
		p->free[i] = i + 1;
	return seen;
}

/* ── compacting ─────────────────────────────────────────────────────────────────────────── */

static size_t list_of(struct map *from, struct map **ret)
{
	size_t n = 0;

	for (struct map *m = from; m; m = m->older)
		if (m->file) {
			if (ret)
				ret[n] = m;
			n++;
		}
	return n;
}

/* A new list of these maps, newest first, on top of the root. */
static struct map *rebuild(struct table *t, struct map *const *maps, size_t n, struct map *root)
{
	struct map *list = map_ref(root);

	while (n-- > 0) {
		struct map *m = memory_get(&t->memory, sizeof(*m));

		if (!m) {
			map_put(t, list);
			return NULL;
		}
		*m = *maps[n];
		blob_ref(m->file);
		m->refs = 1;
		m->older = list;
		list = m;
	}
	return list;
}

static size_t keep_seen(struct pieces *pieces, struct map **maps, size_t n, uint64_t *ret_last)
{
	size_t kept = 0;
	uint64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		/* Newer maps cover it. When they did is not looked up: now at the latest. */
		if (kept < KEPT_MAX && cover(pieces, maps[i]))
			maps[kept++] = maps[i];
		else
			last = maps[0]->time;
	}
	*ret_last = last;
	return kept;
}

/* ── former lists ───────────────────────────────────────────────────────────────────────── */

static void former_free(struct table *t, struct former *f)
{
	map_put(t, f->maps);
	memory_put(&t->memory, f);
}

static void drop_formers(struct table *t, struct process *p, struct map *const *but)
{
	struct former **at = &p->formers, *f;

	while ((f = *at))
		if (f->list != but) {
			*at = f->next;
			former_free(t, f);
		} else {
			at = &f->next;
		}
}

void process_drop_formers(struct table *t, struct process *p)
{
	drop_formers(t, p, NULL);
}

void process_lessen_maps(struct table *t, struct process *p, uint64_t time)
{
	drop_formers(t, p, p->maps);
	p->unmapped = MAX(p->unmapped, MAX(time, 1U));
}

/* Formers of children that have been forgotten. */
static void drop_useless_formers(struct table *t, struct process *p)
{
	struct former **at = &p->formers, *f;

	while ((f = *at))
		if (f->maps->refs == 1) {
			*at = f->next;
			former_free(t, f);
		} else {
			at = &f->next;
		}
}

/* Before the list is given up: keeps the part that others hold, to be told once for all of them. */
static void keep_former(struct table *t, struct process *p)
{
	struct map *m = *p->maps;
	struct former *f, **at = &p->formers;

	while (m && m->refs == (m == p->root ? 2 : 1))
		m = m->older;
	if (!m)
		return;
	f = memory_get(&t->memory, sizeof(*f));
	if (!f) {
		process_drop_formers(t, p);
		process_lessen_maps(t, p, t->now);
		return;
	}
	f->maps = map_ref(m);
	f->list = p->maps;
	while (*at)
		at = &(*at)->next;
	*at = f;
}

void process_compact(struct table *t, struct process *p)
{
	size_t n = list_of(*p->maps, NULL), kept;
	_cleanup_free_ struct map **maps = calloc(n + 1, sizeof(struct map *));
	_cleanup_(pieces_done) struct pieces pieces = { 0 };
	struct map *list;
	uint64_t last;

	p->compact_at = (uint32_t)MAX(2 * n, p->compact_at); /* if compacting fails */
	if (!maps || n == 0)
		return;
	list_of(*p->maps, maps);
	if (pieces_of(maps, n, &pieces) < 0)
		return;
	kept = keep_seen(&pieces, maps, n, &last);
	p->n_maps = (uint32_t)kept;
	p->compact_at = (uint32_t)(2 * kept + COMPACT_MORE);
	if (kept == n)
		return;
	list = rebuild(t, maps, kept, p->maps == &p->first ? p->root : NULL);
	if (!list)
		return;
	if (p->maps == &p->first) {
		/* Its first mappings are no longer told separately. */
		map_put(t, p->inherited);
		p->inherited = NULL;
	}
	drop_useless_formers(t, p);
	keep_former(t, p);
	map_put(t, *p->maps);
	*p->maps = list;
	process_lessen(t, p, last);
}

/* Drops all of its lists. The root stays, for later reports. */
void process_drop_maps(struct table *t, struct process *p)
{
	process_drop_formers(t, p);
	process_lessen_maps(t, p, t->now);
	for (struct change *c = p->main.changes; c; c = c->next) {
		map_put(t, c->maps);
		c->maps = NULL;
	}
	map_put(t, p->first);
	map_put(t, p->inherited);
	p->inherited = NULL;
	p->first = map_ref(p->root);
	p->n_maps = p->past_maps = 0;
}

void process_drop_past_maps(struct table *t, struct process *p)
{
	uint64_t last_exec = 0;

	for (struct change *c = p->main.changes; c; c = c->next) {
		if (p->maps == &c->maps) {
			last_exec = c->time;
			continue;
		}
		map_put(t, c->maps);
		c->maps = NULL;
	}
	if (p->maps != &p->first) {
		map_put(t, p->first);
		map_put(t, p->inherited);
		p->inherited = NULL;
		p->first = map_ref(p->root);
	}
	process_lessen_maps(t, p, last_exec);
	process_lessen(t, p, last_exec);
	p->past_maps = 0;
}
