// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl preset enable and disable: make or remove a link in events.d, let the daemon read it, and say
 * what records. A link that the daemon refuses is taken back.
 */
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/preset.h"
#include "client/perfctl/print/info.h"

struct found {
	struct preset_event want;
	struct perfpersist_info info; /* id 0: there is no such event of the configuration */
};

struct turning {
	const struct call *call;
	struct chosen c;
	struct perfpersist *p;
	struct perfpersist_reload_result result;
	struct found *all;
	size_t n, n_found;
	bool made;	  /* the link */
	unsigned folders; /* that were made for it, from the last one on */
	bool was_read;	  /* by the daemon, at a reload, or it may have been */
};

static void turning_done(struct turning *t)
{
	preset_chosen_done(&t->c);
	perfpersist_free(t->p);
	free(t->all);
}

/* ── what records ───────────────────────────────────────────────────────────────────────── */

static int find_wanted(struct turning *t)
{
	_cleanup_free_ struct preset_event *events = NULL;
	size_t n;

	if (preset_events(t->c.preset, t->c.unit, &events, &n) < 0)
		return call_failed_as(-ENOMEM, "cannot read the preset: out of memory");
	t->all = n ? calloc(n, sizeof(*t->all)) : NULL;
	if (!t->all)
		return call_failed_as(-EBADMSG,
				      "%s has no section of an event that perfctl can read",
				      t->c.preset->path);
	for (size_t i = 0; i < n; i++)
		t->all[i].want = events[i];
	t->n = n;
	return EXIT_OK;
}

/* Which of them there are. An event that somebody created by hand is not the preset's. */
static int find_events(struct turning *t)
{
	t->n_found = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct found *f = &t->all[i];
		int r;

		f->info = (struct perfpersist_info){ .sz = sizeof(f->info) };
		r = perfpersist_show(t->p, f->want.ns, f->want.name, &f->info);
		if (r < 0 && r != -ENOENT)
			return call_failed(t->p, r);
		if (r < 0 || !(f->info.flags & PERFPERSIST_CONFIGURED))
			f->info.id = 0;
		t->n_found += f->info.id != 0;
	}
	return EXIT_OK;
}

static int reload(struct turning *t)
{
	int r;

	t->result = (struct perfpersist_reload_result){ .sz = sizeof(t->result) };
	r = perfpersist_reload(t->p, &t->result);
	t->was_read = r >= 0 || r == -ECONNRESET; /* the answer is lost */
	return r < 0 ? call_failed(t->p, r) : find_events(t);
}

/* ── output ─────────────────────────────────────────────────────────────────────────────── */

static const char *why_missing(const struct found *f)
{
	return f->want.is_optional ? "this machine has no such event, or another file turns it off"
				   : "another file of events.d turns it off";
}

static void print_event(const struct found *f)
{
	printf("%s/%s ", f->want.ns, f->want.name);
	if (f->info.id)
		printf("%s on CPUs %s, %s each\n",
		       f->info.state == PERFPERSIST_PAUSED ? "is paused" : "records", f->info.cpus,
		       format_size(f->info.buffer).s);
	else
		printf("does not record: %s\n", why_missing(f));
}

static void report_json(const struct turning *t, bool enabled, bool changed)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	json_string(&j, "name", t->c.name);
	if (*t->c.unit)
		json_string(&j, "unit", t->c.unit);
	else
		json_null(&j, "unit");
	json_bool(&j, "enabled", enabled);
	json_bool(&j, "changed", changed);
	json_string(&j, "link", t->c.link);
	json_begin(&j, "events", '[');
	for (size_t i = 0; i < t->n; i++) {
		const struct found *f = &t->all[i];

		json_begin(&j, NULL, '{');
		json_string(&j, "namespace", f->want.ns);
		json_string(&j, "name", f->want.name);
		json_bool(&j, "records", f->info.id && f->info.state != PERFPERSIST_PAUSED);
		if (enabled && !f->info.id)
			json_string(&j, "why", why_missing(f));
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_end(&j, '}');
	putchar('\n');
}

