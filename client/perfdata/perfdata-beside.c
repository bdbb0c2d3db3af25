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

#define SAMPLE_ID 8	 /* where it is in a sample, behind the header */
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

size_t beside_count_ids(const struct perfpersist_perfdata *d, size_t evsel)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_traces; i++)
		n += is_beside(d, i, evsel);
	return n;
}

void beside_put_ids(struct perfpersist_perfdata *d, size_t evsel)
{
	for (size_t i = 0; i < d->n_traces; i++) {
		uint64_t id = id_of(&d->evsels[evsel], i);

		if (is_beside(d, i, evsel))
			output_put(&d->out, &id, sizeof(id));
	}
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

		/* They are written as they are. */
		if ((evsel->source_type | PERF_SAMPLE_IDENTIFIER) != evsel->attr.sample_type)
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

/* Which event beside the trace has this id of the kernel's; NULL: none. */
static const struct perfdata_evsel *find_beside(const struct perfpersist_perfdata *d,
						const struct perfdata_trace *t, const uint8_t *ids,
						const uint8_t *id)
{
	for (uint32_t i = 0; i < t->header.n_beside; i++)
		if (!memcmp(id, ids + i * sizeof(uint64_t), sizeof(uint64_t)))
			return &d->evsels[d->events[t->event].first + 1 + i];
	return NULL;
}

static bool sample_is_sound(struct perfpersist_perfdata *d, const struct perfdata_evsel *evsel,
			    const uint8_t *record, size_t size)
{
	const struct pp_sample_form form = { .sample_type = evsel->attr.sample_type };
	struct pp_sample s;

	if (pp_sample_parse(record, size, &form, &s) < 0)
		return false;
	if (!d->first_time || s.time < d->first_time)
		d->first_time = s.time;
	d->last_time = MAX(d->last_time, s.time);
	return true;
}

/* What else the kernel writes to the ring of a perf event that reports nothing but samples. */
static bool is_about_samples(uint32_t type)
{
	return type == PERF_RECORD_LOST || type == PERF_RECORD_LOST_SAMPLES ||
	       type == PERF_RECORD_THROTTLE || type == PERF_RECORD_UNTHROTTLE;
}

/* Gives the record its id in the file. One that perf could not read is left out. */
static void put_record(struct perfpersist_perfdata *d, size_t trace, const uint8_t *ids,
		       uint8_t *record, size_t size)
{
	const struct perfdata_evsel *evsel;
	struct perf_event_header h;
	bool is_sample, is_sound;
	uint8_t *at;
	uint64_t id;

	memcpy(&h, record, sizeof(h));
	is_sample = h.type == PERF_RECORD_SAMPLE;
	if (size < SAMPLE_ID + sizeof(id) || (!is_sample && !is_about_samples(h.type)))
		return;
	at = record + (is_sample ? SAMPLE_ID : size - sizeof(id));
	evsel = find_beside(d, &d->traces[trace], ids, at);
	if (!evsel)
		return;
	is_sound = is_sample ? sample_is_sound(d, evsel, record, size)
			     : pp_record_extent(record, size, evsel->attr.sample_type) > 0;
	if (!is_sound)
		return;
	id = id_of(evsel, trace);
	memcpy(at, &id, sizeof(id));
	output_put(&d->out, record, size);
}

/* The newest come first, and are written last. What follows a damaged one is left out. */
static int put_backward(struct perfpersist_perfdata *d, size_t trace, uint8_t *bytes)
{
	const struct pp_auxtrace_header *header = &d->traces[trace].header;
	_cleanup_free_ uint64_t *at = NULL;
	uint64_t end = header->n_beside * sizeof(uint64_t);
	size_t n = 0, size;

	while ((size = pp_record_extent(bytes + end, header->samples - end, 0)) > 0) {
		if (!GROW(at, n))
			return -ENOMEM;
		at[n++] = end;
		end += size;
	}
	while (n > 0) {
		n--;
		put_record(d, trace, bytes, bytes + at[n], end - at[n]);
		end = at[n];
	}
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
