// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/suggest.h"

#include <string.h>

#include "client/perfctl/events/recordable.h"
#include "proto/nearest.h"

/* Bytes of a message before its advice: "There is no event 'x' in …; `perfctl list` shows …". */
static int without_advice(const char *message)
{
	const char *semicolon = strstr(message, "; "), *colon = strstr(message, ": ");
	const char *end = semicolon && (!colon || semicolon < colon) ? semicolon : colon;

	return end ? (int)(end - message) : (int)strcspn(message, ".");
}

/* ── Names of our events ────────────────────────────────────────────────────────────────── */

/* "sched", or, if there is no such namespace, "web/sched". False: nothing is similar. */
static bool nearest_name(const struct perfpersist_info *infos, size_t n, const char *ns,
			 const char *name, char *buf, size_t size)
{
	struct pp_nearest names, spaces;
	bool is_space = false;

	pp_nearest_begin(&names, name, strlen(name));
	pp_nearest_begin(&spaces, ns, strlen(ns));
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(infos[i].ns, ns)) {
			is_space = true;
			pp_nearest_consider(&names, infos[i].name);
		}
		pp_nearest_consider(&spaces, infos[i].ns);
	}
	if (is_space)
		snprintf(buf, size, "%s", names.best ?: "");
	else if (spaces.best)
		snprintf(buf, size, "%s%s%s", spaces.best, *name ? "/" : "", name);
	else
		*buf = '\0';
	return *buf;
}

int suggest_name(struct perfpersist *p, int error, const char *ns, const char *name)
{
	_cleanup_free_ char *message = strdup(perfpersist_error(p));
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	char nearest[2 * sizeof(struct event_name)];
	size_t n = 0;

	if (message && error == -ENOENT && perfpersist_list(p, NULL, &infos, &n) >= 0 &&
	    nearest_name(infos, n, ns, name ?: "", nearest, sizeof(nearest)))
		return call_failed_as(error, "%.*s; did you mean '%s'?", without_advice(message),
				      message, nearest);
	return call_failed_as(error, "%s", message ?: "out of memory");
}

/* ── What can be recorded ───────────────────────────────────────────────────────────────── */

/* Whether it is a name as it stands: not a glob, a probe, a PMU's terms or a name with modifiers. */
static bool is_name(const char *text)
{
	const char *colon = strchr(text, ':');

	return !strpbrk(text, "*?[(=@") && !strstr(text, "probe:") &&
	       strncmp(text, "usdt:", 5) != 0 && strncmp(text, "mem:", 4) != 0 &&
	       !(colon && strchr(colon + 1, ':'));
}

/* The nearest of a name in this list that the message is about; NULL: none. */
static const char *nearest_of(const struct recordables *r, const char *list, const char *message)
{
	_cleanup_free_ char *copy = strdup(list);
	char *rest = copy, *word;
	const char *nearest = NULL;

	while (!nearest && (word = strsep(&rest, ",")))
		if (is_name(word) && strstr(message, word))
			nearest = recordables_nearest(r, word);
	return nearest;
}

/* Without one, nothing is looked up: that opens all counters. */
static bool is_about_a_name(const char *list, const char *message)
{
	_cleanup_free_ char *copy = strdup(list);
	char *rest = copy, *word;
	bool is = false;

	while (!is && (word = strsep(&rest, ",")))
		is = is_name(word) && strstr(message, word);
	return is;
}

int suggest_recordable(struct perfpersist *p, int error,
		       const struct perfpersist_selection *selections, size_t n)
{
	const char *message = perfpersist_error(p), *nearest = NULL;
	bool is_about_names = error == -ENOENT || error == -EINVAL || error == -EOPNOTSUPP;
	struct recordables r = {};
	bool is_named = false;
	int code;

	for (size_t i = 0; is_about_names && !is_named && i < n; i++)
		is_named = is_about_a_name(selections[i].event, message);
	if (!is_named || strstr(message, "did you mean") || recordables_find(NULL, &r) < 0)
		return call_failed(p, error);
	for (size_t i = 0; !nearest && i < n; i++)
		nearest = nearest_of(&r, selections[i].event, message);
	code = nearest ? call_failed_as(error, "%.*s; did you mean %s?", without_advice(message),
					message, nearest)
		       : call_failed(p, error);
	recordables_done(&r);
	return code;
}
