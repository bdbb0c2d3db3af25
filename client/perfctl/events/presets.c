// SPDX-License-Identifier: LGPL-2.1-or-later
/* See presets.h. */
#include "client/perfctl/events/presets.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/perfctl.h"
#include "proto/io.h"
#include "proto/places.h"
#include "proto/specifier.h"

#define FILE_MAX (1UL << 20) /* as the daemon's */
#define PRESETS_MAX 1024
#define BLANKS " \t\r"

int presets_links_place(const char *instance, char *buf, size_t size)
{
	char run[256];
	int n, r = pp_place(instance, "", run, sizeof(run));

	if (r < 0)
		return r;
	/* The instance's name follows the last slash of the run directory. */
	n = snprintf(buf, size, PP_SYSCONFDIR "%s/events.d", strrchr(run, '/'));
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

/* NULL: it cannot be read, or is no text. */
static char *read_text(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = malloc(FILE_MAX + 1);
	struct stat st;
	ssize_t n;

	if (fd < 0 || !text || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	n = pp_read_all(fd, text, FILE_MAX + 1);
	if (n < 0 || (size_t)n > FILE_MAX || memchr(text, '\0', (size_t)n))
		return NULL;
	text[n] = '\0';
	return TAKE_PTR(text);
}

/* What follows "# KEY: " in the file's first comment. NULL: no memory. */
static char *comment_value(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; *line == '#'; line += strcspn(line, "\n"), line += !!*line) {
		const char *word = line + 1 + strspn(line + 1, BLANKS);

		if (strncmp(word, key, n) != 0 || word[n] != ':')
			continue;
		word += n + 1 + strspn(word + n + 1, BLANKS);
		return strndup(word, strcspn(word, "\n"));
	}
	return strdup("");
}

static void preset_done(struct preset *p)
{
	free(p->name);
	free(p->path);
	free(p->text);
	free(p->summary);
	free(p->cost);
	free(p->history);
}

/* The length of the name in "NAME.conf" or "NAME@.conf"; 0: it is no preset's. */
static size_t name_length(const char *file)
{
	size_t n = strlen(file), suffix = strlen(".conf");

	if (n <= suffix || *file == '.' || strcmp(file + n - suffix, ".conf") != 0)
		return 0;
	n -= suffix;
	n -= file[n - 1] == '@';
	return memchr(file, '@', n) ? 0 : n;
}

/* 0; -ENOMEM. A file that cannot be read is left out. */
static int add(struct presets *all, const char *file, size_t length)
{
	struct preset p = { .is_template = file[length] == '@' };

	if (asprintf(&p.path, "%s/%s", all->directory, file) < 0)
		return -ENOMEM;
	p.text = read_text(p.path);
	if (!p.text) {
		preset_done(&p);
		return 0;
	}
	p.name = strndup(file, length);
	p.summary = comment_value(p.text, "Summary");
	p.cost = comment_value(p.text, "Cost");
	p.history = comment_value(p.text, "History");
	if (!p.name || !p.summary || !p.cost || !p.history || !GROW(all->all, all->n)) {
		preset_done(&p);
		return -ENOMEM;
	}
	all->all[all->n++] = p;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct preset *)a)->name, ((const struct preset *)b)->name);
}

int presets_find(const char *directory, struct presets *ret)
{
	_cleanup_closedir_ DIR *dir = opendir(directory);
	struct presets all = { .directory = directory };
	const struct dirent *d;
	int r = 0;

	if (!dir)
		return -errno;
	while (r >= 0 && all.n < PRESETS_MAX && (d = readdir(dir))) {
		size_t length = name_length(d->d_name);

		if (length)
			r = add(&all, d->d_name, length);
	}
	if (r < 0) {
		presets_done(&all);
		return r;
	}
	if (all.n)
		qsort(all.all, all.n, sizeof(*all.all), compare);
	*ret = all;
	return 0;
}

void presets_done(struct presets *p)
{
	for (size_t i = 0; i < p->n; i++)
		preset_done(&p->all[i]);
	free(p->all);
	*p = (struct presets){};
}

const struct preset *presets_by_name(const struct presets *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->all[i].name, name))
			return &p->all[i];
	return NULL;
}

