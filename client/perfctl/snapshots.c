// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl snapshots: the files of what triggers have frozen. */
#include "client/perfctl/snapshots.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/output/outfile.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/replay/report.h"
#include "proto/io.h"
#include "proto/regular.h"

static const struct column columns[] = {
	{ "AGE", true }, { "TRIGGER", false }, { "FIRING", true },
	{ "BY", false }, { "SIZE", true },     { "SNAPSHOT", false },
};

const struct verb_option snapshots_options[] = {
	{ 'D', "directory", "DIR", "where they are; default: /var/lib/perfpersist/snapshots",
	  TAKE_TEXT(struct snapshots, directory), .completes = COMPLETE_DIRECTORY },
	{},
};

int snapshots_place(struct call *call, struct snapshots *s)
{
	int n, r;

	if (!s->directory) {
		r = spool_place(call->connect.instance, s->path, sizeof(s->path));
		return r < 0 ? bad_usage(call, "--instance %s: not an instance's name",
					 call->connect.instance)
			     : EXIT_OK;
	}
	n = snprintf(s->path, sizeof(s->path), "%s", s->directory);
	return n >= (int)sizeof(s->path) ? bad_usage(call, "-D: the path is too long") : EXIT_OK;
}

int snapshots_list(const struct snapshots *s, struct spooled **ret, size_t *ret_n)
{
	int r = spool_list(s->path, ret, ret_n);

	if (r >= 0)
		return EXIT_OK;
	complain("cannot read the snapshots in %s: %s%s", s->path, strerror(-r),
		 r == -EACCES ? "; its group may, and root" : "");
	return r == -EACCES ? EXIT_NOT_ALLOWED : EXIT_FAILED;
}

char *snapshots_path(const struct snapshots *s, const struct spooled *f)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", s->path, f->name) < 0 ? NULL : path;
}

/* ── list, show ─────────────────────────────────────────────────────────────────────────── */

static void by_cell(struct table *t, const struct spooled *f)
{
	if (f->pid)
		table_cell(t, "%s[%u]", f->comm, f->pid);
	else
		table_cell(t, "%s", f->comm);
}

void snapshots_json(struct json *j, const struct snapshots *s, const struct spooled *f)
{
	_cleanup_free_ char *path = snapshots_path(s, f);

	json_begin(j, NULL, '{');
	json_string(j, "name", f->name);
	json_string(j, "path", path ?: f->name);
	json_string(j, "namespace", f->ns);
	json_string(j, "trigger", f->trigger);
	json_unsigned(j, "number", f->number);
	json_string(j, "comm", f->comm);
	json_unsigned(j, "pid", f->pid);
	json_unsigned(j, "time", f->time);
	json_unsigned(j, "bytes", f->bytes);
	json_end(j, '}');
}

static int list_table(const struct spooled *all, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n; i++) {
		table_cell(&t, "%s", format_age(all[i].time).s);
		table_cell(&t, "%s/%s", all[i].ns, all[i].trigger);
		table_cell(&t, "%" PRIu64, all[i].number);
		by_cell(&t, &all[i]);
		table_cell(&t, "%s", format_size(all[i].bytes).s);
		table_cell(&t, "%s", all[i].name);
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the list: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int run_list(struct call *call)
{
	_cleanup_free_ struct spooled *all = NULL;
	struct json j = { .f = stdout };
	struct snapshots s = {};
	size_t n = 0;
	int r;

	if (!options_read(call, &s))
		return call->code;
	r = snapshots_place(call, &s);
	if (r)
		return r;
	r = snapshots_list(&s, &all, &n);
	if (r)
		return r;
	if (!call->json)
		return list_table(all, n);
	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++)
		snapshots_json(&j, &s, &all[i]);
	json_end(&j, ']');
	putchar('\n');
	return EXIT_OK;
}

static const struct verb verb_list_snapshots = {
	.name = "snapshots list",
	.synopsis = "",
	.summary = "list the snapshots, the oldest first",
	.run = run_list,
	.options = { { .rows = snapshots_options } },
	.help = "AGE: since the trigger fired.\n"
		"FIRING: its number, counted for each trigger from 1.\n"
		"BY: the task that ran on that CPU; `hand`: somebody fired it; `overdue`: an end was missing.\n",
};

