// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds candidates. Names of events come from the files of the registry; the daemon is asked only
 * if these are not readable.
 */
#include <ctype.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "client/perfctl/completion/complete.h"
#include "client/perfctl/events/presets.h"
#include "client/perfctl/events/recordable.h"
#include "client/perfctl/events/spool.h"
#include "proto/printable.h"

#define DAEMON_SECONDS 5 /* the daemon's time, before the tab key gets no answer */

/*
 * The shell puts a candidate onto the command line as it is. Any user may call a process or a cgroup
 * "x;id", and root's next Enter would run that: a candidate with a character that a shell could
 * understand is not offered.
 */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("_.,:+/@%=^-", *text))
			return false;
	return true;
}

void candidates_add(struct completion *c, const char *about, const char *fmt, ...)
{
	struct candidate one = {};
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&one.text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (strncmp(one.text, c->text, strlen(c->text)) != 0 || !is_plain(one.text) ||
	    !GROW(c->found, c->n)) {
		free(one.text);
		return;
	}
	one.about = about ? strdup(about) : NULL;
	if (one.about)
		make_printable(one.about, ' ');
	c->found[c->n++] = one;
}

/* Completes only the text behind the last of these characters. */
static void behind_last(struct completion *c, const char *separators)
{
	for (const char *p = c->text; *p; p++)
		if (strchr(separators, *p))
			c->text = p + 1;
}

static void add_words(struct completion *c, const char *words, const char *suffix)
{
	for (size_t n; *words; words += n + !!words[n]) {
		n = strcspn(words, " ");
		candidates_add(c, NULL, "%.*s%s", (int)n, words, suffix);
	}
}

/* ── Files ──────────────────────────────────────────────────────────────────────────────── */

/* The paths that fit a pattern, for globfree(3). */
static glob_t paths(const char *fmt, ...) _printf_(1, 2);
static glob_t paths(const char *fmt, ...)
{
	char pattern[PATH_MAX];
	glob_t g = {};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(pattern, sizeof(pattern), fmt, ap);
	va_end(ap);
	glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &g);
	return g;
}

/* The part of a path that has n others behind it. */
struct part {
	char s[256];
};

static struct part part_of(const char *path, int n)
{
	const char *end = path + strlen(path), *p = end;
	struct part part;

	for (;; n--) {
		while (p > path && p[-1] != '/')
			p--;
		if (n == 0 || p == path)
			break;
		end = --p;
	}
	snprintf(part.s, sizeof(part.s), "%.*s", (int)(end - p), p);
	return part;
}

