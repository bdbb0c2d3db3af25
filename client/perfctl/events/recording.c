// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/recording.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/follower.h"
#include "client/perfctl/events/reorder.h"
#include "client/perfctl/output/dated.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/rates.h"
#include "proto/clock.h"

/* What is read at once, of all events together. */
#define HELD_MAX (64U << 20)
/* For so long after its time a record may still be on its way into its ring: an interrupt or two.
 */
#define UNDER_WAY 5000000ULL

struct followed {
	struct event_name name;
	struct follower *f;
	int number; /* in the file */
	bool ended;
	uint64_t overwritten; /* unread, of those that are in a file */
};

struct recording {
	struct call *call;
	struct perfpersist *p; /* ours alone */
	struct recording_options options;
	struct followed *all;
	size_t n;
	struct reorder *reorder;
	bool deserted; /* the daemon is gone */
	bool has_complained;
	uint64_t stop; /* CLOCK_MONOTONIC, ns: what is of later is not wanted any more; 0: not known
			*/

	struct outfile out; /* that is being written */
	struct perfpersist_perfdata *data;
	uint64_t opened;  /* CLOCK_MONOTONIC, ns */
	uint64_t first;	  /* time of its first sample; 0: none yet */
	uint64_t samples; /* in it */

	struct dated dated; /* files that are done */
	uint64_t bytes;	    /* in these */
	uint64_t all_samples, all_files;
};

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

static int cannot_write(struct recording *recording, int error)
{
	if (!recording->has_complained)
		outfile_failed(recording->options.output, error);
	recording->has_complained = true;
	return error;
}

/* Of a daemon that came after the one we had, or of the keeper itself, if we are root. */
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

/* Who ran since. Where nobody can tell, what runs now. */
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
		complain("nobody tells who ran (%s): only what runs now has names in the file",
			 strerror(-r));
	return perfpersist_perfdata_sideband(recording->data, fd >= 0 ? fd : -1);
}

static int open_file(struct recording *recording)
{
	struct perfpersist_perfdata_options o = {
		.sz = sizeof(o),
		.late_sideband = true,
		.argv = (const char *const *)recording->call->argv,
		.argc = (size_t)recording->call->argc,
	};
	int r = outfile_open(recording->options.output, &recording->out);

	if (r < 0)
		return cannot_write(recording, r);
	o.pipe = outfile_is_stdout(&recording->out);
	r = perfpersist_perfdata_new(recording->out.fd, &o, &recording->data);
	for (size_t i = 0; r >= 0 && i < recording->n; i++) {
		/* Of one that has ended, records may be held back still. */
		r = perfpersist_perfdata_event(recording->data,
					       follower_event(recording->all[i].f));
		recording->all[i].number = r;
	}
	recording->opened = pp_clock_ns(CLOCK_MONOTONIC);
	recording->first = recording->samples = 0;
	/* Who reads a pipe wants names at once; what happens from here on comes at the end. */
	if (r >= 0 && o.pipe)
		r = write_sideband(recording, recording->opened);
	return r < 0 ? cannot_write(recording, r) : 0;
}

static void tell_file(const struct recording *recording, const char *path, uint64_t bytes)
{
	if (recording->call->json)
		return;
	fprintf(stderr, "perfctl record: %" PRIu64 " record%s, %s: %s\n", recording->samples,
		recording->samples == 1 ? "" : "s", format_size(bytes).s, path);
}

static int name_file(struct recording *recording, char **ret)
{
	char *path = recording->options.switches ? dated_name(recording->options.output)
						 : strdup(recording->options.output);
	char *mine = path ? strdup(path) : NULL;

	if (!mine) {
		free(path);
		return -ENOMEM;
	}
	if (!outfile_is_stdout(&recording->out))
		outfile_rename(&recording->out, path);
	else
		free(path);
	*ret = mine;
	return 0;
}