static void report_enabled(const struct turning *t)
{
	if (t->call->json) {
		report_json(t, true, t->made);
		return;
	}
	preset_print_name(stdout, &t->c);
	printf(" is enabled%s: %s\n", t->made ? "" : " already", t->c.link);
	for (size_t i = 0; i < t->n; i++)
		print_event(&t->all[i]);
}

/* Whether the daemon's first complaint is of this link. */
static bool is_ours(const struct turning *t)
{
	size_t n = strlen(t->c.link);

	return !strncmp(t->result.message, t->c.link, n) && t->result.message[n] == ':';
}

static void tell_others(const struct turning *t)
{
	if (t->result.failed && !is_ours(t))
		complain("the daemon has also read what it could not apply: %s",
			 t->result.message[0] ? t->result.message : "see its log");
}

/* ── the link ───────────────────────────────────────────────────────────────────────────── */

/* Makes events.d, and the folder of an instance's configuration. */
static int make_folders(struct turning *t)
{
	char path[PATH_MAX], *slash;

	strcpy(path, t->c.links);
	if (mkdir(path, 0755) == 0) {
		t->folders = 1;
		return 0;
	}
	slash = strrchr(path, '/');
	if (errno != ENOENT || !slash || slash == path)
		return errno == EEXIST ? 0 : -errno;
	*slash = '\0';
	if (mkdir(path, 0755) < 0)
		return -errno;
	t->folders = 1;
	*slash = '/';
	if (mkdir(path, 0755) < 0)
		return -errno;
	t->folders = 2;
	return 0;
}

static void remove_folders(struct turning *t)
{
	char path[PATH_MAX];

	strcpy(path, t->c.links);
	for (; t->folders > 0; t->folders--) {
		rmdir(path);
		*strrchr(path, '/') = '\0';
	}
}

static int hidden(const struct turning *t)
{
	complain(
		"%s is not the preset's link but a file of yours, and it is left alone; move it away, or "
		"change events by it",
		t->c.link);
	return EXIT_NAME_TAKEN;
}

/* A change of events.d failed. */
static int cannot(const struct turning *t, const char *what, int error)
{
	bool denied = error == -EACCES || error == -EPERM;

	return call_failed_as(error == -EEXIST ? -EIO : error, "cannot %s %s: %s%s", what,
			      t->c.link, strerror(-error), denied ? "; only root may" : "");
}

/* The directory as it is, and the file by its name: an upgrade may make a link of it. */
static int find_target(const struct turning *t, char ret[PATH_MAX])
{
	char directory[PATH_MAX];
	int n;

	if (!realpath(t->c.presets.directory, directory))
		return -errno;
	n = snprintf(ret, PATH_MAX, "%s%s", directory, strrchr(t->c.preset->path, '/'));
	return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int make_link(struct turning *t)
{
	char target[PATH_MAX];
	int r;

	switch (preset_look(t->c.link, t->c.preset->path)) {
	case PRESET_ENABLED:
		return EXIT_OK;
	case PRESET_HIDDEN:
		return hidden(t);
	default:
		break;
	}
	r = find_target(t, target);
	if (r >= 0)
		r = make_folders(t);
	if (r >= 0 && symlink(target, t->c.link) < 0)
		r = -errno;
	if (r >= 0) {
		t->made = true;
		return EXIT_OK;
	}
	remove_folders(t);
	return cannot(t, "make", r);
}

/* Only what this call has made. */
static int take_back(struct turning *t, int code)
{
	struct perfpersist_reload_result ignored = { .sz = sizeof(ignored) };

	if (!t->made)
		return code;
	if (unlink(t->c.link) < 0)
		complain("%s stays: %s", t->c.link, strerror(errno));
	remove_folders(t);
	if (t->was_read && perfpersist_reload(t->p, &ignored) < 0)
		complain("events of the preset may still record: %s", perfpersist_error(t->p));
	return code;
}

/* ── enable ─────────────────────────────────────────────────────────────────────────────── */

/* Some event that the machine must have is missing, and the daemon had something to complain of. */
static bool is_refused(const struct turning *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->all[i].info.id && !t->all[i].want.is_optional &&
		    (t->result.failed || t->n_found == 0))
			return true;
	return is_ours(t);
}

