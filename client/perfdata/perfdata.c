// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes perf.data files: the order of their parts. In a seekable file the header comes last, in
 * the room left for it, and features follow the records. In the pipe format everything is a record,
 * and descriptions come before the records.
 */
#include "client/perfdata/perfdata.h"

#include <string.h>

#include "client/public.h"
#include "client/rings/event.h"
#include "proto/clock.h"
#include "proto/sideband.h"

/* Between two of these perf keeps all records in memory, to sort them. */
#define ROUND (1U << 20)

/* ── Beginning ──────────────────────────────────────────────────────────────────────────── */

static int copy_argv(struct perfpersist_perfdata *d, const struct perfpersist_perfdata_options *o)
{
	d->argv = calloc(o->argc + 1, sizeof(*d->argv));
	if (!d->argv)
		return -ENOMEM;
	for (; o->argv && d->argc < o->argc; d->argc++) {
		d->argv[d->argc] = strdup(o->argv[d->argc]);
		if (!d->argv[d->argc])
			return -ENOMEM;
	}
	return 0;
}

static void perfdata_cleanup(struct perfpersist_perfdata **d)
{
	perfpersist_perfdata_free(*d);
}

static int out_of_memory(void)
{
	return client_fail(-ENOMEM, "cannot write perf.data: out of memory");
}

static int failed(const struct perfpersist_perfdata *d)
{
	return client_fail(d->out.error, "cannot write perf.data: %s", strerror(-d->out.error));
}

_public_ int perfpersist_perfdata_new(int fd, const struct perfpersist_perfdata_options *opts,
				      struct perfpersist_perfdata **ret)
{
	static const struct perfpersist_perfdata_options none = { .sz = sizeof(none) };
	_cleanup_(perfdata_cleanup) struct perfpersist_perfdata *d = NULL;

	opts = opts ?: &none;
	if (!SZ_IS_VALID(opts))
		return client_fail(-EINVAL,
				   "cannot write perf.data: sz is not the size of the options");
	d = calloc(1, sizeof(*d));
	if (!d || output_init(&d->out, fd, !opts->pipe) < 0 || copy_argv(d, opts) < 0)
		return out_of_memory();
	d->pipe = opts->pipe;
	d->is_late = opts->late_sideband;
	d->realtime_offset = opts->realtime_offset ?: pp_clock_offset();
	d->sideband.next_time = UINT64_MAX;
	d->round = ROUND;
	*ret = TAKE_PTR(d);
	return 0;
}

static struct perfdata_evsel *add_evsel(struct perfpersist_perfdata *d)
{
	return GROW(d->evsels, d->n_evsels) ? &d->evsels[d->n_evsels] : NULL;
}

/* Ids follow the sideband's. */
static int add_source(struct perfpersist_perfdata *d, const struct perfpersist_source *source)
{
	struct perfdata_evsel *evsel = add_evsel(d);
	int r;

	if (!evsel || evsel_init(evsel, source, PP_SIDEBAND_ID + 1 + d->n_evsels) < 0)
		return -ENOMEM;
	r = evsel_number(d->evsels, d->n_evsels);
	if (r < 0) {
		evsel_done(evsel);
		return r;
	}
	d->n_evsels++;
	d->has_user_stacks |= !!(evsel->attr.sample_type & PERF_SAMPLE_STACK_USER);
	return 0;
}

static int add_sources(struct perfpersist_perfdata *d, struct perfpersist_event *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < perfpersist_event_sources(e); i++) {
		struct perfpersist_source source = { .sz = sizeof(source) };

		r = perfpersist_event_source(e, i, &source);
		if (r >= 0)
			r = add_source(d, &source);
	}
	return r;
}

_public_ int perfpersist_perfdata_event(struct perfpersist_perfdata *d, struct perfpersist_event *e)
{
	size_t first = d->n_evsels;
	int r;

	if (d->is_started)
		return client_fail(-EBUSY,
				   "cannot add an event to perf.data: records have been written");
	if (!GROW(d->events, d->n_events))
		return out_of_memory();
	r = add_sources(d, e);
	if (r < 0) {
		while (d->n_evsels > first)
			evsel_done(&d->evsels[--d->n_evsels]);
		return r == -ENOMEM ? out_of_memory() : r;
	}
	d->is_other_boot |= !client_event_is_of_this_boot(e);
	d->events[d->n_events] =
		(struct perfdata_event){ (uint32_t)first, (uint32_t)(d->n_evsels - first) };
	return (int)d->n_events++;
}

