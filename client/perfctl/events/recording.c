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

static int cannot_write(struct recording *r, int error)
{
	if (!r->has_complained)
		outfile_failed(r->options.output, error);
	r->has_complained = true;
	return error;
}

/* Of a daemon that came after the one we had, or of the keeper itself, if we are root. */
static int ask_another(const struct recording *r, uint64_t since, int *ret_fd)
{
	struct perfpersist_options o = r->call->connect;
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	int err = perfpersist_connect(&o, &p);

	if (err >= 0)
		return perfpersist_sideband(p, since, 0, NULL, ret_fd);
	o.direct = true;
	err = perfpersist_connect(&o, &p);
	return err < 0 ? err : perfpersist_sideband(p, since, 0, NULL, ret_fd);
}

/* Who ran since. Where nobody can tell, what runs now. */
static int write_sideband(struct recording *r, uint64_t since)
{
	_cleanup_close_ int fd = -EBADF;
	int got = -1, err = -ECONNRESET;

	if (!r->deserted)
		err = perfpersist_sideband(r->p, since, 0, NULL, &got);
	if (err == -ECONNRESET || err == -ECONNREFUSED)
		err = ask_another(r, since, &got);
	if (err >= 0)
		fd = got;
	else
		complain("nobody tells who ran (%s): only what runs now has names in the file",
			 strerror(-err));
	return perfpersist_perfdata_sideband(r->data, fd >= 0 ? fd : -1);
}

static int open_file(struct recording *r)
{
	struct perfpersist_perfdata_options o = {
		.sz = sizeof(o),
		.late_sideband = true,
		.argv = (const char *const *)r->options.argv,
		.argc = (size_t)r->options.argc,
	};
	int err = outfile_open(r->options.output, &r->out);

	if (err < 0)
		return cannot_write(r, err);
	o.pipe = outfile_is_stdout(&r->out);
	err = perfpersist_perfdata_new(r->out.fd, &o, &r->data);
	for (size_t i = 0; err >= 0 && i < r->n; i++) {
		/* Of one that has ended, records may be held back still. */
		err = perfpersist_perfdata_event(r->data, follower_event(r->all[i].f));
		r->all[i].number = err;
	}
	r->opened = pp_clock_ns(CLOCK_MONOTONIC);
	r->first = r->samples = 0;
	/* Who reads a pipe wants names at once; what happens from here on comes at the end. */
	if (err >= 0 && o.pipe)
		err = write_sideband(r, r->opened);
	return err < 0 ? cannot_write(r, err) : 0;
}

static void tell_file(const struct recording *r, const char *path, uint64_t bytes)
{
	if (r->call->json)
		return;
	fprintf(stderr, "perfctl record: %" PRIu64 " record%s, %s: %s\n", r->samples,
		r->samples == 1 ? "" : "s", format_size(bytes).s, path);
}

static int name_file(struct recording *r, char **ret)
{
	char *path =
		r->options.switches ? dated_name(r->options.output) : strdup(r->options.output);
	char *mine = path ? strdup(path) : NULL;

	if (!mine) {
		free(path);
		return -ENOMEM;
	}
	if (!outfile_is_stdout(&r->out))
		outfile_rename(&r->out, path);
	else
		free(path);
	*ret = mine;
	return 0;
}

