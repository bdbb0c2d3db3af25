// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl snapshot: writes the rings' records to a file that perf reads. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "client/perfctl/events/take.h"
#include "client/perfctl/output/outfile.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"

#define DEFAULT_OUTPUT "perf.data"

struct request {
	const char *path;
	struct selection selection;
};

static void print_json(const char *path, const struct take_result *t)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	json_string(&j, "path", path);
	json_unsigned(&j, "events", t->events);
	json_unsigned(&j, "records", t->records);
	json_unsigned(&j, "traces", t->traces);
	json_unsigned(&j, "untraced_ms", t->untraced);
	json_unsigned(&j, "bytes", t->bytes);
	json_unsigned(&j, "first", t->first);
	json_unsigned(&j, "last", t->last);
	json_unsigned(&j, "missed", t->missed);
	json_bool(&j, "missed_unknown", t->missed_unknown);
	json_unsigned(&j, "damaged", t->damaged);
	json_end(&j, '}');
	putchar('\n');
}

static void print(FILE *f, const char *path, const struct take_result *t)
{
	fprintf(f, "%" PRIu64 " record%s of %" PRIu64 " event%s, ", t->records,
		t->records == 1 ? "" : "s", t->events, t->events == 1 ? "" : "s");
	if (t->traces)
		fprintf(f, "traces of %" PRIu64 " AUX area%s%s, ", t->traces,
			t->traces == 1 ? "" : "s",
			t->has_samples ? " with samples beside them" : "");
	if (t->untraced)
		fprintf(f, "which pauses and snapshots had stopped for %" PRIu32 " ms, ",
			t->untraced);
	fprintf(f, "%" PRIu64 " bytes: ", t->bytes);
	print_text(f, path, strlen(path));
	fputc('\n', f);
}

static int snapshot(struct call *call, struct selection *selection, const char *path)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	struct take_result result = {};
	bool is_stdout;
	int r;

	r = call_connect(call, &p);
	if (r)
		return r;
	r = outfile_open(path, &out);
	if (r < 0)
		return outfile_failed(path, r);
	is_stdout = outfile_is_stdout(&out);
	/* The reader of a pipe may exit early: report that, instead of dying silently. */
	signal(SIGPIPE, SIG_IGN);
	signals_catch();
	r = take(call, p, call->operands, call->n_operands, selection, out.fd, is_stdout, true,
		 &result);
	if (r)
		return r;
	r = outfile_commit(&out);
	if (r < 0)
		return outfile_failed(path, r);
	if (!result.records && selection_is_given(selection))
		complain("no record of these events fits %s, and the file has none",
			 selection->typed);
	if (call->json)
		print_json(path, &result);
	else
		print(is_stdout ? stderr : stdout, path, &result);
	return EXIT_OK;
}

static const struct verb_option options[] = {
	{ 'o', "output", "FILE",
	  "the output file, replaced if it exists; default: perf.data; -: stdout, in the format of "
	  "`perf record -o -`",
	  TAKE_TEXT(struct request, path), .completes = COMPLETE_FILE },
	{},
};

static int run(struct call *call)
{
	struct request o = { .path = DEFAULT_OUTPUT };
	int r;

	if (!options_read(call, &o))
		r = call->code;
	else if (call->json && !strcmp(o.path, "-"))
		r = bad_usage(call, "--json and -o - are mutually exclusive: both write to stdout");
	else
		r = snapshot(call, &o.selection, o.path);
	selection_done(&o.selection);
	return r;
}

const struct verb verb_snapshot = {
	.name = "snapshot",
	.synopsis = "[NAME | NAMESPACE/ | GLOB ...] [-o FILE] [OPTIONS]",
	.summary = "write the buffers' records to a file that perf reads",
	.run = run,
	.options = { { .rows = options },
		     { .rows = selection_options, .at = offsetof(struct request, selection) },
		     { .rows = selection_about, .at = offsetof(struct request, selection) } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "Without NAME, takes all events that you may read. Recording continues meanwhile. The\n"
		"file appears complete or not at all; perf report, perf script, perf sched and others\n"
		"read it, also on another machine. --json prints an object about the file.\n"
		"\n"
		"Examples:\n"
		"  perfctl snapshot web/ --last 10s -o slow.data\n"
		"  perf report -i slow.data\n"
		"  perfctl snapshot web/profile -o - | perf script -i -\n"
		"  perfctl --direct snapshot -o all.data\n",
};
