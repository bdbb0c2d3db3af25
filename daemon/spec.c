// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parser of event text. Owns the syntax and the sentences about it; must not know
 * whether this machine has the event: that is the kernel's to say, through the engine.
 *
 * The order is perf's: a shape that tells by itself what it is (a group, a PMU's terms, a
 * breakpoint), then a symbolic name, then SYSTEM:NAME. What perf knows and this version does
 * not record is recognised and named, so that nobody is told that right text is wrong.
 */
#include "daemon/spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/symbol.h"
#include "daemon/text.h"
#include "proto/macro.h"

#define QUOTE_MAX 100 /* bytes of the text that a sentence repeats */

/* What the modifiers may be: those that are recorded, and perf's others. */
#define MODIFIERS "ukhHGIp"
#define MODIFIERS_OTHER "PSDWeb"

struct parser {
	const char *text;
	char quote[QUOTE_MAX + 4]; /* the text, cut short if it is long */
	char *sentence;
	size_t size;
};

/* Says what is wrong and returns error. */
static _printf_(3, 4) int refuse(struct parser *p, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->sentence, p->size, fmt, ap);
	va_end(ap);
	return error;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static bool consists_of(const char *s, const char *chars)
{
	return s[strspn(s, chars)] == '\0';
}

/* ── Shapes ─────────────────────────────────────────────────────────────────────────────── */

static bool is_group(const char *s)
{
	return strpbrk(s, "{}") != NULL;
}

static bool is_breakpoint(const char *s)
{
	return starts_with(s, "mem:");
}

static bool is_probe(const char *s)
{
	return starts_with(s, "kprobe:") || starts_with(s, "kretprobe:") ||
	       starts_with(s, "uprobe:") || starts_with(s, "uretprobe:");
}

static bool is_pmu(const char *s)
{
	return strchr(s, '/') != NULL;
}

static bool is_several(const char *s)
{
	return strchr(s, ',') != NULL;
}

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[]") != NULL;
}

/* TYPE:CONFIG in numbers. */
static bool is_numeric(const char *s)
{
	const char digits[] = "0123456789abcdefABCDEFx";
	const char *colon = strchr(s, ':');

	return s[0] >= '0' && s[0] <= '9' && colon && colon[1] >= '0' && colon[1] <= '9' &&
	       strspn(s, "0123456789") == (size_t)(colon - s) && consists_of(colon + 1, digits);
}

/* Valid in perf, not recorded here; the first that fits speaks. */
static const struct {
	bool (*is)(const char *text);
	const char *what;
	const char *instead;
} not_yet[] = {
	{ is_group, "a group of events", "create one event for each member" },
	{ is_breakpoint, "a breakpoint", "use a tracepoint on the way to that memory" },
	{ is_probe, "a probe",
	  "use a tracepoint, or make one of it with `perf probe` and name that (probe:NAME)" },
	{ is_pmu, "an event of a PMU with terms",
	  "use one of the named events, such as cycles or cache-misses" },
	{ is_several, "a list of several events", "create one event for each" },
	{ is_glob, "a pattern for several tracepoints", "create one event for each tracepoint" },
	{ is_numeric, "an event given by its numbers",
	  "use its name, such as cpu-clock or cycles" },
};

static int check_shape(struct parser *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_yet); i++)
		if (not_yet[i].is(p->text))
			return refuse(p, -EOPNOTSUPP,
				      "'%s' is %s, which this version does not record: %s",
				      p->quote, not_yet[i].what, not_yet[i].instead);
	return 0;
}

/* Text that may be shown: printable, in one piece, not too long. Fills the quote. */
static int check_text(struct parser *p)
{
	size_t n = strnlen(p->text, PP_EVENT_TEXT_SIZE);

	if (n == 0)
		return refuse(p, -EINVAL,
			      "the event is missing: name a tracepoint (sched:sched_switch) or a "
			      "counter (cpu-clock, cycles:k)");
	if (n == PP_EVENT_TEXT_SIZE)
		return refuse(p, -EINVAL, "the event's text is too long: at most %d bytes",
			      PP_EVENT_TEXT_SIZE - 1);
	for (size_t i = 0; i < n; i++)
		if (p->text[i] <= 0x20 || p->text[i] > 0x7e)
			return refuse(p, -EINVAL,
				      "the event's text has a space or an unprintable character at "
				      "byte %zu: write it without, as in sched:sched_switch",
				      i + 1);
	snprintf(p->quote, sizeof(p->quote), "%.*s%s", QUOTE_MAX, p->text,
		 n > QUOTE_MAX ? "..." : "");
	return 0;
}

/* ── Counters: NAME[:MODIFIERS] ─────────────────────────────────────────────────────────── */

/* Each but p stands once, as perf has it. */
static int check_modifiers(struct parser *p, const char *mods)
{
	unsigned precise = 0;

	for (const char *m = mods; *m; m++) {
		precise += *m == 'p';
		if (strchr(MODIFIERS_OTHER, *m))
			return refuse(p, -EOPNOTSUPP,
				      "modifier '%c' of '%s' is one that this version does not "
				      "know: u k h H G I p pp ppp are",
				      *m, p->quote);
		if (!strchr(MODIFIERS, *m))
			return refuse(p, -EINVAL,
				      "'%c' in '%s' is not a modifier: u k h H G I p pp ppp are",
				      *m, p->quote);
		if (*m != 'p' && strchr(m + 1, *m))
			return refuse(p, -EINVAL,
				      "modifier '%c' stands twice in '%s': write it once", *m,
				      p->quote);
	}
	if (precise > 3)
		return refuse(p, -EINVAL, "'%s' asks for more precision than there is: at most ppp",
			      p->quote);
	return 0;
}

