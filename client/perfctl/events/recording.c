// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/recording.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/take.h"
#include "client/perfctl/output/dated.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/rates.h"
#include "proto/clock.h"

struct followed {
	struct event_name name;
	int number;    /* in the file */
	uint64_t from; /* the file has all of its records since then; 0: unknown */
	uint64_t to;   /* and up to then at most */
	bool is_other; /* by now; the file has what it was */
};

struct recording {
	struct call *call;
	struct perfpersist *p; /* the stream's */
	struct perfpersist_stream *stream;
	struct recording_options options;
	struct followed *all;
	size_t n;
	bool deserted; /* the daemon is gone */
	bool ended;    /* nothing more comes from the stream */
	bool is_cut; /* an error was told: records are missing in the file, but what is there is good */
	bool is_unwritable; /* this was told, too */

	struct outfile out; /* the current file */
	struct perfpersist_perfdata *data;
	uint64_t opened;  /* CLOCK_MONOTONIC, ns */
	uint64_t first;	  /* time of its first sample; 0: none yet */
	uint64_t last;	  /* of its last one */
	uint64_t samples; /* in it */

	struct dated dated; /* finished files */
	uint64_t bytes;	    /* in finished files */
	uint64_t all_samples, all_files, overwritten;
	uint64_t ended_at; /* the last record of the file before, or when that was opened */
};

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

static int cannot_write(struct recording *recording, int error)
{
	if (!recording->is_unwritable)
		outfile_failed(recording->options.output, error);
	recording->is_unwritable = true;
	return error;
}

/* Asks a daemon that was started since, or, as root, the keeper itself. */
static int ask_another(const struct recording *recording, uint64_t since, int *ret_fd)
{
	struct perfpersist_options o = recording->call->connect;
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	int r = perfpersist_connect(&o, &p);

	if (r >= 0)
		return perfpersist_sideband(p, since, 0, NULL, ret_fd);
	o.direct = true;
	r = perfpersist_connect(&o, &p);
	return r < 0 ? r : perfpersist_sideband(p, since, 0, NULL, ret_fd);
}

/* Writes the sideband since then; if there is none, the processes that run now. */
static int write_sideband(struct recording *recording, uint64_t since)
{
	_cleanup_close_ int fd = -EBADF;
	int got = -1, r = -ECONNRESET;

	if (!recording->deserted)
		r = perfpersist_sideband(recording->p, since, 0, NULL, &got);
	if (r == -ECONNRESET || r == -ECONNREFUSED)
		r = ask_another(recording, since, &got);
	if (r >= 0)
		fd = got;
	else
		complain("there is no sideband (%s): exited processes will be unnamed",
			 strerror(-r));
	return perfpersist_perfdata_sideband(recording->data, fd >= 0 ? fd : -1);
}

/* Where the past is recorded, too, its beginning on each CPU is not known. The next file begins where
 * this one ends. */
static uint64_t begin_of(const struct recording *recording)
{
	if (recording->all_files)
		return recording->ended_at;
	return recording->options.history || recording->options.past ? 0 : recording->opened;
}

static int open_file(struct recording *recording)
{
	_cleanup_free_ const char **typed = call_typed(recording->call);
	struct perfpersist_perfdata_options o = {
		.sz = sizeof(o),
		.late_sideband = true,
		.argv = typed,
		.argc = (size_t)recording->call->argc + 1,
	};
	int r = !typed ? -ENOMEM : outfile_open(recording->options.output, &recording->out);

	if (r < 0)
		return cannot_write(recording, r);
	o.pipe = outfile_is_stdout(&recording->out);
	r = perfpersist_perfdata_new(recording->out.fd, &o, &recording->data);
	for (size_t i = 0; r >= 0 && i < recording->n; i++) {
		r = perfpersist_perfdata_event(recording->data,
					       perfpersist_stream_event(recording->stream, i));
		recording->all[i].number = r;
	}
	recording->opened = pp_clock_ns(CLOCK_MONOTONIC);
	recording->first = recording->last = recording->samples = 0;
	for (size_t i = 0; i < recording->n; i++)
		recording->all[i].from = MAX(recording->all[i].from, begin_of(recording));
	/* The reader of a pipe needs names at once; later sideband comes at the end. */
	if (r >= 0 && o.pipe)
		r = write_sideband(recording, recording->opened);
	return r < 0 ? cannot_write(recording, r) : 0;
}