static int close_file(struct recording *r)
{
	_cleanup_free_ char *path = NULL;
	uint64_t bytes;
	int err = write_sideband(r, r->first ? r->first : r->opened);

	if (err >= 0)
		err = perfpersist_perfdata_finish(r->data);
	bytes = perfpersist_perfdata_bytes(r->data);
	if (err >= 0)
		err = name_file(r, &path);
	if (err >= 0)
		err = outfile_commit(&r->out);
	perfpersist_perfdata_free(r->data);
	r->data = NULL;
	if (err < 0)
		return cannot_write(r, err);
	tell_file(r, path, bytes);
	r->bytes += bytes;
	r->all_samples += r->samples;
	r->all_files++;
	return dated_add(&r->dated, TAKE_PTR(path), r->options.switches ? r->options.max_files : 0);
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static bool is_full(const struct recording *r)
{
	return r->options.max_size &&
	       r->bytes + perfpersist_perfdata_bytes(r->data) >= r->options.max_size;
}

static int write_sample(void *userdata, int event, const struct perfpersist_sample *sample)
{
	struct recording *r = userdata;
	int err;

	if (is_full(r))
		return 0;
	if (r->options.switch_size && r->samples &&
	    perfpersist_perfdata_bytes(r->data) >= r->options.switch_size) {
		err = recording_switch(r);
		if (err < 0)
			return err;
	}
	if (!r->first)
		r->first = sample->time;
	r->samples++;
	return perfpersist_perfdata_sample(r->data, r->all[event].number, sample);
}

/* Takes in what there is; *ret_until: up to where nothing older can come any more. */
static int read_one(struct recording *r, size_t i, uint64_t now, uint64_t *ret_until)
{
	struct followed *w = &r->all[i];
	struct perfpersist_sample s;
	uint64_t last = now;
	int err;

	while ((err = follower_next(w->f, &s)) > 0) {
		last = s.time;
		if (r->stop && s.time > r->stop) {
			err = 0;
			break;
		}
		if (selection_learn(r->options.selection, s.pid, s.tid) < 0)
			err = -ENOMEM;
		else if (selection_wants_when(r->options.selection, s.time, s.cpu) &&
			 selection_wants_whose(r->options.selection, s.pid, s.tid))
			err = reorder_push(r->reorder, (int)i, &s);
		if (err < 0 || reorder_held(r->reorder) > HELD_MAX)
			break;
	}
	if (err == -EBADMSG)
		complain("cannot go on reading %s/%s: a ring is damaged", w->name.ns, w->name.name);
	else if (err < 0)
		complain("cannot go on reading: %s", strerror(-err));
	*ret_until = err > 0 ? last : now;
	return err < 0 ? err : err > 0;
}

/* All of an event that has come to its end, or of rings that are replaced. */
static int read_rest(struct recording *r, size_t i)
{
	uint64_t until;
	int err;

	while ((err = read_one(r, i, 0, &until)) > 0) {
		err = reorder_pop(r->reorder, until - MIN(until, UNDER_WAY), write_sample, r);
		if (err < 0)
			return cannot_write(r, err);
	}
	return err;
}

static int open_again(struct recording *r, struct followed *w)
{
	bool gap = false;
	int err = follower_open_again(w->f, &gap);

	if (err < 0) {
		call_failed(r->p, err);
		return err;
	}
	w->ended = err == FOLLOWER_ENDED;
	if (gap)
		complain("%s/%s had buffers in between that nobody read", w->name.ns, w->name.name);
	return 0;
}

static int look_around(struct recording *r, size_t i)
{
	struct followed *w = &r->all[i];
	int err, state = follower_look_around(w->f);

	if (state < 0)
		call_failed(r->p, state);
	if (state <= 0)
		return state;
	err = read_rest(r, i);
	if (err >= 0 && state == FOLLOWER_REPLACED)
		return open_again(r, w);
	w->ended = true;
	return err;
}

/* What was overwritten unread stands in the file where it is missing. */
static int write_overwritten(struct recording *r, uint64_t time)
{
	for (size_t i = 0; i < r->n; i++) {
		struct followed *w = &r->all[i];
		uint64_t read, overwritten;
		int err;

		follower_counts(w->f, &read, &overwritten);
		if (overwritten <= w->overwritten)
			continue;
		err = perfpersist_perfdata_lost(r->data, w->number, UINT32_MAX, time,
						overwritten - w->overwritten);
		if (err < 0)
			return err;
		w->overwritten = overwritten;
	}
	return 0;
}

/* One round over all events. all: up to the last record. 0; 1: there is more to read at once. */
static int go_round(struct recording *r, bool all)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), until = now, last = all ? UINT64_MAX : 0;
	int err = 0, more = 0;

	for (size_t i = 0; err >= 0 && i < r->n; i++) {
		uint64_t mine;

		if (r->all[i].ended)
			continue;
		/* Of copies this brings the newest. */
		err = look_around(r, i);
		if (err < 0 || r->all[i].ended)
			continue;
		err = read_one(r, i, now, &mine);
		if (err < 0)
			return err;
		more |= err;
		until = MIN(until, mine);
	}
	if (err < 0)
		return err;
	if (more || !last)
		last = until - MIN(until, UNDER_WAY);
	err = reorder_pop(r->reorder, last, write_sample, r);
	if (err >= 0)
		err = write_overwritten(r,
					last == UINT64_MAX ? pp_clock_ns(CLOCK_MONOTONIC) : last);
	return err < 0 ? cannot_write(r, err) : more;
}

/* ── the recording ──────────────────────────────────────────────────────────────────────── */

static int follow_one(struct recording *r, const struct perfpersist_info *info)
{
	static const struct follow_options options = { .on = true };
	struct followed *w = &r->all[r->n];
	struct perfpersist_event *e;
	int err;

	strcpy(w->name.ns, info->ns);
	strcpy(w->name.name, info->name);
	err = perfpersist_open(r->p, info->ns, info->name, &e);
	if (err >= 0)
		err = follower_new(r->p, e, &w->name, &options,
				   r->options.history || r->options.past ? SIZE_MAX : 0, &w->f);
	if (err < 0)
		return call_failed(r->p, err);
	r->n++;
	return EXIT_OK;
}

