// SPDX-License-Identifier: LGPL-2.1-or-later
/* PMUs that trace into AUX areas: which they are, and the terms that perf record gives them. */
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