static void tell_file(const struct recording *recording, const char *path, uint64_t bytes)
{
	if (recording->call->json)
		return;
	fprintf(stderr, "perfctl record: %" PRIu64 " record%s, %" PRIu64 " bytes: %s\n",
		recording->samples, recording->samples == 1 ? "" : "s", bytes, path);
}

static int commit_file(struct recording *recording, char **ret)
{
	const char *path = recording->options.output;

	if (recording->options.switches)
		return dated_commit(&recording->out, path, ret);
	*ret = strdup(path);
	return *ret ? outfile_commit(&recording->out) : -ENOMEM;
}

static bool wants_cpu(const struct recording *recording, int cpu)
{
	const struct selection *s = recording->options.selection;

	return !s->cpus || (cpu >= 0 && (size_t)cpu < s->n_cpus && s->cpus[cpu]);
}

/* All events have been read up to the last record. */
static int write_history(struct recording *recording, size_t i)
{
	struct perfpersist_event *e = perfpersist_stream_event(recording->stream, i);
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t to = MIN(recording->all[i].to, recording->ended_at);
	int r = perfpersist_event_info(e, &info);

	for (size_t ring = 0; r >= 0 && ring < perfpersist_event_rings(e); ring++) {
		int cpu = perfpersist_ring_cpu(e, ring);
		struct perfpersist_history h = {
			.sz = sizeof(h),
			.cpu = (uint32_t)cpu,
			.from = MIN(recording->all[i].from, to),
			.to = to,
			.missed = info.missed,
			.limited = info.limited,
			.missed_at_least = info.missed_unknown || info.missed_at_least,
		};

		if (wants_cpu(recording, cpu))
			r = perfpersist_perfdata_history(recording->data, recording->all[i].number,
							 UINT32_MAX, &h);
	}
	return r;
}

static int write_histories(struct recording *recording)
{
	int r = 0;

	recording->ended_at = recording->last ?: recording->opened;
	for (size_t i = 0; r >= 0 && i < recording->n; i++)
		if (recording->all[i].from && !recording->all[i].is_other)
			r = write_history(recording, i);
	return r;
}