int recording_new(struct call *call, const struct perfpersist_info *infos, size_t n,
		  const struct recording_options *options, struct recording **ret)
{
	struct recording *r = calloc(1, sizeof(*r));
	int code = EXIT_FAILED;

	if (!r)
		return EXIT_FAILED;
	*r = (struct recording){ .call = call, .options = *options, .out = OUTFILE_NONE };
	r->all = calloc(n, sizeof(*r->all));
	if (r->all && reorder_new(&r->reorder) >= 0)
		code = call_connect(call, &r->p);
	for (size_t i = 0; code == EXIT_OK && i < n; i++)
		code = follow_one(r, &infos[i]);
	if (code == EXIT_OK && open_file(r) < 0)
		code = EXIT_FAILED;
	if (code != EXIT_OK) {
		recording_free(r);
		return code;
	}
	*ret = r;
	return EXIT_OK;
}

static bool is_time_to_switch(const struct recording *r)
{
	return r->options.switch_time &&
	       pp_clock_ns(CLOCK_MONOTONIC) - r->opened >= r->options.switch_time;
}

static bool is_over(const struct recording *r)
{
	if (is_full(r))
		return true;
	for (size_t i = 0; i < r->n; i++)
		if (!r->all[i].ended)
			return false;
	return true;
}

int recording_switch(struct recording *r)
{
	int err;

	if (!r->options.switches)
		return 0;
	err = close_file(r);
	return err < 0 ? err : open_file(r);
}

int recording_go_on(struct recording *r)
{
	int err;

	do {
		err = go_round(r, false);
		if (err >= 0 && is_time_to_switch(r) && recording_switch(r) < 0)
			return -EIO;
	} while (err > 0 && !is_over(r) && !signals_caught());
	return err < 0 ? err : is_over(r);
}

void recording_wait(struct recording *r, uint64_t until)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), delay = until - MIN(until, now);
	bool listens = false;

	if (r->options.switch_time)
		delay = MIN(delay, r->opened + r->options.switch_time -
					   MIN(now, r->opened + r->options.switch_time));
	for (size_t i = 0; i < r->n; i++) {
		if (r->all[i].ended)
			continue;
		delay = MIN(delay, follower_delay(r->all[i].f));
		listens |= follower_listens(r->all[i].f);
	}
	listens &= !r->deserted;
	signals_wait(delay, listens ? perfpersist_fd(r->p) : -1, -1);
	if (!listens || perfpersist_dispatch(r->p) >= 0)
		return;
	r->deserted = true;
	for (size_t i = 0; i < r->n; i++)
		follower_deserted(r->all[i].f);
}

static void tell_all(const struct recording *r)
{
	struct json j = { .f = stdout };
	uint64_t overwritten = 0;

	for (size_t i = 0; i < r->n; i++)
		overwritten += r->all[i].overwritten;
	if (overwritten)
		complain("%" PRIu64 " record%s overwritten before they could be read; a larger "
			 "buffer (`perfctl change -m`) holds more",
			 overwritten, overwritten == 1 ? " was" : "s were");
	if (!r->call->json || outfile_is_stdout(&r->out))
		return;
	json_begin(&j, NULL, '{');
	json_unsigned(&j, "records", r->all_samples);
	json_unsigned(&j, "bytes", r->bytes);
	json_unsigned(&j, "overwritten", overwritten);
	json_begin(&j, "files", '[');
	for (size_t i = 0; i < r->dated.n; i++)
		json_string(&j, NULL, r->dated.paths[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	putchar('\n');
}

int recording_finish(struct recording *r)
{
	int err;

	/* A recorder at full speed is never read to its end. */
	r->stop = pp_clock_ns(CLOCK_MONOTONIC);
	do
		err = go_round(r, true);
	while (err > 0);
	if (err >= 0)
		err = close_file(r);
	if (err < 0)
		return EXIT_FAILED;
	tell_all(r);
	return EXIT_OK;
}

void recording_free(struct recording *r)
{
	if (!r)
		return;
	/* Before those whom it tells what happens. */
	perfpersist_free(r->p);
	for (size_t i = 0; r->all && i < r->n; i++)
		follower_free(r->all[i].f);
	perfpersist_perfdata_free(r->data);
	outfile_done(&r->out);
	reorder_free(r->reorder);
	dated_done(&r->dated);
	free(r->all);
	free(r);
}