static int close_file(struct recording *recording)
{
	_cleanup_free_ char *path = NULL;
	uint64_t bytes;
	int r = write_sideband(recording, recording->first ? recording->first : recording->opened);

	if (r >= 0)
		r = perfpersist_perfdata_finish(recording->data);
	bytes = perfpersist_perfdata_bytes(recording->data);
	if (r >= 0)
		r = name_file(recording, &path);
	if (r >= 0)
		r = outfile_commit(&recording->out);
	perfpersist_perfdata_free(recording->data);
	recording->data = NULL;
	if (r < 0)
		return cannot_write(recording, r);
	tell_file(recording, path, bytes);
	recording->bytes += bytes;
	recording->all_samples += recording->samples;
	recording->all_files++;
	return dated_add(&recording->dated, TAKE_PTR(path),
			 recording->options.switches ? recording->options.max_files : 0);
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static bool is_full(const struct recording *recording)
{
	return recording->options.max_size &&
	       recording->bytes + perfpersist_perfdata_bytes(recording->data) >=
		       recording->options.max_size;
}

static int write_sample(void *userdata, int event, const struct perfpersist_sample *sample)
{
	struct recording *recording = userdata;
	int r;

	if (is_full(recording))
		return 0;
	if (recording->options.switch_size && recording->samples &&
	    perfpersist_perfdata_bytes(recording->data) >= recording->options.switch_size) {
		r = recording_switch(recording);
		if (r < 0)
			return r;
	}
	if (!recording->first)
		recording->first = sample->time;
	recording->samples++;
	return perfpersist_perfdata_sample(recording->data, recording->all[event].number, sample);
}

/* Takes in what there is; *ret_until: up to where nothing older can come any more. */
static int read_one(struct recording *recording, size_t i, uint64_t now, uint64_t *ret_until)
{
	struct followed *w = &recording->all[i];
	struct perfpersist_sample s;
	uint64_t last = now;
	int r;

	while ((r = follower_next(w->f, &s)) > 0) {
		last = s.time;
		if (recording->stop && s.time > recording->stop) {
			r = 0;
			break;
		}
		if (selection_learn(recording->options.selection, s.pid, s.tid) < 0)
			r = -ENOMEM;
		else if (selection_wants_when(recording->options.selection, s.time, s.cpu) &&
			 selection_wants_whose(recording->options.selection, s.pid, s.tid))
			r = reorder_push(recording->reorder, (int)i, &s);
		if (r < 0 || reorder_held(recording->reorder) > HELD_MAX)
			break;
	}
	if (r == -EBADMSG)
		complain("cannot go on reading %s/%s: a ring is damaged", w->name.ns, w->name.name);
	else if (r < 0)
		complain("cannot go on reading: %s", strerror(-r));
	*ret_until = r > 0 ? last : now;
	return r < 0 ? r : r > 0;
}

/* All of an event that has come to its end, or of rings that are replaced. */
static int read_rest(struct recording *recording, size_t i)
{
	uint64_t until;
	int r;

	while ((r = read_one(recording, i, 0, &until)) > 0) {
		r = reorder_pop(recording->reorder, until - MIN(until, UNDER_WAY), write_sample,
				recording);
		if (r < 0)
			return cannot_write(recording, r);
	}
	return r;
}

static int open_again(struct recording *recording, struct followed *w)
{
	bool gap = false;
	int r = follower_open_again(w->f, &gap);

	if (r < 0) {
		call_failed(recording->p, r);
		return r;
	}
	w->ended = r == FOLLOWER_ENDED;
	if (gap)
		complain("%s/%s had buffers in between that nobody read", w->name.ns, w->name.name);
	return 0;
}

static int look_around(struct recording *recording, size_t i)
{
	struct followed *w = &recording->all[i];
	int r, state = follower_look_around(w->f);

	if (state < 0)
		call_failed(recording->p, state);
	if (state <= 0)
		return state;
	r = read_rest(recording, i);
	if (r >= 0 && state == FOLLOWER_REPLACED)
		return open_again(recording, w);
	w->ended = true;
	return r;
}

/* What was overwritten unread stands in the file where it is missing. */
static int write_overwritten(struct recording *recording, uint64_t time)
{
	for (size_t i = 0; i < recording->n; i++) {
		struct followed *w = &recording->all[i];
		uint64_t read, overwritten;
		int r;

		follower_counts(w->f, &read, &overwritten);
		if (overwritten <= w->overwritten)
			continue;
		r = perfpersist_perfdata_lost(recording->data, w->number, UINT32_MAX, time,
					      overwritten - w->overwritten);
		if (r < 0)
			return r;
		w->overwritten = overwritten;
	}
	return 0;
}

/* One round over all events. all: up to the last record. 0; 1: there is more to read at once. */
static int go_round(struct recording *recording, bool all)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), until = now, last = all ? UINT64_MAX : 0;
	int r = 0, more = 0;

	for (size_t i = 0; r >= 0 && i < recording->n; i++) {
		uint64_t mine;

		if (recording->all[i].ended)
			continue;
		/* Of copies this brings the newest. */
		r = look_around(recording, i);
		if (r < 0 || recording->all[i].ended)
			continue;
		r = read_one(recording, i, now, &mine);
		if (r < 0)
			return r;
		more |= r;
		until = MIN(until, mine);
	}
	if (r < 0)
		return r;
	if (more || !last)
		last = until - MIN(until, UNDER_WAY);
	r = reorder_pop(recording->reorder, last, write_sample, recording);
	if (r >= 0)
		r = write_overwritten(recording,
				      last == UINT64_MAX ? pp_clock_ns(CLOCK_MONOTONIC) : last);
	return r < 0 ? cannot_write(recording, r) : more;
}