static int refused(const struct turning *t)
{
	if (t->result.failed)
		complain("%s is %s: %s", t->c.name,
			 t->made ? "not enabled" : "enabled, but not all of it records",
			 is_ours(t) ? t->result.message : "the daemon's log says why");
	else
		complain(
			"%s is not enabled, because the daemon does not read %s: of one that was started "
			"with --config FILE, -D must name FILE.d",
			t->c.name, t->c.links);
	return EXIT_FAILED;
}

/* A unit that was started anew has another cgroup: the filter is made again, and finds that one. */
static int renew(struct turning *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct perfpersist_info *info = &t->all[i].info;
		struct perfpersist_change_options o = {
			.sz = sizeof(o),
			.what = PERFPERSIST_CHANGE_FILTER,
			.filter = info->filter,
		};
		int r;

		if (!info->id || !*info->filter)
			continue;
		r = perfpersist_change(t->p, info->ns, info->name, &o, NULL);
		if (r < 0)
			return call_failed(t->p, r);
	}
	return EXIT_OK;
}

static int check_unit(const struct call *call, const struct chosen *c)
{
	if (!c->preset)
		return preset_unknown(c);
	if (c->preset->is_template && !*c->unit)
		return bad_usage(
			call,
			"preset %s is for one unit; name it, as in `perfctl %s %s nginx.service`",
			c->name, call->verb->name, c->name);
	return EXIT_OK;
}

static bool have_one_name(const char *unit, const char *other)
{
	char one[2 * PP_INSTANCE_SIZE], two[2 * PP_INSTANCE_SIZE];

	return strcmp(unit, other) != 0 && pp_expand("%i", unit, true, one, sizeof(one)) >= 0 &&
	       pp_expand("%i", other, true, two, sizeof(two)) >= 0 && !strcmp(one, two);
}

/* In names of events . and _ are the same: one of two such units would silently be left out. */
static int check_names(const struct turning *t)
{
	char **units;
	int code = EXIT_OK;
	size_t n;

	if (preset_units(t->c.links, t->c.preset, &units, &n) < 0)
		return call_failed_as(-ENOMEM, "cannot read the links: out of memory");
	for (size_t i = 0; i < n && !code; i++)
		if (have_one_name(t->c.unit, units[i])) {
			complain(
				"the events of %s have the names of those of %s, which is enabled; "
				"disable that first",
				t->c.unit, units[i]);
			code = EXIT_NAME_TAKEN;
		}
	preset_units_free(units, n);
	return code;
}

static int enable(struct turning *t)
{
	int r = find_wanted(t);

	r = r ?: check_names(t);
	if (r)
		return r;
	r = make_link(t);
	if (r)
		return r;
	r = reload(t);
	if (!r && is_refused(t))
		r = refused(t);
	if (!r && !t->made && *t->c.unit)
		r = renew(t);
	if (r)
		return take_back(t, r);
	report_enabled(t);
	tell_others(t);
	return EXIT_OK;
}

/* Turns a preset on or off. known: it must be shipped still. */
static int run_turn(struct call *call, bool known, int (*turn)(struct turning *))
{
	_cleanup_(turning_done) struct turning t = { .call = call };
	struct preset_options o = {};
	int r;

	if (!options_read(call, &o))
		return call->code;
	r = preset_choose(call, &o, &t.c);
	if (!r && (known || t.c.preset))
		r = check_unit(call, &t.c);
	r = r ?: call_connect(call, &t.p);
	return r ?: turn(&t);
}

