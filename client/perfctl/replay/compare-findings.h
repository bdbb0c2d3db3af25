/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Findings (findings.h) of a moment that the time before it had not: who crashed, and who kept whom waiting.
 * A comparison counts what a command does, and cannot say who kept whom waiting; and of a command that is new it
 * cannot say which of its sleeps are odd, which findings find by the thread itself.
 *
 * The time before is cut into slices as long as the moment. A finding is told if no slice has as much of the same
 * two commands; and, but for crashes, if it is more than any slice has that none of the others has, since on a busy
 * machine somebody always waits for somebody for the first time.
 */
#pragma once

#include "client/perfctl/replay/findings.h"

#define COMPARE_FINDINGS_SLICES 30 /* at most, those next to the moment */
#define COMPARE_FINDINGS_MIN 3	   /* fewer do not tell what is usual, so nothing is told */

struct compare_findings {
	struct latency_watcher watcher; /* of all slices */
	uint64_t since, until;		/* the moment, ns */
	size_t n_before;		/* slices before; the moment is the last of n_before + 2 */
	struct findings
		*of[COMPARE_FINDINGS_SLICES + 2]; /* the first: what is older than all slices */
	const struct finding **told;		  /* after compare_findings_finish() */
	size_t n_told;
};

/* Records are complete from `begin` on. -ENOMEM. */
int compare_findings_new(uint64_t begin, uint64_t since, uint64_t until,
			 struct compare_findings **ret);
void compare_findings_free(struct compare_findings *f);

/* Those that take what happened then. */
struct findings *compare_findings_at(struct compare_findings *f, uint64_t time);

/* After the last fact. -ENOMEM. */
int compare_findings_finish(struct compare_findings *f);