static int close_file(struct recording *recording)
{
	_cleanup_free_ char *path = NULL;
	uint64_t bytes;
	int r = write_sideband(recording, recording->first ? recording->first : recording->opened);

	if (r >= 0)
		r = write_histories(recording);
	if (r >= 0)
		r = perfpersist_perfdata_finish(recording->data);
	bytes = perfpersist_perfdata_bytes(recording->data);
	if (r >= 0)
		r = commit_file(recording, &path);
	perfpersist_perfdata_free(recording->data);
	recording->data = NULL;
	if (r < 0)
		return cannot_write(recording, r);
	tell_file(recording, path, bytes);
	recording->bytes += bytes;
	recording->all_samples += recording->samples;
	recording->all_files++;
	r = dated_add(&recording->dated, TAKE_PTR(path),
		      recording->options.switches ? recording->options.max_files : 0);
	return r < 0 ? cannot_write(recording, r) : 0;
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static bool is_full(const struct recording *recording)
{
	return recording->options.max_size &&
	       recording->bytes + perfpersist_perfdata_bytes(recording->data) >=
		       recording->options.max_size;
}

static int write_sample(struct recording *recording, size_t event,
			const struct perfpersist_sample *sample)
{
	struct selection *selection = recording->options.selection;
	int r = selection_learn(selection, sample->pid, sample->tid);

	if (r < 0 || recording->all[event].is_other || is_full(recording) ||
	    !selection_wants_when(selection, sample->time, sample->cpu) ||
	    !selection_wants_whose(selection, sample->pid, sample->tid))
		return r;
	if (recording->options.switch_size && recording->samples &&
	    perfpersist_perfdata_bytes(recording->data) >= recording->options.switch_size) {
		r = recording_switch(recording);
		if (r < 0)
			return r;
	}
	if (!recording->first)
		recording->first = sample->time;
	recording->last = sample->time;
	recording->samples++;
	return perfpersist_perfdata_sample(recording->data, recording->all[event].number, sample);
}

/* The new one's records are of other kinds than the file says. */
static int replace(struct recording *recording, struct followed *w, uint64_t time)
{
	int r;

	w->to = time;
	w->is_other = true;
	if (!recording->options.switches) {
		complain(
			"%s/%s was deleted, and another event has its name; the file ends with the "
			"first one's records",
			w->name.ns, w->name.name);
		recording->is_cut = true;
		return 0;
	}
	complain("%s/%s was deleted, and another event has its name; that one's records are in the "
		 "next file",
		 w->name.ns, w->name.name);
	r = recording_switch(recording);
	w->is_other = false;
	w->from = pp_clock_ns(CLOCK_MONOTONIC);
	w->to = UINT64_MAX;
	return r;
}

/* Overwritten records are marked as lost in the file, at the place where they are missing. */
static int write_item(struct recording *recording, const struct perfpersist_stream_item *item)
{
	struct followed *w = &recording->all[item->event];

	switch (item->kind) {
	case PERFPERSIST_STREAM_RECORD:
		return write_sample(recording, item->event, &item->sample);
	case PERFPERSIST_STREAM_OVERWRITTEN:
		recording->overwritten += item->count;
		if (w->is_other)
			return 0;
		return perfpersist_perfdata_lost(recording->data, w->number, UINT32_MAX, item->time,
						 item->count);
	case PERFPERSIST_STREAM_REPLACED:
		return replace(recording, w, item->time);
	case PERFPERSIST_STREAM_RESIZED:
		if (item->gap)
			complain("%s/%s has new buffers; records in between were not read",
				 w->name.ns, w->name.name);
		if (item->gap) /* the new ones began at an unknown time, before they were read */
			w->from = pp_clock_ns(CLOCK_MONOTONIC);
		return 0;
	case PERFPERSIST_STREAM_CUT:
		w->to = item->time;
		return 0;
	case PERFPERSIST_STREAM_UNATTENDED:
		recording->deserted = true;
		return 0;
	case PERFPERSIST_STREAM_END:
		recording->ended = true;
		return 0;
	default:
		return 0;
	}
}

/* One round over all events. 0; 1: there is more to read at once. */
static int go_round(struct recording *recording)
{
	struct perfpersist_stream_item item = { .sz = sizeof(item) };
	int written, r = perfpersist_stream_dispatch(recording->stream);

	if (r < 0) {
		call_failed(recording->p, r);
		recording->is_cut = true;
	}
	while (perfpersist_stream_next(recording->stream, &item) > 0) {
		written = write_item(recording, &item);
		if (written < 0)
			return cannot_write(recording, written);
	}
	/* That is one event's end, and the others go on. */
	return r == -EBADMSG || r == -ECONNRESET ? 1 : r;
}

/* ── the recording ──────────────────────────────────────────────────────────────────────── */

static int follow_one(struct recording *recording, const struct perfpersist_info *info)
{
	_cleanup_(cleanup_event) struct perfpersist_event *e = NULL;
	struct followed *w = &recording->all[recording->n];
	bool past = recording->options.history || recording->options.past;
	int r;

	tell_frozen(info);
	w->to = UINT64_MAX;
	strcpy(w->name.ns, info->ns);
	strcpy(w->name.name, info->name);
	r = perfpersist_open(recording->p, info->ns, info->name, &e);
	if (r >= 0)
		r = perfpersist_stream_add(recording->stream, e, past ? SIZE_MAX : 0);
	if (r < 0)
		return call_failed(recording->p, r);
	recording->n++;
	return EXIT_OK;
}

static int begin_stream(struct recording *recording)
{
	int r = call_connect(recording->call, &recording->p);

	if (r != EXIT_OK)
		return r;
	r = perfpersist_stream_new(recording->p, NULL, &recording->stream);
	if (r >= 0)
		return EXIT_OK;
	r = call_failed(recording->p, r);
	perfpersist_free(recording->p);
	return r;
}

int recording_new(struct call *call, const struct perfpersist_info *infos, size_t n,
		  const struct recording_options *options, struct recording **ret)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int code = EXIT_FAILED;

	if (!recording)
		return EXIT_FAILED;
	*recording = (struct recording){ .call = call, .options = *options, .out = OUTFILE_NONE };
	recording->all = calloc(n, sizeof(*recording->all));
	if (recording->all)
		code = begin_stream(recording);
	allow_descriptors();
	for (size_t i = 0; code == EXIT_OK && i < n; i++)
		if (!is_second_name(infos, i))
			code = follow_one(recording, &infos[i]);
	if (code == EXIT_OK && open_file(recording) < 0)
		code = EXIT_FAILED;
	if (code != EXIT_OK) {
		recording_free(recording);
		return code;
	}
	*ret = recording;
	return EXIT_OK;
}