/* ── the recording ──────────────────────────────────────────────────────────────────────── */

static int follow_one(struct recording *recording, const struct perfpersist_info *info)
{
	static const struct follow_options options = { .on = true };
	struct followed *w = &recording->all[recording->n];
	struct perfpersist_event *e;
	int r;

	strcpy(w->name.ns, info->ns);
	strcpy(w->name.name, info->name);
	r = perfpersist_open(recording->p, info->ns, info->name, &e);
	if (r >= 0)
		r = follower_new(recording->p, e, &w->name, &options,
				 recording->options.history || recording->options.past ? SIZE_MAX
										       : 0,
				 &w->f);
	if (r < 0)
		return call_failed(recording->p, r);
	recording->n++;
	return EXIT_OK;
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
	if (recording->all && reorder_new(&recording->reorder) >= 0)
		code = call_connect(call, &recording->p);
	for (size_t i = 0; code == EXIT_OK && i < n; i++)
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
	if (is_full(recording))
		return true;
	for (size_t i = 0; i < recording->n; i++)
		if (!recording->all[i].ended)
			return false;
	return true;
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
		r = go_round(recording, false);
		if (r >= 0 && is_time_to_switch(recording) && recording_switch(recording) < 0)
			return -EIO;
	} while (r > 0 && !is_over(recording) && !signals_caught());
	return r < 0 ? r : is_over(recording);
}

void recording_wait(struct recording *recording, uint64_t until)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), delay = until - MIN(until, now);
	bool listens = false;

	if (recording->options.switch_time)
		delay = MIN(delay,
			    recording->opened + recording->options.switch_time -
				    MIN(now, recording->opened + recording->options.switch_time));
	for (size_t i = 0; i < recording->n; i++) {
		if (recording->all[i].ended)
			continue;
		delay = MIN(delay, follower_delay(recording->all[i].f));
		listens |= follower_listens(recording->all[i].f);
	}
	listens &= !recording->deserted;
	signals_wait(delay, listens ? perfpersist_fd(recording->p) : -1, -1);
	if (!listens || perfpersist_dispatch(recording->p) >= 0)
		return;
	recording->deserted = true;
	for (size_t i = 0; i < recording->n; i++)
		follower_deserted(recording->all[i].f);
}

static void tell_all(const struct recording *recording)
{
	struct json j = { .f = stdout };
	uint64_t overwritten = 0;

	for (size_t i = 0; i < recording->n; i++)
		overwritten += recording->all[i].overwritten;
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
	int r;

	/* A recorder at full speed is never read to its end. */
	recording->stop = pp_clock_ns(CLOCK_MONOTONIC);
	do
		r = go_round(recording, true);
	while (r > 0);
	if (r >= 0)
		r = close_file(recording);
	if (r < 0)
		return EXIT_FAILED;
	tell_all(recording);
	return EXIT_OK;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	/* Before those whom it tells what happens. */
	perfpersist_free(recording->p);
	for (size_t i = 0; recording->all && i < recording->n; i++)
		follower_free(recording->all[i].f);
	perfpersist_perfdata_free(recording->data);
	outfile_done(&recording->out);
	reorder_free(recording->reorder);
	dated_done(&recording->dated);
	free(recording->all);
	free(recording);
}
