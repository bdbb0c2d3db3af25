// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PMUs that trace into AUX areas: which they are, and the terms that perf record gives them; and the terms of events
 * beside them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/spec-pmu.h"
#include "daemon/text.h"

/* The kernel says of no PMU that it traces so, before an area is mapped. Each of these overwrites its area. cs_etm is
 * not among them: it writes an area only when the last of all CPUs stops, and takes its opener for alive. */
bool pmu_has_aux(const char *name)
{
	static const char *const globs[] = { "intel_pt", "intel_bts", "arm_spe_*" };

	for (size_t i = 0; i < ARRAY_SIZE(globs); i++)
		if (pp_glob_match(globs[i], name))
			return true;
	return false;
}

/* The number in a file of caps/, of that base; `otherwise` if there is none. */
static unsigned long read_cap(const struct pmu *pmu, const char *name, int base,
			      unsigned long otherwise)
{
	char text[32], *end;
	unsigned long n;

	if (pmu_read(pmu->fd, "caps/", name, text, sizeof(text)) < 0)
		return otherwise;
	n = strtoul(text, &end, base);
	return *end ? otherwise : n;
}

static void add(const struct pmu *pmu, char terms[PP_EVENT_TEXT_SIZE], const char *term, int value)
{
	size_t n = strlen(terms);

	if (pmu_exists(pmu->fd, "format/", term))
		snprintf(terms + n, PP_EVENT_TEXT_SIZE - n, "%s%s=%d", n ? "," : "", term, value);
}

/* Of the periods that these bits allow the one next to perf's, 3; none: not added. */
static void add_period(const struct pmu *pmu, char terms[PP_EVENT_TEXT_SIZE], const char *term,
		       unsigned long allowed)
{
	int period = -1;

	for (int i = 0; i < 16 && (period < 0 || i <= 3); i++)
		if (allowed & 1UL << i)
			period = i;
	if (period >= 0)
		add(pmu, terms, term, period);
}

static void add_intel_pt(const struct pmu *pmu, char terms[PP_EVENT_TEXT_SIZE])
{
	unsigned long mtc = read_cap(pmu, "mtc", 10, 1) ? read_cap(pmu, "mtc_periods", 16, 0) : 0;

	add(pmu, terms, "tsc", 1);
	if (mtc)
		add(pmu, terms, "mtc", 1);
	add_period(pmu, terms, "mtc_period", mtc);
	if (mtc && read_cap(pmu, "psb_cyc", 10, 1))
		add_period(pmu, terms, "psb_period", read_cap(pmu, "psb_periods", 16, 0));
	add(pmu, terms, "pt", 1);
	add(pmu, terms, "branch", 1);
}

void pmu_aux_defaults(const struct pmu *pmu, char ret[PP_EVENT_TEXT_SIZE])
{
	ret[0] = '\0';
	if (pp_glob_match("intel_pt", pmu->name))
		add_intel_pt(pmu, ret);
	else if (pp_glob_match("arm_spe_*", pmu->name))
		add(pmu, ret, "ts_enable", 1);
}

/* ── terms of all events ────────────────────────────────────────────────────────────────── */

static const struct {
	const char *name;
	enum pp_aux_action action;
	bool is_of_area; /* of the event that traces; the others are of those beside it */
} actions[] = {
	{ "start-paused", PP_AUX_START_PAUSED, true },
	{ "pause", PP_AUX_PAUSE, false },
	{ "resume", PP_AUX_RESUME, false },
};

static int take_action(struct spec_parser *p, const char *value, struct pp_source *s)
{
	for (size_t i = 0; value && i < ARRAY_SIZE(actions); i++) {
		if (strcmp(value, actions[i].name))
			continue;
		if (actions[i].is_of_area != (s->kind == PP_SOURCE_AUX))
			break;
		s->aux_action = actions[i].action;
		return 1;
	}
	return spec_refuse(p, -EINVAL, "'%s' cannot have this aux-action: %s", p->quote,
			   s->kind == PP_SOURCE_AUX
				   ? "an event that traces can start-paused"
				   : "an event beside one that traces can pause or "
				     "resume it");
}

static int take_sample_size(struct spec_parser *p, const char *value, struct pp_source *s)
{
	if (s->kind == PP_SOURCE_AUX)
		return spec_refuse(p, -EINVAL,
				   "'%s' traces into the AUX area, and takes no samples of it: "
				   "give aux-sample-size to an event beside it",
				   p->quote);
	if (!value || pp_parse_u32(value, &s->aux_sample) < 0 || s->aux_sample == 0 ||
	    s->aux_sample % 8 || s->aux_sample > PP_AUX_SAMPLE_MAX)
		return spec_refuse(p, -EINVAL,
				   "aux-sample-size in '%s' is no size: write a multiple of 8, up "
				   "to %u",
				   p->quote, PP_AUX_SAMPLE_MAX);
	return 1;
}

int spec_aux_term(struct spec_parser *p, const char *term, const char *value, struct pp_source *s)
{
	if (!strcmp(term, "aux-action"))
		return take_action(p, value, s);
	return strcmp(term, "aux-sample-size") ? 0 : take_sample_size(p, value, s);
}