/* The first line of a file; false: there is none. */
static bool first_line(const char *path, char *line, int size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");

	if (!f || !fgets(line, size, f))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static void find_tasks(struct completion *c)
{
	_cleanup_(globfree) glob_t g = paths("/proc/[0-9]*/comm");
	char comm[64];

	behind_last(c, c->kind == COMPLETE_PIDS ? "," : "");
	for (size_t i = 0; i < g.gl_pathc; i++) {
		if (!first_line(g.gl_pathv[i], comm, sizeof(comm)))
			continue;
		if (c->kind == COMPLETE_PIDS)
			candidates_add(c, comm, "%s", part_of(g.gl_pathv[i], 1).s);
		else
			candidates_add(c, NULL, "%s", comm);
	}
}

static void find_instances(struct completion *c)
{
	_cleanup_(globfree) glob_t g = paths("{/run,/etc}/perfpersist-*");

	for (size_t i = 0; i < g.gl_pathc; i++)
		candidates_add(c, NULL, "%s", strchr(part_of(g.gl_pathv[i], 0).s, '-') + 1);
}

static void find_cpus(struct completion *c)
{
	const char *begin = c->text;
	char all[1024];

	behind_last(c, ",-");
	if (!first_line("/sys/devices/system/cpu/online", all, sizeof(all)))
		return;
	if (c->text == begin)
		candidates_add(c, NULL, "%s", all);
	for (char *p = all; *p >= '0' && *p <= '9'; p += *p == ',') {
		unsigned long first = strtoul(p, &p, 10), last = first;

		if (*p == '-')
			last = strtoul(p + 1, &p, 10);
		for (; first <= last; first++)
			candidates_add(c, NULL, "%lu", first);
	}
}

static void find_cgroups(struct completion *c)
{
	const char *root = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0
				   ? "/sys/fs/cgroup"
				   : "/sys/fs/cgroup/unified";
	_cleanup_(globfree) glob_t g = paths("%s%s*/", root, *c->text ? c->text : "/");

	for (size_t i = 0; i < g.gl_pathc; i++)
		candidates_add(c, NULL, "%s", g.gl_pathv[i] + strlen(root));
}

static void find_saves(struct completion *c)
{
	_cleanup_free_ struct perfpersist_saved *saves = NULL;
	size_t n = 0;

	c->how = "directory";
	candidates_add(c, NULL, "previous-boot");
	if (perfpersist_saves(c->call.connect.instance, &saves, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		candidates_add(c, NULL, "%s", saves[i].name);
}

/* ── Our events ─────────────────────────────────────────────────────────────────────────── */

/* Whether only names of events complete it: for NAMES a namespace does, too. */
static bool is_name(enum completes kind)
{
	return kind == COMPLETE_NAME || kind == COMPLETE_TRIGGER;
}

/* A namespace (name empty), or an event in it. */
static void add_event(struct completion *c, const char *ns, const char *name)
{
	if (c->kind == COMPLETE_NAMESPACE)
		candidates_add(c, NULL, "%s", ns);
	else if (!is_name(c->kind) && !strchr(c->text, '/'))
		candidates_add(c, NULL, "%s/", ns);
	if (!name_is_valid(name) || (!is_name(c->kind) && c->kind != COMPLETE_NAMES))
		return;
	candidates_add(c, NULL, "%s/%s", ns, name);
	/* An event of `default` needs no namespace; offer it so once text is typed. */
	if (*c->text && !strchr(c->text, '/') && !strcmp(ns, "default"))
		candidates_add(c, NULL, "%s", name);
}

/* Asks the daemon, or reads a save, through the library. */
static void ask(struct completion *c)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;

	alarm(DAEMON_SECONDS);
	c->call.connect.sz = sizeof(c->call.connect);
	if (perfpersist_connect(&c->call.connect, &p) < 0 ||
	    perfpersist_list(p, NULL, &infos, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (c->kind == COMPLETE_ID)
			candidates_add(c, NULL, "%" PRIu64, infos[i].id);
		else if (c->kind != COMPLETE_TRIGGER || infos[i].flags & PERFPERSIST_TRIGGER)
			add_event(c, infos[i].ns, infos[i].name);
}

static void find_ids(struct completion *c, const char *place)
{
	_cleanup_(globfree) glob_t g = paths("%s/by-id/*/name-*", place);
	_cleanup_(globfree) glob_t unreadable = paths("%s/by-id", place);

	for (size_t i = 0; i < g.gl_pathc; i++)
		candidates_add(c, NULL, "%s", part_of(g.gl_pathv[i], 0).s + strlen("name-"));
	if (unreadable.gl_pathc && access(unreadable.gl_pathv[0], R_OK) < 0)
		ask(c);
}

static void find_names(struct completion *c, const char *place)
{
	_cleanup_(globfree) glob_t g = paths("%s/[a-zA-Z_]*/", place);
	bool all_readable = true, is_trigger = c->kind == COMPLETE_TRIGGER;

	for (size_t i = 0; i < g.gl_pathc; i++) {
		_cleanup_(globfree) glob_t events =
			paths("%s[a-zA-Z_]*%s", g.gl_pathv[i], is_trigger ? "/trigger" : "");
		struct part ns = part_of(g.gl_pathv[i], 1);

		if (!strcmp(ns.s, "by-id"))
			continue;
		add_event(c, ns.s, "");
		for (size_t k = 0; k < events.gl_pathc; k++)
			add_event(c, ns.s, part_of(events.gl_pathv[k], is_trigger).s);
		/* The owner of a namespace who is not in its group cannot list its folder. */
		all_readable = all_readable && access(g.gl_pathv[i], R_OK) == 0;
	}
	if (!all_readable)
		ask(c);
}

static void find_events(struct completion *c)
{
	const struct perfpersist_options *o = &c->call.connect;
	char place[128];

	if (o->saved || o->socket)
		return ask(c);
	snprintf(place, sizeof(place), "/run/perfpersist%s%s/registry", o->instance ? "-" : "",
		 o->instance ?: "");
	if (c->kind == COMPLETE_ID)
		find_ids(c, o->registry ?: place);
	else
		find_names(c, o->registry ?: place);
}

/* ── perf's events ──────────────────────────────────────────────────────────────────────── */

/* Whether an event ends after these n bytes, at a comma: a comma in a PMU's terms or a probe's
 * arguments does not end it. */
static bool is_whole(const char *text, size_t n)
{
	const char *paren = memchr(text, '(', n), *slash = memchr(text, '/', n);

	if (paren)
		return memchr(paren, ')', n - (size_t)(paren - text));
	return !slash || memchr(text, ':', n) ||
	       memchr(slash + 1, '/', n - (size_t)(slash + 1 - text));
}

static void find_functions(struct completion *c)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	_cleanup_free_ char *line = NULL;
	char type, name[256];
	size_t size = 0;

	c->text = strchr(c->text, ':') + 1;
	if (!*c->text || !c->text[1])
		return; /* too many */
	while (f && getline(&line, &size, f) > 0)
		if (sscanf(line, "%*s %c %255s", &type, name) == 2 && (type == 't' || type == 'T'))
			candidates_add(c, NULL, "%s", name);
}

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Up to its system, PMU or kind; those of what the text names, if it names one. */
static void find_recordables(struct completion *c)
{
	const char *text = c->text;
	size_t n = strcspn(text, ":/");
	struct recordables r = {};

	n = text[n] ? n + 1 : 0;
	c->text += n;
	if (recordables_find(NULL, &r) < 0)
		return;
	for (size_t i = 0; i < r.n; i++) {
		const char *name = r.all[i].name, *end = name + strcspn(name, ":/");
		bool is_form = r.all[i].kind == RECORDABLE_FORM;

		if (n && !is_form && begins(name, text))
			candidates_add(c, NULL, "%s", name + n);
		else if (!n && (!is_form || (*end && islower((unsigned char)*name))))
			candidates_add(c, NULL, "%.*s", (int)(end + !!*end - name), name);
	}
	recordables_done(&r);
}

static void find_perf_events(struct completion *c)
{
	for (const char *p = c->text; (p = strchr(p, ',')); p++)
		if (is_whole(c->text, (size_t)(p - c->text)))
			c->text = p + 1;
	if (begins(c->text, "uprobe:") || begins(c->text, "uretprobe:") ||
	    begins(c->text, "usdt:")) {
		c->text = strchr(c->text, ':') + 1;
		c->how = "file:";
	} else if (begins(c->text, "kprobe:") || begins(c->text, "kretprobe:")) {
		find_functions(c);
	} else {
		find_recordables(c);
	}
}

/* ── Presets ────────────────────────────────────────────────────────────────────────────── */

/* Where systemd has put them: directly in a slice. */
static void find_units(struct completion *c)
{
	_cleanup_(globfree) glob_t g = paths(
		"/sys/fs/cgroup{,/unified}/{,*.slice/,*.slice/*.slice/}*.{service,scope,slice}/");

	for (size_t i = 0; i < g.gl_pathc; i++)
		candidates_add(c, NULL, "%s", part_of(g.gl_pathv[i], 1).s);
}

static void find_presets(struct completion *c)
{
	struct presets p = {};

	if (c->operands)
		return find_units(c);
	if (presets_find(c->presets ?: PRESETS_DIRECTORY, &p) < 0)
		return;
	for (size_t i = 0; i < p.n; i++)
		candidates_add(c, p.all[i].summary, "%s", p.all[i].name);
	presets_done(&p);
}

/* ── By kind ────────────────────────────────────────────────────────────────────────────── */

static void find_files(struct completion *c)
{
	c->how = c->kind == COMPLETE_FILE ? "file" : "directory";
}

static void find_verbs(struct completion *c)
{
	for (const struct verb *const *v = verbs; *v; v++)
		candidates_add(c, (*v)->summary, "%s", (*v)->name);
}

static void find_parts(struct completion *c)
{
	for (const struct verb *const *v = c->call.verb->parts; *v; v++)
		candidates_add(c, (*v)->summary, "%s", part_name(*v));
}

/* Their directory is readable to few. */
static glob_t snapshots(const struct completion *c)
{
	return paths("/var/lib/perfpersist%s%s/snapshots/*.data",
		     c->call.connect.instance ? "-" : "", c->call.connect.instance ?: "");
}

static void find_crashed(struct completion *c)
{
	_cleanup_(globfree) glob_t g = snapshots(c);

	candidates_add(c, NULL, "latest");
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct spooled f;

		if (spool_parse(part_of(g.gl_pathv[i], 0).s, &f) >= 0 && f.pid)
			candidates_add(c, f.comm, "%u", f.pid);
	}
}

static void find_snapshots(struct completion *c)
{
	_cleanup_(globfree) glob_t g = snapshots(c);

	candidates_add(c, NULL, "latest");
	for (size_t i = 0; i < g.gl_pathc; i++)
		candidates_add(c, NULL, "%s", part_of(g.gl_pathv[i], 0).s);
}

static void find_words(struct completion *c)
{
	behind_last(c, ",+-");
	add_words(c, c->option->words, "");
}

void candidates_find(struct completion *c)
{
	static void (*const find[])(struct completion *) = {
		[COMPLETE_WORDS] = find_words,	     [COMPLETE_FILE] = find_files,
		[COMPLETE_DIRECTORY] = find_files,   [COMPLETE_VERB] = find_verbs,
		[COMPLETE_PART] = find_parts,	     [COMPLETE_SNAPSHOT] = find_snapshots,
		[COMPLETE_NAME] = find_events,	     [COMPLETE_TRIGGER] = find_events,
		[COMPLETE_NAMESPACE] = find_events,  [COMPLETE_NAMES] = find_events,
		[COMPLETE_NEW_NAME] = find_events,   [COMPLETE_ID] = find_events,
		[COMPLETE_EVENT] = find_perf_events, [COMPLETE_CPUS] = find_cpus,
		[COMPLETE_CGROUP] = find_cgroups,    [COMPLETE_INSTANCE] = find_instances,
		[COMPLETE_SAVE] = find_saves,	     [COMPLETE_PIDS] = find_tasks,
		[COMPLETE_TASK] = find_tasks,	     [COMPLETE_CRASHED] = find_crashed,
		[COMPLETE_PRESET] = find_presets,
	};

	if (find[c->kind])
		find[c->kind](c);
}
