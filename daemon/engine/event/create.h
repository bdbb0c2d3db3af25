/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps by which an event is made. Shared by create.c and adopt.c only. Messages in *f. */
#pragma once

#include "daemon/engine/event/parts.h"

/* Whether the name is free. */
int create_check_name(const struct pp_spec *spec, struct failure *f);

/* Finds the sources, within the limits, and gives the event its id. `parsed` must outlive p. */
int create_begin(struct parts *p, const struct pp_spec *spec, const struct pp_parsed *parsed,
		 uint32_t program, const struct pp_allowance *allowance, struct failure *f);

/* Makes rings, catalog and slots, with a program in each slot, and pins them in a draft: nothing calls the programs
 * yet. */
int create_draft(struct parts *p, const struct pp_trigger_spec *trigger, struct failure *f);

/* Once everything else is pinned in the draft: makes and pins the files, and shows the event. */
int create_finish(struct parts *p, const struct pp_parsed *parsed, struct failure *f);
