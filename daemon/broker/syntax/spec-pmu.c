// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PMUs in event text: PMU/TERM[=VALUE],…/[MODIFIERS]. Owns which PMUs a name stands for and their
 * folders in sysfs; spec-terms.c has their terms. Must not know which events a PMU counts.
 *
 * As in perf, `imc` stands for all of uncore_imc_0, uncore_imc_1…; a name can stand without its PMU
 * (`tsc` for msr/tsc/); terms may follow a counter's name (cycles//u).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "daemon/broker/syntax/spec-pmu.h"
#include "proto/symbol.h"
#include "daemon/filter.h"
#include "daemon/text.h"

#define PMUS_MAX 64 /* for one name */

bool pmu_is_word(const char *s)
{
	return *s && *s != '.' && strlen(s) < PP_TP_NAME_SIZE &&
	       spec_consists_of(s, SPEC_LETTERS SPEC_DIGITS "-.");
}

int pmu_read(int dir, const char *folder, const char *name, char *buf, size_t size)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s%s", folder, name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return 0;
}

bool pmu_exists(int dir, const char *folder, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", folder, name);
	return faccessat(dir, path, F_OK, 0) == 0;
}

/* ── Names of what there is ─────────────────────────────────────────────────────────────── */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

/* PMUs without a numeric config, or with an event text of their own. */
static const struct {
	const char *pmu, *instead;
} others[] = {
	{ "tracepoint", "SYSTEM:NAME" },
	{ "breakpoint", "mem:ADDRESS[/LENGTH][:ACCESS]" },
	{ "kprobe", "kprobe:FUNCTION" },
	{ "uprobe", "uprobe:PATH:FUNCTION" },
};

static int is_listed(const struct dirent *d)
{
	static const char *const suffixes[] = { ".scale", ".unit", ".snapshot", ".per-pkg" };

	if (d->d_name[0] == '.')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(d->d_name, others[i].pmu))
			return 0;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		const char *s = strstr(d->d_name, suffixes[i]);

		if (s && !s[strlen(suffixes[i])])
			return 0;
	}
	return 1;
}

