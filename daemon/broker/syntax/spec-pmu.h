/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PMUs as sysfs shows them, for the parser of event text (spec-pmu.c, spec-terms.c).
 */
#pragma once

#include "daemon/broker/syntax/spec-internal.h"

struct pmu {
	const char *name;   /* "" for a counter's name, which has no formats */
	int fd;		    /* its folder, or -EBADF */
	bool terms_replace; /* a term's bits take the place of those that it had by default */
};

/* Whether it can be a name in sysfs; rejects anything that could leave the folder. */
bool pmu_is_word(const char *s);

/* Reads the first line of a file into buf. 0 or -errno. */
int pmu_read(int dir, const char *folder, const char *name, char *buf, size_t size);

bool pmu_exists(int dir, const char *folder, const char *name);

/* Lists "a, b, c", shortened with "..." if it is long; "none" for an empty folder. */
void pmu_list(int dir, const char *folder, char *buf, size_t size);

/* Sets config, config1 and config2 from the terms. */
int pmu_apply_terms(struct spec_parser *p, const struct pmu *pmu, const char *terms,
		    struct pp_source *s);

/* ── spec-aux.c ── */

/* Whether a PMU of that name traces into AUX areas that overwrite themselves. */
bool pmu_has_aux(const char *name);

/* The terms that perf record gives it, as far as it has them, unless an event's text says otherwise: without
 * times of its own a trace could not be decoded beside others. */
void pmu_aux_defaults(const struct pmu *pmu, char ret[PP_EVENT_TEXT_SIZE]);
