// SPDX-License-Identifier: LGPL-2.1-or-later
/* The header of a seekable file: its events, the place of its records, and the sections behind
 * them. (In the pipe format all of that comes as records: trace-index.c.) */
#include <inttypes.h>
#include <string.h>

#include "proto/cursor.h"
#include "client/perfctl/trace/trace-internal.h"

static bool inside(const struct trace *t, uint64_t offset, uint64_t size)
{
	return offset <= t->source.size && size <= t->source.size - offset;
}

/* Sections of ids must not overlap: otherwise a thousand events could each have the whole file as
 * their ids. *left: bytes not used by ids so far. */
static int read_ids(struct trace *t, const struct perf_file_section *ids, uint64_t *left)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	int r;

	if (ids->size == 0)
		return 0;
	if (ids->size % sizeof(uint64_t) || !inside(t, ids->offset, ids->size))
		return trace_damaged("the ids of its event %zu, %" PRIu64
				     " bytes at offset %" PRIu64 ", are not inside of it",
				     t->n_events, ids->size, ids->offset);
	if (ids->size > *left)
		return trace_damaged("the ids of its events are more than it has bytes");
	*left -= ids->size;
	r = source_copy(&t->source, ids->offset, ids->size, &bytes);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < ids->size; i += sizeof(uint64_t)) {
		uint64_t id;

		memcpy(&id, bytes + i, sizeof(id));
		r = events_add_id(t, id);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_attrs(struct trace *t, const struct perf_file_header *h)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t ids_left = t->source.size;
	struct perf_file_section ids;
	size_t attr_size;
	int r;

	if (h->attr_size <= sizeof(ids) || h->attr_size > UINT16_MAX ||
	    h->attrs.size % h->attr_size || !inside(t, h->attrs.offset, h->attrs.size))
		return trace_damaged("its table of events, %" PRIu64 " bytes of %" PRIu64
				     " each at offset %" PRIu64 ", cannot be right",
				     h->attrs.size, h->attr_size, h->attrs.offset);
	attr_size = h->attr_size - sizeof(ids);
	r = source_copy(&t->source, h->attrs.offset, h->attrs.size, &bytes);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < h->attrs.size; i += h->attr_size) {
		r = events_add(t, bytes + i, attr_size);
		if (r == -EBADMSG)
			return trace_damaged("its events' attributes have %zu bytes, which is too "
					     "few",
					     attr_size);
		if (r < 0)
			return r;
		memcpy(&ids, bytes + i + attr_size, sizeof(ids));
		r = read_ids(t, &ids, &ids_left);
		if (r < 0)
			return r;
	}
	return events_check(t);
}

static bool has_feature(const struct perf_file_header *h, unsigned feature)
{
	return h->features[feature / 64] >> (feature % 64) & 1;
}

static unsigned n_features(const struct perf_file_header *h)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(h->features); i++)
		n += (unsigned)__builtin_popcountll(h->features[i]);
	return n;
}

/* *left: bytes of the file that no section has so far. They may not overlap: each is copied. */
static int read_feature(struct trace *t, unsigned feature, const struct perf_file_section *s,
			uint64_t *left)
{
	uint8_t *bytes;
	int r;

	if (s->size == 0)
		return 0;
	r = inside(t, s->offset, s->size) && s->size <= *left
		    ? source_copy(&t->source, s->offset, s->size, &bytes)
		    : -EBADMSG;
	if (r == 0) {
		*left -= s->size;
		r = trace_keep(t, bytes);
		if (r == 0)
			r = feature_read(t, feature, bytes, s->size);
	}
	if (r == -EBADMSG)
		return trace_note_damage(t,
					 "what it says of its machine (section %u, %" PRIu64
					 " bytes at offset %" PRIu64 ") is damaged",
					 feature, s->size, s->offset);
	return r;
}