void pmu_list(int dir, const char *folder, char *buf, size_t size)
{
	struct dirent **names = NULL;
	bool whole = true;
	size_t len = 0;
	int n;

	n = scandirat(dir, folder, &names, is_listed, compare_names);
	snprintf(buf, size, "none");
	for (int i = 0; i < n && whole; i++) {
		whole = len + strlen(names[i]->d_name) + strlen(", , ...") < size;
		len += snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
				whole ? names[i]->d_name : "...");
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* ── PMUs ───────────────────────────────────────────────────────────────────────────────── */

static int check_software(struct spec_parser *p, const struct pp_source *s)
{
	if (s->type != PERF_TYPE_SOFTWARE ||
	    (s->config <= PERF_COUNT_SW_CGROUP_SWITCHES && s->config != PERF_COUNT_SW_DUMMY &&
	     s->config != PERF_COUNT_SW_BPF_OUTPUT))
		return 0;
	return spec_refuse(
		p, -EOPNOTSUPP,
		"'%s' never counts anything, so there is nothing to record: use an event "
		"that happens, such as cpu-clock",
		p->quote);
}

static void cleanup_pmu(struct pmu *pmu)
{
	close_fd(pmu->fd);
}

static int take_aux(struct spec_parser *p, struct pmu *pmu, struct pp_source *s)
{
	char defaults[PP_EVENT_TEXT_SIZE];

	s->kind = PP_SOURCE_AUX;
	pmu->terms_replace = true;
	pmu_aux_defaults(pmu, defaults);
	return pmu_apply_terms(p, pmu, defaults, s);
}

/* Adds one PMU's event with that text. */
static int add_event(struct spec_parser *p, const char *name, const char *terms, const char *mods,
		     const char *text)
{
	_cleanup_(cleanup_pmu) struct pmu pmu = { .name = name, .fd = -EBADF };
	struct pp_source s = { .kind = PP_SOURCE_SAMPLING };
	char path[PATH_MAX], type[32];
	int r;

	snprintf(path, sizeof(path), "%s/%s", p->pmus, name);
	pmu.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (pmu.fd < 0 || pmu_read(pmu.fd, "", "type", type, sizeof(type)) < 0 ||
	    pp_parse_u32(type, &s.type) < 0)
		return spec_refuse(
			p, -ENOENT,
			"PMU '%s' of '%s' cannot be asked for its type (%s/type): it may "
			"have gone; see `ls %s`",
			name, p->quote, path, p->pmus);
	r = pmu_has_aux(name) ? take_aux(p, &pmu, &s) : 0;
	if (r == 0)
		r = pmu_apply_terms(p, &pmu, terms, &s);
	if (r == 0)
		r = check_software(p, &s);
	if (r == 0)
		r = spec_modify(p, mods, &s);
	if (r < 0)
		return r;
	s.any_cpu = pmu_exists(pmu.fd, "", "cpumask");
	/*
	 * Only processors' own PMUs (they have `cpus`, or the oldest types) support guest
	 * modifiers. The others refuse them, and perf drops its default for them.
	 */
	if (!*mods && s.type > PERF_TYPE_BREAKPOINT && !pmu_exists(pmu.fd, "", "cpus"))
		s.exclude = 0;
	return spec_add(p, &s, text);
}

/* perf's rule: `wanted` matches the PMU itself, or one of several of its kind. */
static bool is_meant(const char *wanted, const char *name)
{
	size_t n;

	if (pp_is_glob(wanted))
		return pp_glob_match(wanted, name);
	if (spec_starts_with(name, "uncore_") && !spec_starts_with(wanted, "uncore_"))
		name += strlen("uncore_");
	n = strlen(wanted);
	if (strncmp(name, wanted, n))
		return false;
	name += n;
	name += *name == '_';
	return spec_consists_of(name, SPEC_DIGITS);
}

/*
 * The PMUs that a name stands for, or that have an event of that name. Returns their number; the
 * caller frees names.
 */
static int find_pmus(struct spec_parser *p, const char *wanted, const char *event,
		     char *ret[PMUS_MAX])
{
	_cleanup_close_ int dir = open(p->pmus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	char path[PATH_MAX];
	int n, found = 0;

	n = scandirat(dir, ".", &names, is_listed, compare_names);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/events/", names[i]->d_name);
		if (found < PMUS_MAX && pmu_is_word(names[i]->d_name) &&
		    (event ? pmu_exists(dir, path, event) : is_meant(wanted, names[i]->d_name)))
			ret[found++] = strdup(names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return found;
}

/* Adds that event of all these PMUs; if there are several, each has its own text. */
static int add_all(struct spec_parser *p, char **names, int n, const char *terms, const char *mods)
{
	int r = 0;

	for (int i = 0; i < n; i++) {
		char text[PP_EVENT_TEXT_SIZE];

		if (r == 0 && !names[i])
			r = spec_refuse(p, -ENOMEM, "there is no memory left: try again");
		snprintf(text, sizeof(text), "%.127s/%.700s/%.30s", names[i] ? names[i] : "", terms,
			 mods);
		if (r == 0)
			r = add_event(p, names[i], terms, mods, n > 1 ? text : NULL);
		free(names[i]);
	}
	return r;
}

static int refuse_pmu(struct spec_parser *p, const char *name)
{
	_cleanup_close_ int dir = open(p->pmus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char known[300];

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i].pmu))
			return spec_refuse(p, -EOPNOTSUPP,
					   "'%s' gives a %s by terms, which is not recorded: write "
					   "%s",
					   p->quote, name, others[i].instead);
	pmu_list(dir, ".", known, sizeof(known));
	return spec_refuse(p, -ENOENT,
			   "'%s' needs PMU '%.60s', which this machine lacks: it has %s", p->quote,
			   name, known);
}

/* Parses NAME/TERMS/MODIFIERS where NAME is a counter; 1 if it is one. */
static int parse_counter(struct spec_parser *p, const char *name, const char *terms,
			 const char *mods)
{
	const struct pmu none = { .name = "", .fd = -EBADF };
	struct pp_source s;
	int r;

	r = spec_counter(p, name, &s);
	if (r <= 0)
		return r;
	r = pmu_apply_terms(p, &none, terms, &s);
	if (r == 0)
		r = check_software(p, &s);
	if (r == 0)
		r = spec_modify(p, mods, &s);
	if (r == 0)
		r = spec_add(p, &s, NULL);
	return r < 0 ? r : 1;
}

int spec_parse_pmu(struct spec_parser *p)
{
	char text[PP_EVENT_TEXT_SIZE], *mods = text, *name, *terms, *names[PMUS_MAX];
	int n, r;

	snprintf(text, sizeof(text), "%s", p->text);
	name = strsep(&mods, "/");
	terms = strsep(&mods, "/");
	if (!mods)
		return spec_refuse(p, -EINVAL,
				   "'%s' lacks the slash behind its terms: write PMU/TERM=VALUE/",
				   p->quote);
	mods += *mods == ':';
	if (!*name || !spec_consists_of(name, SPEC_LETTERS SPEC_DIGITS "-.*?[]"))
		return spec_refuse(p, -EINVAL,
				   "'%s' does not begin with the name of a PMU: write "
				   "PMU/TERM=VALUE/, as in cpu/event=0x3c/, or SYSTEM:NAME",
				   p->quote);
	n = find_pmus(p, name, NULL, names);
	if (n > 0)
		return add_all(p, names, n, terms, mods);
	r = parse_counter(p, name, terms, mods);
	return r == 0 ? refuse_pmu(p, name) : MIN(r, 0);
}

int spec_parse_pmu_event(struct spec_parser *p, const char *name, const char *mods)
{
	char *names[PMUS_MAX];
	int n, r;

	if (!pmu_is_word(name))
		return 0;
	n = find_pmus(p, NULL, name, names);
	if (n == 0)
		return 0;
	r = add_all(p, names, n, name, mods);
	return r < 0 ? r : 1;
}
