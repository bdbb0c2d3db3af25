// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/find.h"

#include <fnmatch.h>
#include <string.h>

#include "client/perfctl/events/suggest.h"
#include "proto/nearest.h"

struct found {
	struct perfpersist_info *all;
	size_t n_all;
	size_t *chosen; /* indices into all, each once */
	bool *is_chosen;
	size_t n;
};

static void found_done(struct found *f)
{
	free(f->all);
	free(f->chosen);
	free(f->is_chosen);
}

static bool can_match(const char *part)
{
	return strpbrk(part, "*?[") || name_is_valid(part);
}

/* Splits a name into the two patterns to match. */
static int split(struct call *call, const char *text, struct event_name *ret)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
	size_t n = slash ? (size_t)(slash - text) : 0;

	*ret = (struct event_name){ .ns = "default" };
	if (*text && !strchr(name, '/') && n < sizeof(ret->ns) &&
	    strlen(name) < sizeof(ret->name)) {
		if (slash)
			snprintf(ret->ns, sizeof(ret->ns), "%.*s", (int)n, text);
		strcpy(ret->name, *name ? name : "*");
		if (can_match(ret->ns) && can_match(ret->name))
			return EXIT_OK;
	}
	return bad_usage(call,
			 "%s: not a valid event name: write NAME, NAMESPACE/NAME, NAMESPACE/ for "
			 "all of it, or a glob of these",
			 text);
}

static bool choose(struct found *f, const struct event_name *name)
{
	bool any = false;

	for (size_t i = 0; i < f->n_all; i++) {
		const struct perfpersist_info *info = &f->all[i];

		if (fnmatch(name->ns, info->ns, 0) != 0 || fnmatch(name->name, info->name, 0) != 0)
			continue;
		any = true;
		if (!f->is_chosen[i])
			f->chosen[f->n++] = i;
		f->is_chosen[i] = true;
	}
	return any;
}

/* Nothing fits. For a plain name the daemon says whether it does not exist or is not readable. */
static int not_found(struct perfpersist *p, const struct found *f, const char *text,
		     const struct event_name *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct pp_nearest spaces;

	if (name_is_valid(name->ns) && name_is_valid(name->name)) {
		int r = perfpersist_show(p, name->ns, name->name, &info);

		if (r < 0)
			return suggest_name(p, r, name->ns, name->name);
	}
	pp_nearest_begin(&spaces, name->ns, strlen(name->ns));
	for (size_t i = 0; i < f->n_all; i++)
		pp_nearest_consider(&spaces, f->all[i].ns);
	if (spaces.best && strcmp(spaces.best, name->ns) != 0)
		complain("no event that you may read fits %s; did you mean '%s/'?", text,
			 spaces.best);
	else
		complain("no event that you may read fits %s; `perfctl list` shows the events",
			 text);
	return EXIT_NOT_FOUND;
}

static int choose_all(struct call *call, struct perfpersist *p, char **names, size_t n,
		      struct found *f)
{
	for (size_t i = 0; i < n; i++) {
		struct event_name name;
		int r = split(call, names[i], &name);

		if (r)
			return r;
		if (!choose(f, &name))
			return not_found(p, f, names[i], &name);
	}
	if (n || choose(f, &(struct event_name){ .ns = "*", .name = "*" }))
		return EXIT_OK;
	complain("there are no events that you may read; `perfctl create` creates one");
	return EXIT_NOT_FOUND;
}

/* Asks for plain names one by one: a list of thousands takes longer than their snapshot. */
static int show_each(struct call *call, struct perfpersist *p, char **names, size_t n,
		     struct perfpersist_info *infos, size_t *ret_n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		struct perfpersist_info info = { .sz = sizeof(info) };
		struct event_name name;
		bool twice = false;
		int r = split(call, names[i], &name);

		if (r)
			return r;
		r = perfpersist_show(p, name.ns, name.name, &info);
		if (r < 0)
			return suggest_name(p, r, name.ns, name.name);
		for (size_t j = 0; j < found; j++)
			twice |= infos[j].id == info.id;
		if (!twice)
			infos[found++] = info;
	}
	*ret_n = found;
	return EXIT_OK;
}

static bool are_plain(char **names, size_t n)
{
	struct event_name name;

	for (size_t i = 0; i < n; i++)
		if (parse_event_name(names[i], NULL, &name) < 0)
			return false;
	return n > 0;
}

int find_events(struct call *call, struct perfpersist *p, char **names, size_t n,
		struct perfpersist_info **ret_infos, size_t *ret_n)
{
	_cleanup_(found_done) struct found f = {};
	struct perfpersist_info *infos;
	int r;

	if (are_plain(names, n)) {
		infos = calloc(n, sizeof(*infos));
		r = infos ? show_each(call, p, names, n, infos, ret_n) : EXIT_FAILED;
		if (r)
			free(infos);
		else
			*ret_infos = infos;
		return r;
	}
	r = perfpersist_list(p, NULL, &f.all, &f.n_all);
	if (r < 0)
		return call_failed(p, r);
	f.chosen = calloc(f.n_all + 1, sizeof(*f.chosen));
	f.is_chosen = calloc(f.n_all + 1, sizeof(*f.is_chosen));
	infos = calloc(f.n_all + 1, sizeof(*infos));
	r = f.chosen && f.is_chosen && infos ? choose_all(call, p, names, n, &f) : EXIT_FAILED;
	if (r) {
		free(infos);
		return r;
	}
	for (size_t i = 0; i < f.n; i++)
		infos[i] = f.all[f.chosen[i]];
	*ret_infos = infos;
	*ret_n = f.n;
	return EXIT_OK;
}