/* The snapshot of that name, or the newest. */
static int find(struct snapshots *s, const char *name, struct spooled *ret)
{
	_cleanup_free_ struct spooled *all = NULL;
	bool latest = !strcmp(name, "latest");
	size_t n = 0;
	int r = snapshots_list(s, &all, &n);

	if (r)
		return r;
	for (size_t i = n; i-- > 0;)
		if (latest || !strcmp(all[i].name, name)) {
			*ret = all[i];
			return EXIT_OK;
		}
	if (latest)
		complain("there are no snapshots in %s", s->path);
	else
		complain("there is no snapshot '%s' in %s; `perfctl snapshots list` shows those "
			 "there are",
			 name, s->path);
	return EXIT_NOT_FOUND;
}

static int run_show(struct call *call)
{
	struct json j = { .f = stdout };
	struct snapshots s = {};
	struct spooled f;
	int r;

	if (!options_read(call, &s))
		return call->code;
	r = snapshots_place(call, &s);
	if (!r)
		r = find(&s, call->n_operands ? call->operands[0] : "latest", &f);
	if (r)
		return r;
	if (call->json) {
		snapshots_json(&j, &s, &f);
		putchar('\n');
	} else {
		printf("%s/%s\n", s.path, f.name);
	}
	return EXIT_OK;
}

static const struct verb verb_show_snapshot = {
	.name = "snapshots show",
	.synopsis = "[NAME | latest]",
	.summary = "print the path of a snapshot; with --json, all about it",
	.run = run_show,
	.options = { { .rows = snapshots_options } },
	.operands = COMPLETE_SNAPSHOT,
	.one_operand = true,
	.help = "Without NAME, it is the latest.\n"
		"\n"
		"Examples:\n"
		"  perfctl report -i \"$(perfctl snapshots show)\"\n"
		"  perf script -i \"$(perfctl snapshots show latest)\"\n",
};

/* ── delete, export ─────────────────────────────────────────────────────────────────────── */

static int run_delete(struct call *call)
{
	struct json j = { .f = stdout };
	struct snapshots s = {};
	int r, code = EXIT_OK;

	if (!options_read(call, &s))
		return call->code;
	if (!call->n_operands)
		return bad_usage(call, "give the NAME of a snapshot");
	r = snapshots_place(call, &s);
	if (r)
		return r;
	if (call->json)
		json_begin(&j, NULL, '[');
	for (size_t i = 0; i < call->n_operands; i++) {
		char path[1024];
		struct spooled f;
		int failed = find(&s, call->operands[i], &f);

		if (!failed && snprintf(path, sizeof(path), "%s/%s", s.path, f.name) > 0 &&
		    unlink(path) < 0) {
			failed = errno == EACCES || errno == EPERM ? EXIT_NOT_ALLOWED : EXIT_FAILED;
			complain("cannot delete %s: %s", path, strerror(errno));
		}
		if (!failed && call->json)
			snapshots_json(&j, &s, &f);
		else if (!failed)
			printf("%s is deleted\n", f.name);
		code = code ?: failed;
	}
	if (call->json) {
		json_end(&j, ']');
		putchar('\n');
	}
	return code;
}

static const struct verb verb_delete_snapshot = {
	.name = "snapshots delete",
	.synopsis = "NAME...",
	.summary = "delete snapshots",
	.run = run_delete,
	.options = { { .rows = snapshots_options } },
	.operands = COMPLETE_SNAPSHOT,
	.help = "`latest` is a name, too.\n",
};

struct export
{
	struct snapshots place;
	const char *output, *html;
};

static const struct verb_option export_options[] = {
	{ 'o', "output", "FILE",
	  "the output file; default, without --html: the snapshot's name, in the current directory; "
	  "-: stdout",
	  TAKE_TEXT(struct export, output), .completes = COMPLETE_FILE },
	{ 0, "html", "FILE", "write the page of `perfctl report --html`",
	  TAKE_TEXT(struct export, html), .completes = COMPLETE_FILE },
	{},
};