static int read_features(struct trace *t, const struct perf_file_header *h)
{
	uint64_t at = t->end, left = t->source.size;
	int r;

	for (unsigned i = 0; i < FEATURES; i++) {
		struct perf_file_section s;
		const uint8_t *p;

		if (!has_feature(h, i))
			continue;
		p = source_at(&t->source, at, sizeof(s));
		if (!p)
			return trace_note_damage(t,
						 "it ends at %" PRIu64 " bytes, before the "
						 "table of its sections is over",
						 t->source.size);
		memcpy(&s, p, sizeof(s));
		at += sizeof(s);
		r = read_feature(t, i, &s, &left);
		if (r < 0)
			return r;
	}
	return 0;
}

/* While perf writes, the header says that the data has size 0. Whether perf has closed the file
 * shows in the data itself. */
static bool was_closed(struct trace *t, const struct perf_file_header *h)
{
	uint64_t table = (uint64_t)n_features(h) * sizeof(struct perf_file_section);
	struct perf_file_section first;
	const uint8_t *p;

	if (h->data.size || t->source.size <= h->data.offset)
		return true;
	p = table ? source_at(&t->source, h->data.offset, sizeof(first)) : NULL;
	if (!p)
		return false;
	memcpy(&first, p, sizeof(first));
	return first.offset == h->data.offset + table;
}

static int read_sections(struct trace *t, const struct perf_file_header *h)
{
	t->begin = h->data.offset;
	if (!was_closed(t, h)) {
		t->end = t->source.size;
		return trace_note_damage(t,
					 "whoever wrote it did not come to its end (its header "
					 "says that it has no data): %" PRIu64 " bytes were read",
					 t->end - t->begin);
	}
	if (!inside(t, h->data.offset, h->data.size)) {
		t->begin = MIN(t->begin, t->source.size);
		t->end = t->source.size;
		return trace_note_damage(t,
					 "it is cut off: its data should end at offset %" PRIu64
					 ", and it ends at %" PRIu64,
					 h->data.size > UINT64_MAX - h->data.offset
						 ? UINT64_MAX
						 : h->data.offset + h->data.size,
					 t->source.size);
	}
	t->end = h->data.offset + h->data.size;
	return read_features(t, h);
}

int header_read(struct trace *t)
{
	const uint8_t *p = source_at(&t->source, 0, sizeof(struct perf_file_pipe_header));
	struct perf_file_header h;
	int r;

	if (t->source.size == 0)
		return trace_damaged("it is empty");
	if (!p)
		return trace_damaged("it has %" PRIu64 " bytes, which is no perf.data file",
				     t->source.size);
	memcpy(&h, p, sizeof(struct perf_file_pipe_header));
	if (h.magic == PERF_FILE_MAGIC_SWAPPED)
		return trace_damaged("it is of a machine with another byte order");
	if (h.magic != PERF_FILE_MAGIC)
		return trace_damaged("it does not begin as a perf.data file does");
	if (h.size == sizeof(struct perf_file_pipe_header)) {
		t->info.pipe = true;
		t->begin = sizeof(struct perf_file_pipe_header);
		t->end = t->source.size;
		return 0;
	}
	p = source_at(&t->source, 0, sizeof(h));
	if (h.size != sizeof(struct perf_file_header) || !p)
		return trace_damaged("its header cannot be right: %" PRIu64 " bytes of %" PRIu64,
				     h.size, t->source.size);
	memcpy(&h, p, sizeof(h));
	if (has_feature(&h, FEATURE_COMPRESSED))
		return trace_damaged("it is compressed (perf record -z), which cannot be read; "
				     "\"perf inject\" writes it uncompressed");
	if (has_feature(&h, FEATURE_DIR_FORMAT))
		return trace_damaged("it is one file of a directory, as perf record --threads and "
				     "--kcore make; only a single file can be read");
	r = read_attrs(t, &h);
	return r < 0 ? r : read_sections(t, &h);
}
