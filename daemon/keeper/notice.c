// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns what is no process's: symbols and programs that came to the kernel and went, cgroups,
 * losses. They are kept as they came; what has an end is found by its key when that comes.
 */
#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"

static struct notice **bucket(const struct table *t, uint16_t type, uint64_t key)
{
	uint64_t hash = (key + type) * 0x9e3779b97f4a7c15ULL;

	return &t->notice_buckets[hash >> 52 & (NOTICE_BUCKETS - 1)];
}

static bool ends(const struct record *r)
{
	if (r->type == PERF_RECORD_KSYMBOL)
		return r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	return r->type == PERF_RECORD_BPF_EVENT && r->what == PERF_BPF_EVENT_PROG_UNLOAD;
}

/* By their ends, as processes are. */
static void insert_over(struct table *t, struct notice *n)
{
	struct notice *before = TAILQ_LAST(&t->over, notices);

	while (before && before->ended > n->ended)
		before = TAILQ_PREV(before, notices, link);
	if (before)
		TAILQ_INSERT_AFTER(&t->over, before, n, link);
	else
		TAILQ_INSERT_HEAD(&t->over, n, link);
}

static void end_begun(struct table *t, const struct record *r, uint64_t key)
{
	struct notice *n = *bucket(t, (uint16_t)r->type, key);

	while (n && (n->type != r->type || n->key != key || n->ended))
		n = n->hash_next;
	if (!n)
		return;
	n->ended = MAX(r->time, 1U);
	TAILQ_REMOVE(&t->notices, n, link);
	insert_over(t, n);
}

void table_notice(struct table *t, const struct record *r)
{
	uint64_t key = r->type == PERF_RECORD_KSYMBOL ? r->start : r->number;
	struct notice *n = memory_get(&t->memory, sizeof(*n) + r->size), **to;
	/* A loss is over at once, and so is what ends something. */
	bool over = ends(r) || r->type == PERF_RECORD_LOST;

	if (!n) {
		t->lost++;
		return;
	}
	if (ends(r))
		end_begun(t, r, key);
	n->time = r->time;
	n->ended = over ? MAX(r->time, 1U) : 0;
	n->key = key;
	n->type = (uint16_t)r->type;
	n->size = r->size;
	memcpy(n->bytes, r->bytes, r->size);
	if (over)
		insert_over(t, n);
	else
		TAILQ_INSERT_TAIL(&t->notices, n, link);
	to = bucket(t, n->type, key);
	n->hash_next = *to;
	*to = n;
	t->notice_bytes += memory_of(n);
}

void notice_forget(struct table *t, struct notice *n)
{
	struct notice **at = bucket(t, n->type, n->key);

	while (*at != n)
		at = &(*at)->hash_next;
	*at = n->hash_next;
	TAILQ_REMOVE(n->ended ? &t->over : &t->notices, n, link);
	t->notice_bytes -= memory_of(n);
	memory_put(&t->memory, n);
}