/* Not what has its name by now: who may write there is not always who exports it. */
static int open_snapshot(const struct snapshots *s, const struct spooled *f, int *ret)
{
	_cleanup_close_ int dir = open(s->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -errno : regular_open(dir, f->name, RESOLVE_NO_SYMLINKS);

	if (fd < 0) {
		complain("cannot open the snapshot %s/%s: %s", s->path, f->name,
			 fd == -EINVAL ? "it is not a plain file" : strerror(-fd));
		return fd == -EACCES ? EXIT_NOT_ALLOWED : EXIT_FAILED;
	}
	*ret = fd;
	return EXIT_OK;
}

static int copy(int from, int to)
{
	char buf[65536];
	ssize_t n;
	int r = 0;

	while (r >= 0 && (n = read(from, buf, sizeof(buf))) > 0)
		r = pp_write_all(to, buf, (size_t)n);
	return r < 0 ? r : n < 0 ? -errno : 0;
}

static int export_to(int from, const char *to)
{
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	int r = outfile_open(to, &out);

	if (r >= 0)
		r = copy(from, out.fd);
	if (r >= 0)
		r = outfile_commit(&out);
	return r < 0 ? outfile_failed(to, r) : EXIT_OK;
}

static bool is_stdout(const char *file)
{
	return file && !strcmp(file, "-");
}

static void text_or_null(struct json *j, const char *key, const char *text)
{
	if (text)
		json_string(j, key, text);
	else
		json_null(j, key);
}

/* Says what was written, unless it went where this goes. */
static void tell_exported(const struct call *call, const struct export *e)
{
	struct json j = { .f = stdout };

	if (is_stdout(e->output) || is_stdout(e->html))
		return;
	if (call->json) {
		json_begin(&j, NULL, '{');
		text_or_null(&j, "output", e->output);
		text_or_null(&j, "html", e->html);
		json_end(&j, '}');
		putchar('\n');
		return;
	}
	if (e->output)
		printf("%s\n", e->output);
	if (e->html)
		printf("%s\n", e->html);
}

static int run_export(struct call *call)
{
	_cleanup_close_ int fd = -EBADF;
	struct export e = {};
	struct spooled f;
	char path[1024];
	int r;

	if (!options_read(call, &e))
		return call->code;
	if (is_stdout(e.output) && is_stdout(e.html))
		return bad_usage(call, "-o - and --html - are mutually exclusive");
	r = snapshots_place(call, &e.place);
	if (!r)
		r = find(&e.place, call->n_operands ? call->operands[0] : "latest", &f);
	if (!r)
		r = open_snapshot(&e.place, &f, &fd);
	if (r)
		return r;
	if (!e.html && !e.output)
		e.output = f.name;
	snprintf(path, sizeof(path), "%s/%s", e.place.path, f.name);
	if (e.output)
		r = export_to(fd, e.output);
	if (!r && e.html)
		r = report_html(call, TAKE_FD(fd), path, e.html);
	if (!r)
		tell_exported(call, &e);
	return r;
}

static const struct verb verb_export = {
	.name = "snapshots export",
	.synopsis = "[NAME | latest] [-o FILE] [--html FILE]",
	.summary = "copy a snapshot to a file, or write a page of it",
	.run = run_export,
	.options = { { .rows = export_options },
		     { .rows = snapshots_options, .at = offsetof(struct export, place) } },
	.operands = COMPLETE_SNAPSHOT,
	.one_operand = true,
	.help = "Without NAME, it is the latest.\n"
		"\n"
		"Examples:\n"
		"  perfctl snapshots export latest --html incident.html\n",
};

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static const struct verb *const parts[] = {
	&verb_list_snapshots,	 &verb_show_snapshot,  &verb_export, &verb_delete_snapshot,
	&verb_collect_snapshots, &verb_exec_snapshots, NULL,
};

static int run(struct call *call)
{
	return options_read(call, NULL)
		       ? bad_usage(call, "snapshots what? %s", verb_snapshots.synopsis)
		       : call->code;
}

const struct verb verb_snapshots = {
	.name = "snapshots",
	.synopsis = "list | show | export | delete | collect | exec ...",
	.summary = "what triggers have frozen, as files that perf reads",
	.run = run,
	.parts = parts,
	.operands = COMPLETE_PART,
	.help = "Examples:\n"
		"  perfctl snapshots list\n"
		"  perfctl report -i \"$(perfctl snapshots show latest)\"\n",
};
