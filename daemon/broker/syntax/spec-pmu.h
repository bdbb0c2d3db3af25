/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PMUs as sysfs shows them, for the parser of event text (spec-pmu.c, spec-terms.c).
 */
#pragma once

#include "daemon/broker/syntax/spec-internal.h"

struct pmu {
	const char *name; /* "" for a counter's name, which has no formats */
	int fd;		  /* its folder, or -EBADF */
};

/* Whether it can be a name in sysfs; rejects anything that could leave the folder. */
bool pmu_is_word(const char *s);

/* Reads the first line of a file into buf. 0 or -errno. */
int pmu_read(int dir, const char *folder, const char *name, char *buf, size_t size);

/* Lists "a, b, c", shortened with "..." if it is long; "none" for an empty folder. */
void pmu_list(int dir, const char *folder, char *buf, size_t size);

/* Sets config, config1 and config2 from the terms. */
int pmu_apply_terms(struct spec_parser *p, const struct pmu *pmu, const char *terms,
		    struct pp_source *s);
