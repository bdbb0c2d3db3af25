// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The terms of a PMU's event, from sysfs: format/TERM names the term's bits in config, config1 and
 * config2; events/NAME is a list of terms with a name. Owns their syntax and error messages; must
 * not know how the PMU was found.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "daemon/broker/syntax/spec-pmu.h"
#include "daemon/text.h"

#define FILE_MAX 1024 /* bytes of a file that describes a PMU */

static int refuse_term(struct spec_parser *p, const struct pmu *pmu, const char *term)
{
	char events[200], formats[150];

	if (pmu->fd < 0)
		return spec_refuse(p, -EINVAL,
				   "'%.40s' in '%s' is no term of a counter's name: config, "
				   "config1 and config2 are",
				   term, p->quote);
	pmu_list(pmu->fd, "events", events, sizeof(events));
	pmu_list(pmu->fd, "format", formats, sizeof(formats));
	return spec_refuse(p, -ENOENT,
			   "PMU '%s' has no event or term '%.40s': its terms are config, %s; "
			   "its events are %s",
			   pmu->name, term, formats, events);
}

/*
 * Puts value into the bits that a format names ("config1:0-7,32-35"), from the lowest bit up. As in
 * perf, bits of other terms stay.
 */
static int set_bits(struct spec_parser *p, const struct pmu *pmu, const char *term,
		    const char *format, uint64_t value, struct pp_source *s)
{
	uint64_t *fields[] = { &s->config, &s->config1, &s->config2 };
	static const char *const names[] = { "config:", "config1:", "config2:" };
	uint64_t rest = value, *field = NULL;
	struct pp_cpumask bits;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields) && !field; i++)
		if (spec_starts_with(format, names[i])) {
			field = fields[i];
			format += strlen(names[i]);
		}
	/* A list of bits has the same syntax as a list of CPUs. */
	if (!field || pp_parse_cpus(format, &bits) < 0)
		return spec_refuse(p, -EOPNOTSUPP,
				   "term '%s' of '%s' is kept where this version does not write, "
				   "in %.60s: do without it",
				   term, p->quote, format);
	for (unsigned bit = 0; bit < 64; bit++)
		if (pp_cpumask_test(&bits, bit)) {
			if (pmu->terms_replace)
				*field &= ~(1ULL << bit);
			*field |= (rest & 1) << bit;
			rest >>= 1;
		}
	if (rest)
		return spec_refuse(p, -EINVAL,
				   "the value of '%s' in '%s' is too large: its bits are %.60s",
				   term, p->quote, format);
	return 0;
}

/* perf's terms for any PMU: they say how perf records, which is requested in other ways here. */
static const struct {
	const char *term, *instead;
} options[] = {
	{ "period", "give the period as an option (-c)" },
	{ "freq", "give the frequency as an option (-F)" },
	{ "call-graph", "ask for call chains as an option" },
	{ "max-stack", "leave it out" },
	{ "stack-size", "leave it out" },
	{ "time", "leave it out: records have their time" },
	{ "branch_type", "leave it out" },
	{ "inherit", "leave it out: all processes are recorded" },
	{ "no-inherit", "leave it out: all processes are recorded" },
	{ "max-events", "leave it out" },
	{ "overwrite", "leave it out: the oldest records are always overwritten" },
	{ "no-overwrite", "leave it out: the oldest records are always overwritten" },
	{ "percore", "leave it out" },
	{ "aux-output", "leave it out" },
	{ "metric-id", "leave it out" },
};

/* A term that every PMU has. 1: handled it; 0: it is another term. */
static int apply_generic(struct spec_parser *p, const char *term, const char *value,
			 struct pp_source *s)
{
	static const char *const names[] = { "config", "config1", "config2", "config3" };
	uint64_t *fields[] = { &s->config, &s->config1, &s->config2, NULL };
	int r = spec_aux_term(p, term, value, s);

	if (r != 0)
		return r;
	/* name= has no effect: the source has its own text anyway. */
	if (!strcmp(term, "name") && value)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(term, names[i]))
			continue;
		if (!fields[i])
			return spec_refuse(p, -EOPNOTSUPP,
					   "config3 in '%s' is not recorded: do without it",
					   p->quote);
		if (!value || pp_parse_u64(value, fields[i]) < 0)
			return spec_refuse(p, -EINVAL, "%s in '%s' has no number: write %s=0x1a8",
					   term, p->quote, term);
		return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(term, options[i].term))
			return spec_refuse(p, -EOPNOTSUPP,
					   "'%s' in '%s' says how perf records, not what: %s", term,
					   p->quote, options[i].instead);
	return 0;
}

/* Whether the event's text gives that term a value. */
static bool is_given(const char *terms, const char *term)
{
	size_t n = strlen(term);

	for (const char *s = terms; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
		if (!strncmp(s, term, n) && s[n] == '=')
			return true;
	return false;
}

static int apply_term(struct spec_parser *p, const struct pmu *pmu, const char *term,
		      const char *value, struct pp_source *s)
{
	struct pp_source raw;
	char format[FILE_MAX];
	uint64_t number = 1;

	if (pmu_is_word(term) && pmu->fd >= 0 &&
	    pmu_read(pmu->fd, "format/", term, format, sizeof(format)) == 0) {
		if (value && pp_parse_u64(value, &number) < 0)
			return spec_refuse(p, -EINVAL,
					   "'%s=%.40s' in '%s' is no number: decimal or 0x", term,
					   value, p->quote);
		return set_bits(p, pmu, term, format, number, s);
	}
	/* cpu/r1a8/ */
	if (pmu->fd >= 0 && !value && spec_counter(p, term, &raw) > 0 &&
	    raw.type == PERF_TYPE_RAW) {
		s->config = raw.config;
		return 0;
	}
	return refuse_term(p, pmu, term);
}

/* Applies the terms of a named event; `terms`, from the event text, fill in those it leaves open
 * (core=?). */
static int apply_event(struct spec_parser *p, const struct pmu *pmu, char *text, const char *terms,
		       struct pp_source *s)
{
	char *term;
	int r;

	while ((term = strsep(&text, ","))) {
		char *value = term;

		term = strsep(&value, "=");
		if (value && *value == '?') {
			if (is_given(terms, term))
				continue;
			return spec_refuse(p, -EINVAL, "'%s' leaves %.40s open: add %.40s=VALUE",
					   p->quote, term, term);
		}
		r = apply_generic(p, term, value, s);
		if (r == 0)
			r = apply_term(p, pmu, term, value, s);
		if (r < 0)
			return r;
	}
	return 0;
}

int pmu_apply_terms(struct spec_parser *p, const struct pmu *pmu, const char *terms,
		    struct pp_source *s)
{
	char text[PP_EVENT_TEXT_SIZE], event[FILE_MAX], *rest = text, *term;

	snprintf(text, sizeof(text), "%s", terms);
	while (*terms && (term = strsep(&rest, ","))) {
		char *value = term;
		int r;

		term = strsep(&value, "=");
		if (!*term)
			return spec_refuse(p, -EINVAL,
					   "'%s' has an empty term: write TERM=VALUE with one "
					   "comma between two",
					   p->quote);
		r = apply_generic(p, term, value, s);
		if (r == 0 && !value && pmu_is_word(term) && pmu->fd >= 0 &&
		    pmu_read(pmu->fd, "events/", term, event, sizeof(event)) == 0)
			r = apply_event(p, pmu, event, terms, s);
		else if (r == 0)
			r = apply_term(p, pmu, term, value, s);
		if (r < 0)
			return r;
	}
	return 0;
}