static int run_enable(struct call *call)
{
	return run_turn(call, true, enable);
}

const struct verb verb_enable_preset = {
	.name = "preset enable",
	.synopsis = "NAME [UNIT]",
	.summary = "record a preset's events from now on, and from every boot on",
	.run = run_enable,
	.options = { { .rows = preset_options } },
	.operands = COMPLETE_PRESET,
	.help = "Makes a link to the preset's file in events.d, lets the daemon read it, and says which of\n"
		"its events record. The link follows the file: an upgrade that changes a preset changes\n"
		"what is recorded, at its restart of the daemon. If the daemon refuses, nothing is left.\n"
		"\n"
		"For a unit that was started anew, enable it again: its control group is another one.\n"
		"\n"
		"Examples:\n"
		"  perfctl preset enable flight\n"
		"  perfctl preset enable syscalls nginx.service\n",
};

/* ── disable ────────────────────────────────────────────────────────────────────────────── */

/* The link of a preset that is shipped no more is still known by where it leads. */
static enum preset_state look(const struct turning *t)
{
	char target[PATH_MAX];
	int n;

	if (t->c.preset)
		return preset_look(t->c.link, t->c.preset->path);
	n = snprintf(target, sizeof(target), "%s/%s%s.conf", t->c.presets.directory, t->c.name,
		     *t->c.unit ? "@" : "");
	return n >= (int)sizeof(target) ? PRESET_OFF : preset_look(t->c.link, target);
}

static void report_disabled(const struct turning *t, bool changed)
{
	size_t left = 0;

	if (t->call->json) {
		report_json(t, false, changed);
		return;
	}
	preset_print_name(stdout, &t->c);
	printf(" is off%s\n", changed ? "" : " already");
	for (size_t i = 0; i < t->n; i++)
		if (t->all[i].info.id && ++left)
			printf("%s/%s still records: another file of events.d configures it\n",
			       t->all[i].want.ns, t->all[i].want.name);
}

/* The link goes first: the daemon must not read it. It returns if the daemon cannot be asked. */
static int remove_link(struct turning *t)
{
	char target[PATH_MAX];
	ssize_t n = readlink(t->c.link, target, sizeof(target) - 1);
	int r;

	if (n < 0 || unlink(t->c.link) < 0)
		return cannot(t, "remove", -errno);
	target[n] = '\0';
	r = reload(t);
	if (r && symlink(target, t->c.link) < 0)
		complain("%s is gone: %s", t->c.link, strerror(errno));
	return r;
}

static int disable(struct turning *t)
{
	enum preset_state state = look(t);
	int r = t->c.preset ? find_wanted(t) : EXIT_OK;

	if (r)
		return r;
	if (state == PRESET_HIDDEN)
		return hidden(t);
	if (state == PRESET_OFF && !t->c.preset)
		return preset_unknown(&t->c);
	r = state == PRESET_ENABLED ? remove_link(t) : find_events(t);
	if (r)
		return r;
	report_disabled(t, state == PRESET_ENABLED);
	if (state == PRESET_ENABLED)
		tell_others(t);
	return EXIT_OK;
}

static int run_disable(struct call *call)
{
	return run_turn(call, false, disable);
}

const struct verb verb_disable_preset = {
	.name = "preset disable",
	.synopsis = "NAME [UNIT]",
	.summary = "end a preset's events, now and at every boot",
	.run = run_disable,
	.options = { { .rows = preset_options } },
	.operands = COMPLETE_PRESET,
	.help = "Removes the link from events.d, and lets the daemon end what is no longer configured.\n"
		"Processes that have an event open keep its records. A file of yours is never removed.\n"
		"\n"
		"Examples:\n"
		"  perfctl preset disable flight\n",
};