/* ── what a preset's file makes ─────────────────────────────────────────────────────────── */

/* The names in a line "[event NAMESPACE/NAME]"; false: it is none. */
static bool parse_section(const char *line, const char *unit, struct preset_event *ret)
{
	char section[256], text[512];
	struct event_name name;
	int at = 0;

	line += strspn(line, BLANKS);
	if (*line != '[')
		return false;
	snprintf(section, sizeof(section), "%.*s", (int)strcspn(line + 1, "]\n"), line + 1);
	if (pp_expand(section, unit, true, text, sizeof(text)) < 0)
		return false;
	sscanf(text, " event %n", &at);
	ret->is_trigger = at == 0;
	if (at == 0)
		sscanf(text, " trigger %n", &at);
	text[strcspn(text + at, BLANKS) + (size_t)at] = '\0';
	if (at == 0 || !strchr(text + at, '/') || parse_event_name(text + at, NULL, &name) < 0)
		return false;
	memcpy(ret->ns, name.ns, sizeof(ret->ns));
	memcpy(ret->name, name.name, sizeof(ret->name));
	return true;
}

static bool is_optional_line(const char *line)
{
	int n = 0;

	sscanf(line, " Optional = yes%n", &n);
	return n > 0 && !isalnum((unsigned char)line[n]);
}

int preset_events(const struct preset *p, const char *unit, struct preset_event **ret,
		  size_t *ret_n)
{
	_cleanup_free_ struct preset_event *all = NULL;
	size_t n = 0;

	for (const char *line = p->text; *line; line += strcspn(line, "\n"), line += !!*line) {
		struct preset_event e = {};

		if (n && is_optional_line(line))
			all[n - 1].is_optional = true;
		if (!parse_section(line, unit, &e))
			continue;
		if (!GROW(all, n))
			return -ENOMEM;
		all[n++] = e;
	}
	*ret = TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

/* ── what is on ─────────────────────────────────────────────────────────────────────────── */

int preset_link(const char *links, const char *name, const char *unit, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/%s%s%s.conf", links, name, *unit ? "@" : "", unit);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

enum preset_state preset_look(const char *link, const char *target)
{
	struct stat st, file, shipped;
	char text[PATH_MAX];
	ssize_t n;

	if (lstat(link, &st) < 0)
		return PRESET_OFF;
	n = readlink(link, text, sizeof(text));
	if (n < 0)
		return PRESET_HIDDEN; /* no link */
	if ((size_t)n == strlen(target) && !memcmp(text, target, (size_t)n))
		return PRESET_ENABLED;
	/* Somebody has made it by hand, perhaps by another path. */
	return stat(link, &file) == 0 && stat(target, &shipped) == 0 &&
			       file.st_dev == shipped.st_dev && file.st_ino == shipped.st_ino
		       ? PRESET_ENABLED
		       : PRESET_HIDDEN;
}

static int compare_units(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void preset_units_free(char **units, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(units[i]);
	free(units);
}

/* Whether a file of events.d is the template's link for a unit; then the unit. */
static bool is_link_of(const char *links, const char *file, const struct preset *p,
		       char unit[PP_INSTANCE_SIZE])
{
	size_t n = strlen(p->name);
	char link[PATH_MAX];

	return !strncmp(file, p->name, n) && file[n] == '@' &&
	       pp_file_instance(file, unit, PP_INSTANCE_SIZE) &&
	       preset_link(links, p->name, unit, link) >= 0 &&
	       preset_look(link, p->path) == PRESET_ENABLED;
}

int preset_units(const char *links, const struct preset *p, char ***ret, size_t *ret_n)
{
	_cleanup_closedir_ DIR *dir = p->is_template ? opendir(links) : NULL;
	char **units = NULL, unit[PP_INSTANCE_SIZE];
	const struct dirent *d;
	size_t n = 0;

	while (dir && (d = readdir(dir))) {
		if (!is_link_of(links, d->d_name, p, unit))
			continue;
		if (!GROW(units, n) || !(units[n] = strdup(unit))) {
			preset_units_free(units, n);
			return -ENOMEM;
		}
		n++;
	}
	if (n)
		qsort(units, n, sizeof(*units), compare_units);
	*ret = units;
	*ret_n = n;
	return 0;
}
