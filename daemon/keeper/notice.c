// SPDX-License-Identifier: LGPL-2.1-or-later
/* Facts that belong to no process: kernel symbols and BPF programs that came and went, cgroups,
 * losses. They are kept as records. Facts that end are found by a key when their end arrives. */
#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"
#include "proto/sideband.h"

static struct notice_bucket *bucket(const struct table *t, uint16_t type, uint64_t key)
{
	uint64_t hash = (key + type) * 0x9e3779b97f4a7c15ULL;

	return &t->notice_buckets[hash >> 52 & (NOTICE_BUCKETS - 1)];
}

/* The kernel reports an end of these. */
static bool can_end(uint16_t type)
{
	return type == PERF_RECORD_KSYMBOL || type == PERF_RECORD_BPF_EVENT;
}

/* Sorted by end, as processes are. */
static void insert_over(struct table *t, struct notice *n)
{
	struct notice *before = TAILQ_LAST(&t->over, notices);

	for (unsigned back = 0; before && before->ended > n->ended; back++) {
		if (back == PLACES_BACK_MAX) {
			n->ended = before->ended;
			t->untimed++;
			break;
		}
		before = TAILQ_PREV(before, notices, link);
	}
	if (before)
		TAILQ_INSERT_AFTER(&t->over, before, n, link);
	else
		TAILQ_INSERT_HEAD(&t->over, n, link);
}

static void end_begun(struct table *t, const struct pp_record *r, uint64_t key)
{
	struct notice *n = LIST_FIRST(bucket(t, (uint16_t)r->type, key));

	while (n && (n->type != r->type || n->key != key))
		n = LIST_NEXT(n, hash);
	if (!n)
		return;
	n->ended = MAX(r->time, 1U);
	TAILQ_REMOVE(&t->notices, n, link);
	LIST_REMOVE(n, hash);
	insert_over(t, n);
}

static void begin(struct table *t, struct notice *n)
{
	TAILQ_INSERT_TAIL(&t->notices, n, link);
	if (can_end(n->type))
		LIST_INSERT_HEAD(bucket(t, n->type, n->key), n, hash);
}

/* A loss is over at once, and so is a record that ends something. */
static void add(struct table *t, const struct pp_record *r, uint64_t key, bool ends)
{
	struct notice *n = memory_get(&t->memory, sizeof(*n) + r->size);
	struct pp_record told = *r;
	bool over = ends || r->type == PERF_RECORD_LOST;

	if (!n) {
		t->lost++;
		return;
	}
	if (ends)
		end_begun(t, r, key);
	n->time = r->time;
	n->ended = over ? MAX(r->time, 1U) : 0;
	n->key = key;
	n->type = (uint16_t)r->type;
	n->size = r->size;
	memcpy(n->bytes, r->bytes, r->size);
	/* The record may have come without a valid time, and its identifier was the kernel's. */
	told.id = PP_SIDEBAND_ID;
	pp_record_rewrite_id(&told, PP_SIDEBAND_SAMPLE_TYPE, n->bytes, n->size);
	if (over)
		insert_over(t, n);
	else
		begin(t, n);
	t->notice_bytes += memory_of(n);
	if (t->memory.used > t->memory.max || t->notice_bytes > NOTICE_BYTES_MAX(t))
		table_make_room(t);
}

void table_notice(struct table *t, const struct pp_record *r)
{
	add(t, r, 0, false);
}

void table_tell_program(struct table *t, const struct pp_record *r, uint64_t key, bool ends)
{
	add(t, r, key, ends);
}

void notice_forget(struct table *t, struct notice *n)
{
	if (!n->ended && can_end(n->type))
		LIST_REMOVE(n, hash);
	TAILQ_REMOVE(n->ended ? &t->over : &t->notices, n, link);
	t->notice_bytes -= memory_of(n);
	memory_put(&t->memory, n);
}
