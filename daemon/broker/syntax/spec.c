// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parser of event text: owns the list, the forms of events, and tracepoints. Must not know
 * whether this kernel has a tracepoint or counter: the engine finds out.
 *
 * The order is perf's: a form that identifies itself (a breakpoint, a probe, a PMU's terms), then a
 * symbolic name, then SYSTEM:NAME. Valid perf syntax that is not recorded here gets its own error
 * message, so that nobody is told that correct text is wrong.
 */
#include "daemon/broker/syntax/spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "proto/symbol.h"
#include "daemon/text.h"
#include "proto/macro.h"

#define PMUS "/sys/bus/event_source/devices"

int spec_refuse(struct spec_parser *p, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->sentence, p->size, fmt, ap);
	va_end(ap);
	return error;
}

int spec_add(struct spec_parser *p, const struct pp_source *source, const char *text)
{
	struct pp_source *s;

	if (!text)
		text = p->text;
	if (p->n == p->cap)
		return spec_refuse(p, -E2BIG,
				   "the list is too long at '%s': one name has at most %zu events, "
				   "probes' places and globs; a glob counts as one",
				   p->quote, p->cap);
	s = &p->sources[p->n++];
	*s = *source;
	memcpy(s->text, text, strnlen(text, sizeof(s->text) - 1));
	return 0;
}

bool spec_starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool spec_consists_of(const char *s, const char *chars)
{
	return s[strspn(s, chars)] == '\0';
}

/* ── Tracepoints: SYSTEM:NAME ───────────────────────────────────────────────────────────── */

static int parse_tracepoint(struct spec_parser *p, const char *system, const char *rest,
			    const struct pp_source *terms)
{
	struct pp_source s = { .kind = PP_SOURCE_TRACEPOINT };
	const char *colon = strchr(rest, ':');

	if (colon && colon[1] && spec_consists_of(colon + 1, SPEC_MODIFIERS SPEC_MODIFIERS_OTHER))
		return spec_refuse(p, -EOPNOTSUPP,
				   "'%s' has modifiers, which are for counters only: a tracepoint "
				   "is recorded whenever it is reached; write '%.*s'",
				   p->quote, (int)(colon - p->text), p->text);
	if (!pp_tp_glob_is_valid(system) || !pp_tp_glob_is_valid(rest))
		return spec_refuse(p, -EINVAL,
				   "'%s' is not the name of a tracepoint: write SYSTEM:NAME in "
				   "letters, digits, _ and - (and * ? [] for globs), each at most "
				   "%d, as in sched:sched_switch or sched:*",
				   p->quote, PP_TP_NAME_SIZE - 1);
	pp_copy_text(s.system, sizeof(s.system), system);
	pp_copy_text(s.name, sizeof(s.name), rest);
	s.aux_action = terms->aux_action;
	s.aux_sample = terms->aux_sample;
	return spec_add(p, &s, NULL);
}

/* SYSTEM:NAME/TERM=VALUE,…/ */
static int parse_tracepoint_terms(struct spec_parser *p)
{
	struct pp_source terms = { .kind = PP_SOURCE_TRACEPOINT };
	char text[PP_EVENT_TEXT_SIZE], *rest = text, *system, *name, *list, *term;

	snprintf(text, sizeof(text), "%s", p->text);
	system = strsep(&rest, ":");
	name = strsep(&rest, "/");
	list = strsep(&rest, "/");
	while ((term = strsep(&list, ","))) {
		char *value = term;
		int r;

		term = strsep(&value, "=");
		r = spec_aux_term(p, term, value, &terms);
		if (r == 0)
			r = spec_refuse(
				p, -EINVAL,
				"'%.40s' in '%s' is no term of a tracepoint: it has "
				"aux-action and aux-sample-size, beside an event that traces",
				term, p->quote);
		if (r < 0)
			return r;
	}
	if (!rest || *rest)
		return spec_refuse(p, -EINVAL,
				   "'%s' does not end behind its terms: write "
				   "SYSTEM:NAME/TERM=VALUE/",
				   p->quote);
	return parse_tracepoint(p, system, name, &terms);
}

