/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the verbs of triggers share. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "client/perfctl/perfctl.h"
#include "proto/fired.h"

extern const struct verb verb_trigger_add;

/* What each enum pp_action does to the targets, as a sentence has it; to notify has none. */
extern const char *const trigger_effects[PP_ACTIONS];

/* What fires: one event, maybe at a rate, or two, until; "" for what there is not. For sentences and
 * tables. */
void trigger_print_on(FILE *f, const char *on, const char *until, const char *rate);

/* What two events have in common: "the same tid, longer than 100 ms". */
void trigger_print_pair(FILE *f, const char *key, uint64_t longer_than);