_public_ int perfpersist_perfdata_sideband(struct perfpersist_perfdata *d, int fd)
{
	int r;

	if (d->is_started && !d->is_late)
		return client_fail(-EBUSY,
				   "cannot add sideband to perf.data: records have been written");
	r = perfdata_sideband_open(d, fd);
	if (r == -EBADMSG)
		return client_fail(r, "cannot use the sideband: it is damaged");
	if (r == -EPROTONOSUPPORT)
		return client_fail(r, "cannot use the sideband: it is of a newer version");
	if (r < 0)
		return client_fail(r, "cannot read the sideband: %s", strerror(-r));
	if (d->is_started)
		sideband_put_until(d, UINT64_MAX);
	return d->out.error < 0 ? failed(d) : 0;
}

/* ── Before the records ──────────────────────────────────────────────────────────── */

static size_t ids_size(const struct perfpersist_perfdata *d, size_t evsel)
{
	return sizeof(uint64_t) * (1 + beside_count_ids(d, evsel));
}

static void put_ids(struct perfpersist_perfdata *d, size_t evsel)
{
	output_put(&d->out, &d->evsels[evsel].id, sizeof(uint64_t));
	beside_put_ids(d, evsel);
}

static void put_file_start(struct perfpersist_perfdata *d)
{
	struct perf_file_header *h = &d->header;
	uint64_t at = sizeof(*h);

	*h = (struct perf_file_header){
		.magic = PERF_FILE_MAGIC,
		.size = sizeof(*h),
		.attr_size = PERFDATA_ATTR_SIZE + sizeof(struct perf_file_section),
	};
	output_fill(&d->out, sizeof(*h));
	for (size_t i = 0; i < d->n_evsels; i++)
		put_ids(d, i);
	h->attrs.offset = d->out.written;
	h->attrs.size = d->n_evsels * h->attr_size;
	for (size_t i = 0; i < d->n_evsels; i++) {
		struct perf_file_section section = { at, ids_size(d, i) };

		output_put(&d->out, &d->evsels[i].attr, PERFDATA_ATTR_SIZE);
		output_put(&d->out, &section, sizeof(section));
		at += section.size;
	}
	h->data.offset = h->attrs.offset + h->attrs.size;
}

static void put_header(struct perfpersist_perfdata *d, uint32_t type, size_t size)
{
	struct perf_event_header h = { .type = type, .size = (uint16_t)size };

	output_put(&d->out, &h, sizeof(h));
}

static void put_attr_records(struct perfpersist_perfdata *d)
{
	for (size_t i = 0; i < d->n_evsels; i++) {
		put_header(d, PERF_FILE_ATTR,
			   sizeof(struct perf_event_header) + PERFDATA_ATTR_SIZE + ids_size(d, i));
		output_put(&d->out, &d->evsels[i].attr, PERFDATA_ATTR_SIZE);
		put_ids(d, i);
	}
	for (size_t i = 0; i < d->n_evsels; i++) {
		const struct perfdata_evsel *evsel = &d->evsels[i];
		size_t size = strlen(evsel->name) + 1, padded = ALIGN_TO(size, (size_t)8);
		struct perf_file_event_update update = {
			.header.type = PERF_FILE_EVENT_UPDATE,
			.header.size = (uint16_t)(sizeof(update) + padded),
			.type = PERF_FILE_UPDATE_NAME,
			.id = evsel->id,
		};

		output_put(&d->out, &update, sizeof(update));
		output_put(&d->out, evsel->name, size);
		output_fill(&d->out, padded - size);
	}
}

/* Leaves out a feature that does not fit into a record: the command line of a shell's glob, for
 * example, or the events of a large file, whose names were written one by one. */
static void put_feature_record(struct perfpersist_perfdata *d, uint64_t feature,
			       const struct blob *b)
{
	size_t padded = ALIGN_TO(b->n, (size_t)8), head = sizeof(struct perf_event_header) + 8;

	if (head + padded > PP_RECORD_SIZE_MAX)
		return;
	put_header(d, PERF_FILE_FEATURE, head + padded);
	output_put(&d->out, &feature, sizeof(feature));
	output_put(&d->out, b->bytes, b->n);
	output_fill(&d->out, padded - b->n);
}