/* ── Names: NAME[:MODIFIERS] ────────────────────────────────────────────────────────────── */

/* The names that `perf list` calls tool events. */
static bool is_tool(const char *name)
{
	static const char *const tools[] = { "duration_time", "user_time", "system_time" };

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (!strcmp(name, tools[i]))
			return true;
	return false;
}

/* Refuses an unknown name: explains why, and suggests a similar one. -errno. */
static int refuse_name(struct spec_parser *p, const char *head, const char *mods)
{
	const char *nearest = symbol_nearest(head);
	char known[400];

	if (is_tool(head))
		return spec_refuse(p, -EOPNOTSUPP,
				   "'%s' is perf's own reading of a clock and no event of the "
				   "kernel: there is nothing to record; cpu-clock and task-clock "
				   "are events",
				   p->quote);
	if (nearest)
		return spec_refuse(p, -EINVAL, "'%s' is not an event: did you mean '%s%s%s'?",
				   p->quote, nearest, *mods ? ":" : "", mods);
	/* A name in the style of perf's processor tables: this code cannot tell right from
	 * wrong. */
	if (strpbrk(head, "_.") && spec_consists_of(head, SPEC_LETTERS SPEC_DIGITS ".-"))
		return spec_refuse(p, -EOPNOTSUPP,
				   "'%s' is no event of this kernel: write SYSTEM:NAME for a "
				   "tracepoint; metrics are perf's own sums of several events, and "
				   "for events of its tables write what `perf stat -vv` shows, as "
				   "PMU/config=0x1a8/",
				   p->quote);
	symbol_list(known, sizeof(known));
	return spec_refuse(p, -EINVAL,
			   "'%s' is not an event that this version knows: write SYSTEM:NAME for a "
			   "tracepoint, or one of %s",
			   p->quote, known);
}

static int parse_name(struct spec_parser *p)
{
	const char *colon = strchr(p->text, ':'), *rest = colon ? colon + 1 : "";
	struct pp_source source = { 0 };
	char head[PP_EVENT_TEXT_SIZE];
	bool modifiers = spec_consists_of(rest, SPEC_MODIFIERS SPEC_MODIFIERS_OTHER);
	int r;

	snprintf(head, sizeof(head), "%.*s", (int)strcspn(p->text, ":"), p->text);
	/* After a name in perf's tables follow modifiers, right or wrong. */
	if (modifiers || symbol_find(head)) {
		r = spec_counter(p, head, &source);
		if (r > 0)
			r = spec_modify(p, rest, &source);
		if (r < 0)
			return r;
		if (source.kind)
			return spec_add(p, &source, NULL);
		r = spec_parse_pmu_event(p, head, rest);
		if (r != 0)
			return MIN(r, 0);
		/* Hardly a tracepoint, although one could be called `u`. */
		if (!*rest || is_tool(head) || symbol_nearest(head))
			return refuse_name(p, head, rest);
	}
	return parse_tracepoint(p, head, rest, &(struct pp_source){});
}

/* ── Shapes ─────────────────────────────────────────────────────────────────────────────── */

/* TYPE:CONFIG in numbers. */
static bool is_numeric(const char *s)
{
	const char *colon = strchr(s, ':');

	return s[0] >= '0' && s[0] <= '9' && colon && colon[1] >= '0' && colon[1] <= '9' &&
	       strspn(s, SPEC_DIGITS) == (size_t)(colon - s) &&
	       spec_consists_of(colon + 1, SPEC_HEX_DIGITS "x");
}

static int parse_event(struct spec_parser *p)
{
	if (spec_starts_with(p->text, "mem:"))
		return spec_parse_breakpoint(p);
	if (spec_is_probe(p->text))
		return spec_parse_probe(p);
	if (strchr(p->text, '/'))
		return memchr(p->text, ':', strcspn(p->text, "/")) ? parse_tracepoint_terms(p)
								   : spec_parse_pmu(p);
	if (is_numeric(p->text))
		return spec_refuse(
			p, -EOPNOTSUPP,
			"'%s' is an event given by its numbers, which is not recorded: "
			"use its name, such as cpu-clock or cycles, or PMU/config=0x1a8/",
			p->quote);
	return parse_name(p);
}

