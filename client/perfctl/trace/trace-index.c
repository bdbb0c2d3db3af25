// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The first pass: finds all records and sorts them by time; those of one time stay in the file's
 * order. Records without a time (perf's records from /proc) come first. The whole file is sorted at
 * once: perf's round marks need not be trusted.
 *
 * In the pipe format this pass finds everything else as well.
 */
#include <inttypes.h>
#include <string.h>

#include "proto/cursor.h"
#include "client/perfctl/trace/trace-internal.h"

static int add_place(struct trace *t, uint64_t time, uint64_t offset)
{
	if (!GROW(t->places, t->n_places))
		return -ENOMEM;
	if (t->n_places && time < t->places[t->n_places - 1].time)
		t->sorted = false;
	t->places[t->n_places++] = (struct place){ .time = time, .offset = offset };
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* ── Records of perf itself ────────────────────────────────────────────────────────────── */

static int read_attr(struct trace *t, struct cursor *c)
{
	struct perf_event_attr attr = { 0 };
	uint32_t size;
	const uint8_t *p;
	int r;

	if (c->left < offsetof(struct perf_event_attr, config))
		return -EBADMSG;
	memcpy(&attr, c->p, offsetof(struct perf_event_attr, config));
	size = attr.size ? attr.size : PERF_ATTR_SIZE_VER0;
	p = cursor_bytes(c, size);
	if (!p)
		return -EBADMSG;
	r = events_add(t, p, size);
	while (r == 0 && c->left >= sizeof(uint64_t))
		r = events_add_id(t, cursor_u64(c));
	return r;
}

/* A copy that lives as long as the trace. */
static int keep_copy(struct trace *t, const uint8_t *bytes, size_t n, uint8_t **ret)
{
	uint8_t *copy = malloc(n + 1);
	int r;

	if (copy)
		memcpy(copy, bytes, n);
	r = trace_keep(t, copy);
	if (r < 0)
		return r;
	*ret = copy;
	return 0;
}

static int read_feature_record(struct trace *t, struct cursor *c)
{
	uint64_t feature = cursor_u64(c);
	uint8_t *copy;
	int r;

	if (c->bad)
		return -EBADMSG;
	if (feature >= FEATURES)
		return 0;
	r = keep_copy(t, c->p, c->left, &copy);
	return r < 0 ? r : feature_read(t, (unsigned)feature, copy, c->left);
}

static int read_event_update(struct trace *t, const uint8_t *record, size_t size, struct cursor *c)
{
	uint64_t type = cursor_u64(c), id = cursor_u64(c);
	int64_t i = keytable_get(&t->by_id, id);
	uint8_t *copy;
	int r;

	if (c->bad)
		return -EBADMSG;
	if (type == PERF_FILE_UPDATE_HISTORY && i >= 0)
		return events_history(t, (size_t)i, record, size);
	if (type != PERF_FILE_UPDATE_NAME || i < 0)
		return 0;
	if (!memchr(c->p, 0, c->left))
		return -EBADMSG;
	r = keep_copy(t, c->p, c->left, &copy);
	if (r == 0)
		events_name(t, (size_t)i, (const char *)copy);
	return r;
}

/* Skips bytes behind a record that are not a record. *at: the end of the record, advanced. */
static int skip_behind(struct trace *t, uint64_t *at, uint64_t n)
{
	if (n > t->end - *at)
		return -EBADMSG;
	*at += n;
	return 0;
}

static int read_tracing_data(struct trace *t, struct cursor *c, uint64_t *at)
{
	uint64_t n = cursor_u32(c), begin = *at;
	uint8_t *bytes;
	int r;

	if (c->bad)
		return -EBADMSG;
	r = skip_behind(t, at, ALIGN_TO(n, 8));
	if (r == 0)
		r = source_copy(&t->source, begin, n, &bytes);
	if (r == 0)
		r = trace_keep(t, bytes);
	return r < 0 ? r : tracing_data_read(t, bytes, n);
}

/* at: the next record; advanced over bytes in between. -EBADMSG */
static int read_user(struct trace *t, const uint8_t *record, const struct perf_event_header *h,
		     uint64_t *at)
{
	struct cursor c = { .p = record + sizeof(*h), .left = h->size - sizeof(*h) };

	switch (h->type) {
	case PERF_FILE_ATTR:
		/* Later events would change the meaning of records that were read already. */
		if (!t->info.pipe)
			return 0;
		return t->n_places ? -EBADMSG : read_attr(t, &c);
	case PERF_FILE_TRACING_DATA:
		return read_tracing_data(t, &c, at);
	case PERF_FILE_BUILD_ID:
		return feature_build_id(t, record, h->size);
	case PERF_FILE_EVENT_UPDATE:
		return read_event_update(t, record, h->size, &c);
	case PERF_FILE_FEATURE:
		return read_feature_record(t, &c);
	case PERF_FILE_AUXTRACE:
		return skip_behind(t, at, cursor_u64(&c));
	default:
		return 0;
	}
}

/* ── All of them ────────────────────────────────────────────────────────────────────────── */

static int refuse_compressed(void)
{
	return trace_damaged("it is compressed (perf record -z), which cannot be read; \"perf "
			     "inject\" writes it uncompressed");
}

static int index_one(struct trace *t, uint64_t offset, const uint8_t *record,
		     const struct perf_event_header *h, uint64_t *next, const char **ret_why)
{
	static const char bad[] = "has something in it that cannot be there";
	uint64_t last = t->n_places ? t->places[t->n_places - 1].time : 0;
	struct decoded d;
	int r;

	if (h->type >= PERF_FILE_USER && h->type <= PERF_FILE_USER_KNOWN) {
		r = read_user(t, record, h, next);
		if (r == -EBADMSG)
			*ret_why = bad;
		return r;
	}
	if (h->type >= PERF_FILE_USER)
		return add_place(t, last, offset);
	r = events_check(t);
	if (r == 0)
		r = record_decode(t, record, &d, ret_why);
	if (r < 0)
		return r;
	if (d.record.kind == TRACE_LOST)
		t->events[d.record.event->index]->lost += d.record.lost;
	/* Unknown records stay where they are. */
	if (d.record.kind == TRACE_OTHER && !d.record.time)
		d.record.time = last;
	return add_place(t, d.record.time, offset);
}

static int no_record(struct trace *t, uint64_t at, const struct perf_event_header *h)
{
	uint64_t left = t->end - at;

	if (h && h->size < sizeof(*h))
		return trace_note_damage(t,
					 "at offset %" PRIu64 " there should be a record, and "
					 "what is there says that it has %u bytes",
					 at, h->size);
	if (h && h->size <= left)
		return trace_note_damage(t, "the record at offset %" PRIu64 " cannot be read", at);
	return trace_note_damage(t, "it ends in the middle of the record at offset %" PRIu64, at);
}

static int index_all(struct trace *t)
{
	uint64_t at = t->begin;

	while (at < t->end) {
		const uint8_t *p = source_at(&t->source, at, sizeof(struct perf_event_header));
		struct perf_event_header h = { 0 };
		const char *why = NULL;
		uint64_t next;
		int r;

		if (!p)
			return no_record(t, at, NULL);
		memcpy(&h, p, sizeof(h));
		if (h.size < sizeof(h) || h.size > t->end - at)
			return no_record(t, at, &h);
		if (h.type == PERF_FILE_COMPRESSED || h.type == PERF_FILE_COMPRESSED2)
			return refuse_compressed();
		p = source_at(&t->source, at, h.size);
		if (!p)
			return no_record(t, at, &h);
		next = at + h.size;
		r = index_one(t, at, p, &h, &next, &why);
		if (r == -EBADMSG && why)
			return trace_note_damage(
				t, "the record at offset %" PRIu64 " (type %u, %u bytes) %s", at,
				h.type, h.size, why);
		if (r < 0)
			return r;
		at = next;
	}
	return 0;
}

int index_build(struct trace *t)
{
	int r;

	t->sorted = true;
	r = index_all(t);
	if (r < 0)
		return r;
	if (!t->sorted)
		qsort(t->places, t->n_places, sizeof(*t->places), by_time);
	if (!t->info.last_time && t->n_places)
		t->info.last_time = t->places[t->n_places - 1].time;
	return events_finish(t);
}