static void put_tracing_record(struct perfpersist_perfdata *d, const struct blob *b)
{
	struct perf_file_tracing_data t = {
		.header = { .type = PERF_FILE_TRACING_DATA, .size = sizeof(t) },
		.size = (uint32_t)ALIGN_TO(b->n, (size_t)8),
	};

	output_put(&d->out, &t, sizeof(t));
	output_put(&d->out, b->bytes, b->n);
	output_fill(&d->out, t.size - b->n);
}

static void put_pipe_start(struct perfpersist_perfdata *d)
{
	struct perf_file_pipe_header h = { PERF_FILE_MAGIC, sizeof(h) };

	output_put(&d->out, &h, sizeof(h));
	put_attr_records(d);
	for (enum perf_file_feature f = FEATURE_TRACING_DATA; f <= FEATURE_CLOCK_DATA; f++) {
		_cleanup_(blob_done) struct blob b = {};

		perfdata_feature(d, f, &b);
		if (b.failed)
			d->out.error = -ENOMEM;
		if (!b.n)
			continue;
		if (f == FEATURE_TRACING_DATA)
			put_tracing_record(d, &b);
		else if (f == FEATURE_BUILD_ID) /* its entries are records */
			output_put(&d->out, b.bytes, b.n);
		else
			put_feature_record(d, f, &b);
	}
}

static int add_sideband_evsel(struct perfpersist_perfdata *d)
{
	struct perfdata_evsel *evsel = add_evsel(d);

	if (!evsel || evsel_init_sideband(evsel) < 0)
		return out_of_memory();
	d->n_evsels++;
	return 0;
}

static int start(struct perfpersist_perfdata *d)
{
	_cleanup_(blob_done) struct blob kernel = {};
	uint8_t build_id[20];

	if (d->is_started)
		return d->out.error;
	if (add_sideband_evsel(d) < 0)
		return d->out.error = -ENOMEM;
	d->is_started = true;
	if (!d->is_other_boot) {
		build_id_add(&d->build_ids, PERF_RECORD_MISC_KERNEL, "[kernel.kallsyms]", build_id,
			     build_id_of_kernel(build_id));
		synthesize_kernel(&kernel);
	}
	if (d->pipe)
		put_pipe_start(d);
	else
		put_file_start(d);
	traces_put_info(d);
	output_put(&d->out, kernel.bytes, kernel.n);
	sideband_put_until(d, 0);
	put_header(d, PERF_FILE_FINISHED_INIT, sizeof(struct perf_event_header));
	if (kernel.failed || d->build_ids.entries.failed)
		d->out.error = -ENOMEM;
	return d->out.error;
}

/* ── Records ────────────────────────────────────────────────────────────────────────────── */

/* Writes everything that must precede a record of that time. */
static int prepare(struct perfpersist_perfdata *d, uint64_t time)
{
	if (!d->is_started && start(d) < 0)
		return failed(d);
	if (d->sideband.next_time <= time)
		sideband_put_until(d, time);
	/* Late sideband, and records of traces, belong to earlier rounds. */
	if (d->out.written >= d->round && !d->is_late && !d->n_traces) {
		put_header(d, PERF_FILE_FINISHED_ROUND, sizeof(struct perf_event_header));
		d->round = d->out.written + ROUND;
	}
	return d->out.error < 0 ? failed(d) : 0;
}

_public_ int perfpersist_perfdata_sample(struct perfpersist_perfdata *d, int event,
					 const struct perfpersist_sample *sample)
{
	const struct perfdata_event *e =
		event >= 0 && (size_t)event < d->n_events ? &d->events[event] : NULL;
	int r;

	if (!e || sample->source >= e->n)
		return client_fail(-EINVAL,
				   "cannot write a sample: there is no event %d with a source %u",
				   event, sample->source);
	r = prepare(d, sample->time);
	if (r < 0)
		return r;
	r = perfdata_put_sample(d, &d->evsels[e->first + sample->source], sample);
	if (r == -EINVAL)
		return client_fail(r, "cannot write a sample: it is too long for a record");
	if (r < 0)
		return failed(d);
	if (!d->first_time)
		d->first_time = sample->time;
	d->last_time = MAX(d->last_time, sample->time);
	return 0;
}