/* ── The list ───────────────────────────────────────────────────────────────────────────── */

/* Bytes of the first event; brackets of a probe and slashes of a PMU are not split. */
static size_t event_length(const char *s)
{
	size_t n = strcspn(s, ",/");
	int depth = 0;

	if (spec_is_probe(s)) {
		for (n = 0; s[n] && (s[n] != ',' || depth > 0); n++)
			depth += (s[n] == '(') - (s[n] == ')');
		return n;
	}
	if (s[n] != '/' || spec_starts_with(s, "mem:"))
		return strcspn(s, ",");
	n++;
	n += strcspn(s + n, "/");
	return n + strcspn(s + n, ",");
}

/* Accepts text that can be shown: printable, without spaces, not too long. */
static int check_text(struct spec_parser *p, const char *text)
{
	size_t n = strnlen(text, PP_EVENT_TEXT_SIZE);

	if (n == 0)
		return spec_refuse(p, -EINVAL,
				   "the event is missing: name a tracepoint (sched:sched_switch) "
				   "or a counter (cpu-clock, cycles:k)");
	if (n == PP_EVENT_TEXT_SIZE)
		return spec_refuse(p, -EINVAL, "the event's text is too long: at most %d bytes",
				   PP_EVENT_TEXT_SIZE - 1);
	for (size_t i = 0; i < n; i++)
		if (text[i] <= 0x20 || text[i] > 0x7e)
			return spec_refuse(p, -EINVAL,
					   "the event's text has a space or an unprintable "
					   "character at byte %zu: write it without, as in "
					   "sched:sched_switch",
					   i + 1);
	if (strpbrk(text, "{}"))
		return spec_refuse(p, -EOPNOTSUPP,
				   "{} make a group of events that are counted together, which is "
				   "not recorded: write them without, with commas between");
	return 0;
}

/* Makes the n bytes at text the current event. */
static int take_event(struct spec_parser *p, const char *text, const char *at, size_t n)
{
	if (n == 0)
		return spec_refuse(p, -EINVAL,
				   "an event is missing at byte %zu: events stand with one comma "
				   "between them",
				   (size_t)(at - text) + 1);
	memcpy(p->text, at, n);
	p->text[n] = 0;
	snprintf(p->quote, sizeof(p->quote), "%.*s%s", SPEC_QUOTE_MAX, p->text,
		 n > SPEC_QUOTE_MAX ? "..." : "");
	return parse_event(p);
}

int spec_parse(const char *pmus, const char *text, struct pp_source *sources, size_t cap,
	       char *sentence, size_t size)
{
	struct pp_source found[PP_TERMS_MAX];
	struct spec_parser p = {
		.pmus = pmus,
		.sources = found,
		.cap = MIN(cap, ARRAY_SIZE(found)),
		.sentence = sentence,
		.size = size,
	};
	const char *at = text;
	int r;

	r = check_text(&p, text);
	if (r < 0)
		return r;
	for (;;) {
		size_t n = event_length(at);

		r = take_event(&p, text, at, n);
		if (r < 0)
			return r;
		at += n;
		if (!*at)
			break;
		at++;
	}
	memcpy(sources, found, p.n * sizeof(*sources));
	return p.n;
}

int pp_spec_parse(const char *text, struct pp_source *sources, size_t cap, char *sentence,
		  size_t size)
{
	return spec_parse(PMUS, text, sources, cap, sentence, size);
}

bool pp_spec_has_probe(const char *text)
{
	for (const char *at = text; *at; at++) {
		if (spec_starts_with(at, "mem:") || spec_is_probe(at))
			return true;
		at += event_length(at);
		if (!*at)
			break;
	}
	return false;
}
