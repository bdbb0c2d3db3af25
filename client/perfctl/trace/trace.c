// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file is read twice: once to find its records (trace-index.c), once to return them in order of
 * time. The second pass does not trust the first one's results. */
#include "client/perfctl/trace/trace.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/trace/trace-internal.h"

int trace_open(int fd, struct trace **ret)
{
	struct trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->info = (struct trace_info){
		.hostname = "", .release = "", .arch = "", .version = "", .cpudesc = ""
	};
	t->source = (struct source){ .fd = -EBADF, .copy = -EBADF };
	r = source_open(&t->source, fd);
	if (r == 0)
		r = processes_new(&t->processes);
	if (r == 0)
		r = header_read(t);
	if (r == 0)
		r = index_build(t);
	if (r < 0) {
		trace_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	source_done(&t->source);
	processes_free(t->processes);
	events_free(t);
	trace_free_kept(t);
	free(t->places);
	free(t->damage);
	free(t);
}

static int read_place(struct trace *t, uint64_t at, struct decoded *ret)
{
	const uint8_t *p = source_at(&t->source, at, sizeof(struct perf_event_header));
	struct perf_event_header h;
	const char *why;

	if (!p)
		return -EBADMSG;
	memcpy(&h, p, sizeof(h));
	if (h.size < sizeof(h))
		return -EBADMSG;
	p = source_at(&t->source, at, h.size);
	if (!p)
		return -EBADMSG;
	/* Reads the header again: the block may have been read anew. */
	if (memcmp(p, &h, sizeof(h)))
		return -EBADMSG;
	return record_decode(t, p, ret, &why);
}

int trace_next(struct trace *t, struct trace_record *ret)
{
	struct decoded d;
	uint64_t at;
	int r;

	if (t->next == t->n_places)
		return t->damage ? trace_damaged("%s", t->damage) : 0;
	at = t->places[t->next].offset;
	r = read_place(t, at, &d);
	if (r == -EBADMSG) {
		t->next = t->n_places;
		free(t->damage);
		t->damage = NULL;
		r = trace_note_damage(
			t, "the record at offset %" PRIu64 " changed while it was read", at);
		return r < 0 ? r : trace_damaged("%s", t->damage);
	}
	if (r == 0)
		r = record_apply(t, &d);
	if (r < 0)
		return r;
	t->next++;
	*ret = d.record;
	return 1;
}

int trace_peek(struct trace *t, size_t *pos, struct trace_record *ret)
{
	struct decoded d;
	int r;

	if (*pos >= t->n_places)
		return 0;
	r = read_place(t, t->places[*pos].offset, &d);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	++*pos;
	*ret = d.record;
	ret->comm = "?";
	return 1;
}

const struct trace_info *trace_info(const struct trace *t)
{
	return &t->info;
}

size_t trace_events(const struct trace *t)
{
	return t->n_events;
}

const struct trace_event *trace_event(const struct trace *t, size_t i)
{
	return i < t->n_events ? &t->events[i]->pub : NULL;
}

struct processes *trace_processes(struct trace *t)
{
	return t->processes;
}
