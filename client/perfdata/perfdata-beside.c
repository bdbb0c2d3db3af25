// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Samples of the events beside traces, as the kernel has written them, into a perf.data file. perf puts a sample's
 * part of the trace into the queue of the sample's id (PERF_RECORD_ID_INDEX), so each CPU's samples have an
 * id of their own.
 */
#include <string.h>
#include <sys/stat.h>

#include "client/perfdata/perfdata.h"
#include "proto/io.h"

/* In samples of perfdata-attr.c: header, IDENTIFIER, IP, TID, TIME. */
#define SAMPLE_ID 8
#define SAMPLE_TIME 32
#define ENTRIES_MAX 1024 /* of one index */

/* Below are the evsels' own ids. */
static uint64_t id_of(const struct perfdata_evsel *evsel, size_t trace)
{
	return evsel->id | (uint64_t)(trace + 1) << 32;
}

/* The first evsel of an event is that of the trace. */
static bool is_beside(const struct perfpersist_perfdata *d, size_t trace, size_t evsel)
{
	const struct perfdata_trace *t = &d->traces[trace];
	const struct perfdata_event *e = &d->events[t->event];

	return t->header.n_beside && evsel > e->first && evsel < e->first + e->n;
}

size_t beside_ids(const struct perfpersist_perfdata *d, size_t evsel, uint64_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_traces; i++) {
		if (!is_beside(d, i, evsel))
			continue;
		if (ret)
			ret[n] = id_of(&d->evsels[evsel], i);
		n++;
	}
	return n;
}

bool beside_is_sound(const struct perfpersist_perfdata *d, const struct perfdata_trace *t)
{
	const struct perfdata_event *e = &d->events[t->event];

	if (!t->header.n_beside)
		return !t->header.samples;
	if (t->header.n_beside != e->n - 1)
		return false;
	for (uint32_t i = 1; i < e->n; i++) {
		const struct perfdata_evsel *evsel = &d->evsels[e->first + i];

		if ((evsel->source_type | PERF_SAMPLE_IDENTIFIER) != evsel->attr.sample_type ||
		    !(evsel->source_type & PERF_SAMPLE_IP))
			return false;
	}
	return true;
}

void beside_put_index(struct perfpersist_perfdata *d)
{
	_cleanup_(blob_done) struct blob b = {};
	size_t n;

	for (size_t i = 0; i < d->n_traces; i++)
		for (size_t k = 0; k < d->n_evsels; k++) {
			const struct perf_file_id_entry entry = {
				.id = id_of(&d->evsels[k], i),
				.idx = i,
				.cpu = d->traces[i].header.cpu,
				.tid = UINT64_MAX,
			};

			if (is_beside(d, i, k))
				blob_put(&b, &entry, sizeof(entry));
		}
	if (b.failed)
		d->out.error = -ENOMEM;
	for (size_t at = 0; at < b.n; at += n * sizeof(struct perf_file_id_entry)) {
		struct perf_file_id_index index = { .header.type = PERF_FILE_ID_INDEX };

		n = MIN((b.n - at) / sizeof(struct perf_file_id_entry), (size_t)ENTRIES_MAX);
		index.nr = n;
		index.header.size =
			(uint16_t)(sizeof(index) + n * sizeof(struct perf_file_id_entry));
		output_put(&d->out, &index, sizeof(index));
		output_put(&d->out, b.bytes + at, n * sizeof(struct perf_file_id_entry));
	}
}

/* ── samples ────────────────────────────────────────────────────────────────────────────── */

/* The samples of a trace in memory, with the words before them. A file may be shorter than it says. */
static int read_samples(const struct perfdata_trace *t, uint8_t **ret)
{
	const struct pp_auxtrace_header *h = &t->header;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(t->fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < h->size)
		return -EBADMSG;
	bytes = malloc(h->samples);
	if (!bytes)
		return -ENOMEM;
	n = pp_pread_all(t->fd, bytes, h->samples, h->size - h->samples);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n < h->samples)
		return -EBADMSG;
	*ret = TAKE_PTR(bytes);
	return 0;
}

/* Gives a record its id in the file. False: it is of no event beside the trace. */
static bool renumber(const struct perfpersist_perfdata *d, size_t trace, const uint8_t *ids,
		     uint8_t *record, const struct perf_event_header *h)
{
	const struct perfdata_trace *t = &d->traces[trace];
	size_t at = h->type == PERF_RECORD_SAMPLE ? SAMPLE_ID : h->size - sizeof(uint64_t);
	uint64_t id;

	for (uint32_t i = 0; i < t->header.n_beside; i++) {
		const struct perfdata_evsel *evsel = &d->evsels[d->events[t->event].first + 1 + i];

		if (memcmp(record + at, ids + i * sizeof(id), sizeof(id)) != 0)
			continue;
		id = id_of(evsel, trace);
		memcpy(record + at, &id, sizeof(id));
		return true;
	}
	return false;
}

static void note_time(struct perfpersist_perfdata *d, const uint8_t *record)
{
	uint64_t time;

	memcpy(&time, record + SAMPLE_TIME, sizeof(time));
	if (!d->first_time || time < d->first_time)
		d->first_time = time;
	d->last_time = MAX(d->last_time, time);
}

static void put_sample(struct perfpersist_perfdata *d, size_t trace, const uint8_t *ids,
		       uint8_t *record)
{
	struct perf_event_header h;

	memcpy(&h, record, sizeof(h));
	if (h.size < (h.type == PERF_RECORD_SAMPLE ? SAMPLE_TIME : SAMPLE_ID) + sizeof(uint64_t) ||
	    !renumber(d, trace, ids, record, &h))
		return;
	if (h.type == PERF_RECORD_SAMPLE)
		note_time(d, record);
	output_put(&d->out, record, h.size);
}

/* The newest come first, and are written last. What follows a damaged one is left out. */
static int put_backward(struct perfpersist_perfdata *d, size_t trace, uint8_t *bytes)
{
	const struct pp_auxtrace_header *header = &d->traces[trace].header;
	_cleanup_free_ uint64_t *at = NULL;
	uint64_t next = header->n_beside * sizeof(uint64_t);
	struct perf_event_header h;
	size_t n = 0;

	while (header->samples - next >= sizeof(h)) {
		memcpy(&h, bytes + next, sizeof(h));
		if (h.size < sizeof(h) || h.size % 8 || h.size > header->samples - next)
			break;
		if (!GROW(at, n))
			return -ENOMEM;
		at[n++] = next;
		next += h.size;
	}
	while (n > 0)
		put_sample(d, trace, bytes, bytes + at[--n]);
	return 0;
}

void beside_put(struct perfpersist_perfdata *d, size_t trace)
{
	const struct perfdata_trace *t = &d->traces[trace];
	_cleanup_free_ uint8_t *bytes = NULL;
	int r;

	if (!t->header.n_beside || d->out.error < 0)
		return;
	r = read_samples(t, &bytes);
	if (r >= 0)
		r = put_backward(d, trace, bytes);
	if (r < 0)
		d->out.error = r;
}