static bool is_time_to_switch(const struct recording *recording)
{
	return recording->options.switch_time &&
	       pp_clock_ns(CLOCK_MONOTONIC) - recording->opened >= recording->options.switch_time;
}

static bool is_over(const struct recording *recording)
{
	return recording->ended || is_full(recording);
}

int recording_switch(struct recording *recording)
{
	int r;

	if (!recording->options.switches)
		return 0;
	r = close_file(recording);
	return r < 0 ? r : open_file(recording);
}

int recording_go_on(struct recording *recording)
{
	int r;

	do {
		r = go_round(recording);
		if (r >= 0 && is_time_to_switch(recording) && recording_switch(recording) < 0)
			return -EIO;
	} while (r > 0 && !is_over(recording) && !signals_caught());
	return r < 0 ? r : is_over(recording);
}

void recording_wait(struct recording *recording, uint64_t until)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);

	if (recording->options.switch_time)
		until = MIN(until, recording->opened + recording->options.switch_time);
	signals_wait(MIN(until - MIN(until, now), perfpersist_stream_delay(recording->stream)),
		     perfpersist_stream_fd(recording->stream));
}

static void tell_all(const struct recording *recording)
{
	struct json j = { .f = stdout };
	uint64_t overwritten = recording->overwritten;

	if (overwritten)
		complain("%" PRIu64 " record%s overwritten before they could be read; a larger "
			 "buffer (`perfctl change -m`) holds more",
			 overwritten, overwritten == 1 ? " was" : "s were");
	if (!recording->call->json || outfile_is_stdout(&recording->out))
		return;
	json_begin(&j, NULL, '{');
	json_unsigned(&j, "records", recording->all_samples);
	json_unsigned(&j, "bytes", recording->bytes);
	json_unsigned(&j, "overwritten", overwritten);
	json_begin(&j, "files", '[');
	for (size_t i = 0; i < recording->dated.n; i++)
		json_string(&j, NULL, recording->dated.paths[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	putchar('\n');
}

int recording_finish(struct recording *recording)
{
	perfpersist_stream_stop(recording->stream);
	while (!recording->ended && !recording->is_unwritable)
		go_round(recording);
	if (recording->is_unwritable || close_file(recording) < 0)
		return EXIT_FAILED;
	tell_all(recording);
	return recording->is_cut ? EXIT_FAILED : EXIT_OK;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	perfpersist_stream_free(recording->stream);
	perfpersist_perfdata_free(recording->data);
	outfile_done(&recording->out);
	dated_done(&recording->dated);
	free(recording->all);
	free(recording);
}