_public_ int perfpersist_perfdata_lost(struct perfpersist_perfdata *d, int event, uint32_t cpu,
				       uint64_t time, uint64_t lost)
{
	struct pp_record record = {
		.type = PERF_RECORD_LOST_SAMPLES,
		.number = lost,
		.time = time,
		.cpu = cpu,
	};
	const struct perfdata_evsel *evsel;
	uint8_t bytes[64];
	int r;

	if (event < 0 || (size_t)event >= d->n_events || !d->events[event].n)
		return client_fail(-EINVAL, "cannot write what was lost: there is no event %d",
				   event);
	r = prepare(d, time);
	if (r < 0)
		return r;
	evsel = &d->evsels[d->events[event].first];
	record.id = evsel->id;
	output_put(&d->out, bytes,
		   pp_record_write(&record, evsel->attr.sample_type, bytes, sizeof(bytes)));
	return d->out.error < 0 ? failed(d) : 0;
}

_public_ int perfpersist_perfdata_history(struct perfpersist_perfdata *d, int event,
					  uint32_t source, const struct perfpersist_history *h)
{
	const struct perfdata_event *e =
		event >= 0 && (size_t)event < d->n_events ? &d->events[event] : NULL;
	bool all = source == UINT32_MAX;
	struct perf_file_history record;

	if (!SZ_IS_VALID(h) || !e || !e->n || (!all && source >= e->n))
		return client_fail(-EINVAL,
				   "cannot write a history: there is no event %d with a source %u",
				   event, source);
	if (!d->is_started && start(d) < 0)
		return failed(d);
	record = (struct perf_file_history){
		.update.header.type = PERF_FILE_EVENT_UPDATE,
		.update.header.size = sizeof(record),
		.update.type = PERF_FILE_UPDATE_HISTORY,
		.update.id = d->evsels[e->first + (all ? 0 : source)].id,
		.n_events = all ? e->n : 1,
		.cpu = h->cpu,
		.from = h->from,
		.to = h->to,
		.missed = h->missed,
		.limited = h->limited,
		.flags = h->missed_at_least ? PERF_FILE_HISTORY_AT_LEAST : 0,
	};
	output_put(&d->out, &record, sizeof(record));
	return d->out.error < 0 ? failed(d) : 0;
}

/* ── The end ────────────────────────────────────────────────────────────────────────────── */

/* A table of all sections, in the order of their numbers, then the sections themselves. */
static int put_features(struct perfpersist_perfdata *d)
{
	_cleanup_(blob_done) struct blob all = {};
	struct perf_file_section sections[FEATURE_CLOCK_DATA + 1];
	size_t n = 0;

	for (enum perf_file_feature f = FEATURE_TRACING_DATA; f <= FEATURE_CLOCK_DATA; f++) {
		size_t begin = all.n;

		perfdata_feature(d, f, &all);
		if (all.n == begin)
			continue;
		sections[n++] = (struct perf_file_section){ begin, all.n - begin };
		d->header.features[0] |= 1ULL << f;
	}
	if (all.failed || d->build_ids.entries.failed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sections[i].offset += d->out.written + n * sizeof(sections[0]);
	output_put(&d->out, sections, n * sizeof(sections[0]));
	output_put(&d->out, all.bytes, all.n);
	return 0;
}

_public_ int perfpersist_perfdata_finish(struct perfpersist_perfdata *d)
{
	if (d->is_finished)
		return client_fail(-EBUSY, "cannot finish perf.data: that has been done");
	if (start(d) < 0)
		return failed(d);
	sideband_put_until(d, UINT64_MAX);
	traces_put(d);
	d->header.data.size = d->out.written - d->header.data.offset;
	if (!d->pipe && put_features(d) < 0)
		return out_of_memory();
	output_flush(&d->out);
	if (!d->pipe)
		output_rewrite(&d->out, 0, &d->header, sizeof(d->header));
	if (d->out.error < 0)
		return failed(d);
	d->is_finished = true;
	return 0;
}

_public_ uint64_t perfpersist_perfdata_bytes(struct perfpersist_perfdata *d)
{
	return d->out.written;
}

_public_ void perfpersist_perfdata_free(struct perfpersist_perfdata *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_evsels; i++)
		evsel_done(&d->evsels[i]);
	free(d->evsels);
	free(d->events);
	for (size_t i = 0; i < d->argc; i++)
		free(d->argv[i]);
	free(d->argv);
	free(d->sideband.bytes);
	mapped_files_done(&d->mapped);
	traces_done(d);
	build_id_table_done(&d->build_ids);
	output_done(&d->out);
	free(d);
}
