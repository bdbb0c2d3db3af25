/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the events that names and globs mean (find.h). If several names share rings, the first
 * counts, so that no record comes twice.
 */
#pragma once

#include "client/perfctl/perfctl.h"

struct chosen {
	struct perfpersist_event **events;
	size_t n;
};

/* copies: of the rings, even if the rings themselves can be opened. Returns an exit code; has complained if it is not EXIT_OK, also if there are none. */
int choose_events(struct call *call, struct perfpersist *p, char **names, size_t n_names,
		  bool copies, struct chosen *ret);
void chosen_done(struct chosen *c);

/* Whether an earlier one of these has the same rings. */
bool is_second_name(const struct perfpersist_info *infos, size_t i);

/* Complains if the newest records cannot be read. */
void tell_frozen(const struct perfpersist_info *info);

/* The time (CLOCK_MONOTONIC, ns) of what is read: `now`; of a save: of the event that was saved last, as
 * the last checkpoints of a boot may be far apart. Some records of a save may be newer. */
uint64_t chosen_now(struct perfpersist_interleave *records, size_t n, uint64_t now);

/* Allows this process as many descriptors as it may have: rings of many events on many CPUs need many. */
void allow_descriptors(void);