/*
 * perf's meaning, checked against perf 6.1: without modifiers guests are left out; u, k and h
 * count only the levels named; H and G only the sides named, and they have the last word on
 * guests; u and p leave guests out, k, h and I do not.
 */
static void apply_modifiers(const char *mods, struct pp_source *s)
{
	const uint32_t levels = PP_EXCLUDE_USER | PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV;
	const uint32_t sides = PP_EXCLUDE_HOST | PP_EXCLUDE_GUEST;

	s->exclude = 0;
	if (strpbrk(mods, "ukh"))
		s->exclude |= levels;
	if (strpbrk(mods, "HG"))
		s->exclude |= sides;
	else if (!*mods || strpbrk(mods, "up"))
		s->exclude |= PP_EXCLUDE_GUEST;
	for (; *mods; mods++) {
		switch (*mods) {
		case 'u':
			s->exclude &= ~PP_EXCLUDE_USER;
			break;
		case 'k':
			s->exclude &= ~PP_EXCLUDE_KERNEL;
			break;
		case 'h':
			s->exclude &= ~PP_EXCLUDE_HV;
			break;
		case 'H':
			s->exclude &= ~PP_EXCLUDE_HOST;
			break;
		case 'G':
			s->exclude &= ~PP_EXCLUDE_GUEST;
			break;
		case 'I':
			s->exclude |= PP_EXCLUDE_IDLE;
			break;
		case 'p':
			s->precise_ip++;
			break;
		}
	}
}

static int parse_counter(struct parser *p, const struct symbol *symbol, const char *mods,
			 struct pp_source *ret)
{
	struct pp_source s = {
		.kind = PP_SOURCE_SAMPLING,
		.type = symbol->type,
		.config = symbol->config,
	};
	int r;

	r = check_modifiers(p, mods);
	if (r < 0)
		return r;
	if (!symbol->counts)
		return refuse(p, -EOPNOTSUPP,
			      "'%s' never counts anything, so there is nothing to record: use an "
			      "event that happens, such as cpu-clock",
			      p->quote);
	apply_modifiers(mods, &s);
	*ret = s;
	return 0;
}

/* r1a8, r0x1a8 */
static bool is_raw(const char *head)
{
	const char *digits = starts_with(head, "r0x") ? head + 3 : head + 1;

	return head[0] == 'r' && *digits && consists_of(digits, "0123456789abcdefABCDEF");
}

/* A name that stands for no counter here: why, and what may have been meant. -errno. */
static int refuse_name(struct parser *p, const char *head, const char *mods)
{
	const char *nearest = symbol_nearest(head);
	char known[400];

	if (nearest)
		return refuse(p, -EINVAL, "'%s' is not an event: did you mean '%s%s%s'?", p->quote,
			      nearest, *mods ? ":" : "", mods);
	symbol_list(known, sizeof(known));
	return refuse(p, -EINVAL,
		      "'%s' is not an event that this version knows: write SYSTEM:NAME for a "
		      "tracepoint, or one of %s",
		      p->quote, known);
}

/* ── Tracepoints: SYSTEM:NAME ───────────────────────────────────────────────────────────── */

static int parse_tracepoint(struct parser *p, const char *system, const char *rest,
			    struct pp_source *ret)
{
	struct pp_source s = { .kind = PP_SOURCE_TRACEPOINT };
	const char *colon = strchr(rest, ':');

	if (colon && colon[1] && consists_of(colon + 1, MODIFIERS MODIFIERS_OTHER))
		return refuse(p, -EOPNOTSUPP,
			      "'%s' has modifiers, which this version takes for counters only: a "
			      "tracepoint is recorded whenever it is reached; write '%.*s'",
			      p->quote, (int)(colon - p->text), p->text);
	if (!pp_tp_name_is_valid(system) || !pp_tp_name_is_valid(rest))
		return refuse(p, -EINVAL,
			      "'%s' is not the name of a tracepoint: write SYSTEM:NAME in letters, "
			      "digits, _ and -, each at most %d, as in sched:sched_switch",
			      p->quote, PP_TP_NAME_SIZE - 1);
	pp_copy_text(s.system, sizeof(s.system), system);
	pp_copy_text(s.tracepoint, sizeof(s.tracepoint), rest);
	*ret = s;
	return 0;
}

/* ── All of it ──────────────────────────────────────────────────────────────────────────── */

int pp_source_parse(const char *text, struct pp_source *ret, char *sentence, size_t size)
{
	struct parser p = { .text = text, .sentence = sentence, .size = size };
	char head[PP_EVENT_TEXT_SIZE];
	const struct symbol *symbol;
	const char *colon, *rest;
	int r;

	r = check_text(&p);
	if (r < 0)
		return r;
	r = check_shape(&p);
	if (r < 0)
		return r;
	colon = strchr(text, ':');
	rest = colon ? colon + 1 : "";
	snprintf(head, sizeof(head), "%.*s", (int)strcspn(text, ":"), text);

	symbol = symbol_find(head);
	if (symbol)
		return parse_counter(&p, symbol, rest, ret);
	/* What follows cannot be a tracepoint's name, or hardly: NAME, NAME: or NAME:MODIFIERS. */
	if (consists_of(rest, MODIFIERS MODIFIERS_OTHER)) {
		if (is_raw(head) || symbol_is_cache(head))
			return refuse(&p, -EOPNOTSUPP,
				      "'%s' is a %s event, which this version does not record: use "
				      "one of the named events, such as cycles or cache-misses",
				      p.quote, is_raw(head) ? "raw hardware" : "hardware cache");
		if (!*rest || symbol_nearest(head))
			return refuse_name(&p, head, rest);
	}
	return parse_tracepoint(&p, head, rest, ret);
}
